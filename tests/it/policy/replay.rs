//! Recorded calls under other policies: what is not recorded is never guessed.

use super::reference::{CallModel, Model, numbered_yaml, principals, rules};
use super::{Site, corp_site, site};
use crate::calls::{Stand, message};
use crate::support::issuer::Grant;
use portcullis::config::check::load;
use portcullis::identity::{ClaimState, ClaimValue, Principal};
use portcullis::policy::diff::Side;
use portcullis::policy::replay::{Judge, Judged, Lacks, Recorded, Tally, Turn};
use portcullis::policy::{self, Effect, PolicySet};
use portcullis::source::Document;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The record of a call as the gateway writes it, without the claims of `unrecorded`.
fn record(site: &Site, call: &CallModel, principal: &Principal, unrecorded: &[bool]) -> Value {
    let issuer = &site.issuers[principal.issuer_index];
    let (mut claims, mut no_claims) = (Map::new(), Map::new());
    for ((declared, state), hidden) in issuer.claims.iter().zip(&principal.claims).zip(unrecorded) {
        if *hidden {
            continue;
        }
        let value = match state {
            ClaimState::Value(ClaimValue::String(text)) => json!(text),
            ClaimState::Value(ClaimValue::Number(number)) => json!(number),
            ClaimState::Value(ClaimValue::Boolean(flag)) => json!(flag),
            ClaimState::Value(ClaimValue::Strings(all)) => json!(all),
            ClaimState::Missing => Value::Null,
            ClaimState::Null => Value::Null,
            ClaimState::WrongType => Value::Null,
        };
        let why = match state {
            ClaimState::Missing => "missing",
            ClaimState::Null => "null",
            ClaimState::WrongType => "wrong_type",
            ClaimState::Value(_) => {
                claims.insert(declared.name.to_string(), value);
                continue;
            }
        };
        no_claims.insert(declared.name.to_string(), json!(why));
    }
    let grant = match principal.grant {
        None => "none",
        Some(Grant::Agent) => "agent",
        Some(Grant::Full) => "full",
    };
    let mut record = json!({
        "kind": "refusal", "time": "2026-05-31T12:00:00.000Z", "request_id": "01J",
        "agent": site.agents[call.agent].0, "surface": "backend",
        "decision": {"effect": "deny", "reason": "no_rule"},
        "caller": {"issuer": &*issuer.name, "subject": principal.subject, "client": principal.client,
            "grant": grant, "proof": "none", "scopes": principal.scopes,
            "claims": claims, "no_claims": no_claims},
    });
    if call.operation != "backend" {
        record["operation"] = json!(call.operation);
        record["surface"] = json!("agent");
    }
    if call.operation.starts_with("Send") {
        record["skill"] = match call.skill {
            Some(skill) => json!({"id": skill, "source": "metadata"}),
            None => json!({"source": "none"}),
        };
    }
    record
}

fn judged(site: &Site, policies: &PolicySet, record: &Value) -> Judged {
    let world = site.world();
    let side = Side {
        policies,
        world: &world,
    };
    Judge::new(side).judge(&Recorded::read(record).unwrap())
}

fn yaml(rules: &[Model]) -> String {
    numbered_yaml(&rules.iter().enumerate().collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_record_that_says_everything_is_judged_as_the_call_was(
        rules in rules(),
        principals in principals(&site()),
    ) {
        let site = site();
        let policies = site.set(&yaml(&rules));
        for principal in &principals {
            for call in CallModel::all() {
                let record = record(&site, &call, principal, &[false; 5]);
                let decision = policy::decide(&policies, &call.question(principal));
                let expected = match decision.effect {
                    // This record has no webhook, and without one there is nothing to create.
                    Effect::Allow if call.operation.starts_with("Create") => {
                        Judged::Undetermined(Lacks::Webhook)
                    }
                    Effect::Allow => Judged::Allowed(decision.rule),
                    Effect::Deny => Judged::Refused(decision.rule),
                };
                let found = judged(&site, &policies, &record);
                // What the message said is the one thing that no record says.
                let content = found == Judged::Undetermined(Lacks::Content);
                if !(content && yaml(&rules).contains("content:")) {
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }

    /// Whatever stood where nothing is recorded, a determined result is right.
    #[test]
    fn what_is_determined_holds_for_every_value_of_what_is_not_recorded(
        rules in rules(),
        principals in principals(&site()),
        others in principals(&site()),
        hidden in prop::collection::vec(any::<bool>(), 5),
    ) {
        let site = site();
        let policies = site.set(&yaml(&rules));
        for principal in &principals {
            for call in CallModel::all().into_iter().step_by(3) {
                let record = record(&site, &call, principal, &hidden);
                let wanted = match judged(&site, &policies, &record) {
                    Judged::Allowed(_) => Effect::Allow,
                    Judged::Refused(_) => Effect::Deny,
                    Judged::Undetermined(_) => continue,
                };
                for other in others.iter().filter(|o| o.issuer_index == principal.issuer_index) {
                    let mut mixed = principal.clone();
                    let claims = mixed.claims.iter_mut().zip(&other.claims).zip(&hidden);
                    for ((mine, theirs), hidden) in claims {
                        if *hidden {
                            *mine = theirs.clone();
                        }
                    }
                    let found = policy::decide(&policies, &call.question(&mixed)).effect;
                    prop_assert_eq!(found, wanted, "{:?} {:?}", call, mixed);
                }
            }
        }
    }
}

const REVIEWERS: &str = "  - id: reviewers
    allow: {agents: [pr-agent], operations: [messages], skills: [review-diff]}
    grant: agent
    require: {role: {equals: reviewer}}
";

fn message_record(change: impl Fn(&mut Value)) -> Value {
    let site = corp_site();
    let call = CallModel {
        agent: 0,
        operation: "SendMessage",
        skill: Some("review-diff"),
    };
    let mut record = record(&site, &call, &site.principal(0), &[false; 5]);
    record["caller"]["claims"] = json!({"role": "reviewer"});
    record["caller"]["no_claims"] = json!({});
    change(&mut record);
    record
}

#[test]
fn what_a_record_does_not_say_is_undetermined() {
    let site = corp_site();
    let policies = site.set(REVIEWERS);
    let lacks = |name: &str| Judged::Undetermined(Lacks::Claim(name.into()));
    let allowed = Judged::Allowed(Some("reviewers".into()));
    let cases: Vec<(Value, Judged)> = vec![
        (message_record(|_| {}), allowed.clone()),
        (
            message_record(|r| r["caller"]["claims"] = json!({})),
            lacks("role"),
        ),
        // Cut, or with characters that were rewritten: another text may have stood there.
        (
            message_record(|r| r["caller"]["claims"]["role"] = json!("review…")),
            lacks("role"),
        ),
        (
            message_record(|r| r["caller"]["claims"]["role"] = json!("a\\u{a}")),
            lacks("role"),
        ),
        // Of another type than it has now.
        (
            message_record(|r| r["caller"]["claims"]["role"] = json!(5)),
            lacks("role"),
        ),
        (
            message_record(|r| r["skill"] = Value::Null),
            Judged::Undetermined(Lacks::Claim("role".into())),
        ),
        (
            message_record(|r| r["skill"] = json!({"source": "none"})),
            Judged::Refused(None),
        ),
        (
            message_record(|r| r["skill"] = json!({"id": "review…"})),
            Judged::Undetermined(Lacks::Skill),
        ),
        (
            message_record(|r| r["agent"] = json!("gone")),
            Judged::Refused(None),
        ),
        // Whatever else is unknown: nobody without the grant.
        (
            message_record(|r| {
                r["caller"]["grant"] = json!("none");
                r["caller"]["claims"] = json!({});
            }),
            Judged::Refused(None),
        ),
    ];
    for (record, expected) in cases {
        // A skill that is no object is one that cannot be read.
        let expected = if record["skill"].is_null() {
            Judged::Refused(None)
        } else {
            expected
        };
        assert_eq!(judged(&site, &policies, &record), expected, "{record}");
    }
    let mut none = message_record(|_| {});
    none.as_object_mut().unwrap().remove("skill");
    assert_eq!(
        judged(&site, &policies, &none),
        Judged::Undetermined(Lacks::Skill)
    );
    // Records of before scopes were recorded.
    let scopes = site.set(&REVIEWERS.replace("role: {equals: reviewer}", "scopes: {contains: a}"));
    let mut old = message_record(|_| {});
    assert_eq!(judged(&site, &scopes, &old), Judged::Refused(None));
    old["caller"].as_object_mut().unwrap().remove("scopes");
    assert_eq!(judged(&site, &scopes, &old), lacks("scopes"));
}

#[test]
fn what_policy_did_not_decide_is_not_replayed() {
    for (name, value) in [
        (
            "decision",
            json!({"effect": "deny", "reason": "token_refused"}),
        ),
        (
            "decision",
            json!({"effect": "deny", "reason": "foreign_id"}),
        ),
        ("caller", Value::Null),
        ("kind", json!("outcome")),
        ("surface", json!("card")),
    ] {
        let mut record = message_record(|r| r[name] = value.clone());
        if name == "surface" {
            record.as_object_mut().unwrap().remove("operation");
        }
        assert!(Recorded::read(&record).is_none(), "{name} {value}");
    }
}

#[test]
fn a_webhook_needs_its_rule_and_its_host() {
    let site = corp_site();
    let push = "  - id: push
    allow: {agents: [pr-agent], operations: [push]}
    grant: agent
";
    let with = |rules: &str, host: &str| {
        let text = format!(
            "version: 1\npolicy: p\nrules:\n{rules}webhooks: {{allow: [{{agents: any, {host}}}]}}\n"
        );
        let (set, problems) = site.compile_files(&[("p.yaml", &text)]);
        assert!(!problems.has_errors(), "{problems}");
        set
    };
    let both = format!("{REVIEWERS}{push}");
    let inline = |host: &str| message_record(|r| r["webhook_hosts"] = json!([host]));
    let ok = with(&both, "host: a.example.com");
    let allowed = Judged::Allowed(Some("reviewers".into()));
    assert_eq!(judged(&site, &ok, &inline("a.example.com")), allowed);
    for (policies, host) in [
        (&ok, "b.example.com"),
        (&ok, "a.example.com:8443"),
        (&with(REVIEWERS, "host: a.example.com"), "a.example.com"),
    ] {
        assert!(
            matches!(judged(&site, policies, &inline(host)), Judged::Refused(_)),
            "{host}"
        );
    }
    let eighty = with(&both, "host: a.example.com, port: 8443");
    assert_eq!(
        judged(&site, &eighty, &inline("a.example.com:8443")),
        allowed
    );
    let refused = |reason: &str| {
        message_record(|r| {
            r["decision"] = json!({"effect": "deny", "reason": reason});
            r["webhook_hosts"] = json!(["a.example.com"]);
        })
    };
    assert_eq!(judged(&site, &ok, &refused("webhook_not_listed")), allowed);
    assert_eq!(
        judged(&site, &ok, &refused("webhook_not_public")),
        Judged::Refused(None)
    );
}

/// Real records of a real gateway, under the rules that decided them, and under others.
#[tokio::test]
async fn what_a_gateway_records_replays_as_it_was() {
    let rules = crate::calls::POLICY.replace(
        "require: {role: {equals: reviewer}}",
        "require: {role: {equals: reviewer}, groups: {any_of: [staff, eu]}}",
    );
    let stand = Stand::with_policy(&rules).await;
    let callers = [
        json!({"role": "reviewer", "groups": ["eu"]}),
        json!({"role": "reviewer", "groups": []}),
        json!({"role": "guest", "groups": ["staff"]}),
        json!({"role": null, "groups": ["staff"]}),
        json!({"role": ["reviewer"], "groups": "staff"}),
        json!({}),
    ];
    for claims in &callers {
        let token = stand.issuer.token("alice", Grant::Agent, claims.clone());
        for skill in ["review-diff", "hello", "nonsense"] {
            let body = message("SendMessage", skill, "x", &[]);
            stand.call(&token, "SendMessage", &body).await;
        }
    }
    let calls = |records: &[Value]| {
        records
            .iter()
            .filter(|r| ["intent", "refusal"].contains(&r["kind"].as_str().unwrap()))
            .count()
    };
    let all = callers.len() * 3;
    let records = stand
        .gateway
        .journal
        .until("every call", |r| calls(r) == all)
        .await;
    let file = stand.gateway.folder.path().join("gateway.yaml");
    let snapshot = load(&file).unwrap().snapshot;
    let world = snapshot.world();
    let turned = |policies: &PolicySet| {
        let side = Side {
            policies,
            world: &world,
        };
        let judge = Judge::new(side);
        let mut tally = Tally::default();
        for recorded in records.iter().filter_map(Recorded::read) {
            tally.add(&recorded, &judge.judge(&recorded), &side);
        }
        [
            Turn::NewlyAllowed,
            Turn::NewlyRefused,
            Turn::Undetermined,
            Turn::Same,
        ]
        .map(|turn| tally.count(turn))
    };
    let of = |rules: &str| {
        let document = Document::parse("p.yaml", rules).unwrap();
        let (set, problems) = policy::compile(&[document], &world);
        assert!(!problems.has_errors(), "{problems}");
        set
    };
    let many = all as u64;
    assert_eq!(turned(&snapshot.policy), [0, 0, 0, many]);
    // A wider rule: the guest.
    let wider = of(&rules.replace("equals: reviewer", "any_of: [reviewer, guest]"));
    assert_eq!(turned(&wider), [1, 0, 0, many - 1]);
    let narrower = of(&rules.replace("any_of: [staff, eu]", "any_of: [staff]"));
    assert_eq!(turned(&narrower), [0, 1, 0, many - 1]);
    // Null is not missing, and the record says which.
    let deny = "  - id: closed\n    deny: {agents: any, operations: any, skills: any}\n    when: {role: {equals: x, if_missing: no_match}}\n";
    let closed = of(&format!("{rules}{deny}"));
    assert_eq!(turned(&closed), [0, 2, 0, many - 2]);
}

#[test]
fn what_a_message_said_is_not_recorded() {
    let site = corp_site();
    let sandbox = "  - id: sandbox
    deny: {agents: [pr-agent], operations: [messages], skills: [review-diff]}
    when:
      role: {equals: guest}
      content: [{path: \"$.message.parts[*].data.repo\", some: {matches: \"secret/*\"}}]
";
    let policies = site.set(&format!(
        "{}{sandbox}",
        REVIEWERS.replace("equals: reviewer", "exists: true")
    ));
    let of = |role: &str| message_record(|r| r["caller"]["claims"]["role"] = json!(role));
    assert_eq!(
        judged(&site, &policies, &of("guest")),
        Judged::Undetermined(Lacks::Content)
    );
    // No message turns what the claims decide.
    let allowed = Judged::Allowed(Some("reviewers".into()));
    assert_eq!(judged(&site, &policies, &of("reviewer")), allowed);
}
