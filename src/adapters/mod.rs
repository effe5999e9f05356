//! Ports made real: files, the system's clock and randomness.
//!
//! Answers: how does what the pipeline asks for happen on this machine. May import: the core,
//! `pipeline::ports` and the values that ports carry, `config` values that name settings; never
//! one another or an edge. Invariants: an adapter reports failure, it never decides what a failure
//! means for a call. Start reading at [`journal`].

pub mod clock;
pub mod journal;
pub mod random;
//! The ports of the pipeline made real.
//!
//! Answers: how are cards fetched. May import: core, `pipeline::ports`, and the pipeline values
//! that ports carry. Invariants: adapters know nothing of one another; everything is bounded in
//! time and size. Start reading at [`card_fetch`].

pub mod card_fetch;
