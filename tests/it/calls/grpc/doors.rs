//! Where gRPC is found: a listener or a host of its own, and the health service there.

use super::super::RPC;
use super::{NEW, Stand, assert_status, good, head, message, path, reply, request, task};
use crate::support::issuer::Grant;
use crate::support::proto::{delimited, framed};
use serde_json::json;

#[tokio::test]
async fn health_is_ours_to_tell() {
    let stand = Stand::new("{listener: public, health: true}", []).await;
    let mut client = stand.client().await;
    let check = "/grpc.health.v1.Health/Check";
    for service in ["", "lf.a2a.v1.A2AService", "a2a.v1.A2AService"] {
        let mut message = Vec::new();
        if !service.is_empty() {
            delimited(1, service.as_bytes(), &mut message);
        }
        let answer = client
            .request("POST", check, &head(None, &[]), &framed(&message))
            .await
            .unwrap();
        assert_eq!(answer.body, framed(&[0x08, 1]), "{service}: {answer:?}");
        assert_eq!(answer.trailer("grpc-status"), Some("0"));
    }
    let mut other = Vec::new();
    delimited(1, b"evil.Service", &mut other);
    for (path, body, status) in [
        (check, framed(&other), "5"),
        (check, b"\0".to_vec(), "3"),
        // Everything but Check needs a token, as any path does.
        ("/grpc.health.v1.Health/Watch", framed(b""), "16"),
        ("/grpc.health.v1.Health/List", framed(b""), "16"),
    ] {
        let answer = client
            .request("POST", path, &head(None, &[]), &body)
            .await
            .unwrap();
        assert_status(&answer, status, path);
    }
    let full = stand
        .issuer
        .token("root", Grant::Full, json!({"role": "reviewer"}));
    let watch = "/grpc.health.v1.Health/Watch";
    let answer = client
        .request("POST", watch, &head(Some(&full), &[]), &framed(b""))
        .await
        .unwrap();
    assert_status(&answer, "12", watch);
    assert!(stand.seen().is_empty(), "the agent was asked");
}

#[tokio::test]
async fn a_host_of_its_own_has_grpc_and_nothing_else() {
    let answer = reply(NEW, "SendMessage", &json!([["task", task()]]));
    let stand = Stand::new("{host: pr.grpc.example}", [good(answer.clone())]).await;
    let token = stand.token("alice");
    let body = request(NEW, "SendMessage", &message(NEW, &[]));
    let send = path(NEW, "SendMessage");
    let mut client = stand.client().await;
    // Under the listener's own host there is no gRPC.
    let elsewhere = client
        .request("POST", &send, &head(Some(&token), &[]), &body)
        .await
        .unwrap();
    assert_status(&elsewhere, "12", "another host");
    client.call_it("PR.grpc.example");
    for path in [RPC, "/agents/pr-agent/config"] {
        let nothing = client.post_json(path, Some(&token), "{}").await.unwrap();
        assert_eq!(nothing.status, 404, "{path}");
    }
    let card = "/agents/pr-agent/.well-known/agent-card.json";
    assert_eq!(
        client.request("GET", card, &[], b"").await.unwrap().status,
        404
    );
    assert!(stand.seen().is_empty());
    // The scheme's own port says nothing.
    client.call_it("pr.grpc.example:80");
    let found = client
        .request("POST", &send, &head(Some(&token), &[]), &body)
        .await
        .unwrap();
    assert_eq!(found.body, answer, "{found:?}");
    client.call_it("other.grpc.example");
    let misdirected = client
        .request("POST", &send, &head(Some(&token), &[]), &body)
        .await
        .unwrap();
    assert_status(&misdirected, "9", "a host that is not ours");
    assert_eq!(stand.seen().len(), 1);
}
