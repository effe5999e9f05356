//! Who is calling.
//!
//! Answers: is this token good, whose is it, how far does it reach. May import: `source`, `a2a`
//! (for strict JSON). Invariants: what is absent, malformed, doubled or not understood never widens
//! (I-3); nothing unverified outlives the signature check; no token appears in any error (I-9).
//! Start reading at [`principal`].

pub mod issuer;
pub mod principal;

pub use principal::{ClaimState, ClaimValue, Principal};
