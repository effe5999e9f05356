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
    let (gateway, issuer) = gateway_of(&agent).await;
    (agent, gateway, issuer)
}

/// A gateway in front of an agent that has a card to give.
async fn gateway_of(agent: &RawAgent) -> (Gateway, Issuer) {
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
    (gateway, issuer)
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

/// FC-44: the extensions that an agent says are active reach the caller, and the record.
#[tokio::test]
async fn active_extensions_are_passed_on_and_recorded() {
    let body = task("t-1", "c-1");
    let reply = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nA2A-Extensions: https://example.com/e1, \
         nonsense\r\nX-A2A-Extensions: urn:e2\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (_agent, gateway, issuer) = stand(vec![Act::Answer(reply.into_bytes())]).await;
    let token = issuer.token("alice", Grant::Agent, json!({}));
    let response = ask(&gateway, &token, "SendMessage").await;
    assert_eq!(
        response.field("a2a-extensions"),
        Some("https://example.com/e1, nonsense")
    );
    assert_eq!(response.field("x-a2a-extensions"), Some("urn:e2"));
    let records = gateway
        .journal
        .until("the outcome", |r| r.iter().any(|r| r["kind"] == "outcome"))
        .await;
    let outcome = records.iter().find(|r| r["kind"] == "outcome").unwrap();
    let expected = json!(["https://example.com/e1", "urn:e2"]);
    assert_eq!(outcome["response"]["extensions"], expected);
}

/// An agent that requires an extension is asked only by callers who declare it.
#[tokio::test]
async fn a_required_extension_must_be_declared() {
    let agent = RawAgent::start([]).await;
    let text = String::from_utf8(card(agent.address.port())).unwrap();
    let mut own: serde_json::Value =
        serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    own["capabilities"]["extensions"] = json!([
        {"uri": "urn:e1", "required": true},
        {"uri": "urn:e2", "required": false},
        {"uri": "urn:e3"},
    ]);
    agent.play([
        Act::Answer(json_answer(200, &own.to_string())),
        Act::Answer(json_answer(200, &task("t-1", "c-1"))),
    ]);
    let (gateway, issuer) = gateway_of(&agent).await;
    let token = issuer.token("alice", Grant::Agent, json!({}));
    let asked = async |fields: &[(&str, &str)]| {
        let mut all = vec![("A2A-Version", "1.0")];
        all.extend_from_slice(fields);
        let mut client = Client::connect(gateway.address).await.unwrap();
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
        assert_eq!(agent.counts().seen.len(), 1, "only the card was asked for");
    }
    let response = asked(&[("X-A2A-Extensions", "urn:e2, urn:e1")]).await;
    assert!(
        response.json().get("result").is_some(),
        "{}",
        response.text()
    );
}
