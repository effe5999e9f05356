#![allow(clippy::unwrap_used)]

use super::*;
use crate::adapters::clock::ManualClock;
use crate::adapters::random::SystemRandom as Entropy;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{DecodingKey, crypto};

const NOW: u64 = 1_700_000_000;

fn claims() -> Claims {
    Claims {
        issuer: "https://dev.example".into(),
        audience: "https://agents.example".into(),
        subject: "alice".into(),
        client: "cli".into(),
        scope: "a2a.agent".into(),
        lifetime: 600,
        ..Claims::default()
    }
}

fn mint(issuer: &DevIssuer, claims: &Claims) -> String {
    let clock = ManualClock::at(NOW * 1000 + 999);
    issuer.mint(claims, &clock, &Entropy).unwrap()
}

fn part(token: &str, index: usize) -> Value {
    let segment = token.split('.').nth(index).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(segment).unwrap()).unwrap()
}

/// Whether the token's signature is good by the published set, as another library sees it.
fn verifies(token: &str, jwks: &str) -> bool {
    let set: JwkSet = serde_json::from_str(jwks).unwrap();
    let header = jsonwebtoken::decode_header(token).unwrap();
    let key = DecodingKey::from_jwk(set.find(header.kid.as_deref().unwrap()).unwrap()).unwrap();
    let (input, signature) = token.rsplit_once('.').unwrap();
    crypto::verify(signature, input.as_bytes(), &key, header.alg).unwrap()
}

#[test]
fn every_algorithm_signs_what_its_key_set_verifies_and_survives_its_file() {
    let dir = tempfile::tempdir().unwrap();
    for (name, algorithm) in DevAlgorithm::NAMES {
        let issuer = DevIssuer::generate(algorithm).unwrap();
        let token = mint(&issuer, &claims());
        assert!(verifies(&token, &issuer.jwks()), "{name}");
        let set: Value = serde_json::from_str(&issuer.jwks()).unwrap();
        assert!(set["keys"][0].get("d").is_none(), "{name}");

        let path = dir.path().join(name);
        issuer.save(&path).unwrap();
        let (loaded, exposed) = DevIssuer::load(&path).unwrap();
        assert!(!exposed, "{name}");
        assert_eq!(loaded.jwks(), issuer.jwks(), "{name}");
        assert_eq!(loaded.algorithm(), algorithm);
        assert!(
            verifies(&mint(&loaded, &claims()), &issuer.jwks()),
            "{name}"
        );
        assert!(
            matches!(issuer.save(&path), Err(KeyError::File(_))),
            "{name}"
        );
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(DevIssuer::load(&path).unwrap().1, "{name}");
    }
}

#[test]
fn a_token_has_the_shape_of_rfc_9068() {
    let issuer = DevIssuer::generate(DevAlgorithm::Es256).unwrap();
    let token = mint(&issuer, &claims());
    let header = json!({ "typ": "at+jwt", "alg": "ES256", "kid": issuer.kid() });
    assert_eq!(part(&token, 0), header);
    let payload = part(&token, 1);
    let expected = json!({
        "iss": "https://dev.example", "aud": "https://agents.example", "sub": "alice",
        "client_id": "cli", "iat": NOW, "exp": NOW + 600, "jti": payload["jti"],
        "scope": "a2a.agent",
    });
    assert_eq!(payload, expected);
    assert_eq!(payload["jti"].as_str().unwrap().len(), 22);
    let other = mint(&issuer, &claims());
    assert_ne!(part(&other, 1)["jti"], payload["jti"]);
}

#[test]
fn claims_and_header_can_be_added_replaced_and_left_out() {
    let issuer = DevIssuer::generate(DevAlgorithm::EdDsa).unwrap();
    let mut claims = claims();
    claims.extra.insert("role".into(), json!("reviewer"));
    claims.extra.insert("aud".into(), json!(["a", "b"]));
    claims.header.insert("typ".into(), json!("JWT"));
    claims.without = vec!["jti".into(), "client_id".into()];
    let token = mint(&issuer, &claims);
    assert_eq!(part(&token, 0)["typ"], "JWT");
    let payload = part(&token, 1);
    assert_eq!(payload["role"], "reviewer");
    assert_eq!(payload["aud"], json!(["a", "b"]));
    assert!(payload.get("jti").is_none() && payload.get("client_id").is_none());
    assert!(verifies(&token, &issuer.jwks()));
}

#[test]
fn grant_markers_land_where_the_entry_reads_them() {
    use GrantForm::{Either, SpaceString, StringArray};
    let path = |names: &[&str]| -> Vec<Box<str>> { names.iter().map(|n| (*n).into()).collect() };
    let mut claims = claims();
    assert!(claims.mark(&path(&["scope"]), SpaceString, "a2a.agent"));
    assert!(claims.mark(&path(&["scope"]), SpaceString, "a2a.full"));
    assert_eq!(claims.scope, "a2a.agent a2a.full");
    assert!(claims.mark(&path(&["realm_access", "roles"]), StringArray, "agent"));
    assert!(claims.mark(&path(&["realm_access", "roles"]), Either, "full"));
    assert!(claims.mark(&path(&["perm.s"]), SpaceString, "x"));
    let expected = json!({ "realm_access": { "roles": ["agent", "full"] }, "perm.s": "x" });
    assert_eq!(Value::Object(claims.extra.clone()), expected);
    // What is there already is not overwritten.
    assert!(!claims.mark(&path(&["perm.s"]), StringArray, "y"));
    assert!(!claims.mark(&path(&["perm.s", "deeper"]), SpaceString, "y"));
    assert!(!claims.mark(&[], SpaceString, "y"));
    assert_eq!(Value::Object(claims.extra), expected);
}

#[test]
fn the_thumbprint_is_that_of_rfc_7638() {
    // Section 3.1 of the RFC.
    let key = json!({
        "e": "AQAB", "kty": "RSA",
        "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
    });
    assert_eq!(
        thumbprint(&key),
        "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    );
}

#[test]
fn what_is_no_key_is_named_and_never_shown() {
    let secret = STANDARD.encode("a secret that must not be shown");
    let block = format!("{BEGIN}\n{secret}\n{END}\n");
    for (pem, wanted) in [
        (String::new(), "there is no `BEGIN PRIVATE KEY` block"),
        (
            format!("{BEGIN}\n{secret}\n"),
            "there is no `BEGIN PRIVATE KEY` block",
        ),
        (block, "it is no private key for"),
    ] {
        let error = DevIssuer::from_pem(&pem).unwrap_err();
        assert!(error.to_string().starts_with(wanted), "{error}");
        assert!(!format!("{error} {error:?}").contains(&secret));
    }
    let issuer = DevIssuer::generate(DevAlgorithm::Es256).unwrap();
    let shown = format!("{issuer:?}");
    assert_eq!(
        shown,
        format!("DevIssuer {{ kid: {:?}, .. }}", issuer.kid())
    );
}

#[test]
fn der_that_lies_about_its_length_is_no_number() {
    for der in [
        &[][..],
        &[0x30],
        &[0x30, 0x05, 0x02],
        &[0x30, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x30, 0xff],
        &[0x02, 0x00],
    ] {
        assert!(rsa_numbers(der).is_none(), "{der:02x?}");
    }
    let good = [0x30, 0x06, 0x02, 0x01, 0x07, 0x02, 0x01, 0x03];
    assert_eq!(rsa_numbers(&good), Some((&[7][..], &[3][..])));
}
