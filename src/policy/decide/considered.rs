//! [`considered`]: every rule that a question meets, what it comes to, and why.
//!
//! It asks the same functions that [`decide()`](super::decide()) asks; only that it goes on to the
//! end, and tells what it saw.

use super::{Call, Question, parties};
use crate::policy::condition::{Matcher, Party, Tri, results};
use crate::policy::content::{self, Seen};
use crate::policy::decision::{Effect, why};
use crate::policy::index::{Body, PolicySet, Rule, SkillNumber};
use crate::policy::shadow::RuleResult;
use std::sync::Arc;

/// A rule about the agent and the operation of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Considered {
    /// Its id.
    pub rule: Arc<str>,
    /// What it says.
    pub effect: Effect,
    /// Whether it was asked for the actor of a delegated call, who must be allowed as well.
    pub for_actor: bool,
    /// Why it does not concern the call or the caller at all: one of [`why`].
    pub outside: Option<&'static str>,
    /// Whether it holds: of a deny, `unless` turned round. False where it is outside.
    pub result: Tri,
    /// Whether it is in shadow mode: it changes nothing.
    pub shadow: bool,
    /// Whether it allows, or fires; a rule in shadow mode would.
    pub counts: bool,
    /// The tests of its condition.
    pub tests: Vec<Tested>,
}

/// A test of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    /// The claim; of the content, the path.
    pub claim: Arc<str>,
    /// Whether it looks at what a message says.
    pub content: bool,
    /// What is asked of it, in words.
    pub asks: String,
    /// What it comes to.
    pub result: Tri,
    /// Why it is not true: one of [`why`].
    pub why: Option<&'static str>,
}

/// A claim that a call needs to be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needed {
    /// The claim.
    pub claim: Arc<str>,
    /// Values of which one will do.
    pub listed: Vec<Box<str>>,
    /// Whether other text will do as well.
    pub open: bool,
    /// Whether every lesser number will do as well.
    pub below: bool,
    /// Whether every greater number will do as well.
    pub above: bool,
}

/// Every rule about the agent and the operation, ascending by id; for a delegated call once for the
/// subject, then once for the actor.
pub fn considered(policies: &PolicySet, question: &Question<'_>) -> Vec<Considered> {
    let calls = calls(policies, question);
    let met = |call: Call<'_>| -> Vec<Considered> {
        let rules = policies.rules.iter().enumerate();
        rules
            .filter(|(_, rule)| is_about(rule, question.agent, call.slot))
            .map(|(position, rule)| call.consider(position, rule))
            .collect()
    };
    calls.into_iter().flat_map(met).collect()
}

/// The claims that decide about an allowed call: those that the allow `rule` requires, and those
/// without which a deny would fire.
pub fn needed(policies: &PolicySet, question: &Question<'_>, rule: &str) -> Vec<Needed> {
    let mut needed: Vec<Needed> = Vec::new();
    for call in calls(policies, question) {
        for (position, found) in policies.rules.iter().enumerate() {
            let counts = match &found.body {
                Body::Allow { .. } => *found.id == *rule,
                Body::DenyUnless(_) => {
                    is_about(found, question.agent, call.slot)
                        && call.outside(position, found).is_none()
                }
                Body::DenyWhen(_) | Body::DenyAlways => false,
            };
            if !counts || found.shadow {
                continue;
            }
            for test in found.body.claims() {
                let claim = test.told(call.party);
                if !needed.iter().any(|known| known.claim == claim) {
                    needed.push(of_test(claim, &test.matcher));
                }
            }
        }
    }
    needed
}

/// Every allow with the claims that it requires, ascending by id.
pub fn required(policies: &PolicySet) -> impl Iterator<Item = (&str, Vec<Arc<str>>)> {
    let allows = policies.rules.iter();
    let allows = allows.filter(|rule| rule.body.effect() == Effect::Allow && !rule.shadow);
    allows.map(|rule| {
        let tests = rule.body.claims().iter();
        (&*rule.id, tests.map(|t| t.told(Party::Subject)).collect())
    })
}

/// Whether an allow `rule`, or a deny that could fire, looks at what a message says.
pub fn looks_at_content(policies: &PolicySet, question: &Question<'_>, rule: &str) -> bool {
    let met = considered(policies, question);
    let mut met = met.iter().filter(|found| {
        found.outside.is_none() && (found.effect == Effect::Deny || *found.rule == *rule)
    });
    met.any(|found| found.tests.iter().any(|test| test.content))
}

fn calls<'a>(policies: &'a PolicySet, question: &Question<'a>) -> Vec<Call<'a>> {
    let Some(agent) = policies.agents.get(question.agent) else {
        return Vec::new();
    };
    let slot = question.asked.slot();
    let call = |party: &Party| Call {
        policies,
        agent,
        slot,
        skill: super::skill_number(agent, slot, question.skill),
        principal: question.principal,
        memo: None,
        party: *party,
        seen: question.content.map_or(Seen::Nothing, Seen::Content),
    };
    parties(question.principal).iter().map(call).collect()
}

fn is_about(rule: &Rule, agent: usize, slot: usize) -> bool {
    let agents = rule.scope.agents.as_ref();
    agents.is_none_or(|named| named.contains(&agent))
        && rule.scope.operations.slots().any(|s| s == slot)
}

impl Call<'_> {
    fn consider(&self, position: usize, rule: &Rule) -> Considered {
        let outside = self.outside(position, rule);
        let result = match outside {
            Some(_) => RuleResult::NoMatch,
            None => self.result(position, rule),
        };
        let counts = match rule.body.effect() {
            Effect::Allow => result == RuleResult::Match,
            Effect::Deny => result.fires(),
        };
        let of_claims = results(rule.body.claims(), self.principal, self.party);
        let of_claims = of_claims.map(|(test, party, result, why)| Tested {
            claim: test.told(party),
            content: false,
            asks: test.matcher.told(),
            result,
            why: (result != Tri::True).then(|| why.code()),
        });
        let of_content = content::results(rule.body.content(), self.seen);
        let of_content = of_content.map(|(test, result, why)| Tested {
            claim: Arc::clone(&test.path),
            content: true,
            asks: test.asks(),
            result,
            why: (result != Tri::True).then(|| why.code()),
        });
        Considered {
            rule: Arc::clone(&rule.id),
            effect: rule.body.effect(),
            for_actor: self.party == Party::Actor,
            shadow: rule.shadow,
            outside,
            result: match result {
                RuleResult::Match => Tri::True,
                RuleResult::NoMatch => Tri::False,
                RuleResult::Unknown => Tri::Unknown,
            },
            counts,
            tests: of_claims.chain(of_content).collect(),
        }
    }

    /// Why a rule about the agent and operation says nothing here, whatever its condition.
    fn outside(&self, position: usize, rule: &Rule) -> Option<&'static str> {
        let listed = self.slots().any(|slot| {
            let lists = slot.lists(self.skill);
            let mut lists = [&lists.allows, &lists.denies, &lists.shadows].into_iter();
            lists.any(|list| list.binary_search(&position).is_ok())
        });
        if !listed {
            return Some(match self.skill {
                SkillNumber::Unknown => why::SKILL_UNKNOWN,
                SkillNumber::Known(_) | SkillNumber::NotAMessage => why::SKILL,
            });
        }
        if !rule.issuers.contains(self.principal.issuer_index) {
            return Some(why::ISSUER);
        }
        match &rule.body {
            Body::Allow { grant, .. } if !self.has(*grant) => Some(why::GRANT),
            Body::Allow { .. } | Body::DenyWhen(_) | Body::DenyUnless(_) | Body::DenyAlways => None,
        }
    }
}

fn of_test(claim: Arc<str>, matcher: &Matcher) -> Needed {
    let exists = matches!(matcher, Matcher::Exists(_));
    Needed {
        claim,
        listed: match matcher {
            Matcher::AnyOf(values) | Matcher::Intersects(values) => values.to_vec(),
            _ => Vec::new(),
        },
        open: exists || matches!(matcher, Matcher::Matches(_)),
        below: exists || matches!(matcher, Matcher::Less(_) | Matcher::LessOrEqual(_)),
        above: exists || matches!(matcher, Matcher::Greater(_) | Matcher::GreaterOrEqual(_)),
    }
}
