//! A request head towards an agent that speaks, or may speak, HTTP/2.

use super::headers::{ASSERTION, Added, REQUEST_ID, connection_names};
use super::trailers;
use crate::a2a::Fault;
use crate::pipeline::trace::TRACEPARENT;
use bytes::{BufMut, BytesMut};
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Uri};
use pingora::http::RequestHeader;

/// The request head for an agent that speaks, or may speak, HTTP/2.
///
/// The URI has scheme and authority: without them Pingora would claim `https`.
pub fn upstream_fields(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    added: Added<'_>,
) -> Result<Box<RequestHeader>, (Fault, &'static str)> {
    let bad = |_| (Fault::BadRequest, "bad_target");
    let dropped = connection_names(headers)?;
    let uri = Uri::builder()
        .scheme(if added.secure { "https" } else { "http" })
        .authority(added.authority)
        .path_and_query(path)
        .build()
        .map_err(bad)?;
    let room = Some(headers.len() + 5);
    let mut head = RequestHeader::build_no_case(method.clone(), b"/", room)
        .map_err(|_| (Fault::BadRequest, "bad_target"))?;
    head.set_uri(uri);
    let mut add = |name: HeaderName, value: HeaderValue| {
        // Fails only beyond thousands of fields.
        head.append_header(name, value)
            .map(|_| ())
            .map_err(|_| (Fault::HeadersTooLarge, "too_many_headers"))
    };
    for (name, value) in headers {
        if added.lets(name, value) && !dropped.iter().any(|d| d == name) {
            add(name.clone(), value.clone())?;
        }
    }
    let identity = HeaderValue::from_static("identity");
    add(header::ACCEPT_ENCODING, identity)?;
    let request_id = HeaderValue::from_str(added.request_id);
    add(
        REQUEST_ID,
        request_id.map_err(|_| (Fault::Internal, "bad_id"))?,
    )?;
    let parent = HeaderValue::from_bytes(&added.trace.parent());
    add(
        TRACEPARENT,
        parent.map_err(|_| (Fault::Internal, "bad_id"))?,
    )?;
    if let Some(assertion) = added.assertion {
        let value = HeaderValue::from_str(assertion);
        let mut value = value.map_err(|_| (Fault::Internal, "bad_assertion"))?;
        // Another for each request: no table has a use for it.
        value.set_sensitive(true);
        add(ASSERTION, value)?;
    }
    if let Some(credential) = added.credential {
        let value = credential.value.reveal().clone();
        add(credential.name.clone(), value)?;
    }
    if let Some(version) = added.a2a_version {
        let name = HeaderName::from_static("a2a-version");
        add(name, HeaderValue::from_static(version.label()))?;
    }
    if let Some((name, value)) = added.extensions
        && !value.is_empty()
    {
        let value = HeaderValue::from_str(value);
        let value = value.map_err(|_| (Fault::Internal, "bad_extensions"))?;
        add(HeaderName::from_static(name), value)?;
    }
    if let Some(length) = added.content_length {
        add(header::CONTENT_LENGTH, HeaderValue::from(length))?;
    }
    if let Some(left) = added.grpc {
        add(header::TE, HeaderValue::from_static("trailers"))?;
        if let Some(left) = left {
            add(trailers::TIMEOUT, trailers::spelled(left))?;
        }
    }
    Ok(Box::new(head))
}

/// The same head as HTTP/1.1 writes it, for an agent that turned out to speak that.
pub fn wire_of(head: &RequestHeader, room: usize) -> Option<BytesMut> {
    let mut wire = BytesMut::with_capacity(1024 + room);
    wire.put_slice(head.method.as_str().as_bytes());
    wire.put_u8(b' ');
    wire.put_slice(head.uri.path_and_query()?.as_str().as_bytes());
    wire.put_slice(b" HTTP/1.1\r\nhost: ");
    wire.put_slice(head.uri.authority()?.as_str().as_bytes());
    wire.put_slice(b"\r\n");
    for (name, value) in &head.headers {
        wire.put_slice(name.as_str().as_bytes());
        wire.put_slice(b": ");
        wire.put_slice(value.as_bytes());
        wire.put_slice(b"\r\n");
    }
    wire.put_slice(b"\r\n");
    Some(wire)
}
