//! Issuers that are not there, or not themselves, through the whole gateway.

use super::stand::Stand;
use crate::support::client::get;
use crate::support::issuer_stub::Mode;
use portcullis::pipeline::issuer_keys::{KeyFetchFault, Refreshed};
use std::sync::Arc;

async fn operators(stand: &Stand, path: &str) -> (u16, String) {
    let response = get(stand.gateway.admin, path, &[]).await.unwrap();
    (response.status, response.text())
}

/// Corpus lc-010 and lc-011.
#[tokio::test]
async fn lc_13_a_gateway_starts_without_an_issuer_and_recovers() {
    let stand = Stand::start(Mode::Refused).await;
    let refused = stand.expect(&stand.token(&stand.a), 503).await;
    let wait: u32 = refused.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(refused.field("www-authenticate"), None);
    stand.expect(&stand.token(&stand.b), 200).await;
    let (status, ready) = operators(&stand, "/readyz").await;
    assert_eq!(status, 503);
    assert!(
        ready.contains(r#""what":"issuer","name":"a","why":"its keys are not there"#),
        "{ready}"
    );
    let (_, metrics) = operators(&stand, "/metrics").await;
    assert!(!metrics.contains("portcullis_issuer_keys_age_seconds{issuer=\"a\"}"));
    assert!(
        metrics
            .contains("portcullis_issuer_keys_fetches_total{issuer=\"a\",result=\"unreachable\"}")
    );

    stand.stub.set(Mode::Ok, &stand.a.jwks());
    assert_eq!(stand.refresh().await, Refreshed::Done);
    stand.expect(&stand.token(&stand.a), 200).await;
    assert_eq!(operators(&stand, "/readyz").await.0, 200);
    stand.advance(7);
    let (_, metrics) = operators(&stand, "/metrics").await;
    assert!(
        metrics.contains("portcullis_issuer_keys_age_seconds{issuer=\"a\"} 7"),
        "{metrics}"
    );
}

/// LC-10: retried with back-off, without anybody's help.
#[tokio::test]
async fn lc_13_the_first_fetch_is_retried_by_itself() {
    let stand = Stand::start(Mode::Refused).await;
    stand.stub.set(Mode::Ok, &stand.a.jwks());
    stand.advance(70);
    let stand = stand.with_keys().await;
    stand.expect(&stand.token(&stand.a), 200).await;
}

/// Corpus lc-014, lc-015 and what else brings nothing: the set stays, and so does its age.
#[tokio::test]
async fn lc_12_what_is_no_set_changes_nothing() {
    let stand = Stand::start(Mode::Ok).await.with_keys().await;
    let token = stand.token(&stand.a);
    for (mode, reason) in [
        (Mode::Html, "metadata_malformed"),
        (Mode::Http500, "status"),
        (Mode::Drip, "timed_out"),
        (Mode::Redirect, "redirected"),
        (Mode::Oversize, "too_large"),
        (Mode::Untrusted, "untrusted"),
        (Mode::Refused, "unreachable"),
        (Mode::DiscoveryIssuerMismatch, "metadata_of_another_issuer"),
    ] {
        stand.stub.set(mode, &stand.a.jwks());
        match stand.refresh().await {
            Refreshed::Failed(fault) => assert_eq!(fault.label(), reason, "{mode:?}"),
            other => panic!("{mode:?}: {other:?}"),
        }
        stand.expect(&token, 200).await;
    }
    for jwks in ["{", "[]", r#"{"keys": 1}"#, r#"{"keys": [], "keys": []}"#] {
        stand.stub.set(Mode::Ok, jwks);
        let refreshed = stand.refresh().await;
        assert!(
            matches!(refreshed, Refreshed::Failed(KeyFetchFault::KeySet(_))),
            "{jwks}: {refreshed:?}"
        );
        stand.expect(&token, 200).await;
    }
    let (status, ready) = operators(&stand, "/readyz").await;
    assert_eq!(status, 200, "{ready}");
    assert!(
        ready.contains("serve on: what came is no key set"),
        "{ready}"
    );
}

/// Corpus lc-008 in kind, and lc-009.
#[tokio::test]
async fn lc_10_a_set_serves_an_hour_after_it_was_fetched_and_not_a_second_longer() {
    let stand = Stand::start(Mode::Ok).await.with_keys().await;
    stand.stub.set(Mode::Refused, &stand.a.jwks());
    stand.advance(3599);
    let token = stand.token(&stand.a);
    stand.expect(&token, 200).await;
    stand.advance(1);
    // Remembered or not.
    stand.expect(&token, 503).await;
    let refused = stand.expect(&stand.token(&stand.a), 503).await;
    assert!(refused.field("retry-after").is_some());
    stand.expect(&stand.token(&stand.b), 200).await;
    let (status, ready) = operators(&stand, "/readyz").await;
    assert_eq!(status, 200, "others can be served: {ready}");
    assert!(ready.contains("too old to be used"), "{ready}");
    stand.stub.set(Mode::Ok, &stand.a.jwks());
    assert_eq!(stand.refresh().await, Refreshed::Done);
    stand.expect(&token, 200).await;
}

/// Corpus lc-018 to lc-020.
#[tokio::test]
async fn lc_5_metadata_that_is_not_the_issuers_gives_no_keys() {
    for mode in [
        Mode::DiscoveryIssuerMismatch,
        Mode::DiscoveryHttpJwks,
        Mode::DiscoveryMetadataIp,
    ] {
        let stand = Stand::start(mode).await;
        stand.expect(&stand.token(&stand.a), 503).await;
    }
}

/// Corpus lc-021.
#[tokio::test]
async fn lc_7_a_hundred_requests_at_once_on_a_cold_gateway_are_one_fetch() {
    let keys = "{discovery: true, ca: ca.pem, timeout: 20s}";
    let stand = Arc::new(Stand::start_with(Mode::Held, keys).await);
    let token: Arc<str> = stand.token(&stand.a).into();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (stand, token) = (stand.clone(), token.clone());
        calls.spawn(async move { stand.send(&token).await.status });
    }
    stand.stub.set(Mode::Ok, &stand.a.jwks());
    stand.stub.release();
    let statuses = calls.join_all().await;
    assert_eq!(statuses, vec![200; 100]);
    assert_eq!(stand.stub.fetches(), 1);
    assert_eq!(stand.agent.counters().executions(), 100);
}

/// IS-1: an issuer that is not configured is never asked anything.
#[tokio::test]
async fn is_1_an_unknown_issuer_causes_no_fetch() {
    let stand = Stand::start(Mode::Ok).await.with_keys().await;
    stand.advance(31);
    let before = stand.stub.fetches();
    for iss in [
        "https://issuer.example.test/",
        "https://ISSUER.example.test",
        "",
    ] {
        let extra = serde_json::json!({"iss": iss});
        let token = stand.token_of(&stand.a, stand.a.key(), extra, &[]);
        stand.expect(&token, 401).await;
    }
    assert_eq!(stand.stub.fetches(), before);
}

/// LC-15: a bad key file keeps the last good one for an hour, and a good one works at once even
/// while the rest of the configuration is refused.
#[tokio::test]
async fn lc_15_key_files_go_by_the_same_rules() {
    let stand = Stand::start(Mode::Ok).await.with_keys().await;
    let notice = |stand: &Stand| stand.gateway.server.gate.live().issuer_keys[1].notice();
    stand.gateway.write("b.json", "<html>");
    stand
        .until("the file to be found bad", |s| notice(s).is_some())
        .await;
    stand.expect(&stand.token(&stand.b), 200).await;
    stand.advance(3601);
    stand.expect(&stand.token(&stand.b), 503).await;
    // Good again, and without the key: a policy that is broken does not keep it in use.
    stand.gateway.write("policy.yaml", "version: 2");
    stand.gateway.write("b.json", &stand.a.jwks());
    stand
        .until("the file to be found good", |s| notice(s).is_none())
        .await;
    stand.expect(&stand.token(&stand.b), 401).await;
    assert_eq!(stand.gateway.server.gate.live().snapshot.generation, 1);
}
