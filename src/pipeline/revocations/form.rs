//! Entries as JSON: in the file that keeps them, and in the admin API.

use super::{Added, last_token};
use crate::a2a::strict_json::Value;
use crate::config::revocation::{read_hash, read_thumbprint};
use crate::identity::issuer::IssuerConfig;
use crate::identity::{Denial, Denied};
use crate::source::instant::parse_instant;
use crate::source::tree::clip;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

/// Longest name in characters, as in tokens (CL-7, CL-8).
const MAX_NAME: usize = 255;
/// Largest instant (CL-14): the last second of the year 9999.
const LAST_INSTANT: i64 = 253_402_300_799;
const KINDS: [&str; 6] = Denied::KINDS;
/// What may stand in an order of an operator.
const ORDER: [&str; 10] = [
    "issuer",
    "jti",
    "sub",
    "client_id",
    "sid",
    "key",
    "signing_input",
    "issued_before",
    "until",
    "note",
];

/// What an entry is called: it follows from what it revokes, so the same order twice is one entry.
pub fn id(denied: &Denied) -> String {
    let text = Json::Object(members(denied)).to_string();
    let hash = digest(&SHA256, text.as_bytes());
    hex(hash.as_ref().get(..8).unwrap_or_default())
}

/// The entry as the file keeps it.
pub fn stored(added: &Added) -> Json {
    let mut members = members(&added.denial.denied);
    let mut put = |name: &str, value: Option<Json>| {
        if let Some(value) = value {
            members.insert(name.to_owned(), value);
        }
    };
    put("iss", added.iss.as_deref().map(Json::from));
    put("added", Some(added.added.into()));
    put("until", added.denial.until.map(Json::from));
    put("note", added.note.as_deref().map(Json::from));
    Json::Object(members)
}

/// The entry as operators see it: with its name, where it comes from, and when it ends.
pub fn shown(denial: &Denial, added: Option<&Added>) -> Json {
    let mut whole = Map::new();
    whole.insert("id".to_owned(), id(&denial.denied).into());
    let source = if added.is_some() { "api" } else { "file" };
    whole.insert("source".to_owned(), source.into());
    whole.extend(members(&denial.denied));
    whole.insert("until".to_owned(), json!(denial.until));
    if let Some(added) = added {
        whole.insert("added".to_owned(), added.added.into());
        whole.extend(added.note.as_deref().map(|n| ("note".to_owned(), n.into())));
    }
    Json::Object(whole)
}

fn members(denied: &Denied) -> Map<String, Json> {
    let mut members = Map::new();
    let mut put = |name: &str, value: Json| {
        members.insert(name.to_owned(), value);
    };
    if let Some(issuer) = denied.issuer() {
        put("issuer", issuer.into());
    }
    match denied {
        Denied::Token { id, .. } => put("jti", (**id).into()),
        Denied::Subject {
            subject,
            issued_before,
            ..
        } => {
            put("sub", (**subject).into());
            if let Some(cutoff) = issued_before {
                put("issued_before", (*cutoff).into());
            }
        }
        Denied::Client { client, .. } => put("client_id", (**client).into()),
        Denied::Session { session, .. } => put("sid", (**session).into()),
        Denied::Key(print) => put("key", URL_SAFE_NO_PAD.encode(print).into()),
        Denied::SigningInput(hash) => put("signing_input", hex(hash).into()),
    }
    members
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads an operator's order. Without `until`, what ends with the tokens that exist now ends then;
/// the rest stays. `now` is in seconds since the epoch.
///
/// # Errors
/// What is wrong with it, for the operator.
pub fn read_order(value: &Value, issuers: &[Arc<IssuerConfig>], now: i64) -> Result<Added, String> {
    let members = value.as_object().ok_or("the body is no JSON object")?;
    if let Some((name, _)) = members.iter().find(|(name, _)| !ORDER.contains(&&**name)) {
        let known = ORDER.join("`, `");
        return Err(format!(
            "unknown member `{}`; known are `{known}`",
            clip(name)
        ));
    }
    let denied = read_denied(value)?;
    let issuer = match denied.issuer() {
        Some(name) => {
            let found = issuers.iter().find(|issuer| *issuer.name == *name);
            Some(found.ok_or_else(|| {
                let names: Vec<&str> = issuers.iter().map(|issuer| &*issuer.name).collect();
                let names = names.join("`, `");
                format!(
                    "no issuer entry is called `{}`; there are `{names}`",
                    clip(name)
                )
            })?)
        }
        None => None,
    };
    let until = match instant(value, "until")? {
        Some(until) if until <= now => return Err("`until` has passed already".to_owned()),
        Some(until) => Some(until),
        None if denied.ends_with_tokens() => {
            let from = match &denied {
                Denied::Subject {
                    issued_before: Some(cutoff),
                    ..
                } => now.max(*cutoff),
                _ => now,
            };
            let last = |issuer: &Arc<IssuerConfig>| last_token(issuer, from);
            match issuer {
                Some(issuer) => Some(last(issuer)),
                None => issuers.iter().map(last).max(),
            }
        }
        None => None,
    };
    let note = match value.get("note") {
        None => None,
        Some(note) => {
            let text = note.as_str().ok_or("`note` is no string")?;
            if text.chars().nth(MAX_NAME).is_some() || text.chars().any(char::is_control) {
                return Err("`note` has more than 255 characters, or control characters".to_owned());
            }
            Some(text.into())
        }
    };
    Ok(Added {
        denial: Denial { denied, until },
        iss: issuer.map(|issuer| issuer.issuer.clone()),
        added: now,
        note,
    })
}

/// Reads an entry as the file keeps it.
///
/// # Errors
/// What is wrong with it.
pub fn read_stored(value: &Value) -> Result<Added, String> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(Box::from);
    Ok(Added {
        denial: Denial {
            denied: read_denied(value)?,
            until: instant(value, "until")?,
        },
        iss: text("iss"),
        added: instant(value, "added")?.ok_or("`added` is missing")?,
        note: text("note"),
    })
}

fn read_denied(value: &Value) -> Result<Denied, String> {
    let named: Vec<&str> = KINDS
        .into_iter()
        .filter(|kind| value.get(kind).is_some())
        .collect();
    let &[kind] = named.as_slice() else {
        let kinds = KINDS.join("`, `");
        return Err(format!("exactly one of `{kinds}` is needed"));
    };
    let name = |member: &str| -> Result<Box<str>, String> {
        let text = value.get(member).and_then(Value::as_str);
        let good = |text: &&str| !text.is_empty() && text.chars().nth(MAX_NAME).is_none();
        text.filter(good)
            .map(Box::from)
            .ok_or(format!("`{member}` is no string of 1 to 255 characters"))
    };
    if kind != "sub" && value.get("issued_before").is_some() {
        return Err(format!("`issued_before` does not go with `{kind}`"));
    }
    let for_itself = ["key", "signing_input"].contains(&kind);
    match (for_itself, value.get("issuer")) {
        (true, Some(_)) => return Err(format!("`issuer` does not go with `{kind}`")),
        (false, None) => return Err("`issuer` is missing: the name of its entry".to_owned()),
        (true, None) | (false, Some(_)) => {}
    }
    Ok(match kind {
        "key" => Denied::Key(
            read_thumbprint(&name(kind)?)
                .ok_or("`key` is no RFC 7638 thumbprint: 43 characters of base64url")?,
        ),
        "signing_input" => Denied::SigningInput(
            read_hash(&name(kind)?)
                .ok_or("`signing_input` is no SHA-256: 64 hexadecimal digits")?,
        ),
        "jti" => Denied::Token {
            issuer: name("issuer")?,
            id: name(kind)?,
        },
        "client_id" => Denied::Client {
            issuer: name("issuer")?,
            client: name(kind)?,
        },
        "sid" => Denied::Session {
            issuer: name("issuer")?,
            session: name(kind)?,
        },
        _ => Denied::Subject {
            issuer: name("issuer")?,
            subject: name(kind)?,
            issued_before: instant(value, "issued_before")?,
        },
    })
}

/// RFC 3339, or whole seconds since the epoch.
fn instant(value: &Value, member: &str) -> Result<Option<i64>, String> {
    let instant = match value.get(member) {
        None => return Ok(None),
        Some(Value::Number(number)) => number.parse().ok(),
        Some(Value::String(text)) => parse_instant(text),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => None,
    };
    instant
        .filter(|instant| (0..=LAST_INSTANT).contains(instant))
        .map(Some)
        .ok_or(format!(
            "`{member}` is no instant: write RFC 3339, `2027-01-31T00:00:00Z`, or whole seconds since 1970"
        ))
}
