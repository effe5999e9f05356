//! End-to-end and case tests.

mod journal;
//! End-to-end and case tests, one module per subject.
#![allow(clippy::unwrap_used)]

mod agents;
mod support;
mod tidy;
#![allow(clippy::unwrap_used)]

mod cards;
mod replies;
mod wire;
