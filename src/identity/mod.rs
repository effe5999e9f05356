//! Who is calling.
//!
//! Answers: is this token good, whose is it, how far does it reach. May import: `source`, `a2a`
//! (for strict JSON). Invariants: what is absent, malformed, doubled or not understood never widens
//! (I-3); nothing unverified outlives the signature check; no token appears in any error (I-9).
//! Start reading at [`mod@accept`].

pub mod accept;
pub mod assertion;
mod claims;
pub mod confirmation;
mod delegation;
pub mod denylist;
pub mod dpop;
pub mod explain;
pub mod fault;
mod grants;
mod header;
pub mod introspection;
pub mod issuer;
pub mod keys;
mod kind;
pub mod metadata;
pub mod principal;
pub mod profile;
pub mod resource;
pub mod signing_key;
pub mod spiffe;
mod token;
pub mod transport;
pub mod trial;
mod uri;

pub use accept::{Issuers, KeyNote, Refused, Seeks, accept, still_good};
pub use confirmation::{Confirmation, ProofKind};
pub use denylist::{Denial, Denied, Denylist};
pub use explain::{Finding, explain};
pub use fault::{Answer, TokenFault};
pub use keys::KeySource;
pub use principal::{Actor, ClaimState, ClaimValue, Principal};
pub use signing_key::SigningKey;
