//! `revocation`: the denylist's files, and where entries of operators are kept.

use super::capture::{Capture, Content};
use super::document;
use super::issuers::instant;
use super::snapshot::Revocation;
use crate::identity::issuer::IssuerConfig;
use crate::identity::{Denial, Denied};
use crate::source::tree::clip;
use crate::source::{Document, Kind, Mapping, Problem, Problems, Value, Walker, codes};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::path::Path;
use std::sync::Arc;

/// Longest name in characters, as in tokens (CL-7, CL-8).
const MAX_NAME: usize = 255;

/// Reads the settings and the files that they name. An entry for an issuer that is not configured
/// is an error: a slip of the pen would revoke nothing.
pub(super) fn read(
    value: &Value<'_, '_>,
    capture: &Capture,
    issuers: &[Arc<IssuerConfig>],
) -> (Revocation, Problems) {
    let mut problems = Problems::default();
    let Some(fields) = value.fields(&document::REVOCATION) else {
        return (Revocation::default(), problems);
    };
    let mut listed = Vec::new();
    let files = fields.get("files").and_then(|v| v.texts());
    for (place, file) in files.unwrap_or_default() {
        let path = capture.resolve(file);
        if let Some(content) = capture.files.get(&path)
            && let Some(document) = parse(&place, &path, content, &mut problems)
        {
            let walker = Walker::new(&document);
            listed.extend(entries(&walker.root(), issuers));
            problems.extend(walker.into_problems());
        }
    }
    let state = fields
        .get("state")
        .and_then(|v| v.text().map(str::to_owned));
    let revocation = Revocation {
        listed: listed.into(),
        state: state.map(|state| capture.resolve(&state)),
    };
    (revocation, problems)
}

fn parse(
    place: &Value<'_, '_>,
    path: &Path,
    content: &Content,
    problems: &mut Problems,
) -> Option<Document> {
    let name = path.display().to_string();
    let bytes = match &content.bytes {
        Ok(bytes) => bytes,
        Err(why) => {
            place.error(
                codes::UNREADABLE,
                format!("the denylist `{name}` cannot be read: {why}"),
                "without it what is revoked would be accepted; paths are relative to the gateway file",
            );
            return None;
        }
    };
    if content.world_writable {
        place.error(
            codes::DENYLIST,
            "every user of this machine may write the denylist",
            "run `chmod o-w` on it; whoever can write it can take revocations back",
        );
    }
    let parsed = match std::str::from_utf8(bytes) {
        Ok(text) if text.trim().is_empty() => Err(Problems(vec![
            Problem::of_file(name, codes::EMPTY, "the file is empty")
                .hint("an empty file never replaces a denylist; write `revoked: []` when nothing is revoked"),
        ])),
        Ok(text) => Document::parse(&name, text),
        Err(_) => Err(Problems(vec![
            Problem::of_file(name, codes::NOT_UTF8, "not UTF-8 text").hint("save the file as UTF-8"),
        ])),
    };
    parsed.map_err(|found| problems.extend(found)).ok()
}

fn entries(root: &Value<'_, '_>, issuers: &[Arc<IssuerConfig>]) -> Vec<Denial> {
    let Some(fields) = root.fields(&document::DENYLIST) else {
        return Vec::new();
    };
    if let Some(version) = fields.get("version") {
        version.integer(1..=1);
    }
    let Some(revoked) = fields.get("revoked") else {
        return Vec::new();
    };
    if matches!(&revoked.node.kind, Kind::Seq(items) if items.is_empty()) {
        return Vec::new();
    }
    let entries = revoked.list().unwrap_or_default();
    entries.iter().filter_map(|v| entry(v, issuers)).collect()
}

fn entry(value: &Value<'_, '_>, issuers: &[Arc<IssuerConfig>]) -> Option<Denial> {
    let fields = value.fields(&document::DENIAL)?;
    const KINDS: [&str; 6] = ["jti", "sub", "client_id", "sid", "key", "signing_input"];
    let named: Vec<&str> = KINDS.into_iter().filter(|kind| fields.has(kind)).collect();
    let &[kind] = named.as_slice() else {
        value.error(
            codes::DENYLIST,
            "an entry has exactly one of `jti`, `sub`, `client_id`, `sid`, `key` and `signing_input`",
            "write one entry for each thing that is revoked",
        );
        return None;
    };
    let until = fields.get("until").and_then(|v| instant(&v));
    if let Some(note) = fields.get("note") {
        note.text();
    }
    let for_itself = ["key", "signing_input"].contains(&kind);
    let issuer = issuer(value, &fields, issuers, for_itself);
    let place = fields.get(kind)?;
    if kind != "sub"
        && let Some(cutoff) = fields.get("issued_before")
    {
        cutoff.error(
            codes::DENYLIST,
            format!("`issued_before` does not go with `{kind}`"),
            "it belongs to `sub`",
        );
    }
    let denied = match kind {
        "key" => Denied::Key(thumbprint(&place)?),
        "signing_input" => Denied::SigningInput(hash(&place)?),
        _ => {
            let (issuer, name) = (issuer?, name(&place)?);
            match kind {
                "jti" => Denied::Token { issuer, id: name },
                "client_id" => Denied::Client {
                    issuer,
                    client: name,
                },
                "sid" => Denied::Session {
                    issuer,
                    session: name,
                },
                _ => {
                    let cutoff = fields.get("issued_before");
                    let issued_before = match &cutoff {
                        Some(value) => Some(instant(value)?),
                        None => None,
                    };
                    Denied::Subject {
                        issuer,
                        subject: name,
                        issued_before,
                    }
                }
            }
        }
    };
    Some(Denial { denied, until })
}

fn issuer(
    entry: &Value<'_, '_>,
    fields: &Mapping<'_, '_>,
    issuers: &[Arc<IssuerConfig>],
    for_itself: bool,
) -> Option<Box<str>> {
    let Some(value) = fields.get("issuer") else {
        if !for_itself {
            entry.error(
                codes::MISSING_FIELD,
                "`issuer` is missing",
                "name the issuer entry: a `sub` or `jti` means nothing without it",
            );
        }
        return None;
    };
    let name = value.text()?;
    if for_itself {
        value.error(
            codes::DENYLIST,
            "`issuer` does not go with a key or a signing input",
            "take it out: they stand for themselves, whoever publishes them",
        );
        return None;
    }
    let known = issuers.iter().any(|issuer| *issuer.name == *name);
    if !known {
        let names: Vec<&str> = issuers.iter().map(|issuer| &*issuer.name).collect();
        value.error(
            codes::UNKNOWN_ISSUER,
            format!("no issuer entry is called `{}`", clip(name)),
            format!("the entries are: {}", names.join(", ")),
        );
    }
    known.then(|| name.into())
}

fn name(value: &Value<'_, '_>) -> Option<Box<str>> {
    let text = value.text()?;
    if text.is_empty() || text.chars().nth(MAX_NAME).is_some() {
        value.error(
            codes::OUT_OF_RANGE,
            "a name has 1 to 255 characters",
            "write it exactly as it stands in the token",
        );
        return None;
    }
    Some(text.into())
}

fn thumbprint(value: &Value<'_, '_>) -> Option<[u8; 32]> {
    let read = read_thumbprint(value.text()?);
    if read.is_none() {
        value.error(
            codes::DENYLIST,
            "not a thumbprint of a key",
            "write the RFC 7638 SHA-256 thumbprint: 43 characters of base64url",
        );
    }
    read
}

fn hash(value: &Value<'_, '_>) -> Option<[u8; 32]> {
    let read = read_hash(value.text()?);
    if read.is_none() {
        value.error(
            codes::DENYLIST,
            "not the SHA-256 of a signing input",
            "write 64 hexadecimal digits: the hash of the token up to its last dot, without that dot",
        );
    }
    read
}

/// An RFC 7638 SHA-256 thumbprint in base64url.
pub fn read_thumbprint(text: &str) -> Option<[u8; 32]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

/// A SHA-256 in hexadecimal digits.
pub fn read_hash(text: &str) -> Option<[u8; 32]> {
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
        for digit in pair {
            let value = char::from(*digit).to_digit(16)?;
            *byte = *byte << 4 | u8::try_from(value).ok()?;
        }
    }
    Some(hash)
}
