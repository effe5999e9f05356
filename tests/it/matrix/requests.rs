//! Every operation as bytes, in every dialect that spells it.

use super::proto::{bytes, message, text};
use portcullis::a2a::{Binding, Dialect, Operation, Version};
use serde_json::{Value, json};

/// The webhook that the policy allows.
pub const HOOK: &str = "https://93.184.216.34/hook";

/// A request, ready to be sent.
#[derive(Debug, Clone)]
pub struct Spoken {
    pub method: &'static str,
    /// Below the interface.
    pub path: String,
    pub content_type: Option<&'static str>,
    pub body: Vec<u8>,
}

/// The request of an operation about `task`; `None` where the dialect has no spelling for it.
pub fn spoken(dialect: Dialect, operation: Operation, task: &str) -> Option<Spoken> {
    match dialect.binding {
        Binding::JsonRpc => json_rpc(dialect.version, operation, task),
        Binding::Rest => rest(dialect.version, operation, task),
        Binding::Grpc => grpc(dialect.version, operation, task),
    }
}

fn json_rpc(version: Version, operation: Operation, task: &str) -> Option<Spoken> {
    let spelling = portcullis::a2a::wire::JSON_RPC
        .iter()
        .find(|s| s.version == version && s.operation == operation)?;
    let params = match version {
        Version::V1_0 => params(operation, task),
        Version::V0_3 => params_0_3(operation, task),
    };
    let mut body = json!({"jsonrpc": "2.0", "id": "q", "method": spelling.method});
    if let Some(params) = params {
        body["params"] = params;
    }
    Some(Spoken {
        method: "POST",
        path: String::new(),
        content_type: Some("application/json"),
        body: body.to_string().into(),
    })
}

/// The parameters in 1.0, which are the bodies of REST too.
fn params(operation: Operation, task: &str) -> Option<Value> {
    Some(match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => json!({"message": {
            "messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}],
        }}),
        Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask => {
            json!({"id": task})
        }
        Operation::ListTasks => json!({"pageSize": 5}),
        Operation::CreateTaskPushNotificationConfig => {
            json!({"taskId": task, "id": "c-1", "url": HOOK})
        }
        Operation::GetTaskPushNotificationConfig | Operation::DeleteTaskPushNotificationConfig => {
            json!({"taskId": task, "id": "c-1"})
        }
        Operation::ListTaskPushNotificationConfigs => json!({"taskId": task}),
        Operation::GetExtendedAgentCard => return None,
    })
}

fn params_0_3(operation: Operation, task: &str) -> Option<Value> {
    Some(match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => json!({"message": {
            "kind": "message", "messageId": "m-1", "role": "user",
            "parts": [{"kind": "text", "text": "hello"}],
        }}),
        Operation::GetTask
        | Operation::CancelTask
        | Operation::SubscribeToTask
        | Operation::ListTaskPushNotificationConfigs => json!({"id": task}),
        Operation::CreateTaskPushNotificationConfig => {
            json!({"taskId": task, "pushNotificationConfig": {"id": "c-1", "url": HOOK}})
        }
        Operation::GetTaskPushNotificationConfig | Operation::DeleteTaskPushNotificationConfig => {
            json!({"id": task, "pushNotificationConfigId": "c-1"})
        }
        Operation::ListTasks | Operation::GetExtendedAgentCard => return None,
    })
}

fn rest(version: Version, operation: Operation, task: &str) -> Option<Spoken> {
    let base = match version {
        Version::V1_0 => "",
        Version::V0_3 => "/v1",
    };
    let configs = format!("{base}/tasks/{task}/pushNotificationConfigs");
    let (method, path) = match operation {
        Operation::SendMessage => ("POST", format!("{base}/message:send")),
        Operation::SendStreamingMessage => ("POST", format!("{base}/message:stream")),
        Operation::GetTask => ("GET", format!("{base}/tasks/{task}")),
        Operation::ListTasks if version == Version::V0_3 => return None,
        Operation::ListTasks => ("GET", "/tasks?pageSize=5".to_owned()),
        Operation::CancelTask => ("POST", format!("{base}/tasks/{task}:cancel")),
        Operation::SubscribeToTask => ("POST", format!("{base}/tasks/{task}:subscribe")),
        Operation::CreateTaskPushNotificationConfig => ("POST", configs),
        Operation::GetTaskPushNotificationConfig => ("GET", format!("{configs}/c-1")),
        Operation::ListTaskPushNotificationConfigs => ("GET", configs),
        Operation::DeleteTaskPushNotificationConfig => ("DELETE", format!("{configs}/c-1")),
        Operation::GetExtendedAgentCard => match version {
            Version::V1_0 => ("GET", "/extendedAgentCard".to_owned()),
            Version::V0_3 => ("GET", "/v1/card".to_owned()),
        },
    };
    let body = match (version, operation) {
        (_, Operation::CancelTask) => Some(json!({})),
        (Version::V1_0, Operation::SendMessage | Operation::SendStreamingMessage) => {
            params(operation, task)
        }
        (Version::V1_0, Operation::CreateTaskPushNotificationConfig) => {
            Some(json!({"id": "c-1", "url": HOOK}))
        }
        (Version::V0_3, Operation::SendMessage | Operation::SendStreamingMessage) => {
            Some(json!({"message": {
                "messageId": "m-1", "role": "ROLE_USER", "content": [{"text": "hello"}],
            }}))
        }
        (Version::V0_3, Operation::CreateTaskPushNotificationConfig) => Some(json!({
            "parent": format!("tasks/{task}"), "configId": "c-1",
            "config": {
                "name": format!("tasks/{task}/pushNotificationConfigs/c-1"),
                "pushNotificationConfig": {"id": "c-1", "url": HOOK},
            },
        })),
        _ => None,
    };
    Some(Spoken {
        method,
        path,
        content_type: body.is_some().then_some("application/json"),
        body: body.map(|b| b.to_string().into()).unwrap_or_default(),
    })
}

fn grpc(version: Version, operation: Operation, task: &str) -> Option<Spoken> {
    let (package, method) = match (version, operation) {
        (Version::V0_3, Operation::ListTasks) => return None,
        (Version::V0_3, Operation::SubscribeToTask) => ("a2a.v1", "TaskSubscription"),
        (Version::V0_3, Operation::ListTaskPushNotificationConfigs) => {
            ("a2a.v1", "ListTaskPushNotificationConfig")
        }
        (Version::V0_3, Operation::GetExtendedAgentCard) => ("a2a.v1", "GetAgentCard"),
        (Version::V0_3, other) => ("a2a.v1", other.name()),
        (Version::V1_0, other) => ("lf.a2a.v1", other.name()),
    };
    let request = match version {
        Version::V1_0 => request_1_0(operation, task),
        Version::V0_3 => request_0_3(operation, task),
    };
    Some(Spoken {
        method: "POST",
        path: format!("/{package}.A2AService/{method}"),
        content_type: Some("application/grpc"),
        body: super::proto::frame(&request),
    })
}

/// Field numbers: `a2a-protocol.md` a.3.
fn request_1_0(operation: Operation, task: &str) -> Vec<u8> {
    match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => message(&[bytes(2, &said())]),
        Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask => {
            message(&[text(2, task)])
        }
        Operation::ListTasks => message(&[super::proto::number(4, 5)]),
        Operation::CreateTaskPushNotificationConfig => {
            message(&[text(2, "c-1"), text(3, task), text(4, HOOK)])
        }
        Operation::GetTaskPushNotificationConfig | Operation::DeleteTaskPushNotificationConfig => {
            message(&[text(2, task), text(3, "c-1")])
        }
        Operation::ListTaskPushNotificationConfigs => message(&[text(1, task)]),
        Operation::GetExtendedAgentCard => Vec::new(),
    }
}

/// Field numbers: `a2a-protocol.md` a.4.
fn request_0_3(operation: Operation, task: &str) -> Vec<u8> {
    let name = format!("tasks/{task}");
    let config = format!("{name}/pushNotificationConfigs/c-1");
    match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => message(&[bytes(1, &said())]),
        Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask => {
            message(&[text(1, &name)])
        }
        Operation::CreateTaskPushNotificationConfig => {
            let inner = message(&[text(1, "c-1"), text(2, HOOK)]);
            let outer = message(&[text(1, &config), bytes(2, &inner)]);
            message(&[text(1, &name), text(2, "c-1"), bytes(3, &outer)])
        }
        Operation::GetTaskPushNotificationConfig | Operation::DeleteTaskPushNotificationConfig => {
            message(&[text(1, &config)])
        }
        Operation::ListTaskPushNotificationConfigs => message(&[text(1, &name)]),
        Operation::ListTasks | Operation::GetExtendedAgentCard => Vec::new(),
    }
}

/// A message of the user with one text part, in both packages.
fn said() -> Vec<u8> {
    let part = message(&[text(1, "hello")]);
    message(&[text(1, "m-1"), super::proto::number(4, 1), bytes(5, &part)])
}

/// The extended card as a message; `old` is 0.3's shape.
pub fn card(old: bool) -> Vec<u8> {
    let skill = message(&[
        text(1, "hello"),
        text(2, "hello"),
        text(3, "greets"),
        text(4, "x"),
    ]);
    let common = message(&[
        text(1, "polyglot"),
        text(2, "speaks every dialect"),
        text(5, "1"),
        text(10, "text/plain"),
        text(11, "text/plain"),
        bytes(12, &skill),
    ]);
    let flags = [super::proto::number(1, 1), super::proto::number(2, 1)].concat();
    let address = "http://polyglot.example/rpc";
    match old {
        true => message(&[
            common,
            text(3, address),
            bytes(7, &flags),
            super::proto::number(13, 1),
            text(14, "JSONRPC"),
            text(16, "0.3.0"),
        ]),
        false => {
            let interface = message(&[text(1, address), text(2, "JSONRPC"), text(4, "1.0")]);
            let flags = message(&[flags, super::proto::number(4, 1)]);
            message(&[common, bytes(3, &interface), bytes(7, &flags)])
        }
    }
}
