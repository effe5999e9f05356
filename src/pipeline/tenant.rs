//! For which of an agent's tenants a call is made (`design.md` section 3).
//!
//! The tenant is the configuration's or the token's, never the caller's choice: one that the call
//! names must be that one, and to any other the answer is that it is not there.

use super::authenticate::Verified;
use super::ports::Owner;
use crate::a2a::splice::is_tenant;
use crate::a2a::{Call, Fault};
use crate::config::snapshot::{Agent, Tenant};
use crate::identity::{ClaimState, ClaimValue, Principal};
use std::sync::Arc;

/// Why the tenant of a call refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantRefused {
    /// The caller's token names no tenant that can be used: `tenant_claim_missing` or
    /// `tenant_claim_unusable`.
    NotAllowed(&'static str),
    /// The call names a tenant that is not ours, or not the caller's.
    NotFound(Fault, &'static str),
}

/// The tenant that the agent is told; `None` where it has none.
///
/// # Errors
/// [`TenantRefused`].
pub fn settle<'a>(
    agent: &'a Agent,
    principal: &'a Principal,
    call: &Call,
) -> Result<Option<&'a str>, TenantRefused> {
    let ours = match &agent.tenant {
        Tenant::None => None,
        Tenant::Fixed(tenant) => Some(&**tenant),
        Tenant::Claim { positions, .. } => {
            let tenant = claimed(principal, positions).map_err(TenantRefused::NotAllowed)?;
            Some(tenant)
        }
    };
    let named = call.tenant.as_deref().filter(|tenant| !tenant.is_empty());
    if named.is_none() || named == ours {
        return Ok(ours);
    }
    // "Task not found" would puzzle a client that names none.
    let fault = match call.task_id {
        Some(_) => Fault::TaskNotFound,
        None => Fault::InvalidParams,
    };
    Err(TenantRefused::NotFound(fault, "tenant_not_ours"))
}

/// The same caller, as the owner of what belongs to its tenant: a task that was started for one
/// tenant does not exist for another, even if it is the same subject.
pub fn scoped(agent: &Agent, verified: Arc<Verified>) -> Arc<Verified> {
    let Tenant::Claim { positions, .. } = &agent.tenant else {
        return verified;
    };
    let Ok(tenant) = claimed(&verified.principal, positions) else {
        return verified;
    };
    Arc::new(Verified {
        // A tenant has no control character, so the separator is clear.
        owner: Owner(format!("{}\u{1f}{tenant}", verified.owner.0).into()),
        principal: verified.principal.clone(),
        fingerprint: verified.fingerprint,
        memo: Arc::clone(&verified.memo),
        hidden: Arc::clone(&verified.hidden),
    })
}

fn claimed<'a>(
    principal: &'a Principal,
    positions: &[Option<usize>],
) -> Result<&'a str, &'static str> {
    let position = positions.get(principal.issuer_index).copied().flatten();
    match position.and_then(|at| principal.claims.get(at)) {
        Some(ClaimState::Value(ClaimValue::String(tenant))) if is_tenant(tenant) => Ok(tenant),
        Some(ClaimState::Value(_) | ClaimState::WrongType) => Err("tenant_claim_unusable"),
        Some(ClaimState::Missing | ClaimState::Null) | None => Err("tenant_claim_missing"),
    }
}
