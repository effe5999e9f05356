//! Tokens at the level of HTTP: challenges, constant answers, odd presentations.

use super::{RPC, Stand, message};
use crate::support::client::{Client, Response, request_head};
use crate::support::issuer::Wrong;

async fn with_fields(stand: &Stand, path: &str, fields: &[(&str, &str)]) -> Response {
    let body = message("SendMessage", "hello", "hi", &[]);
    let mut all = vec![("Content-Type", "application/json"), ("A2A-Version", "1.0")];
    all.extend_from_slice(fields);
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    client
        .send(
            format!(
                "{}{body}",
                request_head("POST", path, &all, Some(body.len()))
            )
            .as_bytes(),
        )
        .await
        .unwrap();
    client.response().await.unwrap()
}

/// ER-1: nothing tells a bad signature from an unknown key, issuer or audience.
#[tokio::test]
async fn every_invalid_token_gets_the_same_bytes() {
    let stand = Stand::new().await;
    let mut answers = Vec::new();
    for wrong in Wrong::INVALID {
        let bearer = format!("Bearer {}", stand.issuer.bad_token("alice", wrong));
        let before = stand.counted();
        let response = with_fields(&stand, RPC, &[("Authorization", &bearer)]).await;
        stand.assert_refused(before, &response, 401, &format!("{wrong:?}"));
        assert_eq!(
            response.field("www-authenticate"),
            Some("Bearer realm=\"portcullis\", error=\"invalid_token\""),
            "{wrong:?}"
        );
        assert_eq!(response.field("cache-control"), Some("no-store"));
        answers.push(response.body);
    }
    answers.dedup();
    assert_eq!(answers.len(), 1);
}

/// Path, fields, the status, and the challenge where it is ours to choose.
type Presentation<'a> = (&'a str, Vec<(&'a str, &'a str)>, u16, Option<&'a str>);

#[tokio::test]
async fn odd_presentations() {
    let stand = Stand::new().await;
    let token = stand.reviewer();
    let bearer = format!("Bearer {token}");
    let none = "Bearer realm=\"portcullis\"";
    let malformed = "Bearer realm=\"portcullis\", error=\"invalid_request\"";
    let invalid = "Bearer realm=\"portcullis\", error=\"invalid_token\"";
    let long = format!("Bearer {}", "a".repeat(9000));
    let (basic, dpop) = ("Basic YTpi".to_owned(), format!("DPoP {token}"));
    let two_words = format!("{bearer} {token}");
    let comma = format!("{bearer}, Basic x");
    let tab = format!("Bearer\t{token}");
    let glued = format!("Bearer{token}");
    let table: Vec<Presentation<'_>> = vec![
        (RPC, vec![("Authorization", &basic)], 401, Some(none)),
        (RPC, vec![("Authorization", "")], 401, Some(none)),
        (RPC, vec![("Authorization", &glued)], 401, Some(none)),
        (RPC, vec![("X-Auth-Token", &token)], 401, Some(none)),
        (RPC, vec![("Cookie", &token)], 401, Some(none)),
        (
            RPC,
            vec![("Authorization", &bearer), ("Authorization", &bearer)],
            400,
            Some(malformed),
        ),
        (
            RPC,
            vec![("Authorization", &bearer), ("authorization", &basic)],
            400,
            Some(malformed),
        ),
        (
            RPC,
            vec![("Authorization", "Bearer ")],
            400,
            Some(malformed),
        ),
        (
            RPC,
            vec![("Authorization", &two_words)],
            400,
            Some(malformed),
        ),
        (RPC, vec![("Authorization", &comma)], 400, Some(malformed)),
        (RPC, vec![("Authorization", &tab)], 400, Some(malformed)),
        (
            "/agents/pr-agent/a2a?access_token=x",
            vec![("Authorization", &bearer)],
            400,
            Some(malformed),
        ),
        (
            "/agents/pr-agent/a2a?a=b&%61ccess_token=x",
            vec![("Authorization", &bearer)],
            400,
            Some(malformed),
        ),
        (RPC, vec![("Authorization", &dpop)], 401, Some(invalid)),
        (RPC, vec![("Authorization", &long)], 401, Some(invalid)),
        (
            RPC,
            vec![("Authorization", &bearer), ("Connection", "authorization")],
            400,
            None,
        ),
    ];
    for (path, fields, status, challenge) in table {
        let before = stand.counted();
        let response = with_fields(&stand, path, &fields).await;
        let shown: Vec<_> = fields
            .iter()
            .map(|(n, v)| (n, &v[..v.len().min(20)]))
            .collect();
        stand.assert_refused(before, &response, status, &format!("{path} {shown:?}"));
        if challenge.is_some() {
            assert_eq!(
                response.field("www-authenticate"),
                challenge,
                "{path} {shown:?}"
            );
        }
    }
    for scheme in ["bearer", "BEARER ", "Bearer  "] {
        let value = format!("{scheme} {token}");
        let response = with_fields(&stand, RPC, &[("Authorization", &value)]).await;
        assert_eq!(response.status, 200, "{scheme}: {}", response.text());
    }
}

/// Two tokens on one keep-alive connection are two callers.
#[tokio::test]
async fn identity_is_the_token_and_not_the_connection() {
    let stand = Stand::new().await;
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let body = message("SendMessage", "review-diff", "hi", &[]);
    for (role, status) in [("reviewer", 200), ("author", 403), ("reviewer", 200)] {
        let token = stand.token("alice", role);
        let response = client
            .post_json(RPC, Some(&token), &[("A2A-Version", "1.0")], &body)
            .await
            .unwrap();
        assert_eq!(response.status, status, "{role}");
    }
    assert_eq!(stand.counted(), (2, 2));
}

/// A reload that takes a key away ends its tokens with the next request, cached or not.
#[tokio::test]
async fn a_removed_key_ends_its_tokens() {
    let stand = Stand::new().await;
    let token = stand.reviewer();
    let body = message("SendMessage", "hello", "hi", &[]);
    assert_eq!(stand.call(&token, "SendMessage", &body).await.status, 200);
    let other = crate::support::issuer::Issuer::new(crate::support::issuer::DevAlgorithm::Es256);
    stand.gateway.write("corp.jwks.json", &other.jwks());
    stand.gateway.until_generation(2).await;
    let before = stand.counted();
    let response = stand.call(&token, "SendMessage", &body).await;
    stand.assert_refused(before, &response, 401, "a token of a removed key");
}

/// CA-5: an address that keeps failing is told to wait; callers that were verified go on.
#[tokio::test]
async fn failing_verifications_are_bounded_by_address() {
    use portcullis::pipeline::failures::PER_WINDOW;
    let stand = Stand::new().await;
    let good = stand.reviewer();
    let body = message("SendMessage", "hello", "hi", &[]);
    assert_eq!(stand.call(&good, "SendMessage", &body).await.status, 200);
    let bad = stand.issuer.bad_token("alice", Wrong::Signature);
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let before = stand.counted();
    for _ in 0..PER_WINDOW {
        let response = client.post_json(RPC, Some(&bad), &[], &body).await.unwrap();
        assert_eq!(response.status, 401);
    }
    let limited = client.post_json(RPC, Some(&bad), &[], &body).await.unwrap();
    stand.assert_refused(before, &limited, 429, "too many failures");
    assert!(limited.field("retry-after").is_some());
    let fresh = stand.token("bob", "reviewer");
    assert_eq!(
        client
            .post_json(RPC, Some(&fresh), &[], &body)
            .await
            .unwrap()
            .status,
        429
    );
    assert_eq!(stand.call(&good, "SendMessage", &body).await.status, 200);
}
