//! `portcullis audit`: what an auditor asks of a journal, one file per command.
//!
//! Answers: what happened, who did it under which rule, and is the record of it whole. May import:
//! everything. Invariants: but for `prune`, nothing here writes into a journal, takes its lock or asks the gateway,
//! so that all of it works on a copy and beside a gateway that runs; what is no record is told with
//! its place and makes the exit code 5; text that others chose is shown cut and without controls.
//! Start reading at [`from`].

mod ask;
mod bundle;
mod export;
mod from;
mod hash;
mod keys;
mod policy;
mod prune;
mod query;
mod reconcile;
mod show;
mod spans;
mod table;
mod tail;
mod verify;

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
    /// Find calls, or count them
    Query(Box<query::Arguments>),
    /// Show everything about one request
    Show(show::Arguments),
    /// Print the last calls, and follow those that come
    Tail(Box<tail::Arguments>),
    /// Say whether a journal is as it was written, and which record is the first that is not
    Verify(verify::Arguments),
    /// Find the calls of a body or of a token, or hash values as redaction does
    Hash(hash::Arguments),
    /// Compare the journal with an agent's own log: who saw what the other did not
    Reconcile(Box<reconcile::Arguments>),
    /// Put the evidence about some calls into a folder that is verified by itself
    Bundle(Box<bundle::Arguments>),
    /// Remove old or exported segments, and leave what keeps the rest verifiable
    Prune(Box<prune::Arguments>),
    /// Say which configuration was in force
    Policy(policy::Arguments),
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    match &arguments.command {
        Command::Export(arguments) => export::run(arguments),
        Command::Query(arguments) => query::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Tail(arguments) => tail::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
        Command::Policy(arguments) => policy::run(arguments),
        Command::Bundle(arguments) => bundle::run(arguments),
        Command::Prune(arguments) => prune::run(arguments),
        Command::Hash(arguments) => hash::run(arguments),
        Command::Reconcile(arguments) => reconcile::run(arguments),
    }
}
