//! New, removed, replaced and unknown keys, through the whole gateway.

use super::stand::{Stand, both, renamed};
use crate::support::issuer::DevAlgorithm;
use crate::support::issuer_stub::Mode;
use portcullis::cli::dev_issuer::DevIssuer;
use portcullis::pipeline::issuer_keys::Refreshed;
use serde_json::{Value, json};

fn new_key() -> DevIssuer {
    DevIssuer::generate(DevAlgorithm::Es256).unwrap()
}

/// Corpus lc-002.
#[tokio::test]
async fn lc_8_the_first_token_of_a_new_key_causes_one_fetch_and_passes() {
    let stand = Stand::start(Mode::Ok).await.with_keys().await;
    let second = new_key();
    stand.stub.set(Mode::Ok, &both(stand.a.key(), &second));
    let token = stand.token_of(&stand.a, &second, Value::Null, &[]);
    let before = stand.stub.fetches();
    // Too soon after the last attempt.
    stand.expect(&token, 401).await;
    assert_eq!(stand.stub.fetches(), before);
    stand.advance(31);
    let token = stand.token_of(&stand.a, &second, Value::Null, &[]);
    stand.expect(&token, 200).await;
    assert_eq!(stand.stub.fetches(), before + 1);
    stand.expect(&stand.token(&stand.a), 200).await;
}

/// Corpus lc-003, below the bound on failures of one address.
#[tokio::test]
async fn lc_8_a_flood_of_unknown_kids_causes_one_fetch_and_drops_no_key() {
    let stand = Stand::start(Mode::Ok).await.with_keys().await;
    stand.advance(31);
    let (attacker, before) = (new_key(), stand.stub.fetches());
    for number in 0..150 {
        let kid = format!("forged-{number}");
        let token = stand.token_of(&stand.a, &attacker, Value::Null, &[("kid", &kid)]);
        stand.expect(&token, 401).await;
    }
    assert_eq!(stand.stub.fetches(), before + 1);
    stand.expect(&stand.token(&stand.a), 200).await;
}

/// Corpus lc-006: what is refused for another reason fetches nothing (LC-9).
#[tokio::test]
async fn lc_9_only_a_token_that_would_pass_otherwise_causes_a_fetch() {
    let stand = Stand::start(Mode::Ok).await.with_keys().await;
    stand.advance(31);
    let (attacker, before) = (new_key(), stand.stub.fetches());
    let now = stand.now();
    let unknown: &[(&str, &str)] = &[("kid", "zz")];
    for (extra, header) in [
        (json!({"aud": "https://other.example"}), unknown),
        (json!({"iss": "https://nobody.example"}), unknown),
        (json!({"exp": now - 31, "iat": now - 100}), unknown),
        (json!({"nbf": now + 100}), unknown),
        (json!({"iat": now + 100, "exp": now + 200}), unknown),
        (json!({}), &[("kid", "zz"), ("typ", "JWT")]),
        (json!({}), &[("kid", "zz"), ("jku", "https://x.example/k")]),
        (json!({}), &[("kid", "zz"), ("crit", "x")]),
    ] {
        let token = stand.token_of(&stand.a, &attacker, extra.clone(), header);
        stand.expect(&token, 401).await;
        assert_eq!(stand.stub.fetches(), before, "{extra} {header:?}");
    }
    // The same token with nothing else wrong does.
    let token = stand.token_of(&stand.a, &attacker, Value::Null, unknown);
    stand.expect(&token, 401).await;
    assert_eq!(stand.stub.fetches(), before + 1);
}

/// Corpus lc-016, and LC-11: a removed key is a revoked one, remembered tokens included.
#[tokio::test]
async fn lc_12_an_empty_set_is_taken_at_its_word() {
    let stand = Stand::start(Mode::Ok).await.with_keys().await;
    let token = stand.token(&stand.a);
    stand.expect(&token, 200).await;
    stand.stub.set(Mode::Ok, r#"{"keys": []}"#);
    assert_eq!(stand.refresh().await, Refreshed::Done);
    stand.expect(&token, 401).await;
    let why = stand.gateway.refusal(1).await;
    assert_eq!(why["decision"]["reason"], "key_gone", "{why}");
    stand.expect(&stand.token(&stand.b), 200).await;
    assert!(stand.slot_notice().unwrap().contains("no usable key"));
}

/// Corpus lc-017.
#[tokio::test]
async fn lc_14_a_new_key_under_an_old_name_replaces_it() {
    let stand = Stand::start(Mode::Ok).await.with_keys().await;
    let token = stand.token(&stand.a);
    stand.expect(&token, 200).await;
    let (second, kid) = (new_key(), stand.a.key().kid().to_owned());
    stand.stub.set(Mode::Ok, &renamed(&second, &kid));
    assert_eq!(stand.refresh().await, Refreshed::Done);
    stand.expect(&token, 401).await;
    let token = stand.token_of(&stand.a, &second, Value::Null, &[("kid", &kid)]);
    stand.expect(&token, 200).await;
}

/// LC-7: a known key is not made to wait for the fetch that an unknown one caused.
#[tokio::test]
async fn lc_7_a_known_key_never_waits_and_an_unknown_one_at_most_a_second() {
    let stand = Stand::start(Mode::Ok).await.with_keys().await;
    stand.advance(31);
    stand.stub.set(Mode::Held, &stand.a.jwks());
    let unknown = stand.token_of(&stand.a, &new_key(), Value::Null, &[]);
    let known = stand.token(&stand.a);
    let before = stand.stub.fetches();
    let (one, two, ()) = tokio::join!(stand.send(&unknown), stand.send(&unknown), async {
        while stand.stub.fetches() == before {
            tokio::task::yield_now().await;
        }
        assert_eq!(stand.send(&known).await.status, 200);
    });
    assert_eq!((one.status, two.status), (401, 401));
    assert_eq!(stand.stub.fetches(), before + 1);
    assert_eq!(stand.agent.counters().executions(), 1);
}

/// LC-6: what is due is fetched without being asked for.
#[tokio::test]
async fn lc_6_keys_are_refreshed_by_themselves() {
    let stand = Stand::start(Mode::Ok).await.with_keys().await;
    let before = stand.stub.fetches();
    stand.stub.set(Mode::Ok, &both(stand.a.key(), &new_key()));
    stand.advance(331);
    crate::support::within("a refresh", async {
        while stand.stub.fetches() == before {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(stand.stub.fetches(), before + 1);
}

/// IS-3: the same key at two issuers is told once it is seen.
#[tokio::test]
async fn is_3_a_key_that_two_issuers_publish_is_told() {
    let stand = Stand::start(Mode::Ok).await.with_keys().await;
    let keys = stand.gateway.server.gate.issuer_keys.clone();
    assert!(keys.sharing("a").is_empty());
    stand
        .stub
        .set(Mode::Ok, &both(stand.a.key(), stand.b.key()));
    assert_eq!(stand.refresh().await, Refreshed::Done);
    assert_eq!(keys.sharing("a"), ["b".into()]);
    assert_eq!(keys.sharing("b"), ["a".into()]);
    // Whoever holds it still speaks only for the issuer whose set was asked (IS-2).
    let token = stand.token_of(&stand.b, stand.a.key(), Value::Null, &[]);
    stand.expect(&token, 401).await;
}

/// Keys stay where entry and source stay, whatever else a reload changes.
#[tokio::test]
async fn keys_outlive_a_reload_that_leaves_their_source_alone() {
    let stand = Stand::start(Mode::Ok).await.with_keys().await;
    let before = stand.stub.fetches();
    let keys = "{discovery: true, ca: ca.pem, timeout: 1s}";
    let yaml = super::stand::yaml(&stand.agent.url(), &stand.a, &stand.b, keys);
    let other = yaml.replace(
        "skills: [review-diff, hello]",
        "skills: [hello, review-diff]",
    );
    stand.gateway.write("gateway.yaml", &other);
    stand.until_generation(2).await;
    stand.stub.set(Mode::Refused, &stand.a.jwks());
    stand.expect(&stand.token(&stand.a), 200).await;
    assert_eq!(stand.stub.fetches(), before);
    // Other times of the same source keep them as well.
    let timed = yaml.replace("timeout: 1s", "timeout: 2s, stale: 2h");
    stand.gateway.write("gateway.yaml", &timed);
    stand.until_generation(3).await;
    stand.expect(&stand.token(&stand.a), 200).await;
    // Another source begins without keys.
    let moved = yaml.replace("discovery: true", "discovery: openid");
    stand.gateway.write("gateway.yaml", &moved);
    stand.until_generation(4).await;
    stand.expect(&stand.token(&stand.a), 503).await;
    stand.expect(&stand.token(&stand.b), 200).await;
}
