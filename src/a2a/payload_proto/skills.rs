//! Where a message may name its skill: metadata and data parts. No configuration has a field for it.

use super::{Stop, refused};
use crate::a2a::call::{Call, ReadRules, SkillMention, SkillPlace};
use crate::a2a::payload_json::fold_alike;
use crate::a2a::proto_fields::{LIST_VALUE, STRUCT, VALUE, v0_3};
use crate::a2a::skill_rules::{Step, mentioned};
use crate::a2a::splice::STAMP;
use crate::a2a::strict_proto::{Cursor, Item, Kind, Unknown, Value};

/// Reads the metadata of a request that has no skill: the `Struct` that was just found. A key that
/// folds to a selector without being one is refused.
pub(super) fn unselected(cursor: &mut Cursor<'_>, rules: &ReadRules) -> Result<(), Stop> {
    metadata(cursor, rules, false, |_, _| Ok(()))
}

/// Reads the metadata of the message or of the request for what may name a skill.
pub(super) fn mentions(
    cursor: &mut Cursor<'_>,
    call: &mut Call,
    rules: &ReadRules,
    in_message: bool,
) -> Result<(), Stop> {
    let place = match in_message {
        true => SkillPlace::Message,
        false => SkillPlace::Request,
    };
    metadata(cursor, rules, in_message, |selector, node| {
        mention(call, selector, place, node);
        Ok(())
    })
}

/// Reads the data of a part, `item`, for the selectors within data, and for what else may name a
/// skill.
pub(super) fn data(
    cursor: &mut Cursor<'_>,
    item: &Item<'_>,
    call: &mut Call,
    rules: &ReadRules,
) -> Result<(), Stop> {
    cursor.skip()?;
    let (Some(skills), Value::Message(bytes)) = (&rules.skills, item.value) else {
        return Ok(());
    };
    let root = match item.field.kind {
        Kind::Message(table) if std::ptr::eq(table, &v0_3::DATA_PART) => {
            let inner = Cursor::new(bytes, table, Unknown::Refused).next()?;
            match inner.map(|inner| inner.value) {
                Some(Value::Message(bytes)) => Node::Struct(bytes),
                Some(_) | None => Node::Other,
            }
        }
        _ => node(bytes)?,
    };
    for (index, path) in skills.data() {
        pick(root, call, path.steps(), index)?;
    }
    let Node::Struct(bytes) = root else {
        return Ok(());
    };
    entries(
        &mut Cursor::new(bytes, &STRUCT, Unknown::Refused),
        |key, node| {
            if skills.is_unselected(key) {
                mention(call, None, SkillPlace::Data, node);
            }
            Ok(())
        },
    )
}

/// A `google.protobuf.Value`, as far as it matters here.
#[derive(Debug, Clone, Copy)]
enum Node<'a> {
    Struct(&'a [u8]),
    List(&'a [u8]),
    Text(&'a str),
    Other,
}

/// Reads a `Value` that was checked.
fn node(bytes: &[u8]) -> Result<Node<'_>, Stop> {
    let item = Cursor::new(bytes, &VALUE, Unknown::Refused).next()?;
    let Some(item) = item else {
        return Ok(Node::Other);
    };
    Ok(match (item.name(), item.value) {
        ("struct_value", Value::Message(bytes)) => Node::Struct(bytes),
        ("list_value", Value::Message(bytes)) => Node::List(bytes),
        (_, Value::Text(text)) => Node::Text(text),
        _ => Node::Other,
    })
}

/// Gives each entry of a `Struct` that was just found or begins here. Key and value of an entry
/// come in any order.
fn entries<'a>(
    cursor: &mut Cursor<'a>,
    mut entry: impl FnMut(&'a str, Node<'a>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    cursor.each(|cursor, _| {
        let mut key = "";
        let mut value: &[u8] = b"";
        cursor.each(|_, item| {
            match item.value {
                Value::Text(text) => key = text,
                Value::Message(bytes) => value = bytes,
                Value::Bytes(_) | Value::Varint(_) | Value::Double(_) => {}
            }
            Ok::<(), Stop>(())
        })?;
        entry(key, node(value)?)
    })
}

fn metadata<'a>(
    cursor: &mut Cursor<'a>,
    rules: &ReadRules,
    in_message: bool,
    mut selected: impl FnMut(Option<usize>, Node<'a>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    if rules.skills.is_none() && !rules.stamp {
        return Ok(cursor.skip()?);
    }
    entries(cursor, |key, node| {
        if rules.stamp && fold_alike(STAMP, key) {
            return match key == STAMP {
                // It is taken out when ours is put in.
                true => Ok(()),
                false => refused("inexact_stamp"),
            };
        }
        let Some(skills) = &rules.skills else {
            return Ok(());
        };
        match skills.key(key, in_message).or_else(refused)? {
            Some(selector) => selected(selector, node),
            None => Ok(()),
        }
    })
}

/// Follows a path into a value. The depth of the recursion is the path's length, which is bounded.
fn pick(root: Node<'_>, call: &mut Call, steps: &[Step], selector: usize) -> Result<(), Stop> {
    let Some((step, rest)) = steps.split_first() else {
        mention(call, Some(selector), SkillPlace::Data, root);
        return Ok(());
    };
    match (step, root) {
        (Step::Name(name), Node::Struct(bytes)) => entries(
            &mut Cursor::new(bytes, &STRUCT, Unknown::Refused),
            |key, node| {
                if *key == **name {
                    pick(node, call, rest, selector)
                } else if fold_alike(name, key) {
                    refused("inexact_selector")
                } else {
                    Ok(())
                }
            },
        ),
        (Step::Index(wanted), Node::List(bytes)) => {
            let mut index = 0;
            Cursor::new(bytes, &LIST_VALUE, Unknown::Refused).each(|_, item| {
                if let (Value::Message(bytes), true) = (item.value, index == *wanted) {
                    pick(node(bytes)?, call, rest, selector)?;
                }
                index += 1;
                Ok(())
            })
        }
        (Step::Name(_) | Step::Index(_), _) => Ok(()),
    }
}

fn mention(call: &mut Call, selector: Option<usize>, place: SkillPlace, node: Node<'_>) {
    let value = match node {
        Node::Text(text) => mentioned(text),
        Node::Struct(_) | Node::List(_) | Node::Other => None,
    };
    call.mention(SkillMention {
        selector,
        place,
        value,
    });
}
