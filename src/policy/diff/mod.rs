//! What a change of policies changes: every kind of call that one set of rules allows and the
//! other refuses, each with a caller that shows it.
//!
//! Answers: what becomes allowed, what becomes refused. May import: what `policy` may. Invariants:
//! matchers are finite, so callers fall into finitely many classes, which a bounded search goes
//! through; every caller that is reported was judged by [`decide`] under both sets; where the bound
//! is hit the difference is undecided, never nothing. Start reading at [`compare`].

mod caller;
mod report;
mod rules;
mod search;
mod solve;
mod space;
mod texts;
mod webhooks;

pub use caller::Caller;
pub use report::{Change, Difference, Direction, IssuerChange, Kind, Undecided, Witness};
pub use webhooks::HostChange;

// What a replay judges with.
pub(super) use caller::{Fact, Variable};
pub(super) use report::id;
pub(super) use rules::{concerning, says};
pub(super) use search::condition_of;
pub(super) use space::{Asked as SpaceAsked, Space, Trust};

use super::decide::{Asked, AskedSkill, Question, decide};
use super::decision::{Decision, Effect};
use super::index::{PolicySet, Rule, is_message};
use super::names::{AgentFacts, World};
use crate::a2a::Operation;
use crate::identity::issuer::{Grant, IssuerConfig};
use report::{Collected, Place};
use rules::{Concerning, within_reach};
use search::{Cause, Half, search};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A compiled policy set and the configuration that it was compiled for.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The rules.
    pub policies: &'a PolicySet,
    /// Agents and issuers.
    pub world: &'a World<'a>,
}

/// Most combinations of claim values that are looked at for one rule, caller kind and call.
pub const COMBINATIONS: u64 = 20_000;

/// Everything that changes from `old` to `new`. `combinations` bounds the search for each rule and
/// kind of call, see [`COMBINATIONS`].
pub fn compare(old: Side<'_>, new: Side<'_>, combinations: u64) -> Difference {
    let mut numbers = HashMap::new();
    let comparison = Comparison {
        old: Numbered::new(old, &mut numbers),
        new: Numbered::new(new, &mut numbers),
        combinations,
        one_trust: trusts_alike(&old, &new),
    };
    let mut collected = Collected::default();
    let mut known = HashMap::new();
    for agent in names(&old, &new) {
        comparison.agent(agent, &mut known, &mut collected);
    }
    let mut difference = collected.difference(&old, &new);
    webhooks::compare(&old, &new, &mut difference);
    for entry in old.world.issuers {
        let mut others = new.world.issuers.iter();
        let other = others.find(|other| other.name == entry.name);
        if let Some(other) = other.filter(|other| !reads_alike(entry, other)) {
            let what = |entry: &IssuerConfig| {
                let IssuerConfig {
                    issuer,
                    profile,
                    grants,
                    claims,
                    ..
                } = entry;
                format!(
                    "{issuer} {profile:?} {grants:?} {claims:?} {}",
                    entry.delegated_full
                )
            };
            difference.issuers.push(IssuerChange {
                id: id(&("issuer", &entry.name, what(entry), what(other))),
                issuer: entry.name.clone(),
            });
        }
    }
    difference
}

/// The agents of both sides.
fn names<'a>(old: &Side<'a>, new: &Side<'a>) -> BTreeSet<&'a str> {
    let both = [old, new].into_iter();
    both.flat_map(|side| side.world.agents.iter().map(|agent| agent.name))
        .collect()
}

/// A side whose rules have numbers that rules of both sides share that say the same.
struct Numbered<'a> {
    side: Side<'a>,
    numbers: Vec<usize>,
}

impl<'a> Numbered<'a> {
    fn new(side: Side<'a>, numbers: &mut HashMap<String, usize>) -> Numbered<'a> {
        let rules = side.policies.rules.iter();
        let number = rules.map(|rule| {
            let next = numbers.len();
            *numbers
                .entry(says(rule, side.world.issuers))
                .or_insert(next)
        });
        Numbered {
            numbers: number.collect(),
            side,
        }
    }

    fn agent(&self, name: &str) -> Option<(usize, AgentFacts<'a>)> {
        let mut agents = self.side.world.agents.iter().enumerate();
        let (at, facts) = agents.find(|(_, agent)| agent.name == name)?;
        Some((at, *facts))
    }

    fn trust(&self, issuer: &str) -> Option<Trust<'a>> {
        let mut issuers = self.side.world.issuers.iter().enumerate();
        let (index, config) = issuers.find(|(_, entry)| *entry.name == *issuer)?;
        Some(Trust { index, config })
    }

    fn concerning(&self, agent: Option<usize>, asked: Asked, skill: AskedSkill<'_>) -> Concerning {
        agent.map_or_else(Concerning::default, |agent| {
            concerning(self.side.policies, agent, asked, skill)
        })
    }

    fn said(&self, positions: &[usize]) -> BTreeSet<usize> {
        let said = positions.iter().filter_map(|at| self.numbers.get(*at));
        said.copied().collect()
    }

    /// The rules for tokens of one issuer with one grant.
    fn half(&self, concerning: &Concerning, issuer: &str, grant: Grant, asked: Asked) -> Half<'a> {
        let trust = self.trust(issuer);
        let of = |positions: &[usize], reach: bool| {
            let rules = positions.iter().filter_map(|at| {
                let rule: &'a Rule = self.side.policies.rules.get(*at)?;
                let about = rule.issuers.contains(trust.as_ref()?.index);
                let fits = about && (!reach || within_reach(rule, grant, asked));
                fits.then_some((*self.numbers.get(*at)?, rule))
            });
            rules.collect()
        };
        Half {
            allows: of(&concerning.allows, true),
            denies: of(&concerning.denies, false),
            trust,
        }
    }

    fn decide(
        &self,
        agent: Option<usize>,
        asked: Asked,
        skill: AskedSkill<'_>,
        caller: &Caller,
    ) -> Decision {
        let (Some(agent), Some(trust)) = (agent, self.trust(&caller.issuer)) else {
            return Decision::deny(Decision::NO_RULE);
        };
        let principal = caller.principal(trust.index, trust.config);
        let question = Question {
            agent,
            asked,
            skill,
            principal: &principal,
            memo: None,
            // A message that has none of the values that rules look for.
            content: None,
        };
        decide(self.side.policies, &question)
    }
}

/// The lists of rules for a call on both sides, which decide alone: calls that share them share
/// their differences.
type Key = (Concerning, Concerning, bool);

/// What was found for a key.
struct Known<'a> {
    direction: Direction,
    cause: Cause<'a>,
    issuer: Arc<str>,
    grant: Grant,
    shown: Result<Caller, &'static str>,
}

struct Comparison<'a> {
    old: Numbered<'a>,
    new: Numbered<'a>,
    combinations: u64,
    /// Whether tokens mean the same on both sides.
    one_trust: bool,
}

impl<'a> Comparison<'a> {
    fn agent(
        &self,
        name: &'a str,
        known: &mut HashMap<Key, Vec<Known<'a>>>,
        collected: &mut Collected<'a>,
    ) {
        let (old, new) = (self.old.agent(name), self.new.agent(name));
        let facts = [&old, &new].into_iter().flatten();
        let skills: BTreeSet<&str> = facts
            .flat_map(|(_, facts)| facts.skills.iter().map(AsRef::as_ref))
            .collect();
        let (old, new) = (old.map(|(at, _)| at), new.map(|(at, _)| at));
        let operations = Operation::ALL.into_iter().map(Asked::Operation);
        for asked in operations.chain([Asked::Backend]) {
            let calls: Vec<AskedSkill<'a>> = if is_message(asked.slot()) {
                let known = skills.iter().map(|skill| AskedSkill::Known(skill));
                known.chain([AskedSkill::Unknown]).collect()
            } else {
                vec![AskedSkill::NotAMessage]
            };
            for skill in calls {
                let before = self.old.concerning(old, asked, skill);
                let after = self.new.concerning(new, asked, skill);
                if self.same(&before, &after, old.is_some() == new.is_some()) {
                    continue;
                }
                let key = (before, after, asked == Asked::Backend);
                let call = Judging {
                    comparison: self,
                    agents: (old, new),
                    asked,
                    skill,
                };
                let found = known
                    .entry(key)
                    .or_insert_with_key(|key| self.look(key, &call));
                for one in found.iter() {
                    let place = Place {
                        agent: name,
                        asked,
                        skill,
                    };
                    call.collect(one, place, collected);
                }
            }
        }
    }

    /// Whether the rules for a call say the same on both sides, and so decide the same.
    fn same(&self, before: &Concerning, after: &Concerning, both: bool) -> bool {
        both && self.one_trust
            && self.old.said(&before.allows) == self.new.said(&after.allows)
            && self.old.said(&before.denies) == self.new.said(&after.denies)
    }

    fn look(&self, key: &Key, call: &Judging<'_, 'a>) -> Vec<Known<'a>> {
        let (before, after, _) = key;
        let mut found = Vec::new();
        let worlds = [self.old.side.world, self.new.side.world].into_iter();
        let issuers: BTreeSet<&str> = worlds
            .flat_map(|world| world.issuers.iter().map(|issuer| &*issuer.name))
            .collect();
        for issuer in issuers {
            let entries = (self.old.trust(issuer), self.new.trust(issuer));
            let differ = match entries {
                (Some(old), Some(new)) => !reads_alike(old.config, new.config),
                _ => false,
            };
            for grant in [Grant::Agent, Grant::Full] {
                let old = self.old.half(before, issuer, grant, call.asked);
                let new = self.new.half(after, issuer, grant, call.asked);
                let mut base = Caller::new(issuer, Some(grant));
                let entry = entries.1.or(entries.0);
                if let Some(client) = entry.and_then(|trust| trust.config.clients.first()) {
                    base.client = Some(client.clone());
                }
                for (direction, one, other) in [
                    (Direction::Allowed, &new, &old),
                    (Direction::Refused, &old, &new),
                ] {
                    let mut accept = |caller: &Caller| {
                        call.can_be(caller) && call.turns(direction, caller).is_some()
                    };
                    let findings = search(&base, one, other, self.combinations, &mut accept);
                    found.extend(findings.into_iter().map(|finding| Known {
                        direction,
                        cause: finding.cause,
                        issuer: issuer.into(),
                        grant,
                        // Claims that are read differently are different claims.
                        shown: if differ { Err("issuer") } else { finding.shown },
                    }));
                }
            }
        }
        found
    }
}

fn trusts_alike(old: &Side<'_>, new: &Side<'_>) -> bool {
    let (old, new) = (old.world.issuers, new.world.issuers);
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| reads_alike(old, new))
}

/// Whether two entries take the same from a token.
fn reads_alike(one: &IssuerConfig, other: &IssuerConfig) -> bool {
    let claims = |entry: &IssuerConfig| {
        let claims = entry.claims.iter();
        claims
            .map(|c| (c.name.clone(), (c.path.clone(), c.kind)))
            .collect::<BTreeMap<_, _>>()
    };
    one.name == other.name
        && one.issuer == other.issuer
        && one.profile == other.profile
        && one.grants == other.grants
        && one.delegated_full == other.delegated_full
        && claims(one) == claims(other)
}

/// One call, under both sides.
struct Judging<'c, 'a> {
    comparison: &'c Comparison<'a>,
    agents: (Option<usize>, Option<usize>),
    asked: Asked,
    skill: AskedSkill<'a>,
}

impl<'a> Judging<'_, 'a> {
    /// Both decisions, when the caller shows the difference.
    fn turns(&self, direction: Direction, caller: &Caller) -> Option<(Decision, Decision)> {
        let Comparison { old, new, .. } = self.comparison;
        let old = old.decide(self.agents.0, self.asked, self.skill, caller);
        let new = new.decide(self.agents.1, self.asked, self.skill, caller);
        let wanted = match direction {
            Direction::Allowed => (Effect::Deny, Effect::Allow),
            Direction::Refused => (Effect::Allow, Effect::Deny),
        };
        ((old.effect, new.effect) == wanted).then_some((old, new))
    }

    /// Whether a token can state all this.
    fn can_be(&self, caller: &Caller) -> bool {
        let Comparison { old, new, .. } = self.comparison;
        let entries = [old, new].map(|side| side.trust(&caller.issuer));
        entries
            .iter()
            .flatten()
            .all(|trust| caller.can_be(trust.config))
    }

    fn collect(&self, known: &Known<'a>, place: Place<'a>, collected: &mut Collected<'a>) {
        let shown = match &known.shown {
            Ok(caller) => match self.turns(known.direction, caller) {
                Some((old, new)) => Ok((caller.clone(), old, new)),
                None => Err("other_call"),
            },
            Err(why) => Err(*why),
        };
        let other = match (known.direction, known.cause) {
            (Direction::Allowed, Cause::Allow(_)) | (Direction::Refused, Cause::Deny(_)) => {
                &self.comparison.old
            }
            (Direction::Allowed, Cause::Deny(_)) | (Direction::Refused, Cause::Allow(_)) => {
                &self.comparison.new
            }
        };
        let rule = known.cause.rule();
        let mut rules = other.side.policies.rules.iter();
        let there = rules.any(|r| r.id == rule.id && !r.shadow);
        let kind = match known.cause {
            Cause::Allow(_) => Kind::Allow { there },
            Cause::Deny(_) => Kind::Deny { there },
        };
        let Comparison { old, new, .. } = self.comparison;
        let said = [(old, self.agents.0), (new, self.agents.1)].map(|(side, agent)| {
            let concerning = side.concerning(agent, self.asked, self.skill);
            let texts = |positions: &[usize]| {
                let rules = positions
                    .iter()
                    .filter_map(|at| side.side.policies.rules.get(*at));
                let mut texts: Vec<String> =
                    rules.map(|r| says(r, side.side.world.issuers)).collect();
                texts.sort_unstable();
                texts.dedup();
                texts
            };
            [texts(&concerning.allows), texts(&concerning.denies)]
        });
        collected.add(
            known.direction,
            kind,
            rule,
            place,
            said,
            (&known.issuer, known.grant),
            shown,
        );
    }
}
