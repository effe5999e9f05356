//! Every case with steps: what changes between one request and the next.

use super::request::{Reply, Way, fault};
use super::stand::{Stand, Wanted};
use super::{Corpus, Request};
use crate::support::issuer_stub::Mode;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use tokio::task::JoinSet;

#[derive(Deserialize)]
struct Stepped {
    cases: Vec<Steps>,
}

#[derive(Deserialize)]
struct Steps {
    id: String,
    title: String,
    steps: Vec<Step>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Step {
    #[serde(rename = "do")]
    what: String,
    mode: Option<String>,
    jwks: Option<String>,
    seconds: u64,
    requests: Vec<Request>,
    concurrent: bool,
    at_most: usize,
    by: HashMap<String, Value>,
    change: HashMap<String, String>,
    name: String,
    contains: Option<String>,
    lacks: Option<String>,
    text: String,
}

fn mode(name: &str) -> Mode {
    match name {
        "ok" => Mode::Ok,
        "http_500" => Mode::Http500,
        "timeout" => Mode::Timeout,
        "refused" => Mode::Refused,
        "redirect" => Mode::Redirect,
        "oversize" => Mode::Oversize,
        "html" => Mode::Html,
        "drip" => Mode::Drip,
        "discovery_issuer_mismatch" => Mode::DiscoveryIssuerMismatch,
        "discovery_http_jwks" => Mode::DiscoveryHttpJwks,
        "discovery_metadata_ip" => Mode::DiscoveryMetadataIp,
        other => panic!("no mode {other}"),
    }
}

/// One case under way.
struct Running<'c> {
    corpus: &'c Corpus,
    stand: Stand,
    replies: Vec<Reply>,
    /// Fetches before the last step and before this one.
    fetches: (usize, usize),
    wrong: Vec<String>,
}

impl Running<'_> {
    async fn step(&mut self, step: &Step) {
        self.fetches = (self.fetches.1, self.stand.issuer.fetches());
        let variant = step.jwks.as_deref().unwrap_or("default");
        let keys = &self.corpus.jwks["A"][variant];
        match step.what.as_str() {
            "restart" => {
                let started = mode(step.mode.as_deref().unwrap());
                let wanted = Wanted {
                    issuer: started,
                    ..Wanted::default()
                };
                self.stand = Stand::new(self.corpus, &wanted).await;
                self.fetches = (0, 0);
            }
            "issuer_endpoint" => {
                self.stand
                    .issuer
                    .set(mode(step.mode.as_deref().unwrap()), keys);
            }
            "wait_refresh" => self.stand.refresh().await,
            "advance_clock" => self.stand.clock.advance(Duration::from_secs(step.seconds)),
            "request" if step.concurrent => self.at_once(&step.requests).await,
            "request" => {
                for (number, request) in step.requests.iter().enumerate() {
                    let before = self.stand.executions();
                    let reply = request.send(&self.way(request, number)).await;
                    self.judge(request, reply, before);
                }
            }
            "assert_fetches" => {
                let since = self.stand.issuer.fetches() - self.fetches.0;
                self.check(since <= step.at_most, format!("{since} fetches"));
            }
            "revoke" => self.stand.revoke(&step.by).await,
            "reconfigure" => self.stand.reconfigure(&step.change["policy"]).await,
            "assert_same_reply" => {
                let without_ids: Vec<Reply> = self.replies.iter().map(Reply::without_ids).collect();
                let same = without_ids.windows(2).all(|pair| pair[0] == pair[1]);
                self.check(same, format!("{without_ids:#?}"));
            }
            "assert_reply_header" => {
                let name = step.name.to_lowercase();
                for reply in self.replies.clone() {
                    let value = reply.field(&name).unwrap_or_default().to_owned();
                    let contains = step
                        .contains
                        .as_ref()
                        .is_none_or(|text| value.contains(text));
                    let lacks = step.lacks.as_ref().is_none_or(|text| !value.contains(text));
                    self.check(contains && lacks, format!("{name}: {value}"));
                }
            }
            "assert_reply_lacks" => {
                for reply in self.replies.clone() {
                    self.check(!reply.shows(&step.text), format!("{reply:?}"));
                }
            }
            // The log of all tests is searched for their tokens once they have run.
            "assert_log_lacks_tokens" => {
                let written = self.stand.written().await;
                for (_, value) in self.stand.sent.clone() {
                    for part in value.split('.').skip(1).filter(|part| part.len() > 15) {
                        self.check(
                            !written.contains(part),
                            "a part of a token was written".into(),
                        );
                    }
                }
            }
            other => panic!("no step {other}"),
        }
    }

    async fn at_once(&mut self, requests: &[Request]) {
        let before = self.stand.executions();
        let mut sending = JoinSet::new();
        for request in requests {
            let (request, way) = (request.clone(), self.way(request, 0));
            sending.spawn(async move {
                let reply = request.send(&way).await;
                (request, reply)
            });
        }
        let done = sending.join_all().await;
        let mut accepted = 0;
        for (request, reply) in done {
            let expect = request.expect.clone().unwrap();
            let executed = u64::from(expect.outcome == "accept");
            accepted += executed;
            if let Some(fault) = fault(&request, &expect, &reply, executed) {
                self.wrong.push(fault);
            }
        }
        let executed = self.stand.executions() - before;
        self.check(
            executed == accepted,
            format!("{executed} executed, {accepted} accepted"),
        );
    }

    fn way(&self, request: &Request, number: usize) -> Way {
        self.stand.way(request.tls_client.as_deref(), number)
    }

    fn judge(&mut self, request: &Request, reply: Reply, before: u64) {
        let executed = self.stand.executions() - before;
        let expect = request.expect.clone().unwrap();
        self.wrong.extend(fault(request, &expect, &reply, executed));
        self.stand.sent.extend(request.headers.iter().cloned());
        self.replies.push(reply);
    }

    fn check(&mut self, holds: bool, otherwise: String) {
        if !holds {
            self.wrong.push(otherwise);
        }
    }
}

#[tokio::test]
async fn every_case_with_steps_has_its_outcomes_over_http() {
    let corpus = Corpus::load();
    let stepped: Stepped =
        serde_json::from_str(include_str!("../../cases/tokens/steps.json")).unwrap();
    assert!(stepped.cases.len() >= 29, "{}", stepped.cases.len());
    let mut wrong = Vec::new();
    for case in &stepped.cases {
        let mut running = Running {
            corpus: &corpus,
            stand: Stand::new(&corpus, &Wanted::default()).await,
            replies: Vec::new(),
            fetches: (0, 0),
            wrong: Vec::new(),
        };
        for (number, step) in case.steps.iter().enumerate() {
            let before = running.wrong.len();
            running.step(step).await;
            for fault in &running.wrong[before..] {
                wrong.push(format!(
                    "{} ({}), step {number}: {fault}",
                    case.id, case.title
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
