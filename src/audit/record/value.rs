//! Values in records that serialise without allocating: times, digests, bounded text, labels.

use crate::a2a::reader::{EventKind, TaskState};
use crate::a2a::{Binding, Operation, Version};
use crate::audit::redact::{ID, TEXT, cut, hex};
use crate::identity::Actor;
use crate::source::instant::parse_instant;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Most entries of a list that a caller or an agent fills; one more says how many were left out.
pub(super) const LIST: usize = 32;

/// A point in time: milliseconds since the Unix epoch, written as RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

impl Time {
    /// What [`Time::text`] fills.
    pub const TEMPLATE: [u8; 24] = *b"0000-00-00T00:00:00.000Z";

    /// As records have it, such as `2026-12-30T23:59:59.007Z`; `buffer` is [`Time::TEMPLATE`].
    pub fn text(self, buffer: &mut [u8; 24]) -> &str {
        rfc3339(self.0, buffer)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text(&mut Time::TEMPLATE.clone()))
    }
}

impl Time {
    /// A time as records have it, `2026-05-31T12:00:00.000Z`, and nothing else.
    pub fn parse(text: &str) -> Option<Time> {
        let (second, fraction) = text.split_once('.')?;
        let digits = fraction.strip_suffix('Z')?;
        let plain = text.len() == 24 && digits.bytes().all(|b| b.is_ascii_digit());
        let seconds = parse_instant(&format!("{second}Z")).filter(|_| plain)?;
        let millis = u64::try_from(seconds).ok()?.checked_mul(1000)?;
        Some(Time(millis + digits.parse::<u64>().ok()?))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(rfc3339(self.0, &mut { *b"0000-00-00T00:00:00.000Z" }))
    }
}

/// Fills `buffer`, a template with punctuation in place. Years beyond 9999 stay at their last four
/// digits. Days to date as in Howard Hinnant's `civil_from_days`.
fn rfc3339(millis: u64, buffer: &mut [u8; 24]) -> &str {
    let days = millis / 86_400_000;
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let within = millis % 86_400_000;
    for (at, width, value) in [
        (0, 4, year),
        (5, 2, month),
        (8, 2, day),
        (11, 2, within / 3_600_000),
        (14, 2, within / 60_000 % 60),
        (17, 2, within / 1000 % 60),
        (20, 3, within % 1000),
    ] {
        let mut rest = value;
        for digit in buffer[at..at + width].iter_mut().rev() {
            // A remainder of ten fits a byte.
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
    std::str::from_utf8(buffer).unwrap_or_default()
}

/// A duration, written as milliseconds with microsecond precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Millis(pub Duration);

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Exact up to 285 years.
        serializer.serialize_f64(self.0.as_micros() as f64 / 1000.0)
    }
}

/// A SHA-256, written as 64 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sha256(pub [u8; 32]);

impl Serialize for Sha256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut buffer = [0; 64];
        serializer.serialize_str(hex(&self.0, &mut buffer))
    }
}

/// Untrusted text, cut at 64 characters when written (LG-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a>(pub &'a str);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&cut(self.0, TEXT))
    }
}

/// An identifier that a caller, an issuer or an agent chose, cut at 256 characters when written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id<'a>(pub &'a str);

impl Serialize for Id<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&cut(self.0, ID))
    }
}

/// Identifiers; at most 32 are written, then `… and N more`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ids<'a>(pub &'a [Box<str>]);

impl Ids<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Ids<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let left_out = self.0.len().saturating_sub(LIST);
        let mut seq = serializer.serialize_seq(None)?;
        for id in self.0.iter().take(LIST) {
            seq.serialize_element(&Id(id))?;
        }
        if left_out > 0 {
            seq.serialize_element(&format_args!("… and {left_out} more"))?;
        }
        seq.end()
    }
}

/// A chain of actors, outermost first. Tokens have four at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Actors<'a>(pub &'a [Actor]);

impl Actors<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Actors<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct One<'a> {
            subject: Id<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            issuer: Option<Id<'a>>,
        }
        serializer.collect_seq(self.0.iter().map(|actor| One {
            subject: Id(&actor.subject),
            issuer: actor.issuer.as_deref().map(Id),
        }))
    }
}

/// The value of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ClaimValue<'a> {
    /// A string.
    Text(Id<'a>),
    /// An array of strings, or a space-separated string.
    Texts(Ids<'a>),
    /// A number.
    Number(f64),
    /// A boolean.
    Boolean(bool),
}

/// Claims by their configured names; names are unique.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Claims<'a>(pub &'a [(&'a str, ClaimValue<'a>)]);

impl Claims<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Claims<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Why claims have no value, by their configured names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoClaims<'a>(pub &'a [(&'a str, &'static str)]);

impl NoClaims<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for NoClaims<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// Numbers by a closed or configured name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts<'a>(pub &'a [(&'a str, u64)]);

impl Serialize for Counts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, count) in self.0 {
            map.serialize_entry(name, count)?;
        }
        map.end()
    }
}

/// Gives a type an inline JSON Schema.
macro_rules! schema {
    ($type:ty, $name:literal, $schema:tt) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

schema!(Time, "Time", {"type": "string", "format": "date-time"});
schema!(Millis, "Millis", {"type": "number", "minimum": 0});
schema!(Sha256, "Sha256", {"type": "string", "pattern": "^[0-9a-f]{64}$"});
schema!(Text<'_>, "Text", {"type": "string"});
schema!(Id<'_>, "Id", {"type": "string"});
schema!(Ids<'_>, "Ids", {"type": "array", "items": {"type": "string"}});
schema!(Actors<'_>, "Actors", {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "subject": {"type": "string", "description": "Its `sub`."},
            "issuer": {"type": "string", "description": "Its `iss`, where that is not the token's."}
        },
        "required": ["subject"]
    }
});
schema!(NoClaims<'_>, "NoClaims", {
    "type": "object",
    "additionalProperties": {"type": "string", "enum": ["missing", "null", "wrong_type"]}
});
schema!(Counts<'_>, "Counts", {"type": "object", "additionalProperties": {"type": "integer"}});

impl JsonSchema for Claims<'_> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Claims".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<ClaimValue<'static>>();
        json_schema!({"type": "object", "additionalProperties": value})
    }
}

/// The record label of a task state.
pub fn state_label(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::InputRequired => "input_required",
        TaskState::Completed => "completed",
        TaskState::Canceled => "canceled",
        TaskState::Failed => "failed",
        TaskState::Rejected => "rejected",
        TaskState::AuthRequired => "auth_required",
        TaskState::Unknown => "unknown",
    }
}

/// The record label of an event kind.
pub fn event_kind_label(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Task => "task",
        EventKind::Message => "message",
        EventKind::StatusUpdate => "status_update",
        EventKind::ArtifactUpdate => "artifact_update",
        EventKind::Error(_) => "error",
        EventKind::Other => "other",
    }
}

pub(super) fn operation<S: Serializer>(value: &Option<Operation>, s: S) -> Result<S::Ok, S::Error> {
    value.map(Operation::name).serialize(s)
}

pub(super) fn binding<S: Serializer>(value: &Option<Binding>, s: S) -> Result<S::Ok, S::Error> {
    value.map(Binding::label).serialize(s)
}

pub(super) fn version<S: Serializer>(value: &Option<Version>, s: S) -> Result<S::Ok, S::Error> {
    value.map(Version::label).serialize(s)
}

pub(super) fn event_kind<S: Serializer>(
    value: &Option<EventKind>,
    s: S,
) -> Result<S::Ok, S::Error> {
    value.map(event_kind_label).serialize(s)
}

pub(super) fn states<S: Serializer>(value: &&[TaskState], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(value.iter().take(LIST).map(|state| state_label(*state)))
}

pub(super) fn operation_schema(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = Operation::ALL.into_iter().map(Operation::name).collect();
    json_schema!({"type": "string", "enum": names})
}

pub(super) fn binding_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["jsonrpc", "rest", "grpc"]})
}

pub(super) fn version_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["0.3", "1.0"]})
}

pub(super) fn event_kind_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": [
        "task", "message", "status_update", "artifact_update", "error", "other"]})
}

pub(super) fn states_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"type": "string", "enum": [
        "submitted", "working", "input_required", "completed", "canceled", "failed", "rejected",
        "auth_required", "unknown"]}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_one_spelling() {
        for wrong in [
            "2026-05-31T12:00:00Z",
            "2026-05-31T12:00:00.00Z",
            "2026-05-31T12:00:00.0000Z",
            "2026-05-31T12:00:00.+00Z",
            "2026-02-30T12:00:00.000Z",
            "2026-05-31T12:00:00.000+00:00",
            "",
        ] {
            assert_eq!(Time::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_rfc_3339_in_utc() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_798_675_199_007, "2026-12-30T23:59:59.007Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            let mut buffer = *b"0000-00-00T00:00:00.000Z";
            assert_eq!(rfc3339(millis, &mut buffer), expected);
            assert_eq!(Time(millis).to_string(), expected);
            assert_eq!(Time::parse(expected), Some(Time(millis)));
        }
    }
}
