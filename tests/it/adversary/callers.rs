//! Requests that mean one thing to us and another to an agent or a proxy in front.

use crate::calls::rig::{Rig, task};
use crate::calls::{RPC, Stand, message};
use crate::support::client::{Client, request_head};
use crate::support::fake_agent;
use crate::support::issuer::Grant;
use crate::support::raw_agent::{Act, json_answer};
use serde_json::{Value, json};

/// Servers of the CGI kind read `A2A_Version` and `A2A-Version` as one field (TR-10, FC-70): what
/// we judge, drop or set under one spelling does not travel under the other.
#[tokio::test]
async fn a_field_that_folds_to_one_of_consequence_does_not_travel() {
    let rig = Rig::new([Act::Answer(json_answer(200, &task("t-1", "c-1")))]).await;
    let token = rig.token("alice", Grant::Agent);
    let body = message("SendMessage", "hello", "hi", &[]);
    let fields = [
        ("A2A-Version", "1.0"),
        ("A2A_Version", "0.3"),
        ("a2a_extensions", "https://example.com/e"),
        ("x_a2a_extensions", "https://example.com/e"),
        ("Content_Type", "text/plain"),
        ("Content_Length", "3"),
        ("Content_Encoding", "gzip"),
        ("Transfer_Encoding", "chunked"),
        ("proxy_authorization", "Basic x"),
        ("X_Real_IP", "1.2.3.4"),
        ("Portcullis_Assertion", "forged"),
        ("X_Request_Id", "kept"),
    ];
    let mut client = rig.client().await;
    let answer = client.post_json(RPC, Some(&token), &fields, &body).await;
    assert_eq!(answer.unwrap().status, 200);
    let seen = rig.agent.counts().seen[1].clone();
    let (_, fields) = seen.fields();
    let folded: Vec<_> = fields
        .iter()
        .filter(|(name, _)| name.contains('_'))
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(folded, ["x_request_id"]);
    assert_eq!(seen.field("a2a-version").as_deref(), Some("1.0"));
}

/// A method that some frameworks would obey in place of the one that was judged.
#[tokio::test]
async fn a_method_override_does_not_travel() {
    let rig = Rig::new([Act::Answer(json_answer(200, &task("t-1", "c-1")))]).await;
    let token = rig.token("alice", Grant::Agent);
    let body = message("SendMessage", "hello", "hi", &[]);
    let fields = [
        ("A2A-Version", "1.0"),
        ("X-HTTP-Method-Override", "DELETE"),
        ("X-HTTP-Method", "DELETE"),
        ("X-Method-Override", "DELETE"),
    ];
    let mut client = rig.client().await;
    let answer = client.post_json(RPC, Some(&token), &fields, &body).await;
    assert_eq!(answer.unwrap().status, 200);
    let head = String::from_utf8(rig.agent.counts().seen[1].head.clone()).unwrap();
    assert!(!head.to_lowercase().contains("method"), "{head}");
}

/// FC-72: the request's own metadata is what some SDKs hand to an agent. It may not name another
/// skill than the message does, nor name one alone.
#[tokio::test]
async fn the_metadata_of_the_request_names_no_other_skill() {
    let stand = Stand::new().await;
    let token = stand.token("alice", "author");
    let mut many = 0;
    for (of_message, of_request, status) in [
        (
            json!({"skillId": "hello"}),
            json!({"skillId": "hello"}),
            200,
        ),
        (json!({"skillId": "hello"}), json!({}), 200),
        (
            json!({"skillId": "hello"}),
            json!({"skillId": "review-diff"}),
            403,
        ),
        (
            json!({"skillId": "hello"}),
            json!({"skill_id": "review-diff"}),
            403,
        ),
        (json!({"skillId": "hello"}), json!({"skillId": null}), 403),
        (json!({}), json!({"skillId": "hello"}), 403),
    ] {
        for method in ["SendMessage", "message/send"] {
            let mut body: Value =
                serde_json::from_str(&message(method, "hello", "hi", &[])).unwrap();
            body["params"]["message"]["metadata"] = of_message.clone();
            body["params"]["metadata"] = of_request.clone();
            let before = stand.counted();
            let answer = stand.call(&token, method, &body.to_string()).await;
            let shown = format!("{method} {of_message} {of_request}");
            if status == 403 {
                many += 1;
                stand.assert_refused(before, &answer, status, &shown);
                let record = stand.gateway.refusal(many).await;
                assert_eq!(record["skill"]["id"], Value::Null, "{shown}");
            } else {
                assert_eq!(answer.status, status, "{shown}: {}", answer.text());
            }
        }
    }
}

/// The same for a message that continues a task.
#[tokio::test]
async fn the_metadata_of_the_request_changes_no_tasks_skill() {
    let stand = Stand::new().await;
    let token = stand.reviewer();
    let begun = message("SendMessage", "hello", "input please", &[]);
    let begun = stand.call(&token, "SendMessage", &begun).await.json();
    let task = begun["result"]["task"]["id"].as_str().unwrap().to_owned();
    let body = fake_agent::message("SendMessage", "more", &[("taskId", &task)]);
    let mut body: Value = serde_json::from_str(&body).unwrap();
    body["params"]["metadata"] = json!({"skillId": "review-diff"});
    let before = stand.counted();
    let answer = stand.call(&token, "SendMessage", &body.to_string()).await;
    stand.assert_refused(before, &answer, 403, "another skill by the request");
}

/// Targets whose path is not the one that a proxy in front has looked at.
#[tokio::test]
async fn a_target_has_one_path() {
    let stand = Stand::new().await;
    let full = stand.issuer.token("carol", Grant::Full, Value::Null);
    let bearer = format!("Bearer {full}");
    for (target, status) in [
        ("http://localhost/agents/pr-agent/config", 200),
        ("http://localhost?x=/agents/pr-agent/config", 404),
        ("http://localhost#/agents/pr-agent/config", 404),
        ("ftp://localhost/agents/pr-agent/config", 400),
        ("ftp://evil.example.com/agents/pr-agent/config", 400),
        ("x://y/agents/pr-agent/config", 400),
        ("localhost/agents/pr-agent/config", 400),
        ("http://user@localhost/agents/pr-agent/config", 400),
        ("*", 400),
    ] {
        let before = stand.counted();
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        let head = request_head("GET", target, &[("Authorization", &bearer)], None);
        client.send(head.as_bytes()).await.unwrap();
        let answer = client.response().await.unwrap();
        match status {
            200 => assert_eq!(answer.status, 200, "{target}"),
            _ => stand.assert_refused(before, &answer, status, target),
        }
    }
}

/// One field said twice, in whatever case, is said to nobody.
#[tokio::test]
async fn what_is_said_twice_is_refused() {
    let stand = Stand::new().await;
    let token = stand.reviewer();
    let body = message("SendMessage", "hello", "hi", &[]);
    let version = ("A2A-Version", "1.0");
    type Fields<'a> = &'a [(&'a str, &'a str)];
    let table: &[(&str, Fields<'_>)] = &[
        (RPC, &[version, ("a2a-version", "0.3")]),
        (RPC, &[version, ("a2a-version", "1.0")]),
        (RPC, &[("A2A-Version", "1.0, 0.3")]),
        ("/agents/pr-agent/a2a?A2A-Version=0.3", &[version]),
        ("/agents/pr-agent/a2a?A2A-Version=1.0&a2a-version=0.3", &[]),
        (
            "/agents/pr-agent/a2a?A2A-Version=1.0&A2A%2dVersion=1.0",
            &[],
        ),
        (RPC, &[version, ("content-type", "application/json")]),
        (RPC, &[version, ("Content-Encoding", "gzip")]),
        (RPC, &[version, ("authorization", "Bearer x")]),
        ("/agents/pr-agent/a2a?access%5Ftoken=x", &[version]),
    ];
    for (path, fields) in table {
        let before = stand.counted();
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        let answer = client
            .post_json(path, Some(&token), fields, &body)
            .await
            .unwrap();
        let shown = format!("{path} {fields:?}");
        assert_eq!(stand.counted(), before, "{shown}: {}", answer.text());
        assert!(
            answer.json()["error"].is_object(),
            "{shown}: {}",
            answer.text()
        );
    }
}

/// `deny_status: 200` changes the status of a decision and of nothing before it.
#[tokio::test]
async fn a_denial_in_200_is_a_denial_all_the_same() {
    let stand = Stand::with(crate::calls::POLICY, |yaml| {
        yaml.replacen(
            "    publish: true\n",
            "    publish: true\n    deny_status: 200\n",
            1,
        )
    })
    .await;
    let body = message("SendMessage", "review-diff", "hi", &[]);
    let author = stand.token("alice", "author");
    let before = stand.counted();
    let denied = stand.call(&author, "SendMessage", &body).await;
    stand.assert_refused(before, &denied, 200, "denied");
    assert!(denied.json()["error"].is_object() && denied.json()["result"].is_null());
    let record = stand.gateway.refusal(1).await;
    assert_eq!(
        (&record["http_status"], &record["decision"]["effect"]),
        (&json!(200), &json!("deny"))
    );
    let stranger = stand.post(None, &[], &body).await;
    stand.assert_refused(before, &stranger, 401, "a stranger");
    let bearer = format!("Bearer {author}");
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let backend = client
        .request(
            "GET",
            "/agents/pr-agent/config",
            &[("Authorization", &bearer)],
            b"",
        )
        .await
        .unwrap();
    stand.assert_refused(before, &backend, 403, "the backend surface");
}
