//! The extended card: an ordinary call whose reply leaves as we wrote it (FC-13).

mod rest;

use super::RPC;
use crate::support::client::{Client, Response};
use crate::support::fake_agent;
use crate::support::gateway::{Gateway, Setup};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::raw_agent::{Act, RawAgent, json_answer};
use serde_json::{Value, json};

const POLICY: &str = "version: 1
policy: extended
rules:
  - id: reviewers-review
    allow: {agents: [pr-agent], operations: [messages], skills: [review-diff]}
    grant: agent
    require: {role: {equals: reviewer}}
  - id: hello-for-all
    allow: {agents: [pr-agent], operations: [messages], skills: [hello]}
    grant: agent
  - id: cards
    allow: {agents: [pr-agent], operations: [card]}
    grant: agent
  - id: none-for-guests
    deny: {agents: [pr-agent], operations: [card]}
    when: {role: {equals: guest}}
";

/// A hybrid card whose addresses are the agent's own.
fn card(port: u16, extended: bool) -> Value {
    let url = format!("http://127.0.0.1:{port}/a2a");
    json!({
        "name": "raw", "description": "raw", "version": "1", "protocolVersion": "0.3.0", "url": url,
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "supportsAuthenticatedExtendedCard": extended,
        "capabilities": {"streaming": true, "extendedAgentCard": extended},
        "skills": [
            {"id": "review-diff", "name": "r", "description": "r", "tags": []},
            {"id": "hello", "name": "h", "description": "h", "tags": []},
            {"id": "undeclared", "name": "u", "description": "u", "tags": []},
            {"name": "nameless", "description": "n", "tags": []}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "signatures": [{"protected": "e30", "signature": "eA"}],
    })
}

struct Stand {
    agent: RawAgent,
    gateway: Gateway,
    issuer: Issuer,
}

impl Stand {
    /// In front of an agent that announces an extended card or does not.
    async fn new(extended: bool) -> Stand {
        Stand::of(&|port| card(port, extended)).await
    }

    /// In front of an agent with this public card.
    async fn of(card: &dyn Fn(u16) -> Value) -> Stand {
        let agent = RawAgent::start([]).await;
        let public = card(agent.address.port());
        agent.play([Act::Answer(json_answer(200, &public.to_string()))]);
        let issuer = Issuer::new(DevAlgorithm::Es256);
        let yaml = super::yaml(&format!("http://{}", agent.address), &issuer);
        let yaml = yaml.replace(
            &yaml[yaml.find("  - name: hidden").unwrap()..yaml.find("policies:").unwrap()],
            "",
        );
        // Where the token goes on, too, the extended card is asked for without it.
        let yaml = yaml.replace("    skill_from", "    forward_token: true\n    skill_from");
        let files = [("policy.yaml", POLICY), ("corp.jwks.json", &issuer.jwks())];
        let gateway = Gateway::start_with(Setup {
            yaml: &yaml,
            files: &files,
            clock: None,
        })
        .with_cards()
        .await;
        Stand {
            agent,
            gateway,
            issuer,
        }
    }

    fn token(&self, role: &str) -> String {
        let claims = json!({ "role": role });
        self.issuer.token("alice", Grant::Agent, claims)
    }

    /// Asks with id 7; the agent answers the body that `answer` makes of its extended card.
    async fn ask(&self, token: Option<&str>, method: &str, answer: Option<String>) -> Response {
        if let Some(answer) = answer {
            let mut bytes = json_answer(200, &answer);
            let tag = b"ETag: \"theirs\"\r\nLast-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\nCache-Control: public, max-age=9\r\n";
            let at = bytes.windows(2).position(|w| w == b"\r\n").unwrap() + 2;
            bytes.splice(at..at, tag.iter().copied());
            self.agent.play([Act::Answer(bytes)]);
        }
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": {}});
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        client
            .post_json(
                RPC,
                token,
                fake_agent::version_of(method),
                &body.to_string(),
            )
            .await
            .unwrap()
    }

    fn reply(&self, card: &Value) -> Option<String> {
        Some(json!({"jsonrpc": "2.0", "id": 7, "result": card, "x": "internal"}).to_string())
    }

    /// What the agent saw besides our own fetch of its card.
    fn calls(&self) -> usize {
        self.agent.counts().requests() - 1
    }
}

fn skills(response: &Response) -> Vec<String> {
    let card = &response.json()["result"];
    let skills = card["skills"].as_array().unwrap().iter();
    skills
        .map(|s| s["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn fc_13_the_extended_card_is_rewritten_for_its_caller() {
    let stand = Stand::new(true).await;
    let mut card = card(stand.agent.address.port(), true);
    let elsewhere = json!({"protocolBinding": "JSONRPC", "protocolVersion": "1.0",
        "url": format!("http://{}/inner", stand.agent.address)});
    card["supportedInterfaces"]
        .as_array_mut()
        .unwrap()
        .push(elsewhere);
    let cases = [
        (
            "GetExtendedAgentCard",
            "reviewer",
            &["review-diff", "hello"][..],
        ),
        (
            "agent/getAuthenticatedExtendedCard",
            "reviewer",
            &["review-diff", "hello"],
        ),
        ("GetExtendedAgentCard", "author", &["hello"]),
    ];
    for (asked, (method, role, seen)) in cases.into_iter().enumerate() {
        let token = stand.token(role);
        let response = stand.ask(Some(&token), method, stand.reply(&card)).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(skills(&response), seen, "{method} {role}");
        let body = response.json();
        assert_eq!(body["id"], 7);
        let public = format!("http://{}{RPC}", stand.gateway.address);
        let interfaces = &body["result"]["supportedInterfaces"];
        assert_eq!(interfaces[0]["url"], public.as_str());
        // An address that callers could not reach is not shown to them.
        assert_eq!(interfaces.as_array().unwrap().len(), 1);
        assert_eq!(body["result"]["url"], public.as_str());
        assert!(body["result"]["signatures"].is_null());
        let text = response.text();
        let agent = stand.agent.address.port().to_string();
        assert!(
            !text.contains(&agent) && !text.contains("internal"),
            "{text}"
        );
        assert_eq!(response.field("cache-control"), Some("private, no-store"));
        assert_eq!(
            (response.field("etag"), response.field("last-modified")),
            (None, None)
        );
        assert_eq!(
            response.field("content-length"),
            Some(response.body.len().to_string().as_str())
        );
        assert_eq!(stand.calls(), asked + 1);
    }
    let seen = stand.agent.counts().seen;
    assert!(seen.iter().all(|s| s.field("authorization").is_none()));
    let told = |r: &[Value]| r.iter().filter(|r| r["kind"] == "outcome").count() == 3;
    let records = stand.gateway.journal.until("the outcomes", told).await;
    let intent = records.iter().find(|r| r["kind"] == "intent").unwrap();
    assert_eq!(intent["operation"], "GetExtendedAgentCard");
}

#[tokio::test]
async fn fc_13_nobody_gets_the_extended_card_without_a_token_and_a_rule() {
    let stand = Stand::new(true).await;
    for method in ["GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"] {
        let refused = stand.ask(None, method, None).await;
        assert_eq!(refused.status, 401);
        let guest = stand.token("guest");
        let refused = stand.ask(Some(&guest), method, None).await;
        assert_eq!(refused.status, 403);
    }
    assert_eq!(stand.calls(), 0);
}

#[tokio::test]
async fn an_agent_that_announces_no_extended_card_is_not_asked() {
    let stand = Stand::new(false).await;
    let token = stand.token("reviewer");
    let refused = stand.ask(Some(&token), "GetExtendedAgentCard", None).await;
    assert_eq!(refused.json()["error"]["code"], -32007);
    assert_eq!(stand.calls(), 0);
}

#[tokio::test]
async fn an_extended_card_that_cannot_be_read_is_withheld() {
    let stand = Stand::new(true).await;
    let token = stand.token("reviewer");
    let twice = r#"{"name":"internal","name":"v","url":"http://x/"}"#;
    let large = json!({"name": "internal", "url": "x".repeat(2 << 20)});
    let port = stand.agent.address.port();
    let answers = [
        stand.reply(&json!([])),
        stand.reply(&json!({"name": "internal"})),
        stand.reply(&json!({"name": "internal", "url": "http://other.example.com/"})),
        Some(format!(r#"{{"jsonrpc":"2.0","id":7,"result":{twice}}}"#)),
        stand.reply(&large),
        Some("<html>internal</html>".to_owned()),
        Some(card(port, true).to_string()),
    ];
    for (asked, answer) in answers.into_iter().enumerate() {
        let withheld = stand
            .ask(Some(&token), "GetExtendedAgentCard", answer)
            .await;
        assert_eq!(withheld.json()["error"]["code"], -32006, "answer {asked}");
        assert!(!withheld.text().contains("internal"), "{}", withheld.text());
        assert_eq!(stand.calls(), asked + 1);
    }
    let told = |r: &[Value]| r.iter().filter(|r| r["kind"] == "outcome").count() == 7;
    let records = stand.gateway.journal.until("the outcomes", told).await;
    let outcomes = records.iter().filter(|r| r["kind"] == "outcome");
    let codes: Vec<_> = outcomes
        .map(|r| r["response"]["malformed"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        codes,
        [
            "not_a_card",
            "not_a_card",
            "no_interface",
            "duplicate_member",
            "oversize_reply",
            "not_json",
            "no_result"
        ]
    );
}

#[tokio::test]
async fn the_agents_own_error_passes() {
    let stand = Stand::new(true).await;
    let token = stand.token("reviewer");
    let error = json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -32007, "message": "none"}});
    let answer = Some(error.to_string());
    let passed = stand
        .ask(Some(&token), "GetExtendedAgentCard", answer)
        .await;
    assert_eq!(passed.json(), error);
}
