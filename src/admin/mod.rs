//! What operators and their machines ask the gateway itself.
//!
//! Answers: is the process alive, is it ready and if not why, what do its metrics say; and takes
//! their orders: reload, revoke. May import: everything but `proxy` and `cli`. Invariants: nothing
//! here forwards to an agent or shows a secret; an order is taken from the full grant or the Unix
//! socket only, and is logged and recorded. Start reading at [`api`].

pub mod api;
pub mod health;
mod revoke;
