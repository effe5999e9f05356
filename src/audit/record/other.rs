//! Records that are not about one forwarded or refused call, and the schema of them all.

use super::value::LIST;
use super::{
    Artifacts, ConfigResult, Counts, Head, Id, Ids, Millis, NoteTopic, Purpose, Record, Sha256,
    Text, Time, Trigger,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// Refusals that were counted instead of recorded one by one.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Refusals<'a> {
    /// When and under what.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// The first one's time; the last one's is at most the record's.
    pub since: Time,
    /// How many.
    pub count: u64,
    /// How many by reason code.
    pub reasons: Counts<'a>,
}

/// Something that we fetched for ourselves. No request without a token causes one, and a token with
/// an unknown key only within the bounds of LC-8 and LC-9.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Fetch<'a> {
    /// When and under what.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// The request's ULID, also sent to the agent.
    pub request_id: &'a str,
    /// What for.
    pub purpose: Purpose,
    /// The agent's or issuer's configured name.
    pub target: &'a str,
    /// The path that was asked for, from the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Id<'a>>,
    /// The HTTP status, when a header came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Body bytes that came.
    pub bytes: u64,
    /// SHA-256 of the body, when it came whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    /// How long it took.
    pub ms: Millis,
    /// Why it failed: a code of the closed set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

/// The configuration changed, or was to. The head names the generation in force afterwards.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ConfigChange<'a> {
    /// When and under what.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// Whether it is in force.
    pub result: ConfigResult,
    /// What asked for it.
    pub trigger: Trigger,
    /// How many problems it had.
    pub problems: u64,
    /// The codes of the first of them, at most 8, when it was refused.
    #[serde(skip_serializing_if = "Ids::is_empty")]
    pub codes: Ids<'a>,
    /// The files that are in force, in load order, at most 1024: `policy_digest` is the SHA-256
    /// over the length (u64, big endian) and the bytes of each.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub files: &'a [ConfigFile<'a>],
    /// How many more there are.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_files: u64,
}

impl ConfigChange<'_> {
    /// Most files that a record names.
    pub const FILES: usize = 1024;
    /// Most problems that it names.
    pub const CODES: usize = 8;
}

/// A file of the configuration. Its text is in the folder `texts` of the journal, under its digest.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ConfigFile<'a> {
    /// Its path.
    pub name: Id<'a>,
    /// `gateway` or `policy`.
    pub role: &'a str,
    /// SHA-256 of its bytes.
    pub sha256: Sha256,
    /// How many there are.
    pub bytes: u64,
    /// Its text could not be kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_kept: bool,
}

// The form that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// An agent's card changed.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct CardChanged<'a> {
    /// When and under what.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// The agent's configured name.
    pub agent: &'a str,
    /// SHA-256 of the agent's own card before; absent for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Sha256>,
    /// SHA-256 of the agent's own card now; absent when it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Sha256>,
    /// SHA-256 of the card that is published for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Sha256>,
    /// What its signatures are worth, where `verify` asks: a code of the closed set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<&'a str>,
    /// Skills of the card that the configuration does not list.
    #[serde(skip_serializing_if = "Ids::is_empty")]
    pub skills_unlisted: Ids<'a>,
    /// Skills that the configuration lists and the card does not have.
    #[serde(skip_serializing_if = "Ids::is_empty")]
    pub skills_vanished: Ids<'a>,
    /// Interfaces that are not published, each after the code that says why.
    #[serde(skip_serializing_if = "Ids::is_empty")]
    pub dropped: Ids<'a>,
    /// Why it cannot be used: a code of the closed set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

/// A signed statement of the chain's length and head.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Checkpoint<'a> {
    /// When and under what.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// The journal's id: a ULID, made with its first segment.
    pub journal: &'a str,
    /// The sequence number of the last record that it covers, which is the one before it.
    pub size: u64,
    /// SHA-256 of that record's line.
    pub chain_head: Sha256,
    /// Which key signed: its RFC 7638 thumbprint.
    pub key_id: &'a str,
    /// Standard base64 of the Ed25519 signature over `portcullis-checkpoint/v1`, `journal`, `size`,
    /// `chain_head`, `time`, `instance`, `generation` and `policy_digest`, each followed by a line
    /// feed.
    pub signature: &'a str,
}

/// The journal about itself, or what an operator did by the admin API.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Note<'a> {
    /// When and under what.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// What about.
    pub note: NoteTopic,
    /// Bytes of a torn last line that were cut off.
    pub torn_bytes: u64,
    /// Intents without an outcome that were closed as `unknown`.
    pub open_intents: u64,
    /// Records that nobody waited for and that could not be kept.
    pub lost: u64,
    /// At the beginning of a segment: the oldest intent without an outcome, if there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_open: Option<u64>,
    /// The journal's id, when it is opened and at the beginning of a segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<&'a str>,
    /// The key that signs checkpoints from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<&'a str>,
    /// When the journal is opened: who wrote to it before and did not close it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unclosed: Option<Unclosed<'a>>,
    /// The issuer whose keys changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<&'a str>,
    /// Ids of keys that are trusted, or used, from now on; at most 32.
    #[serde(skip_serializing_if = "Ids::is_empty")]
    pub added: Ids<'a>,
    /// Ids of keys that are so no more; at most 32.
    #[serde(skip_serializing_if = "Ids::is_empty")]
    pub removed: Ids<'a>,
    /// In plain words, for example the operating system's error, or the order and whose it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Text<'a>>,
}

/// A gateway process that did not close the journal: it was killed, or the machine went down.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Unclosed<'a> {
    /// Its name in records.
    pub instance: Id<'a>,
    /// The sequence number of its last record.
    pub seq: u64,
    /// When it wrote that.
    pub time: Text<'a>,
}

impl<'a> Note<'a> {
    /// A note that says nothing but what it is about.
    pub fn about(head: Head<'a>, note: NoteTopic) -> Note<'a> {
        Note {
            head,
            note,
            torn_bytes: 0,
            open_intents: 0,
            lost: 0,
            oldest_open: None,
            journal: None,
            key_id: None,
            unclosed: None,
            issuer: None,
            added: Ids::default(),
            removed: Ids::default(),
            detail: None,
        }
    }
}

impl Artifacts<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Artifacts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().take(LIST).map(|note| Artifact {
            id: note.id.as_deref().map(Id),
            name: note.name.as_deref().map(Text),
            media_types: MediaTypes(&note.media_types),
            bytes: note.bytes,
        }))
    }
}

impl JsonSchema for Artifacts<'_> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Artifacts".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        <Vec<Artifact<'static>>>::json_schema(generator)
    }
}

/// One artifact, without its content.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Artifact<'a> {
    /// Its `artifactId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Id<'a>>,
    /// Its `name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Text<'a>>,
    /// Media types of its parts; at most 32.
    #[schemars(with = "Vec<String>")]
    media_types: MediaTypes<'a>,
    /// Size of its JSON.
    bytes: u64,
}

/// Media types of an artifact's parts; at most 32, each cut like text.
struct MediaTypes<'a>(&'a [Box<str>]);

impl Serialize for MediaTypes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().take(LIST).map(|media| Text(media)))
    }
}

/// A whole line, for the schema.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "record")]
struct Line<'a> {
    /// The version of the record format.
    v: u64,
    /// Counts from 1, without gaps.
    seq: u64,
    /// SHA-256 of the previous line without its line feed; 64 zeros for the first.
    prev: Sha256,
    #[serde(flatten)]
    record: Record<'a>,
}

/// The JSON Schema (draft-07) of one line of the journal.
pub fn schema() -> serde_json::Value {
    SchemaSettings::draft07()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Line<'static>>()
        .to_value()
}
