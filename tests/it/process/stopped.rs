//! SIGTERM: what is under way is finished or cut, recorded, and the program ends well.

use super::{card, hello_agent};
use crate::support::client::{Client, get, post_json, request_head};
use crate::support::fake_agent::{message, version_of};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::process::{Files, Plan, Process, RPC, eventually, of_kind};
use crate::support::raw_agent::{Act, RawAgent, Then, chunk, json_answer, stream_head};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

fn task(state: &str) -> Value {
    json!({"id": "t-1", "contextId": "c-1", "status": {"state": state}})
}

/// A unary call in flight gets its reply, a stream lives to the end of the grace period.
#[tokio::test]
async fn calls_under_way_are_finished_and_streams_are_cut_at_the_end_of_the_grace_period() {
    let agent = RawAgent::start([]).await;
    let (unary, unary_feed) = mpsc::unbounded_channel();
    let (stream, stream_feed) = mpsc::unbounded_channel();
    agent.play([
        Act::Answer(card(agent.address.port())),
        Act::Fed(stream_feed, Then::Keep),
        Act::Fed(unary_feed, Then::Keep),
    ]);
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let url = format!("http://{}", agent.address);
    let files = Files::write(&issuer, &Plan::for_agent(&url));
    let mut process = Process::start_with(&files, &["--grace", "2"], &[]).await;
    let token = issuer.token("alice", Grant::Agent, Value::Null);

    let mut watching = Client::connect(process.public).await.unwrap();
    let body = message("SendStreamingMessage", "watch", &[("messageId", "m-2")]);
    watching.send(&post(&token, &body)).await.unwrap();
    let event = json!({"jsonrpc": "2.0", "id": 1, "result": {"task": task("TASK_STATE_WORKING")}});
    stream.send(stream_head()).unwrap();
    stream.send(chunk(&format!("data: {event}\n\n"))).unwrap();
    let mut head = watching.head().await.unwrap().unwrap();
    watching.body_until(&mut head, "WORKING").await.unwrap();

    let mut waiting = Client::connect(process.public).await.unwrap();
    let body = message("SendMessage", "slow", &[]);
    waiting.send(&post(&token, &body)).await.unwrap();
    // The card, the stream and the unary call.
    agent
        .until("both calls", |counts| counts.requests() == 3)
        .await;

    let (public, ordered) = (process.public, Instant::now());
    process.signal("TERM");
    // Operators are told as long as callers are waited for.
    let admin = process.admin;
    eventually("readiness to end", async || {
        let ready = get(admin, "/readyz", &[]).await.ok()?;
        (ready.status == 503 && ready.text().contains("shutdown")).then_some(())
    })
    .await;
    eventually("connections to be refused", async || {
        let refused = Client::connect(public).await.is_err();
        refused.then_some(())
    })
    .await;
    let reply = json!({"jsonrpc": "2.0", "id": 1, "result": {"message":
        {"messageId": "r-1", "role": "ROLE_AGENT", "parts": [{"text": "late, not lost"}]}}});
    unary.send(json_answer(200, &reply.to_string())).unwrap();
    let reply = waiting.response().await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(reply.text().contains("late, not lost"));
    assert!(waiting.is_closed().await, "a stopping gateway keeps nobody");

    let rest = watching.body_until(&mut head, "never").await;
    assert!(rest.is_err(), "the stream ended as if it were whole");
    assert!(ordered.elapsed() >= Duration::from_secs(2), "cut too early");
    let status = process.ended().await;
    assert_eq!(status.code(), Some(0), "{}", process.written());
    assert!(
        process.written().contains("cut off"),
        "{}",
        process.written()
    );

    let records = files.records();
    let outcome = |id: &str| {
        let intent = of_kind(&records, "intent");
        let seq = &intent.iter().find(|i| i["message_id"] == id).unwrap()["seq"];
        let outcomes = of_kind(&records, "outcome");
        let outcome = outcomes.iter().find(|o| &o["intent"] == seq);
        let outcome = outcome.unwrap_or_else(|| panic!("no outcome for {id}"));
        (outcome["ended"].clone(), outcome["delivery"].clone())
    };
    assert_eq!(outcome("m-1"), ("complete".into(), "responded".into()));
    assert_eq!(
        outcome("m-2"),
        ("shutdown".into(), "response_partial".into())
    );
    assert_eq!(records[records.len() - 2]["note"], "closed");
}

/// The grace period is a bound, not a pause: with nothing under way the end is at once.
#[tokio::test]
async fn an_idle_gateway_stops_at_once() {
    let agent = hello_agent().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let files = Files::write(&issuer, &Plan::for_agent(&agent.url()));
    for signal in ["TERM", "INT"] {
        let mut process = Process::start_with(&files, &["--grace", "60"], &[]).await;
        let mut idle = Client::connect(process.public).await.unwrap();
        let ask = request_head("GET", "/nowhere", &[], None);
        idle.send(ask.as_bytes()).await.unwrap();
        assert_eq!(idle.response().await.unwrap().status, 401);
        process.signal(signal);
        // Long before the grace period ends: `ended` waits for less.
        let status = process.ended().await;
        assert_eq!(status.code(), Some(0), "{}", process.written());
        assert!(idle.is_closed().await);
        let records = files.records();
        let [.., closed, signed] = &records[..] else {
            panic!("{records:?}")
        };
        assert_eq!(
            (&closed["note"], &signed["kind"]),
            (&"closed".into(), &"checkpoint".into())
        );
        assert_eq!(signed["size"], closed["seq"]);
    }
}

/// Two writers would break the chain: the second says so and leaves the first alone.
#[tokio::test]
async fn a_second_process_on_one_journal_does_not_start() {
    let agent = hello_agent().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let files = Files::write(&issuer, &Plan::for_agent(&agent.url()));
    let first = Process::start(&files).await;
    let mut second = Process::spawn(&files, &[], &[]);
    let status = second.ended().await;
    assert_eq!(status.code(), Some(1));
    let said = format!(
        "error: the journal in `{}` is in use by another process, {} (instance `{}`); stop that \
         one, or give each its own `audit.journal.dir`\n",
        files.journal.display(),
        first.id(),
        files.records()[0]["instance"].as_str().unwrap(),
    );
    assert!(second.written().ends_with(&said), "{}", second.written());

    let token = issuer.token("alice", Grant::Agent, Value::Null);
    let body = message("SendMessage", "still here", &[]);
    let version = version_of("SendMessage");
    let reply = post_json(first.public, RPC, Some(&token), version, &body).await;
    assert_eq!(reply.unwrap().status, 200);
    let openings = |r: &&&Value| r["note"] == "opened";
    let records = files.records();
    assert_eq!(of_kind(&records, "note").iter().filter(openings).count(), 1);
}

/// A whole request with a body.
fn post(token: &str, body: &str) -> Vec<u8> {
    let fields = [
        ("Authorization", &*format!("Bearer {token}")),
        ("Content-Type", "application/json"),
        ("A2A-Version", "1.0"),
    ];
    let mut bytes = request_head("POST", RPC, &fields, Some(body.len())).into_bytes();
    bytes.extend_from_slice(body.as_bytes());
    bytes
}
