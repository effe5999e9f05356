//! Incremental reading of an agent's reply: bytes in, judged pieces out.

use super::operation::{Binding, Dialect, Operation};
use super::reply_facts::ExpectedId;
use super::reply_grpc::GrpcReply;
use super::reply_json::{Asked, Codes, Form, Probe};
use super::sse::EventStream;
use super::unary::Unary;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;

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

impl TaskState {
    /// The state that `word` spells in either version (`a2a-protocol.md` i.2), else `Unknown`.
    pub fn parse(word: &str) -> TaskState {
        match word.strip_prefix("TASK_STATE_").unwrap_or(word) {
            "submitted" | "SUBMITTED" => TaskState::Submitted,
            "working" | "WORKING" => TaskState::Working,
            "input-required" | "INPUT_REQUIRED" => TaskState::InputRequired,
            "completed" | "COMPLETED" => TaskState::Completed,
            "canceled" | "CANCELED" | "cancelled" | "CANCELLED" => TaskState::Canceled,
            "failed" | "FAILED" => TaskState::Failed,
            "rejected" | "REJECTED" => TaskState::Rejected,
            "auth-required" | "AUTH_REQUIRED" => TaskState::AuthRequired,
            _ => TaskState::Unknown,
        }
    }
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

impl Event {
    /// An event that names nothing.
    pub fn of(kind: EventKind) -> Event {
        Event {
            kind,
            task_id: None,
            context_id: None,
            state: None,
            artifacts: Vec::new(),
        }
    }
}

/// One step of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Bytes that carry nothing to bind, and stand between events: comments.
    Pass(Bytes),
    /// A part of an event that is too large to be held; nothing may be said in its midst.
    Part(Bytes),
    /// A whole, judged event: bind what it names, then release the bytes. They are empty when a
    /// reply without a body is an answer.
    Event(Bytes, Event),
    /// The end of something oversize, whose beginning went out as [`Piece::Part`]: bind what it
    /// names, then release these last bytes. The record says `response: unjudged`. The bytes are
    /// empty when it broke off or proved malformed after a part had gone out.
    Unjudged(Bytes, Event),
    /// Not well-formed for the binding: withhold it, answer with InvalidAgentResponse, end.
    /// The code is for the record.
    Malformed(&'static str),
}

/// What a reply is expected to be.
#[derive(Debug, Clone)]
pub struct Expectation {
    /// The dialect that was asked in.
    pub dialect: Dialect,
    /// The HTTP status of the reply.
    pub http_status: u16,
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
///
/// The bytes of all pieces, one after another, are the reply's, unless a [`Piece::Malformed`]
/// ended it. Memory is bounded by `max_held` or `max_event` and one chunk.
///
/// - **Unary**: up to `max_held` bytes the one piece is the whole reply, at the end. Beyond that
///   chunks pass as they come, but the one in which the JSON document closes waits for
///   [`Reader::finish`] and comes with what the whole named. Webhooks never pass so: they may hold
///   secrets, and it must be known first whose they are.
/// - **Event stream**: an event comes when its blank line has, with all its lines. Lines that
///   stand alone between events (comments) pass when they are whole. Of an event over `max_event`
///   all but the blank line passes before it is judged.
/// - **gRPC**: a message comes when it is whole, with its prefix; that of a unary call waits for
///   the trailers. An error in the trailers is an event without bytes.
///
/// With `guard: false` nothing is withheld: what is malformed comes as an event if it named a
/// task or context before the flaw, else as [`Piece::Pass`]; [`Reader::malformed`] tells of it.
#[derive(Debug)]
pub struct Reader {
    framing: Framing,
    flaws: Flaws,
}

// One reader lives for one reply; boxing would cost an allocation for nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
enum Framing {
    Unary(Unary, Probe),
    EventStream(EventStream, Probe),
    Grpc(GrpcReply),
}

impl Reader {
    /// A reader for one reply.
    pub fn new(expectation: Expectation) -> Reader {
        let codes = match expectation.event_stream {
            true => Codes {
                not_json: "non_json_event",
                cut_off: "non_json_event",
            },
            false => Codes {
                not_json: "not_json",
                cut_off: "truncated",
            },
        };
        let form = match expectation.dialect.binding {
            Binding::JsonRpc => Form::Envelope(ExpectedId::new(expectation.rpc_id.as_deref())),
            Binding::Rest if expectation.event_stream => Form::Event,
            Binding::Rest if expectation.http_status >= 400 => Form::Fault(expectation.http_status),
            Binding::Rest => Form::Result,
            Binding::Grpc => return Reader::grpc(&expectation),
        };
        let asked = Asked {
            operation: expectation.operation,
            version: expectation.dialect.version,
            form,
            event_stream: expectation.event_stream,
            http_status: expectation.http_status,
        };
        let probe = Probe::new(asked, codes);
        let framing = match expectation.event_stream {
            true => Framing::EventStream(EventStream::new(expectation.max_event), probe),
            false => Framing::Unary(
                Unary::new(expectation.max_held, expectation.may_be_empty()),
                probe,
            ),
        };
        Reader::of(framing, expectation.guard)
    }

    fn grpc(expectation: &Expectation) -> Reader {
        let operation = expectation.operation;
        let longest = match operation.is_streaming() {
            true => expectation.max_event,
            false => expectation.max_held,
        };
        let reply = GrpcReply::new(operation, expectation.dialect.version, longest);
        Reader::of(Framing::Grpc(reply), expectation.guard)
    }

    fn of(framing: Framing, guard: bool) -> Reader {
        Reader {
            framing,
            flaws: Flaws { guard, first: None },
        }
    }

    /// Reads one chunk; pieces are added to `out` in the order in which they are to be sent.
    ///
    /// After a [`Piece::Malformed`] everything is swallowed.
    pub fn push(&mut self, chunk: Bytes, out: &mut Vec<Piece>) {
        if chunk.is_empty() || self.flaws.ended() {
            return;
        }
        let flaws = &mut self.flaws;
        match &mut self.framing {
            Framing::Unary(unary, probe) => unary.push(chunk, probe, flaws, out),
            Framing::EventStream(stream, probe) => stream.push(chunk, probe, flaws, out),
            Framing::Grpc(reply) => reply.push(chunk, flaws, out),
        }
    }

    /// The reply has ended, properly or not; what was held comes out. To be called once.
    ///
    /// An event without its blank line is malformed: some clients discard it, others do not. If a
    /// part of it was out already, what it named is told.
    pub fn finish(&mut self, out: &mut Vec<Piece>) {
        if self.flaws.ended() {
            return;
        }
        let flaws = &mut self.flaws;
        match &mut self.framing {
            Framing::Unary(unary, probe) => unary.finish(probe, flaws, out),
            Framing::EventStream(stream, probe) => stream.finish(probe, flaws, out),
            Framing::Grpc(reply) => reply.finish(flaws, out),
        }
    }

    /// What followed the body of a gRPC reply, or its head where that is all there is. To be called
    /// once, behind [`Reader::finish`]; the message of a unary reply comes out only then.
    pub fn trailers(&mut self, trailers: &HeaderMap, out: &mut Vec<Piece>) {
        if self.flaws.ended() {
            return;
        }
        match &mut self.framing {
            Framing::Grpc(reply) => reply.trailers(trailers, &mut self.flaws, out),
            Framing::Unary(..) | Framing::EventStream(..) => {}
        }
    }

    /// The agent's `grpc-status`, once it came.
    pub fn grpc_status(&self) -> Option<u32> {
        match &self.framing {
            Framing::Grpc(reply) => reply.status(),
            Framing::Unary(..) | Framing::EventStream(..) => None,
        }
    }

    /// The code of the first malformed thing, withheld or not.
    ///
    /// One of `empty`, `not_json`, `truncated`, `non_json_event`, `not_event_stream`, `bom`,
    /// `not_object`, `too_deep`, `no_result`, `result_and_error`, `bad_result`, `other_version`,
    /// `no_id`, `bad_error`, `bad_jsonrpc`, `bad_id`, `id_mismatch`, `ambiguous`, `not_a_stream`,
    /// `result_with_error_status`, `error_with_success_status`, `other_task` (webhooks of two tasks),
    /// `oversize_reply`; in gRPC also `not_protobuf`,
    /// `compressed_message`, `bad_frame`, `no_message`, `second_message`, `no_grpc_status`,
    /// `bad_grpc_status`, `agent_unauthenticated`.
    pub fn malformed(&self) -> Option<&'static str> {
        self.flaws.first
    }
}

/// What was wrong with a reply, and whether that ends it.
#[derive(Debug)]
pub(super) struct Flaws {
    guard: bool,
    first: Option<&'static str>,
}

impl Flaws {
    /// Notes a flaw. True when the guard ends the reply with it; the piece is then in `out`.
    pub(super) fn end(&mut self, code: &'static str, out: &mut Vec<Piece>) -> bool {
        self.first.get_or_insert(code);
        if self.guard {
            out.push(Piece::Malformed(code));
        }
        self.guard
    }

    /// Whether malformed things are withheld.
    pub(super) fn guards(&self) -> bool {
        self.guard
    }

    /// Whether a flaw has ended the reply.
    pub(super) fn ended(&self) -> bool {
        self.guard && self.first.is_some()
    }
}

/// Bytes that wait; those of a single chunk are not copied.
#[derive(Debug, Default)]
pub(super) struct Hold {
    one: Bytes,
    many: BytesMut,
}

impl Hold {
    pub(super) fn len(&self) -> usize {
        self.one.len() + self.many.len()
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        if self.len() == 0 {
            self.one = bytes;
            return;
        }
        if !self.one.is_empty() {
            let first = std::mem::take(&mut self.one);
            self.many.extend_from_slice(&first);
        }
        self.many.extend_from_slice(&bytes);
    }

    pub(super) fn take(&mut self) -> Bytes {
        if self.many.is_empty() {
            std::mem::take(&mut self.one)
        } else {
            self.many.split().freeze()
        }
    }

    /// Everything held and `bytes` behind it.
    pub(super) fn take_with(&mut self, bytes: Bytes) -> Bytes {
        self.push(bytes);
        self.take()
    }
}
