//! What was decided, in records.

use super::label::Effect;
use super::value::LIST;
use crate::policy::{self, ShadowResult};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// What was decided.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Decision<'a> {
    /// Allow or deny.
    pub effect: Effect,
    /// A code of the closed private set.
    pub reason: &'a str,
    /// The id of the deciding rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'a str>,
    /// For a refusal: the rule that came nearest to allowing it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<Near<'a>>,
    /// What rules in shadow mode came to; at most 32, those first that would have turned the
    /// decision round.
    #[serde(skip_serializing_if = "Shadows::is_empty")]
    pub shadow: Shadows<'a>,
}

/// The rule that came nearest to allowing a call.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Near<'a> {
    /// Its id.
    pub rule: &'a str,
    /// The claim that it failed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<&'a str>,
    /// The path in the message that it failed on; never what stands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<&'a str>,
    /// How: `missing`, `null`, `wrong_type`, `value_differs`, or another code of the closed set.
    pub why: &'a str,
}

impl<'a> Decision<'a> {
    /// A decision as it is recorded.
    pub fn of(decision: &'a policy::Decision) -> Decision<'a> {
        Decision {
            effect: decision.effect.into(),
            reason: decision.reason,
            rule: decision.rule.as_deref(),
            near: decision.near.as_ref().map(|near| Near {
                rule: &near.rule,
                claim: near.claim.as_deref(),
                content: near.content.as_deref(),
                why: near.why,
            }),
            shadow: Shadows(&decision.shadow),
        }
    }

    /// A refusal before policy was asked.
    pub fn refusal(reason: &'a str) -> Decision<'a> {
        Decision {
            effect: Effect::Deny,
            reason,
            rule: None,
            near: None,
            shadow: Shadows(&[]),
        }
    }
}

impl From<policy::Effect> for Effect {
    fn from(effect: policy::Effect) -> Effect {
        match effect {
            policy::Effect::Allow => Effect::Allow,
            policy::Effect::Deny => Effect::Deny,
        }
    }
}

/// What rules in shadow mode came to; those that turn nothing round are the first to be left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shadows<'a>(pub &'a [ShadowResult]);

impl Shadows<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What one rule in shadow mode came to.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Shadow<'a> {
    /// Its id.
    rule: &'a str,
    /// What it says.
    effect: Effect,
    /// `match`: it allows, or denies; `no_match`: it says nothing about this caller and call;
    /// `unknown`: that cannot be known, so an allow does not allow and a deny does deny.
    result: &'static str,
    /// The decision that it alone would have turned round, had it been in force: `would_deny` an
    /// allowed call, or `would_allow` one that no rule allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

impl Serialize for Shadows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let turning = self.0.iter().filter(|result| result.would.is_some());
        let others = self.0.iter().filter(|result| result.would.is_none());
        let mut seq = serializer.serialize_seq(None)?;
        for result in turning.chain(others).take(LIST) {
            seq.serialize_element(&Shadow {
                rule: &result.rule,
                effect: result.effect.into(),
                result: result.result.label(),
                would: result.would.map(|effect| match effect {
                    policy::Effect::Allow => "would_allow",
                    policy::Effect::Deny => "would_deny",
                }),
            })?;
        }
        seq.end()
    }
}

impl JsonSchema for Shadows<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Shadows".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let item = generator.subschema_for::<Shadow<'_>>();
        json_schema!({ "type": "array", "maxItems": LIST, "items": item })
    }
}
