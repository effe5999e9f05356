//! `portcullis check`: every problem of a configuration, all at once; with `--live`, what agents'
//! cards say to it.

use super::policy::untested::untested;
use super::{exit, sarif};
use crate::adapters::clock::SystemClock;
use crate::adapters::fetch::cards::CardFetcher;
use crate::adapters::key_files;
use crate::adapters::random::SystemRandom;
use crate::config::check::load;
use crate::config::snapshot::Snapshot;
use crate::pipeline::cards::{CardStore, CardView, RefreshPorts, refresh_once};
use crate::pipeline::ports::{Clock, UnixMillis};
use crate::source::Problems;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// What to check.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The gateway file
    #[arg(long, value_name = "FILE", default_value = "config/gateway.yaml")]
    config: PathBuf,
    /// Print the problems as JSON
    #[arg(long)]
    json: bool,
    /// Print the problems as SARIF 2.1.0
    #[arg(long, conflicts_with_all = ["json", "live"])]
    sarif: bool,
    /// Say what a code such as `PC202` means, and stop
    #[arg(long, value_name = "CODE", exclusive = true)]
    explain: Option<String>,
    /// Fetch each agent's card too, and say how it differs from the configuration
    #[arg(long)]
    live: bool,
}

/// A section for each code, with an example.
const PAGE: &str = include_str!("../../config/diagnostics.md");

pub(super) fn run(arguments: Arguments) -> u8 {
    if let Some(code) = &arguments.explain {
        return match explained(code) {
            Some(section) => {
                println!("{}", section.trim_end());
                exit::YES
            }
            None => {
                eprintln!(
                    "error: there is no code `{code}`\n  = help: a code is `PC` and three digits, as it stands in the brackets of a message"
                );
                exit::USAGE
            }
        };
    }
    let (mut problems, snapshot) = match load(&arguments.config) {
        Ok(loaded) => (loaded.warnings, Some(loaded.snapshot)),
        Err(problems) => (problems, None),
    };
    if let Some(snapshot) = &snapshot {
        problems.extend(expired(snapshot, SystemClock::new().now()));
        problems.extend(untested(&arguments.config));
    }
    let good = snapshot.is_some() && !problems.has_errors();
    let cards = match snapshot.as_ref().filter(|_| arguments.live) {
        Some(snapshot) => match look(snapshot) {
            Ok(cards) => Some(cards),
            Err(error) => {
                eprintln!("error: {error}");
                return exit::NO;
            }
        },
        None => None,
    };
    if arguments.sarif {
        println!("{:#}", sarif::log(&problems));
    } else if arguments.json {
        let mut report = as_json(&problems, good);
        if let (Some(report), Some(cards)) = (report.as_object_mut(), &cards) {
            let cards = cards.iter().map(Looked::as_json).collect();
            report.insert("agents".to_owned(), Value::Array(cards));
        }
        println!("{report:#}");
    } else {
        eprint!("{problems}");
        if good {
            println!("{}: good", arguments.config.display());
        }
        for card in cards.iter().flatten() {
            print!("{}", card.as_text());
        }
    }
    match (good, cards) {
        (false, _) => exit::INVALID,
        (true, Some(cards)) if cards.iter().any(|card| !card.published) => exit::NO,
        (true, _) => exit::YES,
    }
}

/// The page's section about a code.
fn explained(code: &str) -> Option<&'static str> {
    let code = code.to_ascii_uppercase();
    let mut sections = PAGE.split("\n## ").skip(1);
    sections.find(|section| section.split(':').next() == Some(&*code))
}

/// Rules in shadow mode whose time is over. They are no errors of a gateway that starts: it alerts.
fn expired(snapshot: &Snapshot, now: UnixMillis) -> Problems {
    let now = i64::try_from(now / 1000).unwrap_or(i64::MAX);
    let shadows = snapshot.policy.shadows().iter();
    let expired = shadows.filter_map(|shadow| shadow.expired(now));
    Problems(expired.cloned().collect())
}

/// What came of asking one agent for its card.
struct Looked {
    agent: Box<str>,
    /// Whether there is a card to publish.
    published: bool,
    /// What its signatures are worth, where `verify` asks.
    signature: Option<&'static str>,
    /// What an operator should look at: its kind, and in words.
    notices: Vec<(&'static str, String)>,
}

impl Looked {
    fn as_json(&self) -> Value {
        let notices = self.notices.iter();
        let notices: Vec<_> = notices
            .map(|(kind, says)| json!({ "kind": kind, "says": says }))
            .collect();
        json!({ "agent": self.agent, "published": self.published, "signature": self.signature,
            "notices": notices })
    }

    fn as_text(&self) -> String {
        let card = if self.published {
            "card good"
        } else {
            "no card"
        };
        let signature = self.signature.map(|s| format!(", signature: {s}"));
        let mut text = format!("{}: {card}{}\n", self.agent, signature.unwrap_or_default());
        for (_, says) in &self.notices {
            text.push_str(&format!("{}: warning: {says}\n", self.agent));
        }
        text
    }
}

/// Fetches every agent's card once, as a gateway with this configuration would.
fn look(snapshot: &Snapshot) -> Result<Vec<Looked>, String> {
    let clock = Arc::new(SystemClock::new());
    // A key that is not there yet is made when the gateway starts, not by looking.
    let key = snapshot.keys.card_file();
    let key = key.and_then(|(file, _)| key_files::open(&file, false).ok());
    let store = CardStore::for_snapshot(snapshot, None, key.map(Arc::new).as_ref(), clock.now());
    let ports = RefreshPorts {
        source: Arc::new(CardFetcher::default()),
        clock,
        random: Arc::new(SystemRandom),
        observe: Arc::new(|_, _| {}),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start a worker thread: {error}"))?;
    let looked = snapshot.agents.iter().map(|agent| {
        runtime.block_on(refresh_once(&store, agent.index, &ports));
        let published = match store.card(agent.index) {
            CardView::Ready(published, _) => Some(published),
            CardView::Missing(_) | CardView::Withheld => None,
        };
        let attested = published.as_ref().and_then(|p| p.attested.as_ref());
        let notices = store.notices_of(agent.index);
        Looked {
            agent: agent.name.clone(),
            published: published.is_some(),
            signature: attested.map(|attested| attested.label()),
            notices: notices.iter().map(|n| (n.label(), n.to_string())).collect(),
        }
    });
    Ok(looked.collect())
}

fn as_json(problems: &Problems, good: bool) -> serde_json::Value {
    let list: Vec<_> = problems
        .0
        .iter()
        .map(|p| {
            serde_json::json!({
                "severity": match p.severity {
                    crate::source::Severity::Error => "error",
                    crate::source::Severity::Warning => "warning",
                },
                "code": p.code, "message": p.message, "file": p.file, "line": p.line,
                "column": p.column, "path": p.path, "hint": p.hint,
            })
        })
        .collect();
    serde_json::json!({ "good": good, "problems": list })
}
