//! What a record says about a caller's claims: those that the agent's rules look at, and no others.

use super::authenticate::Verified;
use super::recorder::HiddenCaller;
use crate::audit::record::{ClaimValue, Id, Ids};
use crate::config::snapshot::{Agent, Snapshot};
use crate::identity::{self, ClaimState};
use crate::policy::claims_used;

/// Claims by their configured names.
#[derive(Default)]
pub(super) struct UsedClaims<'s> {
    /// Those that have a value.
    pub(super) values: Vec<(&'s str, ClaimValue<'s>)>,
    /// Those that have none, and what there is instead.
    pub(super) without: Vec<(&'s str, &'static str)>,
}

impl<'s> UsedClaims<'s> {
    /// Of a caller, for an agent.
    pub(super) fn of(
        snapshot: &'s Snapshot,
        verified: Option<&'s Verified>,
        agent: Option<&Agent>,
        hidden: Option<&'s HiddenCaller>,
    ) -> UsedClaims<'s> {
        let mut used = UsedClaims::default();
        let (Some(verified), Some(agent)) = (verified, agent) else {
            return used;
        };
        let principal = &verified.principal;
        let Some(issuer) = snapshot.issuers.get(principal.issuer_index) else {
            return used;
        };
        for &at in claims_used(&snapshot.policy, agent.index, principal.issuer_index) {
            let (Some(declared), Some(state)) = (issuer.claims.get(at), principal.claims.get(at))
            else {
                continue;
            };
            let name = &*declared.name;
            let hidden = hidden.and_then(|hidden| hidden.claims.get(at)?.as_ref());
            let value = match state {
                ClaimState::Value(value) => shown(hidden.unwrap_or(value)),
                ClaimState::Missing => {
                    used.without.push((name, "missing"));
                    continue;
                }
                ClaimState::Null => {
                    used.without.push((name, "null"));
                    continue;
                }
                ClaimState::WrongType => {
                    used.without.push((name, "wrong_type"));
                    continue;
                }
            };
            used.values.push((name, value));
        }
        used
    }
}

fn shown(value: &identity::ClaimValue) -> ClaimValue<'_> {
    match value {
        identity::ClaimValue::String(text) => ClaimValue::Text(Id(text)),
        identity::ClaimValue::Number(number) => ClaimValue::Number(*number),
        identity::ClaimValue::Boolean(flag) => ClaimValue::Boolean(*flag),
        identity::ClaimValue::Strings(all) => ClaimValue::Texts(Ids(all)),
    }
}
