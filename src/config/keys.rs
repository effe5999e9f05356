//! What an operator should know about the key files of issuers.

use super::document;
use crate::identity::Issuers;
use crate::identity::accept::KeyNote;
use crate::identity::issuer::IssuerConfig;
use crate::identity::keys::Unusable;
use crate::source::{Value, codes};
use std::sync::Arc;

/// Reads the key file of every entry that has one with the parser that tokens are judged with, and
/// reports at its name; `places` are the entries' `keys`. A document that cannot be used is an error; a key that is not
/// used is a warning, for the others go on (KY-3).
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
                    file.error(
                        codes::KEY_SET,
                        format!("the key file holds no JWKS that can be used: {fault}"),
                        "it is an object with an array `keys` of at most 64 public keys (RFC 7517); a PEM file or a single key will not do",
                    );
                }
            }
            KeyNote::Entry { issuer, note } => {
                let Some(file) = place(issuer) else {
                    continue;
                };
                let (number, rule) = (note.position + 1, note.why.rule());
                let message = format!("key {number} of the file {} ({rule})", note.why);
                match note.why {
                    Unusable::Private => file.warn(
                        codes::PRIVATE_KEY,
                        message,
                        "it is not used; treat the key as stolen: replace it at the issuer, and publish public keys only",
                    ),
                    Unusable::Form
                    | Unusable::Kind
                    | Unusable::Symmetric
                    | Unusable::Purpose
                    | Unusable::Algorithm
                    | Unusable::Rsa
                    | Unusable::Point
                    | Unusable::Ed25519
                    | Unusable::Ambiguous => file.warn(
                        codes::KEY_UNUSABLE,
                        message,
                        "tokens of this key are refused; the other keys of the file are used",
                    ),
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
