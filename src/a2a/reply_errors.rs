//! What an agent's error is as a JSON-RPC code, so that records are the same in all bindings.
//!
//! `a2a-protocol.md` e.1 and e.2. Where an error names its reason that decides; else its status,
//! which is less exact.

use super::operation::{Operation, Version};

/// Reason, name of the type without its suffix `Error`, code.
type Row = (&'static str, &'static str, i64);

const ROWS: [Row; 16] = [
    ("TASK_NOT_FOUND", "TaskNotFound", -32001),
    ("TASK_NOT_CANCELABLE", "TaskNotCancelable", -32002),
    (
        "PUSH_NOTIFICATION_NOT_SUPPORTED",
        "PushNotificationNotSupported",
        -32003,
    ),
    ("UNSUPPORTED_OPERATION", "UnsupportedOperation", -32004),
    (
        "CONTENT_TYPE_NOT_SUPPORTED",
        "ContentTypeNotSupported",
        -32005,
    ),
    // Some versions of the Rust server.
    (
        "UNSUPPORTED_CONTENT_TYPE",
        "ContentTypeNotSupported",
        -32005,
    ),
    ("INVALID_AGENT_RESPONSE", "InvalidAgentResponse", -32006),
    (
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
        "AuthenticatedExtendedCardNotConfigured",
        -32007,
    ),
    (
        "EXTENSION_SUPPORT_REQUIRED",
        "ExtensionSupportRequired",
        -32008,
    ),
    ("VERSION_NOT_SUPPORTED", "VersionNotSupported", -32009),
    ("TASK_GENERATION_MISMATCH", "TaskGenerationMismatch", -32010),
    ("PARSE_ERROR", "JSONParse", -32700),
    ("INVALID_REQUEST", "InvalidRequest", -32600),
    ("METHOD_NOT_FOUND", "MethodNotFound", -32601),
    ("INVALID_PARAMS", "InvalidParams", -32602),
    ("INTERNAL_ERROR", "Internal", -32603),
];

/// The code that an `ErrorInfo.reason` stands for.
pub(super) fn code_of_reason(reason: &str) -> Option<i64> {
    ROWS.iter().find(|row| row.0 == reason).map(|row| row.2)
}

/// The code that the name of an error's type stands for (0.3).
pub(super) fn code_of_type(name: &str) -> Option<i64> {
    let name = name.strip_suffix("Error")?;
    ROWS.iter().find(|row| row.1 == name).map(|row| row.2)
}

/// The code that an HTTP status stands for when nothing else is said.
///
/// The statuses of 1.0 are those of the specification (section 5.4), those of 0.3 the Python SDK's.
pub(super) fn code_of_status(status: u16, operation: Operation, version: Version) -> i64 {
    match (status, version) {
        (400 | 422, _) => -32602,
        (404, _) if operation.names_a_task() => -32001,
        (404 | 405, _) => -32601,
        (409, Version::V0_3) => -32002,
        (409, Version::V1_0) => -32010,
        (413 | 414 | 431, _) => -32600,
        (415, _) => -32005,
        (501, _) => -32004,
        (502, _) => -32006,
        _ => -32603,
    }
}

/// The code that a gRPC status stands for when nothing else is said.
pub(super) fn code_of_grpc(status: u32, operation: Operation) -> i64 {
    match status {
        3 => -32602,
        5 if operation.names_a_task() => -32001,
        5 | 12 => -32601,
        9 => -32004,
        10 => -32010,
        _ => -32603,
    }
}
