//! The records of the journal (`design.md` section 9), as types that borrow from the request.
//!
//! A line is one JSON object: `v`, `seq` and `prev` from the writer, then what [`Record::members`]
//! gives. Members may be added in later versions, so readers must ignore those they do not know.

mod decision;
mod label;
mod other;
mod value;

pub use decision::{Decision, Near, Shadows};
pub use label::{
    Assurance, AttemptError, ConfigResult, Delivery, Effect, Ended, Grant, Judged, NoteTopic,
    Proof, Purpose, Reached, SkillSource, Stage, Surface, Trigger,
};
pub use other::{
    CardChanged, Checkpoint, ConfigChange, ConfigFile, Fetch, Note, Refusals, Unclosed, schema,
};
pub use value::{
    Actors, ClaimValue, Claims, Counts, Id, Ids, Millis, NoClaims, Sha256, Text, Time,
    event_kind_label, state_label,
};

use super::redact::Fingerprint;
use crate::a2a::reader::{ArtifactNote, EventKind, TaskState};
use crate::a2a::{Binding, Operation, Version};
use schemars::JsonSchema;
use serde::Serialize;
use std::net::SocketAddr;

/// One record.
// A record lives on the stack for the one call that serialises it; boxing would cost more.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record<'a> {
    /// A call is about to be forwarded.
    Intent(Intent<'a>),
    /// How a forwarded call ended.
    Outcome(Outcome<'a>),
    /// A call was refused.
    Refusal(Refusal<'a>),
    /// Refusals that were counted instead of recorded one by one.
    Refusals(Refusals<'a>),
    /// Something that we fetched for ourselves.
    Fetch(Fetch<'a>),
    /// The configuration changed, or was to.
    Config(ConfigChange<'a>),
    /// An agent's card changed.
    CardChanged(CardChanged<'a>),
    /// A signed statement of the chain's length and head.
    Checkpoint(Checkpoint<'a>),
    /// The journal about itself.
    Note(Note<'a>),
}

impl Record<'_> {
    /// Its `kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Record::Intent(_) => "intent",
            Record::Outcome(_) => "outcome",
            Record::Refusal(_) => "refusal",
            Record::Refusals(_) => "refusals",
            Record::Fetch(_) => "fetch",
            Record::Config(_) => "config",
            Record::CardChanged(_) => "card_changed",
            Record::Checkpoint(_) => "checkpoint",
            Record::Note(_) => "note",
        }
    }

    /// The record as a JSON object's members, without braces: what the writer puts behind its own.
    pub fn members(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1536);
        // Every key is a string and writing to a vector cannot fail, so this only fails if a type
        // above is changed to something that JSON lacks; an empty object then stays well-formed.
        if serde_json::to_writer(&mut bytes, self).is_err() {
            return Vec::new();
        }
        bytes.pop();
        bytes.remove(0);
        bytes
    }
}

/// What every record has.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Head<'a> {
    /// When.
    pub time: Time,
    /// The gateway process that writes; configured or made at start.
    pub instance: &'a str,
    /// The configuration generation in force for it.
    pub generation: u64,
    /// Hex SHA-256 of that configuration with its policies.
    pub policy_digest: &'a str,
}

/// Who asked for what, of what, and what was decided: shared by intents and refusals.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Asked<'a> {
    /// The request's ULID, also sent to agent and caller.
    pub request_id: &'a str,
    /// The W3C trace id: the caller's, or the one that was begun for the request.
    pub trace_id: &'a str,
    /// Where it came from.
    pub source: Source<'a>,
    /// The verified caller; absent before verification (LG-3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller<'a>>,
    /// The agent's configured name, when the path leads to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<&'a str>,
    /// What the path leads to.
    pub surface: Surface,
    /// The binding.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "value::binding"
    )]
    #[schemars(schema_with = "value::binding_schema")]
    pub binding: Option<Binding>,
    /// The protocol version.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "value::version"
    )]
    #[schemars(schema_with = "value::version_schema")]
    pub version: Option<Version>,
    /// The operation, by its 1.0 name.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "value::operation"
    )]
    #[schemars(schema_with = "value::operation_schema")]
    pub operation: Option<Operation>,
    /// The tenant that the agent is told, where it has tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Id<'a>>,
    /// The skill, for messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<Skill<'a>>,
    /// `message.messageId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Id<'a>>,
    /// The task that the call names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<Id<'a>>,
    /// The context that the call names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_id: Option<Id<'a>>,
    /// `message.referenceTaskIds`.
    #[serde(skip_serializing_if = "Ids::is_empty")]
    pub reference_task_ids: Ids<'a>,
    /// `message.extensions`.
    #[serde(skip_serializing_if = "Ids::is_empty")]
    pub extensions: Ids<'a>,
    /// Extensions that the caller declares in its header.
    #[serde(skip_serializing_if = "Ids::is_empty")]
    pub declared_extensions: Ids<'a>,
    /// The push configuration that the call names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push_config_id: Option<Id<'a>>,
    /// Hosts of the webhooks that the call sets, each with its port where that is not 443; never
    /// more of a webhook than that.
    #[serde(skip_serializing_if = "Ids::is_empty")]
    pub webhook_hosts: Ids<'a>,
    /// What was decided.
    pub decision: Decision<'a>,
    /// The request itself.
    pub request: Request<'a>,
}

/// A call is about to be forwarded: written before its first byte leaves (I-2).
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Intent<'a> {
    /// When and under what.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// Who asked for what.
    #[serde(flatten)]
    pub asked: Asked<'a>,
}

/// A call was refused; nothing of it reached an agent (I-1).
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Refusal<'a> {
    /// When and under what.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// Who asked for what.
    #[serde(flatten)]
    pub asked: Asked<'a>,
    /// The HTTP status that the caller got.
    pub http_status: u16,
    /// The public reason code that the caller got.
    pub fault: &'a str,
    /// Why a token was refused: a rule number or code of the closed set (LG-3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_reason: Option<&'a str>,
    /// What went wrong after the decision had allowed the call: a code of the closed private set,
    /// such as `panic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    /// Always `not_attempted` and `no`.
    #[serde(flatten)]
    pub reach: Reach,
}

/// [`Delivery`] with the [`Reached`] that follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Reach {
    delivery: Delivery,
    reached: Reached,
}

impl Reach {
    /// Nothing was sent: of every refusal.
    pub const UNTOUCHED: Reach = Reach {
        delivery: Delivery::NotAttempted,
        reached: Reached::No,
    };
}

impl From<Delivery> for Reach {
    fn from(delivery: Delivery) -> Reach {
        Reach {
            delivery,
            reached: delivery.reached(),
        }
    }
}

/// Where a request came from.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Source<'a> {
    /// The peer's address and port; where addresses are hidden, a token or a network.
    #[schemars(with = "String")]
    pub addr: Address<'a>,
    /// The listener's configured name.
    pub listener: &'a str,
    /// SHA-256 of the DER of the client certificate of the connection, when it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Sha256>,
}

/// Where a request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Address<'a> {
    /// This address and port.
    Plain(SocketAddr),
    /// What stands for it.
    Hidden(&'a str),
}

/// A verified caller.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Caller<'a> {
    /// The issuer's configured name, not its URL.
    pub issuer: &'a str,
    /// `sub`.
    pub subject: Id<'a>,
    /// `client_id` or its equivalent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Id<'a>>,
    /// Who acts for it, outermost first.
    #[serde(skip_serializing_if = "Actors::is_empty")]
    pub actors: Actors<'a>,
    /// Which token it was.
    pub fingerprint: Fingerprint,
    /// The reach of the token.
    pub grant: Grant,
    /// What proved that the token is the caller's own.
    pub proof: Proof,
    /// The pieces of its `scope`; `[]` when there are none.
    pub scopes: Ids<'a>,
    /// The claims that policy used.
    #[serde(skip_serializing_if = "Claims::is_empty")]
    pub claims: Claims<'a>,
    /// The claims that policy used and that have no value: `missing`, `null` or `wrong_type`.
    #[serde(skip_serializing_if = "NoClaims::is_empty")]
    pub no_claims: NoClaims<'a>,
}

/// The skill of a message.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Skill<'a> {
    /// Its id; absent when it could not be established.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Text<'a>>,
    /// Where it was read.
    pub source: SkillSource,
    /// How much it is worth; absent without an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assurance: Option<Assurance>,
}

/// The request as bytes.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Request<'a> {
    /// The HTTP method; `other` for one that HTTP does not know.
    pub method: Text<'a>,
    /// The canonical path, only where it leads to an agent: other paths are a stranger's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Id<'a>>,
    /// Length of the body in bytes.
    pub bytes: u64,
    /// SHA-256 of the body, where it was computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    /// The body that was forwarded, when something was put into the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<Forwarded>,
}

/// A body that is not the caller's own bytes.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Forwarded {
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: Sha256,
}

/// How a forwarded call ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Outcome<'a> {
    /// When and under what.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// The request's ULID.
    pub request_id: &'a str,
    /// The sequence number of its intent.
    pub intent: u64,
    /// The agent's configured name.
    pub agent: &'a str,
    /// The operation, by its 1.0 name.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "value::operation"
    )]
    #[schemars(schema_with = "value::operation_schema")]
    pub operation: Option<Operation>,
    /// How far it got.
    #[serde(flatten)]
    pub reach: Reach,
    /// Every attempt, in order.
    pub attempts: &'a [Attempt<'a>],
    /// What came back, when a response header came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Response<'a>>,
    /// The task that the reply named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<Id<'a>>,
    /// The context that the reply named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_id: Option<Id<'a>>,
    /// Artifacts of the reply, never their content; at most 32.
    #[serde(skip_serializing_if = "Artifacts::is_empty")]
    pub artifacts: Artifacts<'a>,
    /// How the exchange ended.
    pub ended: Ended,
    /// How long it took.
    pub ms: Timing,
}

/// One try to hand a call to a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Attempt<'a> {
    /// The peer's address and port as configured.
    pub peer: std::borrow::Cow<'a, str>,
    /// Whether the connection came from the pool.
    pub reused: bool,
    /// Its start, since the request's start.
    pub started_ms: Millis,
    /// How long it took.
    pub ms: Millis,
    /// The last stage that it entered.
    pub stage: Stage,
    /// Body bytes that our kernel took.
    pub bytes_sent: u64,
    /// Body bytes that there were.
    pub body_len: u64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<AttemptError>,
    /// What TCP knew, for failed HTTP/1.1 attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Tcp>,
}

/// What the kernel knew about a connection: evidence, not proof (acknowledged is not processed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Tcp {
    /// `tcpi_state`.
    pub state: u8,
    /// `tcpi_bytes_sent`, retransmissions included.
    pub bytes_sent: u64,
    /// `tcpi_bytes_acked`.
    pub bytes_acked: u64,
    /// `tcpi_notsent_bytes`.
    pub notsent: u64,
}

/// What came back from an agent.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Response<'a> {
    /// The agent's HTTP status.
    pub http_status: u16,
    /// The agent's `grpc-status`, in gRPC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc_status: Option<u32>,
    /// The JSON-RPC code of the agent's error; in the other bindings the code that stands for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpc_code: Option<i64>,
    /// The kind of the (last) event or result.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "value::event_kind"
    )]
    #[schemars(schema_with = "value::event_kind_schema")]
    pub kind: Option<EventKind>,
    /// Task states in the order they were seen; at most 32.
    #[serde(serialize_with = "value::states")]
    #[schemars(schema_with = "value::states_schema")]
    pub states: &'a [TaskState],
    /// Extensions that the reply's header names as active; at most 32.
    #[serde(skip_serializing_if = "Ids::is_empty")]
    pub extensions: Ids<'a>,
    /// Body bytes that came from the agent.
    pub bytes: u64,
    /// Events of a stream.
    pub events: u64,
    /// Whether it was well-formed.
    pub judged: Judged,
    /// What was malformed: a code of the closed set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub malformed: Option<&'a str>,
    /// The reply said no length, so its end cannot be told from a broken connection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended_by_close: bool,
}

/// Durations of one call.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Timing {
    /// From the request's header to the reply's last byte.
    pub total: Millis,
    /// From the request's header to the agent's response header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_response: Option<Millis>,
    /// What we added: everything before the first byte left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Millis>,
}

/// Artifacts of a reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct Artifacts<'a>(pub &'a [ArtifactNote]);

#[cfg(test)]
mod tests;
