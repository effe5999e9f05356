//! Whether a caller may make a call.
//!
//! Answers: allow or deny, by which rule, and what came nearest. May import: `source`, `a2a`,
//! `identity`. Invariants: default deny; anything that is not known never widens (I-3). Start
//! reading at [`decision`].

pub mod decision;

pub use decision::{Decision, Effect};
