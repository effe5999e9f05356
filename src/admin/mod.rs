//! What operators and their machines ask the gateway itself.
//!
//! Answers: is the process alive, is it ready and if not why, what do its metrics say. May import:
//! everything but `proxy` and `cli`. Invariants: nothing here forwards to an agent, changes
//! a decision or shows a secret. Start reading at [`health`].

pub mod health;
