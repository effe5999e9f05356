//! What the gateway fetches over HTTP for itself, and never for a caller.

pub mod cards;
mod exchange;
pub mod introspection;
pub mod keys;

pub use exchange::plain_mannered;
