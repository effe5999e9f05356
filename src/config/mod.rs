//! The gateway file: its shape, its checks, the compiled snapshot, reloading.
//!
//! Answers: what did the operator configure. May import: core. Invariants: a document with any
//! error is never used; the last good snapshot stays (I-8); nothing here runs per request but
//! [`path`] and [`route`]. Start reading at [`snapshot`], then [`check`].

mod address;
mod agents;
mod audit;
mod backend_identity;
mod backends;
pub mod capture;
mod cards;
pub mod check;
pub mod document;
mod grpc;
mod interfaces;
mod introspection;
pub(crate) mod issuers;
mod keys;
mod listeners;
mod ownership;
pub mod path;
mod policies;
pub mod revocation;
pub mod route;
pub mod schema;
mod secrets;
pub mod skills;
pub mod snapshot;
pub mod telemetry;
mod tenants;
mod tls;
pub mod watch;

pub use capture::Capture;
pub use check::{Loaded, Running, compile, load};
pub use path::{CanonicalPath, PathFault, canonical};
pub use route::Routes;
pub use watch::{Look, Reloader};
