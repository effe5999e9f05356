//! Whether there is something for a caller at all, before anything of a call is read.

use super::{Challenge, Rejection};
use crate::a2a::Fault;
use crate::config::snapshot::Agent;
use crate::identity::Principal;
use crate::identity::issuer::Grant;
use crate::policy::{Memo, PolicySet, may_ever};

/// Whether an agent is there for a caller: an unpublished one looks like a path that never existed
/// to whom no rule allows anything there (I-6).
pub(super) fn exists(
    policy: &PolicySet,
    principal: &Principal,
    memo: Option<&Memo>,
    agent: &Agent,
) -> Result<(), Rejection> {
    if agent.publish || may_ever(policy, principal, memo, agent.index) {
        return Ok(());
    }
    Err(Rejection::plain(Fault::NoSuchPath, "hidden_agent"))
}

/// Whether a token reaches as far as a surface needs.
pub(super) fn reaches(principal: &Principal, needs: Grant) -> Result<(), Rejection> {
    if principal.grant.is_some_and(|grant| grant >= needs) {
        return Ok(());
    }
    let rejection = Rejection::plain(Fault::InsufficientScope, "insufficient_scope");
    Err(Rejection {
        challenge: Challenge::InsufficientScope(needs),
        ..rejection
    })
}
