//! What must come of a call, and whether it ever can.

use super::shape::{EXPECT, NEAR};
use super::{Asked, Reader};
use crate::a2a::call::MALFORMED_CODES;
use crate::identity::fault;
use crate::policy::decision::{Decision, Effect, why};
use crate::source::quantity::suggest;
use crate::source::tree::clip;
use crate::source::{Mapping, Value, codes};

/// What must come of a call; what is `None` was not said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expect {
    /// Allow or deny.
    pub effect: Effect,
    /// The reason code of the record.
    pub reason: Option<Box<str>>,
    /// The deciding rule.
    pub rule: Option<Box<str>>,
    /// What was nearest.
    pub near: Option<ExpectedNear>,
    /// The HTTP status of the reply.
    pub http: Option<u16>,
}

/// What must be nearest; what is `None` was not said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpectedNear {
    /// The rule.
    pub rule: Option<Box<str>>,
    /// The claim.
    pub claim: Option<Box<str>>,
    /// The path of a condition on the content.
    pub content: Option<Box<str>>,
    /// Why.
    pub why: Option<Box<str>>,
}

/// Reasons beside those of tokens and malformed requests.
const REASONS: [&str; 12] = [
    Decision::ALLOWED,
    Decision::DENY_RULE,
    Decision::NO_RULE,
    "insufficient_scope",
    "hidden_agent",
    "not_owner",
    "push_not_allowed",
    "push_unavailable",
    "skill_spellings_differ",
    "tenant_claim_missing",
    "tenant_claim_unusable",
    "tenant_not_ours",
];

impl Reader<'_> {
    pub(super) fn expect(&self, value: &Value<'_, '_>, asked: Option<Asked>) -> Option<Expect> {
        let fields = value.fields(&EXPECT)?;
        let effects = [("allow", Effect::Allow), ("deny", Effect::Deny)];
        let effect = fields.get("effect").and_then(|v| v.word(&effects))?;
        let reason = fields.get("reason").and_then(|v| reason(&v, effect));
        let rule = fields.get("rule").and_then(|v| {
            let name = v.text()?;
            let found = self.rule(&v, name)?;
            if found != effect {
                never(
                    &v,
                    format!("the rule `{}` {}", clip(name), says(found)),
                    "the deciding rule of an allow is an allow, and of a refusal the deny that fired; what nearly allowed it is `near`",
                );
            }
            Some(Box::from(name))
        });
        let by_rule = reason
            .as_deref()
            .is_none_or(|r| r == Decision::DENY_RULE || r == "push_not_allowed");
        if let (Some(place), Effect::Deny, false) = (fields.get("rule"), effect, by_rule) {
            never(
                &place,
                "with this reason no rule decided",
                "remove `rule`, or expect `reason: deny_rule`",
            );
        }
        let near = match fields.get("near") {
            Some(place) => Some(self.near(&place, effect)?),
            None => None,
        };
        let http = fields.get("http").and_then(|v| http(&v, effect, asked));
        Some(Expect {
            effect,
            reason,
            rule,
            near,
            http,
        })
    }

    fn near(&self, place: &Value<'_, '_>, effect: Effect) -> Option<ExpectedNear> {
        if effect == Effect::Allow {
            never(
                place,
                "an allowed call has no nearest rule",
                "remove `near`, or expect `effect: deny`",
            );
        }
        let fields: Mapping<'_, '_> = place.fields(&NEAR)?;
        let rule = fields.get("rule").and_then(|v| {
            let name = v.text()?;
            self.rule(&v, name)?;
            Some(Box::from(name))
        });
        let claim = fields.get("claim").and_then(|v| {
            let name = v.text()?;
            self.names.declared(&v, name).then(|| name.into())
        });
        let content = fields.get("content").and_then(|v| v.text());
        let why = fields.get("why").and_then(|v| {
            let name = v.text()?;
            if why::ALL.contains(&name) {
                return Some(name.into());
            }
            unknown(&v, "cause", name, &why::ALL, [].into_iter());
            None
        });
        Some(ExpectedNear {
            rule,
            claim,
            content: content.map(Box::from),
            why,
        })
    }

    /// What a rule of this id says, if there is one.
    fn rule(&self, place: &Value<'_, '_>, id: &str) -> Option<Effect> {
        let found = self.policies.effect_of(id);
        if found.is_none() && self.whole {
            let known = || self.policies.ids();
            let hint = match suggest(id, known()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "name a rule of the policies that are tested".to_owned(),
            };
            place.error(
                codes::UNKNOWN_RULE,
                format!("unknown rule `{}`", clip(id)),
                hint,
            );
        }
        if self.policies.shadows().iter().any(|s| *s.rule == *id) {
            never(
                place,
                "a rule in shadow mode decides nothing",
                "name another rule, or put this one in force",
            );
        }
        found
    }
}

fn says(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow => "allows",
        Effect::Deny => "denies",
    }
}

fn never(place: &Value<'_, '_>, message: impl Into<String>, hint: &str) {
    let message = format!("this can never come out: {}", message.into());
    place.error(codes::TEST_EXPECT, message, hint);
}

fn unknown(
    place: &Value<'_, '_>,
    what: &str,
    name: &str,
    known: &[&'static str],
    more: impl Iterator<Item = &'static str>,
) {
    let hint = match suggest(name, known.iter().copied().chain(more)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}", known.join(", ")),
    };
    let message = format!("there is no {what} `{}`", clip(name));
    place.error(codes::TEST_EXPECT, message, hint);
}

fn reason(place: &Value<'_, '_>, effect: Effect) -> Option<Box<str>> {
    let name = place.text()?;
    let of_tokens = || fault::ALL.iter().map(|fault| fault.code);
    let known = || {
        REASONS
            .into_iter()
            .chain(of_tokens())
            .chain(MALFORMED_CODES)
    };
    if !known().any(|code| code == name) {
        let more = of_tokens().chain(MALFORMED_CODES);
        unknown(place, "reason", name, &REASONS, more);
        return None;
    }
    let allows = name == Decision::ALLOWED;
    if allows != (effect == Effect::Allow) {
        never(
            place,
            format!("`{name}` is no reason of this effect"),
            "write `reason: allowed` beside `effect: allow`, and another one beside `effect: deny`",
        );
    }
    Some(name.into())
}

fn http(place: &Value<'_, '_>, effect: Effect, asked: Option<Asked>) -> Option<u16> {
    let status = place.integer(100..=599)?;
    if effect == Effect::Allow && status != 200 {
        never(
            place,
            "an allowed call reaches the agent, whose answer counts as 200",
            "write `http: 200`, or remove it",
        );
    }
    // In JSON-RPC some refusals have 200.
    if effect == Effect::Deny && status == 200 && asked == Some(Asked::Backend) {
        never(
            place,
            "a refusal on the backend surface is an HTTP error",
            "write the status of it, such as 403",
        );
    }
    u16::try_from(status).ok()
}

/// What came out otherwise than expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// The field of the expectation.
    pub what: &'static str,
    /// What it says.
    pub expected: String,
    /// What came out; `-` for nothing.
    pub got: String,
}

impl Expect {
    /// Everything that is said and did not come out, with the HTTP status of the reply.
    pub fn misses(&self, decision: &Decision, http: u16) -> Vec<Miss> {
        let near = decision.near.as_ref();
        let expected_near = self.near.as_ref();
        let texts = [
            ("reason", self.reason.as_deref(), Some(decision.reason)),
            ("rule", self.rule.as_deref(), decision.rule.as_deref()),
            (
                "near.rule",
                expected_near.and_then(|near| near.rule.as_deref()),
                near.map(|near| &*near.rule),
            ),
            (
                "near.claim",
                expected_near.and_then(|near| near.claim.as_deref()),
                near.and_then(|near| near.claim.as_deref()),
            ),
            (
                "near.content",
                expected_near.and_then(|near| near.content.as_deref()),
                near.and_then(|near| near.content.as_deref()),
            ),
            (
                "near.why",
                expected_near.and_then(|near| near.why.as_deref()),
                near.map(|near| near.why),
            ),
        ];
        let miss = |what, expected: &str, got: &str| Miss {
            what,
            expected: expected.to_owned(),
            got: got.to_owned(),
        };
        let mut misses = Vec::new();
        if self.effect != decision.effect {
            let (expected, got) = (self.effect.label(), decision.effect.label());
            misses.push(miss("effect", expected, got));
        }
        for (what, expected, got) in texts {
            if let Some(expected) = expected.filter(|expected| Some(*expected) != got) {
                misses.push(miss(what, expected, got.unwrap_or("-")));
            }
        }
        if let Some(expected) = self.http.filter(|expected| *expected != http) {
            misses.push(miss("http", &expected.to_string(), &http.to_string()));
        }
        misses
    }
}
