//! Calls through the whole gateway, with the agent's own counters as proof.
//!
//! Answers: who gets through, who does not, and what reached the agent. May import: the program.
//! Invariants: every refusal asserts that the agent saw nothing. Start reading at [`walkthrough`].

mod asserted;
mod extended;
mod generations;
mod grpc;
mod heads;
mod hidden;
mod isolation;
mod json_rpc;
mod listing;
mod malformed;
mod recorded;
mod replies;
mod rest;
pub mod rig;
mod selectors;
mod shadowed;
mod skills;
mod streaming;
mod strict;
mod surfaces;
mod tenants;
mod tokens;
mod traced;
mod walkthrough;
mod webhooks;

use crate::support::client::{Client, Response};
use crate::support::fake_agent;
use crate::support::gateway::{Gateway, Setup};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use portcullis::cli::demo_agent::DemoAgent;
use portcullis::pipeline::ports::Clock;
use serde_json::{Value, json};
use std::sync::Arc;

/// The path of the agent's interface.
pub const RPC: &str = "/agents/pr-agent/a2a";

/// An agent, an issuer, and a gateway between them.
pub struct Stand {
    pub agent: DemoAgent,
    pub issuer: Issuer,
    pub gateway: Gateway,
}

/// The rules of the walkthrough.
pub const POLICY: &str = "version: 1
policy: walkthrough
rules:
  - id: reviewers-review
    allow: {agents: [pr-agent], operations: [messages], skills: [review-diff]}
    grant: agent
    require: {role: {equals: reviewer}}
  - id: hello-for-all
    allow: {agents: [pr-agent], operations: [messages], skills: [hello]}
    grant: agent
  - id: own-tasks
    allow: {agents: [pr-agent], operations: [tasks]}
    grant: agent
  - id: backend
    allow: {agents: [pr-agent], operations: [backend]}
    grant: full
";

/// The gateway file of the walkthrough; `agent` is its URL.
pub fn yaml(agent: &str, issuer: &Issuer) -> String {
    let entry = issuer.yaml_entry(
        "corp",
        "corp.jwks.json",
        "{role: {path: [role], type: string}, groups: {path: [groups], type: string_array}}",
    );
    format!(
        "version: 1
listeners: [{{name: public, bind: PUBLIC, public_url: http://PUBLIC}}]
admin: {{bind: 127.0.0.1:0}}
issuers:
{entry}agents:
  - name: pr-agent
    route: {{path: /agents/pr-agent}}
    publish: true
    backend: {{url: {agent}}}
    skills: [review-diff, hello]
    skill_from: [{{metadata: skillId}}, {{metadata: skill_id}}]
    backend_paths:
      - {{path: /config, methods: [GET]}}
      - {{path: /nodes/devices, methods: [GET, POST]}}
      - {{path: /a2a/status, methods: [GET]}}
    limits: {{body: 8MiB}}
  - name: hidden
    route: {{path: /agents/hidden}}
    backend: {{url: {agent}}}
    skills: [hello]
policies: {{files: [policy.yaml]}}
audit: {{journal: {{dir: journal}}}}
"
    )
}

/// A gateway with this file, which names this policy and the issuer's keys; it has its cards.
pub async fn gateway(yaml: &str, policy: &str, issuer: &Issuer) -> Gateway {
    timed_gateway(yaml, policy, issuer, None).await
}

async fn timed_gateway(
    yaml: &str,
    policy: &str,
    issuer: &Issuer,
    clock: Option<Arc<dyn Clock>>,
) -> Gateway {
    let files = [("policy.yaml", policy), ("corp.jwks.json", &issuer.jwks())];
    let files = &files;
    let setup = Setup { yaml, files, clock };
    Gateway::start_with(setup).with_cards().await
}

impl Stand {
    pub async fn new() -> Stand {
        Stand::with_policy(POLICY).await
    }

    pub async fn with_policy(policy: &str) -> Stand {
        Stand::with(policy, |yaml| yaml).await
    }

    /// With another policy, and a gateway file that is changed by `edit`.
    pub async fn with(policy: &str, edit: impl Fn(String) -> String) -> Stand {
        let agent = fake_agent::start().await;
        let issuer = Issuer::new(DevAlgorithm::Es256);
        let yaml = edit(yaml(&agent.url(), &issuer));
        let gateway = gateway(&yaml, policy, &issuer).await;
        Stand {
            agent,
            issuer,
            gateway,
        }
    }

    /// With a clock of the test's.
    pub async fn timed(clock: Arc<dyn Clock>) -> Stand {
        Stand::at(clock, POLICY).await
    }

    /// With a clock of the test's, and another policy.
    pub async fn at(clock: Arc<dyn Clock>, policy: &str) -> Stand {
        let agent = fake_agent::start().await;
        let issuer = Issuer::new(DevAlgorithm::Es256);
        let yaml = yaml(&agent.url(), &issuer);
        let gateway = timed_gateway(&yaml, policy, &issuer, Some(clock)).await;
        Stand {
            agent,
            issuer,
            gateway,
        }
    }

    /// A token of a subject with a role.
    pub fn token(&self, subject: &str, role: &str) -> String {
        self.issuer
            .token(subject, Grant::Agent, json!({ "role": role }))
    }

    pub fn reviewer(&self) -> String {
        self.token("alice", "reviewer")
    }

    /// What the agent has counted: requests and executions.
    pub fn counted(&self) -> (u64, u64) {
        (
            self.agent.counters().requests(),
            self.agent.counters().executions(),
        )
    }

    /// Posts a body to the interface.
    pub async fn post(&self, token: Option<&str>, fields: &[(&str, &str)], body: &str) -> Response {
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        client.post_json(RPC, token, fields, body).await.unwrap()
    }

    /// Posts a body of a method, with the header that its version needs.
    pub async fn call(&self, token: &str, method: &str, body: &str) -> Response {
        self.post(Some(token), fake_agent::version_of(method), body)
            .await
    }

    /// Asserts that something is refused: this status, and nothing at the agent.
    #[track_caller]
    pub fn assert_refused(&self, before: (u64, u64), response: &Response, status: u16, what: &str) {
        assert_eq!(response.status, status, "{what}: {}", response.text());
        assert_eq!(self.counted(), before, "{what}: the agent was touched");
    }
}

/// A message for a skill.
pub fn message(method: &str, skill: &str, text: &str, ids: &[(&str, &str)]) -> String {
    let body = fake_agent::message(method, text, ids);
    let mut body: Value = serde_json::from_str(&body).unwrap();
    body["params"]["message"]["metadata"] = json!({ "skillId": skill });
    body.to_string()
}
