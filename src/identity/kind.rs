//! What kind of token a payload is, and which tenant's (CL-10, CL-11, IS-4).

use super::accept::Refusals;
use super::fault::{self, TokenFault};
use super::issuer::IssuerConfig;
use super::profile::{Marker, Named, is_in_issuer};
use crate::a2a::strict_json::Value;

/// Claims of tokens that are no access tokens (CL-10).
const OTHER_KINDS: [&str; 6] = [
    "nonce",
    "at_hash",
    "c_hash",
    "s_hash",
    "events",
    "token_introspection",
];

/// Only access tokens, and only of the entry's tenants.
pub(super) fn judge<R: Refusals>(
    payload: &Value,
    config: &IssuerConfig,
    refusals: &mut R,
) -> Result<(), TokenFault> {
    if OTHER_KINDS.iter().any(|name| payload.get(name).is_some()) {
        refusals.refuse(fault::OTHER_KIND)?;
    }
    if missing(payload, config).next().is_some() {
        refusals.refuse(fault::TOKEN_KIND)?;
    }
    tenant(payload, config, refusals)
}

/// The profile's markers that the payload does not have.
pub(super) fn missing<'p>(
    payload: &'p Value,
    config: &IssuerConfig,
) -> impl Iterator<Item = &'static Marker> + use<'p> {
    let rules = config.profile.rules();
    let markers = rules.kind.iter();
    markers.filter(|marker| !is_marked(payload, marker, &rules.client))
}

fn is_marked(payload: &Value, marker: &Marker, client: &Named) -> bool {
    let text = |claim| payload.get(claim).and_then(Value::as_str);
    match *marker {
        Marker::Text {
            claim,
            values,
            with_cnf,
            optional,
        } => match payload.get(claim) {
            None => optional,
            Some(value) => value.as_str().is_some_and(|text| {
                values.contains(&text) || with_cnf.contains(&text) && payload.get("cnf").is_some()
            }),
        },
        Marker::Number { claim, value } => {
            payload.get(claim).and_then(Value::as_number) == Some(value)
        }
        Marker::Prefix { claim, prefix } => text(claim).is_some_and(|t| t.starts_with(prefix)),
        Marker::Pair {
            claim,
            value,
            other,
        } => text(claim) != Some(value) || payload.get(other).is_some(),
        Marker::ClientSubject {
            claim,
            grant_type,
            suffix,
        } => {
            let says_so = match payload.get(claim) {
                None => Some(false),
                Some(Value::String(one)) => Some(**one == *grant_type),
                Some(Value::Array(items)) => items
                    .iter()
                    .map(Value::as_str)
                    .collect::<Option<Vec<_>>>()
                    .map(|types| types.contains(&grant_type)),
                Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => None,
            };
            let own = text("sub").and_then(|subject| subject.strip_suffix(suffix));
            let name = client.claims.iter().find_map(|claim| text(claim));
            match (says_so, own) {
                (None, _) | (Some(true), None) => false,
                (Some(false), None) => true,
                (Some(_), Some(own)) => name == Some(own),
            }
        }
    }
}

/// IS-4 and CL-11: a tenant on the entry's list, tied to `iss`.
fn tenant<R: Refusals>(
    payload: &Value,
    config: &IssuerConfig,
    refusals: &mut R,
) -> Result<(), TokenFault> {
    let Some(rule) = config.profile.rules().tenant else {
        return Ok(());
    };
    if config.tenants.is_empty() && !rule.in_issuer {
        return Ok(());
    }
    let listed = |tenant: &&str| config.tenants.iter().any(|known| **known == **tenant);
    let tied = |tenant: &&str| !rule.in_issuer || is_in_issuer(tenant, &config.issuer);
    let tenant = payload.get(rule.claim).and_then(Value::as_str);
    if tenant.filter(listed).filter(tied).is_none() {
        refusals.refuse(fault::TENANT)?;
    }
    Ok(())
}
