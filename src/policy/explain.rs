//! A [`Decision`] in words, for operators. Callers get a reason code and nothing of this.

use super::decision::{Decision, Effect, Near, why};

/// One or two sentences: what was decided, by which rule, and what came nearest.
pub fn explain(decision: &Decision) -> String {
    let near = decision.near.as_ref();
    match (decision.effect, &decision.rule) {
        (Effect::Allow, Some(rule)) => format!("rule `{rule}` allows it"),
        (Effect::Allow, None) => "allowed".to_owned(),
        (Effect::Deny, Some(rule)) => match near {
            Some(near) => format!("rule `{rule}` denies it: {}", cause(near)),
            None => format!("rule `{rule}` denies it, always"),
        },
        (Effect::Deny, None) if decision.reason == Decision::NO_RULE => match near {
            Some(near) => format!(
                "no rule allows it; nearest is `{}`, but {}",
                near.rule,
                cause(near)
            ),
            None => "no rule allows it, and none is about this agent and operation".to_owned(),
        },
        (Effect::Deny, None) => format!("refused before policy: {}", decision.reason),
    }
}

fn cause(near: &Near) -> String {
    if let Some(path) = &near.content {
        return match near.why {
            why::MISSING => format!("the message has no value at `{path}`"),
            why::NULL => format!("the message has null at `{path}`"),
            why::WRONG_TYPE => {
                format!("the message has a value of another type at `{path}`")
            }
            why::VALUE_DIFFERS => format!("the message has another value at `{path}`"),
            why::VALUE_MATCHES => format!("the message has the value that it names at `{path}`"),
            why::OVERSIZE => format!("the request is too large to look for `{path}` in it"),
            why::AMBIGUOUS => format!("what the message has at `{path}` can be read in two ways"),
            other => other.to_owned(),
        };
    }
    let claim = near.claim.as_deref().unwrap_or("?");
    match near.why {
        why::MISSING => format!("the token has no claim `{claim}`"),
        why::NULL => format!("the token's claim `{claim}` is null"),
        why::WRONG_TYPE => format!("the token's claim `{claim}` is not of the declared type"),
        why::VALUE_DIFFERS => format!("the token's claim `{claim}` has another value"),
        why::VALUE_MATCHES => format!("the token's claim `{claim}` has the value that it names"),
        why::GRANT => "it needs a token with a wider grant".to_owned(),
        why::SKILL => "it is about other skills".to_owned(),
        why::SKILL_UNKNOWN => {
            "it is about named skills, and the call does not say which one it means".to_owned()
        }
        why::ISSUER => "it is about tokens of another issuer".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_one_sentence() {
        let near = |claim: Option<&str>, why| {
            Some(Near {
                rule: "reviewers".into(),
                claim: claim.map(Into::into),
                content: None,
                why,
            })
        };
        let refused = |rule: Option<&str>, reason, near| Decision {
            rule: rule.map(Into::into),
            near,
            ..Decision::deny(reason)
        };
        let cases = [
            (
                refused(None, Decision::NO_RULE, near(Some("role"), why::MISSING)),
                "no rule allows it; nearest is `reviewers`, but the token has no claim `role`",
            ),
            (
                refused(None, Decision::NO_RULE, near(None, why::SKILL_UNKNOWN)),
                "no rule allows it; nearest is `reviewers`, but it is about named skills, and the call does not say which one it means",
            ),
            (
                refused(None, Decision::NO_RULE, None),
                "no rule allows it, and none is about this agent and operation",
            ),
            (
                refused(
                    Some("reviewers"),
                    Decision::DENY_RULE,
                    near(Some("role"), why::NULL),
                ),
                "rule `reviewers` denies it: the token's claim `role` is null",
            ),
            (
                refused(Some("closed"), Decision::DENY_RULE, None),
                "rule `closed` denies it, always",
            ),
            (
                refused(
                    None,
                    Decision::NO_RULE,
                    Some(Near {
                        rule: "sandbox".into(),
                        claim: None,
                        content: Some("$.message.a".into()),
                        why: why::OVERSIZE,
                    }),
                ),
                "no rule allows it; nearest is `sandbox`, but the request is too large to look for `$.message.a` in it",
            ),
            (
                Decision {
                    effect: Effect::Allow,
                    ..refused(Some("reviewers"), Decision::ALLOWED, None)
                },
                "rule `reviewers` allows it",
            ),
        ];
        for (decision, expected) in cases {
            assert_eq!(explain(&decision), expected);
        }
    }
}
