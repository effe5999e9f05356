//! End-to-end and case tests, one module per subject.
#![allow(clippy::unwrap_used)]

mod agents;
mod cards;
mod config;
mod gate;
mod journal;
mod policy;
mod replies;
mod support;
mod tidy;
mod wire;
