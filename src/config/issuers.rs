//! `issuers`: from the tree to [`IssuerConfig`].

mod claims;
mod instant;

use super::capture::Capture;
use super::check::{is_later, list_of, name_of, seconds, unique, words};
use super::{document, keys};
use crate::identity::issuer::{Algorithm, IgnoredHeader, IssuerConfig, KeyFile, Profile, Typ};
use crate::source::{Mapping, Value, codes};
use std::collections::HashMap;
use std::sync::Arc;

use claims::{claims, grants};
use instant::instant;

/// Longest `max_lifetime` in seconds (CL-6).
const MAX_LIFETIME: u64 = 86_400;
/// Longest `leeway` in seconds (CL-13).
const MAX_LEEWAY: u64 = 60;

const PROFILES: [(&str, Profile); 2] =
    [("strict", Profile::Strict), ("keycloak", Profile::Keycloak)];
const LATER_PROFILES: [&str; 5] = ["entra", "auth0", "okta", "cognito", "spiffe"];
const TYPS: [(&str, Typ); 4] = [
    ("JWT", Typ::Jwt),
    ("JOSE", Typ::Jose),
    ("at+jwt", Typ::AtJwt),
    ("absent", Typ::Absent),
];
const IGNORED: [(&str, IgnoredHeader); 4] = [
    ("jwk", IgnoredHeader::Jwk),
    ("jku", IgnoredHeader::Jku),
    ("x5u", IgnoredHeader::X5u),
    ("x5c", IgnoredHeader::X5c),
];

/// Reads all entries.
pub(super) fn read(value: &Value<'_, '_>, capture: &Capture) -> Vec<Arc<IssuerConfig>> {
    let mut names = HashMap::new();
    let mut issuers = HashMap::new();
    let mut read = Vec::new();
    let mut files = Vec::new();
    for entry in value.list().unwrap_or_default() {
        let Some(fields) = entry.fields(&document::ISSUER) else {
            continue;
        };
        if let Some(name) = fields.get("name") {
            unique(&mut names, &name, codes::DUPLICATE_NAME, "issuer entry");
        }
        if let Some(issuer) = fields.get("issuer") {
            unique(
                &mut issuers,
                &issuer,
                codes::DUPLICATE_ISSUER,
                "entry for issuer",
            );
        }
        let file = fields
            .get("keys")
            .and_then(|v| v.fields(&document::KEYS)?.get("file"));
        if let (Some(config), Some(file)) = (one(&fields, capture), file) {
            read.push(Arc::new(config));
            files.push(file);
        }
    }
    keys::check(&read, &files);
    read
}

fn one(fields: &Mapping<'_, '_>, capture: &Capture) -> Option<IssuerConfig> {
    let name = fields.get("name").and_then(|v| name_of(&v));
    let issuer = fields.get("issuer").and_then(|v| v.text().map(Box::from));
    let keys = fields.get("keys").and_then(|v| key_file(&v, capture));
    let profile = match fields.get("profile") {
        Some(value) if is_later(&value, &LATER_PROFILES, "use `strict` or `keycloak`") => None,
        Some(value) => value.word(&PROFILES),
        None => Some(Profile::Strict),
    };
    let clients = fields
        .get("clients")
        .map(|v| list_of(&v))
        .unwrap_or_default();
    let audiences = fields
        .get("audiences")
        .map(|v| list_of(&v))
        .unwrap_or_default();
    if !fields.has("audiences") && !fields.has("clients") {
        fields.whole().error(
            codes::MISSING_FIELD,
            "`audiences` is missing",
            "name the audience that tokens for this gateway carry; without one, a token for any other service would do",
        );
    }
    let (algorithms, rsa_alg) = algorithms(fields);
    let development = flag(fields, "development");
    if development {
        fields.whole().warn(
            codes::DEVELOPMENT_ISSUER,
            format!(
                "`{}` is a development issuer",
                name.as_deref().unwrap_or("?")
            ),
            "remove it before others can reach the gateway",
        );
    }
    let max_lifetime = fields
        .get("max_lifetime")
        .and_then(|v| seconds(&v, 1..=MAX_LIFETIME));
    let leeway = fields
        .get("leeway")
        .and_then(|v| seconds(&v, 0..=MAX_LEEWAY));
    let config = IssuerConfig {
        name: name.unwrap_or_default(),
        issuer: issuer.unwrap_or_default(),
        audiences,
        keys: keys?,
        profile: profile?,
        algorithms,
        rsa_alg,
        typ: typ(fields, profile?),
        max_lifetime: max_lifetime.unwrap_or(3600),
        leeway: leeway.unwrap_or(30),
        not_before: fields.get("not_before").and_then(|v| instant(&v)),
        clients,
        allow_missing_kid: flag(fields, "allow_missing_kid"),
        ignore_header: fields
            .get("ignore_header")
            .map(|v| words(&v, &IGNORED))
            .unwrap_or_default(),
        grants: fields.get("grants").map(|v| grants(&v)).unwrap_or_default(),
        claims: fields.get("claims").map(|v| claims(&v)).unwrap_or_default(),
        development,
    };
    Some(config)
}

fn flag(fields: &Mapping<'_, '_>, name: &str) -> bool {
    fields.get(name).and_then(|v| v.boolean()).unwrap_or(false)
}

fn key_file(value: &Value<'_, '_>, capture: &Capture) -> Option<KeyFile> {
    let fields = value.fields(&document::KEYS)?;
    let file = fields.get("file")?;
    let path = capture.resolve(file.text()?);
    let content = capture.files.get(&path)?;
    let bytes = match &content.bytes {
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
    if content.world_writable {
        file.error(
            codes::KEY_FILE,
            "every user of this machine may write the key file",
            "run `chmod o-w` on it; whoever can write it can admit anybody",
        );
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        file.error(
            codes::KEY_FILE,
            "the key file is empty",
            "put the issuer's JWKS in it",
        );
    }
    Some(KeyFile {
        path,
        content: bytes.as_slice().into(),
    })
}

fn algorithms(fields: &Mapping<'_, '_>) -> (Vec<Algorithm>, Algorithm) {
    let listed = fields
        .get("algorithms")
        .map(|v| words(&v, &Algorithm::NAMES));
    let rsa: Vec<(&str, Algorithm)> = Algorithm::NAMES
        .iter()
        .copied()
        .filter(|(_, a)| a.is_rsa())
        .collect();
    let rsa_value = fields.get("rsa_alg");
    let chosen = rsa_value.as_ref().and_then(|v| v.word(&rsa));
    let accepted = listed.unwrap_or_else(|| Algorithm::DEFAULT.to_vec());
    let rsa_alg = chosen.unwrap_or(Algorithm::Rs256);
    // KY-5: a key has one algorithm, so RSA keys without `alg` need one that is accepted.
    let missing = !accepted.contains(&rsa_alg);
    if let (Some(value), true, true) = (&rsa_value, chosen.is_some(), missing) {
        value.error(
            codes::ALGORITHMS,
            "`rsa_alg` is not among `algorithms`",
            "add it there, or choose one that is listed",
        );
    } else if let (Some(value), None, true) = (fields.get("algorithms"), &rsa_value, missing)
        && accepted.iter().any(|a| a.is_rsa())
    {
        value.error(
            codes::ALGORITHMS,
            "RSA keys that name no algorithm would be RS256, which is not listed",
            "say with `rsa_alg` which of the listed algorithms they have",
        );
    }
    (accepted, rsa_alg)
}

fn typ(fields: &Mapping<'_, '_>, profile: Profile) -> Vec<Typ> {
    let given = fields.get("typ");
    match (profile, given) {
        (Profile::Strict, Some(value)) => {
            value.error(
                codes::PROFILE,
                "`typ` cannot be chosen under `profile: strict`",
                "strict takes `at+jwt` (RFC 9068); remove the line, or choose the profile of the issuer's product",
            );
            vec![Typ::AtJwt]
        }
        (Profile::Strict, None) => vec![Typ::AtJwt],
        (Profile::Keycloak, Some(value)) => words(&value, &TYPS),
        (Profile::Keycloak, None) => vec![Typ::Jwt],
    }
}
