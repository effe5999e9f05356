//! What a message says decides alike in every binding and version.

use super::client::{Said, send};
use super::requests::{Spoken, in_grpc, spoken};
use super::{BINDINGS, Situation, Stand, VERSIONS, refusal};
use crate::support::proto::encode;
use portcullis::a2a::{Binding, Dialect, Operation, Version};
use portcullis::policy::decision::why;
use serde_json::{Value, json};

const PATH: &str = "$.message.parts[*].data.repo";

/// An allow that only lets the sandbox through, and a deny for what is marked as frozen.
const POLICY: &str = "version: 1
policy: content
rules:
  - id: sandbox
    allow: {agents: [polyglot], operations: [messages], skills: [hello]}
    grant: agent
    require:
      role: {equals: tester}
      content: [{path: \"$.message.parts[*].data.repo\", each: {matches: \"sandbox/*\"}}]
  - id: thaw-first
    deny: {agents: [polyglot], operations: [messages], skills: any}
    when:
      content: [{path: \"$.message.metadata.frozen\", some: {equals: true}, if_missing: no_match}]
  - id: tasks
    allow: {agents: [polyglot], operations: [tasks]}
    grant: agent
";

/// The rule that allows; or the one that denies, the path that it or the nearest allow failed on,
/// and why.
type Decided = Result<&'static str, (Option<&'static str>, &'static str, &'static str)>;

/// A send with these data parts and this metadata.
fn saying(dialect: Dialect, parts: &[Value], metadata: &Value) -> Spoken {
    let old = dialect.version == Version::V0_3;
    let spoken = spoken(dialect, Operation::SendMessage, "").unwrap();
    if dialect.binding == Binding::Grpc {
        let (package, request, list) = match old {
            true => ("a2a.v1", "request", "content"),
            false => ("lf.a2a.v1", "message", "parts"),
        };
        let data = |data: &Value| match old {
            true => json!(["data", [["data", {"struct": data}]]]),
            false => json!(["data", {"struct": data}]),
        };
        let mut message = vec![json!(["message_id", "m-1"]), json!(["role", 1])];
        message.extend(parts.iter().map(|part| json!([list, [data(part)]])));
        message.push(json!(["metadata", {"struct": metadata}]));
        let fields = json!([[request, message]]);
        let message = encode(package, "SendMessageRequest", &fields);
        return in_grpc(package, "SendMessage", &message);
    }
    let mut body: Value = serde_json::from_slice(&spoken.body).unwrap();
    let message = match dialect.binding {
        Binding::JsonRpc => &mut body["params"]["message"],
        Binding::Rest | Binding::Grpc => &mut body["message"],
    };
    let proto_json = old && dialect.binding == Binding::Rest;
    let part = |data: &Value| match (old, proto_json) {
        (true, true) => json!({"data": {"data": data}}),
        (true, false) => json!({"kind": "data", "data": data}),
        (false, _) => json!({"data": data}),
    };
    let list = if proto_json { "content" } else { "parts" };
    message[list] = parts.iter().map(part).collect();
    message["metadata"] = metadata.clone();
    Spoken {
        body: body.to_string().into(),
        ..spoken
    }
}

#[tokio::test]
async fn content_decides_alike_in_every_dialect() {
    let stand = Stand::under(POLICY, |yaml| yaml).await;
    let token = stand.token(Situation::Allowed);
    let repo = |repo: Value| json!({ "repo": repo });
    let sandbox = || repo(json!("sandbox/a"));
    let secret = "prod-secret";
    let none = json!({});
    let large = json!({"repo": "sandbox/a", "fill": "x".repeat(300 << 10)});
    // The parts, the metadata, and what is decided.
    let cases: Vec<(Vec<Value>, Value, Decided)> = vec![
        (vec![sandbox()], none.clone(), Ok("sandbox")),
        (
            vec![sandbox(), sandbox()],
            json!({"frozen": false}),
            Ok("sandbox"),
        ),
        (
            vec![repo(json!(secret))],
            none.clone(),
            Err((None, PATH, why::VALUE_DIFFERS)),
        ),
        (
            vec![sandbox(), repo(json!(secret))],
            none.clone(),
            Err((None, PATH, why::VALUE_DIFFERS)),
        ),
        (
            vec![json!({"x": secret})],
            none.clone(),
            Err((None, PATH, why::MISSING)),
        ),
        (
            vec![repo(Value::Null)],
            none.clone(),
            Err((None, PATH, why::NULL)),
        ),
        (
            vec![repo(json!([secret]))],
            none.clone(),
            Err((None, PATH, why::WRONG_TYPE)),
        ),
        (
            vec![json!({"Repo": "sandbox/a"})],
            none.clone(),
            Err((None, PATH, why::AMBIGUOUS)),
        ),
        (
            vec![large],
            none,
            Err((
                Some("thaw-first"),
                "$.message.metadata.frozen",
                why::OVERSIZE,
            )),
        ),
        (
            vec![sandbox()],
            json!({"frozen": true}),
            Err((
                Some("thaw-first"),
                "$.message.metadata.frozen",
                why::VALUE_MATCHES,
            )),
        ),
        (
            vec![sandbox()],
            json!({"frozen": "true"}),
            Err((
                Some("thaw-first"),
                "$.message.metadata.frozen",
                why::WRONG_TYPE,
            )),
        ),
    ];
    for binding in BINDINGS {
        for version in VERSIONS {
            let dialect = Dialect { binding, version };
            for (parts, metadata, expected) in &cases {
                let request = saying(dialect, parts, metadata);
                let before = stand.agent.executed();
                let (said, records) = stand.asked(dialect, &request, token.as_deref()).await;
                let what = format!("{dialect:?} {expected:?}");
                let executed = stand.agent.executed() - before;
                let text = format!("{records:?}");
                assert!(!text.contains(secret), "{what}: {text}");
                match expected {
                    Ok(rule) => {
                        assert!(matches!(said, Said::Good(_)), "{what}: {said:?}");
                        assert_eq!(executed, 1, "{what}");
                        assert_eq!(records[0]["decision"]["rule"], **rule, "{what}");
                    }
                    Err((rule, path, why)) => {
                        assert_eq!(executed, 0, "{what}: the agent executed it");
                        assert_eq!(said, refusal(dialect, Situation::NoRule), "{what}");
                        let decision = &records[0]["decision"];
                        let near = rule.unwrap_or("sandbox");
                        let expected = json!({"rule": near, "content": path, "why": why});
                        assert_eq!(decision["near"], expected, "{what}");
                        assert_eq!(decision["rule"].as_str(), *rule, "{what}");
                    }
                }
            }
        }
    }
    // What the rule is not about does not need a message.
    let dialect = Dialect {
        binding: Binding::JsonRpc,
        version: Version::V1_0,
    };
    let get = spoken(dialect, Operation::GetTask, "nobody's").unwrap();
    let said = send(stand.gateway.address, dialect, token.as_deref(), &get).await;
    assert!(
        matches!(&said, Said::Bad { reason, .. } if reason == "TASK_NOT_FOUND"),
        "{said:?}"
    );
}
