//! The outcome of judging a call.

use std::sync::Arc;

/// What a rule, or a decision, says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The call goes on.
    Allow,
    /// The call is refused.
    Deny,
}

/// The outcome of judging a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Allow or deny; deny when in doubt.
    pub effect: Effect,
    /// A code of a closed, private set.
    pub reason: &'static str,
    /// The deciding rule.
    pub rule: Option<Arc<str>>,
    /// For a refusal: the rule that came nearest to allowing the call.
    pub near: Option<Near>,
}

/// The rule that came nearest to allowing a call, and what kept it from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Near {
    /// Its id.
    pub rule: Arc<str>,
    /// The claim that it failed on.
    pub claim: Option<Arc<str>>,
    /// How: `missing`, `null`, `wrong_type`, `value_differs`, or another code of the closed set.
    pub why: &'static str,
}

impl Decision {
    /// A refusal without a rule.
    pub fn deny(reason: &'static str) -> Decision {
        Decision {
            effect: Effect::Deny,
            reason,
            rule: None,
            near: None,
        }
    }
}
