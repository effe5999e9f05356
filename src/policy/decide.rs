//! [`decide()`]: the answer to a [`Question`].

mod considered;

pub use considered::{Considered, Needed, Tested, considered, looks_at_content, needed, required};

use super::condition::{Condition, Party, Tri, evaluate, failing};
use super::content::{self, Seen};
use super::decision::{Decision, Effect, Near, why};
use super::index::{
    AgentRules, BACKEND_SLOT, Body, PolicySet, Rule, SLOTS, SkillNumber, Slot, is_message, slot_of,
};
use super::memo::Memo;
use super::shadow::{RuleResult, ShadowResult};
use crate::a2a::Operation;
use crate::a2a::content::Content;
use crate::identity::Principal;
use crate::identity::issuer::Grant;
use std::sync::Arc;

/// What a caller wants to do.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Position of the agent in the configuration.
    pub agent: usize,
    /// The operation, or a path of the backend surface.
    pub asked: Asked,
    /// The skill of a message, or of the task it continues. Only looked at for the two operations
    /// that send a message: rules restrict the skills of nothing else.
    pub skill: AskedSkill<'a>,
    /// Who asks.
    pub principal: &'a Principal,
    /// What rules were found to say about that caller's token under this generation; `None`: each
    /// is evaluated now.
    pub memo: Option<&'a Memo>,
    /// What the message says, made when a rule looks at it; `None`: there is no message, so that
    /// every condition on its content misses its value.
    pub content: Option<&'a Content<'a>>,
}

/// The operation that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// One of the eleven operations.
    Operation(Operation),
    /// A declared path of the backend surface; needs the full grant.
    Backend,
}

impl Asked {
    pub(super) fn slot(self) -> usize {
        match self {
            Asked::Operation(operation) => slot_of(operation),
            Asked::Backend => BACKEND_SLOT,
        }
    }
}

/// The skill that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedSkill<'a> {
    /// The operation concerns no skill. For a message this counts as [`AskedSkill::Unknown`].
    NotAMessage,
    /// A skill; one that the agent does not declare counts as [`AskedSkill::Unknown`].
    Known(&'a str),
    /// It cannot be established: absent, unlisted or conflicting. No allow that names skills
    /// matches, and every deny that does may fire.
    Unknown,
}

/// Judges a call. Nothing is allocated on an allow. A delegated call needs an allow, and no deny that
/// fires, for the subject and for the outermost actor alike (GR-8).
pub fn decide(policies: &PolicySet, question: &Question<'_>) -> Decision {
    let Some(agent) = policies.agents.get(question.agent) else {
        return Decision::deny(Decision::NO_RULE);
    };
    let slot = question.asked.slot();
    // Looked up once: the parties of a call are gone through several times.
    let skill = skill_number(agent, slot, question.skill);
    let call = |party: &Party| Call {
        policies,
        agent,
        slot,
        skill,
        principal: question.principal,
        memo: question.memo,
        party: *party,
        seen: question.content.map_or(Seen::Nothing, Seen::Content),
    };
    let parties = parties(question.principal).iter().map(call);
    let mut decision = in_force(parties.clone());
    if !policies.shadows().is_empty() {
        decision.shadow = shadows(parties, &decision);
    }
    decision
}

/// What the rules in force say.
fn in_force<'a>(parties: impl Iterator<Item = Call<'a>> + Clone) -> Decision {
    for call in parties.clone() {
        if let Some(rule) = call.firing() {
            return Decision {
                rule: Some(Arc::clone(&rule.id)),
                near: call.why_firing(rule),
                ..Decision::deny(Decision::DENY_RULE)
            };
        }
    }
    let mut deciding: Option<&Rule> = None;
    for call in parties {
        let Some(rule) = call.allowing() else {
            return Decision {
                near: call.nearest(),
                ..Decision::deny(Decision::NO_RULE)
            };
        };
        deciding.get_or_insert(rule);
    }
    Decision {
        effect: Effect::Allow,
        reason: Decision::ALLOWED,
        rule: deciding.map(|rule| Arc::clone(&rule.id)),
        ..Decision::deny(Decision::ALLOWED)
    }
}

/// What the rules in shadow mode say, and whether one of them alone would have turned `decision`
/// round.
fn shadows<'a>(
    parties: impl Iterator<Item = Call<'a>> + Clone,
    decision: &Decision,
) -> Box<[ShadowResult]> {
    let positions = |call: Call<'a>| {
        call.slots()
            .flat_map(move |slot| call.rules(&slot.lists(call.skill).shadows))
    };
    // Every party meets the same rules.
    let rules = parties.clone().take(1).flat_map(positions);
    rules
        .map(|(position, rule)| {
            let results = parties.clone().map(|call| call.result(position, rule));
            let turns = match (rule.body.effect(), decision.effect) {
                (Effect::Deny, Effect::Allow) => results.clone().any(RuleResult::fires),
                // A firing deny beats it, and what no rule allows to one party it may not allow.
                (Effect::Allow, Effect::Deny) if decision.reason == Decision::NO_RULE => {
                    parties.clone().all(|call| {
                        call.result(position, rule) == RuleResult::Match
                            || call.allowing().is_some()
                    })
                }
                (Effect::Allow, _) | (Effect::Deny, Effect::Deny) => false,
            };
            let effect = rule.body.effect();
            ShadowResult {
                rule: Arc::clone(&rule.id),
                effect,
                result: results
                    .reduce(|one, other| one.with(other, effect))
                    .unwrap_or(RuleResult::Unknown),
                would: turns.then_some(effect),
            }
        })
        .collect()
}

/// Whom a call must be allowed to.
fn parties(principal: &Principal) -> &'static [Party] {
    if principal.actors.is_empty() {
        &[Party::Subject]
    } else {
        &[Party::Subject, Party::Actor]
    }
}

/// Whether any call of this caller to this agent would be allowed (I-6): if not, an unpublished
/// agent does not exist for it.
pub fn may_ever(
    policies: &PolicySet,
    principal: &Principal,
    memo: Option<&Memo>,
    agent: usize,
) -> bool {
    let Some(agent) = policies.agents.get(agent) else {
        return false;
    };
    let may = |slot, skill| {
        let call = |party: &Party| Call {
            policies,
            agent,
            slot,
            skill,
            principal,
            memo,
            party: *party,
            seen: Seen::Any,
        };
        // Allows first: a caller whom no rule allows anything is what this is asked for.
        let mut calls = parties(principal).iter().map(call);
        calls.all(|call| call.allowing().is_some() && call.firing().is_none())
    };
    some_call(agent, may)
}

/// Whether `may` holds for any call to an agent.
fn some_call(agent: &AgentRules, may: impl Fn(usize, SkillNumber) -> bool) -> bool {
    (0..SLOTS).any(|slot| {
        if !is_message(slot) {
            return may(slot, SkillNumber::NotAMessage);
        }
        let mut skills = agent.skills.iter().map(|(_, n)| SkillNumber::Known(*n));
        may(slot, SkillNumber::Unknown) || skills.any(|skill| may(slot, skill))
    })
}

/// Whether some caller with a token of the issuer at `issuer` could be allowed anything at the
/// agent; conditions are taken to hold for somebody, and denies that have one not to fire.
pub fn could_use(policies: &PolicySet, agent: usize, issuer: usize) -> bool {
    let Some(agent) = policies.agents.get(agent) else {
        return false;
    };
    let rule = |position: &usize| policies.rules.get(*position);
    some_call(agent, |slot, skill| {
        let lists = || {
            let slots = [&agent.table, &policies.any];
            let slots = slots.into_iter().filter_map(move |t| t.slots.get(slot));
            slots.map(move |s| s.lists(skill))
        };
        let mut allows = lists().flat_map(|l| &l.allows).filter_map(rule);
        let mut denies = lists().flat_map(|l| &l.denies).filter_map(rule);
        allows.any(|allow| allow.issuers.contains(issuer))
            && !denies
                .any(|deny| matches!(deny.body, Body::DenyAlways) && deny.issuers.contains(issuer))
    })
}

/// Whether some caller could be allowed this: what a card may promise. An allow must concern it that
/// no deny beats for every caller; conditions are taken to hold for somebody.
pub fn could_allow(
    policies: &PolicySet,
    agent: usize,
    asked: Asked,
    skill: AskedSkill<'_>,
) -> bool {
    let Some(agent) = policies.agents.get(agent) else {
        return false;
    };
    let slot = asked.slot();
    let skill = skill_number(agent, slot, skill);
    let tables = [&agent.table, &policies.any];
    let lists = || {
        tables
            .iter()
            .filter_map(|t| t.slots.get(slot))
            .map(|s| s.lists(skill))
    };
    let rule = |position: &usize| policies.rules.get(*position);
    let beaten = |allow: &Rule| {
        lists()
            .flat_map(|l| &l.denies)
            .filter_map(rule)
            .any(|deny| {
                matches!(deny.body, Body::DenyAlways) && deny.issuers.covers(&allow.issuers)
            })
    };
    lists()
        .flat_map(|l| &l.allows)
        .filter_map(rule)
        .any(|allow| !beaten(allow))
}

pub(super) fn skill_number(agent: &AgentRules, slot: usize, asked: AskedSkill<'_>) -> SkillNumber {
    if !is_message(slot) {
        return SkillNumber::NotAMessage;
    }
    match asked {
        AskedSkill::NotAMessage | AskedSkill::Unknown => SkillNumber::Unknown,
        AskedSkill::Known(skill) => agent
            .skills
            .binary_search_by(|(name, _)| (**name).cmp(skill))
            .ok()
            .and_then(|i| agent.skills.get(i))
            .map_or(SkillNumber::Unknown, |(_, n)| SkillNumber::Known(*n)),
    }
}

/// A question, looked up in the index.
#[derive(Clone, Copy)]
struct Call<'a> {
    policies: &'a PolicySet,
    agent: &'a AgentRules,
    slot: usize,
    skill: SkillNumber,
    principal: &'a Principal,
    memo: Option<&'a Memo>,
    party: Party,
    seen: Seen<'a>,
}

impl<'a> Call<'a> {
    /// Rules that name the agent, then rules about all agents.
    fn slots(&self) -> impl Iterator<Item = &'a Slot> + use<'a> {
        let tables = [&self.agent.table, &self.policies.any];
        let slot = self.slot;
        tables.into_iter().filter_map(move |t| t.slots.get(slot))
    }

    fn rules(&self, positions: &'a [usize]) -> impl Iterator<Item = (usize, &'a Rule)> + use<'a> {
        let rules = &self.policies.rules;
        positions
            .iter()
            .filter_map(move |i| Some((*i, rules.get(*i)?)))
    }

    /// What the condition of the rule at a position comes to; `hoped` is what its part about the
    /// content is taken for where any message will do.
    fn comes_to(&self, position: usize, condition: &Condition, hoped: Tri) -> Tri {
        let claims = self.claims_come_to(position, condition);
        if condition.content.is_empty() || claims == Tri::False {
            return claims;
        }
        claims.and(match self.seen {
            Seen::Any => hoped,
            Seen::Nothing | Seen::Content(_) => content::evaluate(&condition.content, self.seen),
        })
    }

    /// The part that depends on the token alone, and is remembered with it.
    fn claims_come_to(&self, position: usize, condition: &Condition) -> Tri {
        let evaluated = || evaluate(&condition.claims, self.principal, self.party);
        let rules = self.policies.rules.len();
        // The parties' results are kept apart: the actor's stand behind the subject's.
        let at = match self.party {
            Party::Subject => position,
            Party::Actor => rules + position,
        };
        match self.memo {
            Some(memo) => memo.recall(at, rules * parties(self.principal).len(), evaluated),
            None => evaluated(),
        }
    }

    fn firing(&self) -> Option<&'a Rule> {
        self.slots()
            .flat_map(|slot| self.rules(&slot.lists(self.skill).denies))
            .find(|(position, rule)| self.fires(*position, rule))
            .map(|(_, rule)| rule)
    }

    fn allowing(&self) -> Option<&'a Rule> {
        self.slots()
            .flat_map(|slot| self.rules(&slot.lists(self.skill).allows))
            .find(|(position, rule)| self.allows(*position, rule))
            .map(|(_, rule)| rule)
    }

    fn fires(&self, position: usize, rule: &Rule) -> bool {
        self.result(position, rule).fires()
    }

    fn allows(&self, position: usize, rule: &Rule) -> bool {
        self.result(position, rule) == RuleResult::Match
    }

    /// What a rule comes to, in force or not.
    fn result(&self, position: usize, rule: &Rule) -> RuleResult {
        if !rule.issuers.contains(self.principal.issuer_index) {
            return RuleResult::NoMatch;
        }
        match &rule.body {
            Body::Allow { grant, .. } if !self.has(*grant) => RuleResult::NoMatch,
            Body::Allow { require, .. } => self.comes_to(position, require, Tri::True).into(),
            Body::DenyWhen(condition) => self.comes_to(position, condition, Tri::False).into(),
            Body::DenyUnless(condition) => match self.comes_to(position, condition, Tri::True) {
                Tri::True => RuleResult::NoMatch,
                Tri::False => RuleResult::Match,
                Tri::Unknown => RuleResult::Unknown,
            },
            Body::DenyAlways => RuleResult::Match,
        }
    }

    /// Whether the token reaches this far. The backend surface needs the full grant whatever a
    /// rule says (GR-1).
    fn has(&self, grant: Grant) -> bool {
        let needed = if self.slot == BACKEND_SLOT {
            Grant::Full
        } else {
            grant
        };
        self.principal.grant.is_some_and(|grant| grant >= needed)
    }

    /// What made a deny fire; `None` when it always does.
    fn why_firing(&self, rule: &Rule) -> Option<Near> {
        match &rule.body {
            Body::Allow { .. } | Body::DenyAlways => None,
            Body::DenyUnless(_) => self.first_failing(rule),
            // Not false, so that each test is true or unknown.
            Body::DenyWhen(_) => self.first_failing(rule).or_else(|| {
                let claims = rule.body.claims();
                let claim = claims
                    .first()
                    .map(|test| test.told(self.party.within(claims)));
                let content = match claim {
                    Some(_) => None,
                    None => rule
                        .body
                        .content()
                        .first()
                        .map(|test| Arc::clone(&test.path)),
                };
                Some(Near {
                    rule: Arc::clone(&rule.id),
                    claim,
                    content,
                    why: why::VALUE_MATCHES,
                })
            }),
        }
    }

    /// The first test of a rule that is not true: of the claims, then of the content.
    fn first_failing(&self, rule: &Rule) -> Option<Near> {
        let near = |claim, content, why| Near {
            rule: Arc::clone(&rule.id),
            claim,
            content,
            why,
        };
        let mut claims = failing(rule.body.claims(), self.principal, self.party);
        if let Some((test, party, why)) = claims.next() {
            return Some(near(Some(test.told(party)), None, why.code()));
        }
        let (test, why) = content::failing(rule.body.content(), self.seen).next()?;
        Some(near(None, Some(Arc::clone(&test.path)), why.code()))
    }

    /// The allow that fails on the least, and what it fails on.
    fn nearest(&self) -> Option<Near> {
        self.slots()
            .flat_map(|slot| {
                let concerned = &slot.lists(self.skill).allows;
                let all = slot.allows.iter();
                all.filter_map(|i| {
                    Some((
                        concerned.binary_search(i).is_ok(),
                        self.policies.rules.get(*i)?,
                    ))
                })
            })
            .map(|(skill, rule)| (self.distance(skill, rule), rule))
            // The first of equals, and rules are sorted: never a question of order.
            .min_by_key(|(distance, _)| *distance)
            .and_then(|(distance, rule)| self.missed(distance, rule))
    }

    fn distance(&self, skill: bool, rule: &Rule) -> Distance {
        let Body::Allow { grant, require } = &rule.body else {
            return Distance::default();
        };
        Distance {
            skill: !skill,
            issuer: !rule.issuers.contains(self.principal.issuer_index),
            grant: !self.has(*grant),
            tests: failing(&require.claims, self.principal, self.party).count()
                + content::failing(&require.content, self.seen).count(),
        }
    }

    fn missed(&self, distance: Distance, rule: &Rule) -> Option<Near> {
        let near = |why| Near {
            rule: Arc::clone(&rule.id),
            claim: None,
            content: None,
            why,
        };
        let unknown = matches!(self.skill, SkillNumber::Unknown);
        Some(match distance {
            Distance { skill: true, .. } if unknown => near(why::SKILL_UNKNOWN),
            Distance { skill: true, .. } => near(why::SKILL),
            Distance { issuer: true, .. } => near(why::ISSUER),
            Distance { grant: true, .. } => near(why::GRANT),
            Distance { .. } => return self.first_failing(rule),
        })
    }
}

/// How far an allow is from matching: what a caller can change least counts most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Distance {
    skill: bool,
    issuer: bool,
    grant: bool,
    tests: usize,
}
