//! Mutants: a call that is allowed, changed in one place, so that it should not be any more.
//!
//! Each is a caller and a call; who derives them judges them, by the code that judges calls. What
//! is still allowed shows a claim that nobody needs, a matcher that takes more than its tests show,
//! or breadth that no test speaks of.

mod values;

use super::decide::{Asked, Needed};
use super::trial::{Caller, Calling, Trial, is_message};
use crate::a2a::strict_json::Value as Json;
use crate::a2a::{Operation, OperationGroup};
use crate::identity::issuer::{Grant, IssuerConfig};
use crate::identity::trial::{Beside, completed, place};
use std::sync::Arc;
use values::{Change, changes, inner, leaves, taken_out};

pub use values::Sort;

/// Named by mutants; no agent has it, since names of skills are not that long.
const NO_SKILL: &str = "portcullis-mutate-a-skill-that-no-agent-declares";

/// A call that should be refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Mutant {
    /// What was changed: a claim, or one of [`super::trial::WHAT`].
    pub what: Box<str>,
    /// How, in words.
    pub how: String,
    /// What kind of change it is.
    pub sort: Sort,
    /// Who calls.
    pub caller: Caller,
    /// The reach of its token, whatever its claims and marks add up to.
    pub reach: Option<Option<Grant>>,
    /// What is called.
    pub call: Calling,
}

/// Where a test stands: what it could have been instead.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The issuers.
    pub issuers: &'a [Arc<IssuerConfig>],
    /// Each agent's skills, in the order of the configuration.
    pub skills: &'a [&'a [Box<str>]],
    /// The reach that the caller has.
    pub grant: Option<Grant>,
    /// The skill that the call has.
    pub skill: Option<&'a str>,
    /// Whether a call can name a skill that the agent does not have.
    pub any_skill: bool,
    /// The claims that decide about it.
    pub needed: &'a [Needed],
    /// For each number among the claims: the least and the greatest of the values with which tests
    /// show it allowed.
    pub shown: &'a dyn Fn(&str) -> Option<(f64, f64)>,
}

/// The mutants of a test whose call is allowed.
pub fn mutants(trial: &Trial, around: &Around<'_>) -> Vec<Mutant> {
    let mut mutants = of_claims(trial, around);
    let mut add = |what: &str, how: String, sort, change: &dyn Fn(&mut Mutant)| {
        let mut mutant = Mutant {
            what: what.into(),
            how,
            sort,
            caller: trial.caller.clone(),
            reach: None,
            call: trial.call.clone(),
        };
        change(&mut mutant);
        mutants.push(mutant);
    };
    let lower: &[Option<Grant>] = match around.grant {
        Some(Grant::Full) => &[Some(Grant::Agent), None],
        Some(Grant::Agent) => &[None],
        None => &[],
    };
    for grant in lower {
        let how = match grant {
            Some(Grant::Agent) => "agent",
            Some(Grant::Full) => "full",
            None => "none",
        };
        let lowered = |mutant: &mut Mutant| mutant.reach = Some(*grant);
        add("grant", how.to_owned(), Sort::Call, &lowered);
    }
    for (i, config) in around.issuers.iter().enumerate() {
        if i == trial.caller.issuer {
            continue;
        }
        let from = |mutant: &mut Mutant| {
            let mut claims = trial.caller.claims.clone();
            for name in ["iss", "aud"] {
                taken_out(&mut claims, &[name.into()]);
            }
            mutant.caller = Caller {
                issuer: i,
                grant: around.grant,
                payload: completed(&claims, config, &Beside::default()),
                claims,
            };
            mutant.reach = Some(around.grant);
        };
        add("issuer", config.name.to_string(), Sort::Call, &from);
    }
    for (i, skills) in around.skills.iter().enumerate() {
        if i == trial.call.agent {
            continue;
        }
        let to = |mutant: &mut Mutant| {
            mutant.call.agent = i;
            let mut skills = skills.iter();
            mutant.call.skill = skills.find(|s| around.skill == Some(&***s)).cloned();
        };
        add("agent", format!("number {i}"), Sort::Call, &to);
    }
    for asked in others(trial.call.asked) {
        let to = |mutant: &mut Mutant| {
            mutant.call.asked = asked;
            if is_message(asked) {
                mutant.call.skill = around.skill.map(Box::from);
            } else {
                mutant.call.skill = None;
                mutant.call.message = None;
            }
        };
        add("operation", name_of(asked).to_owned(), Sort::Call, &to);
    }
    if is_message(trial.call.asked) {
        let own = around.skills.get(trial.call.agent).copied();
        let others = own.unwrap_or_default().iter();
        let others = others.filter(|skill| Some(&***skill) != around.skill);
        for skill in others {
            let other = |mutant: &mut Mutant| mutant.call.skill = Some(skill.clone());
            add("skill", skill.to_string(), Sort::Call, &other);
        }
        if around.any_skill {
            let unknown = |mutant: &mut Mutant| mutant.call.skill = Some(NO_SKILL.into());
            add(
                "skill",
                "one that the agent does not have".to_owned(),
                Sort::Unknown,
                &unknown,
            );
        }
    }
    mutants
}

/// The name of what is asked for.
pub fn name_of(asked: Asked) -> &'static str {
    match asked {
        Asked::Operation(operation) => operation.name(),
        Asked::Backend => "backend",
    }
}

/// One operation of each other group.
fn others(asked: Asked) -> impl Iterator<Item = Asked> {
    const EACH: [Asked; 6] = [
        Asked::Operation(Operation::SendMessage),
        Asked::Operation(Operation::GetTask),
        Asked::Operation(Operation::ListTasks),
        Asked::Operation(Operation::GetTaskPushNotificationConfig),
        Asked::Operation(Operation::GetExtendedAgentCard),
        Asked::Backend,
    ];
    EACH.into_iter()
        .filter(move |other| group(*other) != group(asked))
}

/// The group of what is asked for; `None` is the backend surface.
pub fn group(asked: Asked) -> Option<OperationGroup> {
    match asked {
        Asked::Operation(operation) => Some(operation.group()),
        Asked::Backend => None,
    }
}

/// Those that change a claim: one that decides, in every way; one that the test states and that
/// seems to decide nothing, by leaving it out.
fn of_claims(trial: &Trial, around: &Around<'_>) -> Vec<Mutant> {
    let Some(config) = around.issuers.get(trial.caller.issuer) else {
        return Vec::new();
    };
    let payload = &trial.caller.payload;
    let mut mutants = Vec::new();
    let mut add = |what: &str, path: &[Box<str>], change: Change| {
        let mut caller = trial.caller.clone();
        match change.value {
            Some(value) => put(&mut caller.payload, path, value),
            None => taken_out(&mut caller.payload, path),
        }
        if caller.payload != *payload {
            mutants.push(Mutant {
                what: what.into(),
                how: change.how,
                sort: change.sort,
                caller,
                reach: Some(around.grant),
                call: trial.call.clone(),
            });
        }
    };
    for needed in around.needed {
        let Some(path) = place(&needed.claim, payload, config) else {
            continue;
        };
        let Some(value) = look(payload, &path) else {
            // It is needed not to be there.
            let name = Json::String("test".into());
            let value = match &*needed.claim {
                "delegated" => Json::Object(vec![("sub".into(), name)]),
                _ => name,
            };
            let there = Change::new("there", Sort::Shape, Some(value));
            add(&needed.claim, &path, there);
            continue;
        };
        let shown = (around.shown)(&needed.claim);
        for change in changes(value, needed, shown) {
            add(&needed.claim, &path, change);
        }
    }
    for declared in &config.claims {
        let known = around.needed.iter().any(|n| *n.claim == *declared.name);
        if !known && look(&trial.caller.claims, &declared.path).is_some() {
            add(
                &declared.name,
                &declared.path,
                Change::new("left out", Sort::Needless, None),
            );
        }
    }
    mutants
}

/// Those that change what a test's message says: for each value in it, first that it is left out.
/// Where that changes nothing, no rule looks at it.
pub fn of_content(trial: &Trial) -> Vec<Vec<Mutant>> {
    let Some(message) = &trial.call.message else {
        return Vec::new();
    };
    let needed = Needed {
        claim: "content".into(),
        listed: Vec::new(),
        open: true,
        below: true,
        above: true,
    };
    let mut found = Vec::new();
    for path in leaves(message) {
        let Some(value) = look(message, &path) else {
            continue;
        };
        let shown = path.join(".");
        let mutant = |change: Change| {
            let mut changed = message.clone();
            match change.value {
                Some(value) => put(&mut changed, &path, value),
                None => taken_out(&mut changed, &path),
            }
            Mutant {
                what: "content".into(),
                how: format!("{shown} {}", change.how),
                sort: change.sort,
                caller: trial.caller.clone(),
                reach: None,
                call: Calling {
                    message: Some(changed),
                    ..trial.call.clone()
                },
            }
        };
        found.push(
            changes(value, &needed, None)
                .into_iter()
                .map(mutant)
                .collect(),
        );
    }
    found
}

/// What stands at a path.
pub fn look<'v>(payload: &'v Json, path: &[Box<str>]) -> Option<&'v Json> {
    path.iter().try_fold(payload, |value, name| match value {
        Json::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => value.get(name),
    })
}

/// Puts a value at a path, as far as what is on the way are objects and lists.
fn put(payload: &mut Json, path: &[Box<str>], value: Json) {
    let Some((last, way)) = path.split_last() else {
        return;
    };
    let mut at = payload;
    for name in way {
        if let Json::Object(members) = at
            && !members.iter().any(|(n, _)| n == name)
        {
            members.push((name.clone(), Json::Object(Vec::new())));
        }
        match inner(at, name) {
            Some(next) => at = next,
            None => return,
        }
    }
    match (inner(at, last), value) {
        (Some(there), value) => *there = value,
        (None, value) => {
            if let Json::Object(members) = at {
                members.push((last.clone(), value));
            }
        }
    }
}
