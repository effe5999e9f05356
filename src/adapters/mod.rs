//! Ports made real: files, agents' cards, the system's clock and randomness.
//!
//! Answers: how does what the pipeline asks for happen on this machine. May import: the core,
//! `pipeline::ports` and the values that ports carry; never one another (but for clocks in tests) or
//! an edge. Invariants: everything is bounded in time and size; an adapter reports failure, it never
//! decides what a failure means for a call. Start reading at [`journal`].

pub mod clock;
pub mod fetch;
pub mod journal;
pub mod key_files;
pub mod ownership_memory;
pub mod random;
pub mod resolver;
pub mod revocation_file;
