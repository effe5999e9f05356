//! A gateway whose issuer is on the network, with a clock that the test moves.

use crate::calls;
use crate::support::client::{Client, Response};
use crate::support::fake_agent;
use crate::support::gateway::{Gateway, Setup};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::issuer_stub::{IssuerStub, Mode};
use crate::support::within;
use portcullis::adapters::clock::ManualClock;
use portcullis::adapters::random::SystemRandom;
use portcullis::cli::demo_agent::DemoAgent;
use portcullis::cli::dev_issuer::DevIssuer;
use portcullis::pipeline::issuer_keys::Refreshed;
use portcullis::pipeline::ports::Clock;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Issuer A on the network, B with a file, an agent, and the gateway between them.
pub struct Stand {
    pub agent: DemoAgent,
    pub a: Issuer,
    pub b: Issuer,
    pub stub: IssuerStub,
    pub clock: Arc<ManualClock>,
    pub gateway: Gateway,
}

impl Stand {
    /// With the issuer in this mode when the gateway starts.
    pub async fn start(mode: Mode) -> Stand {
        Stand::start_with(mode, "{discovery: true, ca: ca.pem, timeout: 1s}").await
    }

    pub async fn start_with(mode: Mode, keys: &str) -> Stand {
        let agent = fake_agent::start().await;
        let a = Issuer::new(DevAlgorithm::Es256);
        let b = Issuer::named(DevAlgorithm::Es256, "https://b.example.test");
        let stub = IssuerStub::start(a.iss(), &a.jwks()).await;
        stub.set(mode, &a.jwks());
        let yaml = yaml(&agent.url(), &a, &b, keys);
        let policy = calls::POLICY.replace("allow: {", "allow: {issuers: any, ");
        let files = [
            ("policy.yaml", policy.as_str()),
            ("b.json", &b.jwks()),
            ("ca.pem", &stub.ca),
        ];
        let clock = Arc::new(ManualClock::at(1_800_000_000_000));
        let setup = Setup {
            yaml: &yaml,
            files: &files,
            clock: Some(clock.clone()),
        };
        let gateway = Gateway::start_trusting(setup, stub.source())
            .with_cards()
            .await;
        Stand {
            agent,
            a,
            b,
            stub,
            clock,
            gateway,
        }
    }

    /// Waits until A's keys are there.
    pub async fn with_keys(self) -> Stand {
        within("the issuer's keys", async {
            while self.slot_notice().is_some() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        self
    }

    pub fn slot_notice(&self) -> Option<String> {
        self.gateway.server.gate.live().issuer_keys[0].notice()
    }

    pub fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Waits for what a look at the files brings. They must stay the same for a while by the
    /// gateway's clock, which the test moves.
    pub async fn until(&self, what: &str, came: impl Fn(&Stand) -> bool) {
        within(what, async {
            while !came(self) {
                self.advance(1);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await;
    }

    /// Waits until a generation is in force.
    pub async fn until_generation(&self, wanted: u64) {
        let generation = |stand: &Stand| stand.gateway.server.gate.live().snapshot.generation;
        self.until("a generation", |stand| generation(stand) >= wanted)
            .await;
    }

    /// A refresh now, whatever comes of it.
    pub async fn refresh(&self) -> Refreshed {
        let keys = self.gateway.server.gate.issuer_keys.clone();
        within("a refresh", keys.refresh("a")).await
    }

    /// A token of ten minutes by the gateway's clock.
    pub fn token(&self, issuer: &Issuer) -> String {
        self.token_of(issuer, issuer.key(), Value::Null, &[])
    }

    /// The same by another key, with these header members.
    pub fn token_of(
        &self,
        issuer: &Issuer,
        key: &DevIssuer,
        extra: Value,
        header: &[(&str, &str)],
    ) -> String {
        let mut claims = issuer.claims("alice", Grant::Agent, extra);
        for (name, value) in header {
            claims.header.insert((*name).to_owned(), (*value).into());
        }
        key.mint(&claims, &*self.clock, &SystemRandom).unwrap()
    }

    pub async fn send(&self, token: &str) -> Response {
        let body = calls::message("SendMessage", "hello", "hi", &[]);
        let fields = fake_agent::version_of("SendMessage");
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        client
            .post_json(calls::RPC, Some(token), fields, &body)
            .await
            .unwrap()
    }

    /// Asserts this status, and that only what is accepted comes to the agent.
    #[track_caller]
    pub fn judged(&self, before: u64, response: &Response, status: u16) {
        assert_eq!(response.status, status, "{}", response.text());
        let more = u64::from(status == 200);
        assert_eq!(self.agent.counters().executions(), before + more);
    }

    /// Sends a token and asserts its status; a refused one reaches nothing.
    pub async fn expect(&self, token: &str, status: u16) -> Response {
        let before = self.agent.counters().executions();
        let response = self.send(token).await;
        self.judged(before, &response, status);
        response
    }

    pub fn now(&self) -> u64 {
        self.clock.now() / 1000
    }
}

/// The gateway file; `keys` are A's.
pub fn yaml(agent: &str, a: &Issuer, b: &Issuer, keys: &str) -> String {
    let entry = |issuer: &Issuer, name: &str, keys: &str| {
        issuer
            .yaml_entry(name, "FILE", "{role: {path: [role], type: string}}")
            .replace("{file: FILE}", keys)
    };
    format!(
        "version: 1
listeners: [{{name: public, bind: PUBLIC, public_url: http://PUBLIC}}]
admin: {{bind: 127.0.0.1:0}}
issuers:
{}{}agents:
  - name: pr-agent
    route: {{path: /agents/pr-agent}}
    publish: true
    backend: {{url: {agent}}}
    skills: [review-diff, hello]
    skill_from: [{{metadata: skillId}}]
    backend_paths: [{{path: /config, methods: [GET]}}]
policies: {{files: [policy.yaml]}}
audit: {{journal: {{dir: journal}}}}
",
        entry(a, "a", keys),
        entry(b, "b", "{file: b.json}"),
    )
}

/// A JWKS in which the key of `key` is named `kid`.
pub fn renamed(key: &DevIssuer, kid: &str) -> String {
    let mut jwks: Value = serde_json::from_str(&key.jwks()).unwrap();
    jwks["keys"][0]["kid"] = kid.into();
    jwks.to_string()
}

/// A JWKS with the keys of both.
pub fn both(one: &DevIssuer, other: &DevIssuer) -> String {
    let mut jwks: Value = serde_json::from_str(&one.jwks()).unwrap();
    let more: Value = serde_json::from_str(&other.jwks()).unwrap();
    let keys = more["keys"].as_array().unwrap().clone();
    jwks["keys"].as_array_mut().unwrap().extend(keys);
    jwks.to_string()
}
