//! A journal on a full device: nothing passes that cannot be recorded.

use super::hello_agent;
use crate::support::client::{Response, post_json};
use crate::support::fake_agent::{message, version_of};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::process::{Files, Plan, Process, RPC, eventually, of_kind};
use serde_json::Value;
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// A small file system of its own; unmounted when dropped.
struct Device(tempfile::TempDir);

impl Device {
    /// `None` where this user may not mount.
    fn mount() -> Option<Device> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
            .arg(folder.path())
            .output();
        mounted.ok()?.status.success().then_some(Device(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all space that is left.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.path().join("ballast")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.path().join("ballast")).unwrap();
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

pub(super) async fn send(process: &Process, token: &str, number: usize) -> Response {
    let body = message(
        "SendMessage",
        "hi",
        &[("messageId", &format!("m-{number}"))],
    );
    let version = version_of("SendMessage");
    let sent = post_json(process.public, RPC, Some(token), version, &body).await;
    sent.unwrap()
}

#[tokio::test]
async fn a_full_device_stops_calls_and_free_space_lets_them_pass_again() {
    let Some(device) = Device::mount() else {
        eprintln!("skipped: full disk (mounting a tmpfs needs root)");
        return;
    };
    let agent = hello_agent().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let url = agent.url();
    let journal = device.path().join("journal");
    let files = Files::write(
        &issuer,
        &Plan {
            journal: Some(&journal),
            ..Plan::for_agent(&url)
        },
    );
    let process = Process::start(&files).await;
    let token = issuer.token("alice", Grant::Agent, Value::Null);
    assert_eq!(send(&process, &token, 0).await.status, 200);

    device.fill();
    // The last page of the segment may still take a few records.
    let mut number = 1;
    while send(&process, &token, number).await.status == 200 {
        number += 1;
        assert!(number < 100, "a full device was never noticed");
    }
    let before = agent.counters().requests();
    for extra in 1..=5 {
        let refused = send(&process, &token, number + extra).await;
        assert_eq!(refused.status, 503, "{}", refused.text());
    }
    assert_eq!(agent.counters().requests(), before, "the agent was touched");
    let ready = process.until_ready("not ready", |r| r.status == 503).await;
    assert_eq!(
        ready.json()["reasons"][0]["what"],
        "journal",
        "{}",
        ready.text()
    );

    device.free();
    number += 10;
    eventually("calls to pass again", async || {
        number += 1;
        (send(&process, &token, number).await.status == 200).then_some(())
    })
    .await;
    process.until_ready("readiness", |r| r.status == 200).await;
    let records = eventually("the last outcome", async || {
        let records = files.records();
        let count = |kind| of_kind(&records, kind).len();
        (count("intent") == count("outcome")).then_some(records)
    })
    .await;
    let intents: HashSet<&str> = of_kind(&records, "intent")
        .iter()
        .map(|r| r["message_id"].as_str().unwrap())
        .collect();
    // What happened is in the journal too, and nothing was lost on the way.
    let noted = records.iter().find(|r| r["note"] == "recovered").unwrap();
    assert_eq!(noted["lost"], 0, "{noted}");
    assert!(
        noted["detail"].as_str().unwrap().contains("space"),
        "{noted}"
    );
    for request in agent.requests() {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let id = body["params"]["message"]["messageId"].as_str().unwrap();
        assert!(intents.contains(id), "{id} was received and not recorded");
    }
}

/// The journal's place becomes one that cannot be written, while the gateway runs: as when a
/// volume is mounted anew after an error.
#[tokio::test]
async fn a_read_only_place_stops_calls_until_it_can_be_written_again() {
    let agent = hello_agent().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let url = agent.url();
    let files = Files::write(&issuer, &Plan::for_agent(&url));
    let process = Process::start(&files).await;
    let token = issuer.token("alice", Grant::Agent, Value::Null);
    assert_eq!(send(&process, &token, 0).await.status, 200);
    let away = files.path("away");
    std::fs::rename(&files.journal, &away).unwrap();
    std::fs::create_dir(&files.journal).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "ro,size=64k", "tmpfs"])
        .arg(&files.journal)
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: read-only place (mounting a tmpfs needs root)");
        return;
    }
    let mut number = 1;
    // Noticed within about a second; until then records go on into the renamed file.
    let refused = eventually("a refusal", async || {
        number += 1;
        let reply = send(&process, &token, number).await;
        (reply.status == 503).then_some(reply)
    })
    .await;
    assert!(
        refused.json()["error"]["code"].is_number(),
        "{}",
        refused.text()
    );
    let before = agent.counters().requests();
    for extra in 1..=5 {
        let refused = send(&process, &token, number + extra).await;
        assert_eq!(refused.status, 503, "{}", refused.text());
    }
    assert_eq!(agent.counters().requests(), before, "the agent was touched");
    process.until_ready("not ready", |r| r.status == 503).await;
    let unmounted = Command::new("umount").arg(&files.journal).status();
    assert!(unmounted.unwrap().success());
    number += 10;
    eventually("calls to pass again", async || {
        number += 1;
        (send(&process, &token, number).await.status == 200).then_some(())
    })
    .await;
    process.until_ready("readiness", |r| r.status == 200).await;
    // Both halves together are one chain, and every call that the agent saw is in it.
    for entry in std::fs::read_dir(&away).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "jsonl" || e == "pem") {
            std::fs::copy(&path, files.journal.join(path.file_name().unwrap())).unwrap();
        }
    }
    let records = files.records();
    let intents: HashSet<&str> = of_kind(&records, "intent")
        .iter()
        .map(|r| r["message_id"].as_str().unwrap())
        .collect();
    for request in agent.requests() {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let id = body["params"]["message"]["messageId"].as_str().unwrap();
        assert!(intents.contains(id), "{id} was received and not recorded");
    }
    let noted = records.iter().find(|r| r["note"] == "recovered").unwrap();
    assert!(
        noted["detail"].as_str().unwrap().contains("Read-only"),
        "{noted}"
    );
}
