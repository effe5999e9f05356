//! Replies that name what is not the caller's.

use super::{POLICY, message};
use crate::support::client::{Client, Response};
use crate::support::gateway::{Gateway, Setup};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::raw_agent::{Act, LAST_CHUNK, RawAgent, chunk, json_answer, stream_head};
use serde_json::json;

fn card(port: u16) -> Vec<u8> {
    let url = format!("http://127.0.0.1:{port}/a2a");
    let card = json!({
        "name": "raw", "description": "raw", "version": "1",
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true}, "skills": [],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
    });
    json_answer(200, &card.to_string())
}

fn task(id: &str, context: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "result": {"task": {
        "id": id, "contextId": context, "status": {"state": "TASK_STATE_COMPLETED"}}}})
    .to_string()
}

async fn stand(acts: Vec<Act>) -> (RawAgent, Gateway, Issuer) {
    let agent = RawAgent::start([]).await;
    agent.play([Act::Answer(card(agent.address.port()))]);
    agent.play(acts);
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let yaml = super::yaml(&format!("http://{}", agent.address), &issuer);
    // Only one agent, so that the script is not used up by another card fetch.
    let yaml = yaml.replace(
        &yaml[yaml.find("  - name: hidden").unwrap()..yaml.find("policies:").unwrap()],
        "",
    );
    let files = [("policy.yaml", POLICY), ("corp.jwks.json", &issuer.jwks())];
    let gateway = Gateway::start_with(Setup {
        yaml: &yaml,
        files: &files,
        clock: None,
    })
    .with_cards()
    .await;
    (agent, gateway, issuer)
}

async fn ask(gateway: &Gateway, token: &str, method: &str) -> Response {
    let mut client = Client::connect(gateway.address).await.unwrap();
    let body = message(method, "hello", "hi", &[]);
    client
        .post_json(super::RPC, Some(token), &[("A2A-Version", "1.0")], &body)
        .await
        .unwrap()
}

/// An agent that answers Bob with Alice's task is at fault: the reply is withheld.
#[tokio::test]
async fn a_reply_that_names_anothers_task_is_withheld() {
    let mut stream = stream_head();
    stream.extend(chunk(&format!("data: {}\n\n", task("t-alice", "c-2"))));
    stream.extend(LAST_CHUNK);
    let (_agent, gateway, issuer) = stand(vec![
        Act::Answer(json_answer(200, &task("t-alice", "c-alice"))),
        Act::Answer(json_answer(200, &task("t-alice", "c-bob"))),
        Act::Answer(json_answer(200, &task("t-bob", "c-alice"))),
        Act::Answer(stream),
        Act::Answer(json_answer(200, &task("t-alice", "c-alice"))),
    ])
    .await;
    let token = |subject: &str| issuer.token(subject, Grant::Agent, json!({}));
    let (alice, bob) = (token("alice"), token("bob"));
    let first = ask(&gateway, &alice, "SendMessage").await;
    assert!(first.text().contains("t-alice"), "{}", first.text());
    for _ in 0..2 {
        let withheld = ask(&gateway, &bob, "SendMessage").await;
        assert_eq!(
            withheld.json()["error"]["code"],
            -32006,
            "{}",
            withheld.text()
        );
        assert!(!withheld.text().contains("alice"), "{}", withheld.text());
    }
    let streamed = ask(&gateway, &bob, "SendStreamingMessage").await;
    assert!(!streamed.text().contains("t-alice"), "{}", streamed.text());
    assert!(streamed.text().contains("-32006"), "{}", streamed.text());
    let again = ask(&gateway, &alice, "SendMessage").await;
    assert!(again.text().contains("t-alice"), "{}", again.text());
    let outcomes =
        |r: &[serde_json::Value]| r.iter().filter(|r| r["kind"] == "outcome").count() == 5;
    let records = gateway.journal.until("the outcomes", outcomes).await;
    let malformed: Vec<_> = records
        .iter()
        .filter(|r| r["response"]["malformed"] == "foreign_id")
        .collect();
    assert_eq!(malformed.len(), 3);
}
