//! Revocation before expiry, over HTTP: what is revoked never reaches the agent (RV-1, RV-2).

#![allow(clippy::unwrap_used)]

mod admin;
mod endpoint;
mod files;
mod introspection;
mod kept;
mod one_time;
mod stepped;

use crate::calls::{POLICY, RPC, yaml};
use crate::support::client::{Client, Response};
use crate::support::fake_agent;
use crate::support::gateway::{Gateway, Setup};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use portcullis::cli::demo_agent::DemoAgent;
use portcullis::pipeline::ports::Clock;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// An agent, two issuers, a gateway with a socket, a denylist and a place for revocations.
struct Stand {
    agent: DemoAgent,
    corp: Issuer,
    partner: Issuer,
    gateway: Gateway,
}

const NOTHING: &str = "version: 1\nrevoked: []\n";

impl Stand {
    async fn new() -> Stand {
        Stand::with(NOTHING, None, |yaml| yaml).await
    }

    async fn with(
        denylist: &str,
        clock: Option<Arc<dyn Clock>>,
        edit: impl Fn(String) -> String,
    ) -> Stand {
        let agent = fake_agent::start().await;
        let corp = Issuer::new(DevAlgorithm::Es256);
        let partner = Issuer::named(DevAlgorithm::Es256, "https://partner.example.test");
        let entry = partner.yaml_entry("partner", "partner.jwks.json", "");
        let yaml = edit(settings(&yaml(&agent.url(), &corp), &entry));
        let policy = POLICY.replace("allow: {", "allow: {issuers: any, ");
        let gateway = Gateway::start_with(Setup {
            yaml: &yaml,
            files: &[
                ("policy.yaml", &policy),
                ("corp.jwks.json", &corp.jwks()),
                ("partner.jwks.json", &partner.jwks()),
                ("denylist.yaml", denylist),
            ],
            clock,
        })
        .with_cards()
        .await;
        Stand {
            agent,
            corp,
            partner,
            gateway,
        }
    }

    fn counted(&self) -> (u64, u64) {
        let counters = self.agent.counters();
        (counters.requests(), counters.executions())
    }

    async fn call(&self, token: &str) -> Response {
        let body = crate::calls::message("SendMessage", "hello", "hi", &[]);
        self.post(token, &body).await
    }

    async fn post(&self, token: &str, body: &str) -> Response {
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        let fields = fake_agent::version_of("SendMessage");
        client
            .post_json(RPC, Some(token), fields, body)
            .await
            .unwrap()
    }

    async fn assert_passes(&self, token: &str, what: &str) {
        let (_, before) = self.counted();
        let response = self.call(token).await;
        assert_eq!(response.status, 200, "{what}: {}", response.text());
        assert_eq!(self.counted().1, before + 1, "{what}");
    }

    /// 401 with the same bytes as for any bad token, and nothing at the agent.
    async fn assert_revoked(&self, token: &str, code: &str) {
        let before = self.counted();
        let refusals = self.gateway.count("refusal");
        let response = self.call(token).await;
        assert_eq!(response.status, 401, "{code}: {}", response.text());
        assert_eq!(self.counted(), before, "{code}: the agent was touched");
        let record = self.gateway.refusal(refusals + 1).await;
        assert_eq!(record["decision"]["reason"], code, "{record}");
        let bad = self
            .corp
            .bad_token("alice", crate::support::issuer::Wrong::Signature);
        let other = self.call(&bad).await;
        assert_eq!((other.status, &other.body), (401, &response.body));
        assert_eq!(
            other.field("www-authenticate"),
            response.field("www-authenticate")
        );
    }

    fn socket(&self) -> PathBuf {
        self.gateway.folder.path().join("state/admin.sock")
    }

    /// An order by the socket.
    async fn order(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        admin::by_socket(&self.socket(), method, path, body, &[]).await
    }

    async fn revoke(&self, order: Value) -> Value {
        let (status, shown) = self.order("POST", "revocations", Some(order)).await;
        assert_eq!(status, 201, "{shown}");
        shown
    }
}

fn settings(yaml: &str, partner: &str) -> String {
    yaml.replace(
        "admin: {bind: 127.0.0.1:0}",
        "admin: {bind: 127.0.0.1:0, socket: state/admin.sock}\n\
         revocation: {files: [denylist.yaml], state: state/revoked.json}",
    )
    .replace("agents:\n", &format!("{partner}agents:\n"))
}

fn token(issuer: &Issuer, subject: &str, extra: Value) -> String {
    issuer.token(subject, Grant::Agent, extra)
}

/// The claims of a token, for what names it.
fn claim(token: &str, name: &str) -> Value {
    use base64::Engine;
    let payload = token.split('.').nth(1).unwrap();
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let bytes = engine.decode(payload).unwrap();
    serde_json::from_slice::<Value>(&bytes).unwrap()[name].clone()
}

/// SHA-256 of what was signed, in hexadecimal.
fn signing_input(token: &str) -> String {
    let (input, _) = token.rsplit_once('.').unwrap();
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, input.as_bytes());
    hash.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

fn empty() -> Value {
    json!({})
}
