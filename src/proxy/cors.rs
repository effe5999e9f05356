//! Browsers: which pages of other origins may call, and what they may read (Fetch standard, CORS).
//!
//! Answered by us alone: a preflight needs no token and is never forwarded, and what an agent says
//! about origins does not pass.

use super::reply::{self, Answer};
use crate::config::snapshot::Listener;
use bytes::Bytes;
use http::Method;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::http::ServerSession;

/// What a page may read beside the fields that it always may.
const EXPOSED: &str = "Portcullis-Request-Id, WWW-Authenticate, DPoP-Nonce, Retry-After, A2A-Version, A2A-Extensions, grpc-status, grpc-message";
/// Methods that an A2A binding or a backend path may have.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// How long a browser may remember our answer, in seconds.
const MAX_AGE: &str = "600";
/// Longest list of field names that is allowed back.
const MAX_NAMES: usize = 1024;

/// The listed origin of a request, kept with it.
#[derive(Clone)]
struct Allowed(HeaderValue);

/// Notes whether the request comes from a page of a listed origin.
pub fn note(session: &mut ServerSession, listener: &Listener) {
    if listener.cors.is_empty() {
        return;
    }
    let mut origins = session.req_header().headers.get_all(ORIGIN).iter();
    let (origin, another) = (origins.next(), origins.next());
    let listed = |o: &&HeaderValue| listener.cors.iter().any(|l| l.as_bytes() == o.as_bytes());
    if let (Some(origin), None) = (origin.filter(listed), another) {
        let allowed = Allowed(origin.clone());
        session.req_header_mut().extensions_mut().insert(allowed);
    }
}

fn allowed(head: &RequestHeader) -> Option<&HeaderValue> {
    head.extensions.get::<Allowed>().map(|allowed| &allowed.0)
}

/// Says in a reply who may read it.
pub fn add(request: &RequestHeader, reply: &mut ResponseHeader) -> Result<(), Box<pingora::Error>> {
    if let Some(origin) = allowed(request) {
        reply.insert_header(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone())?;
        reply.insert_header(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED)?;
        reply.append_header(VARY, "Origin")?;
    }
    Ok(())
}

/// Whether this is a browser's question before a call of a listed origin.
pub fn is_preflight(head: &RequestHeader) -> bool {
    head.method == Method::OPTIONS
        && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        && allowed(head).is_some()
}

/// Answers it.
pub async fn answer(
    session: &mut ServerSession,
    request_id: &str,
) -> Result<(), Box<pingora::Error>> {
    let mut headers = vec![
        (
            ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static(METHODS),
        ),
        (ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE)),
        (
            VARY,
            HeaderValue::from_static("Access-Control-Request-Headers"),
        ),
    ];
    // Whatever fields a listed page sends, they pass the same checks as anybody's.
    let asked = session
        .req_header()
        .headers
        .get(ACCESS_CONTROL_REQUEST_HEADERS);
    if let Some(names) = asked.filter(|names| names.len() <= MAX_NAMES) {
        headers.push((ACCESS_CONTROL_ALLOW_HEADERS, names.clone()));
    }
    let answer = Answer {
        status: 204,
        content_type: None,
        headers: &headers,
        body: Bytes::new(),
    };
    reply::write(session, request_id, answer).await
}
