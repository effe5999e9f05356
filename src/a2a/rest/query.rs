//! The query of a REST request, read strictly and written anew.
//!
//! A parameter that the operation does not have is refused, and so is one that occurs twice or in
//! another spelling: servers take the first, the last, or what folds alike. What names a task, a
//! tenant or a configuration stands in the path only.

use super::escape::{decoded, write_value};
use crate::a2a::call::Call;
use crate::a2a::listing::ListQuery;
use crate::a2a::operation::{Operation, Version};
use crate::a2a::payload_json::{Stop, checked_id, refused};
use std::borrow::Cow;

/// The version, which the head reads and which is forwarded as a header.
const VERSION: &str = "A2A-Version";

/// No page token is longer.
const MAX_TOKEN: usize = 4096;

/// What a parameter's value must be.
#[derive(Debug, Clone, Copy)]
enum Kind {
    ContextId,
    Count,
    Token,
    Flag,
    State,
    Timestamp,
}

const PAGE_SIZE: (&str, Kind) = ("pageSize", Kind::Count);
const PAGE_TOKEN: (&str, Kind) = ("pageToken", Kind::Token);
const HISTORY_LENGTH: (&str, Kind) = ("historyLength", Kind::Count);

/// The parameters of an operation (A2A 1.0 section 11.5), in the order in which they are sent on.
fn parameters(operation: Operation) -> &'static [(&'static str, Kind)] {
    match operation {
        Operation::GetTask => &[HISTORY_LENGTH],
        Operation::ListTasks => &[
            ("contextId", Kind::ContextId),
            ("status", Kind::State),
            PAGE_SIZE,
            PAGE_TOKEN,
            HISTORY_LENGTH,
            ("statusTimestampAfter", Kind::Timestamp),
            ("includeArtifacts", Kind::Flag),
        ],
        Operation::ListTaskPushNotificationConfigs => &[PAGE_SIZE, PAGE_TOKEN],
        Operation::SendMessage
        | Operation::SendStreamingMessage
        | Operation::CancelTask
        | Operation::SubscribeToTask
        | Operation::CreateTaskPushNotificationConfig
        | Operation::GetTaskPushNotificationConfig
        | Operation::DeleteTaskPushNotificationConfig
        | Operation::GetExtendedAgentCard => &[],
    }
}

/// Reads the query into the call, and writes it anew behind `path`.
pub(super) fn understand(
    query: Option<&str>,
    call: &mut Call,
    path: &mut String,
) -> Result<(), Stop> {
    let query = query.unwrap_or_default();
    if query.is_empty() && call.operation != Operation::ListTasks {
        return Ok(());
    }
    let known = parameters(call.operation);
    let mut values: Vec<Option<Cow<'_, str>>> = vec![None; known.len()];
    for pair in query.split('&').filter(|_| !query.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(name), Some(value)) = (decoded(name, true), decoded(value, true)) else {
            return refused("query_encoding");
        };
        if name == VERSION {
            continue;
        }
        let place = known.iter().position(|(known, _)| *known == name);
        let Some(slot) = place.and_then(|place| values.get_mut(place)) else {
            return refused("query_unknown");
        };
        if slot.replace(value).is_some() {
            return refused("query_twice");
        }
    }
    if call.operation == Operation::ListTasks {
        let value = |wanted: &str| {
            let mut pairs = known.iter().zip(&values);
            let found = pairs.find(|((name, _), _)| *name == wanted)?.1.as_deref();
            found.filter(|value| !value.is_empty())
        };
        let filter = |name| value(name).unwrap_or_default();
        // Neither a state nor a timestamp has a comma.
        let filters = [
            filter("status"),
            filter("statusTimestampAfter"),
            filter("contextId"),
        ];
        call.list = Some(Box::new(ListQuery {
            page_token: value("pageToken").map(Box::from),
            page_size: value("pageSize").and_then(|size| size.parse().ok().filter(|s| *s > 0)),
            filters: filters.join(",").into(),
        }));
    }
    let mut separator = '?';
    for ((name, kind), value) in known.iter().zip(values) {
        let Some(value) = value else { continue };
        if !check(*kind, &value, call)? {
            continue;
        }
        path.push(separator);
        separator = '&';
        path.push_str(name);
        path.push('=');
        write_value(&value, path);
    }
    Ok(())
}

/// Checks a value; says whether it is to be sent on.
fn check(kind: Kind, value: &str, call: &mut Call) -> Result<bool, Stop> {
    let good = match kind {
        Kind::ContextId => {
            call.context_id = Some(checked_id(value)?);
            true
        }
        // What says nothing is left out, since servers differ about the empty token.
        Kind::Token if value.is_empty() => return Ok(false),
        Kind::Token => value.len() <= MAX_TOKEN && !value.chars().any(char::is_control),
        Kind::Count => is_count(value),
        Kind::Flag => matches!(value, "true" | "false"),
        Kind::State => is_state(value, call.dialect.version),
        Kind::Timestamp => is_timestamp(value),
    };
    match good {
        true => Ok(true),
        false => refused("query_value"),
    }
}

/// A number of 31 bits in its one spelling.
fn is_count(value: &str) -> bool {
    let plain = value.bytes().all(|byte| byte.is_ascii_digit());
    let shortest = value == "0" || !value.starts_with('0');
    plain && shortest && value.parse::<i32>().is_ok()
}

fn is_state(value: &str, version: Version) -> bool {
    let Some(state) = value.strip_prefix("TASK_STATE_") else {
        return false;
    };
    match state {
        "UNSPECIFIED" | "SUBMITTED" | "WORKING" | "COMPLETED" | "FAILED" | "INPUT_REQUIRED"
        | "REJECTED" | "AUTH_REQUIRED" => true,
        "CANCELED" => version == Version::V1_0,
        _ => false,
    }
}

/// RFC 3339 with a zone, as ProtoJSON writes timestamps.
fn is_timestamp(value: &str) -> bool {
    let number = |from: usize, to: usize, most: u32| {
        value.get(from..to).is_some_and(|digits| {
            digits.bytes().all(|byte| byte.is_ascii_digit())
                && digits.parse::<u32>().is_ok_and(|number| number <= most)
        })
    };
    let sign = |at: usize, wanted: &[u8]| {
        value
            .as_bytes()
            .get(at)
            .is_some_and(|byte| wanted.contains(byte))
    };
    let date = number(0, 4, 9999) && sign(4, b"-") && number(5, 7, 12) && sign(7, b"-");
    let time = number(8, 10, 31) && sign(10, b"T") && number(11, 13, 23) && sign(13, b":");
    let rest = number(14, 16, 59) && sign(16, b":") && number(17, 19, 60);
    if !(date && time && rest) {
        return false;
    }
    let mut at = 19;
    if sign(at, b".") {
        let fraction = value.bytes().skip(at + 1);
        let digits = fraction.take_while(u8::is_ascii_digit).count();
        if !(1..=9).contains(&digits) {
            return false;
        }
        at += 1 + digits;
    }
    if value.get(at..) == Some("Z") {
        return true;
    }
    sign(at, b"+-")
        && number(at + 1, at + 3, 23)
        && sign(at + 3, b":")
        && number(at + 4, at + 6, 59)
        && value.len() == at + 6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_those_of_proto_json() {
        for good in [
            "2026-11-30T13:00:00Z",
            "2026-11-30T13:00:00.5Z",
            "2026-11-30T13:00:00.123456789Z",
            "2026-11-30T13:00:00+01:00",
        ] {
            assert!(is_timestamp(good), "{good}");
        }
        for bad in [
            "",
            "2026-11-30",
            "2026-11-30T13:00:00",
            "2026-11-30 13:00:00Z",
            "2026-11-30t13:00:00z",
            "2026-13-30T13:00:00Z",
            "2026-11-30T13:00:00.Z",
            "2026-11-30T13:00:00.1234567890Z",
            "2026-11-30T13:00:00+0100",
            "2026-11-30T13:00:00Zx",
            "2026-11-30T13:00:00 01:00",
            "+026-11-30T13:00:00Z",
            "2026-11-3é0T13:00:00Z",
        ] {
            assert!(!is_timestamp(bad), "{bad}");
        }
    }

    #[test]
    fn counts_have_one_spelling() {
        for good in ["0", "7", "100", "2147483647"] {
            assert!(is_count(good), "{good}");
        }
        for bad in [
            "",
            "-1",
            "+1",
            "01",
            "00",
            "1.0",
            "1e3",
            "2147483648",
            " 1",
            "٣",
        ] {
            assert!(!is_count(bad), "{bad}");
        }
    }
}
