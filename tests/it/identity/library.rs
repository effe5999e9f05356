//! `jsonwebtoken` as a second opinion: what we accept, its own strict verification accepts.

use super::world::{AUDIENCE, Case, World};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, crypto, decode, decode_header};
use serde_json::Value;

#[test]
fn whatever_we_accept_the_library_accepts() {
    let world = World::load();
    let mut agreed = 0;
    for case in &world.cases {
        let (Some(token), Ok(principal)) =
            (case.token(), case.judge(&world.issuers(case), world.now))
        else {
            continue;
        };
        let set = document(&world, case, &principal.issuer);
        library_accepts(&token, &set, case);
        agreed += 1;
    }
    assert!(agreed > 80, "{agreed}");
}

/// The key set that the case gives to an issuer.
fn document(world: &World, case: &Case, issuer: &str) -> Value {
    let issuer = issuer.to_uppercase();
    let variant = case.jwks.get(&issuer).map_or("default", String::as_str);
    serde_json::from_str(&world.jwks[&issuer][variant]).unwrap()
}

fn library_accepts(token: &str, set: &Value, case: &Case) {
    let (input, signature) = token.rsplit_once('.').unwrap();
    let raw: Value = {
        let header = input.split('.').next().unwrap();
        let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
        serde_json::from_slice(&base64::Engine::decode(&engine, header).unwrap()).unwrap()
    };
    let key = set["keys"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|key| key["kty"] != "oct")
        .find(|key| key["kid"] == raw["kid"] && !key.is_null())
        .unwrap();
    let mut key = key.clone();
    // It does not know this name of the algorithm.
    if key["alg"] == "Ed25519" {
        key["alg"] = "EdDSA".into();
    }
    let key: Jwk = serde_json::from_value(key).unwrap();
    let key = DecodingKey::from_jwk(&key).unwrap();
    if raw["alg"] == "Ed25519" {
        let good = crypto::verify(signature, input.as_bytes(), &key, Algorithm::EdDSA);
        assert!(good.unwrap(), "{}", case.id);
        return;
    }
    let mut validation = Validation::new(decode_header(token).unwrap().alg);
    validation.set_audience(&[AUDIENCE]);
    validation.set_required_spec_claims(&["exp", "iss", "sub"]);
    // It reads the system's clock; times are judged by our cases alone.
    validation.validate_exp = false;
    validation.validate_nbf = false;
    let read = decode::<Value>(token, &key, &validation);
    assert!(read.is_ok(), "{}: {:?}", case.id, read.err());
}
