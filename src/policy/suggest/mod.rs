//! Narrower rules, from what a journal shows to be used.
//!
//! Answers: which allow rules, and which part of them, nobody needed. May import: what `policy`
//! may. Invariants: only allows are narrowed, since a narrower deny would widen; a suggestion is
//! the YAML that is printed, compiled, and stands only while every call of its window that is
//! allowed stays allowed under it. Start reading at [`Usage`], then [`suggest`].

mod narrow;
mod usage;
mod yaml;

pub use narrow::{Proposal, Suggestion, listed_claims, suggest};
pub use usage::{RuleUsage, Usage};
