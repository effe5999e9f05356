//! A second evaluator, as naive as can be, over its own model of rules; and random rules and
//! tokens for it.

use super::{Site, text, texts};
use portcullis::a2a::Operation;
use portcullis::identity::issuer::Grant;
use portcullis::identity::{ClaimState, ClaimValue, Principal};
use portcullis::policy::{Asked, AskedSkill, Question};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fmt::Write;

/// A claim, a matcher as written, and what it says of a value.
type Matcher = (&'static str, &'static str, fn(&ClaimValue) -> Option<bool>);

const MATCHERS: [Matcher; 8] = [
    ("role", "equals: reviewer", |v| {
        Some(string(v)? == "reviewer")
    }),
    ("role", "any_of: [admin, reviewer]", |v| {
        Some(["admin", "reviewer"].contains(&string(v)?))
    }),
    ("role", "matches: \"re*er\"", |v| {
        let s = string(v)?;
        Some(s.len() >= 4 && s.starts_with("re") && s.ends_with("er") && !s.contains('/'))
    }),
    ("groups", "contains: ops", |v| {
        Some(array(v)?.contains(&"ops"))
    }),
    ("groups", "all_of: [ops, eu]", |v| {
        let all = array(v)?;
        Some(all.contains(&"ops") && all.contains(&"eu"))
    }),
    ("groups", "any_of: [ops, eu]", |v| {
        Some(array(v)?.iter().any(|g| ["ops", "eu"].contains(g)))
    }),
    ("level", "between: [2, 3]", |v| match v {
        ClaimValue::Number(n) => Some((2.0..=3.0).contains(n)),
        _ => None,
    }),
    ("verified", "equals: true", |v| match v {
        ClaimValue::Boolean(b) => Some(*b),
        _ => None,
    }),
];

fn string(value: &ClaimValue) -> Option<&str> {
    match value {
        ClaimValue::String(s) => Some(s),
        _ => None,
    }
}

fn array(value: &ClaimValue) -> Option<Vec<&str>> {
    match value {
        ClaimValue::Strings(all) => Some(all.iter().map(AsRef::as_ref).collect()),
        _ => None,
    }
}

/// A matcher on the values in a message, as written, and what it says of one.
type ContentMatcher = (&'static str, fn(&Value) -> Option<bool>);

const CONTENTS: [ContentMatcher; 3] = [
    ("matches: \"sandbox/*\"", |v| {
        let rest = v.as_str()?.strip_prefix("sandbox/");
        Some(rest.is_some_and(|rest| !rest.contains('/')))
    }),
    ("equals: prod", |v| Some(v.as_str()? == "prod")),
    ("gte: 3", |v| Some(v.as_f64()? >= 3.0)),
];

/// `one`, `each` and `some` of what a matcher says of each value.
fn of_values(quantifier: usize, says: &[Option<bool>]) -> Option<bool> {
    let all_known = !says.contains(&None);
    match quantifier {
        _ if says.is_empty() => None,
        0 if says.len() > 1 => None,
        0 | 1 if says.contains(&Some(false)) => Some(false),
        0 | 1 => all_known.then_some(true),
        _ if says.contains(&Some(true)) => Some(true),
        _ => all_known.then_some(false),
    }
}

/// The parameters of a send whose parts have these values.
pub(super) fn saying(values: &[Value]) -> Value {
    let parts: Vec<_> = values
        .iter()
        .map(|v| json!({"data": {"repo": v}}))
        .collect();
    json!({"message": {"parts": parts}})
}

pub(super) fn messages() -> impl Strategy<Value = Vec<Value>> {
    let value = prop::sample::select(vec![
        json!("sandbox/a"),
        json!("sandbox/a/b"),
        json!("prod"),
        json!(3),
        json!(2.5),
        json!(null),
        json!(["prod"]),
        json!(true),
    ]);
    prop::collection::vec(value, 0..3)
}

/// Operations of the naive model: the eleven, and `backend`.
pub(super) const OPERATIONS: [&str; 12] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
    "backend",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guard {
    Allow(bool),
    When,
    Unless,
    Always,
}

/// A rule of the model.
#[derive(Debug, Clone)]
pub(super) struct Model {
    guard: Guard,
    /// 0 and 1: one agent; 2: any.
    agents: usize,
    /// What is written, and what it means.
    operations: (&'static str, Vec<&'static str>),
    skills: Option<&'static str>,
    /// 0 and 1: one issuer; 2: any.
    issuers: usize,
    /// Positions in [`MATCHERS`], at most one per claim, and whether missing is lifted.
    tests: Vec<(usize, bool)>,
    /// Quantifier, position in [`CONTENTS`], and whether missing is lifted.
    pub(super) content: Option<(usize, usize, bool)>,
    pub(super) shadow: bool,
}

impl Model {
    pub(super) fn is_deny(&self) -> bool {
        !matches!(self.guard, Guard::Allow(_))
    }

    /// As it is written in a policy file.
    pub(super) fn yaml(&self, id: &str) -> String {
        let agents = ["[pr-agent]", "[weather]", "any"][self.agents];
        let issuers = ["[corp]", "[partner]", "any"][self.issuers];
        let effect = if self.is_deny() { "deny" } else { "allow" };
        let mut out = format!("  - id: {id}\n    {effect}: {{agents: {agents}, operations: ");
        write!(out, "{}, issuers: {issuers}", self.operations.0).unwrap();
        if self.concerns_messages() {
            match self.skills {
                Some(skill) => write!(out, ", skills: [{skill}]").unwrap(),
                None => out.push_str(", skills: any"),
            }
        }
        out.push_str("}\n");
        if self.shadow {
            out.push_str("    mode: shadow\n    until: 2999-12-31\n");
        }
        let place = match self.guard {
            Guard::Allow(full) => {
                let grant = if full { "full" } else { "agent" };
                writeln!(out, "    grant: {grant}").unwrap();
                "require"
            }
            Guard::When => "when",
            Guard::Unless => "unless",
            Guard::Always => {
                out.push_str("    always: true\n");
                return out;
            }
        };
        if !self.tests.is_empty() || self.content.is_some() {
            writeln!(out, "    {place}:").unwrap();
        }
        if let Some((quantifier, matcher, lifted)) = self.content {
            let quantifier = ["one", "each", "some"][quantifier];
            let lift = match lifted && self.guard == Guard::When {
                true => ", if_missing: no_match",
                false => "",
            };
            let matcher = CONTENTS[matcher].0;
            let path = "$.message.parts[*].data.repo";
            let entry = format!("{{path: \"{path}\", {quantifier}: {{{matcher}}}{lift}}}");
            writeln!(out, "      content: [{entry}]").unwrap();
        }
        for (test, lifted) in &self.tests {
            let (claim, matcher, _) = MATCHERS[*test];
            let lift = if *lifted && self.guard == Guard::When {
                ", if_missing: no_match"
            } else {
                ""
            };
            writeln!(out, "      {claim}: {{{matcher}{lift}}}").unwrap();
        }
        out
    }

    fn concerns_messages(&self) -> bool {
        self.operations.1.iter().any(|o| o.starts_with("Send"))
    }

    /// Whether it matches (an allow) or fires (a deny).
    pub(super) fn applies(
        &self,
        site: &Site,
        call: &CallModel,
        principal: &Principal,
        message: &[Value],
    ) -> bool {
        let declared = call
            .skill
            .filter(|s| site.agents[call.agent].1.iter().any(|d| **d == **s));
        let skill = match (self.skills, declared) {
            _ if !call.operation.starts_with("Send") => true,
            (None, _) => true,
            (Some(named), Some(asked)) => named == asked,
            (Some(_), None) => self.is_deny(),
        };
        let concerned = (self.agents == 2 || self.agents == call.agent)
            && self.operations.1.contains(&call.operation)
            && (self.issuers == 2 || self.issuers == principal.issuer_index)
            && skill;
        if !concerned {
            return false;
        }
        let mut outcomes: Vec<Option<bool>> = self
            .tests
            .iter()
            .map(|(test, lifted)| {
                let (claim, _, says) = MATCHERS[*test];
                let claims = &site.issuers[principal.issuer_index].claims;
                let state = claims
                    .iter()
                    .position(|c| *c.name == *claim)
                    .map_or(ClaimState::Missing, |i| principal.claims[i].clone());
                match state {
                    ClaimState::Value(value) => says(&value),
                    ClaimState::Missing if *lifted && self.guard == Guard::When => Some(false),
                    _ => None,
                }
            })
            .collect();
        if let Some((quantifier, matcher, lifted)) = self.content {
            let says: Vec<_> = message.iter().map(CONTENTS[matcher].1).collect();
            outcomes.push(
                match says.is_empty() && lifted && self.guard == Guard::When {
                    true => Some(false),
                    false => of_values(quantifier, &says),
                },
            );
        }
        let holds = outcomes.iter().all(|o| *o == Some(true));
        let fails = outcomes.contains(&Some(false));
        match self.guard {
            Guard::Allow(full) => {
                let enough = match principal.grant {
                    Some(Grant::Full) => true,
                    Some(Grant::Agent) => !full && call.operation != "backend",
                    None => false,
                };
                enough && holds
            }
            Guard::When => !fails,
            Guard::Unless => !holds,
            Guard::Always => true,
        }
    }
}

/// A call of the model.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallModel {
    pub(super) agent: usize,
    pub(super) operation: &'static str,
    pub(super) skill: Option<&'static str>,
}

impl CallModel {
    /// Every call that differs for a policy.
    pub(super) fn all() -> Vec<CallModel> {
        let skills = [
            None,
            Some("review-diff"),
            Some("hello"),
            Some("forecast"),
            Some("x"),
        ];
        let mut all = Vec::new();
        for agent in 0..3 {
            for operation in OPERATIONS {
                for skill in skills {
                    all.push(CallModel {
                        agent,
                        operation,
                        skill,
                    });
                }
            }
        }
        all
    }

    pub(super) fn question<'a>(&self, principal: &'a Principal) -> Question<'a> {
        let operation = Operation::ALL
            .into_iter()
            .find(|o| o.name() == self.operation);
        Question {
            agent: self.agent,
            asked: operation.map_or(Asked::Backend, Asked::Operation),
            skill: self.skill.map_or(AskedSkill::Unknown, AskedSkill::Known),
            principal,
            memo: None,
            content: None,
        }
    }
}

/// The naive decision: no deny fires, and some allow matches.
pub(super) fn allows(
    site: &Site,
    rules: &[Model],
    call: &CallModel,
    principal: &Principal,
    message: &[Value],
) -> bool {
    let applying: Vec<&Model> = rules
        .iter()
        .filter(|rule| !rule.shadow)
        .filter(|rule| rule.applies(site, call, principal, message))
        .collect();
    !applying.is_empty() && !applying.iter().any(|rule| rule.is_deny())
}

/// Which rules in shadow mode would turn the decision round: naively, by putting each in force.
pub(super) fn turning(
    site: &Site,
    rules: &[Model],
    call: &CallModel,
    principal: &Principal,
    message: &[Value],
) -> Vec<usize> {
    let now = allows(site, rules, call, principal, message);
    let turns = |i: &usize| {
        let mut rules = rules.to_vec();
        rules[*i].shadow = false;
        allows(site, &rules, call, principal, message) != now
    };
    let shadows = (0..rules.len()).filter(|i| rules[*i].shadow);
    shadows.filter(turns).collect()
}

/// Rules as they are written, each with its number in its id.
pub(super) fn numbered_yaml(rules: &[(usize, &Model)]) -> String {
    let rules = rules.iter();
    rules
        .map(|(id, rule)| rule.yaml(&format!("r{id}")))
        .collect()
}

pub(super) fn rules() -> impl Strategy<Value = Vec<Model>> {
    prop::collection::vec(rule(), 0..12)
}

pub(super) fn rule() -> impl Strategy<Value = Model> {
    let guard = prop_oneof![
        any::<bool>().prop_map(Guard::Allow),
        Just(Guard::When),
        Just(Guard::Unless),
        Just(Guard::Always),
    ];
    let tests = prop::collection::vec((0..MATCHERS.len(), any::<bool>()), 0..3);
    let scope = (0..3usize, 0..6usize, 0..3usize, 0..3usize);
    let content = prop::option::of((0..3usize, 0..CONTENTS.len(), any::<bool>()));
    let shadow = prop::bool::weighted(0.2);
    (guard, scope, tests, content, shadow).prop_map(
        |(guard, (agents, operations, skills, issuers), tests, content, shadow)| {
            let mut rule = Model {
                guard,
                agents,
                operations: written(operations, guard, agents),
                skills: skill_of(agents, skills),
                issuers,
                tests,
                content,
                shadow,
            };
            tidy(&mut rule);
            rule
        },
    )
}

/// What may be written, and what it means for this kind of rule.
fn written(i: usize, guard: Guard, agents: usize) -> (&'static str, Vec<&'static str>) {
    let deny = !matches!(guard, Guard::Allow(_));
    match i {
        0 => ("[messages]", OPERATIONS[..2].to_vec()),
        1 => ("[tasks]", vec!["GetTask", "CancelTask", "SubscribeToTask"]),
        2 => (
            "[SendMessage, list, card]",
            vec!["SendMessage", "ListTasks", "GetExtendedAgentCard"],
        ),
        3 => ("[push]", OPERATIONS[6..10].to_vec()),
        // `weather` has no backend paths, and the grant must be full.
        4 if agents != 1 && (deny || guard == Guard::Allow(true)) => ("[backend]", vec!["backend"]),
        _ if deny || guard == Guard::Allow(true) => ("any", OPERATIONS.to_vec()),
        _ => ("any", OPERATIONS[..11].to_vec()),
    }
}

fn skill_of(agents: usize, i: usize) -> Option<&'static str> {
    match (agents, i) {
        (0 | 2, 0) => Some("review-diff"),
        (0, 1) => Some("hello"),
        (1, 0) | (2, 1) => Some("forecast"),
        _ => None,
    }
}

/// Makes the rule one that loads.
fn tidy(rule: &mut Model) {
    if rule.guard == Guard::Always {
        rule.tests.clear();
        rule.content = None;
    }
    if rule.operations.0 != "[messages]" {
        rule.content = None;
    }
    if rule.tests.is_empty() && matches!(rule.guard, Guard::When | Guard::Unless) {
        rule.tests.push((0, false));
    }
    let mut claims = Vec::new();
    rule.tests.retain(|(test, _)| {
        let claim = MATCHERS[*test].0;
        let first = !claims.contains(&claim);
        claims.push(claim);
        first
    });
    // `partner` has only `role`, and another type of `level`.
    if claims.iter().any(|c| *c != "role") && rule.issuers == 1 {
        rule.issuers = 2;
    }
    if claims.contains(&"level") {
        rule.issuers = 0;
    }
}

pub(super) fn principals(site: &Site) -> impl Strategy<Value = Vec<Principal>> {
    let bases = [site.principal(0), site.principal(1)];
    let state = |values: Vec<ClaimState>| {
        let mut all = vec![ClaimState::Missing, ClaimState::Null, ClaimState::WrongType];
        all.extend(values);
        prop::sample::select(all)
    };
    let number = |n| ClaimState::Value(ClaimValue::Number(n));
    let boolean = |b| ClaimState::Value(ClaimValue::Boolean(b));
    let one = (
        prop::bool::weighted(0.3),
        prop::sample::select(vec![None, Some(Grant::Agent), Some(Grant::Full)]),
        state(vec![
            text("reviewer"),
            text("admin"),
            text("reer"),
            text("re/er"),
            text("x"),
        ]),
        state(vec![texts(&["ops"]), texts(&["eu", "ops"]), texts(&[])]),
        state(vec![number(1.0), number(2.0), number(3.5)]),
        state(vec![boolean(true), boolean(false)]),
    );
    let one = one.prop_map(move |(partner, grant, role, groups, level, verified)| {
        let mut principal = bases[usize::from(partner)].clone();
        principal.grant = grant;
        principal.claims = if partner {
            vec![text("gold"), role]
        } else {
            vec![role, groups, level, verified, ClaimState::Missing]
        };
        principal
    });
    prop::collection::vec(one, 1..4)
}
