//! From the parameters of 0.3 to those of 1.0, in JSON (`a2a-protocol.md` a.3 and a.4).
//!
//! 0.3 has two JSON forms: that of JSON-RPC, and ProtoJSON in REST, whose names may be those of the
//! proto; gRPC yields the second. Strict reading let no name through twice, so each is where it is.

use super::Unreadable;
use crate::a2a::operation::Binding;
use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// How 0.3 writes a message in JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    ByKind,
    Proto,
}

/// Makes the parameters of 1.0 of those of 0.3.
pub(super) fn upgrade(parameters: &mut Object, binding: Binding) -> Result<(), Unreadable> {
    let form = match binding {
        Binding::JsonRpc => Form::ByKind,
        Binding::Rest | Binding::Grpc => Form::Proto,
    };
    rename(parameters, &["request"], "message");
    if let Some(Value::Object(message)) = parameters.get_mut("message") {
        of_message(message, form)?;
    }
    if let Some(Value::Object(configuration)) = parameters.get_mut("configuration") {
        rename(
            configuration,
            &[
                "pushNotificationConfig",
                "pushNotification",
                "push_notification",
            ],
            "taskPushNotificationConfig",
        );
        rename(
            configuration,
            &["accepted_output_modes"],
            "acceptedOutputModes",
        );
        rename(configuration, &["history_length"], "historyLength");
        if let Some(Value::Bool(blocking)) = configuration.get("blocking") {
            let immediately = Value::Bool(!blocking);
            configuration.remove("blocking");
            configuration.insert("returnImmediately".to_owned(), immediately);
        }
    }
    Ok(())
}

/// In 1.0 `kind` decides nothing, but an agent that also speaks 0.3 may go by it.
pub(super) fn agreeing_parts(parameters: &mut Object) -> Result<(), Unreadable> {
    let message = parameters.get_mut("message");
    let parts = message.and_then(|message| message.get_mut("parts"));
    if let Some(Value::Array(parts)) = parts {
        for part in parts.iter_mut().filter_map(Value::as_object_mut) {
            of_kind(
                part,
                &[
                    ("text", "text"),
                    ("data", "data"),
                    ("raw", "file"),
                    ("url", "file"),
                ],
            )?;
        }
    }
    Ok(())
}

fn of_message(message: &mut Object, form: Form) -> Result<(), Unreadable> {
    match message.remove("kind") {
        None => {}
        Some(Value::String(kind)) if kind == "message" => {}
        Some(_) => return Err(Unreadable::Ambiguous),
    }
    for (original, name) in [
        ("message_id", "messageId"),
        ("context_id", "contextId"),
        ("task_id", "taskId"),
        ("content", "parts"),
    ] {
        rename(message, &[original], name);
    }
    if let Some(role) = message.get_mut("role") {
        let upgraded = match role.as_str() {
            Some("user") => Some("ROLE_USER"),
            Some("agent") => Some("ROLE_AGENT"),
            Some(_) | None => None,
        };
        if let Some(upgraded) = upgraded {
            *role = Value::from(upgraded);
        }
    }
    if let Some(Value::Array(parts)) = message.get_mut("parts") {
        for part in parts.iter_mut().filter_map(Value::as_object_mut) {
            of_part(part, form)?;
        }
    }
    Ok(())
}

fn of_part(part: &mut Object, form: Form) -> Result<(), Unreadable> {
    // In JSON-RPC `kind` says which part it is, and what has none is nothing that all agents read.
    if form == Form::ByKind && !part.contains_key("kind") {
        return Err(Unreadable::Ambiguous);
    }
    of_kind(
        part,
        &[("text", "text"), ("data", "data"), ("file", "file")],
    )?;
    // ProtoJSON has its data one level deeper.
    if let (Form::Proto, Some(Value::Object(data))) = (form, part.get_mut("data")) {
        match (data.len(), data.remove("data")) {
            (0, _) => {}
            (1, Some(inner)) => {
                part.insert("data".to_owned(), inner);
            }
            (_, _) => return Err(Unreadable::Ambiguous),
        }
    }
    let Some(file) = part.remove("file") else {
        return Ok(());
    };
    let Value::Object(mut file) = file else {
        return Err(Unreadable::Ambiguous);
    };
    let names = [
        ("raw", ["bytes", "fileWithBytes", "file_with_bytes"]),
        ("url", ["uri", "fileWithUri", "file_with_uri"]),
        ("filename", ["name", "name", "name"]),
        ("mediaType", ["mimeType", "mime_type", "mimeType"]),
    ];
    for (name, olds) in names {
        let found = olds.into_iter().find_map(|old| file.remove(old));
        if let Some(value) = found.filter(|value| !value.is_null()) {
            part.insert(name.to_owned(), value);
        }
    }
    match part.contains_key("raw") && part.contains_key("url") {
        true => Err(Unreadable::Ambiguous),
        false => Ok(()),
    }
}

/// Takes `kind` out of a part, which must be what its one member says.
fn of_kind(part: &mut Object, members: &[(&str, &str)]) -> Result<(), Unreadable> {
    // Null is a value of data, and absent for the others.
    let is_there = |name: &str| {
        part.get(name)
            .is_some_and(|v| name == "data" || !v.is_null())
    };
    let mut kinds = members.iter().filter(|(name, _)| is_there(name));
    let (kind, more) = (kinds.next().map(|(_, kind)| *kind), kinds.next().is_some());
    let agrees = match part.get("kind") {
        None => true,
        Some(said) => said.as_str() == kind,
    };
    if more || !agrees {
        return Err(Unreadable::Ambiguous);
    }
    part.remove("kind");
    Ok(())
}

fn rename(object: &mut Object, olds: &[&str], name: &str) {
    for old in olds {
        if let Some(value) = object.remove(*old) {
            object.insert(name.to_owned(), value);
        }
    }
}
