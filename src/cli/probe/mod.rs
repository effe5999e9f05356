//! `portcullis probe`: whether an agent can be reached past the gateway (`design.md` 11).
//!
//! Answers: does an agent take calls from somebody who shows nothing. May import: everything.
//! Invariants: it sends no credential and nothing that an agent acts on; the card is fetched, and
//! each dialect is asked for a task under a random id, a read of something that is not there; it
//! ends within a bounded time, and doubt is never told as closed. Start reading at [`run`].

mod http;
mod plan;
mod rpc;
mod tls;

use super::exit;
use crate::adapters::random::SystemRandom;
use crate::pipeline::ports::Random;
use plan::{Place, Try, places, tries};
use reqwest::Url;
use serde_json::json;
use std::fmt;
use std::time::Duration;
use tls::Seen;
use tokio::time::Instant;

/// How long one question may take.
const ONE: Duration = Duration::from_secs(5);

/// What to probe.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Where the agent is: its base URL, or the URL of an interface
    #[arg(value_name = "URL")]
    url: String,
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=300))]
    timeout: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What came of one question.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// An agent answered it, to somebody who showed nothing.
    Answered(String),
    /// Refused: by a status, by TLS, or by closing the connection.
    Refused(String),
    /// Something answered, and it was neither.
    Unclear(String),
    /// No connection.
    Unreachable(String),
}

impl Outcome {
    fn label(&self) -> &'static str {
        match self {
            Outcome::Answered(_) => "answered",
            Outcome::Refused(_) => "refused",
            Outcome::Unclear(_) => "unclear",
            Outcome::Unreachable(_) => "unreachable",
        }
    }

    fn detail(&self) -> &str {
        match self {
            Outcome::Answered(text)
            | Outcome::Refused(text)
            | Outcome::Unclear(text)
            | Outcome::Unreachable(text) => text,
        }
    }
}

/// Whether the way is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Unreachable,
    Refuses,
    Open,
    Unclear,
}

impl Verdict {
    fn of(asked: &[Asked]) -> Verdict {
        let calls = || asked.iter().filter(|a| a.question != CARD);
        let any = |label: &str| calls().any(|a| a.outcome.label() == label);
        if any("answered") {
            Verdict::Open
        } else if any("refused") {
            // Where a path is refused, others that are not there say nothing.
            Verdict::Refuses
        } else if any("unclear") || asked.iter().any(|a| a.outcome.label() != "unreachable") {
            Verdict::Unclear
        } else {
            Verdict::Unreachable
        }
    }

    /// Doubt is no proof that the way is closed.
    fn is_closed(self) -> bool {
        match self {
            Verdict::Unreachable | Verdict::Refuses => true,
            Verdict::Open | Verdict::Unclear => false,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Unreachable => "closed: it cannot be reached from here",
            Verdict::Refuses => "closed: it can be reached from here, and refuses calls",
            Verdict::Open => "OPEN: it answers calls that did not come through the gateway",
            Verdict::Unclear => {
                "unclear: something answers there, and no call was refused; name the URL of an interface"
            }
        })
    }
}

/// What is asked about the card.
const CARD: &str = "card";

struct Asked {
    question: &'static str,
    url: String,
    outcome: Outcome,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let url = Url::parse(&arguments.url).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty()
    });
    let Some(url) = url else {
        eprintln!(
            "error: not a URL that can be probed; write `http://HOST:PORT/PATH` or `https://…`"
        );
        return exit::USAGE;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        eprintln!("error: cannot start a worker thread");
        return exit::NO;
    };
    let seen = Seen::default();
    let until = Duration::from_secs(arguments.timeout);
    let asked = match runtime.block_on(ask_all(&url, until, &seen)) {
        Ok(asked) => asked,
        Err(error) => {
            eprintln!("error: {error}");
            return exit::NO;
        }
    };
    let verdict = Verdict::of(&asked);
    print(
        arguments.json,
        &url,
        &asked,
        verdict,
        seen.distrust().as_deref(),
    );
    if verdict.is_closed() {
        exit::YES
    } else {
        exit::NO
    }
}

/// Asks until everything was asked or the time is over.
async fn ask_all(url: &Url, bound: Duration, seen: &Seen) -> Result<Vec<Asked>, String> {
    let until = Instant::now() + bound;
    let client = http::client(seen).map_err(|error| format!("cannot set up TLS: {error}"))?;
    let id = random_id();
    let mut asked = Vec::new();
    let mut cards = Vec::new();
    for at in plan::card_urls(url) {
        let (outcome, card) = within(until, http::card(&client, &at)).await;
        let unreachable = matches!(outcome, Outcome::Unreachable(_));
        let found = card.is_some();
        cards.extend(card);
        asked.push(Asked {
            question: CARD,
            url: at.to_string(),
            outcome,
        });
        // What cannot be connected to once needs no more questions.
        if unreachable {
            return Ok(asked);
        }
        if found {
            break;
        }
    }
    for place in places(url, &cards) {
        for question in tries(&place) {
            let (outcome, ()) = within(until, async {
                (one(&client, seen, &place, question, &id).await, ())
            })
            .await;
            asked.push(Asked {
                question: question.name(),
                url: place.url.to_string(),
                outcome,
            });
        }
    }
    Ok(asked)
}

async fn one(
    client: &http::Client,
    seen: &Seen,
    place: &Place,
    question: Try,
    id: &str,
) -> Outcome {
    match question {
        Try::JsonRpc(version) => http::json_rpc(client, &place.url, version, id).await,
        Try::Rest(version) => http::rest(client, &place.url, version, id).await,
        Try::Grpc(version) => rpc::ask(&place.url, seen, version, id).await,
    }
}

/// The outcome, or that there was none in time.
async fn within<T: Default>(
    until: Instant,
    asking: impl Future<Output = (Outcome, T)>,
) -> (Outcome, T) {
    let until = until.min(Instant::now() + ONE);
    match tokio::time::timeout_at(until, asking).await {
        Ok(outcome) => outcome,
        // Connecting has a shorter bound of its own.
        Err(_) => (
            Outcome::Unclear("no answer in time".to_owned()),
            T::default(),
        ),
    }
}

/// An id that no task has.
fn random_id() -> String {
    let mut bytes = [0u8; 16];
    SystemRandom.fill(&mut bytes);
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    format!("probe-{hex}")
}

fn print(as_json: bool, url: &Url, asked: &[Asked], verdict: Verdict, distrust: Option<&str>) {
    if as_json {
        let tries: Vec<_> = asked
            .iter()
            .map(|a| {
                json!({"question": a.question, "url": a.url, "outcome": a.outcome.label(),
                    "detail": a.outcome.detail()})
            })
            .collect();
        let label = match verdict {
            Verdict::Unreachable => "unreachable",
            Verdict::Refuses => "refuses",
            Verdict::Open => "open",
            Verdict::Unclear => "unclear",
        };
        let report = json!({"url": url.as_str(), "closed": verdict.is_closed(),
            "verdict": label, "certificate": distrust, "tries": tries});
        println!("{report:#}");
        return;
    }
    for a in asked {
        println!(
            "{:<17} {:<11} {}  ({})",
            a.question,
            a.outcome.label(),
            a.url,
            a.outcome.detail()
        );
    }
    if let Some(why) = distrust {
        println!("its certificate is not trusted by this machine ({why}); asked all the same");
    }
    println!("{verdict}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(question: &'static str, outcome: Outcome) -> Asked {
        Asked {
            question,
            url: String::new(),
            outcome,
        }
    }

    #[test]
    fn doubt_is_not_closed() {
        let text = String::new;
        let refused = || asked("a", Outcome::Refused(text()));
        let unclear = || asked("b", Outcome::Unclear(text()));
        let answered = || asked("c", Outcome::Answered(text()));
        let gone = || asked("d", Outcome::Unreachable(text()));
        let card = || asked(CARD, Outcome::Answered(text()));
        for (all, verdict) in [
            (vec![gone()], Verdict::Unreachable),
            (vec![card(), refused(), unclear(), gone()], Verdict::Refuses),
            (vec![card(), refused(), answered()], Verdict::Open),
            (vec![unclear(), gone()], Verdict::Unclear),
            // Only the card was there in time.
            (vec![card(), gone()], Verdict::Unclear),
        ] {
            assert_eq!(Verdict::of(&all), verdict);
        }
    }
}
