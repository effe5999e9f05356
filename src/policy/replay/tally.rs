//! [`Tally`]: replayed calls, counted by caller, agent and skill.

use super::super::decide::Asked;
use super::super::diff::{Side, id, says};
use super::judge::{Judged, Lacks};
use super::recorded::{Recorded, RecordedSkill};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most groups that are kept; calls of further ones are counted together.
const GROUPS: usize = 10_000;
/// Requests that are named for a group.
const EXAMPLES: usize = 3;

/// How a decision turns out under a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Turn {
    /// It was refused and is allowed.
    NewlyAllowed,
    /// It was allowed and is refused.
    NewlyRefused,
    /// The record does not say enough.
    Undetermined,
    /// It is what it was.
    Same,
}

/// Calls of one caller to one agent for one skill that turn out alike.
#[derive(Debug, Clone)]
pub struct Group {
    /// Stands for this and for nothing else: for calls like these, by these rules.
    pub id: Box<str>,
    /// How they turn out.
    pub turn: Turn,
    /// The caller: issuer, subject, client.
    pub caller: (Box<str>, Box<str>, Option<Box<str>>),
    /// The agent.
    pub agent: Box<str>,
    /// The skill.
    pub skill: RecordedSkill,
    /// Operations, by name.
    pub operations: BTreeSet<&'static str>,
    /// Rules of the candidate that decide them now.
    pub rules: BTreeSet<Arc<str>>,
    /// What the records lack.
    pub lacks: BTreeSet<Lacks>,
    /// How many.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<Box<str>>,
}

type Key = (
    Turn,
    (Box<str>, Box<str>, Option<Box<str>>),
    Box<str>,
    RecordedSkill,
);

/// Replayed calls.
#[derive(Default)]
pub struct Tally {
    groups: BTreeMap<Key, Group>,
    counts: BTreeMap<Turn, u64>,
    beyond: u64,
    said: BTreeMap<Key, BTreeSet<String>>,
}

impl Tally {
    /// Counts a call.
    pub fn add(&mut self, recorded: &Recorded, judged: &Judged, side: &Side<'_>) -> Turn {
        let turn = match (recorded.allowed, judged) {
            (_, Judged::Undetermined(_)) => Turn::Undetermined,
            (false, Judged::Allowed(_)) => Turn::NewlyAllowed,
            (true, Judged::Refused(_)) => Turn::NewlyRefused,
            (true, Judged::Allowed(_)) | (false, Judged::Refused(_)) => Turn::Same,
        };
        *self.counts.entry(turn).or_default() += 1;
        if turn == Turn::Same {
            return turn;
        }
        let caller = &recorded.caller;
        let caller = (
            caller.issuer.clone(),
            caller.subject.clone(),
            caller.client.clone(),
        );
        let key = (turn, caller, recorded.agent.clone(), recorded.skill.clone());
        if self.groups.len() == GROUPS && !self.groups.contains_key(&key) {
            self.beyond += 1;
            return turn;
        }
        let group = self.groups.entry(key.clone()).or_insert_with(|| Group {
            id: Box::default(),
            turn,
            caller: key.1.clone(),
            agent: recorded.agent.clone(),
            skill: recorded.skill.clone(),
            operations: BTreeSet::new(),
            rules: BTreeSet::new(),
            lacks: BTreeSet::new(),
            count: 0,
            examples: Vec::new(),
        });
        group.count += 1;
        group.operations.insert(match recorded.asked {
            Asked::Operation(operation) => operation.name(),
            Asked::Backend => "backend",
        });
        if group.examples.len() < EXAMPLES {
            group.examples.push(recorded.request_id.clone());
        }
        match judged {
            Judged::Allowed(rule) | Judged::Refused(rule) => {
                if let Some(rule) = rule.as_ref().filter(|rule| !group.rules.contains(*rule)) {
                    let mut rules = side.policies.rules.iter();
                    let said = rules.find(|r| r.id == *rule);
                    let said = said.map(|rule| says(rule, side.world.issuers));
                    self.said.entry(key).or_default().extend(said);
                    group.rules.insert(Arc::clone(rule));
                }
            }
            Judged::Undetermined(lacks) => {
                group.lacks.insert(lacks.clone());
            }
        }
        turn
    }

    /// How many turned out so.
    pub fn count(&self, turn: Turn) -> u64 {
        self.counts.get(&turn).copied().unwrap_or(0)
    }

    /// Calls that are in no group, since there are too many groups.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// The groups, those that are newly allowed first.
    pub fn groups(self) -> Vec<Group> {
        let said = self.said;
        let groups = self.groups.into_iter().map(|(key, mut group)| {
            let rules = said.get(&key);
            group.id = id(&("replay", &key, &group.operations, rules));
            group
        });
        groups.collect()
    }
}
