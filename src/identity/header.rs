//! The protected header: what it must hold and what it must not (HD-1 to HD-12, FM-7).

use super::accept::Refusals;
use super::fault::{self, TokenFault};
use super::issuer::{Algorithm, IgnoredHeader, IssuerConfig, Typ};
use super::keys::is_kid;
use crate::a2a::strict_json::Value;

/// Members of encrypted tokens (HD-8).
const ENCRYPTION: [&str; 9] = ["enc", "zip", "epk", "apu", "apv", "iv", "tag", "p2s", "p2c"];
/// Members that carry or name a key (HD-7).
const KEYS: [(&str, IgnoredHeader); 4] = [
    ("jwk", IgnoredHeader::Jwk),
    ("jku", IgnoredHeader::Jku),
    ("x5u", IgnoredHeader::X5u),
    ("x5c", IgnoredHeader::X5c),
];
/// Strings where they are there at all (HD-11). `x5t` and `x5t#S256` are otherwise ignored.
const TEXTS: [&str; 4] = ["typ", "kid", "x5t", "x5t#S256"];
/// Claims that a header may repeat (RFC 7519 section 5.3).
const REPLICATED: [&str; 6] = ["iss", "sub", "aud", "exp", "nbf", "iat"];

/// What verification takes from a header.
pub(super) struct Header<'v> {
    /// `None` for an algorithm that no issuer can list.
    pub(super) alg: Option<Algorithm>,
    /// Printable ASCII; only ever a map key (HD-6).
    pub(super) kid: Option<&'v str>,
}

/// The rules that hold whatever the issuer.
pub(super) fn judge<'v, R: Refusals>(
    header: &'v Value,
    refusals: &mut R,
) -> Result<Header<'v>, TokenFault> {
    let alg = match header.get("alg") {
        Some(Value::String(name)) => {
            if name.eq_ignore_ascii_case("none") || starts_with_hs(name) {
                refusals.refuse(fault::ALG_SYMMETRIC_OR_NONE)?;
            }
            // HD-1: byte for byte.
            Algorithm::NAMES
                .iter()
                .find(|(known, _)| **known == **name)
                .map(|(_, algorithm)| *algorithm)
        }
        Some(_) => {
            refusals.refuse(fault::HEADER_TYPE)?;
            None
        }
        None => {
            refusals.refuse(fault::NO_ALG)?;
            None
        }
    };
    let has = |name: &&str| header.get(name).is_some();
    if ["crit", "b64"].iter().any(has) {
        refusals.refuse(fault::CRITICAL)?;
    }
    if ENCRYPTION.iter().any(has) {
        refusals.refuse(fault::ENCRYPTION_MEMBER)?;
    }
    if has(&"cty") {
        refusals.refuse(fault::NESTED)?;
    }
    let is_text = |name: &&str| header.get(name).is_none_or(|v| v.as_str().is_some());
    if !TEXTS.iter().all(is_text) {
        refusals.refuse(fault::HEADER_TYPE)?;
    }
    let kid = header.get("kid").and_then(Value::as_str);
    if kid.is_some_and(|kid| !is_kid(kid)) {
        refusals.refuse(fault::KID_FORM)?;
    }
    Ok(Header { alg, kid })
}

/// HD-3: `HS256` and its kin, however they are spelled.
fn starts_with_hs(name: &str) -> bool {
    name.get(..2)
        .is_some_and(|head| head.eq_ignore_ascii_case("hs"))
}

/// The rules of the chosen issuer.
pub(super) fn judge_for<R: Refusals>(
    header: &Value,
    read: &Header<'_>,
    payload: &Value,
    config: &IssuerConfig,
    refusals: &mut R,
) -> Result<(), TokenFault> {
    if !read.alg.is_some_and(|alg| config.algorithms.contains(&alg)) {
        refusals.refuse(fault::ALG_NOT_LISTED)?;
    }
    let members = header.as_object().unwrap_or_default();
    let known = |only: &[&str]| members.iter().all(|(name, _)| only.contains(&&**name));
    if !config.profile.rules().header.is_none_or(known) {
        refusals.refuse(fault::HEADER_MEMBER)?;
    }
    let typ = header.get("typ").and_then(Value::as_str);
    if !config.typ.iter().any(|accepted| accepts(*accepted, typ)) {
        refusals.refuse(fault::TYP)?;
    }
    if read.kid.is_none() && !config.allow_missing_kid {
        refusals.refuse(fault::KID_MISSING)?;
    }
    let carried = |(name, ignored): &(&str, IgnoredHeader)| {
        header.get(name).is_some() && !config.ignore_header.contains(ignored)
    };
    if KEYS.iter().any(carried) {
        refusals.refuse(fault::KEY_IN_HEADER)?;
    }
    let differs = |name: &&str| {
        header
            .get(name)
            .is_some_and(|v| payload.get(name) != Some(v))
    };
    if REPLICATED.iter().any(differs) {
        refusals.refuse(fault::REPLICATED_CLAIM)?;
    }
    Ok(())
}

/// HD-5: without letter case, without parameters; always an allow-list.
fn accepts(accepted: Typ, typ: Option<&str>) -> bool {
    let is = |name: &str| typ.is_some_and(|typ| typ.eq_ignore_ascii_case(name));
    match accepted {
        Typ::AtJwt => is("at+jwt") || is("application/at+jwt"),
        Typ::Jwt => is("JWT"),
        Typ::Jose => is("JOSE"),
        Typ::Absent => typ.is_none(),
    }
}
