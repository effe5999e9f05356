//! The rules that concern a call, and a text that is the same for rules that say the same.

use super::super::condition::Condition;
use super::super::decide::{Asked, AskedSkill, skill_number};
use super::super::index::{BACKEND_SLOT, Body, PolicySet, Rule, RuleIssuers};
use super::Side;
use crate::identity::issuer::{Grant, IssuerConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

/// Positions of the rules in force that concern a call, ascending.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(in crate::policy) struct Concerning {
    pub(in crate::policy) allows: Vec<usize>,
    pub(in crate::policy) denies: Vec<usize>,
}

/// The rules that concern a call to an agent.
pub(in crate::policy) fn concerning(
    policies: &PolicySet,
    agent: usize,
    asked: Asked,
    skill: AskedSkill<'_>,
) -> Concerning {
    let Some(rules) = policies.agents.get(agent) else {
        return Concerning::default();
    };
    let slot = asked.slot();
    let number = skill_number(rules, slot, skill);
    let tables = [&rules.table, &policies.any];
    let mut found = Concerning::default();
    for slot in tables.iter().filter_map(|table| table.slots.get(slot)) {
        let lists = slot.lists(number);
        found.allows.extend(&lists.allows);
        found.denies.extend(&lists.denies);
    }
    found.allows.sort_unstable();
    found.denies.sort_unstable();
    found
}

/// Whether an allow is within reach of a grant.
pub(super) fn within_reach(rule: &Rule, grant: Grant, asked: Asked) -> bool {
    match rule.body {
        Body::Allow { grant: wanted, .. } => {
            let backend = asked.slot() == BACKEND_SLOT;
            grant >= if backend { Grant::Full } else { wanted }
        }
        Body::DenyWhen(_) | Body::DenyUnless(_) | Body::DenyAlways => false,
    }
}

/// What a rule says beside which calls it is about.
pub(in crate::policy) fn says(rule: &Rule, issuers: &[Arc<IssuerConfig>]) -> String {
    let mut out = match &rule.body {
        Body::Allow { grant, require } => {
            let grant = match grant {
                Grant::Agent => "agent",
                Grant::Full => "full",
            };
            format!("allow grant={grant} require={}", condition(require))
        }
        Body::DenyWhen(tests) => format!("deny when={}", condition(tests)),
        Body::DenyUnless(tests) => format!("deny unless={}", condition(tests)),
        Body::DenyAlways => "deny always".to_owned(),
    };
    match &rule.issuers {
        RuleIssuers::Any => out.push_str(" issuers=any"),
        RuleIssuers::Named(named) => {
            let names = named.iter().filter_map(|i| Some(&*issuers.get(*i)?.name));
            let mut names: Vec<&str> = names.collect();
            names.sort_unstable();
            names.dedup();
            // Writing to a string cannot fail.
            let _ = write!(out, " issuers={names:?}");
        }
    }
    out
}

fn condition(tests: &Condition) -> String {
    let one = |test: &super::super::condition::Test| {
        let lifted = if test.missing_is_false { "?" } else { "" };
        format!("{}{lifted}:{:?}", test.claim, test.matcher)
    };
    let mut all: Vec<String> = tests.claims.iter().map(one).collect();
    all.extend(tests.content.iter().map(|test| format!("{test:?}")));
    all.sort_unstable();
    format!("{all:?}")
}

/// Rules in shadow mode that are new, gone or different, in words.
pub(super) fn shadows(old: &Side<'_>, new: &Side<'_>) -> Vec<String> {
    let (was, is) = (by_id(old), by_id(new));
    let ids: BTreeSet<&str> = was.keys().chain(is.keys()).copied().collect();
    let tell = |id: &&str| {
        let became = match (was.get(id), is.get(id)) {
            (None, Some((true, _))) => "is new",
            (Some((true, _)), None) => "is gone",
            (Some((false, _)), Some((true, _))) => "was in force",
            (Some((true, _)), Some((false, _))) => "is in force now",
            (Some((true, one)), Some((true, other))) if one != other => "is different",
            _ => return None,
        };
        Some(format!("rule `{id}` {became}"))
    };
    ids.iter().filter_map(tell).collect()
}

/// Whether each rule is in shadow mode, and all that it says.
fn by_id<'a>(side: &Side<'a>) -> BTreeMap<&'a str, (bool, String)> {
    let rules = side.policies.rules.iter();
    let rule = rules.map(|rule| {
        let scope = &rule.scope;
        let agents = scope.agents.as_ref().map(|agents| {
            let named = agents.iter().filter_map(|at| side.world.agents.get(*at));
            named.map(|agent| agent.name).collect::<BTreeSet<_>>()
        });
        let skills = scope
            .skills
            .as_ref()
            .map(|s| s.iter().collect::<BTreeSet<_>>());
        let about = (agents, scope.operations, skills);
        let said = format!("{about:?} {}", says(rule, side.world.issuers));
        (&*rule.id, (rule.shadow, said))
    });
    rule.collect()
}
