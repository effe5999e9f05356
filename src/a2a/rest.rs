//! The HTTP+JSON binding, in and out.
//!
//! `a2a-protocol.md` a.2 to a.4, d and e. The path says version and operation by itself; whatever
//! repeats them must agree. What goes to the agent is built from what was understood: path and
//! query are written anew, the version is one header. What is refused, in this order: an unknown
//! path (404), a wrong method (405), a version that does not agree, a body where none belongs or
//! of another media type (415), unclear ids of the path, an unclear query, an unclear body.

mod escape;
mod query;
mod route;

use super::call::{Call, Malformed, ReadRules};
use super::fault::{Entry, Fault};
use super::head::{self, Head};
use super::operation::{Binding, Dialect, Operation, Version, Versions};
use super::payload_json::{self, Stop};
use super::request::{Reading, Request};
use super::strict_json::{Cursor, JsonFault, REQUEST_DEPTH, Rename};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Method};
use route::Found;

/// The media type that 1.0 prefers.
const A2A_JSON: &str = "application/a2a+json";

/// Whether the path is one of an operation, in the versions that the interface offers or not:
/// what is not offered is refused by its version.
pub(super) fn is_served(path: &str, versions: Versions, tenants: bool) -> bool {
    !matches!(route::find(path, versions, tenants), Err("unknown_path"))
}

/// The methods that the path has, as `Allow` lists them.
pub(super) fn allowed(path: &str, versions: Versions, tenants: bool) -> &'static str {
    route::find(path, versions, tenants).map_or("", |found| found.allowed())
}

/// The dialect in which a request of `path` is answered that leads nowhere.
pub(super) fn dialect_of(path: &str, versions: Versions) -> Dialect {
    let older = !versions.v1_0 || (versions.v0_3 && route::is_older(path));
    Dialect {
        binding: Binding::Rest,
        version: if older { Version::V0_3 } else { Version::V1_0 },
    }
}

/// Reads one request.
///
/// # Errors
/// [`Malformed`]: it is not one clear call.
pub(super) fn read(request: &Request<'_>, rules: &ReadRules) -> Result<Reading, Malformed> {
    let found = match route::find(request.path, rules.versions, rules.tenants) {
        Ok(found) => found,
        Err(code) => {
            let fault = match code {
                "unknown_path" => Fault::NoSuchPath,
                _ => Fault::InvalidParams,
            };
            let dialect = dialect_of(request.path, rules.versions);
            return Err(Malformed {
                version: Some(dialect.version),
                ..Malformed::before_body(fault, code)
            });
        }
    };
    let operation = found.operation(request.method);
    read_found(request, rules, &found, operation).map_err(|malformed| Malformed {
        version: Some(found.version),
        operation,
        ..malformed
    })
}

fn read_found(
    request: &Request<'_>,
    rules: &ReadRules,
    found: &Found<'_>,
    operation: Option<Operation>,
) -> Result<Reading, Malformed> {
    // Behind a colon some servers see a verb, whatever the method.
    if found.has_colon() {
        return Err(Malformed::before_body(
            Fault::InvalidParams,
            "path_id_colon",
        ));
    }
    let Some(operation) = operation else {
        return Err(Malformed::before_body(
            Fault::MethodNotAllowed,
            "method_of_path",
        ));
    };
    let body = Body::of(request, operation)?;
    let head = head::read_of(request.headers, request.query, body.media_types(found))?;
    let version = found.version;
    head.agrees(version, rules.versions)
        .map_err(|code| Malformed::before_body(Fault::VersionNotSupported, code))?;
    let dialect = Dialect {
        binding: Binding::Rest,
        version,
    };
    let mut call = Call {
        spots: rules.json_spots(),
        ..Call::bare(dialect, operation)
    };
    let read = read_call(request, rules, found, &body, &mut call);
    let (path, renames) = read.map_err(|stop| match stop {
        Stop::Refused(fault, code) => Malformed::before_body(fault, code),
        Stop::Json(JsonFault::DuplicateKey) => {
            Malformed::before_body(Fault::InvalidRequest, JsonFault::DuplicateKey.code())
        }
        Stop::Json(fault) => Malformed::before_body(Fault::ParseError, fault.code()),
    })?;
    Ok(reading(call, &head, path, request.body, &renames))
}

fn reading(call: Call, head: &Head, path: String, body: &[u8], renames: &[Rename]) -> Reading {
    let reading = Reading::new(call, head, path.into());
    match renames {
        [] => reading,
        renames => Reading {
            body: respelled(body, renames),
            ..reading
        },
    }
}

/// What follows the interface's path on the backend, and what to respell in the body.
fn read_call(
    request: &Request<'_>,
    rules: &ReadRules,
    found: &Found<'_>,
    body: &Body,
    call: &mut Call,
) -> Result<(String, Vec<Rename>), Stop> {
    let mut path = String::with_capacity(request.path.len() + 64);
    found.understand(call, &mut path)?;
    query::understand(request.query, call, &mut path)?;
    match body {
        Body::None => Ok((path, Vec::new())),
        Body::Json => read_body(request.body, call, rules).map(|renames| (path, renames)),
    }
}

fn read_body(body: &[u8], call: &mut Call, rules: &ReadRules) -> Result<Vec<Rename>, Stop> {
    let mut cursor = Cursor::new(body, REQUEST_DEPTH)?;
    let mark = cursor.mark();
    match payload_json::read_body(&mut cursor, call, rules) {
        Ok(()) => {
            let renames = cursor.take_renames();
            cursor.finish()?;
            Ok(renames)
        }
        Err(Stop::Json(fault)) => Err(Stop::Json(fault)),
        Err(refused) => {
            // Whether the rest is JSON at all comes first.
            cursor.rewind(mark);
            cursor.skip()?;
            cursor.finish()?;
            Err(refused)
        }
    }
}

/// What kind of body a request has.
enum Body {
    None,
    Json,
}

impl Body {
    fn of(request: &Request<'_>, operation: Operation) -> Result<Body, Malformed> {
        let optional = match operation {
            Operation::SendMessage
            | Operation::SendStreamingMessage
            | Operation::CreateTaskPushNotificationConfig => false,
            Operation::CancelTask
            | Operation::SubscribeToTask
            | Operation::GetTask
            | Operation::ListTasks
            | Operation::GetTaskPushNotificationConfig
            | Operation::ListTaskPushNotificationConfigs
            | Operation::DeleteTaskPushNotificationConfig
            | Operation::GetExtendedAgentCard => true,
        };
        if *request.method != Method::POST {
            // Some servers read such a body and some leave it on the connection.
            return match request.body.is_empty() && !announces_body(request.headers) {
                true => Ok(Body::None),
                false => Err(Malformed::before_body(
                    Fault::InvalidRequest,
                    "unexpected_body",
                )),
            };
        }
        Ok(match optional && request.body.is_empty() {
            true => Body::None,
            false => Body::Json,
        })
    }

    fn media_types(&self, found: &Found<'_>) -> &'static [&'static str] {
        match (self, found.version) {
            (Body::None, _) => &[],
            (Body::Json, Version::V0_3) => &[super::JSON],
            (Body::Json, Version::V1_0) => &[super::JSON, A2A_JSON],
        }
    }
}

fn announces_body(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING)
        || headers
            .get_all(CONTENT_LENGTH)
            .iter()
            .any(|length| length.as_bytes() != b"0")
}

/// The body with its names respelled; everything else stays byte for byte.
fn respelled(body: &[u8], renames: &[Rename]) -> Option<Bytes> {
    let mut out = Vec::with_capacity(body.len());
    let mut from = 0;
    for Rename { place, name } in renames {
        out.extend_from_slice(body.get(from..place.start)?);
        out.extend_from_slice(name.as_bytes());
        from = place.end;
    }
    out.extend_from_slice(body.get(from..)?);
    Some(out.into())
}

/// The body of an error answer.
pub(super) fn render(entry: &Entry, version: Version) -> Bytes {
    Bytes::from_static(match version {
        Version::V0_3 => entry.rest_0_3.as_bytes(),
        Version::V1_0 => entry.rest_1_0.as_bytes(),
    })
}
