//! Rules that change nothing: covered by another rule, or undone by one.
//!
//! Two rules are compared at a time and claim by claim. What is reported is so for every token;
//! not everything that is so is found.

use super::condition::{Condition, Test, names_actor};
use super::index::{Body, Rule, is_message};
use crate::source::{Value, codes};
use std::collections::HashMap;

/// As many pairs of rules as are compared, so that no policy takes long to load.
const MOST_PAIRS: usize = 1_000_000;

/// Warns about each rule without which the policies would decide the same; `places` says where each
/// stands.
pub(super) fn warn(rules: &[Rule], places: &[Value<'_, '_>]) {
    let mut by_agent: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut of_any = Vec::new();
    for (position, rule) in rules.iter().enumerate() {
        match &rule.scope.agents {
            None => of_any.push(position),
            Some(agents) => {
                for agent in agents {
                    by_agent.entry(*agent).or_default().push(position);
                }
            }
        }
    }
    let mut pairs = 0;
    for (position, (rule, place)) in rules.iter().zip(places).enumerate() {
        if rule.shadow {
            continue;
        }
        let first = rule.scope.agents.as_ref().and_then(|agents| agents.first());
        let named = first.and_then(|agent| by_agent.get(agent));
        for other in named.into_iter().flatten().chain(&of_any) {
            pairs += 1;
            if pairs > MOST_PAIRS {
                return;
            }
            let Some(against) = rules.get(*other).filter(|_| *other != position) else {
                continue;
            };
            if against.shadow || !reaches(against, rule) {
                continue;
            }
            if undone(rule, against) {
                place.warn(
                    codes::UNDONE,
                    format!(
                        "`{}` allows nothing: `{}` denies all of it",
                        rule.id, against.id
                    ),
                    "remove it, or narrow the deny",
                );
                break;
            }
            // Of two that say the same, the later one is named.
            if covered(rule, against)
                && (*other < position || !covered(against, rule) || !reaches(rule, against))
            {
                place.warn(
                    codes::COVERED,
                    format!(
                        "`{}` changes nothing: `{}` says at least the same",
                        rule.id, against.id
                    ),
                    "remove it, or narrow the other one",
                );
                break;
            }
        }
    }
}

/// Whether `wide` is about every call, and every issuer's tokens, that `narrow` is about.
fn reaches(wide: &Rule, narrow: &Rule) -> bool {
    let all = |wide: &Option<Vec<usize>>, narrow: &Option<Vec<usize>>| match (wide, narrow) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(narrow)) => narrow.iter().all(|agent| wide.contains(agent)),
    };
    let (w, n) = (&wide.scope, &narrow.scope);
    let skills = match (&w.skills, &n.skills) {
        (None, _) => true,
        // Without messages there are none.
        (Some(_), None) => !n.operations.slots().any(is_message),
        (Some(wide), Some(narrow)) => narrow.iter().all(|skill| wide.contains(skill)),
    };
    all(&w.agents, &n.agents)
        && w.operations.with(n.operations) == w.operations
        && skills
        && wide.issuers.covers(&narrow.issuers)
}

/// Whether `wide`, which reaches as far, allows or denies whatever `narrow` does.
fn covered(narrow: &Rule, wide: &Rule) -> bool {
    match (&narrow.body, &wide.body) {
        (
            Body::Allow { grant, require },
            Body::Allow {
                grant: least,
                require: asked,
            },
        ) => least <= grant && follows(asked, require),
        (Body::DenyAlways | Body::DenyWhen(_) | Body::DenyUnless(_), Body::DenyAlways) => true,
        // The wide one is silent only where all that it wants is true; then so is what the narrow
        // one wants.
        (Body::DenyUnless(these), Body::DenyUnless(those)) => follows(these, those),
        // The wide one is silent only where one of its tests is false; the narrow one has it too.
        (Body::DenyWhen(these), Body::DenyWhen(those)) => {
            let same = |test: &Test| these.claims.iter().any(|known| is_same(known, test));
            alike(these, those)
                && those.claims.iter().all(same)
                && those
                    .content
                    .iter()
                    .all(|test| these.content.contains(test))
        }
        _ => false,
    }
}

/// Whether `condition` is true wherever `given` is.
fn follows(condition: &Condition, given: &Condition) -> bool {
    let known = |test: &Test| {
        let mut known = on_claim(given, test);
        known.any(|known| known.matcher.implies(&test.matcher))
    };
    alike(condition, given)
        && condition.claims.iter().all(known)
        && condition
            .content
            .iter()
            .all(|test| given.content.contains(test))
}

/// The tests of a condition on the claim that `test` is about.
fn on_claim<'c>(condition: &'c Condition, test: &Test) -> impl Iterator<Item = &'c Test> {
    let all = condition.claims.iter();
    all.filter(move |known| known.claim == test.claim)
}

/// Whether both ask for the same party of a delegated call: one that names the actor always asks
/// for the subject.
fn alike(one: &Condition, other: &Condition) -> bool {
    names_actor(&one.claims) == names_actor(&other.claims)
}

fn is_same(one: &Test, other: &Test) -> bool {
    one.claim == other.claim
        && one.matcher == other.matcher
        && one.missing_is_false == other.missing_is_false
}

/// Whether a deny, which reaches as far, fires on everything that an allow allows.
fn undone(allow: &Rule, deny: &Rule) -> bool {
    let Body::Allow { require, .. } = &allow.body else {
        return false;
    };
    let excluded = |test: &Test| {
        let mut known = on_claim(require, test);
        known.any(|known| known.matcher.excludes(&test.matcher))
    };
    match &deny.body {
        Body::Allow { .. } => false,
        Body::DenyAlways => true,
        Body::DenyUnless(unless) => alike(unless, require) && unless.claims.iter().any(excluded),
        Body::DenyWhen(when) => follows(when, require),
    }
}
