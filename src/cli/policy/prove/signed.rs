//! Result files: a JSON object with a detached JWS (RFC 7515 appendix F) over its RFC 8785 form.

use crate::a2a::card::jcs;
use crate::a2a::strict_json::parse_value;
use crate::cli::exit;
use crate::identity::SigningKey;
use crate::identity::issuer::Algorithm;
use crate::identity::keys::KeySet;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

/// The member that holds the signature, and that it does not cover.
const SIGNATURE: &str = "signature";
/// So that a signature of another kind by the same key is none of these.
const TYP: &str = "portcullis-proof+jws";
/// What results are.
pub(super) const KIND: &str = "proof";
const VERSION: u64 = 1;
/// Largest protected header, and its nesting.
const MAX_HEADER: usize = 4096;
const HEADER_DEPTH: usize = 4;

/// Why a file is no result that can be believed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unproven {
    /// It is no JSON object that every reader reads alike.
    Unreadable,
    /// It is of a later version of this format.
    Version,
    /// What is wrong with the signature.
    Signature(&'static str),
}

impl Unproven {
    pub(super) fn told(&self) -> (&'static str, u8) {
        match self {
            Unproven::Unreadable => (
                "it is no JSON object that can be read in one way only",
                exit::INVALID,
            ),
            Unproven::Version => ("it is not of this version of the format", exit::INVALID),
            Unproven::Signature(what) => (what, exit::INTEGRITY),
        }
    }
}

/// Begins a result: what every one has.
pub(super) fn begin() -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("v".to_owned(), json!(VERSION));
    result.insert("kind".to_owned(), json!(KIND));
    result
}

/// Signs a result in place; `None` when it has no canonical form.
pub(super) fn sign(result: &mut Map<String, Value>, key: &SigningKey) -> Option<()> {
    result.remove(SIGNATURE);
    let header = json!({ "alg": SigningKey::ALGORITHM, "kid": key.kid(), "typ": TYP });
    let protected = URL_SAFE_NO_PAD.encode(header.to_string());
    let signature = key.sign(input(&protected, result)?.as_bytes());
    let signature = format!("{protected}..{}", URL_SAFE_NO_PAD.encode(signature));
    result.insert(SIGNATURE.to_owned(), json!(signature));
    Some(())
}

/// Reads a result that one of the keys signed; also the name of that key.
pub(super) fn verified(
    bytes: &[u8],
    keys: &KeySet,
) -> Result<(Map<String, Value>, String), Unproven> {
    // A member that occurs twice could be read in two ways.
    jcs(bytes).ok_or(Unproven::Unreadable)?;
    let Ok(Value::Object(mut result)) = serde_json::from_slice(bytes) else {
        return Err(Unproven::Unreadable);
    };
    let wrong = Unproven::Signature;
    let jws = result.remove(SIGNATURE);
    let jws = jws.as_ref().and_then(Value::as_str);
    let jws = jws.ok_or(wrong("it has no signature"))?;
    let (protected, signature) = jws
        .split_once("..")
        .ok_or(wrong("its signature is no detached JWS"))?;
    let decoded = |text: &str| {
        let decoded = URL_SAFE_NO_PAD.decode(text);
        decoded.map_err(|_| wrong("its signature is no detached JWS"))
    };
    let signature = decoded(signature)?;
    let header = decoded(protected)?;
    if header.len() > MAX_HEADER {
        return Err(wrong("its signature is no detached JWS"));
    }
    let header = parse_value(&header, HEADER_DEPTH)
        .map_err(|_| wrong("its signature is no detached JWS"))?;
    let text = |name: &str| header.get(name).and_then(|value| value.as_str());
    // Nothing that must be understood is (RFC 7515 section 4.1.11, RFC 7797).
    let plain = header.get("crit").is_none() && header.get("b64").is_none();
    if !plain || text("typ") != Some(TYP) || text("alg") != Some(SigningKey::ALGORITHM) {
        return Err(wrong("its signature is of another kind"));
    }
    let kid = text("kid").ok_or(wrong("its signature names no key"))?;
    let key = keys
        .named(kid)
        .ok_or(wrong("it is signed by another key"))?;
    let input = input(protected, &result).ok_or(Unproven::Unreadable)?;
    if !key.takes(Algorithm::EdDsa) || !key.verifies(input.as_bytes(), &signature) {
        return Err(wrong("its signature does not fit: it was changed"));
    }
    if result.get("kind") != Some(&json!(KIND)) || result.get("v") != Some(&json!(VERSION)) {
        return Err(Unproven::Version);
    }
    Ok((result, kid.to_owned()))
}

fn input(protected: &str, result: &Map<String, Value>) -> Option<String> {
    let json = serde_json::to_vec(result).ok()?;
    let canonical = jcs(&json)?;
    Some(format!("{protected}.{}", URL_SAFE_NO_PAD.encode(canonical)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use aws_lc_rs::signature::Ed25519KeyPair;

    fn key() -> (SigningKey, KeySet) {
        let key = SigningKey::new(Ed25519KeyPair::generate().unwrap());
        let set = format!(r#"{{"keys":[{}]}}"#, key.public_jwk());
        let (set, _) = KeySet::parse(set.as_bytes(), Algorithm::Rs256).unwrap();
        (key, set)
    }

    #[test]
    fn order_and_space_are_nothing_and_everything_else_is_signed() {
        let (key, set) = key();
        let mut result = begin();
        result.insert("rows".to_owned(), json!([{ "b": 1, "a": "é" }]));
        sign(&mut result, &key).unwrap();
        let signature = result["signature"].as_str().unwrap();
        let good = format!(
            "{{ \"signature\": \"{signature}\",\n\"rows\":[{{\"a\":\"\\u00e9\",\"b\":1.0}}], \"kind\":\"proof\",\"v\":1}}"
        );
        let (_, kid) = verified(good.as_bytes(), &set).unwrap();
        assert_eq!(kid, key.kid());
        for (from, to) in [
            ("1.0", "2"),
            ("u00e9", "u00e8"),
            ("\"a\"", "\"c\""),
            ("\"v\":1", "\"v\":2"),
            ("\"v\":1", "\"v\":1,\"more\":1"),
            ("\"proof\"", "\"other\""),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            let found = verified(bad.as_bytes(), &set).unwrap_err();
            assert_eq!(found.told().1, exit::INTEGRITY, "{from} {to}");
        }
        let twice = good.replacen("\"v\":1", "\"v\":1,\"v\":1", 1);
        assert_eq!(verified(twice.as_bytes(), &set), Err(Unproven::Unreadable));
    }

    #[test]
    fn a_signature_of_another_kind_is_none() {
        let (key, set) = key();
        for header in [
            json!({ "alg": "EdDSA", "kid": key.kid(), "typ": "JOSE" }),
            json!({ "alg": "none", "kid": key.kid(), "typ": TYP }),
            json!({ "alg": "EdDSA", "kid": key.kid(), "typ": TYP, "crit": [] }),
            json!({ "alg": "EdDSA", "typ": TYP }),
        ] {
            let mut result = begin();
            let protected = URL_SAFE_NO_PAD.encode(header.to_string());
            let signature = key.sign(input(&protected, &result).unwrap().as_bytes());
            let signature = format!("{protected}..{}", URL_SAFE_NO_PAD.encode(signature));
            result.insert(SIGNATURE.to_owned(), json!(signature));
            let bytes = serde_json::to_vec(&result).unwrap();
            let found = verified(&bytes, &set).unwrap_err();
            assert_eq!(found.told().1, exit::INTEGRITY, "{header}");
        }
    }
}
