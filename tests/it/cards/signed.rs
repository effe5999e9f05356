//! Signatures: of agents' cards, made by the official SDK (`tests/cases/cards/signed.json`), and
//! ours.

use super::keeping::{GW, agent, snapshot};
use aws_lc_rs::signature::Ed25519KeyPair;
use bytes::Bytes;
use portcullis::a2a::card::{Published, attest};
use portcullis::config::snapshot::Verify;
use portcullis::identity::SigningKey;
use portcullis::identity::issuer::Algorithm;
use portcullis::identity::keys::KeySet;
use portcullis::pipeline::cards::{
    CardChange, CardNoticeKind, CardState, CardStore, CardView, FetchOutcome,
};
use serde_json::{Value, json};
use std::sync::Arc;

fn cases() -> (KeySet, Vec<Value>) {
    let text = std::fs::read("tests/cases/cards/signed.json").unwrap();
    let file: Value = serde_json::from_slice(&text).unwrap();
    let keys = file["keys"].to_string();
    let (keys, notes) = KeySet::parse(keys.as_bytes(), Algorithm::Rs256).unwrap();
    assert!(notes.is_empty());
    (keys, file["cases"].as_array().unwrap().clone())
}

fn case(name: &str) -> Value {
    let (_, cases) = cases();
    let found = cases
        .into_iter()
        .find(|c| c["case"].as_str().unwrap().contains(name));
    found.unwrap()["card"].clone()
}

fn verify(required: bool) -> Verify {
    Verify {
        keys: Arc::new(cases().0),
        key_sets: Vec::new(),
        required,
        algorithms: Algorithm::DEFAULT.to_vec(),
    }
}

fn store(verify: Option<Verify>, key: Option<&Arc<SigningKey>>) -> CardStore {
    let mut agent = agent(0, "w");
    agent.verify = verify;
    agent.sign = key.is_some();
    CardStore::for_snapshot(&snapshot(GW, vec![agent]), None, key, 0)
}

fn fetched(card: &Value) -> FetchOutcome {
    FetchOutcome::Fetched {
        body: Bytes::from(card.to_string()),
        etag: None,
        path: "/card".into(),
    }
}

fn published(store: &CardStore) -> Option<Arc<Published>> {
    match store.card(0) {
        CardView::Ready(published, _) => Some(published),
        CardView::Missing(_) | CardView::Withheld => None,
    }
}

#[test]
fn every_signature_is_worth_what_the_case_says() {
    let (_, cases) = cases();
    assert!(cases.len() > 25);
    for case in cases {
        let (name, expected) = (&case["case"], case["attested"].as_str().unwrap());
        let good = expected.starts_with("verified");

        let required = store(Some(verify(true)), None);
        let change = required.apply(0, fetched(&case["card"]), Vec::new(), 1);
        assert_eq!(published(&required).is_some(), good, "{name}: {change:?}");
        if let CardChange::Withheld(trouble) = &change {
            assert_eq!(trouble.label(), expected, "{name}");
        }

        let optional = store(Some(verify(false)), None);
        optional.apply(0, fetched(&case["card"]), Vec::new(), 1);
        let Some(card) = published(&optional) else {
            assert_eq!(name, "a field of another type");
            continue;
        };
        assert_eq!(card.attested.as_ref().unwrap().label(), expected, "{name}");
        let unproven = optional
            .notices_of(0)
            .iter()
            .any(|n| n.label() == "unproven");
        assert_eq!(unproven, !good, "{name}");
        // Whatever came, the agent's own signature does not leave (I-7).
        assert!(!String::from_utf8_lossy(&card.document.body).contains("signatures"));
    }
}

#[test]
fn a_tampered_card_never_replaces_a_good_one() {
    let store = store(Some(verify(true)), None);
    let good = case("ES256, with what");
    store.apply(0, fetched(&good), Vec::new(), 1);
    let before = published(&store).unwrap();
    let change = store.apply(
        0,
        fetched(&case("tampered: a changed address")),
        Vec::new(),
        2,
    );
    let CardChange::Kept(trouble) = change else {
        panic!("{change:?}");
    };
    assert_eq!(trouble.label(), "signature_mismatch");
    assert_eq!(published(&store), Some(before));
    let notices = store.notices_of(0);
    assert!(
        notices
            .iter()
            .any(|n| matches!(n, CardNoticeKind::LastGood(2, _))),
        "{notices:?}"
    );
}

/// `a2a-protocol.md` c.3: verifiers do not see the older half of a hybrid.
#[test]
fn what_no_signature_covers_adds_no_address() {
    let hybrid = case("a hybrid");
    let store = store(Some(verify(true)), None);
    store.apply(0, fetched(&hybrid), Vec::new(), 1);
    let card = published(&store).unwrap();
    let body: Value = serde_json::from_slice(&card.document.body).unwrap();
    assert!(
        body.get("url").is_none() && body.get("additionalInterfaces").is_none(),
        "{body}"
    );
    let dropped: Vec<_> = card.dropped.iter().map(|d| d.reason.label()).collect();
    assert_eq!(dropped, ["not_covered", "not_covered"]);
    assert!(card.interfaces.iter().all(|i| *i.backend_path == *"/a2a"));
    assert!(!card.extended);

    let optional = super::signed::store(Some(verify(false)), None);
    optional.apply(0, fetched(&hybrid), Vec::new(), 1);
    let body: Value = serde_json::from_slice(&published(&optional).unwrap().document.body).unwrap();
    assert_eq!(body["url"], "https://gw.example.com/agents/w/old");
}

#[test]
fn a_key_set_that_a_signature_names_counts_only_from_the_list() {
    let url = "https://agent.example.com/jwks.json";
    let key = SigningKey::new(Ed25519KeyPair::generate().unwrap());
    let signed = signed_by(&key, url);
    let keys = format!(r#"{{"keys":[{}]}}"#, key.public_jwk());
    let (set, _) = KeySet::parse(keys.as_bytes(), Algorithm::Rs256).unwrap();
    for (listed, good) in [(url, true), ("https://agent.example.com/other.json", false)] {
        let verify = Verify {
            key_sets: vec![listed.into()],
            ..verify(true)
        };
        let store = store(Some(verify), None);
        let outcome = fetched(&signed);
        let wanted = store.key_sets(0, &outcome);
        assert_eq!(
            wanted,
            if good {
                vec![url.into()]
            } else {
                Vec::<Box<str>>::new()
            }
        );
        // Even a key set that was fetched all the same would not count.
        store.apply(0, outcome, vec![(url.into(), set.clone())], 1);
        assert_eq!(published(&store).is_some(), good, "{listed}");
    }
}

/// A card that another gateway of ours signed, with this `jku`.
fn signed_by(key: &SigningKey, jku: &str) -> Value {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
    let mut card = case("both forms");
    card.as_object_mut().unwrap().remove("signatures");
    // Nothing in it needs more than sorted names.
    let mut sorted: Value = serde_json::from_str(&card.to_string()).unwrap();
    sort(&mut sorted);
    let header = json!({"alg": "EdDSA", "kid": key.kid(), "typ": "JOSE", "jku": jku});
    let protected = B64.encode(header.to_string());
    let input = format!("{protected}.{}", B64.encode(sorted.to_string()));
    card["signatures"] = json!([{"protected": protected,
        "signature": B64.encode(key.sign(input.as_bytes()))}]);
    card
}

fn sort(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.sort_keys();
            members.values_mut().for_each(sort);
        }
        Value::Array(items) => items.iter_mut().for_each(sort),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Every shape that is published with 1.0 members is signed, and the signature is good in both
/// forms; cards of 0.3 are not signed, as nobody could check them.
#[test]
fn published_cards_are_signed_with_our_key() {
    let key = Arc::new(SigningKey::new(Ed25519KeyPair::generate().unwrap()));
    let keys = format!(r#"{{"keys":[{}]}}"#, key.public_jwk());
    let (keys, _) = KeySet::parse(keys.as_bytes(), Algorithm::Rs256).unwrap();
    let url = "http://b.example.com:8080/";
    let one = json!([{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
    let shapes = [
        case("ES256, with what"),
        case("a hybrid"),
        case("with empty required fields"),
        json!({"name": "", "description": "", "supportedInterfaces": one, "skills": []}),
        json!({"name": "w", "supportedInterfaces": one, "capabilities": {"extensions": [
            {"uri": "u", "params": {"a": [], "b": null, "n": 1e21}}]}}),
    ];
    for (position, shape) in shapes.iter().enumerate() {
        let store = store(None, Some(&key));
        store.apply(0, fetched(shape), Vec::new(), 1);
        let card = published(&store).unwrap();
        let attested = attest(&card.document.body, &|header, input, signature| {
            assert_eq!(
                header.jku.as_deref(),
                Some("https://gw.example.com/.well-known/jwks.json")
            );
            let key = keys.named(header.kid.as_deref().unwrap()).unwrap();
            assert!(key.verifies(input, signature) || header.alg == "EdDSA".into());
            match key.verifies(input, signature) {
                true => Ok(()),
                false => Err(portcullis::a2a::card::BadSignature::Mismatch),
            }
        });
        assert_eq!(attested.label(), "verified", "shape {position}");
        let body: Value = serde_json::from_slice(&card.document.body).unwrap();
        assert!(matches!(
            body["signatures"].as_array().unwrap().len(),
            1 | 2
        ));
        // The same key signs the same card to the same bytes, so replicas serve one tag.
        let again = super::signed::store(None, Some(&key));
        again.apply(0, fetched(shape), Vec::new(), 9);
        assert_eq!(published(&again).unwrap().document, card.document);
    }
    let old = json!({"name": "w", "url": url});
    let store = store(None, Some(&key));
    store.apply(0, fetched(&old), Vec::new(), 1);
    let body = published(&store).unwrap();
    assert!(!String::from_utf8_lossy(&body.document.body).contains("signatures"));
}

#[test]
fn a_card_that_cannot_be_signed_is_withheld_where_signing_is_asked_for() {
    let key = Arc::new(SigningKey::new(Ed25519KeyPair::generate().unwrap()));
    let card = json!({"name": "w", "version": 1, "supportedInterfaces": [
        {"url": "http://b.example.com:8080/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
    let signing = store(None, Some(&key));
    signing.apply(0, fetched(&card), Vec::new(), 1);
    let state = signing.state(0).unwrap();
    let CardState::Withheld { reason, .. } = &*state else {
        panic!("{state:?}");
    };
    assert_eq!(reason.label(), "unsignable");
    let plain = store(None, None);
    plain.apply(0, fetched(&card), Vec::new(), 1);
    assert!(published(&plain).is_some());
}
