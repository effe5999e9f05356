//! Rules in shadow mode: they change nothing, and say what they would have changed.

use super::{corp_site, decide, message, site, text};
use portcullis::identity::{Actor, ClaimState, Principal};
use portcullis::policy::decision::why;
use portcullis::policy::{
    self, Asked, AskedSkill, Effect, Memo, PolicySet, RuleResult, could_allow, may_ever,
};
use portcullis::source::instant::parse_instant;
use portcullis::source::{Problem, codes};

const SCOPE: &str = "{agents: [pr-agent], operations: [messages, tasks], skills: any}";
const SHADOW: &str = "    mode: shadow\n    until: 2999-12-31\n";

fn allow(id: &str, require: &str, mode: &str) -> String {
    let require = match require {
        "" => String::new(),
        require => format!("    require: {{{require}}}\n"),
    };
    format!("  - id: {id}\n    allow: {SCOPE}\n    grant: agent\n{require}{mode}")
}

fn deny(id: &str, condition: &str, mode: &str) -> String {
    format!("  - id: {id}\n    deny: {SCOPE}\n    {condition}\n{mode}")
}

/// Each shadow result in short.
fn shadows(
    policies: &PolicySet,
    principal: &Principal,
) -> Vec<(String, &'static str, &'static str)> {
    let decision = decide(policies, principal);
    let memo = Memo::default();
    let question = policy::Question {
        memo: Some(&memo),
        ..message(0, "review-diff", principal)
    };
    assert_eq!(policy::decide(policies, &question), decision);
    let result = decision.shadow.iter().map(|s| {
        let would = match s.would {
            None => "",
            Some(Effect::Allow) => "would_allow",
            Some(Effect::Deny) => "would_deny",
        };
        (s.rule.to_string(), s.result.label(), would)
    });
    result.collect()
}

#[test]
fn a_shadow_deny_refuses_nothing_and_says_whom_it_would_have_refused() {
    let site = corp_site();
    let rules = allow("all", "", "") + &deny("d", "unless: {role: {equals: reviewer}}", SHADOW);
    let policies = site.rules(&rules);
    for (state, result, would) in [
        (text("reviewer"), "no_match", ""),
        (text("author"), "match", "would_deny"),
        (ClaimState::Missing, "unknown", "would_deny"),
        (ClaimState::Null, "unknown", "would_deny"),
    ] {
        let caller = site.with("role", state.clone());
        assert_eq!(decide(&policies, &caller).effect, Effect::Allow);
        assert_eq!(
            shadows(&policies, &caller),
            [("d".to_owned(), result, would)],
            "{state:?}"
        );
    }
}

#[test]
fn a_shadow_allow_grants_nothing_and_says_whom_it_would_have_let_in() {
    let site = corp_site();
    let rules = allow("named", "sub: {equals: carol}", "")
        + &allow("a", "role: {equals: reviewer}", SHADOW);
    let policies = site.rules(&rules);
    for (state, result, would) in [
        (text("reviewer"), "match", "would_allow"),
        (text("author"), "no_match", ""),
        (ClaimState::Missing, "unknown", ""),
    ] {
        let caller = site.with("role", state);
        let decision = decide(&policies, &caller);
        assert_eq!(
            (decision.effect, decision.reason),
            (Effect::Deny, "no_rule")
        );
        // What is shown as nearest is a rule that can let somebody in.
        let near = decision.near.unwrap();
        assert_eq!((&*near.rule, near.why), ("named", why::VALUE_DIFFERS));
        assert_eq!(
            shadows(&policies, &caller),
            [("a".to_owned(), result, would)]
        );
    }
    // It also grants no existence to an agent that is not published, and promises nothing.
    let alone = site.rules(&allow("a", "", SHADOW));
    assert!(!may_ever(&alone, &site.principal(0), None, 0));
    let operation = Asked::Operation(portcullis::a2a::Operation::SendMessage);
    let skill = AskedSkill::Known("review-diff");
    assert!(!could_allow(&alone, 0, operation, skill));
    let in_force = site.rules(&allow("a", "", ""));
    assert!(could_allow(&in_force, 0, operation, skill));
    let closed = site.rules(&(allow("a", "", "") + &deny("d", "always: true", SHADOW)));
    assert!(could_allow(&closed, 0, operation, skill));
    assert!(may_ever(&closed, &site.principal(0), None, 0));
}

#[test]
fn nothing_would_have_changed_where_another_rule_decides_the_same() {
    let site = corp_site();
    let caller = site.principal(0);
    let of = |rules: &str| shadows(&site.rules(rules), &caller);
    let [a, d] = ["a", "d"].map(str::to_owned);
    // An allow in force is there already.
    let rules = allow("all", "", "") + &allow("a", "", SHADOW);
    assert_eq!(of(&rules), [(a.clone(), "match", "")]);
    // A deny in force beats it.
    let rules = deny("closed", "always: true", "") + &allow("a", "", SHADOW);
    assert_eq!(of(&rules), [(a.clone(), "match", "")]);
    // Refused anyway.
    assert_eq!(
        of(&deny("d", "always: true", SHADOW)),
        [(d.clone(), "match", "")]
    );
    // Each is looked at alone.
    let rules = allow("a", "", SHADOW) + &deny("d", "always: true", SHADOW);
    assert_eq!(of(&rules), [(a, "match", "would_allow"), (d, "match", "")]);
}

/// A rule is about calls as in force: by agent, operation, skill, issuer and grant.
#[test]
fn a_shadow_rule_is_only_evaluated_for_what_it_is_about() {
    let site = site();
    let rules = "  - id: all
    allow: {agents: any, operations: any, skills: any, issuers: any}
    grant: agent
  - id: hello
    deny: {agents: [pr-agent], operations: [messages], skills: [hello]}
    always: true
    mode: shadow
    until: 2999-12-31
  - id: of-partner
    deny: {agents: any, operations: [messages], skills: any, issuers: [partner]}
    always: true
    mode: shadow
    until: 2999-12-31
  - id: with-full
    allow: {agents: [weather], operations: any, skills: any, issuers: any}
    grant: full
    mode: shadow
    until: 2999-12-31
";
    let policies = site.rules(rules);
    let caller = site.principal(0);
    let ids = |agent, skill| {
        let decision = policy::decide(&policies, &message(agent, skill, &caller));
        let ids = decision
            .shadow
            .iter()
            .map(|s| (s.rule.to_string(), s.result));
        ids.collect::<Vec<_>>()
    };
    let none = RuleResult::NoMatch;
    let of_partner = ("of-partner".to_owned(), none);
    let hello = ("hello".to_owned(), RuleResult::Match);
    assert_eq!(ids(0, "review-diff"), std::slice::from_ref(&of_partner));
    assert_eq!(ids(0, "hello"), [hello.clone(), of_partner.clone()]);
    // An unknown skill may be the one that a deny names.
    assert_eq!(ids(0, "nope"), [hello, of_partner.clone()]);
    assert_eq!(
        ids(1, "forecast"),
        [("with-full".to_owned(), none), of_partner]
    );
}

/// GR-8: a shadow allow must let both parties in, a shadow deny fires for one.
#[test]
fn both_parties_of_a_delegated_call_are_asked() {
    let site = corp_site();
    let mut caller = site.principal(0);
    caller.actors = vec![Actor {
        subject: "robot".into(),
        issuer: None,
    }];
    let of = |rules: &str| shadows(&site.rules(rules), &caller);
    let alice = allow("alice", "sub: {equals: alice}", "");
    let a = "a".to_owned();
    let rules = alice.clone() + &allow("a", "sub: {equals: robot}", SHADOW);
    assert_eq!(of(&rules), [(a.clone(), "no_match", "would_allow")]);
    let rules = alice + &allow("a", "sub: {any_of: [alice, robot]}", SHADOW);
    assert_eq!(of(&rules), [(a.clone(), "match", "would_allow")]);
    let rules = allow("a", "sub: {equals: robot}", SHADOW);
    assert_eq!(of(&rules), [(a, "no_match", "")]);
    let rules = allow("all", "", "") + &deny("d", "when: {sub: {equals: robot}}", SHADOW);
    assert_eq!(of(&rules), [("d".to_owned(), "match", "would_deny")]);
}

/// What is wrong with a rule in shadow mode whose time is over.
pub fn expired_shadow() -> Problem {
    let mode = "    mode: shadow\n    until: 2020-01-31\n";
    let rules = deny("no-contractors", "always: true", mode);
    let policies = corp_site().rules(&rules);
    policies.shadows()[0].expired(i64::MAX).unwrap().clone()
}

#[test]
fn a_shadow_rule_expires_after_its_last_day_and_stays_shadow() {
    let site = corp_site();
    let mode = |until: &str| format!("    mode: shadow\n    until: {until}\n");
    let rules = allow("all", "", "")
        + &deny("day", "always: true", &mode("2027-01-31"))
        + &deny(
            "instant",
            "always: true",
            &mode("2027-01-31T12:00:00+02:00"),
        );
    let policies = site.rules(&rules);
    let expired = |now: &str| {
        let now = parse_instant(now).unwrap();
        let all = policies.shadows().iter();
        all.filter(|s| s.expired(now).is_some())
            .map(|s| s.rule.to_string())
            .collect::<Vec<_>>()
    };
    assert!(expired("2027-01-31T09:59:59Z").is_empty());
    assert_eq!(expired("2027-01-31T10:00:00Z"), ["instant"]);
    assert_eq!(expired("2027-01-31T23:59:59Z"), ["instant"]);
    assert_eq!(expired("2027-02-01T00:00:00Z"), ["day", "instant"]);
    let problem = policies.shadows()[0].expired(i64::MAX).unwrap();
    assert_eq!(
        (problem.code, problem.line, problem.path.as_str()),
        (codes::SHADOW_EXPIRED, 11, "rules[1].until"),
        "{problem}"
    );
    assert_eq!(problem.message, "the shadow rule `day` has expired");
    assert_eq!(decide(&policies, &site.principal(0)).effect, Effect::Allow);
}
