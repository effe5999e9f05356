//! The `portcullis` program: one file per command.
//!
//! Answers: what did the operator ask for, and which parts does that take. May import: everything;
//! the only place that makes adapters. Invariants: exit codes are 0 yes, 1 no, 2 usage, 3 invalid
//! input, 4 tests failed, 5 integrity; no secret is printed. Start reading at [`main`].

pub mod demo_agent;

use std::process::ExitCode;

/// Runs the program.
pub fn main() -> ExitCode {
    ExitCode::from(2)
}
