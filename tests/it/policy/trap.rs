//! The trap in all its forms; how much work a message may cause; limits.

use super::content::{PATH, SCOPE, judged, sends};
use super::{corp_site, message, site, text};
use portcullis::a2a::content::{Content, MAX_NODES};
use portcullis::identity::ClaimState;
use portcullis::policy::decision::why;
use portcullis::policy::{self, Effect};
use serde_json::{Value, json};

/// The trap, "refuse what is not the sandbox", in every form that a token or a message can give it.
#[test]
fn the_trap_in_all_its_forms_refuses() {
    let site = corp_site();
    let all = format!("  - id: all\n    allow: {SCOPE}\n    grant: agent\n");
    let forms = |condition: &str, negative: &str| {
        [
            format!("  - id: a\n    allow: {SCOPE}\n    grant: agent\n    require: {condition}\n"),
            format!("{all}  - id: d\n    deny: {SCOPE}\n    unless: {condition}\n"),
            format!("{all}  - id: d\n    deny: {SCOPE}\n    when: {negative}\n"),
        ]
    };
    // Of the token: the claim is missing, null, an array, in another case, or looks alike.
    let role = forms("{role: {equals: reviewer}}", "{role: {equals: contractor}}");
    let good_message = sends(&[json!("sandbox/a")]);
    for rules in &role {
        let policies = site.rules(rules);
        let good = judged(
            &policies,
            &site.with("role", text("reviewer")),
            &good_message,
        );
        assert_eq!(good.effect, Effect::Allow, "{rules}");
        for state in [ClaimState::Missing, ClaimState::Null, ClaimState::WrongType] {
            let decision = judged(&policies, &site.with("role", state.clone()), &good_message);
            assert_eq!(decision.effect, Effect::Deny, "{state:?}\n{rules}");
        }
    }
    for rules in &role[..2] {
        for value in [
            "Reviewer",
            "REVIEWER",
            "reviewer ",
            "r\u{435}viewer",
            "\u{ff52}eviewer",
        ] {
            let caller = site.with("role", text(value));
            let decision = judged(&site.rules(rules), &caller, &good_message);
            assert_eq!(decision.effect, Effect::Deny, "{value}\n{rules}");
        }
    }
    // Of the message: the value is missing, null, of another type, in another case, looks alike,
    // under a name that looks alike, doubled, or in a body that is too large to look into.
    let content = |q: &str, m: &str| format!("{{content: [{{path: \"{PATH}\", {q}: {{{m}}}}}]}}");
    let repo = forms(
        &content("each", "equals: sandbox/a"),
        &content("some", "equals: prod/a"),
    );
    let large = {
        let mut parameters = sends(&[json!("sandbox/a")]);
        parameters["metadata"] = json!({"fill": vec![0; MAX_NODES]});
        parameters
    };
    let unclear = [
        json!({}),
        sends(&[]),
        sends(&[Value::Null]),
        sends(&[json!(["sandbox/a"])]),
        sends(&[json!({"sandbox/a": true})]),
        sends(&[json!(1)]),
        json!({"message": {"parts": [{"data": {"Repo": "sandbox/a"}}]}}),
        json!({"message": {"parts": [{"data": {"repo": "sandbox/a", "rePo": "prod/a"}}]}}),
        json!({"message": {"Parts": [{"data": {"repo": "sandbox/a"}}]}}),
        large,
    ];
    for rules in &repo {
        let policies = site.rules(rules);
        let caller = site.principal(0);
        assert_eq!(
            judged(&policies, &caller, &good_message).effect,
            Effect::Allow,
            "{rules}"
        );
        for parameters in &unclear {
            let decision = judged(&policies, &caller, parameters);
            assert_eq!(decision.effect, Effect::Deny, "{parameters:.200}\n{rules}");
        }
    }
    for rules in &repo[..2] {
        for value in [
            "Sandbox/a",
            "sandbox/a ",
            "s\u{430}ndbox/a",
            "sandbox\u{2215}a",
            "sandbox/a/../b",
        ] {
            let decision = judged(
                &site.rules(rules),
                &site.principal(0),
                &sends(&[json!(value)]),
            );
            assert_eq!(decision.effect, Effect::Deny, "{value}\n{rules}");
        }
        let two = sends(&[json!("sandbox/a"), json!("prod/a")]);
        let decision = judged(&site.rules(rules), &site.principal(0), &two);
        assert_eq!(decision.effect, Effect::Deny, "{rules}");
    }
}

/// However many rules look at however large a message, the work for one call is bounded, and what
/// was not looked at any more is unknown.
#[test]
fn the_work_for_one_call_is_bounded() {
    let site = corp_site();
    let mut rules = format!("  - id: all\n    allow: {SCOPE}\n    grant: agent\n");
    for i in 0..200 {
        rules += &format!(
            "  - id: d{i:03}\n    deny: {SCOPE}\n    when: {{content: [{{path: \"$.message.parts[*]\", some: {{equals: bad-{i}}}, if_missing: no_match}}]}}\n"
        );
    }
    let policies = site.rules(&rules);
    let parts = |n: usize| json!({"message": {"parts": vec!["good"; n]}});
    let caller = site.principal(0);
    assert_eq!(
        judged(&policies, &caller, &parts(100)).effect,
        Effect::Allow
    );
    let content = Content::given(parts(9_000));
    let question = policy::Question {
        content: Some(&content),
        ..message(0, "review-diff", &caller)
    };
    let decision = policy::decide(&policies, &question);
    assert_eq!(decision.effect, Effect::Deny);
    assert_eq!(decision.near.unwrap().why, why::OVERSIZE);
}

/// Limits are read, for all agents of their entry.
#[test]
fn limits_are_read_and_nothing_enforces_them() {
    use portcullis::policy::limits::{Limit, Per, Rate};
    use std::time::Duration;
    let (policies, problems) = site().compile_files(&[(
        "p.yaml",
        "version: 1\npolicy: p\nrules:\n  - id: closed\n    deny: {agents: any, operations: [tasks]}\n    always: true\nlimits:\n  - {agents: [pr-agent, weather], per: caller, requests: 60/1m, streams: 5}\n  - {agents: any, per: agent, requests: 1000/10s}\n",
    )]);
    let codes: Vec<_> = problems.0.iter().map(|p| p.code).collect();
    assert_eq!(
        codes,
        [portcullis::source::codes::LIMITS_NOT_ENFORCED],
        "{problems}"
    );
    let rate = |requests, seconds| Rate {
        requests,
        window: Duration::from_secs(seconds),
    };
    let expected = [
        Limit {
            agents: Some([0, 1].into()),
            per: Per::Caller,
            requests: Some(rate(60, 60)),
            streams: Some(5),
        },
        Limit {
            agents: None,
            per: Per::Agent,
            requests: Some(rate(1000, 10)),
            streams: None,
        },
    ];
    assert_eq!(policies.limits(), expected);
}
