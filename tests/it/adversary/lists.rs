//! Lists with which an agent would show one caller another's tasks, or nothing at all.

use crate::calls::rig::{Rig, card, task};
use crate::calls::{POLICY, RPC};
use crate::support::client::Response;
use crate::support::fake_agent::call;
use crate::support::issuer::Grant;
use crate::support::raw_agent::{Act, json_answer};
use serde_json::json;

async fn list(rig: &Rig, subject: &str) -> Response {
    let token = rig.token(subject, Grant::Agent);
    let body = call("ListTasks", json!({}));
    let version = [("A2A-Version", "1.0")];
    let mut client = rig.client().await;
    client
        .post_json(RPC, Some(&token), &version, &body)
        .await
        .unwrap()
}

async fn rig(acts: impl IntoIterator<Item = Act>) -> Rig {
    let policy = format!(
        "{POLICY}  - {{id: lists, allow: {{agents: any, operations: [list]}}, grant: agent}}\n"
    );
    let rig = Rig::of(card, &policy, |yaml| yaml).await;
    rig.agent.play(acts);
    rig
}

fn answer(result: &str) -> Act {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    Act::Answer(json_answer(200, &body))
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_withheld() {
    let bad = [
        r#"[{"id":"t-1"}]"#,
        r#"null"#,
        r#"{"tasks":"t-1"}"#,
        r#"{"tasks":[{"id":"t-1","id":"t-2"}]}"#,
        r#"{"tasks":[{"Id":"t-1"}]}"#,
        r#"{"tasks":[{"id":"t-1","context_id":"c-2"}]}"#,
        r#"{"tasks":[],"nextPageToken":7}"#,
    ];
    let mut acts = vec![Act::Answer(json_answer(200, &task("t-1", "c-1")))];
    acts.extend(bad.iter().map(|result| answer(result)));
    // A list of more than we hold is no list of which a part may leave.
    let big = format!(
        r#"{{"tasks":[{{"id":"t-1","x":"{}"}}]}}"#,
        "x".repeat(5 << 20)
    );
    acts.push(answer(&big));
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"no lists here"}}"#;
    acts.push(Act::Answer(json_answer(200, error)));
    acts.push(answer(
        r#"{"tasks":[{"id":"t-1","contextId":"c-1","x":[1, 2]},{"id":"t-2"}]}"#,
    ));
    let rig = rig(acts).await;
    assert_eq!(rig.ask("alice", "SendMessage").await.status, 200);
    for n in 0..bad.len() + 1 {
        let response = list(&rig, "alice").await;
        assert_eq!(
            response.json()["error"]["code"],
            -32006,
            "{n}: {}",
            response.text()
        );
        assert!(!response.text().contains("t-1"), "{n}: {}", response.text());
    }
    // The agent's own refusal is the caller's to see.
    let response = list(&rig, "alice").await;
    assert_eq!(response.json()["error"]["message"], "no lists here");
    // And what is good is passed as its bytes stood.
    let text = list(&rig, "alice").await.text();
    let expected = r#"{"jsonrpc":"2.0","id":1,"result":{"tasks":[{"id":"t-1","contextId":"c-1","x":[1, 2]}],"nextPageToken":"","pageSize":50,"totalSize":1}}"#;
    assert_eq!(text, expected);
}

/// An agent that breaks off while a page is being filled: an error, no part of a list.
#[tokio::test]
async fn a_list_that_breaks_off_is_no_list() {
    let first = || answer(r#"{"tasks":[{"id":"t-1"},{"id":"t-9"}],"nextPageToken":"2"}"#);
    let rig = rig([
        Act::Answer(json_answer(200, &task("t-1", "c-1"))),
        first(),
        // A read is asked once more when a kept connection breaks under it.
        Act::ReadThenClose,
        Act::ReadThenClose,
        first(),
        answer(r#"{"tasks":[{"id":"t-9"}]}"#),
    ])
    .await;
    assert_eq!(rig.ask("alice", "SendMessage").await.status, 200);
    let response = list(&rig, "alice").await;
    assert_eq!(response.status, 502, "{}", response.text());
    assert!(!response.text().contains("t-1"));
    let outcome = rig
        .gateway
        .journal
        .of_kind("outcome", 2)
        .await
        .pop()
        .unwrap();
    assert_eq!(
        outcome["attempts"].as_array().unwrap().len(),
        3,
        "{outcome}"
    );
    assert_eq!(outcome["reached"], "yes", "{outcome}");
    let response = list(&rig, "alice").await;
    assert_eq!(
        response.json()["result"]["totalSize"],
        1,
        "{}",
        response.text()
    );
    let seen = rig.agent.counts().seen;
    let tokens: Vec<_> = seen
        .iter()
        .filter_map(|seen| serde_json::from_slice::<serde_json::Value>(&seen.body).ok())
        .filter(|body| body["method"] == "ListTasks")
        .map(|body| body["params"]["pageToken"].clone())
        .collect();
    let (begin, next) = (json!(null), json!("2"));
    assert_eq!(
        tokens,
        [&begin, &next, &next, &begin, &next].map(Clone::clone)
    );
}
