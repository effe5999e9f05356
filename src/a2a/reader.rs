//! Incremental reading of an agent's reply: bytes in, judged pieces out.

use super::operation::{Operation, Version};
use bytes::Bytes;

/// What kind of object an event or a unary result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A whole task.
    Task,
    /// A bare message.
    Message,
    /// A status update.
    StatusUpdate,
    /// An artifact update.
    ArtifactUpdate,
    /// A protocol error with its JSON-RPC code.
    Error(i64),
    /// A well-formed result of another shape (a push configuration, a list, a card, `null`).
    Other,
}

/// Task states (A2A 1.0 section 4.1.3), with both versions' spellings folded together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TaskState {
    Submitted,
    Working,
    InputRequired,
    Completed,
    Canceled,
    Failed,
    Rejected,
    AuthRequired,
    Unknown,
}

/// What is recorded about an artifact; never its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactNote {
    /// `artifactId`.
    pub id: Option<Box<str>>,
    /// `name`, cut at 64 characters.
    pub name: Option<Box<str>>,
    /// Media types of its parts.
    pub media_types: Vec<Box<str>>,
    /// Size in bytes of its JSON.
    pub bytes: u64,
}

/// What one event, or a whole unary reply, reveals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The kind.
    pub kind: EventKind,
    /// The task it is about.
    pub task_id: Option<Box<str>>,
    /// The context it is about.
    pub context_id: Option<Box<str>>,
    /// The state it reports.
    pub state: Option<TaskState>,
    /// Artifacts it carries.
    pub artifacts: Vec<ArtifactNote>,
}

/// One step of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Bytes that carry nothing to bind (comments, the middle of something oversize).
    Pass(Bytes),
    /// A whole, judged event: bind what it names, then release the bytes.
    Event(Bytes, Event),
    /// Something oversize began that cannot be judged whole: its ids were read, bind them, then
    /// release. The record says `response: unjudged`.
    Unjudged(Bytes, Event),
    /// Not well-formed for the binding: withhold it, answer with InvalidAgentResponse, end.
    /// The code is for the record.
    Malformed(&'static str),
}

/// What a reply is expected to be.
#[derive(Debug, Clone)]
pub struct Expectation {
    /// The version that was asked in.
    pub version: Version,
    /// The operation that was asked for.
    pub operation: Operation,
    /// The JSON-RPC id that was sent, as its bytes stood.
    pub rpc_id: Option<Box<str>>,
    /// Whether the reply came as `text/event-stream`.
    pub event_stream: bool,
    /// A unary reply up to this many bytes is held and judged (default 1 MiB).
    pub max_held: usize,
    /// An event up to this many bytes is held and judged (default 4 MiB).
    pub max_event: usize,
    /// Whether malformed replies are withheld (`reply_guard`); off: they pass, and are recorded.
    pub guard: bool,
}

/// Takes chunks of any size and yields [`Piece`]s; any chunking yields the same events.
pub struct Reader {
    _expectation: Expectation,
}

impl Reader {
    /// A reader for one reply.
    pub fn new(expectation: Expectation) -> Reader {
        Reader {
            _expectation: expectation,
        }
    }
}
