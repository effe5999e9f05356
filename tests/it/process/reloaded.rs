//! Changed files in a running process: good ones take effect, broken ones change nothing.

use super::hello_agent;
use crate::support::client::post_json;
use crate::support::fake_agent::{message, version_of};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::process::{Files, OPEN, Plan, Process, RPC, eventually, of_kind};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;

const REVIEWERS: &str = "    require: {role: {equals: reviewer}}\n";

/// Status of a message of somebody without a role.
async fn ask(process: &Process, token: &str) -> u16 {
    let body = message("SendMessage", "hi", &[]);
    let version = version_of("SendMessage");
    let reply = post_json(process.public, RPC, Some(token), version, &body).await;
    reply.unwrap().status
}

async fn until_asking_gives(process: &Process, token: &str, status: u16) {
    eventually("a policy to take effect", async || {
        (ask(process, token).await == status).then_some(())
    })
    .await;
}

fn narrowed() -> String {
    let at = OPEN.find("  - id: tasks").unwrap();
    format!("{}{REVIEWERS}{}", &OPEN[..at], &OPEN[at..])
}

#[tokio::test]
async fn a_good_policy_takes_effect_and_a_broken_one_changes_nothing() {
    let agent = hello_agent().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let files = Files::write(&issuer, &Plan::for_agent(&agent.url()));
    let process = Process::start(&files).await;
    let token = issuer.token("alice", Grant::Agent, Value::Null);
    assert_eq!(ask(&process, &token).await, 200);

    files.put("policy.yaml", &narrowed());
    process.signal("HUP");
    until_asking_gives(&process, &token, 403).await;

    files.put("policy.yaml", &narrowed().replace("require:", "requires:"));
    process.signal("HUP");
    let ready = process
        .until_ready("readiness to name the mistake", |r| {
            r.text().contains("requires")
        })
        .await;
    assert_eq!(ready.status, 200, "a refused reload must not stop traffic");
    assert_eq!(ready.json()["reasons"][0]["what"], "reload");
    assert_eq!(ready.json()["generation"], 2);
    assert!(
        process.until_written("requires").is_some(),
        "not in the log"
    );
    assert_eq!(ask(&process, &token).await, 403);

    files.put("policy.yaml", OPEN);
    process.signal("HUP");
    until_asking_gives(&process, &token, 200).await;
    let ready = process.until_ready("an answer", |_| true).await;
    assert_eq!(ready.json()["reasons"], serde_json::json!([]));
    assert_eq!(ready.json()["generation"], 3);
    let records = files.records();
    let results: Vec<&str> = of_kind(&records, "config")
        .iter()
        .map(|r| r["result"].as_str().unwrap())
        .collect();
    assert_eq!(results, ["loaded", "loaded", "rejected", "loaded"]);
    let triggers: Vec<&Value> = of_kind(&records, "config")
        .iter()
        .map(|r| &r["trigger"])
        .collect();
    assert_eq!(triggers, ["start", "signal", "signal", "signal"]);
}

/// As Kubernetes mounts a ConfigMap: files are links through `..data`, which is replaced by a
/// rename. Nobody sends a signal.
#[tokio::test]
async fn a_swapped_link_takes_effect_by_itself() {
    let agent = hello_agent().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let files = Files::write(&issuer, &Plan::for_agent(&agent.url()));
    let version = |name: &str, policy: &str| {
        fs::create_dir(files.path(name)).unwrap();
        fs::write(files.path(name).join("policy.yaml"), policy).unwrap();
    };
    version("..first", OPEN);
    version("..second", &narrowed());
    symlink("..first", files.path("..data")).unwrap();
    fs::remove_file(files.path("policy.yaml")).unwrap();
    symlink("..data/policy.yaml", files.path("policy.yaml")).unwrap();
    let process = Process::start(&files).await;
    let token = issuer.token("alice", Grant::Agent, Value::Null);
    assert_eq!(ask(&process, &token).await, 200);

    symlink("..second", files.path("..data_tmp")).unwrap();
    fs::rename(files.path("..data_tmp"), files.path("..data")).unwrap();
    fs::remove_dir_all(files.path("..first")).unwrap();
    until_asking_gives(&process, &token, 403).await;
}
