//! Tokens of identity products through the whole gateway, with the very example files that are
//! shipped.
//!
//! Answers: does each example take its product's access tokens, and nothing else of it. Invariants:
//! every refusal asserts that the agent saw nothing. Start reading at [`products`].

mod delegated;
mod products;

use crate::calls::{RPC, message};
use crate::support::client::{Client, Response};
use crate::support::fake_agent;
use crate::support::gateway::{Gateway, Setup};
use crate::support::issuer::{DevAlgorithm, Issuer};
use portcullis::cli::demo_agent::DemoAgent;
use serde_json::{Map, Value, json};

/// One example, running.
pub struct Example {
    pub agent: DemoAgent,
    pub gateway: Gateway,
    issuer: Issuer,
}

impl Example {
    /// `config/issuers/PRODUCT.yaml` as it stands, but for addresses and keys.
    pub async fn start(product: &str, algorithm: DevAlgorithm) -> Example {
        let agent = fake_agent::start().await;
        let issuer = Issuer::new(algorithm);
        let file = format!("config/issuers/{product}.yaml");
        let text = std::fs::read_to_string(file).unwrap();
        let keys = text.lines().find(|l| l.trim_start().starts_with("keys: "));
        let yaml = text
            .replace(keys.unwrap(), "    keys: {file: jwks.json}")
            .replace("127.0.0.1:8080", "PUBLIC")
            .replace("http://127.0.0.1:9999", &agent.url())
            .replace("../../state/journal", "journal")
            .replace("\nagents:", "\nadmin: {bind: 127.0.0.1:0}\nagents:");
        let policy = std::fs::read_to_string("config/issuers/policy.yaml").unwrap();
        let files = [("policy.yaml", &*policy), ("jwks.json", &issuer.jwks())];
        let gateway = Gateway::start_with(Setup {
            yaml: &yaml,
            files: &files,
            clock: None,
        })
        .with_cards()
        .await;
        Example {
            agent,
            gateway,
            issuer,
        }
    }

    /// A token with this header and payload; `alg`, `kid` and an hour's half of life are added
    /// where they are not given, and what is given as null is left out.
    pub fn token(&self, header: &Value, payload: &Value) -> String {
        let key = self.issuer.key();
        let now = std::time::SystemTime::now();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let whole = |given: &Value, more: Value| {
            let mut all: Map<String, Value> = more.as_object().unwrap().clone();
            all.extend(given.as_object().unwrap().clone());
            all.retain(|_, value| !value.is_null());
            Value::Object(all).to_string()
        };
        let header = whole(
            header,
            json!({"alg": key.algorithm().name(), "kid": key.kid()}),
        );
        let payload = whole(payload, json!({"iat": now, "exp": now + 1800}));
        key.sign(header.as_bytes(), payload.as_bytes()).unwrap()
    }

    /// Says hello with a token.
    pub async fn hello(&self, token: &str) -> Response {
        let body = message("SendMessage", "hello", "hi", &[]);
        self.post(token, &body).await
    }

    pub async fn post(&self, token: &str, body: &str) -> Response {
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        let fields = [("A2A-Version", "1.0")];
        client
            .post_json(RPC, Some(token), &fields, body)
            .await
            .unwrap()
    }

    /// Asks for a path of the backend surface.
    pub async fn config(&self, token: &str) -> Response {
        let bearer = format!("Bearer {token}");
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        let fields = [("Authorization", bearer.as_str())];
        let head =
            crate::support::client::request_head("GET", "/agents/pr-agent/config", &fields, None);
        client.send(head.as_bytes()).await.unwrap();
        client.response().await.unwrap()
    }

    /// What the agent has counted: requests and executions.
    pub fn counted(&self) -> (u64, u64) {
        let counters = self.agent.counters();
        (counters.requests(), counters.executions())
    }
}

/// One object over another.
pub fn with(base: &Value, over: Value) -> Value {
    let mut all = base.as_object().unwrap().clone();
    all.extend(over.as_object().unwrap().clone());
    Value::Object(all)
}
