//! [`Usage`]: what rules were used for.

use super::super::decide::Asked;
use super::super::replay::{Judged, Recorded, RecordedSkill};
use crate::identity::issuer::Grant;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most values of one claim that are kept for one rule; more than this is any.
const VALUES: usize = 1000;

/// What rules were used for, by their ids.
#[derive(Debug, Default)]
pub struct Usage {
    rules: BTreeMap<Arc<str>, RuleUsage>,
    /// Calls that were allowed, and that the rules in force allow.
    pub allowed: u64,
    /// Calls that were refused, and that the rules in force refuse.
    pub refused: u64,
}

/// What one rule was used for.
#[derive(Debug, Default, Clone)]
pub struct RuleUsage {
    /// How many calls it decided.
    pub count: u64,
    /// When the first and the last of them came.
    pub first: Box<str>,
    /// The last.
    pub last: Box<str>,
    pub(super) agents: BTreeSet<Box<str>>,
    pub(super) asked: Vec<Asked>,
    pub(super) skills: BTreeSet<RecordedSkill>,
    pub(super) issuers: BTreeSet<Box<str>>,
    pub(super) grants: BTreeSet<Grant>,
    /// By claim: the values; `None` once they cannot be told.
    values: BTreeMap<Box<str>, Option<BTreeSet<Box<str>>>>,
}

impl Usage {
    /// Counts a call. `claims` are the claims whose values matter for a rule.
    pub fn add<'c>(
        &mut self,
        recorded: &Recorded,
        judged: &Judged,
        claims: impl Fn(&str) -> &'c [Box<str>],
    ) {
        let rule = match (recorded.allowed, judged) {
            (true, Judged::Allowed(rule)) => {
                self.allowed += 1;
                rule
            }
            (false, Judged::Refused(rule)) => {
                self.refused += 1;
                rule
            }
            (true | false, _) => return,
        };
        let Some(rule) = rule else { return };
        let usage = self.rules.entry(Arc::clone(rule)).or_default();
        usage.add(recorded, claims(rule));
    }

    /// Of one rule; `None` when it decided nothing.
    pub fn of(&self, rule: &str) -> Option<&RuleUsage> {
        self.rules.get(rule)
    }
}

impl RuleUsage {
    fn add(&mut self, recorded: &Recorded, claims: &[Box<str>]) {
        if self.count == 0 {
            self.first.clone_from(&recorded.time);
        }
        self.count += 1;
        self.last.clone_from(&recorded.time);
        self.agents.insert(recorded.agent.clone());
        if !self.asked.contains(&recorded.asked) {
            self.asked.push(recorded.asked);
        }
        self.skills.insert(recorded.skill.clone());
        self.issuers.insert(recorded.caller.issuer.clone());
        self.grants.extend(recorded.caller.grant);
        for claim in claims {
            let known = self
                .values
                .entry(claim.clone())
                .or_insert_with(|| Some(BTreeSet::new()));
            let Some(values) = known else { continue };
            let caller = &recorded.caller;
            match (caller.text(claim), caller.texts(claim)) {
                (Some(text), _) => drop(values.insert(text.into())),
                (None, Some(texts)) => values.extend(texts.iter().cloned()),
                (None, None) => {
                    *known = None;
                    continue;
                }
            }
            if values.len() > VALUES {
                *known = None;
            }
        }
    }

    /// The values that a claim had.
    pub(super) fn values(&self, claim: &str) -> Option<&BTreeSet<Box<str>>> {
        self.values.get(claim)?.as_ref()
    }
}
