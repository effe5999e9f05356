//! Callers tried one by one, as a second opinion.

use super::super::{Site, text, texts};
use portcullis::a2a::Operation;
use portcullis::identity::issuer::Grant;
use portcullis::identity::{Actor, ClaimState, ClaimValue, Confirmation, Principal};
use portcullis::policy::{self, Asked, AskedSkill, Effect, PolicySet, Question};

/// Callers in every way in which the tests above can tell them apart, and calls to both agents.
pub(super) fn anybody_newly_allowed(
    site: &Site,
    old: &PolicySet,
    new: &PolicySet,
) -> Option<String> {
    let number = |n: f64| ClaimState::Value(ClaimValue::Number(n));
    let (missing, null, wrong) = (ClaimState::Missing, ClaimState::Null, ClaimState::WrongType);
    let roles = [
        missing.clone(),
        text("reviewer"),
        text("admin"),
        text("guest"),
        text("team/reviewer"),
        text("team/other"),
        null.clone(),
        wrong.clone(),
    ];
    let groups = [
        missing.clone(),
        texts(&["ops"]),
        texts(&["eu"]),
        texts(&["eu", "ops"]),
        null.clone(),
    ];
    let levels = [
        missing.clone(),
        number(1.0),
        number(2.5),
        number(4.0),
        number(3.5),
        number(9.0),
        wrong,
    ];
    let verified = [
        missing.clone(),
        ClaimState::Value(ClaimValue::Boolean(true)),
        null,
    ];
    let mut principal = site.principal(0);
    let unbound = Confirmation::default();
    let dpop = Confirmation {
        certificate: None,
        key: Some([0; 32]),
    };
    let robot = |name: &str| {
        vec![Actor {
            subject: name.into(),
            issuer: None,
        }]
    };
    let others: Vec<(&str, Vec<Actor>, &[&str], &Confirmation)> = {
        let (none, dpop) = (&unbound, &dpop);
        vec![
            ("bob", Vec::new(), &[], none),
            ("alice", Vec::new(), &["deploy"], dpop),
            ("alice", robot("robot"), &["deploy"], dpop),
            ("guest", Vec::new(), &["deploy", "guest"], none),
            ("bob", robot("guest"), &[], none),
            ("bob", robot("alice"), &[], dpop),
        ]
    };
    for role in &roles {
        for group in &groups {
            for level in &levels {
                for flag in &verified {
                    principal.claims = vec![
                        role.clone(),
                        group.clone(),
                        level.clone(),
                        flag.clone(),
                        missing.clone(),
                    ];
                    for (subject, actors, scopes, bound) in &others {
                        principal.subject = (*subject).into();
                        principal.actors.clone_from(actors);
                        principal.scopes = scopes.iter().map(|s| Box::from(*s)).collect();
                        principal.confirmation = (*bound).clone();
                        for grant in [Grant::Agent, Grant::Full] {
                            if grant == Grant::Full && !actors.is_empty() {
                                continue;
                            }
                            principal.grant = Some(grant);
                            if let Some(agent) = newly(old, new, &principal) {
                                return Some(site.agents[agent].0.to_owned());
                            }
                        }
                    }
                }
            }
        }
    }
    None
}

const OF_GROUPS: [&str; 5] = [
    "SendMessage",
    "GetTask",
    "ListTasks",
    "GetTaskPushNotificationConfig",
    "GetExtendedAgentCard",
];

fn newly(old: &PolicySet, new: &PolicySet, principal: &Principal) -> Option<usize> {
    for (agent, skills) in [(0, ["hello", "review-diff"]), (1, ["forecast", "x"])] {
        // One of each group.
        let operations = Operation::ALL
            .into_iter()
            .filter(|o| OF_GROUPS.contains(&o.name()));
        for operation in operations {
            let message = operation == Operation::SendMessage;
            for skill in &skills[..if message { 2 } else { 1 }] {
                let question = Question {
                    agent,
                    asked: Asked::Operation(operation),
                    skill: AskedSkill::Known(skill),
                    principal,
                    memo: None,
                    content: None,
                };
                if policy::decide(new, &question).effect == Effect::Allow
                    && policy::decide(old, &question).effect == Effect::Deny
                {
                    return Some(agent);
                }
            }
        }
    }
    None
}
