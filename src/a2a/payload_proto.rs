//! Fields read from gRPC request messages, both packages.
//!
//! `a2a-protocol.md` a.3 and a.4, i.4 rule 7. The same is read as from JSON, by the same rules for
//! ids and names; what stands twice, in another layout or nested too deep has no meaning at all.
//! A field that is absent and one that was sent empty say the same, but an id is never empty.

mod message;
mod names;
mod skills;

use super::call::{Call, ReadRules};
use super::fault::Fault;
use super::listing::ListQuery;
use super::operation::{Operation, Version};
use super::payload_json;
use super::proto_fields::{v0_3, v1_0};
use super::strict_proto::{Cursor, Item, Message, ProtoFault, Unknown, Value};

/// Why reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The bytes themselves are at fault.
    Proto(ProtoFault),
    /// The message is clear, but says something that we do not take. The code is for records.
    Refused(Fault, &'static str),
}

impl From<ProtoFault> for Stop {
    fn from(fault: ProtoFault) -> Stop {
        Stop::Proto(fault)
    }
}

impl From<payload_json::Stop> for Stop {
    fn from(stop: payload_json::Stop) -> Stop {
        match stop {
            payload_json::Stop::Refused(fault, code) => Stop::Refused(fault, code),
            // No JSON is read here.
            payload_json::Stop::Json(fault) => Stop::Refused(Fault::Internal, fault.code()),
        }
    }
}

fn refused<T>(code: &'static str) -> Result<T, Stop> {
    Err(Stop::Refused(Fault::InvalidParams, code))
}

/// The layout of an operation's request message.
pub(super) fn table_of(operation: Operation, version: Version) -> Option<&'static Message> {
    Some(match (version, operation) {
        (Version::V1_0, Operation::SendMessage | Operation::SendStreamingMessage) => {
            &v1_0::SEND_MESSAGE_REQUEST
        }
        (Version::V1_0, Operation::GetTask) => &v1_0::GET_TASK_REQUEST,
        (Version::V1_0, Operation::ListTasks) => &v1_0::LIST_TASKS_REQUEST,
        (Version::V1_0, Operation::CancelTask) => &v1_0::CANCEL_TASK_REQUEST,
        (Version::V1_0, Operation::SubscribeToTask) => &v1_0::SUBSCRIBE_TO_TASK_REQUEST,
        (Version::V1_0, Operation::CreateTaskPushNotificationConfig) => {
            &v1_0::TASK_PUSH_NOTIFICATION_CONFIG
        }
        (Version::V1_0, Operation::GetTaskPushNotificationConfig) => {
            &v1_0::GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST
        }
        (Version::V1_0, Operation::ListTaskPushNotificationConfigs) => {
            &v1_0::LIST_TASK_PUSH_NOTIFICATION_CONFIGS_REQUEST
        }
        (Version::V1_0, Operation::DeleteTaskPushNotificationConfig) => {
            &v1_0::DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST
        }
        (Version::V1_0, Operation::GetExtendedAgentCard) => &v1_0::GET_EXTENDED_AGENT_CARD_REQUEST,
        (Version::V0_3, Operation::SendMessage | Operation::SendStreamingMessage) => {
            &v0_3::SEND_MESSAGE_REQUEST
        }
        (Version::V0_3, Operation::GetTask) => &v0_3::GET_TASK_REQUEST,
        (Version::V0_3, Operation::ListTasks) => return None,
        (Version::V0_3, Operation::CancelTask) => &v0_3::CANCEL_TASK_REQUEST,
        (Version::V0_3, Operation::SubscribeToTask) => &v0_3::TASK_SUBSCRIPTION_REQUEST,
        (Version::V0_3, Operation::CreateTaskPushNotificationConfig) => {
            &v0_3::CREATE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST
        }
        (Version::V0_3, Operation::GetTaskPushNotificationConfig) => {
            &v0_3::GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST
        }
        (Version::V0_3, Operation::ListTaskPushNotificationConfigs) => {
            &v0_3::LIST_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST
        }
        (Version::V0_3, Operation::DeleteTaskPushNotificationConfig) => {
            &v0_3::DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST
        }
        (Version::V0_3, Operation::GetExtendedAgentCard) => &v0_3::GET_AGENT_CARD_REQUEST,
    })
}

/// Reads a request message into `call`, by its operation and version.
pub(super) fn read(bytes: &[u8], call: &mut Call, rules: &ReadRules) -> Result<(), Stop> {
    let Some(table) = table_of(call.operation, call.dialect.version) else {
        return Err(Stop::Refused(Fault::MethodNotFound, "unknown_method"));
    };
    let cursor = &mut Cursor::new(bytes, table, Unknown::Refused);
    match call.operation {
        Operation::SendMessage | Operation::SendStreamingMessage => {
            return message::send(cursor, call, rules);
        }
        Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask => {
            cursor.each(|cursor, item| match item.name() {
                "id" => put(&mut call.task_id, id(item)?),
                "name" => put(&mut call.task_id, names::task(item.text())?),
                "tenant" => tenant(item, call),
                "metadata" => skills::unselected(cursor, rules),
                _ => Ok(()),
            })?;
        }
        Operation::ListTasks => list(cursor, call)?,
        Operation::CreateTaskPushNotificationConfig => create(cursor, call)?,
        Operation::GetTaskPushNotificationConfig | Operation::DeleteTaskPushNotificationConfig => {
            cursor.each(|_, item| match item.name() {
                "task_id" => put(&mut call.task_id, id(item)?),
                "name" => {
                    let (task, config) = names::push_config(item.text())?;
                    put(&mut call.push_config_id, config)?;
                    put(&mut call.task_id, task)
                }
                "id" => put(&mut call.push_config_id, id(item)?),
                "tenant" => tenant(item, call),
                _ => Ok(()),
            })?;
        }
        Operation::ListTaskPushNotificationConfigs => {
            cursor.each(|_, item| match item.name() {
                "task_id" => put(&mut call.task_id, id(item)?),
                "parent" => put(&mut call.task_id, names::task(item.text())?),
                "tenant" => tenant(item, call),
                _ => Ok(()),
            })?;
        }
        Operation::GetExtendedAgentCard => {
            cursor.each(|_, item| match item.name() {
                "tenant" => tenant(item, call),
                _ => Ok(()),
            })?;
        }
    }
    if call.operation.names_a_task() && call.task_id.is_none() {
        return refused("task_id_missing");
    }
    Ok(())
}

/// Reads the request of Create: in 1.0 the configuration itself, in 0.3 a parent and the
/// configuration, whose own name must not lead to another task. There its id may stand in three
/// places, and agents differ in which they read.
fn create(cursor: &mut Cursor<'_>, call: &mut Call) -> Result<(), Stop> {
    let mut named = None;
    let mut ids: [Option<Box<str>>; 3] = Default::default();
    cursor.each(|cursor, item| match item.name() {
        "task_id" => put(&mut call.task_id, id(item)?),
        "parent" => put(&mut call.task_id, names::task(item.text())?),
        "id" => put(&mut call.push_config_id, id(item)?),
        "config_id" if item.text().is_empty() => Ok(()),
        "config_id" => put(&mut ids[0], id(item)?),
        "url" => push_url(item, call),
        "config" => cursor.each(|cursor, item| match item.name() {
            "name" if item.text().is_empty() => Ok(()),
            "name" => {
                let (task, config) = names::of_config(item.text())?;
                ids[1] = config;
                put(&mut named, task)
            }
            "push_notification_config" => cursor.each(|_, item| match item.name() {
                "id" if item.text().is_empty() => Ok(()),
                "id" => put(&mut ids[2], id(item)?),
                "url" => push_url(item, call),
                _ => Ok(()),
            }),
            _ => Ok(()),
        }),
        "tenant" => tenant(item, call),
        _ => Ok(()),
    })?;
    if named.is_some() && named != call.task_id {
        return refused("push_task_differs");
    }
    for id in ids.into_iter().flatten() {
        if call.push_config_id.get_or_insert_with(|| id.clone()) != &id {
            return refused("push_config_differs");
        }
    }
    Ok(())
}

/// The greatest `int32`.
const MAX_INT: u32 = i32::MAX.cast_unsigned();

/// Reads which tasks are asked for, and which part of their list.
fn list(cursor: &mut Cursor<'_>, call: &mut Call) -> Result<(), Stop> {
    let mut query = ListQuery::default();
    let (mut status, mut after) = (0, &[][..]);
    cursor.each(|_, item| -> Result<(), Stop> {
        match (item.name(), item.value) {
            ("context_id", _) => call.context_id = Some(id(item)?),
            ("tenant", _) => tenant(item, call)?,
            ("page_token", _) => query.page_token = optional(item),
            ("page_size", Value::Varint(size)) => {
                // Decoders cut it to 32 bits; what is negative then says nothing.
                let size = (size & 0xffff_ffff) as u32;
                query.page_size = Some(size).filter(|size| (1..=MAX_INT).contains(size));
            }
            ("status", Value::Varint(value)) => status = value,
            ("status_timestamp_after", Value::Message(bytes)) => after = bytes,
            _ => {}
        }
        Ok(())
    })?;
    let context = call.context_id.as_deref().unwrap_or_default();
    query.filters = format!("{status},{after:?},{context}").into();
    call.list = Some(Box::new(query));
    Ok(())
}

fn push_url(item: &Item<'_>, call: &mut Call) -> Result<(), Stop> {
    call.push_urls.extend(optional(item));
    Ok(())
}

fn tenant(item: &Item<'_>, call: &mut Call) -> Result<(), Stop> {
    if !payload_json::is_clean(item.text()) {
        return refused("tenant_characters");
    }
    call.tenant = optional(item);
    Ok(())
}

/// An id: 1 to 256 characters without control characters.
fn id(item: &Item<'_>) -> Result<Box<str>, Stop> {
    Ok(payload_json::checked_id(item.text())?)
}

/// A text; `None` when it is empty, which protobuf does not tell from absent.
fn optional(item: &Item<'_>) -> Option<Box<str>> {
    let text = item.text();
    (!text.is_empty()).then(|| text.into())
}

fn put<T>(slot: &mut Option<T>, value: T) -> Result<(), Stop> {
    *slot = Some(value);
    Ok(())
}
