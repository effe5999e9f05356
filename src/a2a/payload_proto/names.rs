//! Resource names of 0.3: `tasks/{id}` and `tasks/{id}/pushNotificationConfigs/{id}`.
//!
//! Agents match a prefix of what they get, or split it; only a name that is one of the two forms
//! from end to end is the same name to all of them.

use super::{Stop, refused};
use crate::a2a::payload_json::checked_id;

const TASKS: &str = "tasks/";
const CONFIGS: &str = "/pushNotificationConfigs/";

/// The task of `tasks/{id}`.
pub(super) fn task(name: &str) -> Result<Box<str>, Stop> {
    match name.strip_prefix(TASKS) {
        Some(id) => segment(id),
        None => refused("resource_name"),
    }
}

/// Task and configuration of `tasks/{id}/pushNotificationConfigs/{id}`.
pub(super) fn push_config(name: &str) -> Result<(Box<str>, Box<str>), Stop> {
    let (task, config) = split(name)?;
    Ok((segment(task)?, segment(config)?))
}

/// The same of the name that a configuration has in Create: there its own id may still be empty.
pub(super) fn of_config(name: &str) -> Result<(Box<str>, Option<Box<str>>), Stop> {
    let (task, config) = split(name)?;
    let config = match config {
        "" => None,
        config => Some(segment(config)?),
    };
    Ok((segment(task)?, config))
}

fn split(name: &str) -> Result<(&str, &str), Stop> {
    let parts = name.strip_prefix(TASKS);
    match parts.and_then(|parts| parts.split_once(CONFIGS)) {
        Some(parts) => Ok(parts),
        None => refused("resource_name"),
    }
}

fn segment(text: &str) -> Result<Box<str>, Stop> {
    if text.contains('/') {
        return refused("resource_name");
    }
    Ok(checked_id(text)?)
}
