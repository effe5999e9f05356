//! [`Call`]: one operation request, normalised from any binding and version.

use super::fault::Fault;
use super::listing::ListQuery;
use super::operation::{Binding, Dialect, Operation, Version, Versions};
use super::skill_rules::SkillRules;
use super::splice::{JsonSpots, Spots};
use std::sync::Arc;

/// Everything of a request that is worth authorising or recording (`design.md` section 6).
///
/// The caller's bytes are forwarded unchanged; this is a projection, never a source of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// How it was said.
    pub dialect: Dialect,
    /// What was said.
    pub operation: Operation,
    /// The JSON-RPC `id` exactly as its bytes stood, to echo; `None` for bindings without one.
    pub rpc_id: Option<Box<str>>,
    /// `tenant` (1.0 only).
    pub tenant: Option<Box<str>>,
    /// `message.messageId`.
    pub message_id: Option<Box<str>>,
    /// The task the call names: `message.taskId`, or `id`/`taskId` of the task operations.
    pub task_id: Option<Box<str>>,
    /// `message.contextId`, or the filter of ListTasks.
    pub context_id: Option<Box<str>>,
    /// The push configuration that the call names, by operation or inline.
    pub push_config_id: Option<Box<str>>,
    /// `message.referenceTaskIds`.
    pub reference_task_ids: Vec<Box<str>>,
    /// Whether a send carries an inline push configuration, under either version's name.
    pub inline_push: bool,
    /// Every webhook URL, inline or by operation.
    pub push_urls: Vec<Box<str>>,
    /// Every file URL in message parts.
    pub file_urls: Vec<Box<str>>,
    /// `message.extensions`.
    pub extensions: Vec<Box<str>>,
    /// Everything that may name a skill; empty without [`ReadRules::skills`].
    pub skill_mentions: Vec<SkillMention>,
    /// Of ListTasks: which part of the list.
    pub list: Option<Box<ListQuery>>,
    /// Where something can be put in; only when [`ReadRules::stamp`] or [`ReadRules::tenants`]
    /// asks for it.
    pub spots: Option<Box<Spots>>,
}

impl Call {
    /// A call that names nothing yet.
    pub fn bare(dialect: Dialect, operation: Operation) -> Call {
        Call {
            dialect,
            operation,
            rpc_id: None,
            tenant: None,
            message_id: None,
            task_id: None,
            context_id: None,
            push_config_id: None,
            reference_task_ids: Vec::new(),
            inline_push: false,
            push_urls: Vec::new(),
            file_urls: Vec::new(),
            extensions: Vec::new(),
            skill_mentions: Vec::new(),
            list: None,
            spots: None,
        }
    }

    /// The places of a JSON body, while it is read, when something may be put in.
    pub(super) fn json_spots(&mut self) -> Option<&mut JsonSpots> {
        match self.spots.as_deref_mut() {
            Some(Spots::Json(spots)) => Some(spots),
            None => None,
        }
    }

    /// Adds what names a skill; a repetition says nothing new.
    pub(super) fn mention(&mut self, mention: SkillMention) {
        if self.skill_mentions.last() != Some(&mention) {
            self.skill_mentions.push(mention);
        }
    }
}

/// Something in a call that names a skill, or may name one to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillMention {
    /// Index into [`SkillRules::selectors`]; `None` for a known spelling that is no selector here.
    pub selector: Option<usize>,
    /// Where it stood.
    pub place: SkillPlace,
    /// The string it found; `None` when something other than a string stood there, one of more
    /// than 256 characters, which no skill has, or a header value that is not clear.
    pub value: Option<Box<str>>,
}

/// Where a call names a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkillPlace {
    /// `message.metadata`.
    Message,
    /// The request's own `metadata`.
    Request,
    /// A data part of the message.
    Data,
    /// A header field.
    Header,
    /// The send's `configuration`.
    Configuration,
}

/// What the reader of a request must know about the agent it is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadRules {
    /// Versions that the interface offers; a spelling of another version is refused.
    pub versions: Versions,
    /// Where calls name their skill (`skill_from`); `None`: nothing is read for it.
    pub skills: Option<Arc<SkillRules>>,
    /// Messages get our stamp, so the caller's is not theirs.
    pub stamp: bool,
    /// The agent has tenants: a call may name one, and one may be put in. Else a path that begins
    /// with one (REST 1.0) is an unknown path.
    pub tenants: bool,
}

impl ReadRules {
    /// Room for the places of a JSON body, if something may be put in.
    pub(super) fn json_spots(&self) -> Option<Box<Spots>> {
        (self.stamp || self.tenants).then(|| Box::new(Spots::Json(JsonSpots::default())))
    }
}

/// Bytes that are not one clear call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// What the caller is told.
    pub fault: Fault,
    /// The JSON-RPC id to echo, as its bytes stood; `None` answers with `null`.
    pub rpc_id: Option<Box<str>>,
    /// The version to answer in, when the spelling or, failing that, the header told it.
    pub version: Option<Version>,
    /// The operation, when it was known before the fault was found.
    pub operation: Option<Operation>,
    /// For log and journal only: one of [`MALFORMED_CODES`].
    pub code: &'static str,
}

/// Every code of [`Malformed`]. Codes are never renamed: records keep them.
pub const MALFORMED_CODES: [&str; 100] = [
    // The text, as [`super::strict_json::JsonFault`] has it.
    "bad_utf8",
    "bom",
    "too_long",
    "truncated",
    "syntax",
    "control_character",
    "trailing_data",
    "too_deep",
    "duplicate_key",
    "lone_surrogate",
    "number",
    // The head.
    "not_a_post",
    "content_type_missing",
    "content_type_twice",
    "content_type_bytes",
    "content_type_other",
    "content_type_parameter",
    "content_encoding",
    "version_unknown",
    "version_twice",
    "version_differs",
    "extension_uri",
    "too_many_extensions",
    // The envelope.
    "batch",
    "not_an_object",
    "jsonrpc_missing",
    "jsonrpc_type",
    "jsonrpc_version",
    "rpc_id_missing",
    "rpc_id_null",
    "rpc_id_type",
    "rpc_id_fraction",
    "rpc_id_too_long",
    "method_missing",
    "method_type",
    "unknown_method",
    // The version and the binding.
    "version_mismatch",
    "version_not_offered",
    "binding_not_served",
    // The path, the query and the body of REST.
    "unknown_path",
    "path_ambiguous",
    "path_encoding",
    "path_id_colon",
    "method_of_path",
    "unexpected_body",
    "path_differs",
    "query_encoding",
    "query_unknown",
    "query_twice",
    "query_value",
    // The head, the frame and the fields of gRPC.
    "grpc_query",
    "grpc_timeout",
    "grpc_deadline",
    "grpc_encoding",
    "compressed_message",
    "frame_flag",
    "frame_length",
    "varint",
    "field_number",
    "wire_type",
    "duplicate_field",
    "unknown_field",
    "resource_name",
    // Names of members, in the envelope too.
    "inexact_key",
    "field_twice",
    "keys_fold_alike",
    "too_many_members",
    "other_version_field",
    "inexact_selector",
    "inexact_stamp",
    "selector_dropped",
    // The parameters.
    "params_missing",
    "params_type",
    "message_missing",
    "message_type",
    "configuration_type",
    "metadata_type",
    "parts_type",
    "part_type",
    "part_kinds",
    "part_member_type",
    "file_type",
    "push_config_type",
    "authentication_type",
    "url_type",
    "extensions_type",
    "tenant_type",
    "tenant_characters",
    // Ids.
    "id_type",
    "id_empty",
    "id_characters",
    "task_id_missing",
    "reference_task_ids_type",
    "too_many_references",
    "push_config_missing",
    "push_task_differs",
    "push_config_differs",
    "push_tenant_differs",
    // The part of a list.
    "page_token_type",
    "page_size_type",
];

impl Malformed {
    /// The dialect to answer in; `None` for a request to a gRPC interface that is not gRPC at all,
    /// whose sender would not read trailers.
    pub fn dialect(&self, binding: Binding) -> Option<Dialect> {
        if binding == Binding::Grpc && self.fault == Fault::ContentTypeNotSupported {
            return None;
        }
        Some(Dialect {
            binding,
            version: self.version.unwrap_or(super::jsonrpc::ANSWER_VERSION),
        })
    }

    /// Refused for what the head says, before the body was looked at.
    pub fn before_body(fault: Fault, code: &'static str) -> Malformed {
        Malformed {
            fault,
            rpc_id: None,
            version: None,
            operation: None,
            code,
        }
    }
}
