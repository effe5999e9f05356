//! The gateway file: its shape, its checks, the compiled snapshot, reloading.
//!
//! Answers: what did the operator configure. May import: core. Invariants: a document with any
//! error is never used; the last good snapshot stays (I-8). Start reading at [`snapshot`].

pub mod snapshot;
