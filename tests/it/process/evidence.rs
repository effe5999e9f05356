//! What a running gateway leaves as evidence beside its records: signed checkpoints and where they
//! are copied, the texts of configurations, changes of keys.

use super::hello_agent;
use crate::support::client::get;
use crate::support::http1::sha256;
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::process::{Files, OPEN, Plan, Process, eventually, of_kind};
use portcullis::audit::checkpoint::Signed;
use portcullis::identity::issuer::Algorithm;
use portcullis::identity::keys::KeySet;
use serde_json::Value;

#[tokio::test]
async fn copies_of_checkpoints_verify_with_the_published_key_and_are_in_the_journal() {
    let agent = hello_agent().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let url = agent.url();
    let members = ", checkpoint_every: 1s, checkpoints: {file: copies.jsonl, stdout: true}";
    let files = Files::write(
        &issuer,
        &Plan {
            journal_members: members,
            ..Plan::for_agent(&url)
        },
    );
    let mut process = Process::start(&files).await;
    let metrics = get(process.admin, "/metrics", &[]).await.unwrap().text();
    for name in [
        "bytes",
        "max_bytes",
        "segments",
        "sequence",
        "queue_records",
        "lost_total",
        "write_seconds_count",
        "sync_seconds_count",
        "checkpoint_timestamp_seconds",
        "checkpoint_errors_total",
    ] {
        let name = format!("\nportcullis_journal_{name} ");
        assert!(metrics.contains(&name), "{name} is not in\n{metrics}");
    }
    let document = get(process.public, "/.well-known/jwks.json", &[])
        .await
        .unwrap();
    let (keys, _) = KeySet::parse(&document.body, Algorithm::EdDsa).unwrap();
    // Idle too.
    let copies = eventually("three copies", async || {
        let text = std::fs::read_to_string(files.path("copies.jsonl")).ok()?;
        (text.lines().count() >= 3).then_some(text)
    })
    .await;
    process.signal("TERM");
    assert!(process.ended().await.success());
    let said = process.written();
    let journal = String::from_utf8(files.journal_bytes()).unwrap();
    for line in copies.lines() {
        let signed = Signed::of(line.as_bytes()).unwrap();
        assert_eq!(signed.verify(&keys), Ok(()));
        assert!(journal.lines().any(|other| other == line));
        assert!(said.lines().any(|other| other == line));
    }
    // The last word of a journal that was closed is its checkpoint, outside as well.
    let last = journal.lines().last().unwrap();
    let copies = files.text("copies.jsonl");
    assert_eq!(copies.lines().last(), Some(last));
}

#[tokio::test]
async fn copies_that_cannot_be_written_are_told_and_stop_nothing() {
    let agent = hello_agent().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let url = agent.url();
    let files = Files::write(
        &issuer,
        &Plan {
            journal_members: ", checkpoints: {file: missing/copies.jsonl}",
            ..Plan::for_agent(&url)
        },
    );
    let process = Process::start_unready(&files, &[], &[]);
    let ready = process
        .until_ready("the reason", |r| r.text().contains("checkpoints"))
        .await;
    let reasons = ready.json()["reasons"].clone();
    let reason = reasons.as_array().unwrap().iter();
    let why = reason.clone().find(|r| r["what"] == "checkpoints").unwrap()["why"].clone();
    assert!(
        why.as_str().unwrap().contains("missing/copies.jsonl"),
        "{why}"
    );
    process
        .until_ready("readiness all the same", |r| r.status == 200)
        .await;
    let metrics = get(process.admin, "/metrics", &[]).await.unwrap().text();
    assert!(
        metrics.contains("portcullis_journal_checkpoint_errors_total 1"),
        "{metrics}"
    );
}

#[tokio::test]
async fn the_texts_of_every_generation_are_kept_and_give_its_digest() {
    let agent = hello_agent().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let files = Files::write(&issuer, &Plan::for_agent(&agent.url()));
    let process = Process::start(&files).await;
    files.put("policy.yaml", &format!("{OPEN}# another text\n"));
    let records = eventually("the second generation", async || {
        let records = files.records();
        (of_kind(&records, "config").len() == 2).then_some(records)
    })
    .await;
    for (config, trigger) in of_kind(&records, "config").iter().zip(["start", "watch"]) {
        assert_eq!(
            (&config["result"], &config["trigger"]),
            (&"loaded".into(), &trigger.into())
        );
        let named = config["files"].as_array().unwrap();
        let roles: Vec<&Value> = named.iter().map(|file| &file["role"]).collect();
        assert_eq!(roles, ["gateway", "policy"]);
        let mut all = Vec::new();
        for file in named {
            let digest = file["sha256"].as_str().unwrap();
            let text = std::fs::read(files.journal.join("texts").join(digest)).unwrap();
            assert_eq!(sha256(&text), digest);
            assert_eq!(file["bytes"], text.len());
            assert_eq!(file.get("not_kept"), None);
            all.extend((text.len() as u64).to_be_bytes());
            all.extend(text);
        }
        assert_eq!(config["policy_digest"], sha256(&all));
    }
    let texts = std::fs::read_dir(files.journal.join("texts")).unwrap();
    assert_eq!(texts.count(), 3);
    // What is refused is named by its first problems, and not kept.
    files.put("policy.yaml", "version: 1\npolicy: open\nrulez: []\n");
    let records = eventually("the refusal", async || {
        let records = files.records();
        (of_kind(&records, "config").len() == 3).then_some(records)
    })
    .await;
    let refused = of_kind(&records, "config")[2].clone();
    assert_eq!(
        (&refused["result"], &refused["generation"]),
        (&"rejected".into(), &2.into())
    );
    assert_eq!(
        refused["codes"],
        serde_json::json!(["PC021", "PC020"]),
        "{refused}"
    );
    assert_eq!(refused.get("files"), None);
    drop(process);
}

#[tokio::test]
async fn fingerprints_outlive_a_restart_and_other_keys_are_noted() {
    let agent = hello_agent().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let files = Files::write(&issuer, &Plan::for_agent(&agent.url()));
    let token = issuer.token("alice", Grant::Agent, Value::Null);
    for _ in 0..2 {
        let mut process = Process::start(&files).await;
        let sent = super::full_disk::send(&process, &token, 1).await;
        assert_eq!(sent.status, 200);
        process.signal("TERM");
        assert!(process.ended().await.success());
    }
    let records = files.records();
    let prints: Vec<&Value> = of_kind(&records, "intent")
        .iter()
        .map(|r| &r["caller"]["fingerprint"])
        .collect();
    assert_eq!(prints.len(), 2);
    assert_eq!(prints[0], prints[1]);

    // The issuer publishes another key: who was trusted when is in the journal.
    let mut process = Process::start(&files).await;
    files.put("corp.jwks.json", &Issuer::new(DevAlgorithm::Es256).jwks());
    let note = eventually("the note", async || {
        let records = files.records();
        let mut notes = records.into_iter().filter(|r| r["note"] == "keys");
        notes.next_back()
    })
    .await;
    assert_eq!(note["issuer"], "corp");
    assert_eq!(note["added"].as_array().unwrap().len(), 1, "{note}");
    assert_eq!(note["removed"].as_array().unwrap().len(), 1, "{note}");
    process.signal("TERM");
    assert!(process.ended().await.success());

    // And so is that another key signs checkpoints.
    let before = files.records()[0]["key_id"].clone();
    std::fs::remove_file(files.journal.join("checkpoint.pem")).unwrap();
    drop(Process::start_unready(&files, &[], &[]));
    let journal = String::from_utf8(files.journal_bytes()).unwrap();
    let line = journal
        .lines()
        .rfind(|line| line.contains(r#""note":"keys""#))
        .unwrap();
    let note: Value = serde_json::from_str(line).unwrap();
    assert_eq!(note["removed"][0], before);
    assert_eq!(note["added"][0], note["key_id"]);
}
