//! `portcullis audit`: what an auditor asks of a journal, one file per command.
//!
//! Answers: what happened, who did it under which rule, and is the record of it whole. May import:
//! everything. Invariants: nothing here writes into a journal, takes its lock or asks the gateway,
//! so that all of it works on a copy and beside a gateway that runs; what is no record is told with
//! its place and makes the exit code 5; text that others chose is shown cut and without controls.
//! Start reading at [`from`].

mod export;
mod from;
mod hash;
mod reconcile;

use clap::Subcommand;

/// What to ask.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write records for other systems, each run going on where the last one ended
    Export(export::Arguments),
    /// Find the calls that carried a body
    Hash(hash::Arguments),
    /// Compare the journal with an agent's own log: who saw what the other did not
    Reconcile(Box<reconcile::Arguments>),
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    match &arguments.command {
        Command::Export(arguments) => export::run(arguments),
        Command::Hash(arguments) => hash::run(arguments),
        Command::Reconcile(arguments) => reconcile::run(arguments),
    }
}
