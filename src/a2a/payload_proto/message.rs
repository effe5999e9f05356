//! Requests of the send operations: message, parts, configuration.

use super::{Stop, id, optional, push_url, put, refused, skills, tenant};
use crate::a2a::call::{Call, ReadRules};
use crate::a2a::payload_json::MAX_REFERENCES;
use crate::a2a::strict_proto::Cursor;

/// What an inline push configuration names besides its URL (1.0 only).
#[derive(Default)]
struct PushNames {
    task_id: Option<Box<str>>,
    tenant: Option<Box<str>>,
}

/// Reads the request of a send.
pub(super) fn send(
    cursor: &mut Cursor<'_>,
    call: &mut Call,
    rules: &ReadRules,
) -> Result<(), Stop> {
    let mut has_message = false;
    let mut push = PushNames::default();
    cursor.each(|cursor, item| match item.name() {
        // The field's name in 1.0, and in 0.3.
        "message" | "request" => {
            has_message = true;
            message(cursor, call, rules)
        }
        "configuration" => configuration(cursor, call, &mut push),
        "metadata" => skills::mentions(cursor, call, rules, false),
        "tenant" => tenant(item, call),
        _ => Ok(()),
    })?;
    if !has_message {
        return refused("message_missing");
    }
    // Servers bind an inline configuration to the call's own task and tenant; one that names
    // others would be judged as something that it is not.
    if push.task_id.is_some() && push.task_id != call.task_id {
        return refused("push_task_differs");
    }
    if push.tenant.is_some() && push.tenant != call.tenant {
        return refused("push_tenant_differs");
    }
    Ok(())
}

fn configuration(
    cursor: &mut Cursor<'_>,
    call: &mut Call,
    push: &mut PushNames,
) -> Result<(), Stop> {
    cursor.each(|cursor, item| match item.name() {
        "task_push_notification_config" | "push_notification" => {
            call.inline_push = true;
            cursor.each(|_, item| match item.name() {
                "url" => push_url(item, call),
                "task_id" => {
                    push.task_id = optional(item);
                    Ok(())
                }
                "tenant" => {
                    push.tenant = optional(item);
                    Ok(())
                }
                _ => Ok(()),
            })
        }
        _ => Ok(()),
    })
}

fn message(cursor: &mut Cursor<'_>, call: &mut Call, rules: &ReadRules) -> Result<(), Stop> {
    cursor.each(|cursor, item| match item.name() {
        "message_id" => put(&mut call.message_id, id(item)?),
        "context_id" => put(&mut call.context_id, id(item)?),
        "task_id" => put(&mut call.task_id, id(item)?),
        "reference_task_ids" => {
            if call.reference_task_ids.len() == MAX_REFERENCES {
                return refused("too_many_references");
            }
            call.reference_task_ids.push(id(item)?);
            Ok(())
        }
        "extensions" => {
            call.extensions.push(item.text().into());
            Ok(())
        }
        "metadata" => skills::mentions(cursor, call, rules, true),
        "parts" | "content" => cursor.each(|cursor, item| match item.name() {
            "url" => file_url(item, call),
            "file" => cursor.each(|_, item| match item.name() {
                "file_with_uri" => file_url(item, call),
                _ => Ok(()),
            }),
            "data" => skills::data(cursor, item, call, rules),
            _ => Ok(()),
        }),
        _ => Ok(()),
    })
}

fn file_url(item: &crate::a2a::strict_proto::Item<'_>, call: &mut Call) -> Result<(), Stop> {
    call.file_urls.extend(optional(item));
    Ok(())
}
