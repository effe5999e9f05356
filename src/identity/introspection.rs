//! What an issuer answers about a token (RV-3): RFC 7662, and signed as in RFC 9701.
//!
//! It can only take away: the token was verified before, and what the answer says of it must agree
//! with what stands in it.

use super::accept::{Entry, First, Issuers, key};
use super::claims::{self, Round, numeric_date};
use super::fault::{self, TokenFault};
use super::token::Token;
use super::{Principal, header};
use crate::a2a::strict_json::{Value, parse_value};

const DEPTH: usize = 16;
/// How old a signed answer may be, beside the leeway, in seconds: it was made for our question.
const FRESH: i64 = 60;

/// Judges an answer as JSON; until which second since the epoch it may be relied on.
///
/// # Errors
/// It is no JSON object; the token is not active; or it speaks of another token.
pub fn judge_plain(
    body: &[u8],
    issuers: &Issuers,
    principal: &Principal,
    now: i64,
) -> Result<i64, TokenFault> {
    let answer = parse_value(body, DEPTH).map_err(|_| fault::INTROSPECTION_FAILED)?;
    let entry = asked(issuers, principal)?;
    judge(&answer, &entry.config.issuer, principal, now)
}

/// Judges a signed answer. `audience` is what the issuer calls us: our client id.
///
/// # Errors
/// As for [`judge_plain`]; and it is not signed by the issuer of the token, for us, now.
pub fn judge_signed(
    body: &[u8],
    issuers: &Issuers,
    principal: &Principal,
    audience: &str,
    now: i64,
) -> Result<i64, TokenFault> {
    let failed = fault::INTROSPECTION_FAILED;
    let text = std::str::from_utf8(body).map_err(|_| failed)?;
    let token = Token::parse(text.trim_ascii()).map_err(|_| failed)?;
    let typ = token.header.get("typ").and_then(Value::as_str);
    let is = |name: &str| typ.is_some_and(|typ| typ.eq_ignore_ascii_case(name));
    if !is("token-introspection+jwt") && !is("application/token-introspection+jwt") {
        return Err(failed);
    }
    let entry = asked(issuers, principal)?;
    let iss = &*entry.config.issuer;
    let read = header::judge(&token.header, &mut First).map_err(|_| failed)?;
    let listed = read
        .alg
        .is_some_and(|alg| entry.config.algorithms.contains(&alg));
    let keys = entry.keys.current();
    let key = key(keys.as_deref(), &read).map_err(|_| failed)?;
    if !listed || !key.verifies(token.signing_input.as_bytes(), &token.signature) {
        return Err(failed);
    }
    let payload = &token.payload;
    let for_us = match payload.get("aud") {
        Some(Value::String(aud)) => **aud == *audience,
        Some(Value::Array(auds)) => auds.iter().any(|aud| aud.as_str() == Some(audience)),
        Some(_) | None => false,
    };
    let tolerance = claims::leeway(&entry.config).saturating_add(FRESH);
    let issued = date(payload, "iat")?.ok_or(failed)?;
    let fresh = issued.abs_diff(now) <= tolerance.unsigned_abs();
    let over = date(payload, "exp")?.is_some_and(|end| now >= end);
    if payload.get("iss").and_then(Value::as_str) != Some(iss) || !for_us || !fresh || over {
        return Err(failed);
    }
    let answer = payload.get("token_introspection").ok_or(failed)?;
    judge(answer, iss, principal, now)
}

/// The entry of the token's issuer: nobody else's answer counts (IS-2).
fn asked<'i>(issuers: &'i Issuers, principal: &Principal) -> Result<&'i Entry, TokenFault> {
    issuers
        .entry(principal.issuer_index)
        .filter(|entry| entry.name == principal.issuer)
        .ok_or(fault::INTROSPECTION_FAILED)
}

fn judge(answer: &Value, iss: &str, principal: &Principal, now: i64) -> Result<i64, TokenFault> {
    if answer.as_object().is_none() {
        return Err(fault::INTROSPECTION_FAILED);
    }
    // Anything but the boolean is no yes.
    if answer.get("active").and_then(Value::as_bool) != Some(true) {
        return Err(fault::TOKEN_INACTIVE);
    }
    // Members are optional (RFC 7662 section 2.2); one that is there and differs is about another
    // token.
    let differs = |member: &str, ours: Option<&str>| match answer.get(member) {
        None => false,
        Some(theirs) => ours.is_some() && theirs.as_str() != ours,
    };
    if differs("iss", Some(iss))
        || differs("sub", Some(&principal.subject))
        || differs("jti", principal.token_id.as_deref())
        || differs("client_id", principal.client.as_deref())
    {
        return Err(fault::INTROSPECTION_DIFFERS);
    }
    match date(answer, "exp")? {
        Some(end) if now >= end => Err(fault::TOKEN_INACTIVE),
        Some(end) => Ok(end.min(principal.expires)),
        None => Ok(principal.expires),
    }
}

fn date(from: &Value, member: &str) -> Result<Option<i64>, TokenFault> {
    let Some(value) = from.get(member) else {
        return Ok(None);
    };
    let date = value.as_number().and_then(|n| numeric_date(n, Round::Down));
    date.map(Some).ok_or(fault::INTROSPECTION_FAILED)
}
