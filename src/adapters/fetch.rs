//! What the gateway fetches over HTTP for itself, and never for a caller.

pub mod agent;
pub mod cards;
pub mod collector;
mod exchange;
pub mod introspection;
pub mod keys;

pub use exchange::plain_mannered;
