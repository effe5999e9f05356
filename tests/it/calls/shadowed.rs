//! Rules in shadow mode, through the whole gateway.

use super::{POLICY, Stand, message};
use crate::support::client::get;
use crate::support::fake_agent;
use portcullis::adapters::clock::{ManualClock, SystemClock};
use portcullis::audit::record::Time;
use portcullis::pipeline::ports::Clock;
use serde_json::json;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const SHADOWS: &str = "  - id: no-authors
    deny: {agents: [pr-agent], operations: [messages], skills: any}
    unless: {role: {equals: reviewer}}
    mode: shadow
    until: 2999-12-31
  - id: authors-too
    allow: {agents: [pr-agent], operations: [messages], skills: [review-diff]}
    grant: agent
    require: {role: {any_of: [reviewer, author]}}
    mode: shadow
    until: 2999-12-31
  - id: webhooks-too
    allow: {agents: [pr-agent], operations: [push]}
    grant: agent
    mode: shadow
    until: 2999-12-31
";

/// A shadow deny lets the call through, a shadow allow does not; both say so in the record, and
/// in the metrics.
#[tokio::test]
async fn shadow_rules_change_no_call_and_are_recorded() {
    let stand = Stand::with_policy(&(POLICY.to_owned() + SHADOWS)).await;
    let author = stand.token("alice", "author");

    let hello = message("SendMessage", "hello", "x", &[]);
    let response = stand.call(&author, "SendMessage", &hello).await;
    assert_eq!((response.status, stand.counted()), (200, (1, 1)));
    let intents = stand.gateway.journal.of_kind("intent", 1).await;
    assert_eq!(
        intents[0]["decision"],
        json!({"effect": "allow", "reason": "allowed", "rule": "hello-for-all", "shadow": [
            {"rule": "no-authors", "effect": "deny", "result": "match", "would": "would_deny"},
        ]})
    );

    let review = message("SendMessage", "review-diff", "x", &[]);
    let before = stand.counted();
    let response = stand.call(&author, "SendMessage", &review).await;
    stand.assert_refused(before, &response, 403, "a shadow allow");
    assert!(
        !response.text().contains("authors-too"),
        "{}",
        response.text()
    );
    let record = stand.gateway.refusal(1).await;
    assert_eq!(
        record["decision"]["shadow"],
        json!([
            {"rule": "authors-too", "effect": "allow", "result": "match", "would": "would_allow"},
            {"rule": "no-authors", "effect": "deny", "result": "match"},
        ]),
        "{record}"
    );

    // Calls that they are not about carry nothing of them.
    let task = fake_agent::call("GetTask", json!({"id": "t"}));
    let before = stand.counted();
    let response = stand.call(&author, "GetTask", &task).await;
    stand.assert_refused(before, &response, 200, "no such task");
    assert!(stand.gateway.refusal(2).await["decision"]["shadow"].is_null());

    let metrics = get(stand.gateway.admin, "/metrics", &[])
        .await
        .unwrap()
        .text();
    for line in [
        r#"{effect="allow",mode="enforce",result="match",rule="hello-for-all"} 1"#,
        r#"{effect="deny",mode="shadow",result="match",rule="no-authors"} 2"#,
        r#"{effect="allow",mode="shadow",result="match",rule="authors-too"} 1"#,
    ] {
        let line = format!("portcullis_rule_results_total{line}");
        assert!(metrics.lines().any(|l| l == line), "{line} in {metrics}");
    }
    assert!(
        metrics
            .lines()
            .any(|l| l == "portcullis_shadow_rules_expired 0")
    );
}

/// The time of a shadow rule that runs out puts nothing in force: readiness and metric say it.
#[tokio::test]
async fn an_expired_shadow_rule_stays_shadow_and_is_shown() {
    let start = SystemClock::new().now();
    let until = serde_json::to_value(Time(start + 60_000)).unwrap();
    let until = &until.as_str().unwrap()[..19];
    let rule = format!(
        "  - id: closed
    deny: {{agents: any, operations: any, skills: any}}
    always: true
    mode: shadow
    until: {until}Z
"
    );
    let clock = Arc::new(ManualClock::at(start));
    let stand = Stand::at(clock.clone(), &(POLICY.to_owned() + &rule)).await;
    let ready = || async {
        let reply = get(stand.gateway.admin, "/readyz", &[]).await.unwrap();
        (reply.status, reply.text())
    };
    let before = ready().await;
    assert!(!before.1.contains("shadow"), "{}", before.1);
    clock.advance(Duration::from_secs(60));
    let (status, after) = ready().await;
    assert_eq!(status, before.0, "{after}");
    assert!(
        after.contains("the shadow rule `closed` has expired"),
        "{after}"
    );
    assert!(after.contains(r#""what":"shadow""#), "{after}");
    let metrics = get(stand.gateway.admin, "/metrics", &[])
        .await
        .unwrap()
        .text();
    assert!(
        metrics
            .lines()
            .any(|l| l == "portcullis_shadow_rules_expired 1")
    );
    let hello = message("SendMessage", "hello", "x", &[]);
    let response = stand.call(&stand.reviewer(), "SendMessage", &hello).await;
    assert_eq!((response.status, stand.counted()), (200, (1, 1)));
}

/// `check` calls it an error, in words and in JSON; a gateway starts with it.
#[test]
fn an_expired_shadow_rule_is_an_error_of_check_and_of_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = folder.path().join("gateway.yaml");
    let write = |until: &str| {
        let policy = format!(
            "version: 1\npolicy: p\nrules:\n  - id: closed\n    deny: {{agents: any, operations: [tasks]}}\n    always: true\n    mode: shadow\n    until: {until}\n"
        );
        std::fs::write(folder.path().join("p.yaml"), policy).unwrap();
    };
    std::fs::write(
        &gateway,
        "version: 1\nlisteners: [{name: l, bind: \"127.0.0.1:0\", public_url: \"http://localhost\"}]\nagents: [{name: a, route: {path: /a}, backend: {url: \"http://127.0.0.1:1\"}}]\naudit: {journal: {dir: j}}\npolicies: {files: [p.yaml]}\n",
    )
    .unwrap();
    let check = |more: &[&str]| {
        let ran = Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(["check", "--config"])
            .arg(&gateway)
            .args(more)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            ran.status.code().unwrap(),
            text(ran.stdout),
            text(ran.stderr),
        )
    };
    write("2999-12-31");
    assert_eq!(check(&[]).0, 0, "{:?}", check(&[]));
    write("2020-01-31");
    let (code, _, said) = check(&[]);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("error[PC223]: the shadow rule `closed` has expired"),
        "{said}"
    );
    assert!(said.contains("p.yaml:8:12"), "{said}");
    let (code, json, _) = check(&["--json"]);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &report["good"]), (3, &json!(false)), "{json}");
    let problems = report["problems"].as_array().unwrap();
    assert!(
        problems
            .iter()
            .any(|p| p["code"] == "PC223" && p["severity"] == "error")
    );
    assert!(portcullis::config::load(&gateway).is_ok());
}
