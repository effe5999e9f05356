//! The program with a collector: calls do not wait for it, and neither a kill nor an end loses
//! what it should get.

use super::super::support::client::{Client, get};
use super::super::support::fake_agent::{message, version_of};
use super::super::support::issuer::{DevAlgorithm, Grant, Issuer};
use super::super::support::loopback;
use super::super::support::process::{Files, Plan, Process, RPC, eventually};
use super::collector::{Collector, Mood};
use portcullis::cli::demo_agent::{DemoAgent, Options};
use serde_json::Value;
use std::collections::HashSet;

const CALLS: usize = 60;

async fn call(process: &Process, token: &str, many: usize) {
    let mut client = Client::connect(process.public).await.unwrap();
    for n in 0..many {
        let body = message("SendMessage", &format!("hello {n}"), &[]);
        let fields = version_of("SendMessage");
        let answer = client.post_json(RPC, Some(token), fields, &body).await;
        assert_eq!(answer.unwrap().status, 200);
    }
}

fn lines(files: &Files) -> Vec<String> {
    let bytes = files.journal_bytes();
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let text = std::str::from_utf8(&bytes[..whole]).unwrap();
    text.lines().map(str::to_owned).collect()
}

async fn metric(process: &Process, name: &str) -> u64 {
    let text = get(process.admin, "/metrics", &[]).await.unwrap().text();
    let start = format!("portcullis_export_{name}{{sink=\"otlp\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.map_or(0, |value| value.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_do_not_wait_for_a_collector_and_a_kill_loses_nothing() {
    let options = Options {
        skills: vec!["hello".to_owned()],
        ..Options::default()
    };
    let agent = DemoAgent::start_with(loopback(), options).await.unwrap();
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let files = Files::write(&issuer, &Plan::for_agent(&agent.url()));
    let collector = Collector::start(Mood::Hangs).await;
    let shipping = format!(
        "telemetry: {{otlp: {{endpoint: \"http://{}\"}}}}\n",
        collector.address
    );
    files.put("gateway.yaml", &(files.text("gateway.yaml") + &shipping));
    let token = issuer.token("alice", Grant::Agent, Value::Null);

    let process = Process::start(&files).await;
    eventually("a request that hangs", async || {
        (collector.requests().0 > 0).then_some(())
    })
    .await;
    call(&process, &token, CALLS).await;
    // All were answered while one request to the collector hung.
    assert_eq!(collector.lines(), [""; 0]);
    assert_eq!(metric(&process, "dropped_total").await, 0);
    process.kill();

    collector.becomes(Mood::Takes);
    let process = Process::start(&files).await;
    eventually("what was written before the kill", async || {
        (collector.lines().len() > 2 * CALLS).then_some(())
    })
    .await;
    process.kill();
    let mut process = Process::start(&files).await;
    call(&process, &token, 1).await;
    process.signal("TERM");
    assert!(process.ended().await.success());

    // Every record, the last one too, which is written when the gateway ends.
    let (shipped, all) = (collector.lines(), lines(&files));
    let distinct: HashSet<&String> = shipped.iter().collect();
    let missing: Vec<_> = all.iter().filter(|line| !distinct.contains(line)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    assert_eq!(distinct.len(), all.len());
    assert_eq!(shipped.last(), all.last());
    assert!(
        all.last().unwrap().contains("\"kind\":\"checkpoint\""),
        "{:?}",
        all.last()
    );
    // Once, but for what was under way when it was killed.
    assert!(
        shipped.len() < all.len() + 2 * 512,
        "{} of {}",
        shipped.len(),
        all.len()
    );
}
