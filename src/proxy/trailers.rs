//! The edge of gRPC: its status in trailers, and its deadline.
//!
//! gRPC over HTTP/2 protocol: `Trailers-Only`, `Timeout`, `Trailers`.

use super::{cors, proof};
use crate::a2a::GrpcStatus;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use pingora::http::ResponseHeader;
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
    proof::add(caller.req_header(), &mut head)?;
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
