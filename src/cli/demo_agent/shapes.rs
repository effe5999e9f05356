//! How the two versions spell cards, tasks and events (A2A 1.0 section 4, A2A 0.3 section 6).

use crate::a2a::Version;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Which versions' fields a card has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardShape {
    /// Only fields of 1.0.
    V1_0,
    /// Only fields of 0.3.
    V0_3,
    /// Both in one document, as the SDKs serve it.
    Hybrid,
}

/// States that the agent's tasks have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Working,
    InputRequired,
    Completed,
    Failed,
    Canceled,
}

impl State {
    pub(super) fn is_terminal(self) -> bool {
        match self {
            State::Working | State::InputRequired => false,
            State::Completed | State::Failed | State::Canceled => true,
        }
    }

    fn name(self, version: Version) -> &'static str {
        match (version, self) {
            (Version::V1_0, State::Working) => "TASK_STATE_WORKING",
            (Version::V1_0, State::InputRequired) => "TASK_STATE_INPUT_REQUIRED",
            (Version::V1_0, State::Completed) => "TASK_STATE_COMPLETED",
            (Version::V1_0, State::Failed) => "TASK_STATE_FAILED",
            (Version::V1_0, State::Canceled) => "TASK_STATE_CANCELED",
            (Version::V0_3, State::Working) => "working",
            (Version::V0_3, State::InputRequired) => "input-required",
            (Version::V0_3, State::Completed) => "completed",
            (Version::V0_3, State::Failed) => "failed",
            (Version::V0_3, State::Canceled) => "canceled",
        }
    }
}

/// What shapes need to know of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskView {
    pub(super) id: String,
    pub(super) context: String,
    pub(super) state: State,
    /// Messages that it took.
    pub(super) turns: u64,
}

fn part(version: Version, text: &str) -> Value {
    match version {
        Version::V1_0 => json!({"text": text}),
        Version::V0_3 => json!({"kind": "text", "text": text}),
    }
}

fn artifact(version: Version) -> Value {
    json!({
        "artifactId": "greeting",
        "name": "greeting",
        "parts": [part(version, super::GREETING)],
    })
}

/// A task as `GetTask` returns it.
pub(super) fn task(version: Version, task: &TaskView) -> Value {
    let mut value = json!({
        "id": task.id,
        "contextId": task.context,
        "status": {"state": task.state.name(version)},
        "metadata": {"turns": task.turns},
    });
    if task.state == State::Completed {
        value["artifacts"] = json!([artifact(version)]);
    }
    if version == Version::V0_3 {
        value["kind"] = json!("task");
    }
    value
}

/// A task as a send result or first event holds it.
pub(super) fn wrapped_task(version: Version, view: &TaskView) -> Value {
    match version {
        Version::V1_0 => json!({"task": task(version, view)}),
        Version::V0_3 => task(version, view),
    }
}

/// An answer without a task.
pub(super) fn message(version: Version, id: &str, context: &str) -> Value {
    let parts = [part(version, super::GREETING)];
    match version {
        Version::V1_0 => json!({"message": {
            "messageId": id, "contextId": context, "role": "ROLE_AGENT", "parts": parts,
        }}),
        Version::V0_3 => json!({
            "kind": "message",
            "messageId": id, "contextId": context, "role": "agent", "parts": parts,
        }),
    }
}

pub(super) fn status_update(version: Version, task: &TaskView) -> Value {
    let status = json!({"state": task.state.name(version)});
    match version {
        Version::V1_0 => json!({"statusUpdate": {
            "taskId": task.id, "contextId": task.context, "status": status,
        }}),
        Version::V0_3 => json!({
            "kind": "status-update",
            "taskId": task.id, "contextId": task.context, "status": status,
            "final": task.state != State::Working,
        }),
    }
}

pub(super) fn artifact_update(version: Version, task: &TaskView) -> Value {
    match version {
        Version::V1_0 => json!({"artifactUpdate": {
            "taskId": task.id, "contextId": task.context, "artifact": artifact(version),
            "lastChunk": true,
        }}),
        Version::V0_3 => json!({
            "kind": "artifact-update",
            "taskId": task.id, "contextId": task.context, "artifact": artifact(version),
            "lastChunk": true,
        }),
    }
}

/// The card, with the agent's own address in every place that a real one has it.
pub(super) fn card(options: &super::Options, address: SocketAddr) -> Value {
    let url = format!("http://{address}{}", options.path);
    let skills: Vec<Value> = options
        .skills
        .iter()
        .map(|id| json!({"id": id, "name": id, "description": id, "tags": ["demo"]}))
        .collect();
    let mut card = json!({
        "name": options.name,
        "description": "A small agent to stand behind a gateway",
        "version": "1.0.0",
        "capabilities": {"streaming": true, "pushNotifications": true},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": skills,
    });
    let interface = |version: &str| json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version});
    if options.card != CardShape::V0_3 {
        card["supportedInterfaces"] = match options.card {
            CardShape::Hybrid => json!([interface("1.0"), interface("0.3")]),
            CardShape::V1_0 | CardShape::V0_3 => json!([interface("1.0")]),
        };
    }
    if options.extended_card {
        card["capabilities"]["extendedAgentCard"] = json!(true);
    }
    if options.card != CardShape::V1_0 {
        card["url"] = json!(url);
        card["preferredTransport"] = json!("JSONRPC");
        card["protocolVersion"] = json!("0.3.0");
        card["additionalInterfaces"] = json!([{"url": url, "transport": "JSONRPC"}]);
    }
    card
}
