//! What an operator wrote, with positions: the positioned YAML tree, its walker, and problems.
//!
//! Answers: where in which file does a value stand, and how do we say what is wrong with it.
//! May import: nothing of ours. Invariants: parsing is bounded in size, depth and nodes; anchors
//! and aliases are refused; every problem of a document is reported, never only the first.
//! Start reading at [`problem`].

pub mod problem;
pub mod tree;
pub mod walk;

pub use problem::{Problem, Problems, Severity};
pub use tree::{Document, Node};
