//! What the values at the end of each way say.

use super::super::json_scan::Text;
use super::super::reader::TaskState;
use super::super::reply_errors::{code_of_reason, code_of_type};
use super::super::reply_facts::{ErrorFacts, ExpectedId, ReplyId, Tag, has_work};
use super::super::reply_names::{Name, Payload, Place};
use super::super::reply_push::{keep, task_of};
use super::{NAME_LENGTH, Path, wrapper};

impl Path {
    pub(super) fn text(&mut self, text: Text<'_>) -> Result<(), &'static str> {
        let (place, name) = self.here();
        match (place, name) {
            (Place::Root, _) => return Err("not_object"),
            (Place::Envelope, Name::JsonRpc) => self.facts.version_ok = text.bytes == b"2.0",
            (Place::Envelope, Name::Id) => {
                let same = match self.asked.id() {
                    None | Some(ExpectedId::Any) => true,
                    Some(ExpectedId::Text(sent)) => text.whole && sent.as_bytes() == text.bytes,
                    Some(ExpectedId::Number(_) | ExpectedId::None) => false,
                };
                self.reply_id(same);
            }
            (Place::Error | Place::RpcStatus, Name::Message) => {
                if let Some(error) = &mut self.facts.error {
                    error.has_message = true;
                }
            }
            (Place::Choice | Place::Fault, Name::Message) => {
                self.facts.bare_error.has_message = true;
            }
            (Place::Choice | Place::Fault, Name::Type) => {
                self.facts.error_type = code_of_type(text.prefix());
            }
            (Place::Fault, Name::ProblemTitle) => self.facts.problem_title = true,
            (Place::Detail, Name::Reason) if self.facts.reason.is_none() => {
                self.facts.reason = code_of_reason(text.prefix());
            }
            (Place::Result, Name::Kind) => {
                self.facts.tag = Some(match text.bytes {
                    b"task" => Tag::Payload(Payload::Task),
                    b"message" => Tag::Payload(Payload::Message),
                    b"status-update" => Tag::Payload(Payload::StatusUpdate),
                    b"artifact-update" => Tag::Payload(Payload::ArtifactUpdate),
                    _ => Tag::Unknown,
                });
            }
            (
                Place::Result | Place::WholeTask | Place::Payload(_),
                Name::Id | Name::TaskId | Name::ContextId,
            ) => {
                let id = id(text)?;
                let facts = &mut self.facts;
                match (place, name) {
                    (Place::Result, Name::Id) => facts.bare_id = id,
                    (Place::Result, Name::TaskId) => facts.bare_task_id = id,
                    (Place::Result, _) => facts.bare_context_id = id,
                    (_, Name::ContextId) => facts.context_id = id,
                    _ => facts.task_id = id,
                }
            }
            (Place::PushReply | Place::PushConfig, Name::TaskId) => {
                keep(&mut self.facts.task_id, id(text)?)?;
            }
            (Place::PushReply | Place::PushConfig, Name::Resource) => {
                if let Some(task) = task_of(text.prefix()) {
                    id(text)?;
                    keep(&mut self.facts.task_id, Some(task.into()))?;
                }
            }
            (Place::Status, Name::State) => {
                self.facts.state = Some(TaskState::parse(text.prefix()));
            }
            (Place::Artifact, Name::ArtifactId) => {
                if let Some(note) = self.facts.artifacts.last_mut() {
                    note.id = Some(text.prefix().into());
                }
            }
            (Place::Artifact, Name::Title) => {
                if let Some(note) = self.facts.artifacts.last_mut() {
                    note.name = Some(text.prefix().chars().take(NAME_LENGTH).collect());
                }
            }
            (Place::Part, Name::MediaType) | (Place::File, Name::MimeType)
                if !text.bytes.is_empty() =>
            {
                self.part_type = Some(text.prefix().into());
            }
            (Place::Part, Name::Text) => self.part_default = Some("text/plain"),
            (Place::Part, Name::Data) => self.part_default = Some("application/json"),
            (Place::Artifact | Place::Part | Place::File | Place::Detail, _) => {}
            _ => return self.other_scalar(),
        }
        Ok(())
    }

    pub(super) fn number(&mut self, number: Text<'_>) -> Result<(), &'static str> {
        match self.here() {
            (Place::Envelope, Name::Id) => {
                let same = match self.asked.id() {
                    None | Some(ExpectedId::Any) => true,
                    Some(id) => number.whole && id.is_number(number.prefix()),
                };
                self.reply_id(same);
                Ok(())
            }
            (Place::Error | Place::RpcStatus, Name::Code) => {
                if let Some(error) = &mut self.facts.error {
                    error.code = number.prefix().parse().ok();
                }
                Ok(())
            }
            (Place::Choice | Place::Fault, Name::Code) => {
                self.facts.bare_error.code = number.prefix().parse().ok();
                Ok(())
            }
            _ => self.other_scalar(),
        }
    }

    /// `null` is an absent member, except where absence would be another fault.
    pub(super) fn null(&mut self) -> Result<(), &'static str> {
        match self.here() {
            (Place::Envelope, Name::Id) => {
                self.facts.reply_id = ReplyId::Null;
                Ok(())
            }
            // Clients of 0.3 break on it; where the result may be anything, it may be null.
            (Place::Envelope, Name::Result) if has_work(self.asked.operation) => Err("bad_result"),
            (Place::Envelope, Name::Result) => {
                self.facts.has_result = true;
                Ok(())
            }
            (
                Place::Result
                | Place::Choice
                | Place::WholeTask
                | Place::Plain
                | Place::Fault
                | Place::Payload(_)
                | Place::Status
                | Place::PushReply
                | Place::PushConfig,
                _,
            ) => Ok(()),
            (Place::Part, Name::Data) => {
                self.part_default = Some("application/json");
                Ok(())
            }
            _ => self.other_scalar(),
        }
    }

    /// A value whose type is not the one that its place wants.
    pub(super) fn other_scalar(&mut self) -> Result<(), &'static str> {
        match self.here() {
            (Place::Root, _) => Err("not_object"),
            (Place::Envelope, Name::JsonRpc) => Err("bad_jsonrpc"),
            (Place::Envelope, Name::Id) => {
                self.reply_id(false);
                Ok(())
            }
            (Place::Envelope, Name::Result) if has_work(self.asked.operation) => Err("bad_result"),
            (Place::Envelope, Name::Result) => {
                self.facts.has_result = true;
                Ok(())
            }
            (_, Name::Error) => {
                self.facts.error = Some(ErrorFacts::default());
                Ok(())
            }
            (Place::Result | Place::Choice, name) if wrapper(name).is_some() => Err("bad_result"),
            (Place::Result, Name::Kind) => Err("bad_result"),
            (
                Place::Result
                | Place::WholeTask
                | Place::Payload(_)
                | Place::PushReply
                | Place::PushConfig,
                Name::Id | Name::TaskId | Name::ContextId | Name::Resource,
            ) => Err("bad_id"),
            (Place::Status, Name::State) => {
                self.facts.state = Some(TaskState::Unknown);
                Ok(())
            }
            (Place::Part, Name::Data) => {
                self.part_default = Some("application/json");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn reply_id(&mut self, same: bool) {
        self.facts.reply_id = if same {
            ReplyId::Same
        } else {
            ReplyId::Different
        };
    }
}

/// An id to bind; empty is what some encoders write for absent. Text that parsers are known to
/// change (NUL, half a surrogate pair) or that is too long cannot be bound.
fn id(text: Text<'_>) -> Result<Option<Box<str>>, &'static str> {
    if !text.whole || text.bytes.contains(&0) {
        return Err("bad_id");
    }
    Ok((!text.bytes.is_empty()).then(|| text.prefix().into()))
}
