//! Whether a journal is whole, asked of its bytes and of nobody else.
//!
//! Answers: which record is the first that is not as it was written, and what can still be trusted.
//! May import: what `audit` may. Invariants: pure; nothing is believed but the keys that are passed
//! in; every line is looked at; memory grows with calls under way and with one bit for each
//! record, not with the journal's bytes. A piece of a journal is looked at alone ([`piece`]), so that
//! pieces can be looked at on all cores, and [`join`] puts them together in order. Start reading
//! at [`join::Verifier`].

pub mod join;
mod line;
pub mod piece;
pub mod report;

pub use line::Required;

use super::checkpoint;
use std::fmt;

/// Where a line stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The segment's file name.
    pub segment: Box<str>,
    /// The line, counting from 1.
    pub line: u64,
    /// Bytes before it in the segment.
    pub offset: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, line {}, byte {}",
            self.segment, self.line, self.offset
        )
    }
}

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it shows; absent for what is not there.
    pub place: Option<Place>,
    /// Which records it may be about: one, or the first and the last of several.
    pub records: Option<(u64, u64)>,
    /// What it is.
    pub what: What,
}

/// What is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A line is no record.
    NotARecord,
    /// A record is not JSON, or has a member twice.
    NotJson,
    /// A record lacks a member that its kind must have, or has no known kind.
    Lacks(Box<str>),
    /// A line is longer than records are.
    TooLong,
    /// A last line is not complete, and no process holds the journal.
    Torn,
    /// Bytes cannot be read; the system's reason.
    Unreadable(Box<str>),
    /// Records are not there, are there twice, or stand elsewhere.
    Sequence {
        /// The one that belongs here.
        expected: u64,
        /// The one that is here.
        found: u64,
    },
    /// A record is not the one that the next names. `signed`: a checkpoint vouches for the next.
    Changed {
        /// Which of the two was changed is known.
        signed: bool,
    },
    /// The journal does not begin with its first record, and nothing that is signed says why.
    Beginning {
        /// The sequence number that was expected.
        expected: u64,
    },
    /// A segment is not named after its first record.
    Misnamed,
    /// A checkpoint proves nothing.
    Checkpoint(checkpoint::Fault),
    /// A record names another journal.
    OtherJournal {
        /// The id that it names.
        named: Box<str>,
        /// The id before.
        before: Box<str>,
    },
    /// No checkpoint of the journal is signed by a trusted key.
    NoCheckpoint,
    /// More records than allowed stand behind the last checkpoint.
    Unsigned {
        /// From the last checkpoint to the last record, in milliseconds.
        millis: u64,
    },
    /// An external checkpoint covers more records than there are.
    Truncated {
        /// How many records it covers.
        size: u64,
        /// Its time.
        time: Box<str>,
    },
    /// An external checkpoint covers another record than the one that is there.
    Replaced {
        /// Its time.
        time: Box<str>,
    },
    /// An external checkpoint is of another journal.
    ExternalOther {
        /// The id that it names.
        named: Box<str>,
    },
    /// An external checkpoint is not signed by a trusted key.
    ExternalFault(checkpoint::Fault),
    /// An outcome belongs to no intent.
    NoIntent {
        /// The record that it names.
        intent: u64,
    },
    /// An intent has a second outcome.
    SecondOutcome {
        /// The intent.
        intent: u64,
    },
    /// A refusal says that something was sent.
    RefusedAndSent {
        /// Its delivery.
        delivery: Box<str>,
    },
    /// An intent was left open by a start of the gateway, which closes all of them.
    LeftOpen,
}

impl What {
    /// A code of a closed set.
    pub fn label(&self) -> &'static str {
        match self {
            What::NotARecord => "not_a_record",
            What::NotJson => "not_json",
            What::Lacks(_) => "lacks_member",
            What::TooLong => "too_long",
            What::Torn => "torn",
            What::Unreadable(_) => "unreadable",
            What::Sequence { .. } => "sequence",
            What::Changed { .. } => "changed",
            What::Beginning { .. } => "beginning",
            What::Misnamed => "misnamed",
            What::Checkpoint(_) => "checkpoint",
            What::OtherJournal { .. } => "other_journal",
            What::NoCheckpoint => "no_checkpoint",
            What::Unsigned { .. } => "unsigned",
            What::Truncated { .. } => "truncated",
            What::Replaced { .. } => "replaced",
            What::ExternalOther { .. } => "external_other_journal",
            What::ExternalFault(_) => "external_checkpoint",
            What::NoIntent { .. } => "no_intent",
            What::SecondOutcome { .. } => "second_outcome",
            What::RefusedAndSent { .. } => "refused_and_sent",
            What::LeftOpen => "left_open",
        }
    }

    /// Whether bytes are not as they were written; otherwise what they say does not fit together.
    pub fn breaks(&self) -> bool {
        !matches!(
            self,
            What::NoIntent { .. }
                | What::SecondOutcome { .. }
                | What::RefusedAndSent { .. }
                | What::LeftOpen
        )
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::NotARecord => f.write_str("the line is no record"),
            What::NotJson => f.write_str("it is not JSON, or has a member twice"),
            What::Lacks(member) => write!(f, "it has no `{member}`, which its kind must have"),
            What::TooLong => f.write_str("the line is longer than a record can be"),
            What::Torn => f.write_str(
                "the last line is not complete, and no process holds the journal; after a crash, the next start of the gateway cuts it off",
            ),
            What::Unreadable(why) => write!(f, "it cannot be read: {why}"),
            What::Sequence { expected, found } if found > expected => write!(
                f,
                "records {expected} to {} are missing: record {found} stands where record {expected} belongs",
                found - 1
            ),
            What::Sequence { expected, found } => {
                write!(f, "record {found} stands where record {expected} belongs")
            }
            What::Changed { signed: true } => f.write_str(
                "it was changed: the next record names another hash, and a checkpoint vouches for that one",
            ),
            What::Changed { signed: false } => f.write_str(
                "the second does not name the hash of the first: one of the two was changed",
            ),
            What::Beginning { expected } => write!(
                f,
                "the journal begins with it instead of record {expected}, and nothing that is signed says where those before it are"
            ),
            What::Misnamed => f.write_str("its segment is not named after it"),
            What::Checkpoint(fault) => write!(
                f,
                "the checkpoint proves nothing: {fault}; any of these records may have been changed"
            ),
            What::OtherJournal { named, before } => {
                write!(f, "it is of journal {named}, and those before are of {before}")
            }
            What::NoCheckpoint => {
                f.write_str("no checkpoint is signed by a trusted key, so nothing is proven")
            }
            What::Unsigned { millis } => write!(
                f,
                "they stand behind the last checkpoint, over {} s, and nothing vouches for them; a gateway that was killed leaves some, and its next start signs them",
                millis / 1000
            ),
            What::Truncated { size, time } => write!(
                f,
                "they are missing: an external checkpoint of {time} covers {size} records"
            ),
            What::Replaced { time } => write!(
                f,
                "it is not the record that an external checkpoint of {time} covers"
            ),
            What::ExternalOther { named } => {
                write!(f, "an external checkpoint is of another journal, {named}")
            }
            What::ExternalFault(fault) => write!(f, "an external checkpoint proves nothing: {fault}"),
            What::NoIntent { intent } => {
                write!(f, "it is the outcome of record {intent}, which is no intent")
            }
            What::SecondOutcome { intent } => {
                write!(f, "it is a second outcome of record {intent}")
            }
            What::RefusedAndSent { delivery } => {
                write!(f, "it is a refusal, and says `{delivery}`")
            }
            What::LeftOpen => f.write_str(
                "the intent has no outcome, though the gateway was started since, which closes them",
            ),
        }
    }
}

#[cfg(test)]
mod tests;
