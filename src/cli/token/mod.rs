//! `portcullis token`: a small issuer for development, and a look into tokens.
//!
//! Answers: how do I get a token to try the gateway with, and why is mine refused. May import:
//! what `cli` may. Invariants: private keys are files that only their owner may read and that are
//! never overwritten; only `mint` prints a token, only `dpop` a proof; nothing prints a key, a token that was given, or
//! its signature. Start reading at [`run`].

mod caller_key;
mod dpop;
mod explain_issuer;
mod inspect;
mod keygen;
mod mint;
mod shaped;
mod show;

pub(super) use inspect::{MAX_INPUT, whose};
pub(super) use show::safe;

use super::exit;
use crate::config::check::load;
use crate::config::snapshot::Snapshot;
use std::fmt;
use std::path::Path;

/// What to do.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a key for a development issuer, and print its entry for the gateway file
    Keygen(keygen::Arguments),
    /// Print a token, signed with such a key
    Mint(Box<mint::Arguments>),
    /// Print a proof of possession for one request with a token that is bound to a key
    Dpop(dpop::Arguments),
    /// Show what a token says and, with --config, whether the gateway would accept it
    Inspect(inspect::Arguments),
    /// Ask an issuer for its keys, say which of them are usable, and print its entry
    ExplainIssuer(explain_issuer::Arguments),
}

pub(super) fn run(arguments: Arguments) -> u8 {
    let done = match arguments.command {
        Command::Keygen(arguments) => keygen::run(&arguments),
        Command::Mint(arguments) => mint::run(&arguments),
        Command::Dpop(arguments) => dpop::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::ExplainIssuer(arguments) => explain_issuer::run(&arguments),
    };
    done.unwrap_or_else(|trouble| {
        eprint!("{trouble}");
        trouble.exit
    })
}

/// Why a command gave up, what to do about it, and the exit code.
struct Trouble {
    what: String,
    help: String,
    exit: u8,
}

impl Trouble {
    /// The command line is wrong.
    fn usage(what: impl Into<String>, help: impl Into<String>) -> Trouble {
        Trouble {
            what: what.into(),
            help: help.into(),
            exit: exit::USAGE,
        }
    }

    /// A file is wrong.
    fn file(path: &Path, what: impl fmt::Display, help: impl Into<String>) -> Trouble {
        Trouble {
            what: format!("`{}`: {what}", path.display()),
            help: help.into(),
            exit: exit::INVALID,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.what)?;
        if !self.help.is_empty() {
            writeln!(f, "   = help: {}", self.help)?;
        }
        Ok(())
    }
}

fn warn(what: impl fmt::Display) {
    eprintln!("warning: {what}");
}

/// The gateway file, whose problems are the answer when it has errors.
fn gateway(path: &Path) -> Result<Snapshot, Trouble> {
    match load(path) {
        Ok(loaded) => Ok(loaded.snapshot),
        Err(problems) => {
            eprintln!("{problems}");
            Err(Trouble::file(
                path,
                "the gateway file has errors",
                format!(
                    "mend them; `portcullis check --config {}` shows them again",
                    path.display()
                ),
            ))
        }
    }
}

/// Quoted for YAML, whatever is in it: a JSON string is a YAML string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
