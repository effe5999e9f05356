//! Decisions as case files: rules, callers, calls, and what is decided.

use super::{Site, corp_site, site, texts};
use portcullis::a2a::Operation;
use portcullis::identity::issuer::{ClaimKind, Grant};
use portcullis::identity::{Actor, ClaimState, ClaimValue, Confirmation, Principal};
use portcullis::policy::{self, Asked, AskedSkill, Decision, Effect, Question};
use portcullis::source::{Document, Kind, Node};
use std::fs;

fn string<'d>(node: &'d Node, name: &str) -> Option<&'d str> {
    match &node.get(name)?.kind {
        Kind::Str(text) => Some(text),
        other => panic!("{name}: {other:?}"),
    }
}

/// A payload value as a claim of a declared type.
fn claim(kind: ClaimKind, node: &Node) -> ClaimState {
    let value = match (kind, &node.kind) {
        (_, Kind::Null) => return ClaimState::Null,
        (ClaimKind::String, Kind::Str(text)) => ClaimValue::String(text.as_str().into()),
        (ClaimKind::SpaceString, Kind::Str(text)) => {
            return texts(&text.split(' ').collect::<Vec<_>>());
        }
        (ClaimKind::Number, Kind::Int(n)) => {
            ClaimValue::Number(f64::from(i32::try_from(*n).unwrap()))
        }
        (ClaimKind::Number, Kind::Float(n)) => ClaimValue::Number(*n),
        (ClaimKind::Boolean, Kind::Bool(b)) => ClaimValue::Boolean(*b),
        (ClaimKind::StringArray, Kind::Seq(items)) => {
            let mut all = Vec::new();
            for item in items {
                match &item.kind {
                    Kind::Str(text) => all.push(Box::from(text.as_str())),
                    _ => return ClaimState::WrongType,
                }
            }
            ClaimValue::Strings(all)
        }
        _ => return ClaimState::WrongType,
    };
    ClaimState::Value(value)
}

fn principal(site: &Site, node: &Node) -> Principal {
    let name = string(node, "issuer").unwrap_or("corp");
    let index = site.issuers.iter().position(|i| *i.name == *name).unwrap();
    let mut principal = site.principal(index);
    principal.grant = match string(node, "grant").unwrap_or("agent") {
        "agent" => Some(Grant::Agent),
        "full" => Some(Grant::Full),
        _ => None,
    };
    if let Some(subject) = string(node, "sub") {
        principal.subject = subject.into();
    }
    if let Some(actor) = string(node, "actor") {
        principal.actors = vec![Actor {
            subject: actor.into(),
            issuer: string(node, "actor_issuer").map(Box::from),
        }];
    }
    let bound = Some([1; 32]);
    principal.confirmation = match string(node, "proof") {
        None => Confirmation::default(),
        Some("mtls") => Confirmation {
            certificate: bound,
            key: None,
        },
        Some("dpop") => Confirmation {
            certificate: None,
            key: bound,
        },
        Some("both") => Confirmation {
            certificate: bound,
            key: bound,
        },
        Some(other) => panic!("{other}"),
    };
    for (i, declared) in site.issuers[index].claims.iter().enumerate() {
        if let Some(node) = node.get("claims").and_then(|c| c.get(&declared.name)) {
            principal.claims[i] = claim(declared.kind, node);
        }
    }
    principal
}

fn question<'a>(site: &Site, node: &'a Node, principal: &'a Principal) -> Question<'a> {
    let agent = string(node, "agent").unwrap_or("pr-agent");
    let operation = string(node, "operation").unwrap_or("SendMessage");
    Question {
        agent: site.agents.iter().position(|(n, ..)| *n == agent).unwrap(),
        asked: match Operation::ALL.into_iter().find(|o| o.name() == operation) {
            Some(operation) => Asked::Operation(operation),
            None if operation == "backend" => Asked::Backend,
            None => panic!("{operation}"),
        },
        skill: match string(node, "skill") {
            Some(skill) => AskedSkill::Known(skill),
            None if operation.starts_with("Send") => AskedSkill::Unknown,
            None => AskedSkill::NotAMessage,
        },
        principal,
        memo: None,
        content: None,
    }
}

/// `allow RULE`, or `deny REASON [RULE] [near RULE [CLAIM] WHY]`.
fn show(decision: &Decision) -> String {
    let mut words = match decision.effect {
        Effect::Allow => vec!["allow"],
        Effect::Deny => vec!["deny", decision.reason],
    };
    words.extend(decision.rule.as_deref());
    if let Some(near) = &decision.near {
        words.extend(["near", &near.rule]);
        words.extend(near.claim.as_deref());
        words.push(near.why);
    }
    words.join(" ")
}

#[test]
fn every_case_is_decided_as_it_says() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for entry in fs::read_dir("tests/cases/policy/decisions").unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let document = Document::parse(path.to_str().unwrap(), &text).unwrap();
        assert!(document.problems.0.is_empty(), "{}", document.problems);
        let root = &document.root;
        let both = string(root, "issuers") == Some("both");
        let site = if both { site() } else { corp_site() };
        let policies = site.rules(string(root, "rules").unwrap());
        let Some(Kind::Seq(cases)) = root.get("cases").map(|c| &c.kind) else {
            panic!("{}: no cases", path.display())
        };
        for case in cases {
            let nobody = Document::parse("n", "{claims: {}}").unwrap().root;
            let principal = principal(&site, case.get("as").unwrap_or(&nobody));
            let question = question(&site, case.get("call").unwrap_or(&nobody), &principal);
            let found = show(&policy::decide(&policies, &question));
            // What is remembered of a token, for each party of a delegation, changes nothing.
            let memo = policy::Memo::default();
            let remembering = Question {
                memo: Some(&memo),
                ..question
            };
            for _ in 0..2 {
                assert_eq!(show(&policy::decide(&policies, &remembering)), found);
            }
            if string(case, "expect") != Some(found.as_str()) {
                wrong.push(format!(
                    "{}:{}: {found}",
                    path.display(),
                    case.position.line
                ));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "decided otherwise:\n{}", wrong.join("\n"));
    assert!(count >= 60, "{count}");
}

/// What a record says about a caller: the claims that rules for the agent look at.
#[test]
fn claims_used_are_those_of_rules_for_the_agent() {
    let site = site();
    let policies = site.rules(
        "  - id: a
    allow: {agents: [pr-agent], operations: [tasks], issuers: [corp]}
    grant: agent
    require: {level: {gte: 3}, role: {equals: reviewer}, sub: {equals: alice}}
  - id: b
    deny: {agents: any, operations: any, skills: any}
    unless: {role: {exists: true}}
",
    );
    assert_eq!(policy::claims_used(&policies, 0, 0), [0, 2]);
    assert_eq!(policy::claims_used(&policies, 1, 0), [0]);
    assert_eq!(policy::claims_used(&policies, 0, 1), [1]);
    assert_eq!(policy::claims_used(&policies, 9, 0), [0usize; 0]);
    assert_eq!(policy::claims_used(&policies, 0, 9), [0usize; 0]);
}
