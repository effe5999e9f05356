//! [`principal`]: a caller that is only described, for tests of policies and for explanations.
//!
//! Nothing is verified here: there is no token. What a payload means is found out by the very code
//! that [`super::accept`](mod@super::accept) runs on one whose signature is good, so a described
//! caller is what a real one with these claims would be.

use super::accept::{First, Signed, whose};
use super::confirmation::ProofKind;
use super::fault::TokenFault;
use super::issuer::{Grant, IssuerConfig};
use super::profile::{Marker, Scopes, Subject};
use super::{Principal, claims, grants};
use crate::a2a::strict_json::Value;
use std::sync::Arc;

/// Stands for names that a description leaves out.
const NOBODY: &str = "test";
/// Seconds since the epoch at which payloads without times are judged: the first of 2026.
const USUAL: i64 = 1_767_225_600;
/// Seconds for which they are valid.
const LIFETIME: i64 = 60;
/// A SHA-256 of zeros in base64url: to what described tokens are bound.
const PRINT: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// What a payload leaves out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beside<'a> {
    /// The reach, where no mark in the payload gives one.
    pub grant: Option<Grant>,
    /// What the token is bound to, where it has no `cnf`.
    pub proof: Option<ProofKind>,
    /// The client, where no claim names one.
    pub client: Option<&'a str>,
}

/// The instant at which a payload is judged, in seconds since the epoch: when it was issued, or
/// else before it expires, so that its times are good if they can be.
pub fn instant(payload: &Value, config: &IssuerConfig) -> i64 {
    let second = |claim| {
        let number = payload.get(claim).and_then(Value::as_number);
        number.and_then(|n| claims::numeric_date(n, claims::Round::Up))
    };
    let usual = config.not_before.map_or(USUAL, |first| USUAL.max(first));
    match (second("iat"), second("exp")) {
        (Some(issued), _) => issued,
        (None, Some(expires)) => expires - 1,
        (None, None) => usual,
    }
}

/// The payload with what every accepted token of the entry has and `payload` does not mention. What
/// it does mention stays, wrong or not.
pub fn completed(payload: &Value, config: &IssuerConfig, beside: &Beside<'_>) -> Value {
    let now = instant(payload, config);
    let rules = config.profile.rules();
    let mut members: Vec<(Box<str>, Value)> = payload.as_object().unwrap_or_default().to_vec();
    let mut add = |claim: &str, value: Value| {
        if !members.iter().any(|(name, _)| **name == *claim) {
            members.push((claim.into(), value));
        }
    };
    let text = |text: &str| Value::String(text.into());
    let number = |number: i64| Value::Number(number.to_string().into());
    add("iss", text(&config.issuer));
    if let Some(audience) = config.audiences.first() {
        add("aud", text(audience));
    }
    match (rules.subject, config.trust_domain.as_deref()) {
        (Subject::SpiffeId, Some(domain)) => {
            add("sub", text(&format!("spiffe://{domain}/{NOBODY}")));
        }
        (Subject::SpiffeId | Subject::Text, _) => add("sub", text(NOBODY)),
    }
    add("iat", number(now));
    let lifetime = i64::try_from(config.max_lifetime).map_or(LIFETIME, |max| max.min(LIFETIME));
    add("exp", number(now.saturating_add(lifetime)));
    for marker in rules.kind {
        match *marker {
            Marker::Text {
                claim,
                values,
                optional: false,
                ..
            } => {
                // The newest of the product's versions stands last.
                add(claim, text(values.last().copied().unwrap_or_default()));
            }
            Marker::Number { claim, value } => add(claim, Value::Number(value.into())),
            Marker::Prefix { claim, prefix } => add(claim, text(&format!("{prefix}{NOBODY}"))),
            Marker::Text { optional: true, .. }
            | Marker::Pair { .. }
            | Marker::ClientSubject { .. } => {}
        }
    }
    if let (Some(rule), Some(tenant)) = (rules.tenant, config.tenants.first()) {
        add(rule.claim, text(tenant));
    }
    match beside.proof {
        None | Some(ProofKind::None) => {}
        Some(ProofKind::Mtls) => add("cnf", bound("x5t#S256")),
        Some(ProofKind::Dpop) => add("cnf", bound("jkt")),
    }
    let first = |names: &[&'static str]| names.first().copied();
    let there = |members: &[(Box<str>, Value)], names: &[&str]| {
        members.iter().any(|(name, _)| names.contains(&&**name))
    };
    if rules.token_id.required
        && !there(&members, rules.token_id.claims)
        && let Some(claim) = first(rules.token_id.claims)
    {
        members.push((claim.into(), text(NOBODY)));
    }
    let needed = rules.client.required || !config.clients.is_empty();
    let client = beside.client.or_else(|| {
        let listed = config.clients.first().map(|client| &**client);
        needed.then(|| listed.unwrap_or(NOBODY))
    });
    let mut names = rules.client.claims.to_vec();
    names.extend(["client_id", "azp"]);
    if let (Some(client), Some(claim), false) =
        (client, first(rules.client.claims), there(&members, &names))
    {
        members.push((claim.into(), text(client)));
    }
    Value::Object(members)
}

fn bound(member: &str) -> Value {
    Value::Object(vec![(member.into(), Value::String(PRINT.into()))])
}

/// Whose a whole payload would be, at the position `index` of the issuers. `grant` is its reach
/// where no mark in it gives one, delegation considered (GR-8).
///
/// # Errors
/// The rule by which a token with this payload is refused, however it is signed.
pub fn principal(
    payload: &Value,
    (index, config): (usize, &IssuerConfig),
    grant: Option<Grant>,
) -> Result<Principal, TokenFault> {
    let signed = Signed {
        key: [0; 32],
        algorithm: config.rsa_alg,
        signing_input: [0; 32],
    };
    let name = Arc::from(&*config.name);
    let now = instant(payload, config);
    let mut principal = whose(payload, (index, &name, config), signed, now, &mut First)?;
    // IS-1: who names another issuer would have been somebody else's.
    if claims::issuer(payload)? != &*config.issuer {
        return Err(super::fault::UNKNOWN_ISSUER);
    }
    if principal.grant.is_none() {
        let delegated = !principal.actors.is_empty();
        principal.grant = grant.map(|grant| grants::capped(grant, config, delegated));
    }
    Ok(principal)
}

/// The grant that the marks of a payload give, before delegation is looked at.
pub fn marked(payload: &Value, config: &IssuerConfig) -> Option<Grant> {
    grants::grant(payload, &config.grants)
}

/// Where in a payload a claim of policies stands: names from its top down. `None` for a name that
/// the issuer does not declare.
pub fn place(name: &str, payload: &Value, config: &IssuerConfig) -> Option<Vec<Box<str>>> {
    let rules = config.profile.rules();
    let one = |name: &str| vec![Box::from(name)];
    Some(match name {
        "sub" => one("sub"),
        "client_id" => {
            let mut claims = rules.client.claims.iter();
            one(claims.find(|claim| payload.get(claim).is_some())?)
        }
        "actor_sub" => vec!["act".into(), "sub".into()],
        "delegated" => one("act"),
        "proof" => one("cnf"),
        "scopes" => one(match rules.scopes {
            Scopes::Words(claim) | Scopes::List(claim) => claim,
        }),
        _ => {
            let mut claims = config.claims.iter();
            claims.find(|claim| *claim.name == *name)?.path.clone()
        }
    })
}
