//! For which tenant of an agent a call is made, and what the agent is told of it and of its skill.

use super::{POLICY, Stand};
use crate::support::fake_agent;
use crate::support::issuer::Grant;
use serde_json::{Value, json};

/// A stand whose agent has these fields besides.
async fn stand(fields: &str) -> Stand {
    Stand::with(POLICY, |yaml| {
        yaml.replace(
            "    backend_paths:\n",
            &format!("{fields}    backend_paths:\n"),
        )
        .replacen(
            "groups: {path: [groups]",
            "tenant: {path: [tenant], type: string}, groups: {path: [groups]",
            1,
        )
    })
    .await
}

fn hello(tenant: Option<Value>, ids: &[(&str, &str)]) -> String {
    let mut body: Value =
        serde_json::from_str(&super::message("SendMessage", "hello", "hi", ids)).unwrap();
    if let Some(tenant) = tenant {
        body["params"]["tenant"] = tenant;
    }
    body.to_string()
}

/// The parameters that the agent got last.
fn got(stand: &Stand) -> Value {
    let body = stand.agent.requests().pop().unwrap().body;
    serde_json::from_slice::<Value>(&body).unwrap()["params"].clone()
}

fn newest(stand: &Stand, kind: &str) -> Value {
    let records = stand.gateway.journal.records();
    records.into_iter().rfind(|r| r["kind"] == kind).unwrap()
}

fn with_tenant(stand: &Stand, subject: &str, tenant: Value) -> String {
    let claims = json!({"role": "author", "tenant": tenant});
    stand.issuer.token(subject, Grant::Agent, claims)
}

#[tokio::test]
async fn a_fixed_tenant_is_the_only_one() {
    let stand = stand("    tenant: {fixed: t1}\n").await;
    let token = stand.token("alice", "author");
    for tenant in [None, Some(json!("t1")), Some(json!("")), Some(Value::Null)] {
        let before = stand.counted();
        let body = hello(tenant.clone(), &[]);
        let response = stand.call(&token, "SendMessage", &body).await;
        assert_eq!(response.status, 200, "{tenant:?}: {}", response.text());
        assert_eq!(stand.counted(), (before.0 + 1, before.1 + 1), "{tenant:?}");
        assert_eq!(got(&stand)["tenant"], "t1", "{tenant:?}");
        let intent = newest(&stand, "intent");
        assert_eq!(intent["tenant"], "t1");
        // What the caller sent and what left differ unless the caller said it all.
        let sent = &intent["request"];
        assert_eq!(sent["bytes"], body.len());
        assert_eq!(
            sent["forwarded"].is_null(),
            tenant == Some(json!("t1")),
            "{sent}"
        );
    }
    let before = stand.counted();
    for tenant in ["t2", "T1", "t1 "] {
        let body = hello(Some(json!(tenant)), &[]);
        let response = stand.call(&token, "SendMessage", &body).await;
        stand.assert_refused(before, &response, 200, tenant);
        assert_eq!(response.json()["error"]["code"], -32602);
        let get = fake_agent::call("GetTask", json!({"id": "t-1", "tenant": tenant}));
        let response = stand.call(&token, "GetTask", &get).await;
        stand.assert_refused(before, &response, 200, tenant);
        assert_eq!(response.json()["error"]["code"], -32001);
    }
    // 0.3 has no tenant, so it is not offered.
    let old = super::message("message/send", "hello", "hi", &[]);
    let response = stand.call(&token, "message/send", &old).await;
    stand.assert_refused(before, &response, 200, "0.3");
    let refusal = stand.gateway.refusal(7).await;
    assert_eq!(refusal["decision"]["reason"], "version_not_offered");
}

#[tokio::test]
async fn a_tenant_by_claim_is_the_callers_own() {
    let stand = stand("    tenant: {claim: tenant}\n").await;
    let mut tasks = Vec::new();
    for tenant in ["t1", "t2"] {
        // The same subject, for one tenant after the other.
        let token = with_tenant(&stand, "alice", json!(tenant));
        for named in [None, Some(json!(tenant))] {
            let response = stand.call(&token, "SendMessage", &hello(named, &[])).await;
            assert_eq!(response.status, 200, "{}", response.text());
            assert_eq!(got(&stand)["tenant"], tenant);
            let task = response.json()["result"]["task"]["id"].clone();
            tasks.push((tenant, task.as_str().unwrap().to_owned()));
        }
        let (_, task) = tasks.last().unwrap();
        let get = fake_agent::call("GetTask", json!({ "id": task }));
        let response = stand.call(&token, "GetTask", &get).await;
        assert!(response.json()["error"].is_null(), "{}", response.text());
        assert_eq!(got(&stand), json!({"tenant": tenant, "id": task}));
    }
    let before = stand.counted();
    let t1 = with_tenant(&stand, "alice", json!("t1"));
    let response = stand
        .call(&t1, "SendMessage", &hello(Some(json!("t2")), &[]))
        .await;
    stand.assert_refused(before, &response, 200, "another's tenant");
    assert_eq!(response.json()["error"]["code"], -32602);
    // A task of another tenant does not exist, whatever the call says of the tenant.
    let (_, foreign) = tasks.iter().find(|(tenant, _)| *tenant == "t2").unwrap();
    for tenant in [None, Some("t1"), Some("t2")] {
        let mut params = json!({ "id": foreign });
        if let Some(tenant) = tenant {
            params["tenant"] = tenant.into();
        }
        let get = fake_agent::call("GetTask", params);
        let response = stand.call(&t1, "GetTask", &get).await;
        stand.assert_refused(before, &response, 200, "another tenant's task");
        assert_eq!(response.json()["error"]["code"], -32001, "{tenant:?}");
    }
    let response = stand
        .call(&t1, "SendMessage", &hello(None, &[("taskId", foreign)]))
        .await;
    stand.assert_refused(before, &response, 200, "continuing it");
    for (claim, reason) in [
        (Value::Null, "tenant_claim_missing"),
        (json!(""), "tenant_claim_unusable"),
        (json!("a/b"), "tenant_claim_unusable"),
        (json!("tasks"), "tenant_claim_unusable"),
        (json!(["t1"]), "tenant_claim_unusable"),
        (json!(7), "tenant_claim_unusable"),
    ] {
        let token = with_tenant(&stand, "bob", claim.clone());
        let response = stand.call(&token, "SendMessage", &hello(None, &[])).await;
        stand.assert_refused(before, &response, 403, reason);
        assert_eq!(
            newest(&stand, "refusal")["decision"]["reason"],
            reason,
            "{claim}"
        );
    }
    let without = stand.token("bob", "author");
    let response = stand
        .call(&without, "SendMessage", &hello(Some(json!("t1")), &[]))
        .await;
    stand.assert_refused(before, &response, 403, "no claim");
}

/// The agent is told the skill that was judged, and nobody else can say it.
#[tokio::test]
async fn messages_are_stamped_and_forged_stamps_removed() {
    const STAMP: &str = "urn:portcullis:stamp:1";
    let stand = stand("    stamp: on\n").await;
    let token = stand.token("alice", "author");
    let forged = json!({"skill": "review-diff", "requestId": "mine"});
    for method in ["SendMessage", "message/send"] {
        for (in_message, in_request) in [(false, false), (true, false), (false, true), (true, true)]
        {
            let body = super::message(method, "hello", "hi", &[]);
            let mut body: Value = serde_json::from_str(&body).unwrap();
            if in_message {
                body["params"]["message"]["metadata"][STAMP] = forged.clone();
            }
            if in_request {
                body["params"]["metadata"] = json!({"trace": 1, STAMP: forged});
            }
            let body = body.to_string();
            let response = stand.call(&token, method, &body).await;
            assert_eq!(response.status, 200, "{}", response.text());
            let id = response.field("portcullis-request-id").unwrap().to_owned();
            let metadata = got(&stand)["message"]["metadata"].clone();
            let stamp = json!({"skill": "hello", "requestId": id});
            assert_eq!(metadata, json!({"skillId": "hello", STAMP: stamp}));
            if in_request {
                assert_eq!(got(&stand)["metadata"], json!({"trace": 1}));
            }
            let intent = newest(&stand, "intent");
            assert_eq!(intent["skill"]["assurance"], "declared");
            let received = stand.agent.requests().pop().unwrap().body;
            assert_eq!(intent["request"]["bytes"], body.len());
            assert_eq!(intent["request"]["forwarded"]["bytes"], received.len());
        }
    }
    // Not a message, so not stamped: byte for byte.
    let started = stand
        .call(
            &token,
            "SendMessage",
            &super::message("SendMessage", "hello", "hi", &[]),
        )
        .await;
    let task = started.json()["result"]["task"]["id"].clone();
    let get = fake_agent::call("GetTask", json!({ "id": task }));
    stand.call(&token, "GetTask", &get).await;
    assert_eq!(stand.agent.requests().pop().unwrap().body, get.as_bytes());
    // Another spelling of its name is no clear call.
    let before = stand.counted();
    let mut body: Value =
        serde_json::from_str(&super::message("SendMessage", "hello", "hi", &[])).unwrap();
    body["params"]["message"]["metadata"]["URN:portcullis:stamp:1"] = forged;
    let response = stand.call(&token, "SendMessage", &body.to_string()).await;
    stand.assert_refused(before, &response, 200, "another spelling");
    assert_eq!(response.json()["error"]["code"], -32602);
}
