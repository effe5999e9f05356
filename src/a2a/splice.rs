//! What we put into a request: the stamp and the tenant (`design.md` 6 and 8).
//!
//! The two named rewrites of bodies. Each replaces or inserts a few bytes at places that the
//! reader of the request found; everything else stays as the caller wrote it, understood or not.

mod json;
mod proto;

pub use json::{JsonSpots, Slot};

use super::call::Call;
use super::head::percent_decoded;
use super::operation::{Binding, OperationGroup, Version};
use bytes::Bytes;

/// The key of the stamp in a message's metadata, and the name of the extension: an agent whose card
/// declares it promises to run the skill that the stamp names, and no other.
pub const STAMP: &str = "urn:portcullis:stamp:1";

/// The same promise for the skill that the signed assertion names.
pub const ASSERTION: &str = "urn:portcullis:assertion:1";

/// Longest tenant, in characters.
const MAX_TENANT_CHARS: usize = 256;

/// What the agent is told about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// The skill that was judged; `None` when it could not be established.
    pub skill: Option<&'a str>,
    /// Our request id.
    pub request_id: &'a str,
}

/// What is put into one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Insertions<'a> {
    /// The tenant for which the call is made; only into calls of 1.0, as 0.3 has none.
    pub tenant: Option<&'a str>,
    /// The stamp; only into messages.
    pub stamp: Option<Stamp<'a>>,
}

/// A request that could not be changed as it should: it must not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unspliced;

/// Where a request that was read can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spots {
    /// The body is JSON.
    Json(JsonSpots),
}

/// A body that a call was read from, with what is to be put into it; `None` when that stands there
/// already. The path of the HTTP+JSON binding has a tenant of its own: [`with_tenant`].
///
/// # Errors
/// [`Unspliced`].
pub fn splice(
    call: &Call,
    body: &Bytes,
    insertions: Insertions<'_>,
) -> Result<Option<Bytes>, Unspliced> {
    let stamp = insertions
        .stamp
        .filter(|_| call.operation.group() == OperationGroup::Messages);
    let in_body = call.dialect.version == Version::V1_0 && call.dialect.binding != Binding::Rest;
    let tenant = insertions
        .tenant
        .filter(|_| in_body && call.tenant.is_none());
    if stamp.is_none() && tenant.is_none() {
        return Ok(None);
    }
    let spliced = match (call.dialect.binding, call.spots.as_deref()) {
        (Binding::Grpc, _) => proto::splice(call, body, tenant, stamp),
        (Binding::JsonRpc | Binding::Rest, Some(Spots::Json(spots))) => {
            json::splice(body, spots, tenant, stamp)
        }
        (Binding::JsonRpc | Binding::Rest, None) => Err(Unspliced),
    };
    spliced.map(Some)
}

/// The path of a call with the tenant in it, which is where the HTTP+JSON binding has it; other
/// bindings' paths stay.
pub fn with_tenant(call: &Call, path: Box<str>, tenant: Option<&str>) -> Box<str> {
    let has_tenants =
        call.dialect.binding == Binding::Rest && call.dialect.version == Version::V1_0;
    let Some(tenant) = tenant.filter(|_| has_tenants) else {
        return path;
    };
    let segment = segment(tenant);
    // No path without a tenant begins with what can be one.
    let begins = path.strip_prefix('/').unwrap_or(&path);
    let first = begins.split(['/', '?']).next().unwrap_or_default();
    if percent_decoded(first) == tenant {
        return path;
    }
    format!("/{segment}{path}").into()
}

/// A text as a segment of a path: all but unreserved characters (RFC 3986) escaped.
fn segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                segment.push(char::from(byte));
            }
            _ => {
                let digit = |nibble: u8| b"0123456789ABCDEF"[usize::from(nibble & 15)];
                segment.push('%');
                segment.push(char::from(digit(byte >> 4)));
                segment.push(char::from(digit(byte)));
            }
        }
    }
    segment
}

/// Whether every binding can say this tenant without doubt, the segment of a path included.
pub fn is_tenant(text: &str) -> bool {
    !text.is_empty()
        && text.chars().take(MAX_TENANT_CHARS + 1).count() <= MAX_TENANT_CHARS
        && !text.contains(|c: char| c.is_control() || matches!(c, '/' | '\\' | ':' | '%'))
        // What a path may begin with.
        && !matches!(text, "." | ".." | "v1" | "tasks" | "extendedAgentCard")
}
