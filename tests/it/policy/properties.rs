//! What holds for every policy and every token.

use super::reference::{
    CallModel, Model, allows, messages, principals, rule, rules, saying, turning,
};
use super::{Site, decide, site, text};
use portcullis::a2a::content::Content;
use portcullis::policy::{self, Effect, Memo, PolicySet, RuleResult, Tri, may_ever};
use proptest::prelude::*;
use std::fmt::Write;

fn compile(site: &Site, rules: &[(usize, &Model)]) -> PolicySet {
    if rules.is_empty() {
        return PolicySet::default();
    }
    let mut yaml = String::new();
    for (id, rule) in rules {
        yaml += &rule.yaml(&format!("r{id}"));
    }
    site.rules(&yaml)
}

fn numbered(rules: &[Model]) -> Vec<(usize, &Model)> {
    rules.iter().enumerate().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_index_decides_as_a_naive_evaluator_does(
        rules in rules(),
        principals in principals(&site()),
        message in messages(),
    ) {
        let site = site();
        let policies = compile(&site, &numbered(&rules));
        let content = Content::given(saying(&message));
        let looks_at_messages = rules.iter().any(|rule| rule.content.is_some());
        for principal in &principals {
            let mut ever = [false; 3];
            let memo = Memo::default();
            for call in CallModel::all() {
                let question = policy::Question {
                    content: Some(&content),
                    ..call.question(principal)
                };
                let decision = policy::decide(&policies, &question);
                // What another call of the same token left behind changes nothing.
                let remembered = policy::Question { memo: Some(&memo), ..question };
                prop_assert_eq!(&policy::decide(&policies, &remembered), &decision);
                let expected = allows(&site, &rules, &call, principal, &message);
                prop_assert_eq!(
                    decision.effect == Effect::Allow, expected,
                    "{:?} {:?} {:?}", call, principal, decision
                );
                prop_assert_eq!(decision.rule.is_some(), decision.reason != "no_rule");
                let turned = decision.shadow.iter().filter(|s| s.would.is_some());
                let mut turned: Vec<usize> =
                    turned.map(|s| s.rule[1..].parse().unwrap()).collect();
                turned.sort_unstable();
                prop_assert_eq!(turned, turning(&site, &rules, &call, principal, &message));
                for result in &decision.shadow {
                    let rule = &rules[result.rule[1..].parse::<usize>().unwrap()];
                    let applies = match result.result {
                        RuleResult::Match => true,
                        RuleResult::Unknown => rule.is_deny(),
                        RuleResult::NoMatch => false,
                    };
                    prop_assert!(rule.shadow);
                    prop_assert_eq!(applies, rule.applies(&site, &call, principal, &message));
                }
                ever[call.agent] |= expected;
            }
            for (agent, expected) in ever.into_iter().enumerate() {
                let may = may_ever(&policies, principal, Some(&memo), agent);
                // Another message may do where this one does not.
                prop_assert!(may == expected || (may && looks_at_messages));
            }
        }
    }

    /// An explanation says of every rule what the decision made of it.
    #[test]
    fn what_is_considered_agrees_with_what_is_decided(
        rules in rules(),
        principals in principals(&site()),
        message in messages(),
    ) {
        let site = site();
        let policies = compile(&site, &numbered(&rules));
        let content = Content::given(saying(&message));
        for principal in &principals {
            for call in CallModel::all() {
                let question = policy::Question {
                    content: Some(&content),
                    ..call.question(principal)
                };
                let decision = policy::decide(&policies, &question);
                let all = policy::considered(&policies, &question);
                let counts = |effect, for_actor| {
                    let of = all.iter().filter(move |c| c.effect == effect && c.for_actor == for_actor && !c.shadow);
                    of.filter(|c| c.counts).count()
                };
                let parties = if principal.actors.is_empty() { &[false][..] } else { &[false, true] };
                let fires = parties.iter().any(|actor| counts(Effect::Deny, *actor) > 0);
                let allows = parties.iter().all(|actor| counts(Effect::Allow, *actor) > 0);
                prop_assert_eq!(decision.effect == Effect::Allow, allows && !fires);
                prop_assert_eq!(decision.reason == "deny_rule", fires);
                if let Some(rule) = &decision.rule {
                    prop_assert!(all.iter().any(|c| c.counts && !c.shadow && c.rule == *rule));
                }
                for found in &all {
                    let holds = match found.effect {
                        Effect::Allow => found.result == Tri::True,
                        Effect::Deny => found.result != Tri::False,
                    };
                    prop_assert_eq!(found.counts, holds, "{:?}", found);
                    prop_assert!(!found.counts || found.outside.is_none());
                    let open = found.tests.iter().filter(|t| t.result != Tri::True);
                    prop_assert!(open.clone().all(|t| t.why.is_some()));
                }
            }
        }
    }

    #[test]
    fn adding_a_deny_never_adds_an_allow(
        rules in rules(),
        deny in rule().prop_filter("a deny", Model::is_deny),
        principals in principals(&site()),
    ) {
        let site = site();
        let before = compile(&site, &numbered(&rules));
        let mut more = numbered(&rules);
        more.push((99, &deny));
        let after = compile(&site, &more);
        for principal in &principals {
            for call in CallModel::all() {
                let question = call.question(principal);
                if policy::decide(&after, &question).effect == Effect::Allow {
                    prop_assert_eq!(policy::decide(&before, &question).effect, Effect::Allow);
                }
            }
        }
    }

    #[test]
    fn order_never_matters(
        (rules, shuffled) in rules().prop_flat_map(|rules| {
            let ids: Vec<usize> = (0..rules.len()).collect();
            (Just(rules), Just(ids).prop_shuffle())
        }),
        principals in principals(&site()),
    ) {
        let site = site();
        let before = compile(&site, &numbered(&rules));
        let shuffled: Vec<(usize, &Model)> = shuffled.iter().map(|i| (*i, &rules[*i])).collect();
        let after = compile(&site, &shuffled);
        for principal in &principals {
            for call in CallModel::all() {
                let question = call.question(principal);
                prop_assert_eq!(
                    policy::decide(&before, &question),
                    policy::decide(&after, &question)
                );
            }
        }
    }
}

/// FC-76: four rules that overlap, in all 24 orders, spread over two files.
#[test]
fn four_rules_decide_alike_in_all_24_orders() {
    let rules = [
        "  - id: reviewers\n    allow: {agents: [pr-agent], operations: [messages], skills: [review-diff], issuers: [corp]}\n    grant: agent\n    require: {role: {equals: reviewer}}\n",
        "  - id: everybody\n    allow: {agents: any, operations: any, skills: any, issuers: any}\n    grant: agent\n",
        "  - id: contractors\n    deny: {agents: any, operations: any, skills: any}\n    when: {role: {equals: contractor, if_missing: no_match}}\n",
        "  - id: reviews\n    deny: {agents: [pr-agent], operations: [messages], skills: [review-diff]}\n    unless: {role: {equals: reviewer}}\n",
    ];
    let site = site();
    let callers = ["reviewer", "contractor", "x"].map(|role| site.with("role", text(role)));
    let mut first = None;
    let mut orders = 0;
    for a in 0..4 {
        for b in (0..4).filter(|b| *b != a) {
            for c in (0..4).filter(|c| ![a, b].contains(c)) {
                let d = 6 - a - b - c;
                let file = |name: &str, one: usize, two: usize| {
                    let mut text = format!("version: 1\npolicy: {name}\nrules:\n");
                    write!(text, "{}{}", rules[one], rules[two]).unwrap();
                    text
                };
                let files = [file("p", a, b), file("q", c, d)];
                let (policies, problems) =
                    site.compile_files(&[("p.yaml", &files[0]), ("q.yaml", &files[1])]);
                assert!(!problems.has_errors(), "{problems}");
                let mut decisions = Vec::new();
                for caller in callers
                    .iter()
                    .chain([&site.principal(0), &site.principal(1)])
                {
                    for call in CallModel::all() {
                        decisions.push(policy::decide(&policies, &call.question(caller)));
                    }
                }
                orders += 1;
                assert_eq!(*first.get_or_insert_with(|| decisions.clone()), decisions);
                assert!(decide(&policies, &callers[0]).effect == Effect::Allow);
                assert!(decide(&policies, &callers[1]).effect == Effect::Deny);
            }
        }
    }
    assert_eq!(orders, 24);
}
