//! Attempts to get around the gateway, from both of its sides.
//!
//! Answers: what a caller or an agent gains by requests and replies that no honest one would send.
//! May import: the program. Invariants: every refusal asserts what the agent itself counted. Start
//! reading at [`callers`].

mod agents;
mod callers;
mod chunks;
mod connections;
mod flood;
mod hidden;
mod lists;
mod operators;
