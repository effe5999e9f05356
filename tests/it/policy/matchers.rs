//! Every matcher against every state of a claim, in every place; and the trap in all its forms.

use super::{allowed, corp_site, decide, text, texts};
use portcullis::identity::{ClaimState, ClaimValue};
use portcullis::policy::decision::why;

/// What a matcher should say of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Says {
    True,
    False,
    Unknown,
}

fn number(value: f64) -> ClaimState {
    ClaimState::Value(ClaimValue::Number(value))
}

fn boolean(value: bool) -> ClaimState {
    ClaimState::Value(ClaimValue::Boolean(value))
}

/// A claim, a matcher, values for which it is true, and values for which it is false.
type Row = (&'static str, &'static str, Vec<ClaimState>, Vec<ClaimState>);

fn rows() -> Vec<Row> {
    let strings = ["Reviewer", "reviewer ", "", "\u{ff52}eviewer", "review"].map(text);
    vec![
        (
            "role",
            "{equals: reviewer}",
            vec![text("reviewer")],
            strings.to_vec(),
        ),
        (
            "role",
            "{any_of: [reviewer, admin]}",
            vec![text("reviewer"), text("admin")],
            strings.to_vec(),
        ),
        (
            "role",
            "{matches: \"team/*-lead\"}",
            vec![text("team/a-lead"), text("team/-lead")],
            vec![
                text("team/a/b-lead"),
                text("team/a-leads"),
                text(""),
                text("Team/a-lead"),
            ],
        ),
        (
            "groups",
            "{contains: ops}",
            vec![texts(&["ops"]), texts(&["dev", "ops"])],
            vec![texts(&[]), texts(&["ops-eu"]), texts(&["Ops"])],
        ),
        (
            "groups",
            "{all_of: [ops, eu]}",
            vec![texts(&["eu", "x", "ops"])],
            vec![texts(&[]), texts(&["ops"]), texts(&["ops eu"])],
        ),
        (
            "groups",
            "{any_of: [ops, eu]}",
            vec![texts(&["x", "eu"]), texts(&["ops"])],
            vec![texts(&[]), texts(&["x"])],
        ),
        (
            "teams",
            "{contains: red}",
            vec![texts(&["red", "blue"])],
            vec![texts(&[]), texts(&["redder"])],
        ),
        (
            "teams",
            "{all_of: [red]}",
            vec![texts(&["red"])],
            vec![texts(&["blue"])],
        ),
        (
            "teams",
            "{any_of: [red]}",
            vec![texts(&["red"])],
            vec![texts(&["blue"])],
        ),
        (
            "level",
            "{equals: 3}",
            vec![number(3.0)],
            vec![number(3.1), number(0.0)],
        ),
        (
            "level",
            "{equals: 3.0}",
            vec![number(3.0)],
            vec![number(2.0)],
        ),
        (
            "level",
            "{gt: 3}",
            vec![number(3.5)],
            vec![number(3.0), number(-4.0)],
        ),
        ("level", "{gte: 3}", vec![number(3.0)], vec![number(2.9)]),
        (
            "level",
            "{lt: 3}",
            vec![number(2.9), number(-1.0)],
            vec![number(3.0)],
        ),
        ("level", "{lte: 3}", vec![number(3.0)], vec![number(3.1)]),
        (
            "level",
            "{between: [2, 4]}",
            vec![number(2.0), number(3.0), number(4.0)],
            vec![number(1.9), number(4.1)],
        ),
        (
            "verified",
            "{equals: true}",
            vec![boolean(true)],
            vec![boolean(false)],
        ),
        (
            "verified",
            "{equals: false}",
            vec![boolean(false)],
            vec![boolean(true)],
        ),
    ]
}

fn check(claim: &str, matcher: &str, state: &ClaimState, says: Says) {
    let site = corp_site();
    let principal = site.with(claim, state.clone());
    let scope = "{agents: [pr-agent], operations: [messages, tasks], skills: any}";
    let allow = format!("  - id: all\n    allow: {scope}\n    grant: agent\n");
    let condition = format!("{{{claim}: {matcher}}}");
    let cases = [
        (
            format!("  - id: a\n    allow: {scope}\n    grant: agent\n    require: {condition}\n"),
            says == Says::True,
        ),
        (
            format!("{allow}  - id: d\n    deny: {scope}\n    when: {condition}\n"),
            says == Says::False,
        ),
        (
            format!("{allow}  - id: d\n    deny: {scope}\n    unless: {condition}\n"),
            says == Says::True,
        ),
    ];
    for (rules, expected) in cases {
        let found = allowed(&site.rules(&rules), &principal);
        assert_eq!(found, expected, "{state:?} {says:?}\n{rules}");
    }
}

#[test]
fn every_matcher_in_every_place_for_every_state() {
    for (claim, matcher, good, bad) in rows() {
        for state in &good {
            check(claim, matcher, state, Says::True);
        }
        for state in &bad {
            check(claim, matcher, state, Says::False);
        }
        for state in [ClaimState::Missing, ClaimState::Null, ClaimState::WrongType] {
            check(claim, matcher, &state, Says::Unknown);
        }
    }
}

/// Should identity ever hand over a value of another type, it is no value (PR-4).
#[test]
fn a_value_that_the_matcher_cannot_compare_is_unknown() {
    let values = [text("3"), texts(&["reviewer"]), number(1.0), boolean(true)];
    for (claim, matcher, good, _) in rows() {
        let own = std::mem::discriminant(match &good[0] {
            ClaimState::Value(value) => value,
            other => panic!("{other:?}"),
        });
        for state in &values {
            let ClaimState::Value(value) = state else {
                continue;
            };
            if std::mem::discriminant(value) != own {
                check(claim, matcher, state, Says::Unknown);
            }
        }
    }
    check("level", "{lt: 3}", &number(f64::NAN), Says::Unknown);
}

/// `exists` is two-valued: missing and null are not there, everything else is (PR-3).
#[test]
fn exists_is_never_in_doubt() {
    let states = [
        (text("x"), true),
        (text(""), true),
        (ClaimState::WrongType, true),
        (ClaimState::Missing, false),
        (ClaimState::Null, false),
    ];
    for (state, there) in states {
        let says = |holds| if holds { Says::True } else { Says::False };
        check("role", "{exists: true}", &state, says(there));
        check("role", "{exists: false}", &state, says(!there));
    }
}

/// PR-3b: `if_missing: no_match` lifts missing, and nothing else.
#[test]
fn a_guarded_when_lifts_missing_only() {
    let site = corp_site();
    let policies = site.rules(
        "  - id: all
    allow: {agents: any, operations: any, skills: any}
    grant: agent
  - id: contractors
    deny: {agents: any, operations: any, skills: any}
    when: {role: {equals: contractor, if_missing: no_match}}
",
    );
    let cases = [
        (ClaimState::Missing, true),
        (text("staff"), true),
        (text("contractor"), false),
        (ClaimState::Null, false),
        (ClaimState::WrongType, false),
    ];
    for (state, expected) in cases {
        let principal = site.with("role", state.clone());
        assert_eq!(allowed(&policies, &principal), expected, "{state:?}");
    }
}

/// PR-3a: "not a reviewer" in every form that it can be written, for a token without the claim,
/// with null, with another type, and with the claim spelled otherwise (which is missing too).
#[test]
fn the_trap_never_opens() {
    let all =
        "  - id: all\n    allow: {agents: any, operations: any, skills: any}\n    grant: agent\n";
    let scope = "deny: {agents: any, operations: any, skills: any}";
    let forms = [
        format!("{all}  - id: d\n    {scope}\n    unless: {{role: {{equals: reviewer}}}}\n"),
        format!("{all}  - id: d\n    {scope}\n    unless: {{role: {{any_of: [reviewer]}}}}\n"),
        format!("{all}  - id: d\n    {scope}\n    unless: {{role: {{matches: \"reviewe*\"}}}}\n"),
        format!("{all}  - id: d\n    {scope}\n    when: {{role: {{equals: contractor}}}}\n"),
        format!("{all}  - id: d\n    {scope}\n    when: {{role: {{any_of: [contractor]}}}}\n"),
        // "role != contractor": present, and a deny for the value.
        "  - id: a
    allow: {agents: any, operations: any, skills: any}
    grant: agent
    require: {role: {exists: true}}
  - id: d
    deny: {agents: any, operations: any, skills: any}
    when: {role: {equals: contractor}}
"
        .to_owned(),
        "  - id: a
    allow: {agents: any, operations: any, skills: any}
    grant: agent
    require: {role: {equals: reviewer}}
"
        .to_owned(),
    ];
    let site = corp_site();
    for rules in forms {
        let policies = site.rules(&rules);
        assert!(
            allowed(&policies, &site.with("role", text("reviewer"))),
            "{rules}"
        );
        for (state, code) in [
            (ClaimState::Missing, why::MISSING),
            (ClaimState::Null, why::NULL),
            (ClaimState::WrongType, why::WRONG_TYPE),
        ] {
            let decision = decide(&policies, &site.with("role", state));
            assert_eq!(decision.effect, portcullis::policy::Effect::Deny, "{rules}");
            let near = decision.near.unwrap();
            assert_eq!(
                (near.claim.as_deref(), near.why),
                (Some("role"), code),
                "{rules}"
            );
        }
    }
}

/// Members are ANDed with Kleene's tables: false beats unknown.
#[test]
fn members_of_a_condition_are_all_needed() {
    let site = corp_site();
    let all =
        "  - id: all\n    allow: {agents: any, operations: any, skills: any}\n    grant: agent\n";
    let both = "{role: {equals: contractor}, groups: {contains: x}}";
    let when = site.rules(&format!(
        "{all}  - id: d\n    deny: {{agents: any, operations: any, skills: any}}\n    when: {both}\n"
    ));
    let unless = site.rules(&format!(
        "{all}  - id: d\n    deny: {{agents: any, operations: any, skills: any}}\n    unless: {both}\n"
    ));
    let roles = [text("contractor"), text("staff"), ClaimState::Missing];
    let groups = [texts(&["x"]), texts(&[]), ClaimState::Null];
    for (i, role) in roles.iter().enumerate() {
        for (j, group) in groups.iter().enumerate() {
            let mut principal = site.with("role", role.clone());
            principal.claims[1] = group.clone();
            let one_is_false = i == 1 || j == 1;
            assert_eq!(
                allowed(&when, &principal),
                one_is_false,
                "{role:?} {group:?}"
            );
            assert_eq!(
                allowed(&unless, &principal),
                i == 0 && j == 0,
                "{role:?} {group:?}"
            );
        }
    }
}

#[test]
fn reserved_names_need_no_declaration() {
    let site = corp_site();
    let cases = [
        ("sub: {equals: alice}", true),
        ("sub: {matches: \"al*\"}", true),
        ("sub: {equals: bob}", false),
        ("client_id: {any_of: [console, ci]}", true),
        ("actor_sub: {equals: alice}", false),
        ("actor_sub: {exists: false}", true),
        ("scopes: {contains: a2a.agent}", true),
        ("scopes: {all_of: [a2a.agent, more]}", false),
        ("proof: {equals: none}", true),
        ("proof: {any_of: [mtls, dpop]}", false),
        ("delegated: {equals: false}", true),
        ("delegated: {equals: true}", false),
    ];
    let mut principal = site.principal(0);
    principal.scopes = vec!["a2a.agent".into()];
    for (condition, expected) in cases {
        let policies = site.rules(&format!(
            "  - id: a\n    allow: {{agents: any, operations: any, skills: any}}\n    grant: agent\n    require: {{{condition}}}\n"
        ));
        assert_eq!(allowed(&policies, &principal), expected, "{condition}");
    }
    principal.scopes.clear();
    principal.client = None;
    for condition in ["scopes: {contains: x}", "client_id: {equals: x}"] {
        let policies = site.rules(&format!(
            "  - id: a\n    allow: {{agents: any, operations: any, skills: any}}\n    grant: agent\n  - id: d\n    deny: {{agents: any, operations: any, skills: any}}\n    when: {{{condition}}}\n"
        ));
        assert!(!allowed(&policies, &principal), "{condition}");
    }
}
