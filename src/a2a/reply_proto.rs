//! What one protobuf message of a reply names, and whether it is well-formed.

use super::operation::{Operation, Version};
use super::proto_fields::{EMPTY, v0_3, v1_0};
use super::reader::{ArtifactNote, Event, EventKind, TaskState};
use super::reply_push::{keep, task_of};
use super::strict_proto::{Cursor, Item, Message, ProtoFault, Unknown, Value};

/// Longest task or context id that is bound.
pub(super) const ID_ROOM: usize = 4096;
/// Longest media type or artifact id that is kept, and characters of an artifact's name.
const WORD_ROOM: usize = 256;
const NAME_LENGTH: usize = 64;
/// Artifacts noted per event, and media types per artifact.
const MAX_NOTES: usize = 32;

/// Why a message may not pass, as a code for the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flaw(&'static str);

impl From<ProtoFault> for Flaw {
    fn from(fault: ProtoFault) -> Flaw {
        Flaw(match fault {
            ProtoFault::DuplicateField | ProtoFault::DuplicateKey => "ambiguous",
            ProtoFault::TooDeep => "too_deep",
            ProtoFault::Truncated
            | ProtoFault::Varint
            | ProtoFault::FieldNumber
            | ProtoFault::WireType
            | ProtoFault::UnknownField
            | ProtoFault::BadUtf8 => "not_protobuf",
        })
    }
}

/// The messages that a reply to an operation consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One of several, by the field that is set.
    Choice,
    /// The task itself.
    Task,
    /// A webhook, or a list of them.
    Webhooks,
    /// Nothing that is read here.
    Other,
}

/// How the reply to `operation` looks.
pub(super) fn shape(operation: Operation) -> Shape {
    match operation {
        Operation::SendMessage | Operation::SendStreamingMessage | Operation::SubscribeToTask => {
            Shape::Choice
        }
        Operation::GetTask | Operation::CancelTask => Shape::Task,
        Operation::CreateTaskPushNotificationConfig
        | Operation::GetTaskPushNotificationConfig
        | Operation::ListTaskPushNotificationConfigs => Shape::Webhooks,
        Operation::ListTasks
        | Operation::DeleteTaskPushNotificationConfig
        | Operation::GetExtendedAgentCard => Shape::Other,
    }
}

/// The message's type. Whoever makes something of a card reads it by a table of its own.
fn table(operation: Operation, version: Version) -> Option<&'static Message> {
    Some(match (operation, version) {
        (Operation::SendMessage, Version::V1_0) => &v1_0::SEND_MESSAGE_RESPONSE,
        (Operation::SendMessage, Version::V0_3) => &v0_3::SEND_MESSAGE_RESPONSE,
        (Operation::SendStreamingMessage | Operation::SubscribeToTask, Version::V1_0) => {
            &v1_0::STREAM_RESPONSE
        }
        (Operation::SendStreamingMessage | Operation::SubscribeToTask, Version::V0_3) => {
            &v0_3::STREAM_RESPONSE
        }
        (Operation::GetTask | Operation::CancelTask, Version::V1_0) => &v1_0::TASK,
        (Operation::GetTask | Operation::CancelTask, Version::V0_3) => &v0_3::TASK,
        (Operation::ListTasks, Version::V1_0) => &v1_0::LIST_TASKS_RESPONSE,
        (
            Operation::CreateTaskPushNotificationConfig | Operation::GetTaskPushNotificationConfig,
            Version::V1_0,
        ) => &v1_0::TASK_PUSH_NOTIFICATION_CONFIG,
        (
            Operation::CreateTaskPushNotificationConfig | Operation::GetTaskPushNotificationConfig,
            Version::V0_3,
        ) => &v0_3::TASK_PUSH_NOTIFICATION_CONFIG,
        (Operation::ListTaskPushNotificationConfigs, Version::V1_0) => {
            &v1_0::LIST_TASK_PUSH_NOTIFICATION_CONFIGS_RESPONSE
        }
        (Operation::ListTaskPushNotificationConfigs, Version::V0_3) => {
            &v0_3::LIST_TASK_PUSH_NOTIFICATION_CONFIG_RESPONSE
        }
        (Operation::DeleteTaskPushNotificationConfig, _) => &EMPTY,
        // 0.3 has no such call, so that nothing is read of its reply.
        (Operation::ListTasks, Version::V0_3) | (Operation::GetExtendedAgentCard, _) => {
            return None;
        }
    })
}

/// Judges a whole message; errors are codes for the record.
pub(super) fn judge(
    message: &[u8],
    operation: Operation,
    version: Version,
) -> Result<Event, &'static str> {
    let Some(table) = table(operation, version) else {
        return Ok(Event::of(EventKind::Other));
    };
    let mut event = Event::of(EventKind::Other);
    let mut cursor = Cursor::new(message, table, Unknown::Passed);
    let read = match shape(operation) {
        Shape::Choice => choice(&mut cursor, &mut event),
        Shape::Task => {
            event.kind = EventKind::Task;
            payload(&mut cursor, &mut event)
        }
        Shape::Webhooks => webhooks(&mut cursor, &mut event),
        Shape::Other => rest(&mut cursor),
    };
    read.map_err(|Flaw(code)| code)?;
    fits(&event, operation)?;
    Ok(event)
}

/// Whether an event answers the operation, and can be owned.
pub(super) fn fits(event: &Event, operation: Operation) -> Result<(), &'static str> {
    match event.kind {
        EventKind::Task | EventKind::StatusUpdate | EventKind::ArtifactUpdate
            if event.task_id.is_none() =>
        {
            Err("no_id")
        }
        EventKind::Other if matches!(shape(operation), Shape::Choice | Shape::Task) => {
            Err("no_result")
        }
        _ => Ok(()),
    }
}

/// Passes over what is left of a message, checking it.
fn rest(cursor: &mut Cursor<'_>) -> Result<(), Flaw> {
    while cursor.next()?.is_some() {}
    Ok(())
}

fn choice(cursor: &mut Cursor<'_>, event: &mut Event) -> Result<(), Flaw> {
    while let Some(item) = cursor.next()? {
        event.kind = match item.name() {
            "task" => EventKind::Task,
            "message" | "msg" => EventKind::Message,
            "status_update" => EventKind::StatusUpdate,
            "artifact_update" => EventKind::ArtifactUpdate,
            _ => continue,
        };
        cursor.enter()?;
        payload(cursor, event)?;
    }
    Ok(())
}

/// Webhooks, alone or in a list; a table has the names of its own version.
fn webhooks(cursor: &mut Cursor<'_>, event: &mut Event) -> Result<(), Flaw> {
    while let Some(item) = cursor.next()? {
        let task = match item.name() {
            "task_id" => id(&item)?,
            "name" => match task_of(item.text()) {
                Some(task) if is_bindable(task) => Some(task.into()),
                Some(_) => return Err(Flaw("bad_id")),
                None => None,
            },
            "configs" => {
                cursor.enter()?;
                webhooks(cursor, event)?;
                None
            }
            _ => None,
        };
        keep(&mut event.task_id, task).map_err(Flaw)?;
    }
    Ok(())
}

/// Fields of a task, a message, or an update.
fn payload(cursor: &mut Cursor<'_>, event: &mut Event) -> Result<(), Flaw> {
    while let Some(item) = cursor.next()? {
        match item.name() {
            "id" | "task_id" => event.task_id = id(&item)?,
            "context_id" => event.context_id = id(&item)?,
            "status" => cursor.each(|_, field| {
                if let ("state", Value::Varint(number)) = (field.name(), field.value) {
                    event.state = Some(state(number));
                }
                Ok::<(), Flaw>(())
            })?,
            "artifact" | "artifacts" if event.artifacts.len() < MAX_NOTES => {
                let bytes = item.at.len() as u64;
                event.artifacts.push(artifact(cursor, bytes)?);
            }
            _ => {}
        }
    }
    Ok(())
}

/// An id to bind; empty is absent. What is too long or has a NUL cannot be bound.
fn id(item: &Item<'_>) -> Result<Option<Box<str>>, Flaw> {
    let text = item.text();
    if !is_bindable(text) {
        return Err(Flaw("bad_id"));
    }
    Ok((!text.is_empty()).then(|| text.into()))
}

fn is_bindable(id: &str) -> bool {
    id.len() <= ID_ROOM && !id.contains('\0')
}

/// The same numbers in both packages.
fn state(number: u64) -> TaskState {
    match number {
        1 => TaskState::Submitted,
        2 => TaskState::Working,
        3 => TaskState::Completed,
        4 => TaskState::Failed,
        5 => TaskState::Canceled,
        6 => TaskState::InputRequired,
        7 => TaskState::Rejected,
        8 => TaskState::AuthRequired,
        _ => TaskState::Unknown,
    }
}

fn artifact(cursor: &mut Cursor<'_>, bytes: u64) -> Result<ArtifactNote, Flaw> {
    let mut note = ArtifactNote {
        id: None,
        name: None,
        media_types: Vec::new(),
        bytes,
    };
    cursor.each(|cursor, item| {
        match item.name() {
            "artifact_id" => note.id = Some(cut(item.text(), WORD_ROOM)),
            "name" => note.name = Some(item.text().chars().take(NAME_LENGTH).collect()),
            "parts" => {
                let media_type = part(cursor)?;
                if let Some(media_type) = media_type
                    && !note.media_types.contains(&media_type)
                    && note.media_types.len() < MAX_NOTES
                {
                    note.media_types.push(media_type);
                }
            }
            _ => {}
        }
        Ok::<(), Flaw>(())
    })?;
    Ok(note)
}

/// The media type of a part: what it says, else what text and data are.
fn part(cursor: &mut Cursor<'_>) -> Result<Option<Box<str>>, Flaw> {
    let mut said = None;
    let mut default = None;
    cursor.each(|cursor, item| {
        match item.name() {
            "media_type" => said = Some(cut(item.text(), WORD_ROOM)),
            "text" => default = Some("text/plain"),
            "data" => default = Some("application/json"),
            "file" => cursor.each(|_, field| {
                if field.name() == "mime_type" {
                    said = Some(cut(field.text(), WORD_ROOM));
                }
                Ok::<(), Flaw>(())
            })?,
            _ => {}
        }
        Ok::<(), Flaw>(())
    })?;
    Ok(said
        .filter(|media_type| !media_type.is_empty())
        .or(default.map(Box::from)))
}

/// The start of a text, up to `room` bytes.
fn cut(text: &str, room: usize) -> Box<str> {
    let mut end = room.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].into()
}
