//! The gRPC binding, in and out.
//!
//! gRPC over HTTP/2; `a2a-protocol.md` a.1, e.4 and i.3; field cases FC-45 to FC-48. The package in
//! the path decides the version and with it the layout of the message; nothing is guessed.

pub mod frame;
pub mod health;
mod status;
pub mod timeout;

pub use status::GrpcStatus;
pub(super) use status::render;

use super::call::{Call, Malformed, ReadRules};
use super::fault::Fault;
use super::head;
use super::operation::{Binding, Dialect, Version};
use super::payload_proto::{self, Stop};
use super::request::{Reading, Request};
use super::wire;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use std::time::Duration;

/// Media types of a call: protobuf is what the short one means.
const MEDIA_TYPES: [&[u8]; 2] = [b"application/grpc", b"application/grpc+proto"];
/// Name of the field that says how messages are compressed.
const ENCODING: &str = "grpc-encoding";

/// Whether the path is one of an operation.
pub(super) fn is_served(below: &str) -> bool {
    wire::grpc(below).is_some()
}

/// Whether a request claims to be gRPC, of whatever kind: it is refused as such then (FC-46).
pub fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| {
        let prefix = value.as_bytes().get(..MEDIA_TYPES[0].len());
        prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(MEDIA_TYPES[0]))
    })
}

/// The version in which a gRPC caller of `path` speaks; 1.0 where the path does not tell.
pub fn version_of(path: &str) -> Version {
    match path.starts_with("/a2a.v1.") {
        true => Version::V0_3,
        false => Version::V1_0,
    }
}

/// Reads one request.
///
/// # Errors
/// [`Malformed`]: it is not one clear call.
pub(super) fn read(request: &Request<'_>, rules: &ReadRules) -> Result<Reading, Malformed> {
    let version = version_of(request.path);
    let refused = |fault, code| Malformed {
        version: Some(version),
        ..Malformed::before_body(fault, code)
    };
    if *request.method != http::Method::POST {
        return Err(refused(Fault::MethodNotAllowed, "not_a_post"));
    }
    if request.query.is_some() {
        return Err(refused(Fault::InvalidRequest, "grpc_query"));
    }
    media_type(request.headers).map_err(|(fault, code)| refused(fault, code))?;
    match timeout::declared(request.headers) {
        Ok(Some(Duration::ZERO)) => {
            return Err(refused(Fault::RequestTimeout, "grpc_deadline"));
        }
        Ok(_) => {}
        Err(timeout::BadTimeout) => return Err(refused(Fault::InvalidRequest, "grpc_timeout")),
    }
    let head = head::read_of(request.headers, None, &[]).map_err(|malformed| Malformed {
        version: Some(version),
        ..malformed
    })?;
    let Some(spelling) = wire::grpc(request.path) else {
        return Err(refused(Fault::MethodNotFound, "unknown_method"));
    };
    let refused = |fault, code| Malformed {
        operation: Some(spelling.operation),
        ..refused(fault, code)
    };
    head.agrees(spelling.version, rules.versions)
        .map_err(|code| refused(Fault::VersionNotSupported, code))?;
    let message = frame::single(request.body).map_err(|fault| {
        let public = match fault {
            frame::FrameFault::Compressed => Fault::EncodingNotSupported,
            frame::FrameFault::Flag | frame::FrameFault::Length => Fault::InvalidRequest,
        };
        refused(public, fault.code())
    })?;
    let dialect = Dialect {
        binding: Binding::Grpc,
        version: spelling.version,
    };
    let mut call = Call::bare(dialect, spelling.operation);
    payload_proto::read(message, &mut call, rules).map_err(|stop| match stop {
        Stop::Proto(fault) => refused(Fault::InvalidRequest, fault.code()),
        Stop::Refused(fault, code) => refused(fault, code),
    })?;
    Ok(Reading::new(call, &head, request.path.into()))
}

/// Checks how the message is said to be written.
fn media_type(headers: &HeaderMap) -> Result<(), (Fault, &'static str)> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    match (values.next(), values.next()) {
        (None, _) => return Err((Fault::ContentTypeNotSupported, "content_type_missing")),
        (Some(_), Some(_)) => return Err((Fault::ContentTypeNotSupported, "content_type_twice")),
        (Some(value), None) if MEDIA_TYPES.contains(&value.as_bytes()) => {}
        (Some(_), None) if is_grpc(headers) => {
            return Err((Fault::EncodingNotSupported, "content_type_other"));
        }
        (Some(_), None) => return Err((Fault::ContentTypeNotSupported, "content_type_other")),
    }
    let mut values = headers
        .get_all(ENCODING)
        .iter()
        .chain(headers.get_all(http::header::CONTENT_ENCODING));
    match values.all(|value| value.as_bytes() == b"identity") {
        true => Ok(()),
        false => Err((Fault::EncodingNotSupported, "grpc_encoding")),
    }
}
