//! A card between protobuf and the JSON of its version, by the table of its fields.
//!
//! What the table does not have is left out, both ways. In 1.0 the JSON is ProtoJSON; in 0.3 what
//! concerns security is spelled in another way.

use super::fault::CardFault;
use super::read::{Member, Node, find};
use super::security::quoted;
use crate::a2a::operation::Version;
use crate::a2a::proto_fields::card::{v0_3, v1_0};
use crate::a2a::proto_fields::{STRUCT, VALUE};
use crate::a2a::proto_write::{delimited, tag};
use crate::a2a::strict_proto::{
    Cursor, Field, Item, Kind, Message, Occurs, ProtoFault, Unknown, Value,
};

impl From<ProtoFault> for CardFault {
    fn from(_: ProtoFault) -> CardFault {
        CardFault::NotProto
    }
}

fn table_of(version: Version) -> &'static Message {
    match version {
        Version::V0_3 => &v0_3::CARD,
        Version::V1_0 => &v1_0::CARD,
    }
}

/// The card in JSON.
pub(super) fn to_json(version: Version, card: &[u8]) -> Result<String, CardFault> {
    let table = table_of(version);
    let mut cursor = Cursor::new(card, table, Unknown::Passed);
    message(&mut cursor, table, "{".to_owned())
}

/// Reads the message that the cursor is in; it nests as deep as the cursor allows. `out` is what
/// its object begins with.
fn message(
    cursor: &mut Cursor<'_>,
    table: &'static Message,
    mut out: String,
) -> Result<String, CardFault> {
    let mut found: Vec<Vec<String>> = vec![Vec::new(); table.fields.len()];
    while let Some(item) = cursor.next()? {
        let text = value(cursor, &item)?;
        let position = table
            .fields
            .iter()
            .position(|f| f.number == item.field.number);
        if let Some(values) = position.and_then(|position| found.get_mut(position)) {
            values.push(text);
        }
    }
    for (field, values) in table.fields.iter().zip(found) {
        if values.is_empty() {
            continue;
        }
        if out.len() > 1 {
            out.push(',');
        }
        let joined = values.join(",");
        out.push_str(&quoted(&json_name(field.name)));
        out.push(':');
        match (field.occurs, is_map(field)) {
            (Occurs::Many, true) => out.push_str(&format!("{{{joined}}}")),
            (Occurs::Many, false) => out.push_str(&format!("[{joined}]")),
            (Occurs::Once | Occurs::OneOf, _) => out.push_str(&joined),
        }
    }
    out.push('}');
    Ok(out)
}

fn value(cursor: &mut Cursor<'_>, item: &Item<'_>) -> Result<String, CardFault> {
    match (item.value, item.field.kind) {
        (Value::Text(text), _) => Ok(quoted(text)),
        // Every one of them is a flag here.
        (Value::Varint(flag), _) => Ok((flag != 0).to_string()),
        (Value::Message(_), Kind::Message(inner)) => {
            cursor.enter()?;
            if std::ptr::eq(inner, &STRUCT) {
                structure(cursor)
            } else if inner.map_entry {
                entry(cursor)
            } else if std::ptr::eq(inner, &v0_3::SECURITY) {
                Ok(format!("{{{}}}", items(cursor)?))
            } else if std::ptr::eq(inner, &v0_3::LIST) {
                Ok(format!("[{}]", items(cursor)?))
            } else if std::ptr::eq(inner, &v0_3::SCHEME) {
                scheme(cursor)
            } else {
                message(cursor, inner, "{".to_owned())
            }
        }
        (Value::Bytes(_) | Value::Double(_) | Value::Message(_), _) => Err(CardFault::NotProto),
    }
}

/// What stands in the only field of a message, one after the other.
fn items(cursor: &mut Cursor<'_>) -> Result<String, CardFault> {
    let mut found = Vec::new();
    while let Some(item) = cursor.next()? {
        found.push(value(cursor, &item)?);
    }
    Ok(found.join(","))
}

/// A scheme of 0.3.
fn scheme(cursor: &mut Cursor<'_>) -> Result<String, CardFault> {
    let mut read = "{}".to_owned();
    while let Some(item) = cursor.next()? {
        if let Kind::Message(table) = item.field.kind {
            cursor.enter()?;
            let mut kinds = v0_3::SCHEME_TYPES.iter();
            let kind = kinds.find(|(number, _)| *number == item.field.number);
            let (_, kind) = kind.ok_or(CardFault::NotProto)?;
            read = message(cursor, table, format!(r#"{{"type":"{kind}""#))?;
        }
    }
    Ok(read)
}

/// `"key":value` of a map's entry.
fn entry(cursor: &mut Cursor<'_>) -> Result<String, CardFault> {
    let (mut key, mut read) = (quoted(""), "{}".to_owned());
    while let Some(item) = cursor.next()? {
        let text = value(cursor, &item)?;
        match item.field.number {
            1 => key = text,
            _ => read = text,
        }
    }
    Ok(format!("{key}:{read}"))
}

/// A `google.protobuf.Struct`.
fn structure(cursor: &mut Cursor<'_>) -> Result<String, CardFault> {
    let mut entries = Vec::new();
    while cursor.next()?.is_some() {
        cursor.enter()?;
        let (mut key, mut read) = (quoted(""), "null".to_owned());
        while let Some(item) = cursor.next()? {
            match item.value {
                Value::Text(text) => key = quoted(text),
                Value::Message(_) => {
                    cursor.enter()?;
                    read = any(cursor)?;
                }
                Value::Bytes(_) | Value::Varint(_) | Value::Double(_) => {
                    return Err(CardFault::NotProto);
                }
            }
        }
        entries.push(format!("{key}:{read}"));
    }
    Ok(format!("{{{}}}", entries.join(",")))
}

/// A `google.protobuf.Value`.
fn any(cursor: &mut Cursor<'_>) -> Result<String, CardFault> {
    let mut read = "null".to_owned();
    while let Some(item) = cursor.next()? {
        read = match item.value {
            Value::Text(text) => quoted(text),
            Value::Double(number) if number.is_finite() => {
                serde_json::to_string(&number).map_err(|_| CardFault::NotProto)?
            }
            Value::Varint(flag) if item.field.number == 4 => (flag != 0).to_string(),
            Value::Varint(_) => "null".to_owned(),
            Value::Message(_) if item.field.number == 5 => {
                cursor.enter()?;
                structure(cursor)?
            }
            Value::Message(_) => {
                cursor.enter()?;
                let mut items = Vec::new();
                while cursor.next()?.is_some() {
                    cursor.enter()?;
                    items.push(any(cursor)?);
                }
                format!("[{}]", items.join(","))
            }
            Value::Bytes(_) | Value::Double(_) => return Err(CardFault::NotProto),
        };
    }
    Ok(read)
}

/// The card in protobuf.
pub(super) fn from_json(version: Version, card: &[Member<'_>]) -> Result<Vec<u8>, CardFault> {
    let mut out = Vec::new();
    write_message(card, table_of(version), &mut out)?;
    Ok(out)
}

fn write_message(
    members: &[Member<'_>],
    table: &'static Message,
    out: &mut Vec<u8>,
) -> Result<(), CardFault> {
    for field in table.fields {
        let Some(node) = find(members, &json_name(field.name)) else {
            continue;
        };
        match (field.occurs, node) {
            (Occurs::Many, Node::Object(entries)) if is_map(field) => {
                for entry in entries {
                    write_entry(entry, field, out)?;
                }
            }
            (Occurs::Many, Node::Array(items)) => {
                for item in items {
                    write_field(item, field, out)?;
                }
            }
            (Occurs::Many, _) => return Err(CardFault::NotProto),
            (Occurs::Once | Occurs::OneOf, node) => write_field(node, field, out)?,
        }
    }
    Ok(())
}

fn write_entry(entry: &Member<'_>, field: &Field, out: &mut Vec<u8>) -> Result<(), CardFault> {
    let Kind::Message(table) = field.kind else {
        return Err(CardFault::NotProto);
    };
    let mut inner = Vec::new();
    delimited(1, entry.name.as_bytes(), &mut inner);
    for value in table.fields.iter().filter(|field| field.number == 2) {
        write_field(&entry.value, value, &mut inner)?;
    }
    delimited(field.number, &inner, out);
    Ok(())
}

fn write_field(node: &Node<'_>, field: &Field, out: &mut Vec<u8>) -> Result<(), CardFault> {
    match (field.kind, node) {
        (Kind::Text, Node::Text(_, text)) => delimited(field.number, text.as_bytes(), out),
        (Kind::Varint, Node::Scalar(flag @ ("true" | "false"))) => {
            tag(field.number, 0, out);
            out.push(u8::from(*flag == "true"));
        }
        (Kind::Message(table), Node::Object(members)) => {
            let mut inner = Vec::new();
            if std::ptr::eq(table, &STRUCT) {
                write_struct(members, &mut inner)?;
            } else if std::ptr::eq(table, &v0_3::SECURITY) {
                for (entry, schemes) in members.iter().zip(table.fields.iter().cycle()) {
                    write_entry(entry, schemes, &mut inner)?;
                }
            } else if std::ptr::eq(table, &v0_3::SCHEME) {
                let kind = find(members, "type").and_then(Node::text);
                let mut kinds = v0_3::SCHEME_TYPES.iter();
                let kind = kinds.find(|(_, name)| kind == Some(name));
                let (number, _) = kind.ok_or(CardFault::NotProto)?;
                for scheme in table.fields.iter().filter(|f| f.number == *number) {
                    write_field(node, scheme, &mut inner)?;
                }
            } else if std::ptr::eq(table, &v0_3::LIST) {
                return Err(CardFault::NotProto);
            } else {
                write_message(members, table, &mut inner)?;
            }
            delimited(field.number, &inner, out);
        }
        (Kind::Message(table), Node::Array(items)) if std::ptr::eq(table, &v0_3::LIST) => {
            let mut inner = Vec::new();
            for (item, list) in items.iter().zip(table.fields.iter().cycle()) {
                write_field(item, list, &mut inner)?;
            }
            delimited(field.number, &inner, out);
        }
        (Kind::Message(table), node) if std::ptr::eq(table, &VALUE) => {
            let mut inner = Vec::new();
            write_any(node, &mut inner)?;
            delimited(field.number, &inner, out);
        }
        (
            Kind::Text | Kind::Varint | Kind::Bytes | Kind::Double | Kind::Message(_),
            Node::Text(..) | Node::Scalar(_) | Node::Array(_) | Node::Object(_),
        ) => return Err(CardFault::NotProto),
    }
    Ok(())
}

fn write_struct(members: &[Member<'_>], out: &mut Vec<u8>) -> Result<(), CardFault> {
    for member in members {
        let (mut entry, mut inner) = (Vec::new(), Vec::new());
        write_any(&member.value, &mut inner)?;
        delimited(1, member.name.as_bytes(), &mut entry);
        delimited(2, &inner, &mut entry);
        delimited(1, &entry, out);
    }
    Ok(())
}

fn write_any(node: &Node<'_>, out: &mut Vec<u8>) -> Result<(), CardFault> {
    let mut inner = Vec::new();
    match node {
        Node::Scalar("null") => out.extend_from_slice(&[1 << 3, 0]),
        Node::Scalar(flag @ ("true" | "false")) => {
            out.extend_from_slice(&[4 << 3, u8::from(*flag == "true")]);
        }
        Node::Scalar(number) => {
            let number: f64 = number.parse().map_err(|_| CardFault::NotProto)?;
            tag(2, 1, out);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Node::Text(_, text) => delimited(3, text.as_bytes(), out),
        Node::Object(members) => {
            write_struct(members, &mut inner)?;
            delimited(5, &inner, out);
        }
        Node::Array(items) => {
            for item in items {
                let mut one = Vec::new();
                write_any(item, &mut one)?;
                delimited(1, &one, &mut inner);
            }
            delimited(6, &inner, out);
        }
    }
    Ok(())
}

fn is_map(field: &Field) -> bool {
    match field.kind {
        Kind::Message(inner) => inner.map_entry,
        Kind::Text | Kind::Bytes | Kind::Varint | Kind::Double => false,
    }
}

/// `lowerCamelCase` of a field's name.
fn json_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut upper = false;
    for character in name.chars() {
        match (character, upper) {
            ('_', _) => upper = true,
            (other, true) => {
                out.push(other.to_ascii_uppercase());
                upper = false;
            }
            (other, false) => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::read::read;
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    fn members(text: &str) -> Vec<Member<'_>> {
        match read(text.as_bytes()).unwrap() {
            Node::Object(members) => members,
            Node::Array(_) | Node::Text(..) | Node::Scalar(_) => unreachable!(),
        }
    }

    /// What the Python SDKs wrote (`tests/cases/cards/proto*.json`) reads as they read it, and what
    /// we write reads back the same.
    #[test]
    fn cards_go_both_ways() {
        let files = [
            (Version::V1_0, "tests/cases/cards/proto.json"),
            (Version::V0_3, "tests/cases/cards/proto-0.3.json"),
        ];
        for (version, path) in files {
            let file = std::fs::read(path).unwrap();
            let cases: serde_json::Value = serde_json::from_slice(&file).unwrap();
            assert!(!cases.as_array().unwrap().is_empty());
            for case in cases.as_array().unwrap() {
                let wire = STANDARD.decode(case["proto"].as_str().unwrap()).unwrap();
                let text = to_json(version, &wire).unwrap();
                let json: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!(json, case["json"]);
                let again = from_json(version, &members(&text)).unwrap();
                assert_eq!(to_json(version, &again).unwrap(), text);
            }
        }
    }

    /// Of the agent's schemes only the kind that we write is read.
    #[test]
    fn other_schemes_of_0_3_are_left_out() {
        // `k` is an API key.
        let wire = b"\x0a\x01a\x42\x0b\x0a\x01k\x12\x06\x0a\x04\x1a\x02id";
        assert_eq!(
            to_json(Version::V0_3, wire).unwrap(),
            r#"{"name":"a","securitySchemes":{"k":{}}}"#
        );
        for text in [
            r#"{"securitySchemes":{"k":{}}}"#,
            r#"{"securitySchemes":{"k":{"type":"apiKey"}}}"#,
            r#"{"security":[{"k":{"list":[]}}]}"#,
            r#"{"security":[{"k":[1]}]}"#,
        ] {
            assert!(from_json(Version::V0_3, &members(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_one_clear_card_is_refused() {
        for version in [Version::V1_0, Version::V0_3] {
            for wire in [
                &b"\x0a\x05ab"[..],
                b"\x0a\x01a\x0a\x01b",
                b"\x08\x01",
                b"\x0a\x02\xff\xfe",
                // A scheme twice under one name.
                b"\x42\x03\x0a\x01a\x42\x03\x0a\x01a",
            ] {
                assert!(to_json(version, wire).is_err(), "{wire:?}");
            }
            // Unknown fields are left out.
            assert_eq!(
                to_json(version, b"\x0a\x01a\xfa\x01\x01x").unwrap(),
                r#"{"name":"a"}"#
            );
            for text in [
                r#"{"name":5}"#,
                r#"{"skills":{}}"#,
                r#"{"capabilities":{"streaming":"x"}}"#,
            ] {
                assert!(from_json(version, &members(text)).is_err(), "{text}");
            }
        }
    }
}
