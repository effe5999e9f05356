//! What an entry's profile asks of its other fields.

use crate::config::check::words;
use crate::identity::issuer::{Algorithm, IssuerConfig, Profile, Typ};
use crate::identity::profile::{Rules, Subject, is_in_issuer};
use crate::identity::spiffe::is_trust_domain;
use crate::source::tree::clip;
use crate::source::{Mapping, Value, codes, quantity::suggest};
use std::sync::Arc;

const TYPS: [(&str, Typ); 4] = [
    ("JWT", Typ::Jwt),
    ("JOSE", Typ::Jose),
    ("at+jwt", Typ::AtJwt),
    ("absent", Typ::Absent),
];

/// Audiences, clients, tenants and trust domain.
pub(super) fn check(fields: &Mapping<'_, '_>, profile: Profile, issuer: &str) {
    let rules = profile.rules();
    audiences(fields, rules);
    if let (Some(clients), true) = (fields.get("clients"), rules.client.claims.is_empty()) {
        clients.error(
            codes::PROFILE,
            format!(
                "`clients` under `profile: {}`, whose tokens name no client",
                rules.name
            ),
            "remove it; tell callers apart by `sub` in policies",
        );
    }
    tenants(fields, rules, issuer);
    trust_domain(fields, rules);
}

fn audiences(fields: &Mapping<'_, '_>, rules: &Rules) {
    if fields.has("audiences") || rules.clients_for_audience && fields.has("clients") {
        return;
    }
    let hint = if rules.clients_for_audience {
        "name the audience that tokens for this gateway carry, or the `clients` whose tokens count; without either, a token for any other service would do"
    } else {
        "name the audience that tokens for this gateway carry; without one, a token for any other service would do"
    };
    fields
        .whole()
        .error(codes::MISSING_FIELD, "`audiences` is missing", hint);
}

/// IS-4: no tenant that could never be, and no multi-tenant issuer without a list.
fn tenants(fields: &Mapping<'_, '_>, rules: &Rules, issuer: &str) {
    let name = rules.name;
    match (fields.get("tenants"), rules.tenant) {
        (Some(value), None) => value.error(
            codes::PROFILE,
            format!("`tenants` under `profile: {name}`, whose tokens name no tenant"),
            "remove it; `trust_domain` says whose workloads count",
        ),
        (None, Some(rule)) if rule.in_issuer => fields.whole().error(
            codes::PROFILE,
            format!("`tenants` is missing, which `profile: {name}` needs"),
            format!(
                "list the tenant that stands in `issuer`, which is the `{}` of its tokens: all tenants have the same signing keys",
                rule.claim
            ),
        ),
        (Some(value), Some(rule)) => {
            for (place, tenant) in value.texts().unwrap_or_default() {
                if tenant.contains('*') {
                    place.error(
                        codes::PROFILE,
                        "a tenant is compared byte for byte; `*` stands for nothing",
                        "list each tenant",
                    );
                } else if rule.in_issuer && !is_in_issuer(tenant, issuer) {
                    place.error(
                        codes::PROFILE,
                        format!("`{}` is no part of the path of `issuer`", clip(tenant)),
                        "each tenant has an `iss` of its own; write one entry per tenant, with `shared_keys`",
                    );
                }
            }
        }
        (None, Some(_) | None) => {}
    }
}

/// CL-7 for SPIFFE.
fn trust_domain(fields: &Mapping<'_, '_>, rules: &Rules) {
    match (fields.get("trust_domain"), rules.subject) {
        (None, Subject::Text) => {}
        (None, Subject::SpiffeId) => fields.whole().error(
            codes::PROFILE,
            "`trust_domain` is missing, which `profile: spiffe` needs",
            "name the trust domain whose workloads may call, such as `example.org`",
        ),
        (Some(value), Subject::Text) => value.error(
            codes::PROFILE,
            format!("`trust_domain` under `profile: {}`", rules.name),
            "remove it; only `profile: spiffe` has one",
        ),
        (Some(value), Subject::SpiffeId) => {
            if let Some(text) = value.text().filter(|text| !is_trust_domain(text)) {
                value.error(
                    codes::PROFILE,
                    format!("`{}` is no trust domain", clip(text)),
                    "write the name alone, such as `example.org`: lower case letters, digits, `.`, `-`, `_`",
                );
            }
        }
    }
}

/// IS-3: entries that may hold the same keys name each other, and tokens of one must not pass for
/// tokens of the other: by tenants on both sides, or by audiences of which none is on both.
pub(super) fn shared_keys(entries: &[Arc<IssuerConfig>], places: &[Option<Value<'_, '_>>]) {
    for (entry, place) in entries.iter().zip(places) {
        let Some(place) = place else { continue };
        for (at, name) in place.texts().unwrap_or_default() {
            let other = entries.iter().find(|e| *e.name == *name);
            let Some(other) = other.filter(|other| other.name != entry.name) else {
                let others = entries.iter().filter(|e| e.name != entry.name);
                let hint = match suggest(name, others.map(|e| &*e.name)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "name another entry of `issuers`".to_owned(),
                };
                let what = format!("no other issuer entry is named `{}`", clip(name));
                at.error(codes::SHARED_KEYS, what, hint);
                continue;
            };
            if !entry.shares_keys_with(other) {
                at.error(
                    codes::SHARED_KEYS,
                    format!("entry `{}` does not name `{}` back", other.name, entry.name),
                    format!(
                        "add `shared_keys: [{}]` there, or remove it here",
                        entry.name
                    ),
                );
            }
            if !are_told_apart(entry, other) {
                at.error(
                    codes::SHARED_KEYS,
                    format!(
                        "nothing tells tokens of `{}` and `{name}` apart",
                        entry.name
                    ),
                    "list `tenants` in both entries, or `audiences` of which none stands in both",
                );
            }
        }
    }
}

fn are_told_apart(one: &IssuerConfig, other: &IssuerConfig) -> bool {
    let lists = |audiences: &[Box<str>]| !audiences.is_empty();
    let tenants = !one.tenants.is_empty() && !other.tenants.is_empty();
    let audiences = lists(&one.audiences)
        && lists(&other.audiences)
        && !one.audiences.iter().any(|a| other.audiences.contains(a));
    tenants || audiences
}

/// Which algorithms an entry takes, and that of RSA keys which name none.
pub(super) fn algorithms(
    fields: &Mapping<'_, '_>,
    profile: Profile,
) -> (Vec<Algorithm>, Algorithm) {
    let rule = &profile.rules().algorithms;
    let listed = fields.get("algorithms").map(|value| {
        let listed = words(&value, &Algorithm::NAMES);
        if listed.iter().any(|a| !rule.may_list.contains(a)) {
            value.error(
                codes::PROFILE,
                format!("`profile: {}` knows no Ed25519", profile.rules().name),
                "JWT-SVIDs are signed with RSA or ECDSA; list RS256 or ES256 and their larger kin",
            );
        }
        listed
    });
    let rsa: Vec<(&str, Algorithm)> = Algorithm::NAMES
        .iter()
        .copied()
        .filter(|(_, a)| a.is_rsa())
        .collect();
    let rsa_value = fields.get("rsa_alg");
    let chosen = rsa_value.as_ref().and_then(|v| v.word(&rsa));
    let accepted = listed.unwrap_or_else(|| rule.default.to_vec());
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

/// HD-5: what the entry lists, where its profile leaves a choice.
pub(super) fn typ(fields: &Mapping<'_, '_>, profile: Profile) -> Vec<Typ> {
    let rule = &profile.rules().typ;
    let Some(value) = fields.get("typ") else {
        return rule.default.to_vec();
    };
    let name = profile.rules().name;
    if rule.may_list.is_empty() {
        value.error(
            codes::PROFILE,
            format!("`typ` cannot be chosen under `profile: {name}`"),
            if profile == Profile::Strict {
                "strict takes `at+jwt` (RFC 9068); remove the line, or choose the profile of the issuer's product"
            } else {
                "remove the line: access tokens of this product always have the same"
            },
        );
        return rule.default.to_vec();
    }
    let listed = words(&value, &TYPS);
    if listed.iter().any(|typ| !rule.may_list.contains(typ)) {
        let known = |typ: &Typ| TYPS.iter().find(|(_, t)| t == typ).map(|(name, _)| *name);
        let may: Vec<&str> = rule.may_list.iter().filter_map(known).collect();
        value.error(
            codes::PROFILE,
            format!("a `typ` that `profile: {name}` never takes"),
            format!("it may take {}", may.join(", ")),
        );
    }
    listed
}
