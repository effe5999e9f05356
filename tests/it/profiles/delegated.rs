//! Delegated tokens through the whole gateway: the cap, the record, and whose tasks they are.

use crate::calls::{POLICY, Stand, message};
use crate::support::client::{Client, request_head};
use crate::support::issuer::{Grant, Wrong};
use serde_json::{Value, json};

fn by(actor: Value) -> Value {
    json!({"role": "reviewer", "act": actor})
}

async fn backend(stand: &Stand, token: &str) -> u16 {
    let bearer = format!("Bearer {token}");
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let fields = [("Authorization", bearer.as_str())];
    let head = request_head("GET", "/agents/pr-agent/config", &fields, None);
    client.send(head.as_bytes()).await.unwrap();
    client.response().await.unwrap().status
}

#[tokio::test]
async fn delegation_caps_the_grant_and_is_recorded() {
    let stand = Stand::new().await;
    let chain =
        json!({"sub": "agent-7", "act": {"sub": "planner", "iss": "https://other.example"}});
    let token = stand.issuer.token("alice", Grant::Full, by(chain));
    let before = stand.counted();
    assert_eq!(backend(&stand, &token).await, 403);
    assert_eq!(stand.counted(), before, "the agent was touched");
    let body = message("SendMessage", "review-diff", "x", &[]);
    let response = stand.call(&token, "SendMessage", &body).await;
    assert_eq!(response.status, 200, "{}", response.text());
    let records = stand
        .gateway
        .journal
        .until("the intent", |r| r.iter().any(|r| r["kind"] == "intent"))
        .await;
    for kind in ["refusal", "intent"] {
        let record = records.iter().find(|r| r["kind"] == kind).unwrap();
        assert_eq!(record["caller"]["grant"], "agent", "{record}");
        assert_eq!(
            record["caller"]["actors"],
            json!([{"subject": "agent-7"}, {"subject": "planner", "issuer": "https://other.example"}]),
            "{record}"
        );
    }
}

#[tokio::test]
async fn an_entry_may_lift_the_cap() {
    let stand = Stand::with(POLICY, |yaml| {
        yaml.replace(
            "    development: true",
            "    delegated_full: true\n    development: true",
        )
    })
    .await;
    let token = stand
        .issuer
        .token("alice", Grant::Full, by(json!({"sub": "agent-7"})));
    assert_eq!(backend(&stand, &token).await, 200);
    let token = stand
        .issuer
        .token("alice", Grant::Agent, by(json!({"sub": "agent-7"})));
    let before = stand.counted();
    assert_eq!(backend(&stand, &token).await, 403);
    assert_eq!(stand.counted(), before, "the agent was touched");
}

#[tokio::test]
async fn a_broken_chain_gets_the_reply_of_any_bad_token() {
    let stand = Stand::new().await;
    let body = message("SendMessage", "hello", "x", &[]);
    let bad = stand.issuer.bad_token("alice", Wrong::Signature);
    let expected = stand.call(&bad, "SendMessage", &body).await;
    let deep = (0..5).fold(
        json!({"sub": "a"}),
        |inner, _| json!({"sub": "a", "act": inner}),
    );
    for actor in [
        json!(null),
        json!("agent-7"),
        json!({}),
        json!({"sub": 7}),
        deep,
    ] {
        let token = stand.issuer.token("alice", Grant::Agent, by(actor.clone()));
        let before = stand.counted();
        let response = stand.call(&token, "SendMessage", &body).await;
        stand.assert_refused(before, &response, 401, &actor.to_string());
        assert_eq!(response.body, expected.body);
    }
}

/// A policy speaks of both parties; a token without an actor satisfies no rule about one.
#[tokio::test]
async fn policies_tell_actors_apart() {
    let policy = POLICY.replace(
        "require: {role: {equals: reviewer}}",
        "require: {actor_sub: {equals: agent-7}, delegated: {equals: true}}",
    );
    let stand = Stand::with_policy(&policy).await;
    let body = message("SendMessage", "review-diff", "x", &[]);
    let good = stand
        .issuer
        .token("alice", Grant::Agent, by(json!({"sub": "agent-7"})));
    assert_eq!(stand.call(&good, "SendMessage", &body).await.status, 200);
    let others = [
        (
            by(json!({"sub": "agent-8", "act": {"sub": "agent-7"}})),
            "value_differs",
        ),
        (
            by(json!({"sub": "agent-7", "iss": "https://other.example"})),
            "wrong_type",
        ),
        (json!({"may_act": {"sub": "agent-7"}}), "missing"),
    ];
    for (many, (claims, why)) in others.into_iter().enumerate() {
        let token = stand.issuer.token("alice", Grant::Agent, claims);
        let before = stand.counted();
        let response = stand.call(&token, "SendMessage", &body).await;
        stand.assert_refused(before, &response, 403, why);
        let record = stand.gateway.refusal(many + 1).await;
        assert_eq!(record["decision"]["near"]["why"], why, "{record}");
        assert_eq!(record["decision"]["near"]["claim"], "actor_sub", "{record}");
    }
}

/// I-5: what an agent does for somebody is not what another does, nor what she does herself.
#[tokio::test]
async fn a_delegated_task_is_the_clients_for_that_subject() {
    let stand = Stand::new().await;
    let token = |client: &str, act: Value| {
        let mut claims = stand
            .issuer
            .claims("alice", Grant::Agent, json!({"role": "reviewer"}));
        claims.client = client.to_owned();
        if !act.is_null() {
            claims.extra.insert("act".into(), act);
        }
        stand.issuer.mint(&claims)
    };
    let actor = json!({"sub": "agent-7"});
    let body = message("SendMessage", "hello", "x", &[]);
    let started = stand
        .call(&token("c1", actor.clone()), "SendMessage", &body)
        .await;
    let started: Value = serde_json::from_str(&started.text()).unwrap();
    let task = started["result"]["task"]["id"].as_str().unwrap();
    let get = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": task}});
    let get = get.to_string();
    for (token, found) in [
        (token("c1", actor.clone()), true),
        (token("c2", actor), false),
        (token("c1", Value::Null), false),
    ] {
        let before = stand.counted();
        let response = stand.call(&token, "GetTask", &get).await;
        let reply: Value = serde_json::from_str(&response.text()).unwrap();
        assert_eq!(reply["result"]["id"] == task, found, "{reply}");
        if !found {
            assert_eq!(reply["error"]["code"], -32001, "{reply}");
            assert_eq!(stand.counted(), before, "the agent was touched");
        }
    }
}
