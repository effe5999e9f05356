//! What the head of an agent's reply says about what may be done with the rest.

use http::{StatusCode, header};
use pingora::http::ResponseHeader;

/// Replies that never pass: redirects name the agent's own origin, and its own credentials are
/// none of the caller's business.
pub(super) fn is_unusable(head: &ResponseHeader) -> bool {
    let status = head.status;
    status.is_redirection() && status != StatusCode::NOT_MODIFIED
        || status == StatusCode::UNAUTHORIZED
        || status == StatusCode::PROXY_AUTHENTICATION_REQUIRED
}

pub(super) fn is_event_stream(head: &ResponseHeader) -> bool {
    let Some(value) = head.headers.get(header::CONTENT_TYPE) else {
        return false;
    };
    let media = value
        .as_bytes()
        .split(|&b| b == b';')
        .next()
        .unwrap_or_default();
    media
        .trim_ascii()
        .eq_ignore_ascii_case(b"text/event-stream")
}

pub(super) fn is_encoded(head: &ResponseHeader) -> bool {
    head.headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .any(|v| !v.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity"))
}

pub(super) fn declared_length(head: &ResponseHeader) -> Option<usize> {
    head.headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// Two media types: who reads the reply may take either.
pub(super) fn has_two_types(head: &ResponseHeader) -> bool {
    head.headers
        .get_all(header::CONTENT_TYPE)
        .iter()
        .nth(1)
        .is_some()
}

/// Whether the connection's end is the only end of the body (RFC 9112 section 6.3).
pub(super) fn ends_by_close(head: &ResponseHeader) -> bool {
    let bodiless = matches!(
        head.status,
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
    );
    !bodiless
        && !head.headers.contains_key(header::CONTENT_LENGTH)
        && !head.headers.contains_key(header::TRANSFER_ENCODING)
}
