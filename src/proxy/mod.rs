//! The only Pingora code: listeners, the exchange, connections to agents.
//!
//! Answers: how bytes come in, go to an agent, and come back. May import: everything but `admin`
//! and `cli`. Invariants: nothing is sent without a permit; each write towards an agent is ours and
//! written down; every await has a bound. Start reading at [`serve`].

pub mod app;
pub mod body;
pub mod connect;
pub mod cors;
pub mod door;
pub mod fields;
pub mod forward;
pub mod headers;
pub mod health;
pub mod limits;
pub mod link;
pub mod links;
pub mod listen;
pub mod peer;
pub mod plain;
mod proof;
pub mod relay;
mod relayed;
mod released;
pub mod reply;
mod reply_head;
mod reworked;
mod secured;
pub mod send;
pub mod serve;
pub mod socket;
pub mod stopping;
#[cfg(test)]
mod tests;
pub mod trailers;

pub use app::App;
pub use links::Links;
pub use stopping::Stopping;
