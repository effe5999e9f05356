//! Conditions on what a message says: every matcher, every state of a value, every place.

use super::{corp_site, message, text};
use portcullis::a2a::content::{Content, MAX_NODES};
use portcullis::identity::{Actor, ClaimState, Principal};
use portcullis::policy::decision::why;
use portcullis::policy::{self, Decision, Effect, Memo, PolicySet, may_ever};
use serde_json::{Value, json};

pub(super) const SCOPE: &str = "{agents: [pr-agent], operations: [messages], skills: any}";
pub(super) const PATH: &str = "$.message.parts[*].data.repo";

/// Parameters whose parts have these values as their `repo`.
pub(super) fn sends(values: &[Value]) -> Value {
    let parts = values.iter().map(|value| json!({"data": {"repo": value}}));
    json!({"message": {"parts": parts.collect::<Vec<_>>()}})
}

pub(super) fn judged(policies: &PolicySet, principal: &Principal, parameters: &Value) -> Decision {
    let content = Content::given(parameters.clone());
    let question = policy::Question {
        content: Some(&content),
        ..message(0, "review-diff", principal)
    };
    let decision = policy::decide(policies, &question);
    let memo = Memo::default();
    for _ in 0..2 {
        let remembered = policy::Question {
            memo: Some(&memo),
            ..question
        };
        assert_eq!(policy::decide(policies, &remembered), decision);
    }
    decision
}

/// What a condition should come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    True,
    False,
    Unknown,
}
use Says::{False, True, Unknown};

/// Asserts what a condition comes to, in each place in which it can stand.
fn check(condition: &str, parameters: &Value, says: Says) {
    let site = corp_site();
    let principal = site.principal(0);
    let allow = format!("  - id: all\n    allow: {SCOPE}\n    grant: agent\n");
    let with = |place: &str| format!("    {place}: {{content: [{condition}]}}\n");
    let cases = [
        (
            format!(
                "  - id: a\n    allow: {SCOPE}\n    grant: agent\n{}",
                with("require")
            ),
            says == True,
        ),
        (
            format!("{allow}  - id: d\n    deny: {SCOPE}\n{}", with("when")),
            says == False,
        ),
        (
            format!("{allow}  - id: d\n    deny: {SCOPE}\n{}", with("unless")),
            says == True,
        ),
    ];
    for (rules, expected) in cases {
        let decision = judged(&site.rules(&rules), &principal, parameters);
        let allowed = decision.effect == Effect::Allow;
        assert_eq!(allowed, expected, "{parameters} {says:?}\n{rules}");
        if !allowed {
            let near = decision.near.unwrap();
            assert_eq!(
                (near.claim, near.content.as_deref().is_some()),
                (None, true)
            );
        }
    }
}

/// A matcher, values that fit it, and values that do not.
type Row = (&'static str, Vec<Value>, Vec<Value>);

fn rows() -> Vec<Row> {
    let texts = [
        "Sandbox/a",
        "sandbox/a ",
        "",
        "\u{ff53}andbox/a",
        "sandbox/a/b",
        "s\u{430}ndbox/a",
    ];
    let texts: Vec<Value> = texts.into_iter().map(Value::from).collect();
    let ops = vec![json!(["ops", "eu"])];
    vec![
        (
            "{equals: sandbox/a}",
            vec![json!("sandbox/a")],
            texts.clone(),
        ),
        (
            "{any_of: [sandbox/a, b]}",
            vec![json!("sandbox/a"), json!("b")],
            texts.clone(),
        ),
        (
            "{matches: \"sandbox/*\"}",
            vec![json!("sandbox/a"), json!("sandbox/")],
            texts[4..].to_vec(),
        ),
        (
            "{equals: 3}",
            vec![json!(3), json!(3.0)],
            vec![json!(4), json!(-3)],
        ),
        ("{gt: 3}", vec![json!(3.5)], vec![json!(3)]),
        ("{gte: 3}", vec![json!(3)], vec![json!(2.9)]),
        ("{lt: 3}", vec![json!(2)], vec![json!(3)]),
        ("{lte: 3}", vec![json!(3)], vec![json!(3.1)]),
        (
            "{between: [2, 3]}",
            vec![json!(2), json!(3)],
            vec![json!(1), json!(4)],
        ),
        ("{equals: true}", vec![json!(true)], vec![json!(false)]),
        (
            "{contains: ops}",
            ops.clone(),
            vec![json!([]), json!(["Ops"])],
        ),
        ("{all_of: [ops, eu]}", ops, vec![json!(["ops"]), json!([])]),
    ]
}

#[test]
fn every_matcher_and_quantifier_in_every_place_for_every_state() {
    let other = json!({"x": 1});
    for (matcher, good, bad) in rows() {
        for quantifier in ["one", "each", "some"] {
            let condition = format!("{{path: \"{PATH}\", {quantifier}: {matcher}}}");
            for value in &good {
                check(&condition, &sends(std::slice::from_ref(value)), True);
            }
            for value in &bad {
                check(&condition, &sends(std::slice::from_ref(value)), False);
            }
            // Missing in every way that it can be.
            for missing in [
                json!({}),
                sends(&[]),
                json!({"message": {"parts": [{"text": "x"}]}}),
                json!({"message": "x"}),
            ] {
                check(&condition, &missing, Unknown);
            }
            for wrong in [Value::Null, other.clone(), json!([1]), json!([["ops"]])] {
                check(&condition, &sends(&[wrong]), Unknown);
            }
        }
        // Of several values: all, one, none that fits, and one that cannot be compared.
        let (fits, not) = (&good[0], &bad[0]);
        let null = &Value::Null;
        let several: [(&[&Value], [Says; 3]); 6] = [
            (&[fits, fits], [Unknown, True, True]),
            (&[fits, not], [Unknown, False, True]),
            (&[not, not], [Unknown, False, False]),
            (&[fits, null], [Unknown, Unknown, True]),
            (&[null, not], [Unknown, False, Unknown]),
            (&[null, null], [Unknown, Unknown, Unknown]),
        ];
        for (values, says) in several {
            let values: Vec<Value> = values.iter().map(|v| (*v).clone()).collect();
            for (quantifier, says) in ["one", "each", "some"].into_iter().zip(says) {
                let condition = format!("{{path: \"{PATH}\", {quantifier}: {matcher}}}");
                check(&condition, &sends(&values), says);
            }
        }
    }
}

/// Nothing is converted, and an array is not one of its items.
#[test]
fn a_value_of_another_type_is_unknown() {
    let values = [
        json!("3"),
        json!(3),
        json!(true),
        json!(["sandbox/a"]),
        json!({"a": 1}),
    ];
    for (matcher, good, _) in rows() {
        let kind = std::mem::discriminant(&good[0]);
        for value in values.iter().filter(|v| std::mem::discriminant(*v) != kind) {
            let condition = format!("{{path: \"{PATH}\", each: {matcher}}}");
            check(&condition, &sends(std::slice::from_ref(value)), Unknown);
        }
    }
    // 2^53 and its neighbour are one number to many readers.
    let condition = format!("{{path: \"{PATH}\", each: {{gt: 3}}}}");
    check(
        &condition,
        &sends(&[json!(9_007_199_254_740_993_u64)]),
        Unknown,
    );
}

#[test]
fn exists_is_two_valued_where_the_content_can_be_read() {
    let exists = |wanted| format!("{{path: \"{PATH}\", some: {{exists: {wanted}}}}}");
    let (there, absent) = (exists(true), exists(false));
    for (parameters, is_there) in [
        (sends(&[json!("x")]), true),
        (sends(&[json!({})]), true),
        (sends(&[Value::Null, json!(1)]), true),
        (sends(&[Value::Null]), false),
        (sends(&[]), false),
        (json!({}), false),
    ] {
        let says = |holds| if holds { True } else { False };
        check(&there, &parameters, says(is_there));
        check(&absent, &parameters, says(!is_there));
    }
    let large = json!({"message": {"parts": vec![0; MAX_NODES]}});
    check(&there, &large, Unknown);
    check(&absent, &large, Unknown);
}

/// A name that an agent could take for the one in the path, beside it or in its place.
#[test]
fn a_look_alike_member_makes_it_ambiguous() {
    for near in ["Repo", "REPO", "re_po"] {
        for data in [
            json!({"repo": "sandbox/a", near: "prod/x"}),
            json!({near: "sandbox/a"}),
        ] {
            let parameters = json!({"message": {"parts": [{"data": data}]}});
            for quantifier in ["one", "each", "some"] {
                let condition =
                    format!("{{path: \"{PATH}\", {quantifier}: {{matches: \"sandbox/*\"}}}}");
                check(&condition, &parameters, Unknown);
            }
            check(
                &format!("{{path: \"{PATH}\", some: {{exists: false}}}}"),
                &parameters,
                Unknown,
            );
        }
    }
    // Other names are nothing to it.
    let parameters = json!({"message": {"parts": [{"data": {"repo": "sandbox/a", "reposit": 1}}]}});
    check(
        &format!("{{path: \"{PATH}\", each: {{matches: \"sandbox/*\"}}}}"),
        &parameters,
        True,
    );
}

#[test]
fn if_missing_lifts_a_missing_value_and_nothing_else() {
    let site = corp_site();
    let policies = site.rules(&format!(
        "  - id: all\n    allow: {SCOPE}\n    grant: agent\n  - id: d\n    deny: {SCOPE}\n    when: {{content: [{{path: \"{PATH}\", some: {{equals: prod}}, if_missing: no_match}}]}}\n"
    ));
    let large = json!({"message": {"parts": vec![0; MAX_NODES]}});
    let near = json!({"message": {"parts": [{"data": {"Repo": "prod"}}]}});
    for (parameters, expected) in [
        (sends(&[]), None),
        (sends(&[json!("x")]), None),
        (sends(&[json!("prod")]), Some(why::VALUE_MATCHES)),
        (
            sends(&[json!("x"), json!("prod")]),
            Some(why::VALUE_MATCHES),
        ),
        (sends(&[Value::Null]), Some(why::NULL)),
        (sends(&[json!(["prod"])]), Some(why::WRONG_TYPE)),
        (large, Some(why::OVERSIZE)),
        (near, Some(why::AMBIGUOUS)),
    ] {
        let decision = judged(&policies, &site.principal(0), &parameters);
        let near = decision.near.map(|near| near.why);
        assert_eq!(near, expected, "{parameters:.200}");
        assert_eq!(decision.effect == Effect::Allow, expected.is_none());
    }
}

/// Claims and content are one conjunction, by Kleene's tables; the message is only looked at where
/// the claims leave it open.
#[test]
fn content_is_looked_at_only_where_the_claims_leave_it_open() {
    let site = corp_site();
    let both = format!(
        "{{role: {{equals: contractor}}, content: [{{path: \"{PATH}\", each: {{equals: prod}}}}]}}"
    );
    let all = format!("  - id: all\n    allow: {SCOPE}\n    grant: agent\n");
    let when = site.rules(&format!(
        "{all}  - id: d\n    deny: {SCOPE}\n    when: {both}\n"
    ));
    let unless = site.rules(&format!(
        "{all}  - id: d\n    deny: {SCOPE}\n    unless: {both}\n"
    ));
    let roles = [text("contractor"), text("staff"), ClaimState::Missing];
    let contents = [sends(&[json!("prod")]), sends(&[json!("x")]), sends(&[])];
    for (i, role) in roles.iter().enumerate() {
        for (j, parameters) in contents.iter().enumerate() {
            let caller = site.with("role", role.clone());
            let allows = |policies| judged(policies, &caller, parameters).effect == Effect::Allow;
            assert_eq!(allows(&when), i == 1 || j == 1, "{role:?} {parameters}");
            assert_eq!(allows(&unless), i == 0 && j == 0, "{role:?} {parameters}");
        }
    }
    let looked = |policies: &PolicySet, agent, caller: &Principal| {
        let content = Content::given(sends(&[]));
        let question = policy::Question {
            content: Some(&content),
            ..message(agent, "review-diff", caller)
        };
        policy::decide(policies, &question);
        content.is_made()
    };
    assert!(!looked(&when, 0, &site.with("role", text("staff"))));
    assert!(looked(&when, 0, &site.with("role", text("contractor"))));
    assert!(!looked(&when, 1, &site.with("role", text("contractor"))));
    assert!(!looked(&site.rules(&all), 0, &site.principal(0)));
}

/// Without a message there is no value. Whether an agent exists for a caller does not depend on
/// what some message says.
#[test]
fn without_a_message_nothing_matches_and_any_message_may_be_hoped_for() {
    let site = corp_site();
    let content = format!("{{content: [{{path: \"{PATH}\", each: {{equals: sandbox}}}}]}}");
    let allow = site.rules(&format!(
        "  - id: a\n    allow: {SCOPE}\n    grant: agent\n    require: {content}\n"
    ));
    let caller = site.principal(0);
    let decision = policy::decide(&allow, &message(0, "review-diff", &caller));
    let near = decision.near.unwrap();
    assert_eq!(
        (near.content.as_deref(), near.why),
        (Some(PATH), why::MISSING)
    );
    assert!(may_ever(&allow, &caller, None, 0));
    let all = format!("  - id: all\n    allow: {SCOPE}\n    grant: agent\n");
    for place in ["when", "unless"] {
        let rules = format!("{all}  - id: d\n    deny: {SCOPE}\n    {place}: {content}\n");
        let policies = site.rules(&rules);
        let decision = policy::decide(&policies, &message(0, "review-diff", &caller));
        assert_eq!(decision.reason, Decision::DENY_RULE, "{rules}");
        assert!(may_ever(&policies, &caller, None, 0), "{rules}");
    }
}

#[test]
fn a_shadow_rule_may_look_at_the_content_too() {
    let site = corp_site();
    let policies = site.rules(&format!(
        "  - id: all\n    allow: {SCOPE}\n    grant: agent\n  - id: d\n    deny: {SCOPE}\n    unless: {{content: [{{path: \"{PATH}\", each: {{matches: \"sandbox/*\"}}}}]}}\n    mode: shadow\n    until: 2999-12-31\n"
    ));
    let mut caller = site.principal(0);
    for delegated in [false, true] {
        if delegated {
            caller.actors = vec![Actor {
                subject: "robot".into(),
                issuer: None,
            }];
        }
        for (parameters, result, would) in [
            (sends(&[json!("sandbox/a")]), "no_match", None),
            (sends(&[json!("prod/a")]), "match", Some(Effect::Deny)),
            (sends(&[]), "unknown", Some(Effect::Deny)),
        ] {
            let decision = judged(&policies, &caller, &parameters);
            assert_eq!(decision.effect, Effect::Allow);
            let [only] = &*decision.shadow else {
                panic!("{decision:?}")
            };
            assert_eq!((only.result.label(), only.would), (result, would));
        }
    }
}
