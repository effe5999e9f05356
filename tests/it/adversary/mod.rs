//! Attempts to get around the gateway, from both of its sides.
//!
//! Answers: what a caller or an agent gains by requests and replies that no honest one would send.
//! May import: the program. Invariants: every refusal asserts what the agent itself counted. Start
//! reading at [`callers`].

mod agents;
mod callers;
mod chunks;
mod connections;
mod flood;
mod hidden;
mod lists;
mod operators;

use crate::calls::{POLICY, RPC, message, yaml};
use crate::support::client::{Client, Response};
use crate::support::gateway::{Gateway, Setup};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::raw_agent::{Act, RawAgent, json_answer};
use serde_json::{Value, json};

/// A gateway in front of one agent that does what its script says.
struct Rig {
    agent: RawAgent,
    issuer: Issuer,
    gateway: Gateway,
}

impl Rig {
    async fn new(acts: impl IntoIterator<Item = Act>) -> Rig {
        Rig::with(acts, |yaml| yaml).await
    }

    async fn with(acts: impl IntoIterator<Item = Act>, edit: impl Fn(String) -> String) -> Rig {
        Rig::with_policy(acts, POLICY, edit).await
    }

    async fn with_policy(
        acts: impl IntoIterator<Item = Act>,
        policy: &str,
        edit: impl Fn(String) -> String,
    ) -> Rig {
        let agent = RawAgent::start([]).await;
        agent.play([Act::AnswerThenClose(card(agent.address.port()))]);
        agent.play(acts);
        let issuer = Issuer::new(DevAlgorithm::Es256);
        let yaml = yaml(&format!("http://{}", agent.address), &issuer);
        // One agent only, so that the script is not used up by another card fetch.
        let hidden = yaml.find("  - name: hidden").unwrap()..yaml.find("policies:").unwrap();
        let yaml = edit(yaml.replace(&yaml[hidden], ""));
        let files = [("policy.yaml", policy), ("corp.jwks.json", &issuer.jwks())];
        let gateway = Gateway::start_with(Setup {
            yaml: &yaml,
            files: &files,
            clock: None,
        })
        .with_cards()
        .await;
        Rig {
            agent,
            issuer,
            gateway,
        }
    }

    fn token(&self, subject: &str, grant: Grant) -> String {
        self.issuer.token(subject, grant, json!({}))
    }

    async fn client(&self) -> Client {
        Client::connect(self.gateway.address).await.unwrap()
    }

    /// Says hello as `subject`, on a connection of its own.
    async fn ask(&self, subject: &str, method: &str) -> Response {
        let token = self.token(subject, Grant::Agent);
        let body = message(method, "hello", "hi", &[]);
        let version = [("A2A-Version", "1.0")];
        let mut client = self.client().await;
        client
            .post_json(RPC, Some(&token), &version, &body)
            .await
            .unwrap()
    }

    /// Requests that the agent saw, the card left out.
    fn calls(&self) -> usize {
        self.agent.counts().seen.len() - 1
    }

    /// The `many` outcomes, once they are there.
    async fn outcomes(&self, many: usize) -> Vec<Value> {
        let is_outcome = |r: &Value| r["kind"] == "outcome";
        let records = self
            .gateway
            .journal
            .until("the outcomes", |r| {
                r.iter().filter(|r| is_outcome(r)).count() >= many
            })
            .await;
        records.into_iter().filter(is_outcome).collect()
    }
}

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

/// A reply to id 1 with a whole task.
fn task(id: &str, context: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "result": {"task": {
        "id": id, "contextId": context, "status": {"state": "TASK_STATE_COMPLETED"}}}})
    .to_string()
}
