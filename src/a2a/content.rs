//! [`Content`]: what a send says, in the JSON form of 1.0, for policies that look at it.
//!
//! It is made from the bytes that were judged, for every binding and version alike, and only when
//! something looks at it. What one agent could read otherwise than another is no content at all.

mod older;
mod proto;

use super::call::Call;
use super::grpc::frame;
use super::operation::{Binding, Operation, Version};
use super::payload_proto::table_of;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Largest body of which there is content, in bytes.
pub const MAX_BYTES: usize = 256 << 10;
/// Most values of a content.
pub const MAX_NODES: usize = 10_000;
/// Most values that are looked at for one call, over all conditions.
const MAX_WORK: usize = 1_000_000;

/// Why there is no content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// The request is larger, or has more values, than is kept for conditions.
    Oversize,
    /// Two agents could read it differently.
    Ambiguous,
}

/// The parameters of a send in the JSON form of 1.0: `message`, `configuration`, `metadata`,
/// `tenant`. Made when it is first looked at.
pub struct Content<'a> {
    source: Source<'a>,
    made: OnceLock<Result<Value, Unreadable>>,
    left: AtomicUsize,
}

/// Never what is in it (I-9).
impl fmt::Debug for Content<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").finish_non_exhaustive()
    }
}

enum Source<'a> {
    Request(&'a Call, &'a [u8]),
    Given(Value),
}

impl<'a> Content<'a> {
    /// Of a call and the body that it was read from. Costs nothing until it is looked at.
    pub fn of(call: &'a Call, body: &'a [u8]) -> Content<'a> {
        Content::new(Source::Request(call, body))
    }

    /// Of parameters that are in this form already.
    pub fn given(parameters: Value) -> Content<'a> {
        Content::new(Source::Given(parameters))
    }

    fn new(source: Source<'a>) -> Content<'a> {
        Content {
            source,
            made: OnceLock::new(),
            left: AtomicUsize::new(MAX_WORK),
        }
    }

    /// The parameters.
    ///
    /// # Errors
    /// Why nothing can be said of them.
    pub fn value(&self) -> Result<&Value, Unreadable> {
        let made = self.made.get_or_init(|| {
            let value = match &self.source {
                Source::Request(call, body) => read(call, body)?,
                Source::Given(value) => value.clone(),
            };
            let mut left = MAX_NODES;
            match fits(&value, &mut left) {
                true => Ok(value),
                false => Err(Unreadable::Oversize),
            }
        });
        made.as_ref().map_err(|unreadable| *unreadable)
    }

    /// Takes one step of the work that one call may cost; `false` when it is used up.
    pub fn step(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }

    /// Whether anybody has looked.
    pub fn is_made(&self) -> bool {
        self.made.get().is_some()
    }
}

/// Recursion is bounded by what the readers of requests let pass (64) or serde_json reads (128).
fn fits(value: &Value, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else {
        return false;
    };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| fits(item, left)),
        Value::Object(members) => members.values().all(|member| fits(member, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn read(call: &Call, body: &[u8]) -> Result<Value, Unreadable> {
    match call.operation {
        Operation::SendMessage | Operation::SendStreamingMessage => {}
        Operation::GetTask
        | Operation::ListTasks
        | Operation::CancelTask
        | Operation::SubscribeToTask
        | Operation::CreateTaskPushNotificationConfig
        | Operation::GetTaskPushNotificationConfig
        | Operation::ListTaskPushNotificationConfigs
        | Operation::DeleteTaskPushNotificationConfig
        | Operation::GetExtendedAgentCard => return Ok(Value::Object(Map::new())),
    }
    if body.len() > MAX_BYTES {
        return Err(Unreadable::Oversize);
    }
    let mut parameters = match call.dialect.binding {
        // What was accepted has no second reading, so a failure is one that we do not know.
        Binding::JsonRpc => match serde_json::from_slice(body) {
            Ok(Value::Object(mut envelope)) => envelope.remove("params"),
            Ok(_) | Err(_) => None,
        },
        Binding::Rest => serde_json::from_slice(body).ok(),
        Binding::Grpc => {
            let table = table_of(call.operation, call.dialect.version);
            let message = frame::single(body).ok();
            let read = table.and_then(|table| proto::object(message?, table).ok());
            read.map(Value::Object)
        }
    };
    let Some(Value::Object(parameters)) = &mut parameters else {
        return Err(Unreadable::Ambiguous);
    };
    match call.dialect.version {
        Version::V1_0 => older::agreeing_parts(parameters)?,
        Version::V0_3 => older::upgrade(parameters, call.dialect.binding)?,
    }
    // REST has it in its path.
    if let Some(tenant) = &call.tenant {
        parameters.insert("tenant".to_owned(), Value::String(tenant.to_string()));
    }
    Ok(Value::Object(std::mem::take(parameters)))
}

/// Whether a member is named so that some agent could take it for `name`, though it is not `name`.
pub fn is_near(name: &str, member: &str) -> bool {
    name != member && super::payload_json::fold_alike(name, member)
}

#[cfg(test)]
mod tests;
