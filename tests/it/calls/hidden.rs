//! What records say about calls where `audit.redact` hides who they are about.

use super::{POLICY, Stand, message};
use crate::support::fake_agent;
use portcullis::audit::redact::hidden::Class;
use serde_json::{Value, json};

/// A stand that hides this, with a claim that is the subject under another name.
async fn stand(redact: &str) -> Stand {
    let policy = POLICY.replace(
        "require: {role: {equals: reviewer}}",
        "require: {role: {equals: reviewer}, who: {exists: true}}",
    );
    Stand::with(&policy, |yaml| {
        let yaml = yaml.replace(
            "{role: {path",
            "{who: {path: [sub], type: string}, role: {path",
        );
        let audit = format!("audit: {{journal: {{dir: journal}}, redact: {redact}}}");
        yaml.replace("audit: {journal: {dir: journal}}", &audit)
    })
    .await
}

async fn outcomes(stand: &Stand, many: usize) -> Vec<Value> {
    let ended = |records: &[Value]| records.iter().filter(|r| r["kind"] == "outcome").count();
    let journal = &stand.gateway.journal;
    journal
        .until("the outcomes", |records| ended(records) >= many)
        .await
}

#[tokio::test]
async fn records_name_nobody_and_can_still_be_joined() {
    let stand = stand("{subjects: hmac, ids: hmac, addresses: hmac}").await;
    let token = stand.reviewer();
    let ids = [("contextId", "c-mine")];
    let body = message("SendMessage", "review-diff", "please", &ids);
    let reply = stand.call(&token, "SendMessage", &body).await.json();
    let task = reply["result"]["task"]["id"].as_str().unwrap().to_owned();
    let get = fake_agent::call("GetTask", json!({ "id": task }));
    assert_eq!(stand.call(&token, "GetTask", &get).await.status, 200);
    let records = outcomes(&stand, 2).await;

    let calls: Vec<&Value> = records
        .iter()
        .filter(|r| ["intent", "outcome"].contains(&r["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(calls.len(), 4);
    for record in &calls {
        let text = record.to_string();
        for told in ["alice", "\"m-1\"", "c-mine", &task] {
            assert!(!text.contains(told), "{told} in {text}");
        }
    }
    let key = &stand.gateway.server.gate.fingerprints;
    let (intent, outcome, second) = (calls[0], calls[1], calls[2]);
    let alice = key.hide(Class::Subject, "alice");
    assert_eq!(intent["caller"]["subject"], alice);
    assert_eq!(
        intent["caller"]["claims"],
        json!({"who": alice, "role": "reviewer"})
    );
    assert_eq!(intent["message_id"], key.hide(Class::Id, "m-1"));
    assert_eq!(intent["context_id"], key.hide(Class::Id, "c-mine"));
    assert_eq!(
        intent["source"]["addr"],
        key.hide(Class::Address, "127.0.0.1")
    );
    assert_eq!(outcome["task_id"], key.hide(Class::Id, &task));
    assert_eq!(second["task_id"], outcome["task_id"]);
    for artifact in outcome["artifacts"].as_array().into_iter().flatten() {
        assert!(
            artifact["id"].as_str().unwrap().starts_with("hmac:"),
            "{artifact}"
        );
    }

    // Whose a task is does not depend on what records show.
    let before = stand.counted();
    let bob = stand.token("bob", "reviewer");
    let refused = stand.call(&bob, "GetTask", &get).await;
    stand.assert_refused(before, &refused, 200, "somebody else's task");
    let refusal = stand.gateway.refusal(1).await;
    assert_eq!(refusal["task_id"], outcome["task_id"]);
    assert_eq!(
        refusal["caller"]["subject"],
        key.hide(Class::Subject, "bob")
    );
}

#[tokio::test]
async fn a_network_may_stand_for_an_address_and_the_rest_stays() {
    let stand = stand("{addresses: prefix}").await;
    let body = message("SendMessage", "review-diff", "please", &[]);
    stand.call(&stand.reviewer(), "SendMessage", &body).await;
    let records = outcomes(&stand, 1).await;
    let intent = records.iter().find(|r| r["kind"] == "intent").unwrap();
    assert_eq!(intent["source"]["addr"], "127.0.0.0/24");
    assert_eq!(intent["caller"]["subject"], "alice");
    assert_eq!(intent["message_id"], "m-1");
}
