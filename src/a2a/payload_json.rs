//! Fields read from JSON request payloads, both versions.
//!
//! `a2a-protocol.md` a.3, a.4 and i.4. Only what is authorised or recorded is read; everything else
//! is skipped, but checked like the rest. In protocol objects a member name must be one of the
//! known spellings exactly, or fold to none of them; names that the other version uses in the same
//! place are refused, since a server that speaks both might obey them.

mod list;
mod message;
mod names;
mod rest;
mod skills;

use super::call::{Call, ReadRules};
use super::fault::Fault;
use super::operation::{Dialect, Operation, Version};
use super::splice::Slot;
use super::strict_json::{Cursor, JsonFault, Kind};
pub(super) use message::MAX_REFERENCES;
pub(super) use names::{ENVELOPE, Names, Unknown, fold_alike};
pub(super) use rest::read_body;

/// Ids are at most this many characters.
const MAX_ID_CHARS: usize = 256;

/// Why reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The text itself is at fault.
    Json(JsonFault),
    /// The text is JSON, but says something unclear. The code is for records.
    Refused(Fault, &'static str),
}

impl From<JsonFault> for Stop {
    fn from(fault: JsonFault) -> Stop {
        Stop::Json(fault)
    }
}

/// The parameters are refused.
pub(super) fn refused<T>(code: &'static str) -> Result<T, Stop> {
    Err(Stop::Refused(Fault::InvalidParams, code))
}

/// Reads the parameters that come next in `cursor` into `call`, by its operation and version.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    call: &mut Call,
    rules: &ReadRules,
) -> Result<(), Stop> {
    // Absent parameters are judged by `read_absent`; null says the same.
    let (slot, null) = slot_ahead(cursor, call)?;
    if let Some(spots) = call.json_spots() {
        spots.params = slot;
    }
    if null {
        return read_absent(call);
    }
    let dialect = call.dialect;
    let version = dialect.version;
    match call.operation {
        Operation::SendMessage | Operation::SendStreamingMessage => {
            message::send(cursor, call, rules)?;
        }
        Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask => {
            object(cursor, &names::TASK, dialect, |cursor, name| match name {
                "id" => put(&mut call.task_id, id(cursor)?),
                "tenant" => tenant(cursor, call),
                "metadata" => unselected(cursor, rules),
                _ => skip(cursor),
            })?;
        }
        Operation::ListTasks => list::read(cursor, call)?,
        Operation::CreateTaskPushNotificationConfig => {
            object(
                cursor,
                &names::CREATE_PUSH,
                dialect,
                |cursor, name| match name {
                    "taskId" => put(&mut call.task_id, id(cursor)?),
                    "id" => put(&mut call.push_config_id, id(cursor)?),
                    "url" => push_url(cursor, call),
                    "authentication" => authentication(cursor, dialect),
                    "pushNotificationConfig" => push_config(cursor, call).map(drop),
                    "tenant" => tenant(cursor, call),
                    _ => skip(cursor),
                },
            )?;
        }
        Operation::GetTaskPushNotificationConfig | Operation::DeleteTaskPushNotificationConfig => {
            object(cursor, &names::PUSH, dialect, |cursor, name| {
                match (version, name) {
                    (Version::V1_0, "taskId") | (Version::V0_3, "id") => {
                        put(&mut call.task_id, id(cursor)?)
                    }
                    (_, "id" | "pushNotificationConfigId") => {
                        put(&mut call.push_config_id, id(cursor)?)
                    }
                    (_, "tenant") => tenant(cursor, call),
                    (_, "metadata") => skills::metadata(cursor, rules),
                    _ => skip(cursor),
                }
            })?;
        }
        Operation::ListTaskPushNotificationConfigs => {
            object(
                cursor,
                &names::LIST_PUSH,
                dialect,
                |cursor, name| match name {
                    "taskId" | "id" => put(&mut call.task_id, id(cursor)?),
                    "tenant" => tenant(cursor, call),
                    "metadata" => unselected(cursor, rules),
                    _ => skip(cursor),
                },
            )?;
        }
        Operation::GetExtendedAgentCard => {
            object(cursor, &names::CARD, dialect, |cursor, name| match name {
                "tenant" => tenant(cursor, call),
                _ => skip(cursor),
            })?;
        }
    }
    if call.operation.names_a_task() && call.task_id.is_none() {
        return refused("task_id_missing");
    }
    Ok(())
}

/// Judges a request without parameters.
pub(super) fn read_absent(call: &Call) -> Result<(), Stop> {
    match call.operation {
        Operation::GetExtendedAgentCard | Operation::ListTasks => Ok(()),
        Operation::SendMessage
        | Operation::SendStreamingMessage
        | Operation::GetTask
        | Operation::CancelTask
        | Operation::SubscribeToTask
        | Operation::CreateTaskPushNotificationConfig
        | Operation::GetTaskPushNotificationConfig
        | Operation::ListTaskPushNotificationConfigs
        | Operation::DeleteTaskPushNotificationConfig => refused("params_missing"),
    }
}

/// Reads a protocol object: known members go to `member`, unknown ones are skipped.
fn object<'a>(
    cursor: &mut Cursor<'a>,
    names: &Names,
    dialect: Dialect,
    mut member: impl FnMut(&mut Cursor<'a>, &'static str) -> Result<(), Stop>,
) -> Result<(), Stop> {
    if cursor.kind()? != Kind::Object {
        return refused(names.wrong_type);
    }
    cursor.enter_object()?;
    let mut unknown = Unknown::default();
    let mut seen = 0;
    while let Some(key) = cursor.next_key()? {
        let original = names.original(&key, dialect);
        match original.or_else(|| names.known(&key)) {
            Some(name) if names.is_foreign(name, dialect) => return refused("other_version_field"),
            Some(name) => {
                // One of two spellings counts, and which one depends on the parser.
                let bit = names.bit(name);
                if seen & bit != 0 {
                    return refused("field_twice");
                }
                seen |= bit;
                if original.is_some() {
                    cursor.rename_key(name);
                }
                member(cursor, name)?;
            }
            None => {
                unknown.add(&key, names).or_else(refused)?;
                cursor.skip()?;
            }
        }
    }
    unknown.finish().or_else(refused)
}

/// Reads the metadata of a request that has no skill.
fn unselected(cursor: &mut Cursor<'_>, rules: &ReadRules) -> Result<(), Stop> {
    skills::metadata(cursor, rules)
}

/// Whether null comes next, which is consumed then, and a slot for what comes next.
fn slot_ahead(cursor: &mut Cursor<'_>, call: &Call) -> Result<(Slot, bool), Stop> {
    let at = cursor.ahead();
    let null = cursor.null()?;
    let slot = match call.spots.is_some() {
        false => Slot::Absent,
        true if null => Slot::Value(at..cursor.offset()),
        true => match cursor.object_ahead() {
            Some((at, empty)) => Slot::Object { at, empty },
            None => Slot::Absent,
        },
    };
    Ok((slot, null))
}

/// Reads a push configuration (1.0: flat, with `taskId` and `tenant`); gives what it names.
fn push_config(cursor: &mut Cursor<'_>, call: &mut Call) -> Result<PushNames, Stop> {
    let dialect = call.dialect;
    let mut found = PushNames::default();
    object(
        cursor,
        &names::PUSH_CONFIG,
        dialect,
        |cursor, name| match name {
            "url" => push_url(cursor, call),
            "authentication" => authentication(cursor, dialect),
            "id" => {
                call.push_config_id = optional_text(cursor, "id_type")?;
                Ok(())
            }
            "taskId" => put(&mut found.task_id, optional_text(cursor, "id_type")?),
            "tenant" if dialect.version == Version::V1_0 => {
                put(&mut found.tenant, optional_text(cursor, "tenant_type")?)
            }
            _ => skip(cursor),
        },
    )?;
    Ok(found)
}

/// What an inline push configuration names besides its URL; empty strings say nothing.
#[derive(Default)]
struct PushNames {
    task_id: Option<Option<Box<str>>>,
    tenant: Option<Option<Box<str>>>,
}

fn push_url(cursor: &mut Cursor<'_>, call: &mut Call) -> Result<(), Stop> {
    call.push_urls.extend(optional_text(cursor, "url_type")?);
    Ok(())
}

fn authentication(cursor: &mut Cursor<'_>, dialect: Dialect) -> Result<(), Stop> {
    if cursor.null()? {
        return Ok(());
    }
    object(cursor, &names::AUTHENTICATION, dialect, |cursor, _| {
        skip(cursor)
    })
}

fn tenant(cursor: &mut Cursor<'_>, call: &mut Call) -> Result<(), Stop> {
    // 0.3 has no tenant: there it is an unknown member like any other.
    if call.dialect.version == Version::V0_3 {
        return skip(cursor);
    }
    let at = cursor.ahead();
    call.tenant = optional_text(cursor, "tenant_type")?;
    if let Some(spots) = call.json_spots() {
        spots.tenant = Slot::Value(at..cursor.offset());
    }
    if call
        .tenant
        .as_deref()
        .is_some_and(|tenant| !is_clean(tenant))
    {
        return refused("tenant_characters");
    }
    Ok(())
}

/// An id: a string of 1 to 256 characters without control characters. Never null, never coerced.
fn id(cursor: &mut Cursor<'_>) -> Result<Box<str>, Stop> {
    if cursor.kind()? != Kind::String {
        return refused("id_type");
    }
    checked_id(&cursor.string()?)
}

/// An id of a payload, a path or a query.
pub(super) fn checked_id(text: &str) -> Result<Box<str>, Stop> {
    if text.is_empty() {
        return refused("id_empty");
    }
    if !is_clean(text) {
        return refused("id_characters");
    }
    Ok(text.into())
}

/// Whether a name is short enough and free of control characters, C1 included.
pub(super) fn is_clean(text: &str) -> bool {
    text.chars().take(MAX_ID_CHARS + 1).count() <= MAX_ID_CHARS
        && !text.chars().any(char::is_control)
}

/// A string; `None` for null and the empty string, which say the same in ProtoJSON.
fn optional_text(cursor: &mut Cursor<'_>, code: &'static str) -> Result<Option<Box<str>>, Stop> {
    if cursor.null()? {
        return Ok(None);
    }
    if cursor.kind()? != Kind::String {
        return refused(code);
    }
    let text = cursor.string()?;
    Ok((!text.is_empty()).then(|| text.into()))
}

fn put<T>(slot: &mut Option<T>, value: T) -> Result<(), Stop> {
    *slot = Some(value);
    Ok(())
}

fn skip(cursor: &mut Cursor<'_>) -> Result<(), Stop> {
    cursor.skip()?;
    Ok(())
}
