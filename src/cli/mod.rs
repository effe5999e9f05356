//! The `portcullis` program: one file per command.
//!
//! Answers: what did the operator ask for, and which parts does that take. May import: everything;
//! the only place that makes adapters. Invariants: exit codes are 0 yes, 1 no, 2 usage, 3 invalid
//! input, 4 tests failed, 5 integrity; no secret is printed. Start reading at [`main`].

mod admin_client;
mod audit;
mod check;
mod demo;
pub mod demo_agent;
pub mod dev_issuer;
pub mod dev_proof;
mod log;
mod operators;
mod own_keys;
mod policy;
mod probe;
mod reload;
mod revoke;
mod run;
mod sarif;
mod schema;
mod scratch;
pub mod server;
pub mod shipping;
mod token;
pub mod upkeep;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Exit codes of every command.
pub mod exit {
    /// Yes.
    pub const YES: u8 = 0;
    /// No.
    pub const NO: u8 = 1;
    /// The command line is wrong.
    pub const USAGE: u8 = 2;
    /// A file that was named is wrong.
    pub const INVALID: u8 = 3;
    /// Tests failed.
    pub const FAILED: u8 = 4;
    /// What should be as it was is not.
    pub const INTEGRITY: u8 = 5;
}

/// An access gateway for A2A agents.
#[derive(Parser)]
#[command(name = "portcullis", version, about, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the gateway in front of an agent, without files or a network
    Demo(demo::Arguments),
    /// Run the gateway
    Run(run::Arguments),
    /// Check a gateway file and everything that it names
    Check(check::Arguments),
    /// Say what a change of policies allows and refuses, each with a caller that shows it
    Diff(policy::diff::Arguments),
    /// Judge the journal's calls again, under other policies
    Replay(policy::replay::Arguments),
    /// Narrow policies to what the journal shows to be used
    Suggest(policy::suggest::Arguments),
    /// Run the tests of policies, and say what they leave untested
    Test(policy::test::Arguments),
    /// Change each allowed test in one place, and say where nobody refuses
    Mutate(policy::mutate::Arguments),
    /// Say what comes of a call, and what every rule about it says
    Explain(Box<policy::explain::Arguments>),
    /// Say whether a caller may do something, or all that it may do
    CanI(Box<policy::can_i::Arguments>),
    /// Run the tests of policies against a live gateway and count at the agent
    Prove(Box<policy::prove::Arguments>),
    /// Try to reach an agent past the gateway, and say whether the way is closed
    Probe(probe::Arguments),
    /// Ask a journal what happened
    Audit(Box<audit::Arguments>),
    /// Have a running gateway refuse tokens before they expire
    Revoke(Box<revoke::Arguments>),
    /// Have a running gateway look at its files
    Reload(reload::Arguments),
    /// Print the JSON Schema of a file format
    Schema(schema::Arguments),
    /// Make and look into tokens, for development
    Token(Box<token::Arguments>),
}

/// Runs the program.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors; anything else is about usage.
            let code = if error.use_stderr() {
                exit::USAGE
            } else {
                exit::YES
            };
            print_error(&error);
            return ExitCode::from(code);
        }
    };
    ExitCode::from(match arguments.command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Diff(arguments) => policy::diff::run(&arguments),
        Command::Replay(arguments) => policy::replay::run(&arguments),
        Command::Suggest(arguments) => policy::suggest::run(&arguments),
        Command::Test(arguments) => policy::test::run(&arguments),
        Command::Mutate(arguments) => policy::mutate::run(&arguments),
        Command::Explain(arguments) => policy::explain::run(&arguments),
        Command::CanI(arguments) => policy::can_i::run(&arguments),
        Command::Prove(arguments) => policy::prove::run(&arguments),
        Command::Probe(arguments) => probe::run(&arguments),
        Command::Audit(arguments) => audit::run(&arguments),
        Command::Revoke(arguments) => revoke::run(*arguments),
        Command::Reload(arguments) => reload::run(&arguments),
        Command::Schema(arguments) => schema::run(arguments),
        Command::Token(arguments) => token::run(*arguments),
    })
}

/// Prints what is wrong with the command line, but no token that stands in it.
fn print_error(error: &clap::Error) {
    let arguments: Vec<String> = std::env::args().collect();
    let tokens: Vec<&str> = arguments.iter().filter_map(|a| token_in(a)).collect();
    if tokens.is_empty() || !error.use_stderr() {
        let _ = error.print();
        return;
    }
    let mut text = error.render().to_string();
    for token in tokens {
        text = text.replace(token, "[token]");
    }
    eprint!("{text}");
}

/// From where a token begins in an argument: `{"` in base64, and there are dots behind it.
fn token_in(argument: &str) -> Option<&str> {
    let token = &argument[argument.find("eyJ")?..];
    token.contains('.').then_some(token)
}
