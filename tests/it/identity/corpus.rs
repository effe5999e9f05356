//! Every case gives its outcome, and every reason occurs.

use super::world::{Case, World, by_code, strict};
use portcullis::identity::issuer::Grant;
use portcullis::identity::keys::{KeySet, KeySetFault};
use portcullis::identity::{
    Answer, Issuers, KeyNote, Principal, TokenFault, accept, fault, transport,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Tried in `revocation`, with the agent's counters.
const REVOKED: [&str; 12] = [
    "revoked_token",
    "revoked_subject",
    "revoked_client",
    "revoked_session",
    "revoked_key",
    "revoked_signing_input",
    "introspection_failed",
    "token_inactive",
    "introspection_differs",
    "token_used",
    "issued_before_start",
    "used_tokens_full",
];

/// Status and error of a reply, as the corpus writes them.
fn reply(judged: &Result<Principal, TokenFault>, surface: &str) -> (u16, Option<&'static str>) {
    match judged {
        Ok(principal) => {
            let enough = match surface {
                "a2a" => principal.grant.is_some(),
                _ => principal.grant == Some(Grant::Full),
            };
            match enough {
                true => (200, None),
                false => (403, Some("insufficient_scope")),
            }
        }
        Err(fault) => match fault.answer {
            Answer::NoCredential => (401, None),
            Answer::InvalidRequest => (400, Some("invalid_request")),
            Answer::InvalidToken => (401, Some("invalid_token")),
            Answer::InvalidProof => (401, Some("invalid_dpop_proof")),
            Answer::UseNonce => (401, Some("use_dpop_nonce")),
            Answer::Unavailable => (503, None),
        },
    }
}

fn check(world: &World, case: &Case) -> (Result<Principal, TokenFault>, Option<String>) {
    let judged = case.judge(&world.issuers(case), world.now);
    let found = reply(&judged, &case.surface);
    let mut wanted = (case.expect.status, case.expect.error.as_deref());
    // Refused by a policy: the token itself is good.
    if wanted == (403, None) {
        wanted = (200, None);
    }
    let wrong = found != wanted
        || (case.expect.outcome == "accept") != (found.0 == 200) && wanted.0 != 200
        || case
            .no
            .as_deref()
            .is_some_and(|no| judged.as_ref().err().map(|f| f.code) != Some(no))
        || case.grant.as_ref().is_some_and(|wanted| {
            let grant = judged.as_ref().ok().and_then(|p| p.grant);
            let name = grant.map(|g| match g {
                Grant::Agent => "agent",
                Grant::Full => "full",
            });
            judged.is_err() || name != wanted.as_deref()
        });
    let told = wrong.then(|| {
        format!(
            "{} ({}): {found:?} by {:?}, wanted {wanted:?} {:?}",
            case.id,
            case.title,
            judged.as_ref().err(),
            case.no
        )
    });
    (judged, told)
}

#[test]
fn every_case_has_its_outcome() {
    let world = World::load();
    assert!(world.cases.len() > 300, "{}", world.cases.len());
    let told: Vec<String> = world
        .cases
        .iter()
        .filter_map(|case| check(&world, case).1)
        .collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[test]
fn every_reason_occurs_and_has_one_name() {
    let world = World::load();
    let mut seen: BTreeSet<&str> = world
        .cases
        .iter()
        .filter_map(|case| check(&world, case).0.err())
        .map(|fault| fault.code)
        .collect();
    // These need a clock, a cache, a store or HTTP/2, and have tests of their own.
    seen.extend(["clock_not_set", "key_gone", "authorization_space"]);
    seen.extend(REVOKED);
    seen.extend(["proof_replayed", "proof_store_full", "proof_nonce"]);
    let codes: BTreeSet<&str> = fault::ALL.iter().map(|f| f.code).collect();
    assert_eq!(codes.len(), fault::ALL.len());
    let unseen: Vec<_> = codes.difference(&seen).collect();
    assert!(unseen.is_empty(), "no case is refused with {unseen:?}");
}

/// HTTP/1.1 parsers drop it; in HTTP/2 it makes the request malformed (TR-11).
#[test]
fn surrounding_space_is_refused() {
    let world = World::load();
    let token = world.case("tr-001").token().unwrap();
    for field in [format!(" Bearer {token}"), format!("Bearer {token} ")] {
        let mut headers = http::HeaderMap::new();
        headers.insert("authorization", field.parse().unwrap());
        let refused = transport::presented(&headers, None).unwrap_err();
        assert_eq!(refused, by_code("authorization_space"));
    }
}

#[test]
fn a_token_is_at_most_8192_characters() {
    let world = World::load();
    let issuers = world.issuers(world.case("tr-001"));
    for (length, code) in [
        (8192, "not_three_segments"),
        (8193, "token_too_long"),
        (1 << 20, "token_too_long"),
    ] {
        let refused = accept(&issuers, &"A".repeat(length), world.now);
        assert_eq!(refused.unwrap_err().fault, by_code(code), "{length}");
    }
}

#[test]
fn nothing_is_good_while_the_clock_is_not_set() {
    let world = World::load();
    let case = world.case("tr-001");
    let judged = case.judge(&world.issuers(case), 1_704_067_199);
    assert_eq!(judged.unwrap_err(), by_code("clock_not_set"));
}

#[test]
fn an_entry_is_named_only_once_its_issuer_chose_it() {
    let world = World::load();
    let of = |id: &str| {
        let case = world.case(id);
        let token = case.token().unwrap();
        accept(&world.issuers(case), &token, world.now).unwrap_err()
    };
    assert_eq!(of("is-007").issuer, None);
    assert_eq!(of("fm-017").issuer.as_deref(), Some("a"));
    assert_eq!(of("tk-010").issuer.as_deref(), Some("k"));
}

#[test]
fn shared_keys_are_told() {
    let world = World::load();
    let jwks = || world.jwks["A"]["default"].as_bytes().into();
    let configs = [strict("one", "1", jwks()), strict("two", "2", jwks())].map(Arc::new);
    let (_, notes) = Issuers::compile(&configs);
    assert_eq!(
        notes,
        [KeyNote::Shared {
            issuer: 0,
            other: 1
        }]
    );
}

#[test]
fn a_key_set_is_at_most_64_keys() {
    let world = World::load();
    let rsa_alg = portcullis::identity::issuer::Algorithm::Rs256;
    let parse = |document: &str| KeySet::parse(document.as_bytes(), rsa_alg).map(|(set, _)| set);
    assert_eq!(
        parse(&world.jwks["A"]["too_many"]).err(),
        Some(KeySetFault::TooMany)
    );
    let entries = vec!["null"; 64].join(",");
    assert!(parse(&format!(r#"{{"keys":[{entries}]}}"#)).is_ok());
}

/// RFC 7638 section 3.1, and RFC 8037 appendix A.3.
#[test]
fn thumbprints_are_those_of_the_rfcs() {
    let document = r#"{"keys": [
        {"kty": "RSA", "alg": "RS256", "kid": "2011-04-29", "e": "AQAB", "n":
         "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"},
        {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    let rsa_alg = portcullis::identity::issuer::Algorithm::Rs256;
    let (set, notes) = KeySet::parse(document.as_bytes(), rsa_alg).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let prints: Vec<String> = set
        .keys()
        .iter()
        .map(|key| base64::Engine::encode(&engine, key.thumbprint))
        .collect();
    assert_eq!(
        prints,
        [
            "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
            "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
        ]
    );
}
