//! Task lists: what one page of an agent's says, and the page that we make of it for one caller.
//!
//! A2A 1.0 sections 3.1.4 and 9.4.4. Tasks are taken over as their bytes stood; everything around
//! them is written anew, so nothing that an agent says of other callers' tasks gets through.

mod proto;

use super::operation::Binding;
use super::payload_json::fold_alike;
use super::strict_json::{Cursor, JsonFault, Kind};
use bytes::Bytes;
use std::borrow::Cow;

/// Nesting that a reply may have, as for any other reply.
const MAX_DEPTH: usize = 512;
/// Longest id of a task or context.
const MAX_ID: usize = 4096;
/// Longest page token of an agent.
const MAX_TOKEN: usize = 2048;
/// The most tasks that one page may have (A2A 1.0 section 3.1.4).
const MAX_PAGE: u32 = 100;
/// The tasks of a page where neither caller nor agent says how many.
const DEFAULT_PAGE: u32 = 50;

/// What a call for a list asks for, beside its context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// `pageToken`: one of ours.
    pub page_token: Option<Box<str>>,
    /// `pageSize`.
    pub page_size: Option<u32>,
    /// The other filters as they stood, in a fixed order: a token is good for these alone.
    pub filters: Box<str>,
}

/// One page of an agent's.
#[derive(Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// Its tasks.
    pub tasks: Vec<ListedTask<'a>>,
    /// The agent's token for the next page; `None` at the end.
    pub next: Option<Cow<'a, str>>,
    /// How many tasks it says that its pages have.
    pub size: Option<u32>,
}

/// A task on such a page.
#[derive(Debug, PartialEq, Eq)]
pub struct ListedTask<'a> {
    /// Its bytes, as they stood.
    pub raw: &'a [u8],
    /// Its id.
    pub id: Cow<'a, str>,
    /// Its context, if it names one.
    pub context_id: Option<Cow<'a, str>>,
}

/// The page that a caller gets.
#[derive(Debug)]
pub struct Answer<'a> {
    /// Tasks, as their bytes stood.
    pub tasks: &'a [Bytes],
    /// Our token for the next page; `None` at the end.
    pub next: Option<&'a str>,
    /// How many tasks a page has at most.
    pub size: u32,
    /// How many tasks there are.
    pub total: u64,
}

/// How many tasks a page of ours has at most.
pub fn page_size(asked: Option<u32>, agents: Option<u32>) -> u32 {
    let good = |size: &u32| (1..=MAX_PAGE).contains(size);
    asked
        .map(|size| size.clamp(1, MAX_PAGE))
        .or(agents.filter(good))
        .unwrap_or(DEFAULT_PAGE)
}

/// Reads a whole reply that is no error.
///
/// # Errors
/// A code for the record: it cannot be told for certain which tasks it names.
pub fn read(binding: Binding, reply: &[u8]) -> Result<Page<'_>, &'static str> {
    match binding {
        Binding::JsonRpc | Binding::Rest => json(binding, reply).map_err(|stop| match stop {
            Unclear::Json(JsonFault::DuplicateKey) => "ambiguous",
            Unclear::Json(_) => "not_json",
            Unclear::Code(code) => code,
        }),
        Binding::Grpc => proto::read(reply),
    }
}

/// Writes the reply of a call with this JSON-RPC id.
pub fn write(binding: Binding, rpc_id: Option<&str>, answer: &Answer<'_>) -> Bytes {
    let enveloped = match binding {
        Binding::JsonRpc => true,
        Binding::Rest => false,
        Binding::Grpc => return proto::write(answer),
    };
    let size: usize = answer.tasks.iter().map(|task| task.len() + 1).sum();
    let mut out = Vec::with_capacity(size + 256);
    if enveloped {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(rpc_id.unwrap_or("null").as_bytes());
        out.extend_from_slice(br#","result":"#);
    }
    out.extend_from_slice(br#"{"tasks":["#);
    for (i, task) in answer.tasks.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(task);
    }
    // Our tokens need no escapes.
    let rest = format!(
        r#"],"nextPageToken":"{}","pageSize":{},"totalSize":{}}}"#,
        answer.next.unwrap_or_default(),
        answer.size,
        answer.total
    );
    out.extend_from_slice(rest.as_bytes());
    if enveloped {
        out.push(b'}');
    }
    out.into()
}

/// Where a call for a list goes and its body, with the agent's own token in place of ours. `None`
/// if it is no such call, which was found out before.
pub fn with_page_token(
    binding: Binding,
    path: &str,
    body: &Bytes,
    token: &str,
) -> Option<(Box<str>, Bytes)> {
    Some(match binding {
        Binding::JsonRpc => (path.into(), body_with_page_token(body, token)?),
        Binding::Rest => (query_with_page_token(path, token), body.clone()),
        Binding::Grpc => (path.into(), proto::with_page_token(body, token)?),
    })
}

fn body_with_page_token(body: &[u8], token: &str) -> Option<Bytes> {
    let quoted = serde_json::to_string(token).ok()?;
    let mut cursor = Cursor::new(body, MAX_DEPTH).ok()?;
    cursor.enter_object().ok()?;
    while let Some(key) = cursor.next_key().ok()? {
        if key != "params" {
            cursor.skip().ok()?;
            continue;
        }
        if cursor.kind().ok()? != Kind::Object {
            let null = span(body, cursor.skip().ok()?)?;
            let params = format!(r#"{{"pageToken":{quoted}}}"#);
            return spliced(body, null, &params);
        }
        let whole = cursor.mark();
        let params = span(body, cursor.skip().ok()?)?;
        cursor.rewind(whole);
        cursor.enter_object().ok()?;
        let mut empty = true;
        while let Some(key) = cursor.next_key().ok()? {
            let value = span(body, cursor.skip().ok()?)?;
            if key == "pageToken" {
                return spliced(body, value, &quoted);
            }
            empty = false;
        }
        let comma = if empty { "" } else { "," };
        let first = format!(r#""pageToken":{quoted}{comma}"#);
        let behind_brace = params.start + 1;
        return spliced(body, behind_brace..behind_brace, &first);
    }
    // A body without `params` begins with its brace, but for white space.
    let brace = body.iter().position(|b| *b == b'{')? + 1;
    let params = format!(r#""params":{{"pageToken":{quoted}}},"#);
    spliced(body, brace..brace, &params)
}

fn query_with_page_token(path: &str, token: &str) -> Box<str> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut out = String::with_capacity(path.len() + query.len() + token.len() + 16);
    out.push_str(path);
    let mut separator = '?';
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let name = pair.split('=').next().unwrap_or_default();
        if name != "pageToken" {
            out.push(separator);
            separator = '&';
            out.push_str(pair);
        }
    }
    if token.is_empty() {
        // Servers differ about the empty token, so it is left out.
        return out.into();
    }
    out.push(separator);
    out.push_str("pageToken=");
    for byte in token.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out.into()
}

fn spliced(body: &[u8], at: std::ops::Range<usize>, text: &str) -> Option<Bytes> {
    let mut out = Vec::with_capacity(body.len() + text.len());
    out.extend_from_slice(body.get(..at.start)?);
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(body.get(at.end..)?);
    Some(out.into())
}

/// Where a part that was lent from `body` stands in it.
fn span(body: &[u8], part: &str) -> Option<std::ops::Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    Some(start..start + part.len())
}

enum Unclear {
    Json(JsonFault),
    Code(&'static str),
}

impl From<JsonFault> for Unclear {
    fn from(fault: JsonFault) -> Unclear {
        Unclear::Json(fault)
    }
}

fn json(binding: Binding, reply: &[u8]) -> Result<Page<'_>, Unclear> {
    let mut cursor = Cursor::new(reply, MAX_DEPTH)?;
    let mut page = None;
    if binding == Binding::Rest {
        page = Some(result(&mut cursor)?);
    } else {
        object(&mut cursor, &["result"], |cursor, name| {
            match name {
                Some("result") => page = Some(result(cursor)?),
                Some(_) | None => {
                    cursor.skip()?;
                }
            }
            Ok(())
        })?;
    }
    cursor.finish()?;
    page.ok_or(Unclear::Code("no_result"))
}

fn result<'a>(cursor: &mut Cursor<'a>) -> Result<Page<'a>, Unclear> {
    let mut page = Page {
        tasks: Vec::new(),
        next: None,
        size: None,
    };
    let names = ["tasks", "nextPageToken", "pageSize", "totalSize"];
    object(cursor, &names, |cursor, name| {
        match name {
            // An encoder may leave an empty list out, or write it as nothing.
            Some("tasks") if cursor.kind()? == Kind::Null => cursor.skip().map(drop)?,
            Some("tasks") => {
                if cursor.kind()? != Kind::Array {
                    return Err(Unclear::Code("bad_result"));
                }
                cursor.enter_array()?;
                while cursor.next_item()? {
                    page.tasks.push(task(cursor)?);
                }
            }
            Some("nextPageToken") => page.next = text(cursor, MAX_TOKEN, "bad_result")?,
            Some("pageSize") if cursor.kind()? == Kind::Number => {
                page.size = cursor.number()?.parse().ok();
            }
            Some(_) | None => cursor.skip().map(drop)?,
        }
        Ok(())
    })?;
    Ok(page)
}

fn task<'a>(cursor: &mut Cursor<'a>) -> Result<ListedTask<'a>, Unclear> {
    let (mut id, mut context_id) = (None, None);
    let mark = cursor.mark();
    let raw = cursor.skip()?.as_bytes();
    cursor.rewind(mark);
    object(cursor, &["id", "contextId"], |cursor, name| {
        match name {
            Some("id") => id = text(cursor, MAX_ID, "bad_id")?,
            Some("contextId") => context_id = text(cursor, MAX_ID, "bad_id")?,
            Some(_) | None => cursor.skip().map(drop)?,
        }
        Ok(())
    })?;
    Ok(ListedTask {
        raw,
        id: id.ok_or(Unclear::Code("bad_id"))?,
        context_id,
    })
}

/// A string; `None` for null and the empty string.
fn text<'a>(
    cursor: &mut Cursor<'a>,
    room: usize,
    code: &'static str,
) -> Result<Option<Cow<'a, str>>, Unclear> {
    match cursor.kind()? {
        Kind::Null => {
            cursor.skip()?;
            Ok(None)
        }
        Kind::String => {
            let text = cursor.string()?;
            if text.len() > room || text.contains('\0') {
                return Err(Unclear::Code(code));
            }
            Ok(Some(text).filter(|text| !text.is_empty()))
        }
        Kind::Object | Kind::Array | Kind::Number | Kind::Bool => Err(Unclear::Code(code)),
    }
}

/// Reads an object. A member that some parser could take for a known one is not clear.
fn object<'a>(
    cursor: &mut Cursor<'a>,
    names: &[&'static str],
    mut member: impl FnMut(&mut Cursor<'a>, Option<&'static str>) -> Result<(), Unclear>,
) -> Result<(), Unclear> {
    if cursor.kind()? != Kind::Object {
        return Err(Unclear::Code("bad_result"));
    }
    cursor.enter_object()?;
    while let Some(key) = cursor.next_key()? {
        let known = names.iter().find(|name| ***name == *key).copied();
        if known.is_none() && names.iter().any(|name| fold_alike(name, &key)) {
            return Err(Unclear::Code("ambiguous"));
        }
        member(cursor, known)?;
    }
    Ok(())
}
