//! `agents[].tenant`: for which of an agent's tenants a call is made.

use super::document;
use super::snapshot::{Interfaces, Tenant};
use crate::a2a::splice::is_tenant;
use crate::identity::issuer::{ClaimKind, IssuerConfig};
use crate::source::tree::clip;
use crate::source::{Kind, Value, codes, quantity::suggest};
use std::sync::Arc;

/// Reads the field. `interfaces` are those of the agent.
pub(super) fn read(
    value: &Value<'_, '_>,
    issuers: &[Arc<IssuerConfig>],
    interfaces: &Interfaces,
) -> Tenant {
    if matches!(value.node.kind, Kind::Str(_)) {
        value.word(&[("none", ())]);
        return Tenant::None;
    }
    let Some(fields) = value.fields(&document::TENANT) else {
        return Tenant::None;
    };
    if let Interfaces::Listed(listed) = interfaces
        && listed.iter().any(|i| i.versions.v0_3)
    {
        value.error(
            codes::TENANT,
            "an interface of version 0.3, which has no tenants",
            "list it with `version: \"1.0\"` alone: the agent would not be told the tenant",
        );
    }
    match (fields.get("fixed"), fields.get("claim")) {
        (Some(fixed), None) => {
            let text = fixed.text().unwrap_or_default();
            if !text.is_empty() && !is_tenant(text) {
                fixed.error(
                    codes::TENANT,
                    format!("`{}` cannot be a tenant", clip(text)),
                    "a tenant is a segment of a path too: at most 256 characters without `/`, `\\`, `:`, `%`, and not `tasks`, `v1` or `extendedAgentCard`",
                );
            }
            Tenant::Fixed(text.into())
        }
        (None, Some(claim)) => claimed(&claim, issuers),
        (Some(_), Some(_)) | (None, None) => {
            value.error(
                codes::TENANT,
                "a tenant is either `fixed` or a `claim` of the caller",
                "write `none`, `{fixed: NAME}` or `{claim: NAME}`",
            );
            Tenant::None
        }
    }
}

/// The claim in each issuer's tokens.
fn claimed(place: &Value<'_, '_>, issuers: &[Arc<IssuerConfig>]) -> Tenant {
    let Some(name) = place.text() else {
        return Tenant::None;
    };
    let of = |issuer: &Arc<IssuerConfig>| issuer.claims.iter().position(|c| *c.name == *name);
    let positions: Vec<Option<usize>> = issuers.iter().map(of).collect();
    if positions.iter().all(Option::is_none) {
        let known = issuers.iter().flat_map(|i| &i.claims);
        let hint = match suggest(name, known.map(|c| &*c.name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it in `claims` of the issuer, with `type: string`".to_owned(),
        };
        place.error(
            codes::TENANT,
            format!("no issuer declares the claim `{}`", clip(name)),
            hint,
        );
    }
    for (issuer, position) in issuers.iter().zip(&positions) {
        let declared = position.and_then(|at| issuer.claims.get(at));
        if declared.is_some_and(|claim| claim.kind != ClaimKind::String) {
            place.error(
                codes::TENANT,
                format!(
                    "issuer `{}` declares `{}` with another type than string",
                    issuer.name,
                    clip(name)
                ),
                "declare a claim with `type: string`",
            );
        }
    }
    Tenant::Claim {
        name: name.into(),
        positions,
    }
}
