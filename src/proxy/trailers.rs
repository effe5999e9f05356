//! The edge of gRPC: its status in trailers, and its deadline.
//!
//! gRPC over HTTP/2 protocol: `Trailers-Only`, `Timeout`, `Trailers`.

use super::cors;
use crate::a2a::GrpcStatus;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::http::ServerSession;
use std::time::Duration;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
/// The caller's deadline, and what is left of it towards the agent.
pub const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// What the trailers of an answer of ours say.
pub fn of_status(status: &GrpcStatus) -> Vec<(HeaderName, HeaderValue)> {
    let mut fields = vec![(STATUS, HeaderValue::from(u16::from(status.code)))];
    for (name, text) in [(MESSAGE, &status.message), (DETAILS, &status.details)] {
        // Percent-encoded and base64 texts are good values.
        if let Ok(value) = HeaderValue::from_str(text)
            && !text.is_empty()
        {
            fields.push((name, value));
        }
    }
    fields
}

/// Whether a reply header says the status itself, so that no trailers follow.
pub fn is_trailers_only(headers: &HeaderMap) -> bool {
    headers.contains_key(STATUS)
}

/// Whether a request is gRPC's by its media type.
pub fn is_grpc(head: &RequestHeader) -> bool {
    let media = head.headers.get(CONTENT_TYPE).map(|v| v.as_bytes());
    let rest = media.and_then(|m| m.strip_prefix(b"application/grpc"));
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

/// How long the caller is willing to wait; `Err` for what is no `grpc-timeout`.
pub fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, &'static str> {
    let mut values = headers.get_all(TIMEOUT).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let parsed = value.to_str().ok().and_then(parse);
    match parsed {
        Some(timeout) if values.next().is_none() => Ok(Some(timeout)),
        Some(_) | None => Err("bad_grpc_timeout"),
    }
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let good = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let many: u64 = digits.parse().ok().filter(|_| good)?;
    Some(match unit {
        "H" => Duration::from_secs(many * 3600),
        "M" => Duration::from_secs(many * 60),
        "S" => Duration::from_secs(many),
        "m" => Duration::from_millis(many),
        "u" => Duration::from_micros(many),
        "n" => Duration::from_nanos(many),
        _ => return None,
    })
}

/// A duration as `grpc-timeout` says it, never longer than it is.
pub fn spelled(left: Duration) -> HeaderValue {
    const MOST: u128 = 99_999_999;
    let text = match left.as_millis() {
        millis if millis <= MOST => format!("{millis}m"),
        _ => format!("{}S", u128::from(left.as_secs()).min(MOST)),
    };
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("0m"))
}

/// Writes a reply header; with `end`, HTTP/2 is told that nothing follows. Whether nothing can
/// follow any more.
pub async fn write_head(
    caller: &mut ServerSession,
    mut head: ResponseHeader,
    end: bool,
) -> Result<bool, Box<pingora::Error>> {
    cors::add(caller.req_header(), &mut head)?;
    match caller {
        // The general one never ends the stream.
        ServerSession::H2(h2) => h2.write_response_header(Box::new(head), end).map(|()| end),
        other => other
            .write_response_header(Box::new(head))
            .await
            .map(|()| false),
    }
}

/// Whether a reply to this request, with this status, has no body.
pub fn is_bodiless(method: &Method, status: u16) -> bool {
    *method == Method::HEAD || status == 204 || status == 304
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn timeouts() {
        for (text, expected) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("99999999S", Some(Duration::from_secs(99_999_999))),
            ("250m", Some(Duration::from_millis(250))),
            ("5u", Some(Duration::from_micros(5))),
            ("7n", Some(Duration::from_nanos(7))),
            ("2M", Some(Duration::from_secs(120))),
            ("", None),
            ("m", None),
            ("5", None),
            ("5s", None),
            ("+5S", None),
            ("123456789S", None),
            ("1 S", None),
            ("1é", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        let mut two = HeaderMap::new();
        assert_eq!(timeout(&two), Ok(None));
        two.append(TIMEOUT, HeaderValue::from_static("1S"));
        two.append(TIMEOUT, HeaderValue::from_static("1S"));
        assert!(timeout(&two).is_err());
    }

    #[test]
    fn deadlines_are_never_spelled_longer() {
        for (left, text) in [
            (Duration::ZERO, "0m"),
            (Duration::from_micros(1_999), "1m"),
            (Duration::from_secs(99_999), "99999000m"),
            (Duration::from_secs(100_000), "100000S"),
            (Duration::MAX, "99999999S"),
        ] {
            assert_eq!(spelled(left), text);
        }
    }
}
