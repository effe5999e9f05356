//! Portcullis: an access gateway in front of existing A2A (Agent2Agent) agents.
//!
//! # The path of one request
//!
//! ```text
//! locate -> authenticate -> read body -> parse -> relate -> decide -> journal intent
//!        -> connect -> send -> relay (bind ids before each event leaves) -> journal outcome
//! ```
//!
//! One async function, `proxy::serve`, carries a request from its header to the reply's last
//! byte. Everything that decides is pure code in the core; everything that waits is at an edge.
//!
//! # Code map
//!
//! | Layer | Modules | May import |
//! |---|---|---|
//! | core | [`source`], [`a2a`], [`identity`], [`policy`], [`audit`] | each other, later from earlier |
//! | flow | [`config`], [`pipeline`] | core; `pipeline` also `config` |
//! | adapters | [`adapters`] | core, `pipeline::ports`, `pipeline` values that ports carry |
//! | edges | [`proxy`], [`admin`] | everything above, never each other |
//! | program | [`cli`] | everything; the only place that makes adapters |
//!
//! # Invariants
//!
//! I-1 refused means untouched, I-2 reached means recorded, I-3 unknown never widens, I-4 judged
//! is forwarded, I-5 mine stays mine, I-6 publishing grants nothing, I-7 no stale promise, I-8
//! last good wins, I-9 secrets stay out. A [`pipeline`] permit can only come from an allow whose
//! intent is in the journal, and sending needs a permit: there is deliberately no other way.
//!
//! Deliberately absent: a mode in which a bad token counts as no token, a switch to go on without
//! a journal, a translation between bindings or versions, a retry of a message, global state.

pub mod a2a;
pub mod adapters;
pub mod admin;
pub mod audit;
pub mod cli;
pub mod config;
pub mod identity;
pub mod pipeline;
pub mod policy;
pub mod proxy;
pub mod source;

// The exchange is tested where its parts are private, with the agents and clients that the
// end-to-end tests use.
#[cfg(test)]
extern crate self as portcullis;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../tests/it/support/mod.rs"]
mod test_support;
