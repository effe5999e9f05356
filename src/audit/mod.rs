//! What happened, as records that prove it.
//!
//! Answers: what does a record say, how is untrusted text tamed for it, and is a sequence of
//! records whole. May import: `source`, `a2a`, `identity`, `policy`. Invariants: nothing here
//! writes or reads files; every record is bounded in size; no token, credential or message text
//! fits into a record's types. Start reading at [`record`].

pub mod bundle;
pub mod chain;
pub mod checkpoint;
pub mod export;
pub mod fields;
pub mod otlp;
pub mod pruned;
pub mod query;
pub mod reconcile;
pub mod record;
pub mod redact;
pub mod verify;
