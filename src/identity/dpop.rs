//! Proofs of possession (DPoP, RFC 9449): one signed statement with each request (SC-3, SC-4).
//!
//! A proof is taken apart by the parser of tokens and with its bounds. What is asked of it beside
//! its signature is that it was made for this method, this URI, this token, just now.

use super::accept::First;
use super::claims::{Round, has_control, numeric_date};
use super::fault::{self, TokenFault};
use super::issuer::Algorithm;
use super::token::Token;
use super::{header, keys, uri};
use crate::a2a::strict_json::Value;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;

/// How old a proof may be, in seconds.
pub const PAST: i64 = 60;
/// How far ahead of our clock it may have been made, in seconds.
pub const AHEAD: i64 = 5;
/// Longest `jti` in characters.
const MAX_ID: usize = 255;
/// Algorithms of proofs: those of tokens by default, and what FAPI 2.0 adds (section 5.4.1).
const ALGORITHMS: [Algorithm; 5] = [
    Algorithm::Es256,
    Algorithm::Ps256,
    Algorithm::Rs256,
    Algorithm::EdDsa,
    Algorithm::Ed25519,
];
/// Their names for callers, who are told in challenges (RFC 9449 section 7.1).
pub const ALGS: &str = "ES256 PS256 RS256 EdDSA Ed25519";

/// What a proof must be about.
pub struct Expected<'a> {
    /// Thumbprint of the key to which the token is bound.
    pub key: &'a [u8; 32],
    /// The token.
    pub token: &'a str,
    /// The HTTP method, byte for byte.
    pub method: &'a str,
    /// The URI as callers see it; its query and fragment do not count.
    pub uri: &'a str,
    /// Seconds since the epoch.
    pub now: i64,
    /// The nonces of which it must have one.
    pub nonces: Option<&'a [Box<str>]>,
}

/// A good proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// `jti`; whoever takes the proof must not have seen it with this key before.
    pub id: Box<str>,
    /// The last second in which it is good by its time.
    pub until: i64,
}

/// The text of the one `DPoP` field (RFC 9449 section 4.3, step 1).
pub(super) fn only(headers: &HeaderMap) -> Result<&str, TokenFault> {
    let mut fields = headers.get_all("dpop").iter();
    let field = fields.next().ok_or(fault::PROOF_MISSING)?;
    if fields.next().is_some() {
        return Err(fault::PROOF_TWICE);
    }
    field.to_str().map_err(|_| fault::PROOF_FORM)
}

/// Judges a proof in all but whether it was seen before; cheapest first.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn judge(proof: &str, expected: &Expected<'_>) -> Result<Proof, TokenFault> {
    let proof = Token::parse(proof).map_err(|_| fault::PROOF_FORM)?;
    let key = key(&proof.header)?;
    if verify_slices_are_equal(&key.thumbprint, expected.key).is_err() {
        return Err(fault::OTHER_PROOF_KEY);
    }
    let text = |name| proof.payload.get(name).and_then(Value::as_str);
    if text("htm") != Some(expected.method) {
        return Err(fault::PROOF_METHOD);
    }
    let named = text("htu").and_then(uri::normalized);
    if named.is_none() || named != uri::normalized(expected.uri) {
        return Err(fault::PROOF_URI);
    }
    let until = time(&proof.payload, expected.now)?;
    let id = text("jti").filter(|id| !id.is_empty() && id.chars().nth(MAX_ID).is_none());
    let id = id.filter(|id| !has_control(id)).ok_or(fault::PROOF_ID)?;
    let hash = URL_SAFE_NO_PAD.encode(digest(&SHA256, expected.token.as_bytes()));
    let same = |ath: &str| verify_slices_are_equal(ath.as_bytes(), hash.as_bytes()).is_ok();
    if !text("ath").is_some_and(same) {
        return Err(fault::PROOF_TOKEN);
    }
    let nonce = proof.payload.get("nonce");
    if nonce.is_some_and(|nonce| nonce.as_str().is_none()) {
        return Err(fault::PROOF_FORM);
    }
    if !key.verifies(proof.signing_input.as_bytes(), &proof.signature) {
        return Err(fault::PROOF_SIGNATURE);
    }
    // Last, so that only who holds the key is told that another nonce is needed.
    if let Some(nonces) = expected.nonces {
        let given = nonce.and_then(Value::as_str).unwrap_or_default();
        let ours = |n: &str| verify_slices_are_equal(n.as_bytes(), given.as_bytes()).is_ok();
        if !nonces.iter().any(|nonce| ours(nonce)) {
            return Err(fault::PROOF_NONCE);
        }
    }
    Ok(Proof {
        id: id.into(),
        until,
    })
}

/// The header's rules, and the sound public key in it.
fn key(proof: &Value) -> Result<keys::Key, TokenFault> {
    let read = header::judge(proof, &mut First).map_err(|found| match found {
        fault::NO_ALG | fault::ALG_SYMMETRIC_OR_NONE => fault::PROOF_ALG,
        _ => fault::PROOF_HEADER,
    })?;
    if proof.get("typ").and_then(Value::as_str) != Some("dpop+jwt") {
        return Err(fault::PROOF_TYP);
    }
    // Nothing is ever fetched because of a proof either (HD-7).
    let names_key = |name: &&str| proof.get(name).is_some();
    if ["jku", "x5u", "x5c"].iter().any(names_key) {
        return Err(fault::PROOF_HEADER);
    }
    let listed = |alg: &Algorithm| ALGORITHMS.contains(alg);
    let alg = read.alg.filter(listed).ok_or(fault::PROOF_ALG)?;
    let jwk = proof.get("jwk").ok_or(fault::PROOF_KEY)?;
    keys::embedded(jwk, alg).map_err(|_| fault::PROOF_KEY)
}

/// The last second in which a proof is good. A fraction is rounded against the holder (CL-14), and
/// what narrows it further counts as well.
fn time(payload: &Value, now: i64) -> Result<i64, TokenFault> {
    let date = |name, round| match payload.get(name) {
        None => Ok(None),
        Some(value) => {
            let instant = value.as_number().and_then(|n| numeric_date(n, round));
            instant.map(Some).ok_or(fault::PROOF_TIME)
        }
    };
    let both = date("iat", Round::Down)?.zip(date("iat", Round::Up)?);
    let (made, made_at_most) = both.ok_or(fault::PROOF_TIME)?;
    let until = made.saturating_add(PAST);
    let ended = date("exp", Round::Down)?.is_some_and(|end| now >= end);
    let early = date("nbf", Round::Up)?.is_some_and(|start| now.saturating_add(AHEAD) < start);
    if now > until || made_at_most > now.saturating_add(AHEAD) || ended || early {
        return Err(fault::PROOF_TIME);
    }
    Ok(until)
}
