//! Rules that are said to change nothing: without them every call is decided the same.

use super::reference::{CallModel, Model, messages, principals, rules, saying};
use super::site;
use portcullis::a2a::content::Content;
use portcullis::policy::{self, PolicySet};
use portcullis::source::codes;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

const ROUNDS: usize = 600;

fn text<'m>(rules: impl Iterator<Item = (usize, &'m Model)>) -> String {
    let rules: String = rules
        .map(|(id, rule)| rule.yaml(&format!("r{id}")))
        .collect();
    format!("version: 1\npolicy: p\nrules:\n{rules}")
}

#[test]
fn a_rule_that_is_said_to_change_nothing_changes_nothing() {
    let site = site();
    let mut runner = TestRunner::deterministic();
    let all = (rules(), principals(&site), messages());
    let (mut covered, mut undone) = (0, 0);
    for _ in 0..ROUNDS {
        let (rules, principals, message) = all.new_tree(&mut runner).unwrap().current();
        let whole = text(rules.iter().enumerate());
        let (policies, problems) = site.compile_files(&[("policy.yaml", &whole)]);
        let content = Content::given(saying(&message));
        for problem in &problems.0 {
            match problem.code {
                codes::COVERED => covered += 1,
                codes::UNDONE => undone += 1,
                _ => continue,
            }
            let id = problem.message.split('`').nth(1).unwrap();
            let id: usize = id[1..].parse().unwrap();
            let others = rules.iter().enumerate().filter(|(other, _)| *other != id);
            let without = match rules.len() {
                1 => PolicySet::default(),
                _ => site.compile_files(&[("policy.yaml", &text(others))]).0,
            };
            for principal in &principals {
                for call in CallModel::all() {
                    let question = policy::Question {
                        content: Some(&content),
                        ..call.question(principal)
                    };
                    let (with, without) = (
                        policy::decide(&policies, &question),
                        policy::decide(&without, &question),
                    );
                    assert_eq!(
                        with.effect, without.effect,
                        "{problem}\n{whole}\n{call:?}\n{principal:?}"
                    );
                }
            }
        }
    }
    assert!(covered > 50 && undone > 10, "{covered} {undone}");
}
