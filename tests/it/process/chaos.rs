//! Two gateways, one agent that may do anything, ten thousand calls: the agent's own log and the
//! journals agree, and whoever walks around the gateways is found.

use super::card;
use crate::support::client::Client;
use crate::support::fake_agent::{message, version_of};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::process::{Files, Plan, Process, RPC};
use crate::support::raw_agent::{Act, Counts, RawAgent, json_answer};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

const CALLS: usize = 10_000;
const CALLERS: usize = 16;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"a","role":"ROLE_AGENT","parts":[]}}}"#;

/// What the agent does with the `n`th request; the order in which they come is chaos enough.
fn act(n: usize) -> Act {
    let answer = json_answer(200, ANSWER);
    match n * 37 % 100 {
        0..70 => Act::Answer(answer),
        70..75 => Act::AnswerThenClose(answer),
        75..79 => Act::AnswerThenReset(answer),
        79..82 => Act::AnswerThenClose(answer[..answer.len() - 9].to_vec()),
        82..86 => Act::ReadThenClose,
        86..90 => Act::ReadThenReset,
        90..93 => Act::HeadThenClose,
        93..95 => Act::Close,
        95..97 => Act::Reset,
        _ => Act::Drip(answer, 80, Duration::from_millis(3)),
    }
}

/// The callers' side of one gateway.
struct Callers {
    address: SocketAddr,
    token: String,
    next: AtomicUsize,
}

/// Sends until all are sent: most may pass, some must not, some callers do not wait.
async fn send(callers: Arc<Callers>) -> usize {
    let (mut client, mut refused) = (None, 0);
    loop {
        let n = callers.next.fetch_add(1, Ordering::Relaxed);
        if n >= CALLS / 2 {
            return refused;
        }
        let mut connection = match client.take() {
            Some(connection) => connection,
            None => Client::connect(callers.address).await.unwrap(),
        };
        let method = if n.is_multiple_of(7) {
            "SendStreamingMessage"
        } else {
            "SendMessage"
        };
        let body = message(method, "x", &[("messageId", &format!("m{n}"))]);
        let (token, body) = match n % 20 {
            0 => (None, body),
            1 => (Some(&*callers.token), body.replace("\"role\"", "\"Role\"")),
            2 => (
                Some(&*callers.token),
                body.replace(method, "CancelEverything"),
            ),
            _ => (Some(&*callers.token), body),
        };
        let sent = connection.post_json(RPC, token, version_of(method), &body);
        if n % 50 == 9 {
            // This one goes, perhaps in the middle of it.
            let _ = tokio::time::timeout(Duration::from_micros(n as u64 % 900), sent).await;
            continue;
        }
        if let Ok(response) = sent.await {
            refused += usize::from(n % 20 < 3);
            // A refusal of HTTP or of JSON-RPC.
            let is_refused = response.status == 401 || response.text().contains("\"error\"");
            assert!(n % 20 >= 3 || is_refused, "{}", response.text());
            client = Some(connection);
        }
    }
}

/// The agent's own log, as our receipts middlewares write it: what it read from end to end.
fn receipts(counts: &Counts) -> String {
    let whole = counts.seen.iter().filter(|seen| {
        // Our own fetches of its card are no calls.
        seen.complete && !seen.head.starts_with(b"GET")
    });
    whole
        .map(|seen| match seen.field("portcullis-request-id") {
            Some(id) => json!({"v": 1, "request_id": id}).to_string() + "\n",
            None => json!({"v": 1}).to_string() + "\n",
        })
        .collect()
}

/// `audit reconcile` of both journals with the log: exit code and report.
fn reconcile(files: &[Files; 2], log: &Path) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["audit", "reconcile", "--json", "--agent", "pr-agent"]);
    for files in files {
        command.arg("--journal").arg(&files.journal);
    }
    let output = command.arg("--backend-log").arg(log).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = serde_json::from_slice(&output.stdout);
    (
        output.status.code(),
        report.unwrap_or_else(|_| panic!("{told}")),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_and_an_agent_in_chaos_agree_about_what_was_executed() {
    let agent = RawAgent::start([]).await;
    let (port, url) = (agent.address.port(), format!("http://{}", agent.address));
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let files = [(); 2].map(|()| Files::write(&issuer, &Plan::for_agent(&url)));
    let mut gateways = Vec::new();
    for files in &files {
        agent.play([Act::AnswerThenClose(card(port))]);
        gateways.push(Process::start(files).await);
    }
    agent.play((0..CALLS * 2).map(act));
    let mut running = JoinSet::new();
    for gateway in &gateways {
        let callers = Arc::new(Callers {
            address: gateway.public,
            token: issuer.token("alice", Grant::Agent, Value::Null),
            next: AtomicUsize::new(0),
        });
        for _ in 0..CALLERS / 2 {
            running.spawn(send(callers.clone()));
        }
    }
    let mut refused = 0;
    while let Some(sent) = running.join_next().await {
        refused += sent.unwrap();
    }
    for gateway in &mut gateways {
        gateway.signal("TERM");
        assert!(gateway.ended().await.success());
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("receipts.jsonl");
    std::fs::write(&log, receipts(&agent.counts())).unwrap();

    let (code, report) = reconcile(&files, &log);
    eprintln!("{report:#}");
    assert_eq!(code, Some(0), "{report:#}");
    let number = |report: &Value, pointer: &str| report.pointer(pointer).unwrap().as_u64().unwrap();
    for none in [
        "/ours_only/yes",
        "/ours_only/open",
        "/both/no",
        "/both/open",
        "/theirs_only/without_id",
        "/theirs_only/unknown_id",
        "/refused_but_executed",
        "/repeated",
    ] {
        assert_eq!(number(&report, none), 0, "{none} in {report:#}");
    }
    // Both of these there are, or this was no chaos.
    assert!(number(&report, "/ours_only/maybe") > 100, "{report:#}");
    assert!(number(&report, "/both/maybe") > 100, "{report:#}");
    assert!(
        number(&report, "/both/yes") > CALLS as u64 / 2,
        "{report:#}"
    );
    assert!(refused > CALLS / 10, "{refused}");

    // Somebody walks around the gateways: once without an id, once with that of a refused call.
    let records = files[0].records();
    let refusal = records
        .iter()
        .find(|r| r["kind"] == "refusal" && r["agent"] == "pr-agent" && r["caller"].is_object())
        .unwrap();
    let id = refusal["request_id"].as_str().unwrap();
    for fields in [&[][..], &[("Portcullis-Request-Id", id)]] {
        let before = agent.counts().requests();
        agent.play([Act::AnswerThenClose(json_answer(200, ANSWER))]);
        // Whatever is left of the chaos before it may close on us.
        while agent.counts().requests() == before {
            let mut client = Client::connect(agent.address).await.unwrap();
            let _ = client.post_json("/a2a", None, fields, "{}").await;
        }
    }
    std::fs::write(&log, receipts(&agent.counts())).unwrap();
    let (code, report) = reconcile(&files, &log);
    assert_eq!(code, Some(1), "{report:#}");
    assert_eq!(number(&report, "/theirs_only/without_id"), 1, "{report:#}");
    assert_eq!(number(&report, "/refused_but_executed"), 1, "{report:#}");
}
