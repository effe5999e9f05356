//! One generation judges a call, whatever happens to the files meanwhile.

use super::{RPC, Stand, message};
use crate::support::client::{Client, get};
use crate::support::fake_agent;
use crate::support::within;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SWAPS: u64 = 100;

/// Lets one role in, under an id of its own, and closes the agent for the other.
fn only(role: &str) -> String {
    format!(
        "version: 1
policy: swapped
rules:
  - id: for-{role}
    allow: {{agents: [pr-agent], operations: [messages], skills: [hello]}}
    grant: agent
  - id: not-others-than-{role}
    deny: {{agents: [pr-agent], operations: [messages], skills: any}}
    unless: {{role: {{equals: {role}}}}}
...
"
    )
}

/// Calls until told to stop; returns how many answers of each status there were.
async fn calls(address: SocketAddr, token: String, stop: Arc<AtomicBool>) -> [usize; 2] {
    let mut client = Client::connect(address).await.unwrap();
    let body = message("SendMessage", "hello", "hi", &[]);
    let mut answers = [0; 2];
    while !stop.load(Ordering::SeqCst) {
        let version = fake_agent::version_of("SendMessage");
        let answer = client.post_json(RPC, Some(&token), version, &body).await;
        match answer.unwrap().status {
            200 => answers[0] += 1,
            403 => answers[1] += 1,
            other => panic!("{other}"),
        }
    }
    answers
}

/// A hundred swaps under load: each call is judged whole by one of the two policies, none is lost,
/// and its records name the generation whose policy that was.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_swaps_lose_no_call_and_mix_no_policies() {
    let stand = Stand::with_policy(&only("reader")).await;
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = ["reader", "writer", "reader", "writer"]
        .into_iter()
        .map(|role| {
            let token = stand.token(role, role);
            tokio::spawn(calls(stand.gateway.address, token, stop.clone()))
        })
        .collect();
    for swap in 0..SWAPS {
        let role = if swap % 2 == 0 { "writer" } else { "reader" };
        stand.gateway.write("policy.yaml", &only(role));
        stand.gateway.until_generation(swap + 2).await;
    }
    stop.store(true, Ordering::SeqCst);
    let (mut passed, mut refused) = (0, 0);
    for caller in callers {
        let [good, bad] = caller.await.unwrap();
        passed += good;
        refused += bad;
    }
    assert!(passed > 100 && refused > 100, "{passed} {refused}");

    let of = |records: &[Value], kind: &str| records.iter().filter(|r| r["kind"] == kind).count();
    // Reading thousands takes its time, so it is done once.
    let journal = &stand.gateway.journal;
    within("every outcome", async {
        while journal.count("outcome") < passed {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let records = journal.records();
    assert_eq!(of(&records, "outcome"), passed);
    assert_eq!(of(&records, "intent"), passed);
    assert_eq!(of(&records, "refusal"), refused);
    assert_eq!(stand.agent.counters().executions(), passed as u64);
    let mut generations = BTreeSet::new();
    for record in &records {
        let (caller, effect) = (&record["caller"]["subject"], &record["decision"]["effect"]);
        let Some(caller) = caller.as_str().filter(|_| record["kind"] != "outcome") else {
            continue;
        };
        let generation = record["generation"].as_u64().unwrap();
        generations.insert(generation);
        let admitted = if generation % 2 == 1 {
            "reader"
        } else {
            "writer"
        };
        let (expected, rule) = match caller == admitted {
            true => ("allow", format!("for-{admitted}")),
            false => ("deny", format!("not-others-than-{admitted}")),
        };
        assert_eq!(effect, expected, "{record}");
        assert_eq!(record["decision"]["rule"], rule.as_str(), "{record}");
    }
    assert!(generations.len() > 50, "{}", generations.len());
}

/// Waits for readiness to say that the last reload was refused, or that none was.
async fn until_reload_is(stand: &Stand, refused: bool) -> String {
    within("readiness to speak of the files", async {
        loop {
            let ready = get(stand.gateway.admin, "/readyz", &[]).await.unwrap();
            assert_eq!(ready.status, 200, "{}", ready.text());
            let text = ready.text();
            if text.contains("\"reload\"") == refused {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

async fn refused_reloads(stand: &Stand) -> u64 {
    let metrics = get(stand.gateway.admin, "/metrics", &[]).await.unwrap();
    let text = metrics.text();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("portcullis_reloads_total{result=\"failed\"} "));
    line.map_or(0, |count| count.parse().unwrap())
}

/// Truncated, half written, emptied, unreadable, deleted, led nowhere by its link: the last good
/// policy stays, and readiness and the metric say so.
#[tokio::test]
async fn broken_policy_files_leave_the_last_good_one_in_force() {
    let text = only("reader");
    let stand = Stand::with(&text, |yaml| {
        yaml.replace(
            "files: [policy.yaml]",
            "files: [policy.yaml], end_marker: required",
        )
    })
    .await;
    let file = stand.gateway.folder.path().join("policy.yaml");
    let cut = text.find("  - id: not-others").unwrap();
    // What is left of the file, whole and valid, would let everybody in.
    let truncated = &text[..cut];
    let breaks: [(&str, &dyn Fn()); 7] = [
        ("truncated", &|| fs::write(&file, truncated).unwrap()),
        ("half written", &|| {
            fs::write(&file, &text[..text.len() - 2]).unwrap()
        }),
        ("emptied", &|| fs::write(&file, "").unwrap()),
        ("not text", &|| {
            fs::write(&file, b"version: \xff\n...\n").unwrap()
        }),
        ("deleted", &|| fs::remove_file(&file).unwrap()),
        ("a folder", &|| {
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
        }),
        ("a link to nothing", &|| {
            fs::remove_file(&file).unwrap();
            symlink("..gone/policy.yaml", &file).unwrap();
        }),
    ];
    let body = message("SendMessage", "hello", "hi", &[]);
    for (number, (what, break_it)) in (1..).zip(breaks) {
        break_it();
        let said = until_reload_is(&stand, true).await;
        assert!(said.contains("policy.yaml"), "{what}: {said}");
        assert_eq!(refused_reloads(&stand).await, number, "{what}");
        let before = stand.counted();
        let response = stand
            .call(&stand.token("w", "writer"), "SendMessage", &body)
            .await;
        stand.assert_refused(before, &response, 403, what);
        let response = stand
            .call(&stand.token("r", "reader"), "SendMessage", &body)
            .await;
        assert_eq!(response.status, 200, "{what}");
        assert_eq!(
            stand.gateway.server.gate.live().snapshot.generation,
            1,
            "{what}"
        );
        if file.is_dir() {
            fs::remove_dir(&file).unwrap();
        } else {
            let _ = fs::remove_file(&file);
        }
        fs::write(&file, &text).unwrap();
        until_reload_is(&stand, false).await;
    }
}
