//! [`Judge`]: recorded decisions under a candidate, for every value of what is not recorded.

use super::super::condition::{Condition, Party, Tri, evaluate};
use super::super::decide::{Asked, AskedSkill, Question, decide};
use super::super::decision::{Decision, Effect};
use super::super::diff::{
    Caller, Fact, Side, Space, SpaceAsked, Trust, Variable, concerning, condition_of,
};
use super::super::webhooks::target;
use super::recorded::Recorded;
use crate::a2a::Operation;
use crate::identity::issuer::{ClaimKind, IssuerConfig};
use crate::identity::{ClaimState, ClaimValue};
use std::collections::HashMap;
use std::sync::Arc;

/// Most combinations of values that are tried for what is not recorded of one call.
const COMBINATIONS: usize = 4096;

/// What becomes of a recorded call under a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// It is allowed, by this rule.
    Allowed(Option<Arc<str>>),
    /// It is refused; the rule that denies it, or the code of what refuses it.
    Refused(Option<Arc<str>>),
    /// The record lacks what it depends on.
    Undetermined(Lacks),
}

/// What a record lacks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lacks {
    /// The value of a claim, or of a name that needs no declaration.
    Claim(Arc<str>),
    /// Which skill it was.
    Skill,
    /// What the message says.
    Content,
    /// The webhook's host.
    Webhook,
    /// Too many values would have to be tried.
    Bound,
}

impl std::fmt::Display for Lacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Lacks::Claim(name) => write!(f, "`{name}` is not recorded"),
            Lacks::Skill => f.write_str("the skill is not recorded"),
            Lacks::Content => f.write_str("what the message says is not recorded"),
            Lacks::Webhook => f.write_str("the webhook is not recorded"),
            Lacks::Bound => f.write_str("too much of the caller is not recorded"),
        }
    }
}

/// Judges recorded calls under one policy set.
pub struct Judge<'a> {
    side: Side<'a>,
    agents: HashMap<&'a str, usize>,
    issuers: HashMap<&'a str, usize>,
}

impl<'a> Judge<'a> {
    /// For a candidate.
    pub fn new(side: Side<'a>) -> Judge<'a> {
        let agents = side.world.agents.iter().enumerate();
        let issuers = side.world.issuers.iter().enumerate();
        Judge {
            side,
            agents: agents.map(|(i, agent)| (agent.name, i)).collect(),
            issuers: issuers.map(|(i, issuer)| (&*issuer.name, i)).collect(),
        }
    }

    /// What becomes of a recorded call: the same for every value of what is not recorded, or
    /// undetermined.
    pub fn judge(&self, recorded: &Recorded) -> Judged {
        let caller = &recorded.caller;
        let (Some(agent), Some(issuer)) = (
            self.agents.get(&*recorded.agent).copied(),
            self.issuers.get(&*caller.issuer).copied(),
        ) else {
            return Judged::Refused(None);
        };
        let Some(config) = self.side.world.issuers.get(issuer) else {
            return Judged::Refused(None);
        };
        let Some(skill) = recorded.skill.asked() else {
            return Judged::Undetermined(Lacks::Skill);
        };
        let mut calls = vec![(recorded.asked, skill)];
        if recorded.inline_push() {
            let create = Asked::Operation(Operation::CreateTaskPushNotificationConfig);
            calls.push((create, AskedSkill::NotAMessage));
        }
        let judged = self.calls(agent, &calls, recorded, (issuer, config));
        let sets_webhook = recorded.inline_push()
            || recorded.asked == Asked::Operation(Operation::CreateTaskPushNotificationConfig);
        match judged {
            Judged::Allowed(rule) if sets_webhook => self.webhooks(agent, recorded, rule),
            judged => judged,
        }
    }

    fn webhooks(&self, agent: usize, recorded: &Recorded, rule: Option<Arc<str>>) -> Judged {
        let listed = |host: &str| {
            let url = match (host.starts_with('['), host.matches(':').count()) {
                (false, 2..) => format!("https://[{host}]"),
                _ => format!("https://{host}"),
            };
            target(&url).is_ok_and(|target| self.side.policies.webhooks().allows(agent, &target))
        };
        match &*recorded.reason {
            // What its addresses were, or how it was written, refuses it under any policy.
            reason if reason.starts_with("webhook_") && reason != "webhook_not_listed" => {
                Judged::Refused(None)
            }
            _ if recorded.webhooks.is_empty() => Judged::Undetermined(Lacks::Webhook),
            _ if recorded.webhooks.iter().all(|host| listed(host)) => Judged::Allowed(rule),
            _ => Judged::Refused(None),
        }
    }

    /// All of these calls, which stand or fall together.
    fn calls(
        &self,
        agent: usize,
        calls: &[(Asked, AskedSkill<'_>)],
        recorded: &Recorded,
        (index, config): (usize, &'a IssuerConfig),
    ) -> Judged {
        let trust = Trust { index, config };
        let policies = self.side.policies;
        let mut conditions: Vec<&Condition> = Vec::new();
        for (asked, skill) in calls {
            let found = concerning(policies, agent, *asked, *skill);
            let positions = found.allows.iter().chain(&found.denies);
            let rules = positions.filter_map(|at| policies.rules.get(*at));
            let rules = rules.filter(|rule| rule.issuers.contains(index));
            conditions.extend(rules.filter_map(condition_of));
        }
        let mut base = Caller::new(&recorded.caller.issuer, recorded.caller.grant);
        let facts = recorded.caller.facts();
        for (variable, fact) in facts {
            base.set(variable, fact);
        }
        // Nothing is to be tried where everything is known.
        let unknown = conditions.iter().any(|condition| {
            let mut tests = condition.claims.iter();
            tests.any(|test| !is_known(&Variable::of(test), facts, config))
        });
        let told = |condition: &&Condition| {
            let principal = base.principal(index, config);
            let parties = if principal.actors.is_empty() {
                &[Party::Subject][..]
            } else {
                &[Party::Subject, Party::Actor]
            };
            let no = |party: &Party| evaluate(&condition.claims, &principal, *party) == Tri::False;
            !unknown && parties.iter().all(no)
        };
        // What the claims decide, no message changes.
        let mut open = conditions.iter().filter(|c| !c.content.is_empty());
        if open.any(|condition| !told(condition)) {
            return Judged::Undetermined(Lacks::Content);
        }
        if !unknown {
            conditions.clear();
        }
        let asked = |condition| {
            [Party::Subject, Party::Actor].map(|party| SpaceAsked {
                condition,
                party,
                trust,
            })
        };
        let delegated = !matches!(facts.get(&Variable::Actor), Some(Fact::Actor(None)));
        let asked: Vec<SpaceAsked<'_>> = conditions
            .into_iter()
            .flat_map(asked)
            .filter(|asked| delegated || asked.party == Party::Subject)
            .collect();
        let mut space = Space::new(&base, &asked);
        space
            .variables
            .retain(|(variable, _)| !is_known(variable, facts, config));
        let combinations: usize = space
            .sizes()
            .into_iter()
            .try_fold(1_usize, |all, many| all.checked_mul(many))
            .unwrap_or(usize::MAX);
        let mut first: Option<Decision> = None;
        for number in 0..combinations.min(COMBINATIONS) {
            let caller = space.caller(&base, &digits(number, &space.sizes()));
            let principal = caller.principal(index, config);
            let mut decision = Decision::deny(Decision::NO_RULE);
            for (i, (asked, skill)) in calls.iter().enumerate() {
                let question = Question {
                    agent,
                    asked: *asked,
                    skill: *skill,
                    principal: &principal,
                    memo: None,
                    content: None,
                };
                let one = decide(policies, &question);
                let denied = one.effect == Effect::Deny;
                if i == 0 || denied {
                    decision = one;
                }
                if denied {
                    break;
                }
            }
            match &first {
                Some(first) if first.effect != decision.effect => {
                    return Judged::Undetermined(lacks(&space));
                }
                Some(_) => {}
                None => first = Some(decision),
            }
        }
        if combinations > COMBINATIONS || (!space.complete && !space.variables.is_empty()) {
            return Judged::Undetermined(Lacks::Bound);
        }
        match first {
            Some(decision) if decision.effect == Effect::Allow => Judged::Allowed(decision.rule),
            Some(decision) => Judged::Refused(decision.rule),
            None => Judged::Undetermined(Lacks::Bound),
        }
    }
}

/// Whether a record says what a variable was, in the type that it has now.
fn is_known(
    variable: &Variable,
    facts: &std::collections::BTreeMap<Variable, Fact>,
    config: &IssuerConfig,
) -> bool {
    let Variable::Claim(name) = variable else {
        return facts.contains_key(variable);
    };
    let Some(declared) = config.claims.iter().find(|claim| *claim.name == **name) else {
        // Never there.
        return true;
    };
    match facts.get(variable) {
        Some(Fact::Claim(ClaimState::Value(value))) => matches!(
            (declared.kind, value),
            (ClaimKind::String, ClaimValue::String(_))
                | (ClaimKind::Number, ClaimValue::Number(_))
                | (ClaimKind::Boolean, ClaimValue::Boolean(_))
                | (
                    ClaimKind::StringArray | ClaimKind::SpaceString,
                    ClaimValue::Strings(_)
                )
        ),
        Some(Fact::Claim(_)) => true,
        Some(_) | None => false,
    }
}

fn lacks(space: &Space) -> Lacks {
    let name = |variable: &Variable| match variable {
        Variable::Claim(name) => Arc::clone(name),
        Variable::Subject => "sub".into(),
        Variable::Client => "client_id".into(),
        Variable::Actor => "actor_sub".into(),
        Variable::Scopes => "scopes".into(),
        Variable::Proof => "proof".into(),
        Variable::Content(path) => Arc::clone(path),
    };
    match space.variables.first() {
        None => Lacks::Bound,
        Some((Variable::Content(_), _)) => Lacks::Content,
        Some((variable, _)) => Lacks::Claim(name(variable)),
    }
}

/// The combination of this number.
fn digits(mut number: usize, sizes: &[usize]) -> Vec<usize> {
    let digit = |size: &usize| {
        let size = (*size).max(1);
        let digit = number % size;
        number /= size;
        digit
    };
    sizes.iter().map(digit).collect()
}
