#![allow(clippy::unwrap_used)]

use super::calls::{Calls, Judged, Piece};
use super::*;
use crate::audit::chain::glance;
use proptest::prelude::*;
use serde_json::json;

const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Lines as a journal has them.
fn lines(records: &[serde_json::Value]) -> Vec<Vec<u8>> {
    let line = |(at, record): (usize, &serde_json::Value)| {
        let members = record.to_string();
        let members = &members[1..members.len() - 1];
        format!(
            "{{\"v\":1,\"seq\":{},\"prev\":\"{ZEROS}\",{members}}}",
            at + 1
        )
        .into_bytes()
    };
    records.iter().enumerate().map(line).collect()
}

fn intent(subject: &str, claims: serde_json::Value) -> serde_json::Value {
    json!({
        "kind": "intent", "time": "2026-11-30T14:00:00.000Z", "instance": "gw", "generation": 1,
        "policy_digest": "d", "request_id": format!("r-{subject}"),
        "source": {"addr": "[2001:db8::1]:4711", "listener": "public"},
        "caller": {"issuer": "corp", "subject": subject, "scopes": ["a", "b"],
            "claims": claims["claims"], "no_claims": claims["no_claims"]},
        "agent": "pr-agent", "decision": {"effect": "allow", "reason": "allowed"},
        "request": {"method": "POST", "bytes": 12},
    })
}

fn outcome(intent: u64, delivery: &str) -> serde_json::Value {
    json!({
        "kind": "outcome", "time": "2026-11-30T14:00:01.000Z", "instance": "gw", "generation": 1,
        "policy_digest": "d", "request_id": "r", "intent": intent, "agent": "pr-agent",
        "delivery": delivery, "reached": "yes", "attempts": [{"peer": "one:1"}, {"peer": "two:2"}],
        "task_id": format!("t-{intent}"), "ms": {"total": 12.5},
    })
}

/// Which calls meet the conditions, by the number of their first record, read in pieces of `size`;
/// a question mark stands for those whose record does not say.
fn calls(conditions: &[&str], lines: &[Vec<u8>], size: usize) -> Vec<String> {
    let conditions: Vec<String> = conditions.iter().map(ToString::to_string).collect();
    let query = Query::parse(&conditions, &Fields::new()).unwrap();
    let filter = query.filter();
    let judge = |first: &[u8], outcome: Option<&[u8]>| match query.projection.read(first, outcome) {
        Err(_) => Judged::NotARecord,
        Ok(row) => match query.judge(&row) {
            Truth::Yes => Judged::Yes(outcome.is_some()),
            Truth::No => Judged::No,
            Truth::NotRecorded => Judged::NotRecorded,
        },
    };
    let mut joined = Calls::new(&judge);
    let mut found = Vec::new();
    let mut give = |seq: u64, judged| match judged {
        Judged::Yes(_) => found.push(seq.to_string()),
        Judged::NotRecorded => found.push(format!("{seq}?")),
        Judged::No => {}
        Judged::NotARecord => found.push(format!("{seq}!")),
    };
    for piece in lines.chunks(size) {
        let mut looked = Piece::new(&filter, &judge);
        for line in piece {
            let (seq, members) = glance(line).unwrap();
            looked.take(seq, line, members);
        }
        joined.join(looked.done(), &mut give);
    }
    joined.done(&mut give);
    found
}

#[test]
fn a_call_is_found_by_what_its_intent_and_its_outcome_say() {
    let journal = lines(&[
        intent("alice", json!({})),
        intent("bob", json!({})),
        outcome(2, "responded"),
        outcome(1, "sent_partial"),
        intent("alice", json!({})),
    ]);
    for (conditions, expected) in [
        (vec!["subject=alice"], vec!["1", "5"]),
        (vec!["subject=alice", "delivery=sent_partial"], vec!["1"]),
        (vec!["subject=alice", "delivery="], vec!["5"]),
        (vec!["delivery!=responded"], vec!["1", "5"]),
        (
            vec!["subject=alice", "subject=bob", "delivery!="],
            vec!["1", "2"],
        ),
        (vec!["task=t-2"], vec!["2"]),
        (vec!["attempts.peer=two:2"], vec!["1", "2"]),
        (vec!["attempts.peer!=two:2"], vec!["5"]),
        (vec!["caller.scopes=b"], vec!["1", "2", "5"]),
        (vec!["caller.scopes=c"], vec![]),
        (vec!["ms.total>12"], vec!["1", "2"]),
        (vec!["ms.total<=12.5", "ms.total>=12.5"], vec!["1", "2"]),
        (vec!["ms.total<12.5"], vec![]),
        (vec!["request.bytes=12"], vec!["1", "2", "5"]),
        (vec!["seq>1"], vec!["2", "5"]),
        (vec!["source=2001:db8::1"], vec!["1", "2", "5"]),
        (vec!["source=2001:db8::"], vec![]),
        (
            vec!["day=2026-11-30", "hour=2026-11-30T14"],
            vec!["1", "2", "5"],
        ),
        (vec!["rule="], vec!["1", "2", "5"]),
        (vec!["rule!=x"], vec!["1", "2", "5"]),
        (vec!["rule!="], vec![]),
    ] {
        for size in 1..=5 {
            assert_eq!(
                calls(&conditions, &journal, size),
                expected,
                "{conditions:?} by {size}"
            );
        }
    }
}

#[test]
fn a_claim_that_is_not_recorded_is_no_answer() {
    let journal = lines(&[
        intent("a", json!({"claims": {"role": "reviewer"}})),
        intent("b", json!({"claims": {"role": "reader"}})),
        intent("c", json!({"no_claims": {"role": "missing"}})),
        intent("d", json!({})),
        json!({"kind": "refusal", "time": "2026-11-30T14:00:00.000Z", "agent": "pr-agent"}),
        intent("e", json!({"claims": {"role": ["reviewer", "x"]}})),
    ]);
    for (conditions, expected) in [
        (vec!["claims.role=reviewer"], vec!["1", "4?", "5?", "6"]),
        (vec!["claims.role!=reviewer"], vec!["2", "3", "4?", "5?"]),
        (vec!["claims.role="], vec!["3", "4?", "5?"]),
        (vec!["claims.role!="], vec!["1", "2", "4?", "5?", "6"]),
        // What fails on something else depends on no claim.
        (vec!["claims.role!=reviewer", "subject=d"], vec!["4?"]),
        (vec!["claims.role!=reviewer", "subject=a"], vec![]),
        (vec!["caller.no_claims.role=missing"], vec!["3"]),
    ] {
        assert_eq!(calls(&conditions, &journal, 2), expected, "{conditions:?}");
    }
}

#[test]
fn what_is_wrong_with_a_condition_is_said() {
    let fields = Fields::new();
    for (condition, expected) in [
        ("agnt=x", "there is no field `agnt`; did you mean `agent`?"),
        (
            "caller.sub=x",
            "there is no field `caller.sub`; beside it are caller.",
        ),
        (
            "decision=x",
            "`decision` has members; name one: decision.effect,",
        ),
        ("agent", "`agent` is no condition; write FIELD=VALUE"),
        (
            "agent>x",
            "`agent>x`: `>` compares numbers, and `agent` is none",
        ),
        (
            "seq>x",
            "`seq>x`: `>` compares numbers, and `seq` is one, but",
        ),
        ("seq=x", "`seq=x`: `seq` is a number"),
        ("caller.claims.*=x", "there is no field `caller.claims.*`"),
    ] {
        let said = match Query::parse(&[condition.to_owned()], &fields) {
            Err(said) => said,
            Ok(_) => "nothing".to_owned(),
        };
        // A claim may have any name, also that of a star.
        let any = condition.starts_with("caller.claims");
        assert!(said.starts_with(expected) || any, "{condition}: {said}");
    }
}

#[test]
fn every_short_name_leads_to_a_field() {
    let fields = Fields::new();
    for (name, _) in Fields::short() {
        assert!(fields.find(name).is_ok(), "{name}");
    }
}

#[test]
fn values_are_compared_as_records_cut_them() {
    let long = "x".repeat(300);
    let cut = crate::audit::redact::cut(&long, crate::audit::redact::ID);
    let journal = lines(&[intent(&cut, json!({}))]);
    assert_eq!(calls(&[&format!("subject={long}")], &journal, 1), ["1"]);
}

fn condition() -> impl Strategy<Value = String> {
    let field = prop::sample::select(vec![
        "subject",
        "delivery",
        "task",
        "claims.role",
        "attempts.peer",
        "agent",
        "source",
        "day",
        "ms.total",
        "caller.scopes",
    ]);
    let value = prop::sample::select(vec![
        "",
        "alice",
        "bob",
        "responded",
        "t-1",
        "t-2",
        "reviewer",
        "one:1",
        "pr-agent",
        "2001:db8::1",
        "2026-11-30",
        "a",
        "12.5",
    ]);
    let sign = prop::sample::select(vec!["=", "!="]);
    (field, sign, value).prop_filter_map("a number", |(field, sign, value)| {
        let number = field != "ms.total" || value.is_empty() || value == "12.5";
        number.then(|| format!("{field}{sign}{value}"))
    })
}

proptest! {
    /// The prefilter passes over nothing that meets the conditions, and pieces change nothing.
    #[test]
    fn the_bytes_of_what_is_found_pass_the_filter(
        conditions in prop::collection::vec(condition(), 1..4),
        calls_made in prop::collection::vec((any::<bool>(), 0usize..4, 0usize..3), 1..8),
        size in 1usize..7,
    ) {
        let mut records = Vec::new();
        let mut waiting = Vec::new();
        for (alice, claims, end) in calls_made {
            let claims = [json!({}), json!({"claims": {"role": "reviewer"}}),
                json!({"claims": {"role": "x"}}), json!({"no_claims": {"role": "null"}})][claims].clone();
            records.push(intent(if alice { "alice" } else { "bob" }, claims));
            let seq = records.len() as u64;
            match end {
                0 => records.push(outcome(seq, "responded")),
                1 => waiting.push(seq),
                _ => {}
            }
        }
        for seq in waiting {
            records.push(outcome(seq, "sent_partial"));
        }
        let journal = lines(&records);
        let conditions: Vec<&str> = conditions.iter().map(String::as_str).collect();
        let found = calls(&conditions, &journal, size);
        // Without a filter, by looking at every call.
        let owned: Vec<String> = conditions.iter().map(ToString::to_string).collect();
        let query = Query::parse(&owned, &Fields::new()).unwrap();
        let mut expected = Vec::new();
        for (at, record) in records.iter().enumerate() {
            if record["kind"] != "intent" {
                continue;
            }
            let own = records.iter().position(|r| r["kind"] == "outcome" && r["intent"] == at + 1);
            let row = query.projection.read(&journal[at], own.map(|own| &*journal[own])).unwrap();
            match query.judge(&row) {
                Truth::Yes => expected.push(format!("{}", at + 1)),
                Truth::NotRecorded => expected.push(format!("{}?", at + 1)),
                Truth::No => {}
            }
        }
        prop_assert_eq!(found, expected);
    }
}
