//! Which header fields travel, in both directions.
//!
//! Towards the agent: hop-by-hop fields, credentials, forwarding claims of strangers and every name
//! that we set ourselves are left out (RFC 9110 sections 7.6.1 and 11.7; TR-8, TR-10). Towards the
//! caller: the agent's challenges, cookies and anything that names its own origin.

use crate::a2a::head::declares_extensions;
use crate::a2a::{Fault, Version};
use crate::config::skills::CERTIFICATE_PREFIXES;
use crate::config::snapshot::Credential;
use crate::pipeline::Trace;
use crate::pipeline::trace::TRACESTATE;
use bytes::{BufMut, BytesMut};
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use pingora::http::ResponseHeader;
use std::time::Duration;

/// The request id, in every answer and towards the agent.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("portcullis-request-id");
/// What the next proof of possession must repeat (RFC 9449 section 9).
pub const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The signed assertion, towards an agent that wants one.
pub const ASSERTION: HeaderName = HeaderName::from_static("portcullis-assertion");

/// What we add to a request towards the agent.
#[derive(Debug, Clone, Copy)]
pub struct Added<'a> {
    /// Whether it goes over TLS.
    pub secure: bool,
    /// The backend's `Host`.
    pub authority: &'a str,
    /// Our request id.
    pub request_id: &'a str,
    /// The trace that the call is a part of.
    pub trace: &'a Trace,
    /// The normalised `A2A-Version`, if one is to be sent.
    pub a2a_version: Option<Version>,
    /// The header that declares the caller's extensions, in the place of whatever it sent itself;
    /// none is sent when the value is empty.
    pub extensions: Option<(&'static str, &'a str)>,
    /// The length of the body, when there is one.
    pub content_length: Option<usize>,
    /// What tells the agent that it is us: our signed assertion.
    pub assertion: Option<&'a str>,
    /// The same by a secret that it shares with us.
    pub credential: Option<&'a Credential>,
    /// Whether the caller's bearer token travels.
    pub token: bool,
    /// For gRPC: what is left of the caller's deadline, if it has one.
    pub grpc: Option<Option<Duration>>,
}

impl Added<'_> {
    /// Whether a field of the caller's goes to the agent.
    pub(super) fn lets(&self, name: &HeaderName, value: &HeaderValue) -> bool {
        if self.credential.is_some_and(|c| is_spelled(name, &c.name)) {
            return false;
        }
        if *name == header::AUTHORIZATION {
            // Without the proof that we checked, a token that is bound to a key is of no use.
            return self.token && is_bearer(value);
        }
        let name = name.as_str();
        // What another tracing system noted is about the trace that its caller began.
        if name == TRACESTATE && !self.trace.is_continued() {
            return false;
        }
        travels_to_agent(name) && !(self.extensions.is_some() && declares_extensions(name))
    }
}

/// Whether a field is `wanted` to a server of the CGI kind, which reads `_` as `-`.
fn is_spelled(name: &HeaderName, wanted: &HeaderName) -> bool {
    let (name, wanted) = (name.as_str().as_bytes(), wanted.as_str().as_bytes());
    name.len() == wanted.len()
        && name
            .iter()
            .zip(wanted)
            .all(|(&byte, &want)| byte == want || (byte == b'_' && want == b'-'))
}

fn is_bearer(value: &HeaderValue) -> bool {
    const SCHEME: &[u8] = b"bearer ";
    let scheme = value.as_bytes().get(..SCHEME.len());
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
}

/// Writes the request head for an HTTP/1.1 agent.
///
/// `path` is the very path that was judged, with its query if the surface has one.
pub fn upstream_head(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    added: Added<'_>,
    room: usize,
) -> Result<BytesMut, (Fault, &'static str)> {
    let dropped = connection_names(headers)?;
    let mut wire = BytesMut::with_capacity(1024 + room);
    wire.put_slice(method.as_str().as_bytes());
    wire.put_u8(b' ');
    wire.put_slice(path.as_bytes());
    wire.put_slice(b" HTTP/1.1\r\nhost: ");
    wire.put_slice(added.authority.as_bytes());
    wire.put_slice(b"\r\n");
    for (name, value) in headers {
        if added.lets(name, value) && !dropped.iter().any(|d| d == name) {
            wire.put_slice(name.as_str().as_bytes());
            wire.put_slice(b": ");
            wire.put_slice(value.as_bytes());
            wire.put_slice(b"\r\n");
        }
    }
    wire.put_slice(b"accept-encoding: identity\r\nportcullis-request-id: ");
    wire.put_slice(added.request_id.as_bytes());
    wire.put_slice(b"\r\ntraceparent: ");
    wire.put_slice(&added.trace.parent());
    wire.put_slice(b"\r\n");
    if let Some(assertion) = added.assertion {
        wire.put_slice(b"portcullis-assertion: ");
        wire.put_slice(assertion.as_bytes());
        wire.put_slice(b"\r\n");
    }
    if let Some(credential) = added.credential {
        wire.put_slice(credential.name.as_str().as_bytes());
        wire.put_slice(b": ");
        wire.put_slice(credential.value.reveal().as_bytes());
        wire.put_slice(b"\r\n");
    }
    if let Some(version) = added.a2a_version {
        wire.put_slice(b"a2a-version: ");
        wire.put_slice(version.label().as_bytes());
        wire.put_slice(b"\r\n");
    }
    if let Some((name, value)) = added.extensions
        && !value.is_empty()
    {
        wire.put_slice(name.as_bytes());
        wire.put_slice(b": ");
        wire.put_slice(value.as_bytes());
        wire.put_slice(b"\r\n");
    }
    if let Some(length) = added.content_length {
        wire.put_slice(b"content-length: ");
        put_decimal(&mut wire, length);
        wire.put_slice(b"\r\n");
    }
    wire.put_slice(b"\r\n");
    Ok(wire)
}

fn put_decimal(wire: &mut BytesMut, mut number: usize) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    wire.put_slice(&digits[at..]);
}

/// Fields that `Connection` names, to be dropped with it. It must not name what decides the
/// meaning of the request: that would let a caller delete it on the way.
pub(super) fn connection_names(
    headers: &HeaderMap,
) -> Result<Vec<HeaderName>, (Fault, &'static str)> {
    let mut names = Vec::new();
    for value in headers.get_all(header::CONNECTION) {
        for token in value.as_bytes().split(|&b| b == b',') {
            let token = token.trim_ascii();
            if token.is_empty() {
                continue;
            }
            let Ok(name) = HeaderName::from_bytes(token) else {
                return Err((Fault::BadRequest, "bad_connection_header"));
            };
            if decides_meaning(name.as_str()) {
                return Err((Fault::InvalidCredentials, "connection_names_protected"));
            }
            names.push(name);
        }
    }
    Ok(names)
}

/// Whether `Connection` names something that it must not. Checked before authentication too.
pub fn check_connection(headers: &HeaderMap) -> Result<(), (Fault, &'static str)> {
    if headers.contains_key(header::CONNECTION) {
        connection_names(headers)?;
    }
    Ok(())
}

fn decides_meaning(name: &str) -> bool {
    matches!(
        name,
        "host" | "authorization" | "dpop" | "cookie" | "forwarded"
    ) || ["content-", "x-forwarded-", "a2a-", "x-a2a-"]
        .iter()
        .any(|p| name.starts_with(p))
        || is_ours(name)
}

/// Names that only we may set, also with `_` for `-` (some servers fold the two).
fn is_ours(name: &str) -> bool {
    const PREFIX: &[u8] = b"portcullis-";
    name.len() >= PREFIX.len()
        && name
            .bytes()
            .zip(PREFIX)
            .all(|(byte, &want)| byte == want || (byte == b'_' && want == b'-'))
}

fn travels_to_agent(name: &str) -> bool {
    if name.contains('_') {
        // Servers of the CGI kind read `_` as `-`: what decides something under the one spelling
        // must not arrive under the other.
        let folded = name.replace('_', "-");
        return !decides_meaning(&folded) && travels_to_agent(&folded);
    }
    let hop_or_framing = matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "expect"
            | "host"
            | "content-length"
            | "http2-settings"
    );
    let credential = matches!(name, "authorization" | "dpop" | "cookie");
    let replaced = matches!(
        name,
        "accept-encoding" | "a2a-version" | "grpc-accept-encoding" | "grpc-timeout" | "traceparent"
    );
    let other_method = matches!(
        name,
        "x-http-method-override" | "x-http-method" | "x-method-override"
    );
    let dropped = hop_or_framing || credential || replaced || other_method;
    !(dropped || is_forwarding_claim(name) || is_ours(name))
}

/// What strangers say about who stands behind them; no proxy is trusted.
fn is_forwarding_claim(name: &str) -> bool {
    matches!(
        name,
        "forwarded" | "via" | "x-real-ip" | "x-client-ip" | "true-client-ip"
    ) || starts_with_folded(name, b"x-forwarded-")
        || starts_with_folded(name, b"x-original-")
        || starts_with_folded(name, b"x-rewrite-")
        || CERTIFICATE_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

fn starts_with_folded(name: &str, prefix: &[u8]) -> bool {
    name.len() >= prefix.len()
        && name
            .bytes()
            .zip(prefix)
            .all(|(b, &want)| b == want || (b == b'_' && want == b'-'))
}

/// The reply head for the caller: the agent's fields that may travel, without any framing.
pub fn downstream_head(
    upstream: &ResponseHeader,
    request_id: &str,
    event_stream: bool,
) -> Result<ResponseHeader, Box<pingora::Error>> {
    let mut head = ResponseHeader::build(upstream.status, Some(upstream.headers.len() + 4))?;
    let dropped = connection_names(&upstream.headers).unwrap_or_default();
    for (name, value) in &upstream.headers {
        if travels_to_caller(name.as_str()) && !dropped.iter().any(|d| d == name) {
            head.append_header(name.clone(), value.clone())?;
        }
    }
    head.insert_header(REQUEST_ID, request_id)?;
    if event_stream {
        head.insert_header(header::CACHE_CONTROL, "no-store")?;
        head.insert_header("x-accel-buffering", "no")?;
    }
    Ok(head)
}

/// Whether a reply field or trailer reaches the caller.
pub(super) fn travels_to_caller(name: &str) -> bool {
    if name.contains('_') {
        return travels_to_caller(&name.replace('_', "-"));
    }
    let hop_or_framing = matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "content-length"
            | "date"
    );
    let speaks_for_itself = matches!(
        name,
        "www-authenticate"
            | "authentication-info"
            | "set-cookie"
            | "alt-svc"
            | "location"
            | "content-location"
            | "link"
            | "via"
            | "server"
            | "x-powered-by"
            | "refresh"
            | "x-sendfile"
            | "strict-transport-security"
            | "clear-site-data"
            | "nel"
            | "report-to"
            | "reporting-endpoints"
            | "dpop-nonce"
    );
    // Who may read us from a browser, and what a proxy in front does, is not the agent's to say.
    let of_another = ["access-control-", "x-accel-"];
    let speaks_for_another = of_another.iter().any(|prefix| name.starts_with(prefix));
    !(hop_or_framing || speaks_for_itself || speaks_for_another || is_ours(name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
