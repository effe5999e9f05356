//! Grants and surfaces: what a token reaches beside the protocol.

use super::{RPC, Stand};
use crate::support::client::{Client, Response, get};
use crate::support::issuer::{Grant, Wrong};
use serde_json::Value;

async fn ask(stand: &Stand, method: &str, path: &str, token: &str) -> Response {
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let bearer = format!("Bearer {token}");
    client
        .request(method, path, &[("Authorization", &bearer)], b"")
        .await
        .unwrap()
}

#[tokio::test]
async fn the_backend_surface_needs_the_full_grant() {
    let stand = Stand::new().await;
    let agent = stand.issuer.token("alice", Grant::Agent, Value::Null);
    let full = stand.issuer.token("carol", Grant::Full, Value::Null);
    let mut reached = 0;
    for path in ["/config", "/nodes/devices", "/a2a/status"] {
        let path = format!("/agents/pr-agent{path}");
        let before = stand.counted();
        let refused = ask(&stand, "GET", &path, &agent).await;
        stand.assert_refused(before, &refused, 403, &path);
        let challenge = refused.field("www-authenticate").unwrap();
        assert!(challenge.contains("insufficient_scope"), "{challenge}");
        let passed = ask(&stand, "GET", &path, &full).await;
        reached += 1;
        assert_eq!(
            (passed.status, stand.counted()),
            (200, (reached, reached)),
            "{path}"
        );
        let anonymous = get(stand.gateway.address, &path, &[]).await.unwrap();
        stand.assert_refused((reached, reached), &anonymous, 401, &path);
    }
}

#[tokio::test]
async fn undeclared_paths_and_methods_lead_nowhere() {
    let stand = Stand::new().await;
    let full = stand.issuer.token("carol", Grant::Full, Value::Null);
    for (method, path) in [
        ("GET", "/agents/pr-agent/secrets"),
        ("GET", "/agents/pr-agent/config/x"),
        ("GET", "/agents/pr-agent/Config"),
        ("POST", "/agents/pr-agent/config"),
        ("DELETE", "/agents/pr-agent/nodes/devices"),
        ("GET", "/config"),
        ("GET", "/agents/nobody/config"),
        ("GET", "/"),
    ] {
        let before = stand.counted();
        let response = ask(&stand, method, path, &full).await;
        stand.assert_refused(before, &response, 404, &format!("{method} {path}"));
    }
}

/// To a caller whom no rule allows anything there, an unpublished agent is a path that never was.
#[tokio::test]
async fn a_hidden_agent_is_no_agent() {
    let stand = Stand::new().await;
    let token = stand.reviewer();
    let bearer = format!("Bearer {token}");
    let visible = |response: Response| {
        let mut fields = response.fields.clone();
        fields.retain(|(n, _)| {
            !["date", "portcullis-request-id"].contains(&n.to_lowercase().as_str())
        });
        (response.status, fields, response.body)
    };
    let before = stand.counted();
    for (one, other) in [
        ("/agents/hidden/a2a", "/agents/nobody/a2a"),
        ("/agents/hidden", "/x"),
    ] {
        let mut answers = Vec::new();
        for path in [one, other] {
            let mut client = Client::connect(stand.gateway.address).await.unwrap();
            let fields = [
                ("Authorization", bearer.as_str()),
                ("Content-Type", "application/json"),
            ];
            answers.push(visible(
                client.request("POST", path, &fields, b"{}").await.unwrap(),
            ));
        }
        assert_eq!(answers[0].0, 404);
        assert_eq!(answers[0], answers[1], "{one}");
    }
    assert_eq!(stand.counted(), before);
}

#[tokio::test]
async fn a_token_without_a_grant_can_do_nothing() {
    let stand = Stand::new().await;
    let token = stand.issuer.bad_token("alice", Wrong::NoGrant);
    for path in [RPC, "/agents/pr-agent/config"] {
        let before = stand.counted();
        let response = ask(&stand, "GET", path, &token).await;
        stand.assert_refused(before, &response, 403, path);
    }
}

/// The card surface needs no token, and a bad one does not matter there: it authorises nothing.
#[tokio::test]
async fn other_methods_on_an_interface_are_refused() {
    let stand = Stand::new().await;
    let token = stand.reviewer();
    for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
        let before = stand.counted();
        let response = ask(&stand, method, RPC, &token).await;
        stand.assert_refused(before, &response, 405, method);
    }
}
