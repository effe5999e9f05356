//! What is expected of an agent's card, and what is published of it.

use super::capture::Capture;
use super::check::words;
use super::snapshot::{SigningKeys, Verify};
use super::{document, keys, skills};
use crate::identity::issuer::Algorithm;
use crate::identity::keys::KeySet;
use crate::source::{Kind, Mapping, Value, codes};
use std::sync::Arc;

/// `keys`: where our own private keys are.
pub(super) fn signing_keys(value: &Value<'_, '_>, capture: &Capture) -> SigningKeys {
    let path = |v: Value<'_, '_>| v.text().map(|text| capture.resolve(text));
    let Some(fields) = value.fields(&document::SIGNING_KEYS) else {
        return SigningKeys::default();
    };
    let file = |name| {
        let key = fields.get(name)?;
        key.fields(&document::OWN_KEY)?.get("file").and_then(path)
    };
    // Of a list, the first is in force.
    let mut fingerprints = match fields.get("fingerprint") {
        Some(list) if matches!(list.node.kind, Kind::Seq(_)) => {
            let each = list.list().unwrap_or_default().into_iter();
            let file =
                |key: Value<'_, '_>| key.fields(&document::OWN_KEY)?.get("file").and_then(path);
            each.filter_map(file).collect()
        }
        Some(_) | None => Vec::from_iter(file("fingerprint")),
    }
    .into_iter();
    let keys = SigningKeys {
        dir: fields.get("dir").and_then(path),
        card: file("card"),
        assertion: file("assertion"),
        checkpoint: file("checkpoint"),
        fingerprint: fingerprints.next(),
        older_fingerprints: fingerprints.collect(),
    };
    let named = [
        ("cards", &keys.card),
        ("assertions", &keys.assertion),
        ("checkpoints", &keys.checkpoint),
    ];
    for (at, (what, file)) in named.iter().enumerate() {
        let others = named.iter().skip(at + 1);
        for (other, _) in others.filter(|(_, other)| file.is_some() && file == other) {
            fields.whole().error(
                codes::BACKEND_IDENTITY,
                format!("{what} and {other} would be signed with one key"),
                "give each a key of its own, or name a `dir` in which they are made",
            );
        }
    }
    keys
}

/// Reports `sign: true` where there is no key to sign with.
pub(super) fn needs_key(agent: &Mapping<'_, '_>, keys: &SigningKeys) {
    let Some(sign) = agent.get("sign") else {
        return;
    };
    if sign.boolean() == Some(true) && keys.card_file().is_none() {
        sign.error(
            codes::MISSING_FIELD,
            "cards are to be signed, and no key for it is configured",
            "add `keys: {dir: state/keys}` to the gateway file; the key is made on the first start",
        );
    }
}

/// `agents[].verify`: whose signature an agent's card must or may have.
pub(super) fn verify(value: &Value<'_, '_>, capture: &Capture) -> Option<Verify> {
    let fields = value.fields(&document::VERIFY)?;
    let keys = fields.get("keys").map(|v| key_set(&v, capture));
    let key_sets = fields
        .get("jku")
        .map(|v| key_set_urls(&v))
        .unwrap_or_default();
    if keys.is_none() && !fields.has("jku") {
        fields.whole().error(
            codes::MISSING_FIELD,
            "nothing says whose signature counts",
            "name the agent's public keys with `keys: {file: card-keys.json}`",
        );
    }
    let algorithms = fields
        .get("algorithms")
        .map(|v| words(&v, &Algorithm::NAMES));
    Some(Verify {
        keys: Arc::new(keys.flatten().unwrap_or_default()),
        key_sets,
        required: fields
            .get("required")
            .and_then(|v| v.boolean())
            .unwrap_or(true),
        algorithms: algorithms.unwrap_or_else(|| Algorithm::DEFAULT.to_vec()),
    })
}

fn key_set(value: &Value<'_, '_>, capture: &Capture) -> Option<KeySet> {
    let file = value.fields(&document::OWN_KEY)?.get("file")?;
    let bytes = keys::content(&file, capture, "vouch for any card")?;
    let (set, notes) = match KeySet::parse(bytes, Algorithm::Rs256) {
        Ok(read) => read,
        Err(fault) => {
            keys::no_key_set(&file, &fault);
            return None;
        }
    };
    for note in notes {
        let hint = "signatures of this key do not count; the other keys of the file are used";
        keys::unused(&file, &note, hint, hint);
    }
    if set.keys().is_empty() {
        file.error(
            codes::NO_KEY,
            "no key of the file can be used: no signature would count",
            "put the public keys of whoever signs the agent's card in it",
        );
    }
    Some(set)
}

/// URLs of key sets that a signature may name: compared byte for byte and fetched by ourselves.
fn key_set_urls(value: &Value<'_, '_>) -> Vec<Box<str>> {
    let mut urls = Vec::new();
    for (place, text) in value.texts().unwrap_or_default() {
        let host = text.strip_prefix("https://").unwrap_or_default();
        let good = host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
            && text
                .bytes()
                .all(|b| b.is_ascii_graphic() && !matches!(b, b'\\' | b'#' | b'@'));
        if good {
            urls.push(text.into());
        } else {
            place.error(
                codes::BAD_URL,
                "not the URL of a key set that can be fetched",
                "write the whole `https://` URL, exactly as signatures name it in `jku`",
            );
        }
    }
    urls
}

/// `agents[].public_skills`: the skills that strangers see.
pub(super) fn public_skills(value: &Value<'_, '_>, skills: &[Box<str>]) -> Vec<Box<str>> {
    if matches!(value.node.kind, Kind::Str(_)) {
        value.word(&[("none", ())]);
        return Vec::new();
    }
    let mut shown = Vec::new();
    for (place, text) in value.texts().unwrap_or_default() {
        shown.push(text.into());
        skills::declared(&place, text, skills);
    }
    shown
}
