//! `portcullis demo`: a gateway, an agent and callers, without a file or a network.
//!
//! Answers: does a refusal leave the agent untouched, by the agent's own counters. May import:
//! everything. Invariants: everything listens on loopback and lives in a folder of its own that is
//! removed at the end; the tokens that are printed are worth nothing elsewhere. Start reading at
//! [`rows`].

mod rows;
mod world;

use super::exit;
use rows::{Outcome, rows};
use std::io::Write;
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
