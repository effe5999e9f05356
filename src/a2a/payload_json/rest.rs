//! Bodies of the REST binding: what the path has said already may only be repeated.

use super::{Stop, id, names, object, optional_text, put, refused, skip, tenant, unselected};
use crate::a2a::call::{Call, ReadRules};
use crate::a2a::operation::{Operation, Version};
use crate::a2a::strict_json::Cursor;

/// Reads the body that comes next in `cursor` into `call`, which holds what the path named.
pub(in crate::a2a) fn read_body(
    cursor: &mut Cursor<'_>,
    call: &mut Call,
    rules: &ReadRules,
) -> Result<(), Stop> {
    let task_id = call.task_id.clone();
    let in_path = call.tenant.clone();
    match (call.operation, call.dialect.version) {
        (Operation::CancelTask | Operation::SubscribeToTask, _) => task(cursor, call, rules)?,
        (Operation::CreateTaskPushNotificationConfig, Version::V0_3) => create_0_3(cursor, call)?,
        (
            Operation::SendMessage
            | Operation::SendStreamingMessage
            | Operation::CreateTaskPushNotificationConfig,
            _,
        ) => super::read(cursor, call, rules)?,
        // These have no body.
        (
            Operation::GetTask
            | Operation::ListTasks
            | Operation::GetTaskPushNotificationConfig
            | Operation::ListTaskPushNotificationConfigs
            | Operation::DeleteTaskPushNotificationConfig
            | Operation::GetExtendedAgentCard,
            _,
        ) => skip(cursor)?,
    }
    if task_id.is_some() && call.task_id != task_id {
        return refused("path_differs");
    }
    // Servers take the tenant from the path, or from the body where the path has none.
    if call.tenant.is_some() && call.tenant != in_path {
        return refused("path_differs");
    }
    call.tenant = in_path;
    Ok(())
}

fn task(cursor: &mut Cursor<'_>, call: &mut Call, rules: &ReadRules) -> Result<(), Stop> {
    let dialect = call.dialect;
    object(
        cursor,
        &names::REST_TASK,
        dialect,
        |cursor, name| match name {
            "id" => put(&mut call.task_id, id(cursor)?),
            "name" => resource(cursor, call),
            "tenant" => tenant(cursor, call),
            "metadata" => unselected(cursor, rules),
            _ => skip(cursor),
        },
    )
}

/// What 0.3's Create names, besides what it puts into the call.
#[derive(Default)]
struct Created {
    config_id: Option<Box<str>>,
    name: Option<Box<str>>,
    /// The whole request of the proto, with the configuration in `config`.
    whole: bool,
    /// The configuration alone.
    alone: bool,
    has_config: bool,
}

/// Reads 0.3's Create, which has two forms: Python writes the proto's whole request, and
/// JavaScript its `config` alone, as the proto's own annotation of the path says. Some servers
/// take the task from the path and some from a resource name in the body, so all must name it.
fn create_0_3(cursor: &mut Cursor<'_>, call: &mut Call) -> Result<(), Stop> {
    let dialect = call.dialect;
    let mut created = Created::default();
    object(
        cursor,
        &names::CREATE_PUSH,
        dialect,
        |cursor, name| match name {
            "parent" => {
                created.whole = true;
                resource(cursor, call)
            }
            "configId" => {
                created.whole = true;
                created.config_id = optional_text(cursor, "id_type")?;
                Ok(())
            }
            "config" => {
                created.whole = true;
                let names = &names::TASK_PUSH_CONFIG;
                object(cursor, names, dialect, |cursor, name| {
                    task_push_config(cursor, call, name, &mut created)
                })
            }
            "name" | "pushNotificationConfig" => {
                created.alone = true;
                task_push_config(cursor, call, name, &mut created)
            }
            _ => skip(cursor),
        },
    )?;
    if created.whole && created.alone {
        return refused("field_twice");
    }
    if !created.has_config {
        return refused("push_config_missing");
    }
    let inner_id = call.push_config_id.take();
    if created.config_id.is_some() && inner_id.is_some() && created.config_id != inner_id {
        return refused("path_differs");
    }
    call.push_config_id = created.config_id.or(inner_id);
    let Some(named) = created.name else {
        return Ok(());
    };
    // Without an id of its own a client writes what it likes in its place.
    let in_name = of_task(&named, call).and_then(|rest| match rest {
        "" => Some(None),
        rest => rest.strip_prefix("/pushNotificationConfigs/").map(Some),
    });
    match (in_name, &call.push_config_id) {
        (None, _) => refused("path_differs"),
        (Some(Some(in_name)), Some(id)) if *in_name != **id => refused("path_differs"),
        (Some(_), _) => Ok(()),
    }
}

/// Reads a member of a configuration with its resource name.
fn task_push_config(
    cursor: &mut Cursor<'_>,
    call: &mut Call,
    name: &str,
    created: &mut Created,
) -> Result<(), Stop> {
    match name {
        "name" => {
            created.name = optional_text(cursor, "id_type")?;
            Ok(())
        }
        "pushNotificationConfig" => {
            created.has_config = true;
            super::push_config(cursor, call).map(drop)
        }
        _ => skip(cursor),
    }
}

/// Reads a resource name that must be that of the task in the path.
fn resource(cursor: &mut Cursor<'_>, call: &Call) -> Result<(), Stop> {
    match optional_text(cursor, "id_type")? {
        Some(name) if of_task(&name, call) != Some("") => refused("path_differs"),
        Some(_) | None => Ok(()),
    }
}

/// What follows the task's own name in a resource name.
fn of_task<'n>(name: &'n str, call: &Call) -> Option<&'n str> {
    let rest = name.strip_prefix("tasks/")?;
    let rest = rest.strip_prefix(call.task_id.as_deref()?)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}
