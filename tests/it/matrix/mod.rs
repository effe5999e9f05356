//! One matrix: every operation, in every binding and version that spells it, allowed and refused
//! in each way. The decision and the record are the same; only the form of the answer differs.
//!
//! Answers: is there a dialect that is a way around a rule. May import: the program. Invariants:
//! the requests are made from one table; every refusal asserts that the agent executed nothing.
//! Start reading at [`every_operation_in_every_dialect`].

mod agent;
mod client;
mod content;
mod proto;
mod requests;
mod splices;
mod webhooks;

use crate::support::gateway::{Gateway, Setup};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use agent::Polyglot;
use client::{GRPC_HOST, ROUTE, Said, send};
use portcullis::a2a::{Binding, Dialect, Operation, Version};
use requests::{Spoken, spoken};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const BINDINGS: [Binding; 3] = [Binding::JsonRpc, Binding::Rest, Binding::Grpc];
const VERSIONS: [Version; 2] = [Version::V1_0, Version::V0_3];

const POLICY: &str = "version: 1
policy: matrix
rules:
  - id: testers
    allow: {agents: [polyglot], operations: [messages, tasks, list, push, card], skills: [hello]}
    grant: agent
    require: {role: {equals: tester}}
webhooks:
  allow: [{agents: [polyglot], host: 93.184.216.34}]

";

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Situation {
    NoToken,
    NoGrant,
    NoRule,
    Allowed,
}

const SITUATIONS: [Situation; 4] = [
    Situation::NoToken,
    Situation::NoGrant,
    Situation::NoRule,
    Situation::Allowed,
];

struct Stand {
    agent: Polyglot,
    issuer: Issuer,
    gateway: Gateway,
}

impl Stand {
    async fn new() -> Stand {
        Stand::with(|yaml| yaml).await
    }

    /// With a gateway file that is changed by `edit`.
    async fn with(edit: impl Fn(String) -> String) -> Stand {
        Stand::under(POLICY, edit).await
    }

    /// The same with another policy.
    async fn under(policy: &str, edit: impl Fn(String) -> String) -> Stand {
        let agent = Polyglot::start().await;
        let issuer = Issuer::new(DevAlgorithm::Es256);
        let entry = issuer.yaml_entry(
            "corp",
            "corp.jwks.json",
            "{role: {path: [role], type: string}}",
        );
        let (http, grpc) = (agent.http, agent.grpc);
        let yaml = format!(
            "version: 1
listeners: [{{name: public, bind: PUBLIC, public_url: http://PUBLIC, h2c: true}}]
admin: {{bind: 127.0.0.1:0}}
issuers:
{entry}agents:
  - name: polyglot
    route: {{path: {ROUTE}}}
    publish: true
    backend: {{url: http://{http}}}
    grpc: {{host: {GRPC_HOST}}}
    interfaces:
      - {{binding: JSONRPC, version: ['0.3', '1.0'], backend: /rpc, public_path: /rpc}}
      - {{binding: HTTP+JSON, version: ['0.3', '1.0'], backend: /rest, public_path: /rest}}
      - {{binding: GRPC, version: ['0.3', '1.0'], backend: 'http://{grpc}'}}
    skills: [hello]
policies: {{files: [policy.yaml]}}
audit: {{journal: {{dir: journal}}}}
"
        );
        let files = [("policy.yaml", policy), ("corp.jwks.json", &issuer.jwks())];
        let setup = Setup {
            yaml: &edit(yaml),
            files: &files,
            clock: None,
        };
        let gateway = Gateway::start_with(setup).with_cards().await;
        Stand {
            agent,
            issuer,
            gateway,
        }
    }

    fn token(&self, situation: Situation) -> Option<String> {
        let role = |role: &str| json!({ "role": role });
        match situation {
            Situation::NoToken => None,
            Situation::NoGrant => {
                let mut claims = self.issuer.claims("alice", Grant::Agent, role("tester"));
                claims.scope = "openid".to_owned();
                Some(self.issuer.mint(&claims))
            }
            Situation::NoRule => Some(self.issuer.token("alice", Grant::Agent, role("author"))),
            Situation::Allowed => Some(self.issuer.token("alice", Grant::Agent, role("tester"))),
        }
    }

    /// A task of Alice's, started in this dialect.
    async fn task(&self, dialect: Dialect) -> String {
        let token = self.token(Situation::Allowed);
        let request = spoken(dialect, Operation::SendMessage, "").unwrap();
        let said = send(self.gateway.address, dialect, token.as_deref(), &request).await;
        let Said::Good(body) = &said else {
            panic!("{dialect:?}: {said:?}")
        };
        let found = ["/result/task/id", "/result/id", "/task/id", "/task"]
            .iter()
            .find_map(|path| body.pointer(path)?.as_str());
        found.unwrap_or_else(|| panic!("{body}")).to_owned()
    }

    /// One request; the records that it left.
    async fn ask(
        &self,
        dialect: Dialect,
        operation: Operation,
        situation: Situation,
        task: &str,
    ) -> (Said, Vec<Value>) {
        let request = spoken(dialect, operation, task).unwrap();
        self.asked(dialect, &request, self.token(situation).as_deref())
            .await
    }

    /// The same of any request.
    async fn asked(
        &self,
        dialect: Dialect,
        request: &Spoken,
        token: Option<&str>,
    ) -> (Said, Vec<Value>) {
        let before = self.gateway.journal.records().len();
        let said = send(self.gateway.address, dialect, token, request).await;
        let records = self
            .gateway
            .journal
            .until("the last record", |records| {
                records[before..]
                    .iter()
                    .any(|r| matches!(r["kind"].as_str(), Some("outcome" | "refusal")))
            })
            .await;
        (said, records[before..].to_vec())
    }
}

#[tokio::test]
async fn every_operation_in_every_dialect() {
    let stand = Stand::new().await;
    let mut seen: BTreeMap<(Operation, Situation), (Dialect, Vec<Value>)> = BTreeMap::new();
    let mut asked = 0;
    for binding in BINDINGS {
        for version in VERSIONS {
            let dialect = Dialect { binding, version };
            for operation in Operation::ALL {
                if spoken(dialect, operation, "t").is_none() {
                    assert_eq!((operation, version), (Operation::ListTasks, Version::V0_3));
                    continue;
                }
                let task = stand.task(dialect).await;
                for situation in SITUATIONS {
                    let what = format!("{operation:?}, {dialect:?}, {situation:?}");
                    let before = stand.agent.executed();
                    let (said, records) = stand.ask(dialect, operation, situation, &task).await;
                    let executed = stand.agent.executed() - before;
                    match situation {
                        Situation::Allowed => {
                            assert!(matches!(said, Said::Good(_)), "{what}: {said:?}");
                            assert_eq!(executed, 1, "{what}");
                        }
                        _ => {
                            assert_eq!(executed, 0, "{what}: the agent executed it");
                            assert_eq!(said, refusal(dialect, situation), "{what}");
                        }
                    }
                    let records = records.into_iter().map(|r| shared(r, &task)).collect();
                    let (first, expected) = seen
                        .entry((operation, situation))
                        .or_insert_with(|| (dialect, Vec::clone(&records)));
                    assert_eq!(&records, expected, "{what}: recorded unlike {first:?}");
                    asked += 1;
                }
            }
        }
    }
    // Eleven operations in three bindings; 0.3 has no ListTasks.
    assert_eq!(asked, (11 + 10) * 3 * SITUATIONS.len());
}

/// The answer to a refusal, in the form of the dialect (`a2a-protocol.md` e.4).
fn refusal(dialect: Dialect, situation: Situation) -> Said {
    let (status, grpc, code, reason) = match situation {
        Situation::NoToken => (401, 16, "-31401", "UNAUTHENTICATED"),
        Situation::NoGrant => (403, 7, "-31403", "INSUFFICIENT_SCOPE"),
        Situation::NoRule => (403, 7, "-31403", "UNAUTHORIZED"),
        Situation::Allowed => unreachable!("allowed"),
    };
    // Before the body is read there is one document for both JSON bindings (`design.md` 6).
    let early = situation != Situation::NoRule;
    let json_rpc = dialect.binding == Binding::JsonRpc;
    let old = dialect.version == Version::V0_3 && !early;
    Said::Bad {
        status: if dialect.binding == Binding::Grpc {
            grpc
        } else {
            status
        },
        reason: match dialect.binding {
            Binding::JsonRpc if early => code.to_owned(),
            Binding::JsonRpc if old => code.to_owned(),
            Binding::Rest if old => "PermissionDeniedError".to_owned(),
            _ => reason.to_owned(),
        },
        id: if json_rpc && !early {
            "q".into()
        } else {
            Value::Null
        },
        challenge: early,
    }
}

/// What of a record must not depend on the dialect: all but what tells the moment, the connection,
/// the dialect itself and the number of bytes.
fn shared(record: Value, task: &str) -> Value {
    const OWN: [&str; 14] = [
        "seq",
        "prev",
        "time",
        "request_id",
        "trace_id",
        "intent",
        "binding",
        "version",
        "source",
        "request",
        "attempts",
        "ms",
        "http_status",
        "context_id",
    ];
    let Value::Object(members) = record else {
        panic!("{record}")
    };
    let kept: Map<String, Value> = members
        .into_iter()
        .filter(|(name, _)| !OWN.contains(&name.as_str()))
        .map(|(name, mut value)| match name.as_str() {
            "task_id" if value == task => (name, "the task".into()),
            "task_id" => (name, "a new task".into()),
            "response" => {
                let members = value.as_object_mut().unwrap();
                members.retain(|name, _| {
                    !["http_status", "bytes", "grpc_status"].contains(&name.as_str())
                });
                (name, value)
            }
            "caller" => {
                value.as_object_mut().unwrap().remove("fingerprint");
                (name, value)
            }
            _ => (name, value),
        })
        .collect();
    Value::Object(kept)
}
