//! `portcullis schema`: the JSON Schemas of what operators write and auditors read.

use super::exit;
use crate::config::check::load;
use crate::policy::schema;
use clap::ValueEnum;
use std::path::PathBuf;

/// What to print.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Which format
    format: Format,
    /// For policies and their tests: know the agents, skills, issuers and claims of this gateway
    /// file
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
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
    let loaded = match arguments.from.as_deref().map(load).transpose() {
        Ok(loaded) => loaded,
        Err(problems) => {
            eprint!("{problems}");
            return exit::INVALID;
        }
    };
    let world = loaded.as_ref().map(|loaded| loaded.snapshot.world());
    match arguments.format {
        Format::Policy => print!("{}", schema::policy(world.as_ref())),
        Format::Tests => print!("{}", schema::tests(world.as_ref())),
        Format::Gateway | Format::Record if world.is_some() => {
            eprintln!("error: `--from` is for `policy` and `tests`\n  = help: leave it out");
            return exit::USAGE;
        }
        Format::Gateway => print!("{}", crate::config::schema::gateway()),
        Format::Record => println!("{:#}", crate::audit::record::schema()),
    }
    exit::YES
}
