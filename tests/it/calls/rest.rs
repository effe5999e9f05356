//! The REST binding against a live gateway, in front of an agent that offers it in both versions
//! below the path of its JSON-RPC interface.

mod interfaces;
mod spellings;

use super::rig::Rig;
use super::{POLICY, RPC, message};
use crate::support::client::{Client, Response};
use crate::support::gateway::Gateway;
use crate::support::issuer::{Grant, Issuer};
use crate::support::raw_agent::{Act, LAST_CHUNK, RawAgent, Seen, chunk, json_answer, stream_head};
use serde_json::{Value, json};

/// The path of the agent's REST interface.
pub const REST: &str = "/agents/pr-agent/a2a/rest";

/// A hybrid card with JSON-RPC and REST in both versions.
fn card(port: u16) -> Value {
    let rpc = format!("http://127.0.0.1:{port}/a2a");
    let rest = format!("http://127.0.0.1:{port}/a2a/rest");
    json!({
        "name": "raw", "description": "raw", "version": "1",
        "protocolVersion": "0.3.0", "url": rpc, "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": rest, "transport": "HTTP+JSON"}],
        "supportedInterfaces": [
            {"url": rpc, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": rest, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true}, "skills": [],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
    })
}

pub struct Stand {
    pub agent: RawAgent,
    pub gateway: Gateway,
    issuer: Issuer,
}

impl Stand {
    pub async fn new() -> Stand {
        Stand::with(|yaml| yaml).await
    }

    /// With a gateway file that is changed by `edit`; the agent has answered for its card.
    pub async fn with(edit: impl Fn(String) -> String) -> Stand {
        Stand::of(card, edit).await
    }

    /// In front of an agent with this card.
    async fn of(card: impl Fn(u16) -> Value, edit: impl Fn(String) -> String) -> Stand {
        let policy = POLICY.replace("[review-diff]", "any");
        let Rig {
            agent,
            issuer,
            gateway,
        } = Rig::of(card, &policy, edit).await;
        Stand {
            agent,
            gateway,
            issuer,
        }
    }

    pub fn token(&self, grant: Grant) -> String {
        self.issuer
            .token("alice", grant, json!({"role": "reviewer"}))
    }

    pub fn token_of(&self, subject: &str) -> String {
        self.token_with(subject, "reviewer")
    }

    pub fn token_with(&self, subject: &str, role: &str) -> String {
        self.issuer
            .token(subject, Grant::Agent, json!({ "role": role }))
    }

    /// Posts a 1.0 body to the JSON-RPC interface.
    pub async fn post(&self, token: &str, body: &str) -> Response {
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        let fields = [("A2A-Version", "1.0")];
        let sent = client.post_json(RPC, Some(token), &fields, body);
        sent.await.unwrap()
    }

    /// Sends to a path below the gateway's root, with a bearer token.
    async fn send(&self, token: &str, path: &str, body: &str) -> Response {
        let bearer = format!("Bearer {token}");
        let fields = [
            ("Authorization", &*bearer),
            ("Content-Type", "application/json"),
        ];
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        let sent = client.request("POST", path, &fields, body.as_bytes());
        sent.await.unwrap()
    }

    /// Sends a request below the REST interface; a body goes as JSON.
    async fn ask(
        &self,
        method: &str,
        below: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let bearer = format!("Bearer {}", self.token(Grant::Agent));
        let mut all = vec![("Authorization", bearer.as_str())];
        if !body.is_empty() {
            all.push(("Content-Type", "application/json"));
        }
        all.extend_from_slice(fields);
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        client
            .request(method, &format!("{REST}{below}"), &all, body.as_bytes())
            .await
            .unwrap()
    }

    /// What the agent saw, the card's own request left out.
    pub fn seen(&self) -> Vec<Seen> {
        self.agent.counts().seen.split_off(1)
    }

    fn last(&self) -> Seen {
        self.seen().pop().unwrap()
    }

    /// Makes `t-1` Alice's, by the other binding.
    async fn own_a_task(&self) {
        let reply = json!({"jsonrpc": "2.0", "id": 1, "result": {"task": task()}});
        self.agent
            .play([Act::Answer(json_answer(200, &reply.to_string()))]);
        let mut client = Client::connect(self.gateway.address).await.unwrap();
        let body = message("SendMessage", "hello", "hi", &[]);
        let token = self.token(Grant::Agent);
        let version = [("A2A-Version", "1.0")];
        let response = client.post_json(RPC, Some(&token), &version, &body);
        assert_eq!(response.await.unwrap().status, 200);
    }
}

fn task() -> Value {
    json!({"id": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_WORKING"}})
}

fn send(parts: &str) -> String {
    json!({"message": {
        "messageId": "m-1", "role": "ROLE_USER", parts: [{"text": "hi"}],
        "metadata": {"skillId": "hello"},
    }})
    .to_string()
}

fn versions(seen: &Seen) -> Vec<String> {
    let fields = seen.fields().1;
    fields
        .into_iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("a2a-version"))
        .map(|(_, value)| value)
        .collect()
}

/// A task that was begun in another binding is followed in this one; to everybody else it is not
/// there.
#[tokio::test]
async fn tasks_are_read_followed_and_canceled_with_the_caller_s_own_verb() {
    let stand = Stand::new().await;
    stand.own_a_task().await;
    let one = task().to_string();
    let mut updated = task();
    updated["status"]["state"] = "TASK_STATE_COMPLETED".into();
    let events = || {
        let mut bytes = stream_head();
        bytes.extend(chunk(&format!("data: {}\n\n", json!({"task": task()}))));
        bytes.extend(chunk(&format!("data: {}\n\n", json!({"task": updated}))));
        bytes.extend(LAST_CHUNK);
        Act::Answer(bytes)
    };
    let json = || Act::Answer(json_answer(200, &one));
    // Method, path and query, body; what the agent saw of path and length; its answer.
    let table = [
        ("GET", "/tasks/t-1", "", "/tasks/t-1", None, json()),
        (
            "GET",
            "/tasks/t-1?historyLength=%32",
            "",
            "/tasks/t-1?historyLength=2",
            None,
            json(),
        ),
        ("GET", "/v1/tasks/t-1", "", "/v1/tasks/t-1", None, json()),
        (
            "POST",
            "/tasks/t-1:cancel",
            "",
            "/tasks/t-1:cancel",
            Some("0"),
            json(),
        ),
        (
            "POST",
            "/tasks/t-1:cancel",
            r#"{"id":"t-1"}"#,
            "/tasks/t-1:cancel",
            Some("12"),
            json(),
        ),
        (
            "POST",
            "/v1/tasks/t-1%3Acancel",
            r#"{"name":"tasks/t-1"}"#,
            "/v1/tasks/t-1:cancel",
            Some("20"),
            json(),
        ),
        (
            "POST",
            "/tasks/t-1:subscribe",
            "",
            "/tasks/t-1:subscribe",
            Some("0"),
            events(),
        ),
        (
            "GET",
            "/tasks/t-1:subscribe",
            "",
            "/tasks/t-1:subscribe",
            None,
            events(),
        ),
        (
            "GET",
            "/v1/tasks/t-1:subscribe",
            "",
            "/v1/tasks/t-1:subscribe",
            None,
            events(),
        ),
    ];
    for (method, below, body, path, length, act) in table {
        stand.agent.play([act]);
        let response = stand.ask(method, below, &[], body).await;
        assert_eq!(
            response.status,
            200,
            "{method} {below}: {}",
            response.text()
        );
        let seen = stand.last();
        let line = format!("{method} /a2a/rest{path} HTTP/1.1");
        assert_eq!(seen.fields().0, line);
        assert_eq!(seen.field("content-length").as_deref(), length, "{line}");
        assert_eq!(seen.body, body.as_bytes(), "{line}");
    }
    let before = stand.seen().len();
    for below in ["/tasks/t-2", "/v1/tasks/t-2"] {
        let response = stand.ask("GET", below, &[], "").await;
        assert_eq!(response.status, 404, "{below}");
        let code = crate::wire::error_code(&response.json());
        assert_eq!(
            code,
            if below.starts_with("/v1") {
                -32001
            } else {
                404
            }
        );
    }
    assert_eq!(stand.seen().len(), before);
}

/// A client that finds one verb of a subscription refused asks again with the other.
#[tokio::test]
async fn a_refused_verb_of_a_subscription_stays_a_405() {
    let stand = Stand::new().await;
    stand.own_a_task().await;
    let refusal = b"HTTP/1.1 405 Method Not Allowed\r\nAllow: GET\r\nContent-Type: text/plain\r\nContent-Length: 18\r\n\r\nMethod Not Allowed";
    for below in ["/tasks/t-1:subscribe", "/v1/tasks/t-1:subscribe"] {
        stand.agent.play([Act::Answer(refusal.to_vec())]);
        let response = stand.ask("POST", below, &[], "").await;
        assert_eq!(response.status, 405, "{below}: {}", response.text());
    }
}
