//! What A2A says, in bytes and values.
//!
//! Answers: which operation is this, what does it name, what does a reply reveal, how is a
//! refusal said. May import: `source`. Invariants: parsing is bounded and never panics; bytes that
//! two honest parsers could read differently are refused; our answers hold nothing of a request but
//! its JSON-RPC id. Start reading at [`call`], then [`parse`] and [`render`].

mod byte_run;
pub mod call;
pub mod card;
pub mod content;
pub mod fault;
pub mod grpc;
pub mod head;
mod json_number;
mod json_scan;
mod json_text;
mod jsonrpc;
pub mod listing;
pub mod operation;
mod payload_json;
mod payload_proto;
pub mod proto_fields;
mod proto_write;
pub mod reader;
mod reply_errors;
mod reply_facts;
mod reply_grpc;
mod reply_head;
mod reply_json;
mod reply_names;
mod reply_proto;
mod reply_push;
mod reply_rest;
mod reply_skim;
pub mod request;
mod rest;
pub mod skill_rules;
pub mod splice;
mod sse;
mod stream_error;
pub mod strict_json;
pub mod strict_proto;
mod unary;
pub mod wire;

use bytes::Bytes;

pub use call::{Call, Malformed, ReadRules, SkillMention, SkillPlace};
pub use fault::Fault;
pub use grpc::GrpcStatus;
pub use head::Head;
pub use listing::ListQuery;
pub use operation::{Binding, Dialect, Operation, OperationGroup, Version, Versions};
pub use reader::{ArtifactNote, Event, EventKind, Expectation, Piece, Reader, TaskState};
pub use request::{Reading, Request};
pub use stream_error::render_event;

/// The media type of every answer of ours that has a JSON body.
pub const JSON: &str = "application/json";
/// The media type of every gRPC answer of ours.
pub const GRPC: &str = "application/grpc";

/// Reads one request of `binding`.
///
/// # Errors
/// [`Malformed`]: it is not one clear call that `rules` admits.
pub fn parse(
    binding: Binding,
    request: &Request<'_>,
    rules: &ReadRules,
) -> Result<Reading, Malformed> {
    let mut reading = match binding {
        Binding::JsonRpc => jsonrpc::read(request, rules),
        Binding::Rest => rest::read(request, rules),
        Binding::Grpc => grpc::read(request, rules),
    }?;
    let call = &mut reading.call;
    if call.operation.group() == OperationGroup::Messages
        && let Some(skills) = &rules.skills
    {
        skills.read_headers(request.headers, call)?;
        // The order of keys means nothing, so it must not show.
        call.skill_mentions
            .sort_by_key(|m| (m.selector.is_none(), m.selector, m.place));
    }
    Ok(reading)
}

/// Whether a path below an interface of `binding` is one of its operations', whatever the method.
/// `tenants` says whether it may begin with a tenant.
pub fn is_served(binding: Binding, below: &str, versions: Versions, tenants: bool) -> bool {
    match binding {
        Binding::JsonRpc => below.is_empty(),
        Binding::Rest => rest::is_served(below, versions, tenants),
        Binding::Grpc => grpc::is_served(below),
    }
}

/// The methods that a served path has, as `Allow` lists them.
pub fn allowed_methods(
    binding: Binding,
    below: &str,
    versions: Versions,
    tenants: bool,
) -> &'static str {
    match binding {
        Binding::JsonRpc | Binding::Grpc => "POST",
        Binding::Rest => rest::allowed(below, versions, tenants),
    }
}

/// The dialect in which a path that is not served is refused; `None` where nothing but the
/// operations' own paths belongs to the interface.
pub fn dialect_of_unserved(binding: Binding, below: &str, versions: Versions) -> Option<Dialect> {
    match binding {
        Binding::JsonRpc | Binding::Grpc => None,
        Binding::Rest => Some(rest::dialect_of(below, versions)),
    }
}

/// An answer of ours: what the caller gets instead of the agent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The media type.
    pub content_type: &'static str,
    /// The body; the same bytes for the same fault, dialect and id.
    pub body: Bytes,
    /// For gRPC: what the trailers say. The answer is these alone, with an empty body.
    pub grpc: Option<GrpcStatus>,
}

/// Says `fault` in the caller's dialect. `rpc_id` is the JSON text of the id to echo, `None` for
/// `null`. Without a dialect it is one document that both JSON bindings can read.
pub fn render(fault: Fault, dialect: Option<Dialect>, rpc_id: Option<&str>) -> Answer {
    let entry = fault.entry();
    match dialect {
        Some(Dialect {
            binding: Binding::JsonRpc,
            version,
        }) => Answer {
            status: entry.rpc_status,
            content_type: JSON,
            body: jsonrpc::render(entry, version, rpc_id),
            grpc: None,
        },
        Some(Dialect {
            binding: Binding::Rest,
            version,
        }) => Answer {
            status: entry.rest_status,
            content_type: JSON,
            body: rest::render(entry, version),
            grpc: None,
        },
        Some(Dialect {
            binding: Binding::Grpc,
            version,
        }) => Answer {
            status: 200,
            content_type: GRPC,
            body: Bytes::new(),
            grpc: Some(grpc::render(fault, version)),
        },
        None => Answer {
            status: entry.rest_status,
            content_type: JSON,
            body: Bytes::from_static(entry.plain.as_bytes()),
            grpc: None,
        },
    }
}

/// Like [`render`], but a refusal by policy has the status `deny_status` in JSON-RPC: some clients
/// show the reason only when it is 200.
pub fn render_with_status(
    fault: Fault,
    dialect: Option<Dialect>,
    rpc_id: Option<&str>,
    deny_status: u16,
) -> Answer {
    let mut answer = render(fault, dialect, rpc_id);
    if fault == Fault::NotAllowed
        && dialect.is_some_and(|dialect| dialect.binding == Binding::JsonRpc)
    {
        answer.status = deny_status;
    }
    answer
}

/// Says why a request of `binding` is malformed, echoing what id and version it had.
pub fn render_malformed(malformed: &Malformed, binding: Binding) -> Answer {
    render(
        malformed.fault,
        malformed.dialect(binding),
        malformed.rpc_id.as_deref(),
    )
}
