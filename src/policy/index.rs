//! [`PolicySet`]: the compiled rules of every policy file, by what they are about.
//!
//! Each agent has its own lists per operation and skill, and rules about all agents are kept once
//! beside them, so a decision looks at the rules that concern the call and at no others.

use super::condition::{Condition, Test};
use super::content::ContentTest;
use super::decision::Effect;
use super::limits::Limit;
use super::shadow::Shadow;
use super::webhooks::Webhooks;
use crate::a2a::Operation;
use crate::identity::issuer::Grant;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The compiled rules of every policy file. The default has no rule: it denies everything.
#[derive(Debug, Default)]
pub struct PolicySet {
    /// Sorted by id, so that nothing depends on the order in which rules were written.
    pub(super) rules: Box<[Rule]>,
    pub(super) agents: Box<[AgentRules]>,
    /// Rules about all agents.
    pub(super) any: Table,
    webhooks: Webhooks,
    /// Rules in shadow mode, in the order of their ids.
    shadows: Box<[Shadow]>,
    limits: Box<[Limit]>,
}

/// One compiled rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: Arc<str>,
    pub(super) scope: Scope,
    pub(super) issuers: RuleIssuers,
    pub(super) body: Body,
    /// `mode: shadow`: it changes no decision.
    pub(super) shadow: bool,
}

/// Which calls a rule is about.
#[derive(Debug)]
pub(super) struct Scope {
    /// `None`: any.
    pub(super) agents: Option<Vec<usize>>,
    pub(super) operations: Operations,
    /// Of messages; `None`: any. Other operations concern no skill.
    pub(super) skills: Option<Vec<Box<str>>>,
}

/// Whose tokens a rule is about.
#[derive(Debug)]
pub(super) enum RuleIssuers {
    Any,
    Named(Box<[usize]>),
}

impl RuleIssuers {
    pub(super) fn contains(&self, issuer: usize) -> bool {
        match self {
            RuleIssuers::Any => true,
            RuleIssuers::Named(named) => named.contains(&issuer),
        }
    }

    /// Whether every issuer of `other` is one of these.
    pub(super) fn covers(&self, other: &RuleIssuers) -> bool {
        match (self, other) {
            (RuleIssuers::Any, _) => true,
            (RuleIssuers::Named(_), RuleIssuers::Any) => false,
            (RuleIssuers::Named(these), RuleIssuers::Named(those)) => {
                those.iter().all(|issuer| these.contains(issuer))
            }
        }
    }
}

/// What a rule says, and under which condition.
#[derive(Debug)]
pub(super) enum Body {
    /// Matches when all of it holds.
    Allow { grant: Grant, require: Condition },
    /// Fires when it holds or is unknown.
    DenyWhen(Condition),
    /// Fires unless it holds.
    DenyUnless(Condition),
    /// Fires.
    DenyAlways,
}

impl Body {
    pub(super) fn effect(&self) -> Effect {
        match self {
            Body::Allow { .. } => Effect::Allow,
            Body::DenyWhen(_) | Body::DenyUnless(_) | Body::DenyAlways => Effect::Deny,
        }
    }

    pub(super) fn condition(&self) -> Option<&Condition> {
        match self {
            Body::Allow { require, .. } => Some(require),
            Body::DenyWhen(condition) | Body::DenyUnless(condition) => Some(condition),
            Body::DenyAlways => None,
        }
    }

    pub(super) fn claims(&self) -> &[Test] {
        self.condition().map_or(&[], |condition| &condition.claims)
    }

    pub(super) fn content(&self) -> &[ContentTest] {
        self.condition().map_or(&[], |condition| &condition.content)
    }
}

/// A set of the eleven operations and the backend surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Operations(u16);

/// Slots of a [`Table`]: one per operation, and one for the backend surface.
pub(super) const SLOTS: usize = Operation::ALL.len() + 1;
/// The slot of the backend surface.
pub(super) const BACKEND_SLOT: usize = Operation::ALL.len();

impl Operations {
    pub(super) const BACKEND: Operations = Operations(1 << BACKEND_SLOT);
    /// The eleven, without the backend surface.
    pub(super) const ELEVEN: Operations = Operations((1 << BACKEND_SLOT) - 1);

    pub(super) fn of(operation: Operation) -> Operations {
        Operations(1 << slot_of(operation))
    }

    pub(super) fn with(self, other: Operations) -> Operations {
        Operations(self.0 | other.0)
    }

    pub(super) fn meets(self, other: Operations) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there are any, all of which are in `others`.
    pub(super) fn within(self, others: Operations) -> bool {
        self.0 != 0 && self.0 & !others.0 == 0
    }

    pub(super) fn slots(self) -> impl Iterator<Item = usize> {
        (0..SLOTS).filter(move |slot| self.0 & (1 << slot) != 0)
    }
}

/// The slot of an operation: its place in the specification's order.
pub(super) fn slot_of(operation: Operation) -> usize {
    match operation {
        Operation::SendMessage => 0,
        Operation::SendStreamingMessage => 1,
        Operation::GetTask => 2,
        Operation::ListTasks => 3,
        Operation::CancelTask => 4,
        Operation::SubscribeToTask => 5,
        Operation::CreateTaskPushNotificationConfig => 6,
        Operation::GetTaskPushNotificationConfig => 7,
        Operation::ListTaskPushNotificationConfigs => 8,
        Operation::DeleteTaskPushNotificationConfig => 9,
        Operation::GetExtendedAgentCard => 10,
    }
}

/// Whether calls in this slot concern a skill.
pub(super) fn is_message(slot: usize) -> bool {
    slot <= 1
}

/// What concerns one agent.
#[derive(Debug, Default)]
pub(super) struct AgentRules {
    /// Its skills, sorted, each with its number among the skills of all agents.
    pub(super) skills: Box<[(Box<str>, u32)]>,
    /// Rules that name it.
    pub(super) table: Table,
    /// By issuer: positions of the claims that its rules look at, ascending.
    pub(super) claims: Box<[Box<[usize]>]>,
}

/// Rules by slot.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) slots: [Slot; SLOTS],
}

/// The rules for one operation.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// For skills that some rule names, ascending by the skill's number.
    by_skill: Box<[(u32, Lists)]>,
    /// For all other skills, and for what concerns no skill.
    other: Lists,
    /// For a skill that cannot be established.
    unknown: Lists,
    /// Every allow in force, whatever its skills: where the nearest one is looked for.
    pub(super) allows: Box<[usize]>,
}

/// Positions of rules, ascending.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) denies: Box<[usize]>,
    pub(super) allows: Box<[usize]>,
    /// Allows and denies in shadow mode, which are in neither of the other two.
    pub(super) shadows: Box<[usize]>,
}

/// A skill, as far as the index is concerned.
#[derive(Debug, Clone, Copy)]
pub(super) enum SkillNumber {
    NotAMessage,
    Known(u32),
    Unknown,
}

impl Slot {
    /// The rules that concern a call.
    pub(super) fn lists(&self, skill: SkillNumber) -> &Lists {
        match skill {
            SkillNumber::NotAMessage => &self.other,
            SkillNumber::Unknown => &self.unknown,
            SkillNumber::Known(number) => self
                .by_skill
                .binary_search_by_key(&number, |(n, _)| *n)
                .ok()
                .and_then(|i| self.by_skill.get(i))
                .map_or(&self.other, |(_, lists)| lists),
        }
    }
}

impl PolicySet {
    /// Arranges rules for agents with these skills, in the order of the configuration.
    pub(super) fn new(mut rules: Vec<Rule>, skills: &[&[Box<str>]], issuers: usize) -> PolicySet {
        rules.sort_by(|a, b| a.id.cmp(&b.id));
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        for skill in skills.iter().copied().flatten() {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            numbers.entry(skill).or_insert(next);
        }
        let mut named: Vec<Vec<usize>> = vec![Vec::new(); skills.len()];
        let mut any = Vec::new();
        for (i, rule) in rules.iter().enumerate() {
            match &rule.scope.agents {
                None => any.push(i),
                Some(agents) => {
                    for agent in agents {
                        named.get_mut(*agent).into_iter().for_each(|l| l.push(i));
                    }
                }
            }
        }
        let agents = skills.iter().zip(named).map(|(skills, named)| {
            let all = skills.iter();
            let mut sorted: Vec<_> = all
                .filter_map(|s| Some((s.clone(), *numbers.get(&**s)?)))
                .collect();
            sorted.sort();
            let concerned: Vec<&Rule> = named
                .iter()
                .chain(&any)
                .filter_map(|i| rules.get(*i))
                .collect();
            AgentRules {
                skills: sorted.into(),
                table: table(&rules, &named, &numbers),
                claims: (0..issuers).map(|i| claims_of(&concerned, i)).collect(),
            }
        });
        let agents = agents.collect();
        PolicySet {
            agents,
            any: table(&rules, &any, &numbers),
            rules: rules.into(),
            webhooks: Webhooks::default(),
            shadows: Box::default(),
            limits: Box::default(),
        }
    }

    pub(super) fn with_shadows(self, mut shadows: Vec<Shadow>) -> PolicySet {
        shadows.sort_by(|a, b| a.rule.cmp(&b.rule));
        PolicySet {
            shadows: shadows.into(),
            ..self
        }
    }

    pub(super) fn with_limits(self, limits: Vec<Limit>) -> PolicySet {
        PolicySet {
            limits: limits.into(),
            ..self
        }
    }

    /// How much callers may ask for, in the order of the files.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// The rules in shadow mode.
    pub fn shadows(&self) -> &[Shadow] {
        &self.shadows
    }

    /// The ids of all rules, ascending, each with what it says and whether it is in shadow mode.
    pub fn rules(&self) -> impl Iterator<Item = (&Arc<str>, Effect, bool)> {
        let rules = self.rules.iter();
        rules.map(|rule| (&rule.id, rule.body.effect(), rule.shadow))
    }

    /// The position of a rule in [`PolicySet::rules`].
    pub fn position(&self, rule: &str) -> Option<usize> {
        let found = self.rules.binary_search_by(|r| (*r.id).cmp(rule));
        found.ok()
    }

    pub(super) fn with_webhooks(self, webhooks: Webhooks) -> PolicySet {
        PolicySet { webhooks, ..self }
    }

    /// What the rule of this id says.
    pub fn effect_of(&self, id: &str) -> Option<Effect> {
        let at = self
            .rules
            .binary_search_by(|rule| (*rule.id).cmp(id))
            .ok()?;
        self.rules.get(at).map(|rule| rule.body.effect())
    }

    /// The ids of all rules, ascending.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| &*rule.id)
    }

    /// Where agents may be told to deliver push notifications.
    pub fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }
}

fn claims_of(rules: &[&Rule], issuer: usize) -> Box<[usize]> {
    let uses = |rule: &&Rule| {
        let tests = rule.body.claims().iter();
        tests
            .filter_map(|t| t.uses(issuer, &rule.issuers))
            .collect::<Vec<_>>()
    };
    let claims: BTreeSet<usize> = rules.iter().flat_map(uses).collect();
    claims.into_iter().collect()
}

fn table(rules: &[Rule], members: &[usize], numbers: &BTreeMap<&str, u32>) -> Table {
    let members: Vec<(usize, &Rule)> = members
        .iter()
        .filter_map(|i| Some((*i, rules.get(*i)?)))
        .collect();
    let mut table = Table::default();
    for (number, slot) in table.slots.iter_mut().enumerate() {
        let here: Vec<(usize, &Rule)> = members
            .iter()
            .copied()
            .filter(|(_, rule)| rule.scope.operations.slots().any(|s| s == number))
            .collect();
        *slot = if is_message(number) {
            messages(&here, numbers)
        } else {
            Slot {
                other: lists(&here, |_| true),
                ..Slot::default()
            }
        };
        slot.allows = lists(&here, |_| true).allows;
    }
    table
}

fn messages(here: &[(usize, &Rule)], numbers: &BTreeMap<&str, u32>) -> Slot {
    let mut skills: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (i, rule) in here {
        for skill in rule.scope.skills.iter().flatten() {
            if let Some(number) = numbers.get(&**skill) {
                skills.entry(*number).or_default().push(*i);
            }
        }
    }
    let by_skill = skills.into_iter().map(|(number, named)| {
        let named: BTreeSet<usize> = named.into_iter().collect();
        let concerns =
            |(i, rule): (usize, &Rule)| rule.scope.skills.is_none() || named.contains(&i);
        (number, lists(here, concerns))
    });
    let for_any = |(_, rule): (usize, &Rule)| rule.scope.skills.is_none();
    Slot {
        by_skill: by_skill.collect(),
        other: lists(here, for_any),
        unknown: lists(here, |(i, rule)| {
            // An unknown skill may be the one that a deny names, and is none that an allow names.
            rule.body.effect() == Effect::Deny || for_any((i, rule))
        }),
        allows: Box::default(),
    }
}

fn lists(here: &[(usize, &Rule)], concerns: impl Fn((usize, &Rule)) -> bool) -> Lists {
    let with = |effect| {
        let rules = here.iter().copied();
        rules
            .filter(|(i, rule)| rule.body.effect() == effect && concerns((*i, rule)))
            .filter(|(_, rule)| !rule.shadow)
            .map(|(i, _)| i)
            .collect()
    };
    let rules = here.iter().copied();
    let shadows = rules.filter(|(i, rule)| rule.shadow && concerns((*i, rule)));
    Lists {
        denies: with(Effect::Deny),
        allows: with(Effect::Allow),
        shadows: shadows.map(|(i, _)| i).collect(),
    }
}

/// The claims that rules for this agent look at, as positions among the declared claims of the
/// issuer at `issuer`, ascending: what a record says about a caller.
pub fn claims_used(policies: &PolicySet, agent: usize, issuer: usize) -> &[usize] {
    let agent = policies.agents.get(agent);
    agent
        .and_then(|a| a.claims.get(issuer))
        .map_or(&[], |claims| claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of a decision depends on the rules that concern the call, not on all rules.
    #[test]
    fn a_call_meets_only_the_rules_that_concern_it() {
        let skills: Vec<Box<str>> = vec!["a".into(), "b".into()];
        let rule = |i: usize, agent: Option<usize>, skill: Option<&str>| Rule {
            id: format!("r{i:05}").into(),
            scope: Scope {
                agents: agent.map(|a| vec![a]),
                operations: Operations::of(Operation::SendMessage),
                skills: skill.map(|s| vec![s.into()]),
            },
            issuers: RuleIssuers::Any,
            body: Body::DenyAlways,
            shadow: false,
        };
        let mut rules: Vec<Rule> = (0..10_000)
            .map(|i| rule(i, Some(i % 1000), Some(if i < 5000 { "a" } else { "b" })))
            .collect();
        rules.push(rule(10_000, None, Some("b")));
        rules.push(rule(10_001, None, None));
        let agents = vec![skills.as_slice(); 1000];
        let policies = PolicySet::new(rules, &agents, 1);
        let number = |skill: usize| SkillNumber::Known(policies.agents[7].skills[skill].1);
        let met = |skill, operation| {
            let tables = [&policies.agents[7].table, &policies.any];
            tables.map(|t| t.slots[slot_of(operation)].lists(skill).denies.len())
        };
        assert_eq!(met(number(0), Operation::SendMessage), [5, 1]);
        assert_eq!(met(number(1), Operation::SendMessage), [5, 2]);
        assert_eq!(met(SkillNumber::Unknown, Operation::SendMessage), [10, 2]);
        assert_eq!(met(number(0), Operation::SendStreamingMessage), [0, 0]);
    }
}
