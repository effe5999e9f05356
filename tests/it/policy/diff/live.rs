//! Witnesses that are sent: a real token, two real gateways.

use crate::calls::{Stand, message};
use crate::support::issuer::Grant;
use portcullis::config::check::load;
use portcullis::policy;
use portcullis::policy::diff::{COMBINATIONS, Direction, Side, compare};
use portcullis::source::Document;
use serde_json::Value;

const RULES: &str = "version: 1
policy: walkthrough
rules:
  - id: reviewers-review
    allow: {agents: [pr-agent], operations: [messages], skills: [review-diff]}
    grant: agent
    require: {role: {equals: reviewer}, groups: {all_of: [eu, staff]}}
  - id: hello
    allow: {agents: [pr-agent], operations: [messages], skills: [hello]}
    grant: full
    require: {role: {matches: \"team/a*\"}}
  - id: not-suspended
    deny: {agents: any, operations: any, skills: any}
    when: {groups: {contains: suspended, if_missing: no_match}}
  - id: staff-only
    deny: {agents: [pr-agent], operations: [messages], skills: [review-diff]}
    unless: {groups: {contains: staff}}
";

/// Fifty widenings: of each kind one, then of those that can be about any value.
fn changes() -> Vec<(&'static str, String)> {
    let one_each = [
        ("{equals: reviewer}", "{any_of: [reviewer, guest]}"),
        ("role: {equals: reviewer}, ", ""),
        ("all_of: [eu, staff]", "contains: staff"),
        ("grant: full", "grant: agent"),
        ("team/a*", "team/*"),
        ("contains: suspended, if", "contains: banned, if"),
        ("skills: [hello]", "skills: [hello, review-diff]"),
    ];
    let one_each = one_each.map(|(from, to)| (from, to.to_owned()));
    let about = |n: usize| match n % 6 {
        0 => (
            "{equals: reviewer}",
            format!("{{any_of: [reviewer, guest-{n}]}}"),
        ),
        1 => ("{equals: reviewer}", format!("{{equals: guest-{n}}}")),
        2 => ("all_of: [eu, staff]", format!("all_of: [staff, team-{n}]")),
        3 => ("team/a*", format!("team/b-{n}*")),
        4 => (
            "contains: suspended, if",
            format!("contains: banned-{n}, if"),
        ),
        _ => ("team/a*", format!("team-{n}/*")),
    };
    one_each.into_iter().chain((7..50).map(about)).collect()
}

#[tokio::test]
async fn a_witness_passes_only_under_the_new_policy() {
    let old = Stand::with_policy(RULES).await;
    for (from, to) in changes() {
        let wider = RULES.replacen(from, &to, 1);
        assert_ne!(wider, RULES);
        let new = Stand::with_policy(&wider).await;
        let found = witnesses(&new, &wider);
        assert!(!found.is_empty(), "{from} -> {to}");
        for (grant, claims, skill) in found {
            let body = message("SendMessage", &skill, "please", &[]);
            let before = old.counted();
            let token = old.issuer.token("somebody", grant, claims.clone());
            let response = old.call(&token, "SendMessage", &body).await;
            old.assert_refused(before, &response, 403, &format!("{from} -> {to}: {claims}"));
            let token = new.issuer.token("somebody", grant, claims.clone());
            let executions = new.counted().1;
            let response = new.call(&token, "SendMessage", &body).await;
            assert_eq!(response.status, 200, "{from} -> {to}: {claims}");
            assert_eq!(new.counted().1, executions + 1);
        }
    }
}

/// Grant, claims and skill of every caller that may newly send a message.
fn witnesses(new: &Stand, wider: &str) -> Vec<(Grant, Value, String)> {
    let snapshot = load(&new.gateway.folder.path().join("gateway.yaml"))
        .unwrap()
        .snapshot;
    let world = snapshot.world();
    let set = |text: &str| {
        let document = Document::parse("policy.yaml", text).unwrap();
        let (set, problems) = policy::compile(&[document], &world);
        assert!(!problems.has_errors(), "{problems}");
        set
    };
    let (before, after) = (set(RULES), set(wider));
    let side = |policies| Side {
        policies,
        world: &world,
    };
    let difference = compare(side(&before), side(&after), COMBINATIONS);
    let widened = difference.changes.iter();
    let widened = widened.filter(|c| c.direction == Direction::Allowed);
    widened
        .map(|change| {
            let witness = &change.witness;
            assert_eq!(witness.operation, "SendMessage");
            let claims = witness.caller.payload(&snapshot.issuers[0]);
            let skill = witness.skill.as_deref().unwrap().to_owned();
            (witness.caller.grant.unwrap(), Value::Object(claims), skill)
        })
        .collect()
}
