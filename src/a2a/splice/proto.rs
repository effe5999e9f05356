//! Splices into the message of a gRPC call.
//!
//! Fields are copied as they stood, but for those that enclose what is put in: their lengths are
//! written anew. A second `tenant` or a second entry of one key would have two meanings, so what
//! stood there goes.

use super::{STAMP, Stamp, Unspliced};
use crate::a2a::call::Call;
use crate::a2a::grpc::frame;
use crate::a2a::payload_proto::table_of;
use crate::a2a::proto_fields::{STRUCT, STRUCT_ENTRY};
use crate::a2a::proto_write::delimited;
use crate::a2a::strict_proto::{Cursor, Item, Kind, Message, Unknown, Value};
use bytes::Bytes;

/// Numbers within `google.protobuf.Struct` and its `Value`.
const FIELDS: u32 = 1;
const KEY: u32 = 1;
const VALUE: u32 = 2;
const STRING_VALUE: u32 = 3;
const STRUCT_VALUE: u32 = 5;

pub(super) fn splice(
    call: &Call,
    body: &Bytes,
    tenant: Option<&str>,
    stamp: Option<Stamp<'_>>,
) -> Result<Bytes, Unspliced> {
    let message = frame::single(body).map_err(|_| Unspliced)?;
    let table = table_of(call.operation, call.dialect.version).ok_or(Unspliced)?;
    // A call without compression: its flag is 0.
    let mut out = Vec::with_capacity(body.len() + 256);
    out.extend_from_slice(&[0; frame::PREFIX]);
    copy(message, table, &mut out, |out, item, bytes| {
        match (item.name(), item.value, item.field.kind) {
            ("tenant", ..) if tenant.is_some() => Ok(true),
            ("message" | "request", Value::Message(_), Kind::Message(table)) if stamp.is_some() => {
                let stamped = stamped(bytes, table, stamp)?;
                delimited(item.field.number, &stamped, out);
                Ok(true)
            }
            ("metadata", Value::Message(_), _) if stamp.is_some() => {
                delimited(item.field.number, &without_stamp(bytes)?, out);
                Ok(true)
            }
            _ => Ok(false),
        }
    })?;
    if let Some(tenant) = tenant {
        delimited(number_of(table, "tenant")?, tenant.as_bytes(), &mut out);
    }
    frame::finish(out).map_err(|_| Unspliced)
}

/// A message with our stamp in its metadata.
fn stamped(
    bytes: &[u8],
    table: &'static Message,
    stamp: Option<Stamp<'_>>,
) -> Result<Vec<u8>, Unspliced> {
    let number = number_of(table, "metadata")?;
    let mut out = Vec::with_capacity(bytes.len() + 256);
    let mut metadata = Vec::new();
    copy(bytes, table, &mut out, |_, item, bytes| {
        let found = item.name() == "metadata";
        if found {
            metadata = without_stamp(bytes)?;
        }
        Ok(found)
    })?;
    if let Some(stamp) = stamp {
        metadata.extend_from_slice(&entry(stamp));
    }
    delimited(number, &metadata, &mut out);
    Ok(out)
}

/// A `Struct` without a stamp.
fn without_stamp(bytes: &[u8]) -> Result<Vec<u8>, Unspliced> {
    let mut out = Vec::with_capacity(bytes.len());
    copy(bytes, &STRUCT, &mut out, |_, _, entry| {
        let mut cursor = Cursor::new(entry, &STRUCT_ENTRY, Unknown::Passed);
        let mut ours = false;
        while let Some(item) = cursor.next().map_err(|_| Unspliced)? {
            ours |= matches!(item.value, Value::Text(key) if key == STAMP);
        }
        Ok(ours)
    })?;
    Ok(out)
}

/// Copies a message field by field; `instead` gets each known one with the bytes of its value, and
/// says whether it took care of it.
fn copy(
    bytes: &[u8],
    table: &'static Message,
    out: &mut Vec<u8>,
    mut instead: impl FnMut(&mut Vec<u8>, &Item<'_>, &[u8]) -> Result<bool, Unspliced>,
) -> Result<(), Unspliced> {
    let mut cursor = Cursor::new(bytes, table, Unknown::Passed);
    let mut at = 0;
    while let Some(item) = cursor.next().map_err(|_| Unspliced)? {
        let value = bytes.get(item.value_at()).ok_or(Unspliced)?;
        // What we do not know between two known fields.
        out.extend_from_slice(bytes.get(at..item.at.start).ok_or(Unspliced)?);
        if !instead(out, &item, value)? {
            out.extend_from_slice(bytes.get(item.at.clone()).ok_or(Unspliced)?);
        }
        at = item.at.end;
    }
    out.extend_from_slice(bytes.get(at..).ok_or(Unspliced)?);
    Ok(())
}

fn number_of(table: &Message, name: &str) -> Result<u32, Unspliced> {
    let mut fields = table.fields.iter();
    let found = fields.find(|field| field.name == name);
    found.map(|field| field.number).ok_or(Unspliced)
}

/// The entry of a `Struct` that holds the stamp.
fn entry(stamp: Stamp<'_>) -> Vec<u8> {
    let mut members = Vec::new();
    let texts = [
        ("skill", stamp.skill),
        ("requestId", Some(stamp.request_id)),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            let text = field(STRING_VALUE, text.as_bytes());
            delimited(FIELDS, &pair(name, &text), &mut members);
        }
    }
    field(FIELDS, &pair(STAMP, &field(STRUCT_VALUE, &members)))
}

fn pair(key: &str, value: &[u8]) -> Vec<u8> {
    let mut pair = field(KEY, key.as_bytes());
    delimited(VALUE, value, &mut pair);
    pair
}

fn field(number: u32, value: &[u8]) -> Vec<u8> {
    let mut field = Vec::with_capacity(value.len() + 8);
    delimited(number, value, &mut field);
    field
}
