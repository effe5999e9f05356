//! Task lists in gRPC.

use super::{Answer, ListedTask, MAX_ID, MAX_TOKEN, Page};
use crate::a2a::grpc::frame::{PREFIX, finish, single};
use crate::a2a::proto_fields::v1_0::{LIST_TASKS_REQUEST, LIST_TASKS_RESPONSE};
use crate::a2a::proto_write::{delimited, tag, varint};
use crate::a2a::strict_proto::{Cursor, Item, ProtoFault, Unknown, Value};
use bytes::Bytes;
use std::borrow::Cow;

/// Numbers of what we write.
const TASKS: u32 = 1;
const NEXT_PAGE_TOKEN: u32 = 2;
const PAGE_SIZE: u32 = 3;
const TOTAL_SIZE: u32 = 4;
/// `page_token` of the request.
const PAGE_TOKEN: u32 = 5;

enum Unclear {
    Proto(ProtoFault),
    Code(&'static str),
}

impl From<ProtoFault> for Unclear {
    fn from(fault: ProtoFault) -> Unclear {
        Unclear::Proto(fault)
    }
}

pub(super) fn read(reply: &[u8]) -> Result<Page<'_>, &'static str> {
    let message = single(reply).map_err(|fault| fault.code())?;
    page(message).map_err(|unclear| match unclear {
        Unclear::Proto(fault) => fault.code(),
        Unclear::Code(code) => code,
    })
}

fn page(message: &[u8]) -> Result<Page<'_>, Unclear> {
    let mut page = Page {
        tasks: Vec::new(),
        next: None,
        size: None,
    };
    let mut cursor = Cursor::new(message, &LIST_TASKS_RESPONSE, Unknown::Passed);
    while let Some(item) = cursor.next()? {
        match (item.name(), item.value) {
            ("tasks", Value::Message(raw)) => page.tasks.push(task(&mut cursor, raw)?),
            ("next_page_token", _) => page.next = text(&item, MAX_TOKEN, "bad_result")?,
            ("page_size", Value::Varint(size)) => page.size = u32::try_from(size).ok(),
            _ => {}
        }
    }
    Ok(page)
}

fn task<'a>(cursor: &mut Cursor<'a>, raw: &'a [u8]) -> Result<ListedTask<'a>, Unclear> {
    let (mut id, mut context_id) = (None, None);
    cursor.each(|_, item| -> Result<(), Unclear> {
        match item.name() {
            "id" => id = text(item, MAX_ID, "bad_id")?,
            "context_id" => context_id = text(item, MAX_ID, "bad_id")?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(ListedTask {
        raw,
        id: id.ok_or(Unclear::Code("bad_id"))?,
        context_id,
    })
}

/// A string; `None` for the empty one, which is what is not there.
fn text<'a>(
    item: &Item<'a>,
    room: usize,
    code: &'static str,
) -> Result<Option<Cow<'a, str>>, Unclear> {
    let text = item.text();
    if text.len() > room || text.contains('\0') {
        return Err(Unclear::Code(code));
    }
    Ok((!text.is_empty()).then_some(Cow::Borrowed(text)))
}

pub(super) fn write(answer: &Answer<'_>) -> Bytes {
    let size: usize = answer.tasks.iter().map(|task| task.len() + 11).sum();
    let next = answer.next.unwrap_or_default();
    let mut out = Vec::with_capacity(PREFIX + size + next.len() + 40);
    out.extend_from_slice(&[0; PREFIX]);
    for task in answer.tasks {
        delimited(TASKS, task, &mut out);
    }
    if !next.is_empty() {
        delimited(NEXT_PAGE_TOKEN, next.as_bytes(), &mut out);
    }
    for (number, value) in [
        (PAGE_SIZE, u64::from(answer.size)),
        (TOTAL_SIZE, answer.total),
    ] {
        if value > 0 {
            tag(number, 0, &mut out);
            varint(value, &mut out);
        }
    }
    // More than a prefix can tell would be no page of ours; nobody takes an empty body for one.
    finish(out).unwrap_or_default()
}

pub(super) fn with_page_token(body: &[u8], token: &str) -> Option<Bytes> {
    let message = single(body).ok()?;
    let mut out = Vec::with_capacity(body.len() + token.len() + 12);
    out.extend_from_slice(&[0; PREFIX]);
    let mut from = 0;
    let mut cursor = Cursor::new(message, &LIST_TASKS_REQUEST, Unknown::Refused);
    while let Some(item) = cursor.next().ok()? {
        if item.name() == "page_token" {
            out.extend_from_slice(message.get(from..item.at.start)?);
            from = item.at.end;
        }
    }
    out.extend_from_slice(message.get(from..)?);
    if !token.is_empty() {
        delimited(PAGE_TOKEN, token.as_bytes(), &mut out);
    }
    finish(out).ok()
}
