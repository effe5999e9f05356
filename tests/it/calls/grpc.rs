//! gRPC through the whole gateway, in plaintext by prior knowledge (FC-49), in front of an agent
//! that speaks it at an origin of its own.

mod deadlines;
mod doors;
mod extended;
mod malformed;
mod refusals;
mod secured;

use super::yaml;
use crate::support::fake_agent;
use crate::support::gateway::{Gateway, Setup};
use crate::support::h2_agent::{H2Act, H2Agent, H2Answer, H2Seen};
use crate::support::h2_client::{H2Client, H2Response};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::proto::{encode, framed, method_of};
use portcullis::cli::demo_agent::DemoAgent;
use serde_json::{Value, json};

const NEW: &str = "lf.a2a.v1";
const OLD: &str = "a2a.v1";

const POLICY: &str = "version: 1
policy: grpc
rules:
  - id: reviewers
    allow: {agents: [pr-agent], operations: [messages, tasks, push], skills: any}
    grant: agent
    require: {role: {equals: reviewer}}
webhooks:
  allow:
    - {agents: [pr-agent], host: hooks.example.com}
";

pub struct Stand {
    agent: H2Agent,
    issuer: Issuer,
    pub gateway: Gateway,
    _cards: DemoAgent,
}

impl Stand {
    /// An agent with this script, behind `grpc`.
    async fn new(grpc: &str, script: impl IntoIterator<Item = H2Act>) -> Stand {
        Stand::with(grpc, script, POLICY, &[], |yaml| yaml).await
    }

    /// With another policy, further files, and a gateway file that is changed by `edit`.
    async fn with(
        grpc: &str,
        script: impl IntoIterator<Item = H2Act>,
        policy: &str,
        files: &[(&str, &str)],
        edit: impl FnOnce(String) -> String,
    ) -> Stand {
        let agent = H2Agent::start(script).await;
        let cards = fake_agent::start().await;
        let issuer = Issuer::new(DevAlgorithm::Es256);
        let interfaces = format!(
            "grpc: {grpc}
    interfaces:
      - {{binding: JSONRPC, version: [\"0.3\", \"1.0\"], backend: /a2a, public_path: /a2a}}
      - {{binding: GRPC, version: [\"0.3\", \"1.0\"], backend: \"http://{}\"}}
    skills",
            agent.address
        );
        let yaml = yaml(&cards.url(), &issuer)
            .replacen("skills", &interfaces, 1)
            .replacen("http://PUBLIC}", "http://PUBLIC, h2c: true}", 1);
        let jwks = issuer.jwks();
        let mut all = vec![("policy.yaml", policy), ("corp.jwks.json", &jwks)];
        all.extend_from_slice(files);
        let gateway = Gateway::start_with(Setup {
            yaml: &edit(yaml),
            files: &all,
            clock: None,
        })
        .with_cards()
        .await;
        Stand {
            agent,
            issuer,
            gateway,
            _cards: cards,
        }
    }

    async fn behind_listener(script: impl IntoIterator<Item = H2Act>) -> Stand {
        Stand::new("{listener: public}", script).await
    }

    fn token(&self, subject: &str) -> String {
        let claims = json!({"role": "reviewer"});
        self.issuer.token(subject, Grant::Agent, claims)
    }

    /// The last outcome, once there are `many`.
    async fn outcome(&self, many: usize) -> Value {
        let is_outcome = |r: &&Value| r["kind"] == "outcome";
        let records = self.gateway.journal.until("outcomes", |records| {
            records.iter().filter(is_outcome).count() >= many
        });
        let records = records.await;
        records
            .into_iter()
            .rfind(|r| r["kind"] == "outcome")
            .unwrap()
    }

    async fn client(&self) -> H2Client {
        H2Client::connect(self.gateway.address).await
    }

    /// Behind a listener, with a gateway file that is changed by `edit`; it is greeted once.
    pub async fn greeted(edit: impl FnOnce(String) -> String) -> Stand {
        let greeting = good(reply(NEW, "SendMessage", &json!([["task", task()]])));
        Stand::with("{listener: public}", [greeting], POLICY, &[], edit).await
    }

    /// Sends a message with these fields, which must arrive; its path.
    pub async fn greet(&self, fields: &[(&'static str, &str)]) -> String {
        let path = path(NEW, "SendMessage");
        let body = request(NEW, "SendMessage", &message(NEW, &[]));
        let head = head(Some(&self.token("alice")), fields);
        let mut client = self.client().await;
        let answer = client.request("POST", &path, &head, &body).await.unwrap();
        assert_eq!(answer.trailer("grpc-status"), Some("0"), "{answer:?}");
        path
    }

    /// What the agent saw; all of it.
    pub fn seen(&self) -> Vec<H2Seen> {
        self.agent.counts().seen
    }
}

/// The header of a call.
fn head(token: Option<&str>, more: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let mut list = vec![
        ("content-type", "application/grpc".to_owned()),
        ("te", "trailers".to_owned()),
        ("grpc-accept-encoding", "gzip".to_owned()),
    ];
    list.extend(token.map(|token| ("authorization", format!("Bearer {token}"))));
    list.extend(
        more.iter()
            .map(|(name, value)| (*name, (*value).to_owned())),
    );
    list
}

fn path(package: &str, method: &str) -> String {
    format!("/{package}.A2AService/{method}")
}

fn request(package: &str, method: &str, fields: &Value) -> Vec<u8> {
    let (request, _, _) = method_of(package, method).unwrap();
    framed(&encode(package, &request, fields))
}

fn reply(package: &str, method: &str, fields: &Value) -> Vec<u8> {
    let (_, reply, _) = method_of(package, method).unwrap();
    match reply.as_str() {
        "Empty" => framed(b""),
        reply => framed(&encode(package, reply, fields)),
    }
}

fn good(body: Vec<u8>) -> H2Act {
    H2Act::Answer(H2Answer::grpc(body, &[("grpc-status", "0")]))
}

/// An agent's refusal without a message: all in the header.
fn trailers_only(fields: &[(&'static str, &str)]) -> H2Act {
    let mut list = vec![("content-type", "application/grpc".to_owned())];
    list.extend(
        fields
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned())),
    );
    H2Act::Answer(H2Answer {
        status: 200,
        fields: list,
        body: Vec::new(),
        trailers: None,
    })
}

fn message(package: &str, ids: &[(&str, &str)]) -> Value {
    let (field, parts) = match package {
        OLD => ("request", "content"),
        _ => ("message", "parts"),
    };
    let mut message = vec![
        json!(["message_id", "m-1"]),
        json!(["role", 1]),
        json!([parts, [["text", "hello"]]]),
    ];
    message.extend(ids.iter().map(|(name, id)| json!([name, id])));
    json!([[field, message]])
}

fn task() -> Value {
    json!([
        ["id", "t-1"],
        ["context_id", "c-1"],
        ["status", [["state", 3]]]
    ])
}

#[tokio::test]
async fn calls_of_both_packages_go_through_and_come_back() {
    let named = json!([["name", "tasks/t-1"]]);
    let config = json!([["name", "tasks/t-1/pushNotificationConfigs/p"]]);
    let by_id = json!([["id", "t-1"]]);
    let by_task = json!([["task_id", "t-1"], ["id", "p"]]);
    let work = json!([["task", task()]]);
    for (package, calls) in [
        (
            NEW,
            vec![
                ("SendMessage", message(NEW, &[]), work.clone()),
                (
                    "SendMessage",
                    message(NEW, &[("task_id", "t-1")]),
                    work.clone(),
                ),
                ("SendStreamingMessage", message(NEW, &[]), work.clone()),
                ("GetTask", by_id.clone(), task()),
                ("CancelTask", by_id.clone(), task()),
                ("SubscribeToTask", by_id, work.clone()),
                (
                    "GetTaskPushNotificationConfig",
                    by_task.clone(),
                    by_task.clone(),
                ),
                ("DeleteTaskPushNotificationConfig", by_task, json!([])),
            ],
        ),
        (
            OLD,
            vec![
                ("SendMessage", message(OLD, &[]), work.clone()),
                ("SendStreamingMessage", message(OLD, &[]), work.clone()),
                ("GetTask", named.clone(), task()),
                ("CancelTask", named.clone(), task()),
                ("TaskSubscription", named, work),
                (
                    "GetTaskPushNotificationConfig",
                    config.clone(),
                    config.clone(),
                ),
                ("DeleteTaskPushNotificationConfig", config, json!([])),
            ],
        ),
    ] {
        let replies: Vec<_> = calls
            .iter()
            .map(|(method, _, answer)| reply(package, method, answer))
            .collect();
        let stand = Stand::behind_listener(replies.iter().cloned().map(good)).await;
        let token = stand.token("alice");
        let mut client = stand.client().await;
        for (index, (method, fields, _)) in calls.iter().enumerate() {
            let body = request(package, method, fields);
            let path = path(package, method);
            let answer = client
                .request("POST", &path, &head(Some(&token), &[]), &body)
                .await
                .unwrap();
            assert_eq!(answer.status, 200, "{path}");
            assert_eq!(answer.field("content-type"), Some("application/grpc"));
            assert_eq!(answer.body, replies[index], "{path}: {answer:?}");
            assert_eq!(answer.trailer("grpc-status"), Some("0"), "{path}");
            let seen = &stand.seen()[index];
            assert_eq!((&*seen.method, &*seen.path), ("POST", &*path));
            assert_eq!(seen.body, body, "{path}: judged is forwarded");
            assert_eq!(seen.field("te"), Some("trailers"));
            assert_eq!(seen.field("authorization"), None);
            assert_eq!(seen.field("grpc-accept-encoding"), None);
            let version = (package == NEW).then_some("1.0");
            assert_eq!(seen.field("a2a-version"), version, "{path}");
        }
    }
}

/// Asserts a refusal that any client library reads (FC-46).
#[track_caller]
fn assert_status(answer: &H2Response, status: &str, what: &str) {
    assert_eq!(answer.status, 200, "{what}: {answer:?}");
    assert_eq!(
        answer.field("content-type"),
        Some("application/grpc"),
        "{what}"
    );
    assert_eq!(
        answer.field("grpc-status"),
        Some(status),
        "{what}: {answer:?}"
    );
    assert!(answer.field("grpc-message").is_some(), "{what}");
    assert!(answer.field("grpc-status-details-bin").is_some(), "{what}");
    assert!(
        answer.body.is_empty() && answer.trailers.is_none(),
        "{what}"
    );
}

#[tokio::test]
async fn the_agents_own_status_reaches_the_caller() {
    // FC-45: without a message, and behind three of them.
    let events: Vec<u8> = (0..3)
        .flat_map(|n| {
            let update = json!([["task_id", "t-1"], ["context_id", "c-1"], ["status", [["state", 2]]],
                ["metadata", {"struct": {"n": n}}]]);
            let event = match n {
                0 => json!([["task", task()]]),
                _ => json!([["status_update", update]]),
            };
            reply(NEW, "SendStreamingMessage", &event)
        })
        .collect();
    let broken = [
        ("grpc-status", "13"),
        ("grpc-message", "it broke 100%25"),
        ("grpc-status-details-bin", "CA0SBWJyb2tl"),
    ];
    let stand = Stand::behind_listener([
        H2Act::Answer(H2Answer::grpc(events.clone(), &broken)),
        trailers_only(&[
            ("grpc-status", "5"),
            ("grpc-message", "gone"),
            ("grpc-status-details-bin", "CAUSBGdvbmU"),
        ]),
    ])
    .await;
    let token = stand.token("alice");
    let mut client = stand.client().await;
    let body = request(NEW, "SendStreamingMessage", &message(NEW, &[]));
    let path_of = path(NEW, "SendStreamingMessage");
    let answer = client
        .request("POST", &path_of, &head(Some(&token), &[]), &body)
        .await
        .unwrap();
    assert_eq!(answer.body, events, "{answer:?}");
    for (name, value) in broken {
        assert_eq!(answer.trailer(name), Some(value), "{name}");
    }
    let body = request(NEW, "GetTask", &json!([["id", "t-1"]]));
    let answer = client
        .request(
            "POST",
            &path(NEW, "GetTask"),
            &head(Some(&token), &[]),
            &body,
        )
        .await
        .unwrap();
    assert!(answer.body.is_empty());
    let said = |name: &str| {
        answer
            .field(name)
            .or(answer.trailer(name))
            .map(str::to_owned)
    };
    assert_eq!(said("grpc-status").as_deref(), Some("5"), "{answer:?}");
    assert_eq!(said("grpc-message").as_deref(), Some("gone"));
    assert_eq!(
        said("grpc-status-details-bin").as_deref(),
        Some("CAUSBGdvbmU")
    );
}

#[tokio::test]
async fn the_callers_deadline_is_kept() {
    let stand = Stand::behind_listener([H2Act::Hang]).await;
    let token = stand.token("alice");
    let mut client = stand.client().await;
    let body = request(NEW, "SendMessage", &message(NEW, &[]));
    let began = std::time::Instant::now();
    let answer = client
        .request(
            "POST",
            &path(NEW, "SendMessage"),
            &head(Some(&token), &[("grpc-timeout", "300m")]),
            &body,
        )
        .await
        .unwrap();
    assert_status(&answer, "4", "the deadline");
    assert!(began.elapsed() < std::time::Duration::from_secs(8));
    // The agent had the call, and is told that nobody waits any more.
    let seen = stand
        .agent
        .until("the reset", |c| c.seen.iter().any(|s| s.reset))
        .await;
    assert_eq!(seen.seen.len(), 1);
}
