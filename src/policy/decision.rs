//! The outcome of judging a call.

use super::shadow::{RuleResult, ShadowResult};
use std::sync::Arc;

/// What a rule, or a decision, says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The call goes on.
    Allow,
    /// The call is refused.
    Deny,
}

impl Effect {
    /// Its name in files and records.
    pub fn label(self) -> &'static str {
        match self {
            Effect::Allow => "allow",
            Effect::Deny => "deny",
        }
    }
}

/// The outcome of judging a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Allow or deny; deny when in doubt.
    pub effect: Effect,
    /// [`Decision::ALLOWED`], [`Decision::DENY_RULE`] or [`Decision::NO_RULE`]; where something
    /// else than policy refused, its own code.
    pub reason: &'static str,
    /// The deciding rule.
    pub rule: Option<Arc<str>>,
    /// For a refusal: the allow that came nearest, or the deny that fired and the claim that made
    /// it fire.
    pub near: Option<Near>,
    /// What the rules in shadow mode come to that are about the call.
    pub shadow: Box<[ShadowResult]>,
}

/// The rule that came nearest to allowing a call, and what kept it from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Near {
    /// Its id.
    pub rule: Arc<str>,
    /// The claim that it failed on.
    pub claim: Option<Arc<str>>,
    /// The path in the message that it failed on; never what stands there.
    pub content: Option<Arc<str>>,
    /// How: one of [`why`].
    pub why: &'static str,
}

/// Why a rule did not allow a call, or did deny it.
pub mod why {
    /// The token does not have the claim.
    pub const MISSING: &str = "missing";
    /// The claim is `null`.
    pub const NULL: &str = "null";
    /// The claim is of another type than was declared.
    pub const WRONG_TYPE: &str = "wrong_type";
    /// The claim has another value than the rule asks for.
    pub const VALUE_DIFFERS: &str = "value_differs";
    /// The claim has the value that a deny names.
    pub const VALUE_MATCHES: &str = "value_matches";
    /// The request is larger, or has more values, than is kept for conditions on its content.
    pub const OVERSIZE: &str = "oversize";
    /// What the condition looks at could be read in two ways.
    pub const AMBIGUOUS: &str = "ambiguous";
    /// The token does not reach far enough.
    pub const GRANT: &str = "grant";
    /// The rule is about other skills.
    pub const SKILL: &str = "skill";
    /// The rule is about named skills, and which one the call means cannot be established.
    pub const SKILL_UNKNOWN: &str = "skill_unknown";
    /// The rule is about tokens of other issuers.
    pub const ISSUER: &str = "issuer";
    /// All of these.
    pub const ALL: [&str; 11] = [
        MISSING,
        NULL,
        WRONG_TYPE,
        VALUE_DIFFERS,
        VALUE_MATCHES,
        OVERSIZE,
        AMBIGUOUS,
        GRANT,
        SKILL,
        SKILL_UNKNOWN,
        ISSUER,
    ];
}

impl Decision {
    /// The reason of an allow.
    pub const ALLOWED: &str = "allowed";
    /// The reason of a refusal by a deny that fired.
    pub const DENY_RULE: &str = "deny_rule";
    /// The reason of a refusal because no rule allows the call.
    pub const NO_RULE: &str = "no_rule";

    /// A refusal without a rule.
    pub fn deny(reason: &'static str) -> Decision {
        Decision {
            effect: Effect::Deny,
            reason,
            rule: None,
            near: None,
            shadow: Box::default(),
        }
    }

    /// What the deciding rule comes to: unknown for a deny that fired since what it looks at is
    /// no value.
    pub fn result(&self) -> RuleResult {
        match self.near.as_ref().map(|near| near.why) {
            Some(why::MISSING | why::NULL | why::WRONG_TYPE | why::OVERSIZE | why::AMBIGUOUS) => {
                RuleResult::Unknown
            }
            Some(_) | None => RuleResult::Match,
        }
    }
}
