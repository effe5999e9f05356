//! [`Fault`]: the closed set of answers we give instead of the agent's, in three error vocabularies.
//!
//! A2A 1.0 section 5.4; `a2a-protocol.md` e.1 and e.4. [`Fault::entry`] is the table. Every text in
//! it is constant: nothing of a request ever gets into an answer but the JSON-RPC id.

/// Why a caller gets our answer instead of the agent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// No usable credential, or a bad one: HTTP 401.
    Unauthenticated,
    /// The request's credentials are malformed (`invalid_request`): HTTP 400.
    InvalidCredentials,
    /// The token lacks the grant of the surface (`insufficient_scope`): HTTP 403.
    InsufficientScope,
    /// Policy says no: HTTP 403.
    NotAllowed,
    /// The path leads nowhere for this caller: HTTP 404.
    NoSuchPath,
    /// The Host is not ours: HTTP 421.
    Misdirected,
    /// A task that is absent or another caller's.
    TaskNotFound,
    /// A context that is another caller's.
    ContextRefused,
    /// The bytes are not JSON.
    ParseError,
    /// The envelope is wrong.
    InvalidRequest,
    /// No such operation.
    MethodNotFound,
    /// Parameters of the wrong type, missing, or ambiguous.
    InvalidParams,
    /// Spelling and declared version disagree, or the interface does not offer the version.
    VersionNotSupported,
    /// A webhook that may not be set: wrong in form, not allowed, or not out on the Internet.
    WebhookRefused,
    /// The agent requires an extension that the caller does not declare.
    ExtensionSupportRequired,
    /// Push notifications are not available.
    PushNotificationNotSupported,
    /// The operation is not available.
    UnsupportedOperation,
    /// There is no extended card.
    ExtendedCardNotConfigured,
    /// Wrong media type, charset or content encoding: HTTP 415.
    ContentTypeNotSupported,
    /// A gRPC message that is compressed, or no protobuf.
    EncodingNotSupported,
    /// No such gRPC service, asked for its health.
    NoSuchService,
    /// Over the body limit: HTTP 413.
    TooLarge,
    /// Header block over our limits: HTTP 431.
    HeadersTooLarge,
    /// Too many requests of a kind: HTTP 429.
    RateLimited,
    /// The request is not acceptable HTTP: HTTP 400.
    BadRequest,
    /// The method does not fit the surface: HTTP 405.
    MethodNotAllowed,
    /// The caller was too slow with its body: HTTP 408.
    RequestTimeout,
    /// The agent's reply is not well-formed for its binding.
    InvalidAgentResponse,
    /// The agent could not be reached or broke off: HTTP 502.
    BadGateway,
    /// We cannot serve now (keys, journal, store, card): HTTP 503.
    Unavailable,
    /// The agent was too slow: HTTP 504.
    GatewayTimeout,
    /// Our own fault: HTTP 500.
    Internal,
}

/// One row of the fault table.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The JSON-RPC error code in 1.0.
    pub code: i32,
    /// The JSON-RPC error code in 0.3, which lacks some of 1.0's.
    pub code_0_3: i32,
    /// The HTTP status under a JSON-RPC error. What A2A itself defines goes in 200, since clients
    /// lose a typed error otherwise; what happens to the exchange keeps its own status.
    pub rpc_status: u16,
    /// The HTTP status in REST, and where no dialect is known yet.
    pub rest_status: u16,
    /// The name of the `google.rpc.Code` that goes with the REST status.
    pub status: &'static str,
    /// The gRPC status.
    pub grpc_status: u8,
    /// `ErrorInfo.reason`.
    pub reason: &'static str,
    /// `ErrorInfo.domain`: A2A's for its own reasons, else ours.
    pub domain: &'static str,
    /// The reason code that callers may rely on (`design.md` section 6).
    pub public_reason: &'static str,
    /// The member of the parameters that is at fault (`google.rpc.BadRequest`), where one is.
    pub field: Option<&'static str>,
    /// The text for people.
    pub message: &'static str,
    /// The name of the error in REST 0.3, whose shape no specification fixes: clients know A2A's own
    /// errors by it, and fall back on the status for others.
    pub error_type: &'static str,
    /// What follows the id in a 1.0 answer, to the end.
    pub(super) tail_1_0: &'static str,
    /// What follows the id in a 0.3 answer, to the end.
    pub(super) tail_0_3: &'static str,
    /// The whole document in REST 1.0: `google.rpc.Status` as AIP-193 writes it.
    pub(super) rest_1_0: &'static str,
    /// The whole document in REST 0.3: what any of its clients reads.
    pub(super) rest_0_3: &'static str,
    /// The whole document where no dialect is known yet.
    pub(super) plain: &'static str,
}

/// The `ErrorInfo` of a row, as JSON.
macro_rules! error_info {
    ($reason:literal, $domain:literal, $public:literal) => {
        concat!(
            r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":""#,
            $reason,
            r#"","domain":""#,
            $domain,
            r#"","metadata":{"code":""#,
            $public,
            r#""}}"#
        )
    };
}

/// The `BadRequest` of a row, as JSON.
macro_rules! bad_request {
    ($field:literal, $message:literal) => {
        concat!(
            r#",{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":""#,
            $field,
            r#"","description":""#,
            $message,
            r#""}]}"#
        )
    };
}

/// The field of a row that names one.
macro_rules! field {
    () => {
        None
    };
    ($field:literal) => {
        Some($field)
    };
}

/// Writes the table, with the constant part of every answer put together by the compiler.
macro_rules! table {
    ($($fault:ident: $code:literal, $code_0_3:literal, $rpc:literal, $rest:literal, $status:literal,
       $grpc:literal, $reason:literal, $domain:literal, $public:literal, $type:literal,
       $message:literal $(, field $field:literal)?;)*) => {
        impl Fault {
            /// Every fault.
            pub const ALL: &[Fault] = &[$(Fault::$fault),*];

            /// Its row.
            pub const fn entry(self) -> &'static Entry {
                match self {
                    $(Fault::$fault => &Entry {
                        code: $code,
                        code_0_3: $code_0_3,
                        rpc_status: $rpc,
                        rest_status: $rest,
                        status: $status,
                        grpc_status: $grpc,
                        reason: $reason,
                        domain: $domain,
                        public_reason: $public,
                        field: field!($($field)?),
                        message: $message,
                        error_type: $type,
                        tail_1_0: concat!(
                            r#","error":{"code":"#, $code, r#","message":""#, $message,
                            r#"","data":["#, error_info!($reason, $domain, $public),
                            $(bad_request!($field, $message),)? "]}}"
                        ),
                        tail_0_3: concat!(
                            r#","error":{"code":"#, $code_0_3, r#","message":""#, $message, r#""}}"#
                        ),
                        rest_1_0: concat!(
                            r#"{"error":{"code":"#, $rest, r#","status":""#, $status,
                            r#"","message":""#, $message,
                            r#"","details":["#, error_info!($reason, $domain, $public),
                            $(bad_request!($field, $message),)? "]}}"
                        ),
                        rest_0_3: concat!(
                            r#"{"type":""#, $type, r#"","code":"#, $code_0_3,
                            r#","message":""#, $message, r#""}"#
                        ),
                        plain: concat!(
                            r#"{"jsonrpc":"2.0","id":null,"error":{"code":"#, $code,
                            r#","status":""#, $status, r#"","message":""#, $message,
                            r#"","details":["#, error_info!($reason, $domain, $public),
                            $(bad_request!($field, $message),)? "]}}"
                        ),
                    },)*
                }
            }
        }
    };
}

// Fault: code in 1.0, in 0.3, HTTP status in JSON-RPC, in REST, google.rpc.Code, gRPC status,
// reason, domain, public reason code, name in REST 0.3, message, and the field at fault if there is
// one.
table! {
    Unauthenticated: -31401, -31401, 401, 401, "UNAUTHENTICATED", 16,
        "UNAUTHENTICATED", "portcullis", "unauthenticated", "UnauthenticatedError",
        "authentication is required";
    InvalidCredentials: -32600, -32600, 400, 400, "INVALID_ARGUMENT", 3,
        "INVALID_CREDENTIALS", "portcullis", "malformed", "InvalidRequestError",
        "the credentials of the request are malformed";
    InsufficientScope: -31403, -31403, 403, 403, "PERMISSION_DENIED", 7,
        "INSUFFICIENT_SCOPE", "portcullis", "insufficient_scope", "PermissionDeniedError",
        "the token does not reach this far";
    NotAllowed: -31403, -31403, 403, 403, "PERMISSION_DENIED", 7,
        "UNAUTHORIZED", "portcullis", "not_allowed", "PermissionDeniedError",
        "the call is not allowed";
    NoSuchPath: -32601, -32601, 404, 404, "NOT_FOUND", 12,
        "NOT_FOUND", "portcullis", "not_found", "MethodNotFoundError",
        "nothing is here";
    Misdirected: -32600, -32600, 421, 421, "FAILED_PRECONDITION", 9,
        "MISDIRECTED", "portcullis", "not_found", "MisdirectedError",
        "this host is not served here";
    TaskNotFound: -32001, -32001, 200, 404, "NOT_FOUND", 5,
        "TASK_NOT_FOUND", "a2a-protocol.org", "not_found", "TaskNotFoundError",
        "task not found";
    ContextRefused: -32602, -32602, 200, 400, "INVALID_ARGUMENT", 3,
        "CONTEXT_REFUSED", "portcullis", "not_found", "InvalidParamsError",
        "the context cannot be used";
    ParseError: -32700, -32700, 200, 400, "INVALID_ARGUMENT", 3,
        "PARSE_ERROR", "portcullis", "malformed", "JSONParseError",
        "the body is not valid JSON";
    InvalidRequest: -32600, -32600, 200, 400, "INVALID_ARGUMENT", 3,
        "INVALID_REQUEST", "portcullis", "malformed", "InvalidRequestError",
        "the request is not valid";
    MethodNotFound: -32601, -32601, 200, 404, "UNIMPLEMENTED", 12,
        "METHOD_NOT_FOUND", "portcullis", "not_found", "MethodNotFoundError",
        "method not found";
    InvalidParams: -32602, -32602, 200, 400, "INVALID_ARGUMENT", 3,
        "INVALID_PARAMS", "portcullis", "malformed", "InvalidParamsError",
        "the parameters are not valid";
    VersionNotSupported: -32009, -32600, 200, 400, "FAILED_PRECONDITION", 9,
        "VERSION_NOT_SUPPORTED", "a2a-protocol.org", "malformed", "VersionNotSupportedError",
        "the protocol version is not supported, or does not agree with the method";
    WebhookRefused: -32602, -32602, 200, 400, "INVALID_ARGUMENT", 3,
        "WEBHOOK_REFUSED", "portcullis", "not_allowed", "InvalidParamsError",
        "push notifications cannot be delivered to this URL", field "url";
    ExtensionSupportRequired: -32008, -32600, 200, 400, "FAILED_PRECONDITION", 9,
        "EXTENSION_SUPPORT_REQUIRED", "a2a-protocol.org", "malformed", "ExtensionSupportRequiredError",
        "the agent requires an extension that the request does not declare";
    PushNotificationNotSupported: -32003, -32003, 200, 400, "FAILED_PRECONDITION", 9,
        "PUSH_NOTIFICATION_NOT_SUPPORTED", "a2a-protocol.org", "not_allowed", "PushNotificationNotSupportedError",
        "push notifications are not supported";
    UnsupportedOperation: -32004, -32004, 200, 400, "FAILED_PRECONDITION", 9,
        "UNSUPPORTED_OPERATION", "a2a-protocol.org", "not_allowed", "UnsupportedOperationError",
        "the operation is not supported";
    ExtendedCardNotConfigured: -32007, -32007, 200, 400, "FAILED_PRECONDITION", 9,
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED", "a2a-protocol.org", "not_found", "ExtendedAgentCardNotConfiguredError",
        "there is no extended agent card";
    ContentTypeNotSupported: -32005, -32005, 415, 415, "INVALID_ARGUMENT", 3,
        "CONTENT_TYPE_NOT_SUPPORTED", "a2a-protocol.org", "malformed", "ContentTypeNotSupportedError",
        "the body must be application/json in UTF-8 without content encoding";
    EncodingNotSupported: -32005, -32005, 415, 415, "UNIMPLEMENTED", 12,
        "ENCODING_NOT_SUPPORTED", "portcullis", "malformed", "ContentTypeNotSupportedError",
        "messages must be protobuf without compression";
    NoSuchService: -32601, -32601, 404, 404, "NOT_FOUND", 5,
        "NO_SUCH_SERVICE", "portcullis", "not_found", "NotFoundError",
        "no such service";
    TooLarge: -32600, -32600, 413, 413, "RESOURCE_EXHAUSTED", 8,
        "TOO_LARGE", "portcullis", "too_large", "TooLargeError",
        "the body is too large";
    HeadersTooLarge: -32600, -32600, 431, 431, "RESOURCE_EXHAUSTED", 8,
        "HEADERS_TOO_LARGE", "portcullis", "too_large", "HeadersTooLargeError",
        "the header is too large";
    RateLimited: -32603, -32603, 429, 429, "RESOURCE_EXHAUSTED", 8,
        "RATE_LIMITED", "portcullis", "rate_limited", "RateLimitedError",
        "too many requests; try again later";
    BadRequest: -32600, -32600, 400, 400, "INVALID_ARGUMENT", 3,
        "BAD_REQUEST", "portcullis", "malformed", "InvalidRequestError",
        "the request is not valid HTTP";
    MethodNotAllowed: -32600, -32600, 405, 405, "UNIMPLEMENTED", 12,
        "METHOD_NOT_ALLOWED", "portcullis", "malformed", "MethodNotAllowedError",
        "the HTTP method is not allowed here";
    RequestTimeout: -32600, -32600, 408, 408, "DEADLINE_EXCEEDED", 4,
        "REQUEST_TIMEOUT", "portcullis", "unavailable", "RequestTimeoutError",
        "the request did not arrive in time";
    InvalidAgentResponse: -32006, -32006, 200, 500, "INTERNAL", 13,
        "INVALID_AGENT_RESPONSE", "a2a-protocol.org", "bad_gateway", "InvalidAgentResponseError",
        "the agent gave an invalid response";
    BadGateway: -32603, -32603, 502, 502, "UNAVAILABLE", 14,
        "BAD_GATEWAY", "portcullis", "bad_gateway", "BadGatewayError",
        "the agent could not be reached";
    Unavailable: -32603, -32603, 503, 503, "UNAVAILABLE", 14,
        "UNAVAILABLE", "portcullis", "unavailable", "UnavailableError",
        "the service is not available now";
    GatewayTimeout: -32603, -32603, 504, 504, "DEADLINE_EXCEEDED", 4,
        "GATEWAY_TIMEOUT", "portcullis", "bad_gateway", "GatewayTimeoutError",
        "the agent did not answer in time";
    Internal: -32603, -32603, 500, 500, "INTERNAL", 13,
        "INTERNAL", "portcullis", "unavailable", "InternalError",
        "an internal error occurred";
}
