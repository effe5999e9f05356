//! `portcullis prove`: the tests of policies, against live parts.
//!
//! Answers: does a call that the policy refuses leave the agent untouched, by the agent's own
//! count, and does one that it allows arrive once. May import: what `cli` may. Invariants: a call is
//! sent for real and judged by a gateway that runs; what is simulated is named; what was not tried
//! is never counted as proven; no token is printed or kept. Start reading at [`run`].

mod count;
mod report;
mod row;
mod running;
mod send;
mod separate;
mod signed;
mod simulate;
mod stage;
mod token;
mod verify;

use super::caller::usage;
use super::suite::{Named, Sources, Suite};
use crate::adapters::key_files;
use crate::cli::exit;
use crate::config::snapshot::SigningKeys;
use crate::identity::SigningKey;
use count::Elsewhere;
use report::Report;
use row::Judged;
use stage::{Parts, Stage};
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

/// The gateway file where none is named.
const DEFAULT_CONFIG: &str = "config/gateway.yaml";

/// What to prove.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Policy files, `*_test.yaml` files, and folders of both. Policy files among them take the
    /// place of those that the gateway file names. Default: the gateway file's policies, and the
    /// tests beside them
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The gateway file [default: config/gateway.yaml]; with --verify, the result must be about it
    /// and its policies
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Call the agents that the gateway file names, instead of built-in ones
    #[arg(long, conflicts_with = "gateway")]
    real_agents: bool,
    /// Use a gateway that runs already, instead of one of its own in this process
    #[arg(long, value_name = "URL", requires = "token_command")]
    gateway: Option<String>,
    /// Run this for each test: it gets the caller as JSON and prints a token
    #[arg(long, value_name = "COMMAND", requires = "gateway")]
    token_command: Option<String>,
    /// Where an agent says how often it acted, as JSON; repeated for each agent
    #[arg(long, value_name = "[AGENT=]URL")]
    counter_url: Vec<String>,
    /// Where in that JSON the number is: names from the top down
    #[arg(long, value_name = "A.B.C", default_value = "executions")]
    counter_path: String,
    /// Write the result, signed, to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The Ed25519 key that signs or signed it, in PKCS#8 PEM [default: the gateway's own, in
    /// `keys.dir`]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Verify a result that was written with --out, and try nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "paths", "real_agents", "gateway", "counter_url", "out",
    ])]
    verify: Option<PathBuf>,
    /// With --verify: the public keys whose signatures count
    #[arg(long, value_name = "FILE", requires = "verify", conflicts_with = "key")]
    jwks: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> u8 {
    if let Some(file) = &arguments.verify {
        return verify::run(arguments, file);
    }
    prove(arguments).unwrap_or_else(|code| code)
}

fn told(error: impl Display) -> u8 {
    eprintln!("error: {error}");
    exit::INVALID
}

fn prove(arguments: &Arguments) -> Result<u8, u8> {
    let outside = arguments.real_agents || arguments.gateway.is_some();
    if !outside && !arguments.counter_url.is_empty() {
        return Err(usage(
            "built-in agents count themselves",
            "leave out --counter-url, or add --real-agents",
        ));
    }
    if arguments.key.is_some() && arguments.out.is_none() {
        return Err(usage(
            "nothing is signed",
            "add --out FILE, or leave out --key",
        ));
    }
    let counters = Elsewhere::parse(&arguments.counter_url, &arguments.counter_path)
        .map_err(|what| usage(what, "write --counter-url AGENT=http://host:port/path"))?;
    let config = arguments.config.clone();
    let suite = Suite::open(&Named {
        paths: arguments.paths.clone(),
        config: config.unwrap_or_else(|| DEFAULT_CONFIG.into()),
    })?;
    let key = signing_key(arguments, &suite.snapshot.keys)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(told)?;
    let report = runtime.block_on(tried(arguments, suite, counters));
    // A token command that does not end is nobody's to wait for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    let mut report = report?;
    if let (Some(out), Some(key)) = (&arguments.out, &key) {
        report
            .sign(key)
            .ok_or_else(|| told("the result cannot be signed"))?;
        let text = format!("{:#}\n", report.json());
        std::fs::write(out, text)
            .map_err(|error| told(format!("`{}` cannot be written: {error}", out.display())))?;
    }
    if arguments.json {
        println!("{:#}", report.json());
    } else {
        print!("{}", report.text());
        if let (Some(out), Some(key)) = (&arguments.out, &key) {
            println!("signed by {}: {}", key.kid(), out.display());
        }
    }
    Ok(report.exit())
}

/// The key that signs, before anything is tried.
fn signing_key(arguments: &Arguments, own: &SigningKeys) -> Result<Option<SigningKey>, u8> {
    if arguments.out.is_none() {
        return Ok(None);
    }
    let file = match &arguments.key {
        Some(file) => Some((file.clone(), false)),
        None => own.proof_file(),
    };
    let Some((file, make)) = file else {
        eprintln!("error: there is no key to sign the result with");
        eprintln!("   = help: give --key FILE, or add `keys: {{dir: …}}` to the gateway file");
        return Err(exit::INVALID);
    };
    key_files::open(&file, make).map(Some).map_err(told)
}

async fn tried(arguments: &Arguments, suite: Suite, counters: Elsewhere) -> Result<Report, u8> {
    let Suite {
        snapshot,
        policy,
        trials,
        passed_over,
        sources,
    } = suite;
    let parts = match (&arguments.gateway, &arguments.token_command) {
        (Some(url), Some(command)) => Parts::Running(url, command),
        (_, _) => Parts::Separate {
            policy,
            real_agents: arguments.real_agents,
        },
    };
    let stage = Stage::open(parts, snapshot, counters)
        .await
        .map_err(|error| {
            eprintln!("error: nothing can be tried: {error}");
            exit::NO
        })?;
    let mut stage = stage;
    let shows = std::io::stderr().is_terminal();
    let mut rows = Vec::new();
    for (done, trial) in trials.iter().enumerate() {
        if shows {
            eprint!("\r{done} of {}", trials.len());
            let _ = std::io::stderr().flush();
        }
        rows.push(stage.play(trial).await);
    }
    if shows {
        eprint!("\r\x1b[K");
    }
    let stray = stage.stray().await;
    let setting = stage.setting(&sources, passed_over);
    let journal = stage.finish().await.map_err(told)?;
    let rows = rows.into_iter();
    let rows: Vec<Judged<'_>> = rows.map(|row| Judged::new(row, journal.as_ref())).collect();
    Ok(Report::new(setting, &rows, journal.as_ref(), stray))
}
