//! [`Fault`]: the closed set of answers we give instead of the agent's, in three error vocabularies.
//!
//! A2A 1.0 section 5.4; `a2a-protocol.md` e.1 and e.4.

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
    /// Push notifications are not available.
    PushNotificationNotSupported,
    /// The operation is not available.
    UnsupportedOperation,
    /// There is no extended card.
    ExtendedCardNotConfigured,
    /// Wrong media type, charset or content encoding: HTTP 415.
    ContentTypeNotSupported,
    /// Over the body limit: HTTP 413.
    TooLarge,
    /// Header block over our limits: HTTP 431.
    HeadersTooLarge,
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
