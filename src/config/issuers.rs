//! `issuers`: from the tree to [`IssuerConfig`].

mod claims;
mod instant;
mod origin;
mod profile;

use super::capture::Capture;
use super::check::{list_of, name_of, seconds, unique, words};
use super::snapshot::Introspection;
use super::{document, introspection, keys};
use crate::identity::issuer::{Dpop, IgnoredHeader, IssuerConfig, Profile};
use crate::source::{Mapping, Value, codes};
use std::collections::HashMap;
use std::sync::Arc;

use claims::{claims, grants};
pub(super) use instant::instant;
use origin::origin;

/// Longest `max_lifetime` in seconds (CL-6).
const MAX_LIFETIME: u64 = 86_400;
/// Longest `leeway` in seconds (CL-13).
const MAX_LEEWAY: u64 = 60;

const IGNORED: [(&str, IgnoredHeader); 4] = [
    ("jwk", IgnoredHeader::Jwk),
    ("jku", IgnoredHeader::Jku),
    ("x5u", IgnoredHeader::X5u),
    ("x5c", IgnoredHeader::X5c),
];

/// Reads all entries.
pub(super) fn read(
    value: &Value<'_, '_>,
    capture: &Capture,
) -> (Vec<Arc<IssuerConfig>>, Vec<Option<Arc<Introspection>>>) {
    let mut names = HashMap::new();
    let mut issuers = HashMap::new();
    let mut read = Vec::new();
    let mut introspections = Vec::new();
    let mut files = Vec::new();
    let mut shared = Vec::new();
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
        let asked = fields.get("introspection");
        let asked = asked.and_then(|v| introspection::read(&v, capture));
        if let (Some(config), Some(keys)) = (one(&fields, capture), fields.get("keys")) {
            introspections.push(asked);
            read.push(Arc::new(config));
            files.push(keys);
            shared.push(fields.get("shared_keys"));
        }
    }
    profile::shared_keys(&read, &shared);
    keys::check(&read, &files);
    (read, introspections)
}

fn one(fields: &Mapping<'_, '_>, capture: &Capture) -> Option<IssuerConfig> {
    let name = fields.get("name").and_then(|v| name_of(&v));
    let place = fields.get("issuer");
    let issuer = place.as_ref().and_then(|v| v.text().map(Box::from));
    let keys = fields.get("keys");
    let keys = keys.and_then(|v| origin(&v, &place, capture));
    let profile = match fields.get("profile") {
        Some(value) => value.word(&Profile::ALL.map(|p| (p.rules().name, p))),
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
    let (algorithms, rsa_alg) = profile::algorithms(fields, profile.unwrap_or(Profile::Strict));
    if let Some(profile) = profile {
        profile::check(fields, profile, issuer.as_deref().unwrap_or_default());
    }
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
        typ: profile::typ(fields, profile?),
        max_lifetime: max_lifetime.unwrap_or(3600),
        leeway: leeway.unwrap_or(30),
        not_before: fields.get("not_before").and_then(|v| instant(&v)),
        clients,
        tenants: fields
            .get("tenants")
            .map(|v| list_of(&v))
            .unwrap_or_default(),
        trust_domain: fields
            .get("trust_domain")
            .and_then(|v| v.text().map(Box::from)),
        shared_keys: fields
            .get("shared_keys")
            .map(|v| list_of(&v))
            .unwrap_or_default(),
        delegated_full: flag(fields, "delegated_full"),
        allow_missing_kid: flag(fields, "allow_missing_kid"),
        ignore_header: fields
            .get("ignore_header")
            .map(|v| words(&v, &IGNORED))
            .unwrap_or_default(),
        grants: fields.get("grants").map(|v| grants(&v)).unwrap_or_default(),
        claims: fields.get("claims").map(|v| claims(&v)).unwrap_or_default(),
        dpop: fields.get("dpop").and_then(|v| dpop(&v)),
        development,
    };
    Some(config)
}

fn dpop(value: &Value<'_, '_>) -> Option<Dpop> {
    let fields = value.fields(&document::DPOP)?;
    Some(Dpop {
        nonce: flag(&fields, "nonce"),
    })
}

fn flag(fields: &Mapping<'_, '_>, name: &str) -> bool {
    fields.get(name).and_then(|v| v.boolean()).unwrap_or(false)
}
