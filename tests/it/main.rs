//! End-to-end and case tests, one module per subject.
#![allow(clippy::unwrap_used)]

mod adversary;
mod agents;
mod calls;
mod cards;
mod change_cli;
mod config;
mod corpus;
mod deploy;
mod diagnostics;
mod edge;
mod fuzz;
mod gate;
mod grpc;
mod identity;
mod issuer_keys;
mod journal;
mod listing;
mod matrix;
mod ownership;
mod policy;
mod policy_cli;
mod probe;
mod process;
mod profiles;
mod prove;
mod proving;
mod readme;
mod replies;
mod revocation;
mod schemas;
mod shipped;
mod support;
mod tidy;
mod token_cli;
mod wire;
