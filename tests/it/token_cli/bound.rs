//! Tokens that are bound to a key or a certificate, and proofs for them.

use super::{Fixture, minted, mode};
use crate::support::pki::Authority;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portcullis::adapters::clock::SystemClock;
use portcullis::identity::dpop::{Expected, judge};
use portcullis::pipeline::ports::Clock;

#[test]
fn a_token_is_bound_to_a_key_that_proves_it() {
    let fixture = Fixture::new();
    let key = fixture.path("caller.pem");
    let (config, file) = (fixture.path("gateway.yaml"), key.to_str().unwrap());
    let issuer = fixture.path("dev.private.pem");
    let mint = [
        "token",
        "mint",
        "--key",
        issuer.to_str().unwrap(),
        "--config",
        config.to_str().unwrap(),
        "--sub",
        "alice",
        "--grant",
        "agent",
        "--dpop-key",
        file,
    ];
    let token = fixture.good(&mint, "").trim().to_owned();
    assert_eq!(mode(&key), 0o600);
    let before = std::fs::read(&key).unwrap();
    assert_ne!(fixture.good(&mint, "").trim(), token);
    assert_eq!(std::fs::read(&key).unwrap(), before, "the key is kept");
    let url = "https://gateway.test/a?x=y";
    let prove = [
        "token", "dpop", "--key", file, "--method", "POST", "--url", url, "--token", "-",
        "--nonce", "n",
    ];
    // The token as it stands in a request is the same token.
    let proof = fixture.good(&prove, &format!("DPoP {token}\n"));
    let payload = URL_SAFE_NO_PAD
        .decode(token.split('.').nth(1).unwrap())
        .unwrap();
    let payload: serde_json::Value = serde_json::from_slice(&payload).unwrap();
    let bound = URL_SAFE_NO_PAD.decode(payload["cnf"]["jkt"].as_str().unwrap());
    let bound: [u8; 32] = bound.unwrap().try_into().unwrap();
    let nonces = ["n".into()];
    let expected = Expected {
        key: &bound,
        token: &token,
        method: "POST",
        uri: "https://gateway.test/a",
        now: i64::try_from(SystemClock::new().now() / 1000).unwrap(),
        nonces: Some(&nonces),
    };
    let judged = judge(proof.trim(), &expected);
    assert!(judged.is_ok(), "{judged:?}");
    let inspect = ["token", "inspect", "--config", config.to_str().unwrap()];
    let said = fixture.good(&inspect, &token);
    assert!(said.contains("\nthe gateway would accept it\n"), "{said}");
    assert!(said.contains("  SC-3: it is bound to a key"), "{said}");
    assert!(!said.contains("SC-2"), "{said}");
}

#[test]
fn a_token_is_bound_to_a_certificate_or_a_thumbprint() {
    let fixture = Fixture::new();
    let pair = Authority::new().pair(&["alice"]);
    let file = fixture.path("client.pem");
    std::fs::write(&file, &pair.cert).unwrap();
    let print = "A".repeat(43);
    let options = [
        "--issuer",
        "i",
        "--audience",
        "a",
        "--sub",
        "alice",
        "--client-cert",
        file.to_str().unwrap(),
        "--cnf-jkt",
        &print,
    ];
    let (_, payload) = minted(&fixture, &options);
    assert_eq!(payload["cnf"]["jkt"], print);
    let bound = payload["cnf"]["x5t#S256"].as_str().unwrap();
    assert_eq!(bound.len(), 43);
    assert_eq!(payload["cnf"].as_object().unwrap().len(), 2);
}
