//! From protobuf to its JSON form, by the field tables.

use crate::a2a::proto_fields::{LIST_VALUE, STRUCT, VALUE};
use crate::a2a::strict_proto::{Cursor, Item, Kind, Message, Occurs, ProtoFault, Unknown, Value};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value as Json};

/// A message as an object. What no table has is not in it.
pub(super) fn object(
    bytes: &[u8],
    table: &'static Message,
) -> Result<Map<String, Json>, ProtoFault> {
    members(&mut Cursor::new(bytes, table, Unknown::Refused), table)
}

/// The members of the message that begins here, or was just found. Recursion is bounded by the
/// cursor's own depth.
fn members(
    cursor: &mut Cursor<'_>,
    table: &'static Message,
) -> Result<Map<String, Json>, ProtoFault> {
    let mut found = Map::new();
    cursor.each(|cursor, item| {
        let value = member(cursor, table, item)?;
        let name = camel(item.name());
        match item.field.occurs {
            Occurs::Once | Occurs::OneOf => {
                found.insert(name, value);
            }
            Occurs::Many => {
                let list = found.entry(name).or_insert_with(|| Json::Array(Vec::new()));
                if let Json::Array(items) = list {
                    items.push(value);
                }
            }
        }
        Ok::<(), ProtoFault>(())
    })?;
    Ok(found)
}

fn member(
    cursor: &mut Cursor<'_>,
    table: &'static Message,
    item: &Item<'_>,
) -> Result<Json, ProtoFault> {
    Ok(match (item.value, item.field.kind) {
        (Value::Text(text), _) => Json::from(text),
        (Value::Bytes(bytes), _) => Json::from(STANDARD.encode(bytes)),
        (Value::Varint(value), _) => varint(table.name, item.name(), value),
        (Value::Double(value), _) => number(value),
        (Value::Message(_), Kind::Message(inner)) if std::ptr::eq(inner, &STRUCT) => {
            structure(cursor)?
        }
        (Value::Message(_), Kind::Message(inner)) if std::ptr::eq(inner, &VALUE) => value(cursor)?,
        (Value::Message(_), Kind::Message(inner)) => Json::Object(members(cursor, inner)?),
        (Value::Message(_), _) => Json::Null,
    })
}

/// A number that JSON has; none for the others.
fn number(value: f64) -> Json {
    Number::from_f64(value).map_or(Json::Null, Json::Number)
}

fn varint(message: &str, field: &str, value: u64) -> Json {
    match (message, field) {
        ("Message", "role") => match value {
            0 => "ROLE_UNSPECIFIED".into(),
            1 => "ROLE_USER".into(),
            2 => "ROLE_AGENT".into(),
            other => other.into(),
        },
        (_, "return_immediately" | "blocking") => Json::Bool(value != 0),
        // Decoders cut an `int32` to its bits.
        (_, _) => Json::from(((value & 0xffff_ffff) as u32).cast_signed()),
    }
}

fn structure(cursor: &mut Cursor<'_>) -> Result<Json, ProtoFault> {
    let mut found = Map::new();
    cursor.each(|cursor, _| {
        // Key and value of an entry come in any order.
        let (mut key, mut entry) = (String::new(), Json::Null);
        cursor.each(|cursor, item| {
            match item.value {
                Value::Text(text) => text.clone_into(&mut key),
                Value::Message(_) => entry = value(cursor)?,
                Value::Bytes(_) | Value::Varint(_) | Value::Double(_) => {}
            }
            Ok::<(), ProtoFault>(())
        })?;
        found.insert(key, entry);
        Ok::<(), ProtoFault>(())
    })?;
    Ok(Json::Object(found))
}

/// A `google.protobuf.Value` that was just found.
fn value(cursor: &mut Cursor<'_>) -> Result<Json, ProtoFault> {
    let mut found = Json::Null;
    cursor.each(|cursor, item| {
        found = match (item.value, item.field.kind) {
            (Value::Text(text), _) => Json::from(text),
            (Value::Double(value), _) => number(value),
            (Value::Varint(value), _) if item.name() == "bool_value" => Json::Bool(value != 0),
            (Value::Message(_), Kind::Message(inner)) if std::ptr::eq(inner, &LIST_VALUE) => {
                let mut items = Vec::new();
                cursor.each(|cursor, _| {
                    items.push(value(cursor)?);
                    Ok::<(), ProtoFault>(())
                })?;
                Json::Array(items)
            }
            (Value::Message(_), _) => structure(cursor)?,
            (Value::Varint(_) | Value::Bytes(_), _) => Json::Null,
        };
        Ok::<(), ProtoFault>(())
    })?;
    Ok(found)
}

/// The JSON name of a field.
fn camel(name: &str) -> String {
    let mut pieces = name.split('_');
    let mut camel = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let mut letters = piece.chars();
        camel.extend(letters.next().map(|c| c.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}
