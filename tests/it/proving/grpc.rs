//! Proofs in gRPC metadata, and over HTTP/2 at a host of its own.

use super::Holder;
use crate::calls::yaml;
use crate::support::fake_agent;
use crate::support::gateway::{Gateway, Setup};
use crate::support::h2_agent::{H2Act, H2Agent, H2Answer};
use crate::support::h2_client::{H2Client, H2Response};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::proto::{encode, framed};
use serde_json::json;

const POLICY: &str = "version: 1
policy: grpc
rules:
  - id: all
    allow: {agents: [pr-agent], operations: [messages], skills: any}
    grant: agent
";
const PATH: &str = "/lf.a2a.v1.A2AService/SendMessage";

#[tokio::test]
async fn a_proof_in_metadata_is_for_the_hosts_own_uri_and_good_once() {
    let reply = json!([[
        "task",
        [
            ["id", "t-1"],
            ["context_id", "c-1"],
            ["status", [["state", 3]]]
        ]
    ]]);
    let reply = framed(&encode("lf.a2a.v1", "SendMessageResponse", &reply));
    let answer = || H2Act::Answer(H2Answer::grpc(reply.clone(), &[("grpc-status", "0")]));
    let agent = H2Agent::start([answer(), answer()]).await;
    let cards = fake_agent::start().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let interfaces = format!(
        "grpc: {{host: pr.grpc.test}}
    interfaces:
      - {{binding: JSONRPC, version: \"1.0\", backend: /a2a, public_path: /a2a}}
      - {{binding: GRPC, version: \"1.0\", backend: \"http://{}\"}}
    skills",
        agent.address
    );
    let yaml = yaml(&cards.url(), &issuer)
        .replacen("skills", &interfaces, 1)
        .replacen("http://PUBLIC}", "http://PUBLIC, h2c: true}", 1)
        .replacen("[review-diff, hello]", "[hello]", 1);
    let gateway = Gateway::start_with(Setup {
        yaml: &yaml,
        files: &[("policy.yaml", POLICY), ("corp.jwks.json", &issuer.jwks())],
        clock: None,
    })
    .with_cards()
    .await;
    let holder = Holder::new();
    let token = issuer.token("alice", Grant::Agent, holder.bound());
    let mut client = H2Client::connect(gateway.address).await;
    client.call_it("PR.grpc.test:80");
    let message = json!([[
        "message",
        [
            ["message_id", "m-1"],
            ["role", 1],
            ["parts", [["text", "hello"]]],
        ]
    ]]);
    let body = framed(&encode("lf.a2a.v1", "SendMessageRequest", &message));
    let mut call = async |proof: &str| -> H2Response {
        let list = [
            ("content-type", "application/grpc".to_owned()),
            ("te", "trailers".to_owned()),
            ("a2a-version", "1.0".to_owned()),
            ("authorization", format!("DPoP {token}")),
            ("dpop", proof.to_owned()),
        ];
        client.request("POST", PATH, &list, &body).await.unwrap()
    };
    let status = |response: &H2Response| {
        let all = response
            .trailer("grpc-status")
            .or(response.field("grpc-status"));
        all.map(str::to_owned)
    };
    // The listener's own URL is another one: nobody sees this method there.
    let elsewhere = holder.proof(&format!("http://{}{PATH}", gateway.address), &token);
    let refused = call(&elsewhere).await;
    assert_eq!(status(&refused).as_deref(), Some("16"));
    assert_eq!(agent.counts().requests(), 0);
    let proof = holder.proof(&format!("http://pr.grpc.test{PATH}"), &token);
    let served = call(&proof).await;
    assert_eq!(status(&served).as_deref(), Some("0"), "{served:?}");
    assert_eq!(agent.counts().requests(), 1);
    assert_eq!(agent.counts().seen[0].field("dpop"), None);
    let again = call(&proof).await;
    assert_eq!(status(&again).as_deref(), Some("16"));
    let challenge = again.field("www-authenticate").unwrap();
    assert!(challenge.starts_with(r#"DPoP error="invalid_dpop_proof""#));
    assert_eq!(agent.counts().requests(), 1);
    let next = holder.proof(&format!("http://pr.grpc.test{PATH}"), &token);
    assert_eq!(status(&call(&next).await).as_deref(), Some("0"));
}
