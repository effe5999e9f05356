//! What an operator wrote, with positions: the positioned YAML tree, its walker, and problems.
//!
//! Answers: where in which file does a value stand, and how do we say what is wrong with it.
//! May import: nothing of ours. Invariants: parsing is bounded in size, depth and nodes; anchors
//! and aliases are refused; every problem of a document is reported, never only the first; a field
//! that no table declares is a problem, and the schemas come from the same tables.
//! Start reading at [`problem`], then [`walk`].

pub mod codes;
pub mod examples;
pub mod instant;
pub mod problem;
pub mod quantity;
mod read;
pub mod shape;
pub mod tree;
pub mod walk;

pub use problem::{Problem, Problems, Severity};
pub use shape::{Field, Fields, Shape};
pub use tree::{Document, Key, Kind, Node, Position};
pub use walk::{Mapping, Value, Walker};
