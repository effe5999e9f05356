//! What A2A says, in bytes and values.
//!
//! Answers: which operation is this, what does it name, what does a reply reveal, how is a
//! refusal said. May import: `source`. Invariants: parsing is bounded and never panics; bytes that
//! two honest parsers could read differently are refused. Start reading at [`call`].

pub mod call;
pub mod card;
pub mod fault;
pub mod operation;
pub mod reader;

mod byte_run;
mod json_number;
mod json_scan;
mod json_text;
mod reply_facts;
mod reply_json;
mod reply_names;
mod sse;
mod unary;

pub use call::{Call, Malformed, ReadRules, SkillMention};
pub use fault::Fault;
pub use operation::{Binding, Dialect, Operation, OperationGroup, Version, Versions};
pub use reader::{ArtifactNote, Event, EventKind, Expectation, Piece, Reader, TaskState};
