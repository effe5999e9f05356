//! Real tokens of described callers.

use crate::a2a::strict_json::Value as Json;
use crate::adapters::random::SystemRandom;
use crate::cli::dev_issuer::DevIssuer;
use crate::identity::issuer::{GrantForm, GrantMark, IssuerConfig, Typ};
use crate::identity::trial::marked;
use crate::pipeline::ports::{Owner, Random};
use crate::policy::trial::Caller;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// What a caller shows.
pub(super) struct Credential {
    pub(super) token: String,
    /// Whether it is bound to a key, so that a proof goes with it.
    pub(super) bound: bool,
    /// Whether the proof must have a nonce.
    pub(super) nonce: bool,
    /// Whom the caller's tasks belong to, where that is known.
    pub(super) owner: Option<Owner>,
}

/// The payload of a test with what only a real token has: a name of its own, a mark for its grant,
/// and the key of whoever holds it, whose thumbprint is `holder`.
///
/// # Errors
/// Why such a token cannot be made here.
pub(super) fn payload(
    caller: &Caller,
    config: &IssuerConfig,
    holder: &str,
) -> Result<Json, String> {
    let mut payload = caller.payload.clone();
    let stated = |claim: &str| caller.claims.get(claim).is_some();
    if let Some(cnf) = payload.get("cnf") {
        if cnf.get("x5t#S256").is_some() {
            return Err(
                "its token is bound to a client certificate, and there is no TLS here".to_owned(),
            );
        }
        match cnf.get("jkt").map(Json::as_str) {
            Some(_) if !stated("cnf") => {
                put(
                    &mut payload,
                    "cnf",
                    object("jkt", Json::String(holder.into())),
                );
            }
            Some(Some(_)) => {
                return Err("its claims bind it to a key that is not here".to_owned());
            }
            Some(None) | None => {}
        }
    }
    let rules = config.profile.rules();
    let names = rules.token_id.claims;
    if let (Some(name), false) = (names.first(), names.iter().any(|name| stated(name))) {
        for name in names {
            remove(&mut payload, name);
        }
        let mut id = [0; 16];
        SystemRandom.fill(&mut id);
        put(
            &mut payload,
            name,
            Json::String(URL_SAFE_NO_PAD.encode(id).into()),
        );
    }
    let Some(grant) = caller
        .grant
        .filter(|_| marked(&caller.claims, config).is_none())
    else {
        return Ok(payload);
    };
    let mut marks: Vec<(&GrantMark, &str)> = config
        .grants
        .iter()
        .filter_map(|mark| {
            let value = mark.map.iter().find(|(_, worth)| *worth == grant);
            value.map(|(value, _)| (mark, &**value))
        })
        .collect();
    // A mark where policy also looks would change what the test is about.
    marks.sort_by_key(|(mark, _)| config.claims.iter().any(|claim| claim.path == mark.path));
    for (mark, value) in marks {
        if let Some(with) = with_mark(&payload, &mark.path, mark.form, value) {
            return Ok(with);
        }
    }
    Err("no claim of its issuer's tokens can say its grant".to_owned())
}

/// Whether the token is bound to a key.
pub(super) fn is_bound(payload: &Json) -> bool {
    payload
        .get("cnf")
        .is_some_and(|cnf| cnf.get("jkt").is_some())
}

/// The JOSE header of a token of this entry.
pub(super) fn header(key: &DevIssuer, config: &IssuerConfig) -> Value {
    let mut header = json!({ "alg": key.algorithm().name(), "kid": key.kid() });
    match config.typ.first() {
        Some(Typ::AtJwt) => header["typ"] = json!("at+jwt"),
        Some(Typ::Jwt) => header["typ"] = json!("JWT"),
        Some(Typ::Jose) => header["typ"] = json!("JOSE"),
        Some(Typ::Absent) | None => {}
    }
    header
}

/// The payload with a grant's mark; `None` where something of another type is in its place.
fn with_mark(payload: &Json, path: &[Box<str>], form: GrantForm, value: &str) -> Option<Json> {
    let (name, below) = path.split_first()?;
    let mut with = payload.clone();
    let there = payload.get(name);
    let text = || Json::String(value.into());
    let marked = match (below, there, form) {
        ([_, ..], there, _) => {
            let empty = Json::Object(Vec::new());
            let inner = there.unwrap_or(&empty);
            inner.as_object()?;
            with_mark(inner, below, form, value)?
        }
        ([], None, GrantForm::SpaceString) => text(),
        ([], None, GrantForm::StringArray | GrantForm::Either) => Json::Array(vec![text()]),
        ([], Some(Json::String(words)), GrantForm::SpaceString) if words.is_empty() => text(),
        ([], Some(Json::String(words)), GrantForm::SpaceString) => {
            Json::String(format!("{words} {value}").into())
        }
        ([], Some(Json::Array(items)), GrantForm::StringArray | GrantForm::Either) => {
            Json::Array(items.iter().cloned().chain([text()]).collect())
        }
        ([], Some(_), _) => return None,
    };
    put(&mut with, name, marked);
    Some(with)
}

fn object(name: &str, value: Json) -> Json {
    Json::Object(vec![(name.into(), value)])
}

fn put(object: &mut Json, name: &str, value: Json) {
    if let Json::Object(members) = object {
        match members.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, there)) => *there = value,
            None => members.push((name.into(), value)),
        }
    }
}

fn remove(object: &mut Json, name: &str) {
    if let Json::Object(members) = object {
        members.retain(|(known, _)| **known != *name);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::a2a::strict_json::parse_value;

    #[test]
    fn a_mark_joins_what_is_there_and_replaces_nothing() {
        let path: Vec<Box<str>> = vec!["a".into(), "b".into()];
        let cases = [
            ("{}", GrantForm::SpaceString, Some(r#"{"a":{"b":"x"}}"#)),
            (
                r#"{"a":{"b":"y"}}"#,
                GrantForm::SpaceString,
                Some(r#"{"a":{"b":"y x"}}"#),
            ),
            (
                r#"{"a":{"b":""}}"#,
                GrantForm::SpaceString,
                Some(r#"{"a":{"b":"x"}}"#),
            ),
            (
                r#"{"a":{"b":["y"]}}"#,
                GrantForm::StringArray,
                Some(r#"{"a":{"b":["y","x"]}}"#),
            ),
            (
                r#"{"a":{"c":1}}"#,
                GrantForm::Either,
                Some(r#"{"a":{"c":1,"b":["x"]}}"#),
            ),
            (r#"{"a":{"b":["y"]}}"#, GrantForm::SpaceString, None),
            (r#"{"a":{"b":"y"}}"#, GrantForm::StringArray, None),
            (r#"{"a":1}"#, GrantForm::SpaceString, None),
        ];
        for (before, form, after) in cases {
            let payload = parse_value(before.as_bytes(), 8).unwrap();
            let found = with_mark(&payload, &path, form, "x").map(|p| p.to_string());
            assert_eq!(found.as_deref(), after, "{before}");
        }
    }
}
