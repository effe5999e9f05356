//! What a change of policies changes: nothing that is not there, and everything that is.

mod callers;
mod live;
mod mutated;

use super::reference::{CallModel, Model, numbered_yaml, principals, rules};
use super::{Site, corp_site, site};
use portcullis::identity::Principal;
use portcullis::policy::diff::{COMBINATIONS, Difference, Direction, Side, compare};
use portcullis::policy::{self, AgentFacts, Effect, PolicySet, World};
use proptest::prelude::*;

impl Site {
    pub(super) fn world(&self) -> World<'_> {
        let agents = self.agents.iter().map(|(name, skills, paths)| AgentFacts {
            name,
            skills,
            has_backend_paths: *paths,
        });
        World {
            agents: agents.collect(),
            issuers: &self.issuers,
            complete: true,
        }
    }

    /// Rules without an error; none is none.
    pub(super) fn set(&self, rules: &str) -> PolicySet {
        if rules.is_empty() {
            return PolicySet::default();
        }
        self.rules(rules)
    }

    fn difference(&self, old: &PolicySet, new: &PolicySet) -> Difference {
        let world = self.world();
        let side = |policies| Side {
            policies,
            world: &world,
        };
        compare(side(old), side(new), COMBINATIONS)
    }
}

/// Judged anew, every caller that is reported is refused under one set and allowed under the other.
fn assert_shown(site: &Site, difference: &Difference, old: &PolicySet, new: &PolicySet) {
    for change in &difference.changes {
        let witness = &change.witness;
        let issuer = site
            .issuers
            .iter()
            .position(|i| *i.name == *witness.caller.issuer);
        let issuer = issuer.unwrap();
        let principal = witness.caller.principal(issuer, &site.issuers[issuer]);
        let agents = site.agents.iter();
        let call = CallModel {
            agent: agents
                .clone()
                .position(|(name, ..)| **name == *change.agent)
                .unwrap(),
            operation: witness.operation,
            skill: None,
        };
        let mut question = call.question(&principal);
        if let Some(skill) = &witness.skill {
            question.skill = policy::AskedSkill::Known(skill);
        }
        let judged = [old, new].map(|set| policy::decide(set, &question).effect);
        let wanted = match change.direction {
            Direction::Allowed => [Effect::Deny, Effect::Allow],
            Direction::Refused => [Effect::Allow, Effect::Deny],
        };
        assert_eq!(judged, wanted, "{change:?}");
        assert!(change.operations.contains(&witness.operation));
    }
}

/// Whether a difference says that somebody may newly do something with an agent, or no longer.
fn says(difference: &Difference, direction: Direction, agent: &str) -> bool {
    let mut changes = difference.changes.iter();
    changes.any(|c| c.direction == direction && *c.agent == *agent)
        || difference.undecided.iter().any(|u| *u.agent == *agent)
}

fn yaml(rules: &[Model]) -> String {
    numbered_yaml(&rules.iter().enumerate().collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_policy_and_its_rules_in_another_order_do_not_differ(
        (rules, shuffled) in rules().prop_flat_map(|rules| {
            let ids: Vec<usize> = (0..rules.len()).collect();
            (Just(rules), Just(ids).prop_shuffle())
        }),
    ) {
        let site = site();
        let one = site.set(&yaml(&rules));
        let shuffled: Vec<(usize, &Model)> = shuffled.iter().map(|i| (*i, &rules[*i])).collect();
        let other = site.set(&numbered_yaml(&shuffled));
        let difference = site.difference(&one, &other);
        prop_assert!(difference.changes.is_empty() && difference.undecided.is_empty());
    }

    /// Whatever callers drawn by chance find, the search says; and all that it says holds.
    #[test]
    fn what_sampling_finds_is_found(
        old in rules(),
        new in rules(),
        principals in principals(&site()),
    ) {
        let site = site();
        let (old, new) = (site.set(&yaml(&old)), site.set(&yaml(&new)));
        let difference = site.difference(&old, &new);
        assert_shown(&site, &difference, &old, &new);
        for principal in &principals {
            for call in CallModel::all() {
                let found = differs(&old, &new, &call, principal);
                if let Some(direction) = found {
                    let agent = site.agents[call.agent].0;
                    prop_assert!(
                        says(&difference, direction, agent),
                        "{:?} {:?} {:?}", call, principal, difference
                    );
                }
            }
        }
    }
}

fn differs(
    old: &PolicySet,
    new: &PolicySet,
    call: &CallModel,
    principal: &Principal,
) -> Option<Direction> {
    let question = call.question(principal);
    let judged = [old, new].map(|set| policy::decide(set, &question).effect);
    match judged {
        [Effect::Deny, Effect::Allow] => Some(Direction::Allowed),
        [Effect::Allow, Effect::Deny] => Some(Direction::Refused),
        [Effect::Deny, Effect::Deny] | [Effect::Allow, Effect::Allow] => None,
    }
}

const REVIEWERS: &str = "  - id: reviewers
    allow: {agents: [pr-agent], operations: [messages], skills: [review-diff]}
    grant: agent
    require: {role: {equals: reviewer}}
";

/// A change to exactly this rule, and what its caller looks like.
#[track_caller]
fn one_change(old: &str, new: &str) -> (Difference, String) {
    let site = corp_site();
    let (old, new) = (site.set(old), site.set(new));
    let difference = site.difference(&old, &new);
    assert_shown(&site, &difference, &old, &new);
    assert!(difference.undecided.is_empty(), "{difference:?}");
    assert_eq!(difference.changes.len(), 1, "{difference:?}");
    let change = &difference.changes[0];
    let sentence = change.witness.sentence(&change.agent);
    (difference, sentence)
}

#[test]
fn a_second_value_is_a_caller_with_that_value() {
    let wider = REVIEWERS.replace("equals: reviewer", "any_of: [reviewer, guest]");
    let (difference, sentence) = one_change(REVIEWERS, &wider);
    let change = &difference.changes[0];
    assert_eq!(change.cause(), "this allow is wider");
    assert_eq!(change.operations, ["SendMessage", "SendStreamingMessage"]);
    assert_eq!(change.skills, [Some("review-diff".into())]);
    assert_eq!(
        sentence,
        "a token of `corp` with the agent grant, with `role` \"guest\", asking `pr-agent` for \
         SendMessage of skill `review-diff`: before, no rule allows it; nearest is `reviewers`, \
         but the token's claim `role` has another value; now, rule `reviewers` allows it"
    );
}

#[test]
fn what_a_change_is_pinned_by_changes_with_any_rule_that_has_a_part_in_it() {
    let wider = |values: &str| REVIEWERS.replace("equals: reviewer", values);
    let id = |old: &str, new: &str| one_change(old, new).0.changes[0].id.clone();
    let one = id(REVIEWERS, &wider("any_of: [reviewer, guest]"));
    assert_eq!(one, id(REVIEWERS, &wider("any_of: [guest, reviewer]")));
    // The same rule, agent, operations and grants; other callers.
    assert_ne!(one, id(REVIEWERS, &wider("any_of: [reviewer, anybody]")));
    assert_ne!(one, id(REVIEWERS, &wider("matches: \"*\"")));
}

#[test]
fn patterns_that_overlap_are_told_apart() {
    let old = REVIEWERS.replace("equals: reviewer", "matches: \"ab*\"");
    let both = format!(
        "{}  - id: closed\n    deny: {{agents: any, operations: any, skills: any}}\n    when: {{role: {{matches: \"*ba\"}}}}\n",
        old
    );
    let (_, sentence) = one_change(&both, &old);
    // One text fits both, and it is not the two put together.
    assert!(
        sentence.contains("`role` \"aba\"") || sentence.contains("ba\","),
        "{sentence}"
    );
}

#[test]
fn a_deny_that_is_gone_and_a_condition_that_is_lifted_are_found() {
    let deny = "  - id: closed
    deny: {agents: any, operations: any, skills: any}
    when: {groups: {contains: suspended}}
";
    let (difference, _) = one_change(&format!("{REVIEWERS}{deny}"), REVIEWERS);
    assert_eq!(&*difference.changes[0].rule, "closed");
    assert_eq!(difference.changes[0].cause(), "this deny is gone");
    let lifted = deny.replace("suspended}", "suspended, if_missing: no_match}");
    let (difference, sentence) = one_change(
        &format!("{REVIEWERS}{deny}"),
        &format!("{REVIEWERS}{lifted}"),
    );
    assert_eq!(difference.changes[0].cause(), "this deny is narrower");
    assert!(sentence.contains("without `groups`"), "{sentence}");
}

#[test]
fn a_delegation_that_becomes_enough_is_found() {
    let old = REVIEWERS.replace("role: {equals: reviewer}", "actor_sub: {equals: robot}");
    let new = REVIEWERS.replace("role: {equals: reviewer}", "delegated: {equals: true}");
    let (_, sentence) = one_change(&old, &new);
    assert!(sentence.contains("with actor \"other\""), "{sentence}");
}

/// Where the bound is hit, a difference is undecided and counts as a widening.
#[test]
fn a_bound_that_is_hit_is_no_answer() {
    let site = corp_site();
    let wider = REVIEWERS.replace("equals: reviewer", "any_of: [reviewer, guest]");
    let (old, new) = (site.set(REVIEWERS), site.set(&wider));
    let world = site.world();
    let side = |policies| Side {
        policies,
        world: &world,
    };
    let difference = compare(side(&old), side(&new), 1);
    assert!(difference.changes.is_empty());
    assert_eq!(difference.undecided.len(), 1);
    assert_eq!(difference.widening().count(), 1);
    assert_eq!(
        difference.undecided[0].why,
        "the bound of combinations was hit"
    );
}

/// An agent, a skill and an issuer that only one configuration has.
#[test]
fn a_wider_configuration_widens_what_is_said_of_all() {
    let all = "  - id: all
    allow: {agents: any, operations: [messages], skills: [hello, forecast], issuers: any}
    grant: agent
";
    let (small, large) = (
        {
            let mut site = site();
            site.agents.truncate(1);
            site.issuers.truncate(1);
            site
        },
        site(),
    );
    let small_rules = all.replace(", forecast", "");
    let (old, new) = (small.set(&small_rules), large.set(all));
    let (before, after) = (small.world(), large.world());
    let difference = compare(
        Side {
            policies: &old,
            world: &before,
        },
        Side {
            policies: &new,
            world: &after,
        },
        COMBINATIONS,
    );
    let found: Vec<(&str, Vec<&str>)> = difference
        .changes
        .iter()
        .map(|c| (&*c.agent, c.issuers.iter().map(AsRef::as_ref).collect()))
        .collect();
    assert_eq!(
        found,
        [
            ("pr-agent", vec!["partner"]),
            ("weather", vec!["corp", "partner"])
        ]
    );
}

#[test]
fn hosts_of_webhooks_are_listed() {
    let site = corp_site();
    let of = |hosts: &str| {
        let text =
            format!("version: 1\npolicy: p\nrules:\n{REVIEWERS}webhooks: {{allow: [{hosts}]}}\n");
        let (set, problems) = site.compile_files(&[("p.yaml", &text)]);
        assert!(!problems.has_errors(), "{problems}");
        set
    };
    let old = of("{agents: [pr-agent], host: a.example.com}");
    let new = of(
        "{agents: any, host: a.example.com}, {agents: [weather], host: b.example.com, port: 8443}",
    );
    let difference = site.difference(&old, &new);
    let found = difference
        .hosts
        .iter()
        .map(|h| (h.direction, &*h.agent, &*h.host));
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            (Direction::Allowed, "plain", "a.example.com:443"),
            (Direction::Allowed, "weather", "a.example.com:443"),
            (Direction::Allowed, "weather", "b.example.com:8443"),
        ]
    );
    assert_eq!(difference.widening().count(), 3);
    assert_eq!(site.difference(&new, &old).widening().count(), 0);
}

/// What is not in force makes no difference, and is said.
#[test]
fn rules_in_shadow_mode_are_listed_apart() {
    let site = corp_site();
    let deny = "  - id: closed
    deny: {agents: any, operations: any, skills: any}
    always: true
";
    let shadow = format!("{deny}    mode: shadow\n    until: 2099-01-31\n");
    let more = shadow.replace("operations: any, skills: any", "operations: [tasks]");
    let of = |rules: &str| site.set(&format!("{REVIEWERS}{rules}"));
    for (old, new, said, allowed) in [
        ("", &*shadow, vec!["rule `closed` is new"], 0),
        (&*shadow, "", vec!["rule `closed` is gone"], 0),
        (&*shadow, &*more, vec!["rule `closed` is different"], 0),
        (&*shadow, &*shadow, vec![], 0),
        (deny, &*shadow, vec!["rule `closed` was in force"], 1),
        (&*shadow, deny, vec!["rule `closed` is in force now"], 0),
    ] {
        let (old, new) = (of(old), of(new));
        let difference = site.difference(&old, &new);
        assert_eq!(difference.shadows, said);
        assert_eq!(difference.widening().count(), allowed, "{difference:?}");
    }
}

/// The same rules, of claims that are read from another place.
#[test]
fn an_issuer_that_is_read_differently_is_never_nothing() {
    let (site, mut other) = (corp_site(), corp_site());
    let mut entry = (*other.issuers[0]).clone();
    entry.claims[0].path = vec!["nickname".into()];
    other.issuers[0] = std::sync::Arc::new(entry);
    let (old, new) = (site.set(REVIEWERS), other.set(REVIEWERS));
    let (before, after) = (site.world(), other.world());
    let difference = compare(
        Side {
            policies: &old,
            world: &before,
        },
        Side {
            policies: &new,
            world: &after,
        },
        COMBINATIONS,
    );
    assert!(difference.changes.is_empty());
    assert_eq!(&*difference.issuers[0].issuer, "corp");
    assert_eq!(difference.widening().count(), 1);
}

/// What a message says is no part of a caller: a difference that needs a message is undecided.
#[test]
fn what_depends_on_a_message_is_undecided_and_what_does_not_is_shown() {
    let site = corp_site();
    let sandbox = |pattern: &str| {
        format!(
            "{REVIEWERS}  - id: sandbox
    deny: {{agents: [pr-agent], operations: [messages], skills: [review-diff]}}
    unless:
      content: [{{path: \"$.message.parts[*].data.repo\", each: {{matches: \"{pattern}\"}}}}]
"
        )
    };
    let (narrow, wide) = (site.set(&sandbox("sandbox/*")), site.set(&sandbox("*/*")));
    let difference = site.difference(&narrow, &wide);
    assert!(difference.changes.is_empty());
    assert_eq!(difference.undecided.len(), 1, "{difference:?}");
    assert_eq!(&*difference.undecided[0].rule, "sandbox");
    assert_eq!(difference.widening().count(), 1);
    assert_eq!(site.difference(&narrow, &narrow).widening().count(), 0);
    let (_, sentence) = one_change(&sandbox("sandbox/*"), REVIEWERS);
    assert!(sentence.contains("with `role` \"reviewer\""), "{sentence}");
}
