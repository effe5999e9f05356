//! `portcullis schema`: the JSON Schemas of what operators write and auditors read.

use super::exit;
use clap::ValueEnum;

/// What to print.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Which format
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// The gateway file
    Gateway,
    /// A policy file
    Policy,
    /// A file of policy tests
    Tests,
    /// One line of the journal
    Record,
}

pub(super) fn run(arguments: Arguments) -> u8 {
    match arguments.format {
        Format::Gateway => print!("{}", crate::config::schema::gateway()),
        Format::Policy => print!("{}", crate::policy::document::schema()),
        Format::Tests => print!("{}", crate::policy::trial::shape::schema()),
        Format::Record => println!("{:#}", crate::audit::record::schema()),
    }
    exit::YES
}
