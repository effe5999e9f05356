//! Every operation as bytes, in every dialect that spells it.

use crate::support::proto::{encode, framed, method_of};
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
        (Version::V0_3, Operation::SubscribeToTask) => ("a2a.v1", "TaskSubscription"),
        (Version::V0_3, Operation::ListTaskPushNotificationConfigs) => {
            ("a2a.v1", "ListTaskPushNotificationConfig")
        }
        (Version::V0_3, Operation::GetExtendedAgentCard) => ("a2a.v1", "GetAgentCard"),
        (Version::V0_3, other) => ("a2a.v1", other.name()),
        (Version::V1_0, other) => ("lf.a2a.v1", other.name()),
    };
    let (message, ..) = method_of(package, method)?;
    let fields = match version {
        Version::V1_0 => fields_1_0(operation, task),
        Version::V0_3 => fields_0_3(operation, task),
    };
    Some(in_grpc(
        package,
        method,
        &encode(package, &message, &fields),
    ))
}

/// A message as a call of this method.
pub fn in_grpc(package: &str, method: &str, message: &[u8]) -> Spoken {
    Spoken {
        method: "POST",
        path: format!("/{package}.A2AService/{method}"),
        content_type: Some("application/grpc"),
        body: framed(message),
    }
}

fn fields_1_0(operation: Operation, task: &str) -> Value {
    match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => {
            json!([["message", said("parts")]])
        }
        Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask => {
            json!([["id", task]])
        }
        Operation::ListTasks => json!([["page_size", 5]]),
        Operation::CreateTaskPushNotificationConfig => {
            json!([["id", "c-1"], ["task_id", task], ["url", HOOK]])
        }
        Operation::GetTaskPushNotificationConfig | Operation::DeleteTaskPushNotificationConfig => {
            json!([["task_id", task], ["id", "c-1"]])
        }
        Operation::ListTaskPushNotificationConfigs => json!([["task_id", task]]),
        Operation::GetExtendedAgentCard => json!([]),
    }
}

fn fields_0_3(operation: Operation, task: &str) -> Value {
    let name = format!("tasks/{task}");
    let config = format!("{name}/pushNotificationConfigs/c-1");
    match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => {
            json!([["request", said("content")]])
        }
        Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask => {
            json!([["name", name]])
        }
        Operation::CreateTaskPushNotificationConfig => json!([
            ["parent", name],
            ["config_id", "c-1"],
            [
                "config",
                [
                    ["name", config],
                    ["push_notification_config", [["id", "c-1"], ["url", HOOK]]],
                ]
            ],
        ]),
        Operation::GetTaskPushNotificationConfig | Operation::DeleteTaskPushNotificationConfig => {
            json!([["name", config]])
        }
        Operation::ListTaskPushNotificationConfigs => json!([["parent", name]]),
        Operation::ListTasks | Operation::GetExtendedAgentCard => json!([]),
    }
}

/// A message of the user with one text part; `parts` is what its version calls them.
fn said(parts: &str) -> Value {
    json!([
        ["message_id", "m-1"],
        ["role", 1],
        [parts, [["text", "hello"]]]
    ])
}

/// The extended card, in the shape of the package.
pub fn card(package: &str) -> Value {
    let skill = json!([
        ["id", "hello"],
        ["name", "hello"],
        ["description", "greets"],
        ["tags", "x"]
    ]);
    let address = "http://polyglot.example/rpc";
    let mut card = json!([
        ["name", "polyglot"],
        ["description", "speaks every dialect"],
        ["version", "1"],
        ["default_input_modes", "text/plain"],
        ["default_output_modes", "text/plain"],
        ["skills", skill],
    ]);
    let own = match package {
        "a2a.v1" => json!([
            ["url", address],
            ["preferred_transport", "JSONRPC"],
            ["protocol_version", "0.3.0"],
            ["supports_authenticated_extended_card", true],
            [
                "capabilities",
                [["streaming", true], ["push_notifications", true]]
            ],
        ]),
        _ => json!([
            [
                "supported_interfaces",
                [
                    ["url", address],
                    ["protocol_binding", "JSONRPC"],
                    ["protocol_version", "1.0"]
                ]
            ],
            [
                "capabilities",
                [
                    ["streaming", true],
                    ["push_notifications", true],
                    ["extended_agent_card", true]
                ]
            ],
        ]),
    };
    let all = card.as_array_mut().unwrap();
    all.extend(own.as_array().unwrap().iter().cloned());
    card
}
