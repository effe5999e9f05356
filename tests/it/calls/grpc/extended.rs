//! The extended card over gRPC: what each caller may call, in the package that was asked in.

use super::{NEW, OLD, Stand, assert_status, good, head, path, reply, request};
use crate::support::h2_client::H2Response;
use crate::support::issuer::Grant;
use crate::support::proto::framed;
use crate::support::raw_agent::{Act, RawAgent, json_answer};
use serde_json::{Value, json};

const POLICY: &str = "version: 1
policy: extended
rules:
  - id: reviewers-review
    allow: {agents: [pr-agent], operations: [messages], skills: [review-diff]}
    grant: agent
    require: {role: {equals: reviewer}}
  - id: hello-for-all
    allow: {agents: [pr-agent], operations: [messages], skills: [hello]}
    grant: agent
  - id: cards
    allow: {agents: [pr-agent], operations: [card]}
    grant: agent
  - id: none-for-guests
    deny: {agents: [pr-agent], operations: [card]}
    when: {role: {equals: guest}}
";

const NAMES: [&str; 3] = ["review-diff", "hello", "undeclared"];

/// The public card of an agent whose other half speaks gRPC.
fn public(origin: &str) -> Value {
    let url = format!("{origin}/a2a");
    let skills = NAMES.map(|id| json!({"id": id, "name": id, "description": id, "tags": []}));
    json!({
        "name": "raw", "description": "raw", "version": "1", "protocolVersion": "0.3.0", "url": url,
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "supportsAuthenticatedExtendedCard": true,
        "capabilities": {"streaming": true, "extendedAgentCard": true},
        "skills": skills,
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
    })
}

/// The agent's own extended card.
fn extended(package: &str, origin: &str) -> Value {
    let mut fields = match package {
        OLD => vec![
            json!(["url", origin]),
            json!(["preferred_transport", "GRPC"]),
            json!(["protocol_version", "0.3.0"]),
            json!(["supports_authenticated_extended_card", true]),
        ],
        _ => vec![json!([
            "supported_interfaces",
            [
                ["url", origin],
                ["protocol_binding", "GRPC"],
                ["protocol_version", "1.0"]
            ]
        ])],
    };
    fields.extend([
        json!(["name", "raw"]),
        json!(["description", "raw"]),
        json!(["version", "1"]),
        json!(["capabilities", [["streaming", true]]]),
        json!(["default_input_modes", "text/plain"]),
        json!(["default_output_modes", "text/plain"]),
        json!(["signatures", [["protected", "e30"], ["signature", "eA"]]]),
    ]);
    fields.extend(NAMES.map(|id| {
        json!([
            "skills",
            [["id", id], ["name", id], ["description", id], ["tags", "t"]]
        ])
    }));
    Value::Array(fields)
}

/// Number and bytes of each delimited field; there is nothing else in what is read here.
fn delimited(mut message: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let length = bytes.iter().position(|byte| *byte < 0x80).unwrap() + 1;
        let (read, rest) = bytes.split_at(length);
        *bytes = rest;
        read.iter()
            .rev()
            .fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
    }
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let value = varint(&mut message);
        if tag & 7 == 2 {
            let (inner, rest) = message.split_at(usize::try_from(value).unwrap());
            found.push((tag >> 3, inner));
            message = rest;
        }
    }
    found
}

/// The ids of the skills of a card, which is field 12 in both packages.
fn skills(answer: &H2Response) -> Vec<String> {
    let card = delimited(&answer.body[5..]);
    let skills = card.iter().filter(|(number, _)| *number == 12);
    skills
        .map(|(_, skill)| {
            let fields = delimited(skill);
            let id = fields.iter().find(|(number, _)| *number == 1).unwrap().1;
            String::from_utf8(id.to_vec()).unwrap()
        })
        .collect()
}

#[tokio::test]
async fn fc_13_each_caller_sees_its_own_skills() {
    let raw = RawAgent::start([]).await;
    let origin = format!("http://{}", raw.address);
    let public = public(&origin).to_string();
    raw.play([Act::Answer(json_answer(200, &public))]);
    let stand = Stand::with("{listener: public}", [], POLICY, &[], |yaml| {
        let hidden = yaml.find("  - name: hidden").unwrap()..yaml.find("policies:").unwrap();
        let mut yaml = yaml.replace(&yaml[hidden], "");
        let start = yaml.find("backend: {url: ").unwrap();
        let end = start + yaml[start..].find('}').unwrap();
        yaml.replace_range(start..end, &format!("backend: {{url: {origin}"));
        yaml
    })
    .await;
    let token = |role: &str| {
        let claims = json!({ "role": role });
        stand.issuer.token("alice", Grant::Agent, claims)
    };
    let theirs = format!("http://{}", stand.agent.address);
    let mut client = stand.client().await;
    let mut asked = 0;
    for (package, method) in [(NEW, "GetExtendedAgentCard"), (OLD, "GetAgentCard")] {
        let body = request(package, method, &json!([]));
        for (role, seen) in [
            ("reviewer", &["review-diff", "hello"][..]),
            ("author", &["hello"]),
        ] {
            let card = reply(package, method, &extended(package, &theirs));
            stand.agent.play([good(card)]);
            let answer = client
                .request(
                    "POST",
                    &path(package, method),
                    &head(Some(&token(role)), &[]),
                    &body,
                )
                .await
                .unwrap();
            let what = format!("{package}, {role}: {answer:?}");
            assert_eq!(answer.trailer("grpc-status"), Some("0"), "{what}");
            assert_eq!(skills(&answer), seen, "{what}");
            assert_eq!(
                answer.field("cache-control"),
                Some("private, no-store"),
                "{what}"
            );
            // Neither the agent's address nor a signature of what it said is left, and ours is there.
            let text = String::from_utf8_lossy(&answer.body);
            assert!(!text.contains(&stand.agent.address.to_string()), "{text}");
            assert!(!text.contains("e30"), "{text}");
            assert!(text.contains(&stand.gateway.address.to_string()), "{text}");
            asked += 1;
            assert_eq!(stand.agent.counts().requests(), asked, "{what}");
            assert_eq!(stand.seen()[asked - 1].field("authorization"), None);
        }
        for (token, status) in [(None, "16"), (Some(token("guest")), "7")] {
            let refused = client
                .request(
                    "POST",
                    &path(package, method),
                    &head(token.as_deref(), &[]),
                    &body,
                )
                .await
                .unwrap();
            assert_status(&refused, status, package);
            assert_eq!(stand.seen().len(), asked, "the agent was touched");
        }
        // What is no card is withheld.
        for broken in [framed(b"\x0a\x05ab"), framed(b"")] {
            stand.agent.play([good(broken)]);
            asked += 1;
            let withheld = client
                .request(
                    "POST",
                    &path(package, method),
                    &head(Some(&token("reviewer")), &[]),
                    &body,
                )
                .await
                .unwrap();
            assert_status(&withheld, "13", package);
        }
    }
}
