//! Parameters of the send operations: message, parts, configuration.

use super::skills::{configured, data, mentions};
use super::{Stop, id, names, object, optional_text, push_config, put, refused, skip, tenant};
use crate::a2a::call::{Call, ReadRules};
use crate::a2a::operation::Version;
use crate::a2a::splice::Slot;
use crate::a2a::strict_json::{Cursor, Kind};

/// Each reference costs a look-up, so a message has at most this many.
pub(in crate::a2a) const MAX_REFERENCES: usize = 100;

/// Reads the parameters of a send.
pub(super) fn send(
    cursor: &mut Cursor<'_>,
    call: &mut Call,
    rules: &ReadRules,
) -> Result<(), Stop> {
    let dialect = call.dialect;
    let mut has_message = false;
    let mut push = None;
    object(cursor, &names::SEND, dialect, |cursor, name| match name {
        "message" => {
            has_message = true;
            if call.spots.is_some() {
                let ahead = cursor.object_ahead();
                if let (Some((at, empty)), Some(spots)) = (ahead, call.json_spots()) {
                    spots.message = Slot::Object { at, empty };
                }
            }
            message(cursor, call, rules)
        }
        "configuration" => configuration(cursor, call, rules, &mut push),
        "metadata" => mentions(cursor, call, rules, false),
        "tenant" => tenant(cursor, call),
        _ => skip(cursor),
    })?;
    if !has_message {
        return refused("message_missing");
    }
    // Servers bind an inline configuration to the call's own task and tenant; one that names
    // others would be judged as something that it is not.
    if let Some(push) = push {
        let task_id = push.task_id.flatten();
        if task_id.is_some() && task_id != call.task_id {
            return refused("push_task_differs");
        }
        let tenant = push.tenant.flatten();
        if tenant.is_some() && tenant != call.tenant {
            return refused("push_tenant_differs");
        }
    }
    Ok(())
}

fn configuration(
    cursor: &mut Cursor<'_>,
    call: &mut Call,
    rules: &ReadRules,
    push: &mut Option<super::PushNames>,
) -> Result<(), Stop> {
    if cursor.null()? {
        return Ok(());
    }
    let dialect = call.dialect;
    object(
        cursor,
        &names::CONFIGURATION,
        dialect,
        |cursor, name| match name {
            // The other dialects' names never get here.
            "taskPushNotificationConfig" | "pushNotificationConfig" | "pushNotification" => {
                if cursor.null()? {
                    return Ok(());
                }
                call.inline_push = true;
                put(push, push_config(cursor, call)?)
            }
            "skillId" => configured(cursor, call, rules),
            _ => skip(cursor),
        },
    )
}

fn message(cursor: &mut Cursor<'_>, call: &mut Call, rules: &ReadRules) -> Result<(), Stop> {
    let dialect = call.dialect;
    object(
        cursor,
        &names::MESSAGE,
        dialect,
        |cursor, name| match name {
            "messageId" => put(&mut call.message_id, id(cursor)?),
            "contextId" => put(&mut call.context_id, id(cursor)?),
            "taskId" => put(&mut call.task_id, id(cursor)?),
            "referenceTaskIds" => items(cursor, "reference_task_ids_type", |cursor| {
                if call.reference_task_ids.len() == MAX_REFERENCES {
                    return refused("too_many_references");
                }
                call.reference_task_ids.push(id(cursor)?);
                Ok(())
            }),
            "extensions" => optional_items(cursor, "extensions_type", |cursor| {
                if cursor.kind()? != Kind::String {
                    return refused("extensions_type");
                }
                call.extensions.push(cursor.string()?.into());
                Ok(())
            }),
            "metadata" => mentions(cursor, call, rules, true),
            "parts" | "content" => {
                optional_items(cursor, "parts_type", |cursor| part(cursor, call, rules))
            }
            _ => skip(cursor),
        },
    )
}

/// Reads a part for its file URL. One part of two kinds is two parts to two servers.
fn part(cursor: &mut Cursor<'_>, call: &mut Call, rules: &ReadRules) -> Result<(), Stop> {
    let dialect = call.dialect;
    let mut kinds = 0;
    object(cursor, &names::PART, dialect, |cursor, name| match name {
        // Null is a value of `data`, and means absent for the others.
        "data" => {
            kinds += 1;
            match names::is_proto_json(dialect) {
                true => object(cursor, &names::DATA, dialect, |cursor, name| match name {
                    "data" => data(cursor, call, rules),
                    _ => skip(cursor),
                }),
                false => data(cursor, call, rules),
            }
        }
        "text" | "raw" | "url" => {
            if cursor.null()? {
                return Ok(());
            }
            kinds += 1;
            if cursor.kind()? != Kind::String {
                return refused("part_member_type");
            }
            if name == "url" {
                call.file_urls.extend(optional_text(cursor, "url_type")?);
                return Ok(());
            }
            skip(cursor)
        }
        "file" => {
            kinds += 1;
            file(cursor, call)
        }
        _ => skip(cursor),
    })?;
    // In 0.3's JSON-RPC `kind` says which it is.
    let by_member = dialect.version == Version::V1_0 || names::is_proto_json(dialect);
    if by_member && kinds > 1 {
        return refused("part_kinds");
    }
    Ok(())
}

fn file(cursor: &mut Cursor<'_>, call: &mut Call) -> Result<(), Stop> {
    let dialect = call.dialect;
    let mut kinds = 0;
    object(cursor, &names::FILE, dialect, |cursor, name| match name {
        "uri" | "fileWithUri" => {
            kinds += 1;
            call.file_urls.extend(optional_text(cursor, "url_type")?);
            Ok(())
        }
        "fileWithBytes" => {
            kinds += 1;
            skip(cursor)
        }
        _ => skip(cursor),
    })?;
    if kinds > 1 {
        return refused("part_kinds");
    }
    Ok(())
}

fn optional_items<'a>(
    cursor: &mut Cursor<'a>,
    wrong_type: &'static str,
    item: impl FnMut(&mut Cursor<'a>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    if cursor.null()? {
        return Ok(());
    }
    items(cursor, wrong_type, item)
}

fn items<'a>(
    cursor: &mut Cursor<'a>,
    wrong_type: &'static str,
    mut item: impl FnMut(&mut Cursor<'a>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    if cursor.kind()? != Kind::Array {
        return refused(wrong_type);
    }
    cursor.enter_array()?;
    while cursor.next_item()? {
        item(cursor)?;
    }
    Ok(())
}
