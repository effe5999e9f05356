//! [`Recorded`]: a decision as the journal has it, with what is known of its caller.

use super::super::decide::{Asked, AskedSkill};
use super::super::diff::{Fact, Variable};
use crate::a2a::Operation;
use crate::identity::issuer::Grant;
use crate::identity::{Actor, ClaimState, ClaimValue, ProofKind};
use serde_json::Value;
use std::collections::BTreeMap;

/// A decision of policy.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// When, as RFC 3339 in UTC.
    pub time: Box<str>,
    /// The request's id.
    pub request_id: Box<str>,
    /// The agent's name.
    pub agent: Box<str>,
    /// The operation.
    pub asked: Asked,
    /// The skill of a message.
    pub skill: RecordedSkill,
    /// Whether it was allowed.
    pub allowed: bool,
    /// The reason code.
    pub reason: Box<str>,
    /// The deciding rule.
    pub rule: Option<Box<str>>,
    /// Who called.
    pub caller: RecordedCaller,
    /// Hosts of the webhooks that it sets, with their ports where they are not the usual one.
    pub webhooks: Vec<Box<str>>,
}

/// The skill of a call, as far as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordedSkill {
    /// It concerns none.
    None,
    /// This one.
    Known(Box<str>),
    /// It could not be established.
    Unestablished,
    /// The record does not say.
    Unrecorded,
}

/// A caller, as far as it is recorded.
#[derive(Debug, Clone)]
pub struct RecordedCaller {
    /// Its issuer's configured name.
    pub issuer: Box<str>,
    /// `sub`, as recorded.
    pub subject: Box<str>,
    /// Its client.
    pub client: Option<Box<str>>,
    /// The reach of its token.
    pub grant: Option<Grant>,
    facts: BTreeMap<Variable, Fact>,
}

/// Reasons of decisions that policy made. All others came before it was asked.
const REASONS: [&str; 4] = ["allowed", "deny_rule", "no_rule", "push_not_allowed"];

impl Recorded {
    /// Reads a record; `None` when it is about no decision of policy.
    pub fn read(record: &Value) -> Option<Recorded> {
        let text = |name: &str| record.get(name).and_then(Value::as_str);
        if !["intent", "refusal"].contains(&text("kind")?) {
            return None;
        }
        let decision = record.get("decision")?;
        let reason = decision.get("reason")?.as_str()?;
        let of_policy = REASONS.contains(&reason) || reason.starts_with("webhook_");
        if !of_policy {
            return None;
        }
        let asked = match (text("operation"), text("surface")?) {
            (Some(name), _) => {
                let mut all = Operation::ALL.into_iter();
                Asked::Operation(all.find(|operation| operation.name() == name)?)
            }
            (None, "backend") => Asked::Backend,
            (None, _) => return None,
        };
        let webhooks = record.get("webhook_hosts").and_then(Value::as_array);
        let webhooks = webhooks.into_iter().flatten().filter_map(Value::as_str);
        let rule = decision.get("rule").and_then(Value::as_str);
        Some(Recorded {
            time: text("time")?.into(),
            request_id: text("request_id")?.into(),
            agent: text("agent")?.into(),
            asked,
            skill: skill(asked, record.get("skill")),
            allowed: decision.get("effect")?.as_str()? == "allow",
            reason: reason.into(),
            rule: rule.map(Box::from),
            caller: RecordedCaller::read(record.get("caller")?)?,
            webhooks: webhooks.map(Box::from).collect(),
        })
    }

    /// Whether it is a message that sets a webhook, which needs to be allowed too.
    pub fn inline_push(&self) -> bool {
        let message = !matches!(self.skill, RecordedSkill::None);
        message && (!self.webhooks.is_empty() || self.reason.starts_with("webhook_"))
            || &*self.reason == "push_not_allowed"
    }
}

impl RecordedSkill {
    /// As a question has it; `None` where the record does not say.
    pub(in crate::policy) fn asked(&self) -> Option<AskedSkill<'_>> {
        match self {
            RecordedSkill::None => Some(AskedSkill::NotAMessage),
            RecordedSkill::Known(skill) => Some(AskedSkill::Known(skill)),
            RecordedSkill::Unestablished => Some(AskedSkill::Unknown),
            RecordedSkill::Unrecorded => None,
        }
    }
}

fn skill(asked: Asked, record: Option<&Value>) -> RecordedSkill {
    if !super::super::index::is_message(asked.slot()) {
        return RecordedSkill::None;
    }
    match record.map(|skill| skill.get("id")) {
        None => RecordedSkill::Unrecorded,
        Some(None) => RecordedSkill::Unestablished,
        Some(Some(id)) => id
            .as_str()
            .and_then(whole)
            .map_or(RecordedSkill::Unrecorded, |id| {
                RecordedSkill::Known(id.into())
            }),
    }
}

impl RecordedCaller {
    fn read(record: &Value) -> Option<RecordedCaller> {
        let text = |name: &str| record.get(name).and_then(Value::as_str);
        let subject = text("subject")?;
        let client = text("client");
        let mut facts = BTreeMap::new();
        facts.extend(whole(subject).map(|s| (Variable::Subject, Fact::Text(Some(s.into())))));
        match client {
            // A client that was there is recorded.
            None => drop(facts.insert(Variable::Client, Fact::Text(None))),
            Some(client) => {
                let fact = whole(client).map(|c| Fact::Text(Some(c.into())));
                facts.extend(fact.map(|fact| (Variable::Client, fact)));
            }
        }
        let outermost = record.get("actors").and_then(|actors| actors.get(0));
        let actor = match outermost {
            None => Some(None),
            Some(actor) => actor
                .get("subject")
                .and_then(Value::as_str)
                .and_then(whole)
                .map(|subject| {
                    let issuer = actor.get("issuer").and_then(Value::as_str);
                    Some(Actor {
                        subject: subject.into(),
                        issuer: issuer.map(Box::from),
                    })
                }),
        };
        facts.extend(actor.map(|actor| (Variable::Actor, Fact::Actor(actor))));
        let proof = match text("proof") {
            Some("none") => Some(ProofKind::None),
            Some("mtls") => Some(ProofKind::Mtls),
            Some("dpop") => Some(ProofKind::Dpop),
            Some(_) | None => None,
        };
        facts.extend(proof.map(|proof| (Variable::Proof, Fact::Proof(proof))));
        let scopes = record.get("scopes").and_then(texts);
        facts.extend(scopes.map(|scopes| (Variable::Scopes, Fact::Texts(scopes))));
        let members = |name: &str| record.get(name).and_then(Value::as_object);
        for (name, value) in members("claims").into_iter().flatten() {
            let state = claim(value).map(ClaimState::Value);
            let fact =
                state.map(|state| (Variable::Claim(name.as_str().into()), Fact::Claim(state)));
            facts.extend(fact);
        }
        for (name, value) in members("no_claims").into_iter().flatten() {
            let state = match value.as_str() {
                Some("missing") => ClaimState::Missing,
                Some("null") => ClaimState::Null,
                Some("wrong_type") => ClaimState::WrongType,
                Some(_) | None => continue,
            };
            facts.insert(Variable::Claim(name.as_str().into()), Fact::Claim(state));
        }
        Some(RecordedCaller {
            issuer: text("issuer")?.into(),
            subject: subject.into(),
            client: client.map(Box::from),
            grant: match text("grant")? {
                "agent" => Some(Grant::Agent),
                "full" => Some(Grant::Full),
                _ => None,
            },
            facts,
        })
    }

    /// What is known, by what rules look at.
    pub(super) fn facts(&self) -> &BTreeMap<Variable, Fact> {
        &self.facts
    }

    /// Whether somebody acts for it, as far as is known.
    pub fn is_delegated(&self) -> bool {
        !matches!(self.facts.get(&Variable::Actor), Some(Fact::Actor(None)))
    }

    /// The value of a string claim, where it is recorded.
    pub fn text(&self, claim: &str) -> Option<&str> {
        match self.facts.get(&Variable::Claim(claim.into()))? {
            Fact::Claim(ClaimState::Value(ClaimValue::String(text))) => Some(text),
            _ => None,
        }
    }

    /// The pieces of an array claim, where it is recorded.
    pub fn texts(&self, claim: &str) -> Option<&[Box<str>]> {
        match self.facts.get(&Variable::Claim(claim.into()))? {
            Fact::Claim(ClaimState::Value(ClaimValue::Strings(all))) => Some(all),
            _ => None,
        }
    }
}

/// Whether a text stands in a record for one that is hidden there. A caller whose real name looks
/// so is taken for hidden, of which nothing follows.
pub fn is_hidden(text: &str) -> bool {
    let hex = |text: &str, length| {
        text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    text.strip_prefix("hmac:")
        .and_then(|rest| rest.split_once(':'))
        .is_some_and(|(key, token)| hex(key, 8) && hex(token, 32))
}

/// Text that stands in a record as it was: not cut, not hidden, and without characters that were
/// rewritten.
fn whole(text: &str) -> Option<&str> {
    (!text.contains('…') && !text.contains("\\u{") && !is_hidden(text)).then_some(text)
}

fn texts(value: &Value) -> Option<Vec<Box<str>>> {
    // A list that was cut ends with a mark that is not whole.
    let all = value.as_array()?.iter();
    all.map(|item| item.as_str().and_then(whole).map(Box::from))
        .collect()
}

fn claim(value: &Value) -> Option<ClaimValue> {
    match value {
        Value::String(text) => whole(text).map(|text| ClaimValue::String(text.into())),
        Value::Number(number) => number.as_f64().map(ClaimValue::Number),
        Value::Bool(flag) => Some(ClaimValue::Boolean(*flag)),
        Value::Array(_) => texts(value).map(ClaimValue::Strings),
        // A number that JSON does not have.
        Value::Null | Value::Object(_) => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Who a caller was can then not be judged again; what else it had can.
    #[test]
    fn hidden_values_are_no_facts() {
        let token = format!("hmac:01234567:{}", "ab".repeat(16));
        let caller = json!({
            "issuer": "corp", "subject": token, "client": token, "grant": "agent",
            "actors": [{"subject": token}], "scopes": [], "proof": "none",
            "claims": {"who": token, "all": ["a", token], "role": "reviewer"},
        });
        let caller = RecordedCaller::read(&caller).unwrap();
        let known: Vec<_> = caller.facts().keys().collect();
        let role = Variable::Claim("role".into());
        for hidden in [Variable::Subject, Variable::Client, Variable::Actor] {
            assert!(!known.contains(&&hidden), "{hidden:?}");
        }
        assert_eq!(known.len(), 3, "{known:?}");
        assert!(known.contains(&&role));
        assert_eq!((caller.text("who"), caller.texts("all")), (None, None));
    }
}
