//! Replies that name what is not the caller's.

use super::rig::{Rig, card, task};
use super::{POLICY, message};
use crate::support::issuer::Grant;
use crate::support::raw_agent::{Act, LAST_CHUNK, chunk, json_answer, stream_head};
use serde_json::json;

/// An agent that answers Bob with Alice's task is at fault: the reply is withheld.
#[tokio::test]
async fn a_reply_that_names_anothers_task_is_withheld() {
    let mut stream = stream_head();
    stream.extend(chunk(&format!("data: {}\n\n", task("t-alice", "c-2"))));
    stream.extend(LAST_CHUNK);
    let rig = Rig::new([
        Act::Answer(json_answer(200, &task("t-alice", "c-alice"))),
        Act::Answer(json_answer(200, &task("t-alice", "c-bob"))),
        Act::Answer(json_answer(200, &task("t-bob", "c-alice"))),
        Act::Answer(stream),
        Act::Answer(json_answer(200, &task("t-alice", "c-alice"))),
    ])
    .await;
    let first = rig.ask("alice", "SendMessage").await;
    assert!(first.text().contains("t-alice"), "{}", first.text());
    for _ in 0..2 {
        let withheld = rig.ask("bob", "SendMessage").await;
        assert_eq!(
            withheld.json()["error"]["code"],
            -32006,
            "{}",
            withheld.text()
        );
        assert!(!withheld.text().contains("alice"), "{}", withheld.text());
    }
    let streamed = rig.ask("bob", "SendStreamingMessage").await;
    assert!(!streamed.text().contains("t-alice"), "{}", streamed.text());
    assert!(streamed.text().contains("-32006"), "{}", streamed.text());
    let again = rig.ask("alice", "SendMessage").await;
    assert!(again.text().contains("t-alice"), "{}", again.text());
    let outcomes = rig.gateway.journal.of_kind("outcome", 5).await;
    let malformed: Vec<_> = outcomes
        .iter()
        .filter(|r| r["response"]["malformed"] == "foreign_id")
        .collect();
    assert_eq!(malformed.len(), 3);
}

/// FC-44: the extensions that an agent says are active reach the caller, and the record.
#[tokio::test]
async fn active_extensions_are_passed_on_and_recorded() {
    let body = task("t-1", "c-1");
    let reply = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nA2A-Extensions: https://example.com/e1, \
         nonsense\r\nX-A2A-Extensions: urn:e2\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let rig = Rig::new([Act::Answer(reply.into_bytes())]).await;
    let response = rig.ask("alice", "SendMessage").await;
    assert_eq!(
        response.field("a2a-extensions"),
        Some("https://example.com/e1, nonsense")
    );
    assert_eq!(response.field("x-a2a-extensions"), Some("urn:e2"));
    let outcome = rig.gateway.journal.of_kind("outcome", 1).await.remove(0);
    let expected = json!(["https://example.com/e1", "urn:e2"]);
    assert_eq!(outcome["response"]["extensions"], expected);
}

/// An agent that requires an extension is asked only by callers who declare it.
#[tokio::test]
async fn a_required_extension_must_be_declared() {
    let extended = |port| {
        let mut own = card(port);
        own["capabilities"]["extensions"] = json!([
            {"uri": "urn:e1", "required": true},
            {"uri": "urn:e2", "required": false},
            {"uri": "urn:e3"},
        ]);
        own
    };
    let rig = Rig::of(extended, POLICY, |yaml| yaml).await;
    let reply = json_answer(200, &task("t-1", "c-1"));
    rig.agent.play([Act::Answer(reply)]);
    let token = rig.token("alice", Grant::Agent);
    let asked = async |fields: &[(&str, &str)]| {
        let mut all = vec![("A2A-Version", "1.0")];
        all.extend_from_slice(fields);
        let mut client = rig.client().await;
        let body = message("SendMessage", "hello", "hi", &[]);
        client
            .post_json(super::RPC, Some(&token), &all, &body)
            .await
            .unwrap()
    };
    for fields in [
        &[][..],
        &[("A2A-Extensions", "urn:e2")],
        &[("A2A-Extensions", "urn:E1")],
        &[("X-A2A-Extensions", "urn:e3, urn:e2")],
    ] {
        let response = asked(fields).await;
        let error = response.json()["error"].clone();
        assert_eq!(
            (response.status, error["code"].clone()),
            (200, json!(-32008))
        );
        assert_eq!(error["data"][0]["reason"], "EXTENSION_SUPPORT_REQUIRED");
        assert_eq!(rig.calls(), 0, "only the card was asked for");
    }
    let response = asked(&[("X-A2A-Extensions", "urn:e2, urn:e1")]).await;
    assert!(
        response.json().get("result").is_some(),
        "{}",
        response.text()
    );
}
