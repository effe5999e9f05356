//! The readers without the rest of the gateway, which the fuzzer need not build.

#[path = "../../../src/a2a/mod.rs"]
pub mod a2a;
#[path = "../../../src/source/mod.rs"]
pub mod source;

pub mod invariants;
