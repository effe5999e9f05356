//! Key files, of issuers and of agents' cards: reading them, and what an operator should know.

use super::capture::{Capture, Content};
use super::document;
use crate::identity::Issuers;
use crate::identity::accept::KeyNote;
use crate::identity::issuer::IssuerConfig;
use crate::identity::keys::{EntryNote, KeySetFault, Unusable};
use crate::source::{Value, codes};
use std::sync::Arc;

/// The bytes of the key file whose path stands at `file`. `danger` is what whoever can write it may
/// do.
pub(super) fn content<'c>(
    file: &Value<'_, '_>,
    capture: &'c Capture,
    danger: &str,
) -> Option<&'c [u8]> {
    let Content {
        bytes,
        world_writable,
    } = capture.files.get(&capture.resolve(file.text()?))?;
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(why) => {
            file.error(
                codes::KEY_FILE,
                format!("the key file cannot be read: {why}"),
                "paths are relative to the gateway file; check the permissions too",
            );
            return None;
        }
    };
    if *world_writable {
        file.error(
            codes::KEY_FILE,
            "every user of this machine may write the key file",
            format!("run `chmod o-w` on it; whoever can write it can {danger}"),
        );
    }
    Some(bytes)
}

/// Reports a key file that holds no key set.
pub(super) fn no_key_set(file: &Value<'_, '_>, fault: &KeySetFault) {
    file.error(
        codes::KEY_SET,
        format!("the key file holds no JWKS that can be used: {fault}"),
        "it is an object with an array `keys` of at most 64 public keys (RFC 7517); a PEM file or a single key will not do",
    );
}

/// Warns of a key that is not used. `private` and `other` say what follows for a private key and
/// for any other.
pub(super) fn unused(file: &Value<'_, '_>, note: &EntryNote, private: &str, other: &str) {
    let (number, rule) = (note.position + 1, note.why.rule());
    let message = format!("key {number} of the file {} ({rule})", note.why);
    let (code, hint) = match note.why {
        Unusable::Private => (codes::PRIVATE_KEY, private),
        Unusable::Form
        | Unusable::Kind
        | Unusable::Symmetric
        | Unusable::Purpose
        | Unusable::Algorithm
        | Unusable::Rsa
        | Unusable::Point
        | Unusable::Ed25519
        | Unusable::Ambiguous => (codes::KEY_UNUSABLE, other),
    };
    file.warn(code, message, hint);
}

/// Reads the key file of every entry that has one with the parser that tokens are judged with, and
/// reports at its name; `places` are the entries' `keys`. A document that cannot be used is an
/// error; a key that is not used is a warning, for the others go on (KY-3).
pub(super) fn check(configs: &[Arc<IssuerConfig>], places: &[Value<'_, '_>]) {
    let files: Vec<_> = places
        .iter()
        .map(|keys| keys.fields(&document::KEYS)?.get("file"))
        .collect();
    let place = |issuer: usize| files.get(issuer).and_then(Option::as_ref);
    let (_, notes) = Issuers::compile(configs);
    for note in notes {
        match note {
            KeyNote::Document { issuer, fault } => {
                let blank = configs
                    .get(issuer)
                    .and_then(|c| c.keys.file())
                    .is_none_or(|file| file.content.iter().all(u8::is_ascii_whitespace));
                // An empty file has been told already.
                if let (Some(file), false) = (place(issuer), blank) {
                    no_key_set(file, &fault);
                }
            }
            KeyNote::Entry { issuer, note } => {
                if let Some(file) = place(issuer) {
                    unused(
                        file,
                        &note,
                        "it is not used; treat the key as stolen: replace it at the issuer, and publish public keys only",
                        "tokens of this key are refused; the other keys of the file are used",
                    );
                }
            }
            KeyNote::NoKey { issuer } => {
                if let Some(file) = place(issuer) {
                    file.warn(
                        codes::NO_KEY,
                        "no key of the file can be used: every token of this issuer is refused",
                        "put the issuer's present JWKS in it",
                    );
                }
            }
            KeyNote::Shared { issuer, other } => {
                let first = configs.get(issuer).map_or("", |c| &c.name);
                if let Some(file) = place(other) {
                    file.warn(
                        codes::SHARED_KEY,
                        format!("issuer `{first}` has a key of this file too"),
                        "whoever holds that key can speak for both issuers; give each its own",
                    );
                }
            }
        }
    }
}
