//! `portcullis demo`: a gateway, an agent and callers, without a file or a network.
//!
//! Answers: does a refusal leave the agent untouched, by the agent's own counters. May import:
//! everything. Invariants: everything listens on loopback and lives in a folder of its own that is
//! removed at the end; the tokens that are printed are worth nothing elsewhere. Start reading at
//! [`rows`].

mod rows;
mod world;

use super::demo_agent::DemoAgent;
use super::exit;
use rows::{Outcome, rows};
use std::io::Write;
use std::net::SocketAddr;
use world::World;

/// How to show it.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Print the table and exit: 0 only if every row came out as it should
    #[arg(long)]
    once: bool,
    /// Print the table as JSON; implies `--once`
    #[arg(long)]
    json: bool,
    /// Serve only the demo's agent at this address, to put a gateway of your own in front of it
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["once", "json"])]
    agent: Option<SocketAddr>,
}

pub(super) fn run(arguments: Arguments) -> u8 {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start worker threads: {error}");
            return exit::NO;
        }
    };
    if let Some(address) = arguments.agent {
        return runtime.block_on(serve_agent(address));
    }
    runtime.block_on(async {
        let mut world = match World::start().await {
            Ok(world) => world,
            Err(error) => {
                eprintln!("error: the demo cannot start: {error}");
                return exit::NO;
            }
        };
        let code = show(&arguments, &mut world).await;
        world.stop().await;
        code
    })
}

/// The agent alone, until Ctrl-C.
async fn serve_agent(address: SocketAddr) -> u8 {
    let agent = match DemoAgent::start(address).await {
        Ok(agent) => agent,
        Err(error) => {
            eprintln!("error: the demo's agent cannot listen on `{address}`: {error}");
            eprintln!("   = help: choose an address of this machine with a free port");
            return exit::NO;
        }
    };
    let url = agent.url();
    println!("agent    {url}  (anybody who reaches this address can call it)");
    println!("card     {url}/.well-known/agent-card.json");
    println!("counted  {url}/counters");
    let _ = std::io::stdout().flush();
    let _ = tokio::signal::ctrl_c().await;
    agent.stop().await;
    exit::YES
}

/// The footnote of the table.
const BYPASS: &str = "
(*) Whoever knows the agent's address can walk around the gateway. Let only the gateway reach it:
    by network policy, or by binding it to an address that nobody else can reach.
";

async fn show(arguments: &Arguments, world: &mut World) -> u8 {
    if !arguments.json {
        println!("{}", world.introduction());
        println!("{}", Outcome::heading());
    }
    let mut results = Vec::new();
    for row in rows() {
        let outcome = row.play(world).await;
        if !arguments.json {
            println!("{}", outcome.line(&row));
        }
        results.push((row, outcome));
    }
    let wrong = results
        .iter()
        .filter(|(row, outcome)| !outcome.is_right(row))
        .count();
    if arguments.json {
        let rows: Vec<_> = results
            .iter()
            .map(|(row, outcome)| outcome.json(row))
            .collect();
        println!(
            "{:#}",
            serde_json::json!({ "right": wrong == 0, "rows": rows })
        );
    } else if wrong == 0 {
        let refusals = results.iter().filter(|(row, _)| row.is_refused()).count();
        println!("{BYPASS}");
        println!(
            "Every row came out as it should. {}",
            world.journal_summary(refusals).await
        );
    } else {
        println!("\n{wrong} of {} rows came out wrong.", results.len());
    }
    let code = if wrong == 0 { exit::YES } else { exit::NO };
    if arguments.once || arguments.json {
        return code;
    }
    println!("{}", world.things_to_try());
    let _ = std::io::stdout().flush();
    // Until Ctrl-C; if signals cannot be received there is nothing to wait for.
    let _ = tokio::signal::ctrl_c().await;
    code
}
