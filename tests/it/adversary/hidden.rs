//! What is to be learnt of agents that are not published.

use crate::calls::{POLICY, yaml};
use crate::support::client::{Client, request_head};
use crate::support::gateway::{Gateway, Setup};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer, Wrong};
use crate::support::raw_agent::{RawAgent, RefusingPort};
use serde_json::Value;

/// Two hidden agents: one listed whole, one of which nothing is known as it does not answer.
const HIDDEN: &str = "  - name: hidden
    route: {path: /agents/hidden}
    backend: {url: http://AGENT, card: /described/here.json}
    interfaces: [{binding: JSONRPC, version: '1.0', backend: /a2a, public_path: /a2a}]
    skills: [hello]
    backend_paths: [{path: /config, methods: [GET]}]
    limits: {body: 1KiB}
  - name: dark
    route: {path: /agents/dark}
    backend: {url: http://DARK}
    skills: [hello]
";

/// Everything of an answer that may depend on the path.
async fn answer(gateway: &Gateway, request: String) -> (u16, Vec<(String, String)>) {
    let mut client = Client::connect(gateway.address).await.unwrap();
    client.send(request.as_bytes()).await.unwrap();
    let head = client.head().await.unwrap().unwrap();
    let mut fields = head.fields;
    fields.retain(|(name, _)| !["date", "portcullis-request-id"].contains(&name.as_str()));
    (head.status, fields)
}

/// Every request is answered alike below a hidden agent's route and below none, to every kind of
/// caller without a rule there: whatever the method, the body, and what is known of the agent.
#[tokio::test]
async fn a_hidden_agent_answers_like_no_agent_to_every_request() {
    let agent = RawAgent::start([]).await;
    let dark = RefusingPort::new();
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let yaml = yaml(&format!("http://{}", agent.address), &issuer);
    let listed = yaml.find("  - name: pr-agent").unwrap()..yaml.find("policies:").unwrap();
    let shown = "  - name: pr-agent\n    route: {path: /agents/pr-agent}\n    \
                 publish: true\n    backend: {url: http://DARK}\n    skills: [review-diff, hello]\n    \
                 skill_from: [{metadata: skillId}]\n    \
                 backend_paths: [{path: /config, methods: [GET]}]\n";
    let yaml = yaml
        .replace(&yaml[listed], &(shown.to_owned() + HIDDEN))
        .replace("AGENT", &agent.address.to_string())
        .replace("DARK", &dark.address.to_string());
    let files = [("policy.yaml", POLICY), ("corp.jwks.json", &issuer.jwks())];
    let gateway = Gateway::start_with(Setup {
        yaml: &yaml,
        files: &files,
        clock: None,
    });
    agent
        .until("the card to be asked for", |c| !c.seen.is_empty())
        .await;
    let tokens = [
        None,
        Some(issuer.token("alice", Grant::Agent, Value::Null)),
        Some(issuer.token("carol", Grant::Full, Value::Null)),
        Some(issuer.bad_token("dave", Wrong::NoGrant)),
    ];
    let large = "x".repeat(4096);
    for token in &tokens {
        let bearer = token.as_ref().map(|token| format!("Bearer {token}"));
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"] {
            for rest in [
                "",
                "/",
                "/a2a",
                "/a2a/",
                "/a2a?A2A-Version=7",
                "/config",
                "/x",
                "/described/here.json",
                "/.well-known/agent-card.json",
                "/.well-known/agent.json",
            ] {
                for body in ["", "{}", &large] {
                    let mut fields = vec![("Content-Type", "application/json")];
                    fields.extend(bearer.iter().map(|b| ("Authorization", b.as_str())));
                    let request = |agent: &str| {
                        let path = format!("/agents/{agent}{rest}");
                        request_head(method, &path, &fields, Some(body.len())) + body
                    };
                    let nobody = answer(&gateway, request("nobody")).await;
                    assert!([401, 403, 404].contains(&nobody.0), "{nobody:?}");
                    for agent in ["hidden", "dark"] {
                        let shown =
                            format!("{method} {agent}{rest} {} {}", body.len(), bearer.is_some());
                        assert_eq!(answer(&gateway, request(agent)).await, nobody, "{shown}");
                    }
                }
            }
        }
    }
    let others = agent.counts();
    let others = others
        .seen
        .iter()
        .filter(|s| s.field("portcullis-purpose").is_none());
    assert_eq!(others.count(), 0, "something but our own card fetches");
}
