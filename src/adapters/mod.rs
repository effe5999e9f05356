//! The ports of the pipeline made real.
//!
//! Answers: how are cards fetched. May import: core, `pipeline::ports`, and the pipeline values
//! that ports carry. Invariants: adapters know nothing of one another; everything is bounded in
//! time and size. Start reading at [`card_fetch`].

pub mod card_fetch;
