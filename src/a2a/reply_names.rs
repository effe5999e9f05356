//! The member names of a reply that matter, where they matter, and what may be mistaken for them.
//!
//! Shapes of both versions stand side by side (`a2a-protocol.md` a.3, a.4, i.2), since what a
//! caller's client makes of a reply does not depend on what was agreed.

use super::json_scan::Text;
use super::reader::EventKind;

/// Longest key that is compared. No protocol object has a longer one; a longer one could still
/// fold to a name that we know.
pub(super) const KEY_ROOM: usize = 128;

/// An object or array on the way to something that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Root,
    Envelope,
    Error,
    Result,
    /// The root of a REST reply that is one of several objects.
    Choice,
    /// The root of a REST reply that is the task itself.
    WholeTask,
    /// The root of a REST reply in which only an error would matter.
    Plain,
    /// The root of a REST reply with an error status.
    Fault,
    /// Its `error` (AIP-193).
    RpcStatus,
    Details,
    Detail,
    Payload(Payload),
    Status,
    Artifacts,
    Artifact,
    Parts,
    Part,
    File,
    /// The root of a REST reply that is a webhook, or a list of them.
    PushReply,
    PushConfigs,
    PushConfig,
}

/// The wrapped objects of 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload {
    Task,
    Message,
    StatusUpdate,
    ArtifactUpdate,
}

impl Payload {
    pub(super) fn kind(self) -> EventKind {
        match self {
            Payload::Task => EventKind::Task,
            Payload::Message => EventKind::Message,
            Payload::StatusUpdate => EventKind::StatusUpdate,
            Payload::ArtifactUpdate => EventKind::ArtifactUpdate,
        }
    }
}

/// A member that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// A member that means nothing here, or an array's item.
    Other,
    JsonRpc,
    Id,
    Result,
    Error,
    Code,
    Message,
    Task,
    StatusUpdate,
    ArtifactUpdate,
    Kind,
    TaskId,
    ContextId,
    Status,
    State,
    Artifacts,
    Artifact,
    ArtifactId,
    Title,
    Parts,
    MediaType,
    MimeType,
    File,
    Text,
    Data,
    Details,
    Reason,
    Type,
    ProblemTitle,
    /// A resource name of 0.3.
    Resource,
    Configs,
    /// A spelling that only some parsers take for one of the others.
    Misspelt,
}

/// Exact spelling, folded spelling, meaning.
type Row = (&'static str, &'static str, Name);

const JSON_RPC: Row = ("jsonrpc", "jsonrpc", Name::JsonRpc);
const ID: Row = ("id", "id", Name::Id);
const RESULT: Row = ("result", "result", Name::Result);
const ERROR: Row = ("error", "error", Name::Error);
const CODE: Row = ("code", "code", Name::Code);
const MESSAGE: Row = ("message", "message", Name::Message);
const TASK: Row = ("task", "task", Name::Task);
const STATUS_UPDATE: Row = ("statusUpdate", "statusupdate", Name::StatusUpdate);
const ARTIFACT_UPDATE: Row = ("artifactUpdate", "artifactupdate", Name::ArtifactUpdate);
const KIND: Row = ("kind", "kind", Name::Kind);
const TASK_ID: Row = ("taskId", "taskid", Name::TaskId);
const CONTEXT_ID: Row = ("contextId", "contextid", Name::ContextId);
const STATUS: Row = ("status", "status", Name::Status);
const STATE: Row = ("state", "state", Name::State);
const ARTIFACTS: Row = ("artifacts", "artifacts", Name::Artifacts);
const ARTIFACT: Row = ("artifact", "artifact", Name::Artifact);
const ARTIFACT_ID: Row = ("artifactId", "artifactid", Name::ArtifactId);
const TITLE: Row = ("name", "name", Name::Title);
const PARTS: Row = ("parts", "parts", Name::Parts);
const MEDIA_TYPE: Row = ("mediaType", "mediatype", Name::MediaType);
const MIME_TYPE: Row = ("mimeType", "mimetype", Name::MimeType);
const FILE: Row = ("file", "file", Name::File);
const TEXT: Row = ("text", "text", Name::Text);
const DATA: Row = ("data", "data", Name::Data);
const DETAILS: Row = ("details", "details", Name::Details);
const REASON: Row = ("reason", "reason", Name::Reason);
const TYPE: Row = ("type", "type", Name::Type);
const RESOURCE: Row = ("name", "name", Name::Resource);
const CONFIGS: Row = ("configs", "configs", Name::Configs);
const PROBLEM_TITLE: Row = ("title", "title", Name::ProblemTitle);
// The field's name in the definition of 0.3, whose JSON name is `message`.
const MSG: Row = ("msg", "msg", Name::Misspelt);

impl Place {
    fn rows(self) -> &'static [Row] {
        match self {
            Place::Root | Place::Artifacts | Place::Parts | Place::Details | Place::PushConfigs => {
                &[]
            }
            Place::Envelope => &[JSON_RPC, ID, RESULT, ERROR],
            Place::Error => &[CODE, MESSAGE],
            Place::Result => &[
                TASK,
                MESSAGE,
                STATUS_UPDATE,
                ARTIFACT_UPDATE,
                KIND,
                ID,
                TASK_ID,
                CONTEXT_ID,
                STATUS,
                ARTIFACTS,
                ARTIFACT,
            ],
            Place::Choice => &[
                TASK,
                MESSAGE,
                STATUS_UPDATE,
                ARTIFACT_UPDATE,
                MSG,
                ERROR,
                CODE,
                TYPE,
            ],
            Place::WholeTask => &[ID, CONTEXT_ID, STATUS, ARTIFACTS, ERROR],
            Place::Plain => &[ERROR],
            Place::PushReply => &[ERROR, TASK_ID, RESOURCE, CONFIGS],
            Place::PushConfig => &[TASK_ID, RESOURCE, CONFIGS],
            Place::Fault => &[ERROR, CODE, MESSAGE, TYPE, PROBLEM_TITLE],
            Place::RpcStatus => &[CODE, MESSAGE, DETAILS],
            Place::Detail => &[REASON],
            Place::Payload(Payload::Task) => &[ID, CONTEXT_ID, STATUS, ARTIFACTS],
            Place::Payload(Payload::Message) => &[TASK_ID, CONTEXT_ID],
            Place::Payload(Payload::StatusUpdate) => &[TASK_ID, CONTEXT_ID, STATUS],
            Place::Payload(Payload::ArtifactUpdate) => &[TASK_ID, CONTEXT_ID, ARTIFACT],
            Place::Status => &[STATE],
            Place::Artifact => &[ARTIFACT_ID, TITLE, PARTS],
            Place::Part => &[MEDIA_TYPE, FILE, TEXT, DATA],
            Place::File => &[MIME_TYPE],
        }
    }

    /// Whether keys are looked at here at all.
    pub(super) fn has_names(self) -> bool {
        !self.rows().is_empty()
    }

    /// Whether two parsers that disagree here would disagree about what is bound or reported.
    /// What is noted of artifacts is description only.
    fn is_binding(self) -> bool {
        match self {
            Place::Root
            | Place::Envelope
            | Place::Error
            | Place::Result
            | Place::Choice
            | Place::WholeTask
            | Place::Plain
            | Place::Fault
            | Place::RpcStatus
            | Place::Payload(_)
            | Place::Status
            | Place::PushReply
            | Place::PushConfig => true,
            Place::Details
            | Place::Detail
            | Place::Artifacts
            | Place::Artifact
            | Place::Parts
            | Place::Part
            | Place::File
            | Place::PushConfigs => false,
        }
    }

    /// What `key` means here. `seen` holds one bit for each row met before in this object.
    ///
    /// Errors with `ambiguous` when the key came before, or could be taken for a name that it
    /// does not spell: other case, underscores, the letters that Unicode folds to `s` and `k`
    /// (`a2a-protocol.md` i.3). Repeated keys that mean nothing here are of no consequence.
    pub(super) fn name(self, key: Text<'_>, seen: &mut u32) -> Result<Name, &'static str> {
        for (index, (exact, _, name)) in self.rows().iter().enumerate() {
            if key.bytes == exact.as_bytes() && key.whole {
                let bit = 1 << index;
                if *seen & bit != 0 && self.is_binding() {
                    return Err("ambiguous");
                }
                *seen |= bit;
                return match name {
                    Name::Misspelt => Err("ambiguous"),
                    _ => Ok(*name),
                };
            }
        }
        if self.is_binding()
            && (!key.whole || self.rows().iter().any(|row| folds_to(key.prefix(), row.1)))
        {
            return Err("ambiguous");
        }
        Ok(Name::Other)
    }
}

/// Whether `key`, folded as the most liberal parser would, is `folded`.
fn folds_to(key: &str, folded: &str) -> bool {
    key.chars()
        .filter(|&letter| letter != '_')
        .map(|letter| match letter {
            '\u{17f}' => 's',
            '\u{212a}' => 'k',
            other => other.to_ascii_lowercase(),
        })
        .eq(folded.chars())
}
