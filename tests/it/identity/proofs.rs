//! Proofs with anything changed: never a panic, never taken for what they do not say.

use super::world::{BASE, World, by_code};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portcullis::adapters::clock::ManualClock;
use portcullis::adapters::random::SystemRandom;
use portcullis::cli::dev_issuer::{DevAlgorithm, DevIssuer};
use portcullis::cli::dev_proof::ProofClaims;
use portcullis::identity::TokenFault;
use portcullis::identity::dpop::{Expected, Proof, judge};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

const NOW: i64 = 1_750_000_000;
const TOKEN: &str = "a.b.c";

static KEY: LazyLock<DevIssuer> =
    LazyLock::new(|| DevIssuer::generate(DevAlgorithm::Es256).unwrap());

fn prove(edit: impl FnOnce(&mut ProofClaims<'_>)) -> String {
    let url = format!("{BASE}/a2a");
    let mut claims = ProofClaims {
        method: "POST",
        url: &url,
        token: Some(TOKEN),
        ..ProofClaims::default()
    };
    edit(&mut claims);
    let clock = ManualClock::at(u64::try_from(NOW).unwrap() * 1000);
    KEY.prove(&claims, &clock, &SystemRandom).unwrap()
}

fn judged(proof: &str) -> Result<Proof, TokenFault> {
    let key = URL_SAFE_NO_PAD.decode(KEY.kid()).unwrap();
    let key: [u8; 32] = key.try_into().unwrap();
    let expected = Expected {
        key: &key,
        token: TOKEN,
        method: "POST",
        uri: &format!("{BASE}/a2a"),
        now: NOW,
        nonces: None,
    };
    judge(proof, &expected)
}

fn any_json() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (NOW - 70..NOW + 10).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "POST",
            "post",
            "ES256",
            "dpop+jwt",
            "https://gateway.example/a2a"
        ])
        .prop_map(Value::from),
        Just(json!([])),
        Just(json!({"kty": "EC"})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Signed anew by the right key, so that only the changed member can refuse it.
    #[test]
    fn a_proof_with_one_other_member_is_refused(
        name in prop::sample::select(vec!["typ", "alg", "jwk", "htm", "htu", "ath", "iat", "jti"]),
        value in any_json(),
    ) {
        let proof = prove(|claims| {
            let place = match name {
                "typ" | "alg" | "jwk" => &mut claims.header,
                _ => &mut claims.extra,
            };
            place.insert(name.to_owned(), value.clone());
        });
        let good = match name {
            "typ" => value == json!("dpop+jwt"),
            "alg" => value == json!("ES256"),
            "htm" => value == json!("POST"),
            "htu" => value == json!("https://gateway.example/a2a"),
            "iat" => value.as_i64().is_some_and(|at| (NOW - 60..=NOW + 5).contains(&at)),
            "jti" => value.as_str().is_some_and(|id| !id.is_empty() && !id.contains(char::is_control)),
            _ => false,
        };
        prop_assert_eq!(judged(&proof).is_ok(), good);
    }

    #[test]
    fn a_proof_that_was_changed_after_it_was_signed_is_refused(
        at in any::<prop::sample::Index>(),
        removed in 0usize..6,
        put in "[A-Za-z0-9_.=-]{0,4}|\\PC{0,3}",
    ) {
        let proof = prove(|_| ());
        let at = at.index(proof.len());
        let end = (at + removed).min(proof.len());
        let mut changed = proof.clone();
        changed.replace_range(at..end, &put);
        prop_assert_eq!(judged(&changed).is_ok(), changed == proof);
    }

    #[test]
    fn any_text_as_a_proof_does_no_harm(text in "\\PC{0,200}") {
        prop_assert!(judged(&text).is_err());
    }
}

#[test]
fn a_proof_is_bounded() {
    let long = prove(|claims| {
        claims.extra.insert("x".into(), json!("x".repeat(9000)));
    });
    assert_eq!(judged(&long), Err(by_code("proof_malformed")));
    let wide = prove(|claims| {
        claims.header.insert("x".into(), json!("x".repeat(2000)));
    });
    assert_eq!(judged(&wide), Err(by_code("proof_malformed")));
    let deep = prove(|claims| {
        let nested = (0..20).fold(json!(1), |inner, _| json!([inner]));
        claims.extra.insert("x".into(), nested);
    });
    assert_eq!(judged(&deep), Err(by_code("proof_malformed")));
    assert!(judged(&prove(|_| ())).is_ok());
}

/// A nonce is judged last: who has not the key learns none.
#[test]
fn a_nonce_is_one_of_those_that_were_asked_for() {
    let world = World::load();
    assert_eq!(world.now, NOW);
    let key: [u8; 32] = URL_SAFE_NO_PAD
        .decode(KEY.kid())
        .unwrap()
        .try_into()
        .unwrap();
    let nonces: [Box<str>; 2] = ["now".into(), "before".into()];
    let with = |nonce, uri: &str| {
        let proof = prove(|claims| claims.nonce = nonce);
        let expected = Expected {
            key: &key,
            token: TOKEN,
            method: "POST",
            uri,
            now: NOW,
            nonces: Some(&nonces),
        };
        judge(&proof, &expected).map(|_| ())
    };
    let uri = format!("{BASE}/a2a");
    for good in ["now", "before"] {
        assert_eq!(with(Some(good), &uri), Ok(()));
    }
    for other in [None, Some(""), Some("later"), Some("NOW")] {
        assert_eq!(with(other, &uri), Err(by_code("proof_nonce")));
        assert_eq!(with(other, "https://x/"), Err(by_code("proof_uri")));
    }
}
