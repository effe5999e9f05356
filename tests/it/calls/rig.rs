//! A gateway in front of one agent that does what its script says.

use super::{POLICY, RPC, gateway, message, yaml};
use crate::support::client::{Client, Response, request_head};
use crate::support::gateway::Gateway;
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::raw_agent::{Act, RawAgent, json_answer};
use serde_json::{Value, json};

pub struct Rig {
    pub agent: RawAgent,
    pub issuer: Issuer,
    pub gateway: Gateway,
}

impl Rig {
    pub async fn new(acts: impl IntoIterator<Item = Act>) -> Rig {
        Rig::with(acts, |yaml| yaml).await
    }

    pub async fn with(acts: impl IntoIterator<Item = Act>, edit: impl Fn(String) -> String) -> Rig {
        let rig = Rig::of(card, POLICY, edit).await;
        rig.agent.play(acts);
        rig
    }

    /// In front of an agent with this card, for which it has answered.
    pub async fn of(
        card: impl Fn(u16) -> Value,
        policy: &str,
        edit: impl Fn(String) -> String,
    ) -> Rig {
        let agent = RawAgent::start([]).await;
        let public = card(agent.address.port()).to_string();
        agent.play([Act::AnswerThenClose(json_answer(200, &public))]);
        let issuer = Issuer::new(DevAlgorithm::Es256);
        let yaml = yaml(&format!("http://{}", agent.address), &issuer);
        // One agent only, so that the script is not used up by another card fetch.
        let hidden = yaml.find("  - name: hidden").unwrap()..yaml.find("policies:").unwrap();
        let yaml = edit(yaml.replace(&yaml[hidden], ""));
        let gateway = gateway(&yaml, policy, &issuer).await;
        Rig {
            agent,
            issuer,
            gateway,
        }
    }

    pub fn token(&self, subject: &str, grant: Grant) -> String {
        self.issuer.token(subject, grant, json!({}))
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.gateway.address).await.unwrap()
    }

    /// Says hello as `subject`, on a connection of its own.
    pub async fn ask(&self, subject: &str, method: &str) -> Response {
        self.begin(subject, method).await.response().await.unwrap()
    }

    /// The same, without waiting for the reply.
    pub async fn begin(&self, subject: &str, method: &str) -> Client {
        let bearer = format!("Bearer {}", self.token(subject, Grant::Agent));
        let body = message(method, "hello", "hi", &[]);
        let fields = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("A2A-Version", "1.0"),
        ];
        let head = request_head("POST", RPC, &fields, Some(body.len()));
        let mut client = self.client().await;
        client.send((head + &body).as_bytes()).await.unwrap();
        client
    }

    /// Requests that the agent saw, the card left out.
    pub fn calls(&self) -> usize {
        self.agent.counts().seen.len() - 1
    }
}

/// A 1.0 card with JSON-RPC alone.
pub fn card(port: u16) -> Value {
    let url = format!("http://127.0.0.1:{port}/a2a");
    json!({
        "name": "raw", "description": "raw", "version": "1",
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true}, "skills": [],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
    })
}

/// A reply to id 1 with a whole task.
pub fn task(id: &str, context: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "result": {"task": {
        "id": id, "contextId": context, "status": {"state": "TASK_STATE_COMPLETED"}}}})
    .to_string()
}
