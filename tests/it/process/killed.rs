//! I-2 under fire: the gateway is killed again and again while callers send, and whatever the
//! agent received has an intent record.

use super::hello_agent;
use crate::support::client::{Client, get};
use crate::support::fake_agent::{message, version_of};
use crate::support::http1::sha256;
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::process::{Files, Plan, Process, RPC, eventually, of_kind};
use portcullis::cli::demo_agent::{DemoAgent, GREETING};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tokio::task::JoinSet;

const CLIENTS: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_agent_received_is_recorded_with_durability_write() {
    under_fire("write", 18).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_agent_received_is_recorded_with_durability_write_again() {
    under_fire("write", 18).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_agent_received_is_recorded_with_durability_group() {
    under_fire("group", 17).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_agent_received_is_recorded_with_durability_group_again() {
    under_fire("group", 17).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_agent_received_is_recorded_with_durability_each() {
    under_fire("each", 17).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_agent_received_is_recorded_with_durability_each_again() {
    under_fire("each", 17).await;
}

/// What the callers know themselves.
#[derive(Default)]
struct Callers {
    next: AtomicU64,
    /// Calls that got the agent's answer.
    answered: AtomicU64,
}

async fn under_fire(durability: &str, rounds: usize) {
    let mut random = Random::seeded();
    let agent = hello_agent().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let url = agent.url();
    let files = Files::write(
        &issuer,
        &Plan {
            durability,
            ..Plan::for_agent(&url)
        },
    );
    let token: Arc<str> = issuer.token("alice", Grant::Agent, Value::Null).into();
    let callers = Arc::new(Callers::default());
    for round in 0..rounds {
        if round % 3 == 1 {
            // A crash in the middle of mending what the last one left.
            let starting = Process::spawn(&files, &[], &[]);
            tokio::time::sleep(Duration::from_micros(random.below(50_000))).await;
            starting.kill();
        }
        let process = Process::start(&files).await;
        // The chain is whole again, and nothing of the round before is left open.
        check(&files, &agent);
        let before = agent.counters().executions();
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(send_until_it_dies(
                process.public,
                Arc::clone(&token),
                Arc::clone(&callers),
            ));
        }
        eventually("the first execution", async || {
            (agent.counters().executions() > before).then_some(())
        })
        .await;
        // The moment of the crash is the thing that is tried out here.
        tokio::time::sleep(Duration::from_micros(random.below(70_000))).await;
        process.kill();
        while clients.join_next().await.transpose().unwrap().is_some() {}
    }
    let mut last = Process::start(&files).await;
    let (executions, unknown) = check(&files, &agent);
    let metrics = get(last.admin, "/metrics", &[]).await.unwrap().text();
    assert_eq!(counted(&metrics), closed_at_start(&files), "{metrics}");
    last.signal("TERM");
    assert!(last.ended().await.success());
    let answered = callers.answered.load(Ordering::SeqCst);
    eprintln!("{rounds} kills, {executions} executions, {answered} answered, {unknown} unknown");
    assert!(answered <= executions as u64);
    assert!(unknown > 0, "no kill met a call under way");
}

/// Deliveries that the last start counted as unknown.
fn counted(metrics: &str) -> u64 {
    let line = r#"portcullis_deliveries_total{agent="pr-agent",delivery="unknown"} "#;
    let counted = metrics.lines().find_map(|l| l.strip_prefix(line));
    counted.map_or(0, |number| number.parse().unwrap())
}

/// What the journal says of the same start.
fn closed_at_start(files: &Files) -> u64 {
    let records = files.records();
    let opened = records.iter().rfind(|r| r["note"] == "opened").unwrap();
    opened["open_intents"].as_u64().unwrap_or(0)
}

/// One keep-alive connection, one message after the other, none of them twice.
async fn send_until_it_dies(gateway: SocketAddr, token: Arc<str>, callers: Arc<Callers>) {
    let Ok(mut client) = Client::connect(gateway).await else {
        return;
    };
    loop {
        let number = callers.next.fetch_add(1, Ordering::SeqCst);
        let body = message(
            "SendMessage",
            &format!("text number {number}"),
            &[("messageId", &format!("m-{number}"))],
        );
        let version = version_of("SendMessage");
        let Ok(reply) = client.post_json(RPC, Some(&token), version, &body).await else {
            return;
        };
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(reply.text().contains(GREETING), "{}", reply.text());
        callers.answered.fetch_add(1, Ordering::SeqCst);
    }
}

/// Compares what the agent received with the journal, after a start; returns the number of
/// messages that the agent acted on, and of intents that were closed as unknown.
fn check(files: &Files, agent: &DemoAgent) -> (usize, usize) {
    let records = files.records();
    let mut intents = HashMap::new();
    for intent in of_kind(&records, "intent") {
        let id = intent["message_id"].as_str().unwrap();
        let earlier = intents.insert(id, intent);
        assert!(earlier.is_none(), "two intents for {id}");
    }
    let mut received = HashSet::new();
    for request in agent.requests() {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let id = body["params"]["message"]["messageId"].as_str().unwrap();
        let head = String::from_utf8_lossy(&request.head).to_ascii_lowercase();
        let intent = intents
            .get(id)
            .unwrap_or_else(|| panic!("the agent received {id}, and no intent says so"));
        assert_eq!(
            intent["request"]["sha256"].as_str().unwrap(),
            sha256(&request.body),
            "{intent}"
        );
        // The agent's own log names the request as the record does.
        let told = format!(
            "portcullis-request-id: {}",
            intent["request_id"].as_str().unwrap()
        );
        assert!(head.contains(&told.to_ascii_lowercase()), "{told}: {head}");
        let twice = !received.insert(id.to_owned());
        assert!(!twice, "{id} was sent once and received twice");
    }
    assert_eq!(agent.counters().executions(), received.len() as u64);

    let mut open: HashSet<u64> = intents
        .values()
        .map(|i| i["seq"].as_u64().unwrap())
        .collect();
    let mut unknown = 0;
    for outcome in of_kind(&records, "outcome") {
        let intent = outcome["intent"].as_u64().unwrap();
        assert!(
            open.remove(&intent),
            "two outcomes, or none to have one: {outcome}"
        );
        if outcome["delivery"] == "unknown" {
            assert_eq!(outcome["reached"], "maybe");
            unknown += 1;
        }
    }
    assert!(open.is_empty(), "intents were left open: {open:?}");
    let mut closed = 0;
    for (at, note) in records
        .iter()
        .enumerate()
        .filter(|(_, r)| r["note"] == "opened")
    {
        closed += note["open_intents"].as_u64().unwrap();
        // Every start but the first follows a kill, and says whose last record stands where.
        let own = |r: &&Value| r["instance"] != note["instance"];
        if let Some(last) = records[..at].iter().rfind(own) {
            let unclosed = &note["unclosed"];
            assert_eq!(unclosed["instance"], last["instance"], "{note}");
            // The outcomes that were made for it stand between, and name its generation.
            assert!(
                unclosed["seq"].as_u64() >= Some(1) && unclosed["seq"] == last["seq"],
                "{note}"
            );
        }
    }
    // A start that was killed itself may have closed some and not come to say so.
    assert!(closed <= unknown as u64, "{closed} of {unknown}");
    (received.len(), unknown)
}

/// A small generator (xorshift); its seed is printed, and taken from `PORTCULLIS_TEST_SEED`.
struct Random(u64);

impl Random {
    fn seeded() -> Random {
        let given = std::env::var("PORTCULLIS_TEST_SEED").ok();
        let seed = given.and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            now.unwrap().as_nanos() as u64 | 1
        });
        eprintln!("PORTCULLIS_TEST_SEED={seed}");
        Random(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
