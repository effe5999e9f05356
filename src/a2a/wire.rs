//! The method table: how each operation is spelled, per binding and version.
//!
//! A2A 1.0 section 5.3 and the JSON-RPC types of 0.3 (`a2a-protocol.md` a.1, a.2). Each binding has its
//! own table; nothing else knows a spelling.

use super::operation::{Operation, Version};

/// One spelling of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spelling {
    /// The version that it belongs to. A spelling belongs to one only.
    pub version: Version,
    /// Its exact text: of a JSON-RPC method after JSON escapes are decoded; of gRPC the path.
    pub method: &'static str,
    /// What it means.
    pub operation: Operation,
}

const fn v1_0(method: &'static str, operation: Operation) -> Spelling {
    Spelling {
        version: Version::V1_0,
        method,
        operation,
    }
}

const fn v0_3(method: &'static str, operation: Operation) -> Spelling {
    Spelling {
        version: Version::V0_3,
        method,
        operation,
    }
}

/// JSON-RPC methods; ListTasks has no spelling in 0.3.
pub const JSON_RPC: [Spelling; 21] = [
    v1_0("SendMessage", Operation::SendMessage),
    v1_0("SendStreamingMessage", Operation::SendStreamingMessage),
    v1_0("GetTask", Operation::GetTask),
    v1_0("ListTasks", Operation::ListTasks),
    v1_0("CancelTask", Operation::CancelTask),
    v1_0("SubscribeToTask", Operation::SubscribeToTask),
    v1_0(
        "CreateTaskPushNotificationConfig",
        Operation::CreateTaskPushNotificationConfig,
    ),
    v1_0(
        "GetTaskPushNotificationConfig",
        Operation::GetTaskPushNotificationConfig,
    ),
    v1_0(
        "ListTaskPushNotificationConfigs",
        Operation::ListTaskPushNotificationConfigs,
    ),
    v1_0(
        "DeleteTaskPushNotificationConfig",
        Operation::DeleteTaskPushNotificationConfig,
    ),
    v1_0("GetExtendedAgentCard", Operation::GetExtendedAgentCard),
    v0_3("message/send", Operation::SendMessage),
    v0_3("message/stream", Operation::SendStreamingMessage),
    v0_3("tasks/get", Operation::GetTask),
    v0_3("tasks/cancel", Operation::CancelTask),
    v0_3("tasks/resubscribe", Operation::SubscribeToTask),
    v0_3(
        "tasks/pushNotificationConfig/set",
        Operation::CreateTaskPushNotificationConfig,
    ),
    v0_3(
        "tasks/pushNotificationConfig/get",
        Operation::GetTaskPushNotificationConfig,
    ),
    v0_3(
        "tasks/pushNotificationConfig/list",
        Operation::ListTaskPushNotificationConfigs,
    ),
    v0_3(
        "tasks/pushNotificationConfig/delete",
        Operation::DeleteTaskPushNotificationConfig,
    ),
    v0_3(
        "agent/getAuthenticatedExtendedCard",
        Operation::GetExtendedAgentCard,
    ),
];

/// What a JSON-RPC `method` means; case and every byte count.
pub fn json_rpc(method: &str) -> Option<Spelling> {
    JSON_RPC
        .iter()
        .find(|spelling| spelling.method == method)
        .copied()
}

/// Paths of gRPC methods, by the names in the packages themselves; the prose of 0.3 has others,
/// which nothing runs. ListTasks has no spelling in 0.3.
pub const GRPC: [Spelling; 21] = [
    v1_0("/lf.a2a.v1.A2AService/SendMessage", Operation::SendMessage),
    v1_0(
        "/lf.a2a.v1.A2AService/SendStreamingMessage",
        Operation::SendStreamingMessage,
    ),
    v1_0("/lf.a2a.v1.A2AService/GetTask", Operation::GetTask),
    v1_0("/lf.a2a.v1.A2AService/ListTasks", Operation::ListTasks),
    v1_0("/lf.a2a.v1.A2AService/CancelTask", Operation::CancelTask),
    v1_0(
        "/lf.a2a.v1.A2AService/SubscribeToTask",
        Operation::SubscribeToTask,
    ),
    v1_0(
        "/lf.a2a.v1.A2AService/CreateTaskPushNotificationConfig",
        Operation::CreateTaskPushNotificationConfig,
    ),
    v1_0(
        "/lf.a2a.v1.A2AService/GetTaskPushNotificationConfig",
        Operation::GetTaskPushNotificationConfig,
    ),
    v1_0(
        "/lf.a2a.v1.A2AService/ListTaskPushNotificationConfigs",
        Operation::ListTaskPushNotificationConfigs,
    ),
    v1_0(
        "/lf.a2a.v1.A2AService/DeleteTaskPushNotificationConfig",
        Operation::DeleteTaskPushNotificationConfig,
    ),
    v1_0(
        "/lf.a2a.v1.A2AService/GetExtendedAgentCard",
        Operation::GetExtendedAgentCard,
    ),
    v0_3("/a2a.v1.A2AService/SendMessage", Operation::SendMessage),
    v0_3(
        "/a2a.v1.A2AService/SendStreamingMessage",
        Operation::SendStreamingMessage,
    ),
    v0_3("/a2a.v1.A2AService/GetTask", Operation::GetTask),
    v0_3("/a2a.v1.A2AService/CancelTask", Operation::CancelTask),
    v0_3(
        "/a2a.v1.A2AService/TaskSubscription",
        Operation::SubscribeToTask,
    ),
    v0_3(
        "/a2a.v1.A2AService/CreateTaskPushNotificationConfig",
        Operation::CreateTaskPushNotificationConfig,
    ),
    v0_3(
        "/a2a.v1.A2AService/GetTaskPushNotificationConfig",
        Operation::GetTaskPushNotificationConfig,
    ),
    v0_3(
        "/a2a.v1.A2AService/ListTaskPushNotificationConfig",
        Operation::ListTaskPushNotificationConfigs,
    ),
    v0_3(
        "/a2a.v1.A2AService/DeleteTaskPushNotificationConfig",
        Operation::DeleteTaskPushNotificationConfig,
    ),
    v0_3(
        "/a2a.v1.A2AService/GetAgentCard",
        Operation::GetExtendedAgentCard,
    ),
];

/// What the path of a gRPC call means; the package decides the version.
pub fn grpc(path: &str) -> Option<Spelling> {
    GRPC.iter()
        .find(|spelling| spelling.method == path)
        .copied()
}

/// One spelling of an operation in HTTP+JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// The version that it belongs to.
    pub version: Version,
    /// The HTTP method.
    pub method: &'static str,
    /// The path below the interface's; `{task}` and `{config}` stand for an id each.
    pub template: &'static str,
    /// What it means.
    pub operation: Operation,
}

const fn rest_1_0(method: &'static str, template: &'static str, operation: Operation) -> Endpoint {
    Endpoint {
        version: Version::V1_0,
        method,
        template,
        operation,
    }
}

const fn rest_0_3(method: &'static str, template: &'static str, operation: Operation) -> Endpoint {
    Endpoint {
        version: Version::V0_3,
        method,
        template,
        operation,
    }
}

/// HTTP+JSON. Before any 1.0 path there may be one segment more, the tenant. A template with a
/// verb comes before the one that would take the verb for a part of the id.
///
/// Subscribe is POST in the prose of both versions and GET in both protos, so both are served.
/// ListTasks is in the prose of 0.3 only: no 0.3 server has it, so it is no path of ours either.
pub const REST: [Endpoint; 23] = [
    rest_1_0("POST", "/message:send", Operation::SendMessage),
    rest_1_0("POST", "/message:stream", Operation::SendStreamingMessage),
    rest_1_0("POST", "/tasks/{task}:cancel", Operation::CancelTask),
    rest_1_0(
        "POST",
        "/tasks/{task}:subscribe",
        Operation::SubscribeToTask,
    ),
    rest_1_0("GET", "/tasks/{task}:subscribe", Operation::SubscribeToTask),
    rest_1_0("GET", "/tasks/{task}", Operation::GetTask),
    rest_1_0("GET", "/tasks", Operation::ListTasks),
    rest_1_0(
        "POST",
        "/tasks/{task}/pushNotificationConfigs",
        Operation::CreateTaskPushNotificationConfig,
    ),
    rest_1_0(
        "GET",
        "/tasks/{task}/pushNotificationConfigs",
        Operation::ListTaskPushNotificationConfigs,
    ),
    rest_1_0(
        "GET",
        "/tasks/{task}/pushNotificationConfigs/{config}",
        Operation::GetTaskPushNotificationConfig,
    ),
    rest_1_0(
        "DELETE",
        "/tasks/{task}/pushNotificationConfigs/{config}",
        Operation::DeleteTaskPushNotificationConfig,
    ),
    rest_1_0("GET", "/extendedAgentCard", Operation::GetExtendedAgentCard),
    rest_0_3("POST", "/v1/message:send", Operation::SendMessage),
    rest_0_3(
        "POST",
        "/v1/message:stream",
        Operation::SendStreamingMessage,
    ),
    rest_0_3("POST", "/v1/tasks/{task}:cancel", Operation::CancelTask),
    rest_0_3(
        "POST",
        "/v1/tasks/{task}:subscribe",
        Operation::SubscribeToTask,
    ),
    rest_0_3(
        "GET",
        "/v1/tasks/{task}:subscribe",
        Operation::SubscribeToTask,
    ),
    rest_0_3("GET", "/v1/tasks/{task}", Operation::GetTask),
    rest_0_3(
        "POST",
        "/v1/tasks/{task}/pushNotificationConfigs",
        Operation::CreateTaskPushNotificationConfig,
    ),
    rest_0_3(
        "GET",
        "/v1/tasks/{task}/pushNotificationConfigs",
        Operation::ListTaskPushNotificationConfigs,
    ),
    rest_0_3(
        "GET",
        "/v1/tasks/{task}/pushNotificationConfigs/{config}",
        Operation::GetTaskPushNotificationConfig,
    ),
    // A server of both versions may have this under 1.0 only, with `v1` as its tenant, and takes
    // it so when 1.0 is declared. What we declare with a 0.3 path is 0.3 or nothing.
    rest_0_3(
        "DELETE",
        "/v1/tasks/{task}/pushNotificationConfigs/{config}",
        Operation::DeleteTaskPushNotificationConfig,
    ),
    rest_0_3("GET", "/v1/card", Operation::GetExtendedAgentCard),
];
