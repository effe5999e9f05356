//! [`decide()`]: the answer to a [`Question`].

use super::{Decision, PolicySet};
use crate::a2a::Operation;
use crate::identity::Principal;

/// What a caller wants to do.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Position of the agent in the configuration.
    pub agent: usize,
    /// The operation, or a path of the backend surface.
    pub asked: Asked,
    /// The skill of a message, or of the task it continues.
    pub skill: AskedSkill<'a>,
    /// Who asks.
    pub principal: &'a Principal,
}

/// The operation that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// One of the eleven operations.
    Operation(Operation),
    /// A declared path of the backend surface; needs the full grant.
    Backend,
}

/// The skill that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedSkill<'a> {
    /// The operation concerns no skill: everything but the two that send a message.
    NotAMessage,
    /// A skill; one that the agent does not declare counts as [`AskedSkill::Unknown`].
    Known(&'a str),
    /// It cannot be established: absent, unlisted or conflicting. No allow that names skills
    /// matches, and every deny that does may fire.
    Unknown,
}

/// Judges a call. Nothing is allocated on an allow.
pub fn decide(policies: &PolicySet, question: &Question<'_>) -> Decision {
    let _ = (policies, question);
    Decision::deny("no_rule")
}

/// Whether any call of this caller to this agent would be allowed (I-6): if not, an unpublished
/// agent does not exist for it.
pub fn may_ever(policies: &PolicySet, principal: &Principal, agent: usize) -> bool {
    let _ = (policies, principal, agent);
    false
}

/// The claims that rules for this agent look at, as positions among the declared claims of the
/// issuer at `issuer`, ascending: what a record says about a caller.
pub fn claims_used(policies: &PolicySet, agent: usize, issuer: usize) -> &[usize] {
    let _ = (policies, agent, issuer);
    &[]
}
