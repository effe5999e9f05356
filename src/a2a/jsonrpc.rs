//! The JSON-RPC envelope, in and out.
//!
//! `a2a-protocol.md` i.4; field cases FC-21 to FC-32. What is refused, in this order, whatever the
//! order of the members: text that is not clear JSON (-32700), an envelope that is not clear
//! (-32600), an unknown method (-32601), a version that does not agree (-32009, or -32600 for 0.3),
//! unclear parameters (-32602). A name that occurs twice anywhere is -32600.

use super::call::{Call, Malformed, ReadRules};
use super::fault::{Entry, Fault};
use super::head::{self, Head};
use super::operation::{Binding, Dialect, Version};
use super::payload_json::{self, ENVELOPE, Stop, Unknown};
use super::request::{Reading, Request};
use super::splice::Slot;
use super::strict_json::{Cursor, JsonFault, Kind, REQUEST_DEPTH};
use super::wire::{self, Spelling};
use bytes::Bytes;

/// Longest id, in bytes of its text as it stood.
const MAX_RPC_ID: usize = 256;

/// Reads one request.
///
/// # Errors
/// [`Malformed`], with the id whenever one could be read without doubt.
pub(super) fn read(request: &Request<'_>, rules: &ReadRules) -> Result<Reading, Malformed> {
    if *request.method != http::Method::POST {
        return Err(Malformed::before_body(
            Fault::MethodNotAllowed,
            "not_a_post",
        ));
    }
    let head = head::read(request.headers, request.query)?;
    let call = parse(&head, request.body, rules)?;
    Ok(Reading::new(call, &head, Box::default()))
}

fn parse(head: &Head, body: &[u8], rules: &ReadRules) -> Result<Call, Malformed> {
    match Envelope::read(body, rules) {
        Ok(envelope) => envelope.judge(head, rules),
        Err(Stop::Json(JsonFault::DuplicateKey)) => Err(doubled(head, body)),
        Err(Stop::Json(fault)) => Err(Malformed {
            version: head.version,
            ..Malformed::before_body(Fault::ParseError, fault.code())
        }),
        Err(Stop::Refused(fault, code)) => Err(Malformed {
            version: head.version,
            ..Malformed::before_body(fault, code)
        }),
    }
}

/// The body of an error answer.
pub(super) fn render(entry: &Entry, version: Version, rpc_id: Option<&str>) -> Bytes {
    let tail = match version {
        Version::V0_3 => entry.tail_0_3,
        Version::V1_0 => entry.tail_1_0,
    };
    let id = rpc_id.unwrap_or("null");
    Bytes::from([r#"{"jsonrpc":"2.0","id":"#, id, tail].concat())
}

/// What stood in an envelope. Faults wait here until the whole text is known to be JSON.
struct Envelope<'a> {
    /// The position of its first member.
    opened: usize,
    /// Whether `jsonrpc` was `"2.0"`; the error is a code.
    jsonrpc: Result<(), &'static str>,
    id: Result<&'a str, &'static str>,
    method: Method,
    params: Params<'a>,
    /// Whether all names were clear.
    keys: Result<(), &'static str>,
}

enum Method {
    Bad(&'static str),
    Unknown,
    Known(Spelling),
}

// One per request, and moved twice: a box would cost every call an allocation.
#[allow(clippy::large_enum_variant)]
enum Params<'a> {
    Absent,
    /// They came before `method`: their text, checked but not read.
    Unread {
        text: &'a str,
        /// Where the text begins in the body.
        at: usize,
    },
    Read(Result<Call, Stop>),
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8], rules: &ReadRules) -> Result<Envelope<'a>, Stop> {
        let mut cursor = Cursor::new(body, REQUEST_DEPTH)?;
        let kind = cursor.kind()?;
        if kind != Kind::Object {
            cursor.skip()?;
            cursor.finish()?;
            return Err(Stop::Refused(Fault::InvalidRequest, not_an_object(kind)));
        }
        let mut envelope = Envelope {
            opened: cursor.ahead() + 1,
            jsonrpc: Err("jsonrpc_missing"),
            id: Err("rpc_id_missing"),
            method: Method::Bad("method_missing"),
            params: Params::Absent,
            keys: Ok(()),
        };
        let mut unknown = Unknown::default();
        cursor.enter_object()?;
        while let Some(key) = cursor.next_key()? {
            match ENVELOPE.known(&key) {
                Some("jsonrpc") => envelope.jsonrpc = read_jsonrpc(&mut cursor)?,
                Some("id") => envelope.id = read_id(&mut cursor)?,
                Some("method") => envelope.method = read_method(&mut cursor)?,
                Some(_) => envelope.params = read_params(&mut cursor, &envelope.method, rules)?,
                None => {
                    if envelope.keys.is_ok() {
                        envelope.keys = unknown.add(&key, &ENVELOPE);
                    }
                    cursor.skip()?;
                }
            }
        }
        cursor.finish()?;
        envelope.keys = envelope.keys.and_then(|()| unknown.finish());
        Ok(envelope)
    }

    fn judge(self, head: &Head, rules: &ReadRules) -> Result<Call, Malformed> {
        let refused = |fault, code| Malformed {
            fault,
            rpc_id: self.id.ok().map(Box::from),
            version: head.version,
            operation: None,
            code,
        };
        self.keys
            .and(self.jsonrpc)
            .and(self.id.map(drop))
            .map_err(|code| refused(Fault::InvalidRequest, code))?;
        let spelling = match self.method {
            Method::Bad(code) => return Err(refused(Fault::InvalidRequest, code)),
            Method::Unknown => return Err(refused(Fault::MethodNotFound, "unknown_method")),
            Method::Known(spelling) => spelling,
        };
        let refused = |fault, code| Malformed {
            version: Some(spelling.version),
            operation: Some(spelling.operation),
            ..refused(fault, code)
        };
        head.agrees(spelling.version, rules.versions)
            .map_err(|code| refused(Fault::VersionNotSupported, code))?;
        let call = match self.params {
            Params::Read(call) => call,
            Params::Unread { text, at } => {
                // One level is the envelope's.
                let cursor = Cursor::resume(text, REQUEST_DEPTH - 1);
                read_call(&mut cursor.based_at(at), spelling, rules)
            }
            Params::Absent => {
                let call = bare(spelling, rules);
                payload_json::read_absent(&call).map(|()| call)
            }
        };
        let call = call.map(|mut call| {
            if let Some(spots) = call.json_spots() {
                // It has members: the method is one.
                let (at, empty) = (self.opened, false);
                spots.envelope = Slot::Object { at, empty };
            }
            call
        });
        match call {
            Ok(call) => Ok(Call {
                rpc_id: self.id.ok().map(Box::from),
                ..call
            }),
            Err(Stop::Refused(fault, code)) => Err(refused(fault, code)),
            Err(Stop::Json(fault)) => Err(refused(Fault::ParseError, fault.code())),
        }
    }
}

fn not_an_object(kind: Kind) -> &'static str {
    match kind {
        Kind::Array => "batch",
        Kind::Object | Kind::String | Kind::Number | Kind::Bool | Kind::Null => "not_an_object",
    }
}

fn read_jsonrpc(cursor: &mut Cursor<'_>) -> Result<Result<(), &'static str>, JsonFault> {
    if cursor.kind()? != Kind::String {
        cursor.skip()?;
        return Ok(Err("jsonrpc_type"));
    }
    match &*cursor.string()? {
        "2.0" => Ok(Ok(())),
        _ => Ok(Err("jsonrpc_version")),
    }
}

/// The text of an id that can be echoed; the inner error is a code.
fn read_id<'a>(cursor: &mut Cursor<'a>) -> Result<Result<&'a str, &'static str>, JsonFault> {
    let kind = cursor.kind()?;
    let text = cursor.skip()?;
    Ok(match kind {
        Kind::String | Kind::Number if text.len() > MAX_RPC_ID => Err("rpc_id_too_long"),
        Kind::String => Ok(text),
        Kind::Number if text.contains(['.', 'e', 'E']) => Err("rpc_id_fraction"),
        Kind::Number => Ok(text),
        Kind::Null => Err("rpc_id_null"),
        Kind::Object | Kind::Array | Kind::Bool => Err("rpc_id_type"),
    })
}

fn read_method(cursor: &mut Cursor<'_>) -> Result<Method, JsonFault> {
    if cursor.kind()? != Kind::String {
        cursor.skip()?;
        return Ok(Method::Bad("method_type"));
    }
    Ok(match wire::json_rpc(&cursor.string()?) {
        Some(spelling) => Method::Known(spelling),
        None => Method::Unknown,
    })
}

/// Reads the parameters where they stand if the method is known by now, else keeps their text.
fn read_params<'a>(
    cursor: &mut Cursor<'a>,
    method: &Method,
    rules: &ReadRules,
) -> Result<Params<'a>, JsonFault> {
    let Method::Known(spelling) = method else {
        let at = cursor.ahead();
        let text = cursor.skip()?;
        return Ok(Params::Unread { text, at });
    };
    let mark = cursor.mark();
    match read_call(cursor, *spelling, rules) {
        Err(Stop::Json(fault)) => Err(fault),
        Err(refused) => {
            // Whether the rest is JSON at all comes first.
            cursor.rewind(mark);
            cursor.skip()?;
            Ok(Params::Read(Err(refused)))
        }
        Ok(call) => Ok(Params::Read(Ok(call))),
    }
}

fn read_call(cursor: &mut Cursor<'_>, spelling: Spelling, rules: &ReadRules) -> Result<Call, Stop> {
    let mut call = bare(spelling, rules);
    payload_json::read(cursor, &mut call, rules).map(|()| call)
}

fn bare(spelling: Spelling, rules: &ReadRules) -> Call {
    let dialect = Dialect {
        binding: Binding::JsonRpc,
        version: spelling.version,
    };
    Call {
        spots: rules.json_spots(),
        ..Call::bare(dialect, spelling.operation)
    }
}

/// The refusal of a request in which a name occurs twice: reads it once more for its id, since
/// even then the caller is owed one (field case FC-25), and since text that is no JSON is worse.
fn doubled(head: &Head, body: &[u8]) -> Malformed {
    let (fault, code, rpc_id) = match salvage(body) {
        Ok((Kind::Object, id)) => (Fault::InvalidRequest, JsonFault::DuplicateKey.code(), id),
        Ok((kind, id)) => (Fault::InvalidRequest, not_an_object(kind), id),
        Err(fault) => (Fault::ParseError, fault.code(), None),
    };
    Malformed {
        rpc_id: rpc_id.map(Box::from),
        version: head.version,
        ..Malformed::before_body(fault, code)
    }
}

fn salvage(body: &[u8]) -> Result<(Kind, Option<&str>), JsonFault> {
    let mut cursor = Cursor::new(body, REQUEST_DEPTH)?.allow_duplicates();
    let kind = cursor.kind()?;
    let mut ids = 0;
    let mut id = None;
    if kind == Kind::Object {
        cursor.enter_object()?;
        while let Some(key) = cursor.next_key()? {
            if key == "id" {
                ids += 1;
                id = read_id(&mut cursor)?.ok();
            } else {
                cursor.skip()?;
            }
        }
    } else {
        cursor.skip()?;
    }
    cursor.finish()?;
    Ok((kind, id.filter(|_| ids == 1)))
}

/// The version in which a caller is answered whose version is not known: 1.0's error form, which
/// 0.3 permits too.
pub(super) const ANSWER_VERSION: Version = Version::V1_0;
