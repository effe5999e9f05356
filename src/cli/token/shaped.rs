//! Tokens in the shape of a product's: what its profile wants, where the product puts it.

use crate::cli::dev_issuer::Claims;
use crate::identity::issuer::{IssuerConfig, Profile, Typ};
use crate::identity::profile::{Marker, Subject};
use serde_json::{Value, json};

/// Shapes `claims`, whose names are those of RFC 9068, as the product would write them. What stands
/// in `extra` already was asked for, and stays. `token_id` is a new one.
pub(super) fn shape(
    claims: &mut Claims,
    profile: Profile,
    entry: Option<&IssuerConfig>,
    token_id: &str,
) {
    let rules = profile.rules();
    let listed = entry.filter(|e| e.profile == profile);
    let typ = listed
        .and_then(|e| e.typ.first())
        .or(rules.typ.default.first());
    match typ {
        Some(Typ::Jwt) => drop(claims.header.insert("typ".into(), json!("JWT"))),
        Some(Typ::Jose) => drop(claims.header.insert("typ".into(), json!("JOSE"))),
        Some(Typ::Absent) => claims.header_without.push("typ".into()),
        Some(Typ::AtJwt) | None => {}
    }
    if profile == Profile::Strict {
        return;
    }
    let mut prefix = "";
    for marker in rules.kind {
        match marker {
            Marker::Text {
                claim,
                values,
                optional: false,
                ..
            } => {
                // The newest of the product's versions stands last.
                add(claims, claim, json!(values.last()));
            }
            Marker::Number { claim, value } => {
                let number: Value = serde_json::from_str(value).unwrap_or_default();
                add(claims, claim, number);
            }
            Marker::Prefix { prefix: start, .. } => prefix = start,
            Marker::ClientSubject {
                claim,
                grant_type,
                suffix,
            } => {
                if claims.subject.strip_suffix(suffix) == Some(&claims.client) {
                    add(claims, claim, json!(grant_type));
                }
            }
            Marker::Text { optional: true, .. } | Marker::Pair { .. } => {}
        }
    }
    // The product's own claims; RFC 9068's names are left out where it does not write them.
    let place = match profile {
        Profile::Keycloak | Profile::Auth0 => Some("azp"),
        Profile::Entra if claims.extra.get("ver") == Some(&json!("1.0")) => Some("appid"),
        Profile::Entra => Some("azp"),
        Profile::Okta => Some("cid"),
        Profile::Strict | Profile::Cognito => Some("client_id"),
        Profile::Spiffe => None,
    };
    if place != Some("client_id") {
        claims.without.push("client_id".into());
    }
    if let Some(place) = place {
        let client = json!(claims.client);
        add(claims, place, client);
    }
    match profile {
        Profile::Entra => {
            claims.without.push("jti".into());
            add(claims, "uti", json!(token_id));
        }
        Profile::Auth0 | Profile::Spiffe => claims.without.push("jti".into()),
        Profile::Strict | Profile::Keycloak | Profile::Okta | Profile::Cognito => {
            add(claims, "jti", json!(format!("{prefix}{token_id}")));
        }
    }
    if let (Some(rule), Some(tenant)) = (rules.tenant, entry.and_then(|e| e.tenants.first())) {
        add(claims, rule.claim, json!(tenant));
    }
    if let (Subject::SpiffeId, Some(domain), false) = (
        rules.subject,
        entry.and_then(|e| e.trust_domain.as_deref()),
        claims.subject.contains("://"),
    ) {
        claims.subject = format!("spiffe://{domain}/{}", claims.subject);
    }
}

/// The actors of a token, outermost first (RFC 8693 section 4.1).
pub(super) fn act(actors: &[String]) -> Option<Value> {
    actors.iter().rev().fold(None, |inner, name| {
        let mut actor = json!({ "sub": name });
        if let Some(inner) = inner {
            actor["act"] = inner;
        }
        Some(actor)
    })
}

fn add(claims: &mut Claims, claim: &str, value: Value) {
    claims.extra.entry(claim.to_owned()).or_insert(value);
}
