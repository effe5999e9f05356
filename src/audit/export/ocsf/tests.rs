#![allow(clippy::unwrap_used)]
use super::*;
use std::collections::BTreeSet;

/// What the schema demands of this class, copied from version 1.3.0 of it.
fn demands() -> Value {
    let text = include_str!("../../../../tests/cases/ocsf/api_activity.json");
    serde_json::from_str(text).unwrap()
}

fn names(value: &Value) -> BTreeSet<String> {
    let all = value.as_array().into_iter().flatten();
    all.map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Everything that is wrong with an event.
fn faults(event: &Value) -> Vec<String> {
    let demands = demands();
    let mut faults = Vec::new();
    let members = event.as_object().unwrap();
    let present: BTreeSet<String> = members.keys().cloned().collect();
    let form = &demands["event"];
    let mut known = BTreeSet::new();
    type Is = fn(&Value) -> bool;
    let forms: [(&str, Is); 4] = [
        ("integers", Value::is_u64),
        ("strings", Value::is_string),
        ("objects", Value::is_object),
        ("lists", Value::is_array),
    ];
    for (name, is) in forms {
        for name in names(&form[name]) {
            if members.get(&name).is_some_and(|value| !is(value)) {
                faults.push(format!("{name} has the wrong form"));
            }
            known.insert(name);
        }
    }
    faults.extend(
        present
            .difference(&known)
            .map(|name| format!("{name} is unknown")),
    );
    let required = names(&form["required"]);
    faults.extend(
        required
            .difference(&present)
            .map(|name| format!("{name} is missing")),
    );
    for (name, values) in demands["enums"].as_object().unwrap() {
        let value = &event[name];
        if !value.is_null() && !values.as_array().unwrap().contains(value) {
            faults.push(format!("{name} is {value}"));
        }
        let caption = &event[name.replace("_id", if name == "activity_id" { "_name" } else { "" })];
        if demands["captions"][name][value.to_string()] != *caption {
            faults.push(format!("{name} {value} is not {caption}"));
        }
    }
    for (path, demand) in demands["objects"].as_object().unwrap() {
        let Some(object) = at(event, path).map(|value| value.as_object().unwrap()) else {
            continue;
        };
        let present: BTreeSet<String> = object.keys().cloned().collect();
        let required = names(&demand["required"]);
        faults.extend(
            required
                .difference(&present)
                .map(|n| format!("{path}.{n} is missing")),
        );
        let known = names(&demand["members"]);
        faults.extend(
            present
                .difference(&known)
                .map(|n| format!("{path}.{n} is unknown")),
        );
        let any = names(&demand["at_least_one"]);
        if !any.is_empty() && any.is_disjoint(&present) {
            faults.push(format!("{path} has none of {any:?}"));
        }
    }
    if event["class_uid"] != demands["class_uid"]
        || event["category_uid"] != demands["category_uid"]
    {
        faults.push("another class".into());
    }
    if event["type_uid"].as_u64() != Some(600_300 + event["activity_id"].as_u64().unwrap()) {
        faults.push("type_uid is not class and activity".into());
    }
    if event["metadata"]["version"] != demands["version"] {
        faults.push("another version".into());
    }
    faults
}

fn asked() -> Value {
    json!({
        "v": 1, "seq": 7, "kind": "intent", "time": "2026-12-30T23:59:59.007Z",
        "instance": "gw-1", "request_id": "R", "policy_digest": "d", "agent": "pr-agent",
        "surface": "agent", "binding": "jsonrpc", "version": "1.0", "operation": "SendMessage",
        "source": {"addr": "203.0.113.9:4711", "listener": "public"},
        "caller": {"issuer": "corp", "subject": "alice", "client": "console",
            "fingerprint": "0011223344556677", "grant": "agent", "claims": {"role": "reviewer"}},
        "skill": {"id": "review-diff", "source": "metadata"},
        "decision": {"effect": "allow", "reason": "allowed", "rule": "reviewers"},
        "request": {"method": "POST", "path": "/agents/pr-agent/a2a", "bytes": 9},
    })
}

fn outcome(delivery: &str, reached: &str) -> Value {
    json!({
        "v": 1, "seq": 8, "kind": "outcome", "time": "2026-12-31T00:00:00.007Z",
        "instance": "gw-1", "request_id": "R", "intent": 7, "agent": "pr-agent",
        "operation": "SendMessage", "delivery": delivery, "reached": reached,
        "attempts": [{"peer": "10.0.0.1:9"}],
        "response": {"http_status": 200, "states": [], "judged": "ok"},
        "task_id": "t1", "ended": "complete", "ms": {"total": 4},
    })
}

#[test]
fn a_call_is_one_event_with_what_intent_and_outcome_say() {
    let mut events = Events::default();
    assert_eq!(events.take(&asked()), None);
    assert_eq!(events.oldest_open(), Some(7));
    let event = events.take(&outcome("responded", "yes")).unwrap().event();
    assert_eq!(events.oldest_open(), None);
    assert_eq!(faults(&event), [""; 0], "{event:#}");
    for (path, expected) in [
        ("activity_name", json!("Create")),
        ("status", json!("Success")),
        ("severity_id", json!(1)),
        ("time", json!(1_798_675_200_007_u64)),
        ("start_time", json!(1_798_675_199_007_u64)),
        ("duration", json!(1000)),
        ("actor.user.uid", json!("alice")),
        ("actor.app_uid", json!("console")),
        ("src_endpoint.ip", json!("203.0.113.9")),
        ("dst_endpoint.ip", json!("10.0.0.1")),
        ("api.operation", json!("SendMessage")),
        ("http_request.url.path", json!("/agents/pr-agent/a2a")),
        ("policy.name", json!("reviewers")),
        ("unmapped.portcullis.reached", json!("yes")),
        ("unmapped.portcullis.caller.claims.role", json!("reviewer")),
        ("metadata.uid", json!("gw-1-8")),
    ] {
        assert_eq!(at(&event, path), Some(&expected), "{path}: {event:#}");
    }
}

#[test]
fn every_kind_of_call_makes_a_valid_event() {
    let mut stranger = asked();
    stranger["kind"] = json!("refusal");
    stranger["http_status"] = json!(401);
    stranger["fault"] = json!("unauthenticated");
    stranger["decision"] = json!({"effect": "deny", "reason": "no_token"});
    for name in ["caller", "agent", "operation", "skill"] {
        stranger.as_object_mut().unwrap().remove(name);
    }
    let mut hidden = asked();
    hidden["kind"] = json!("refusal");
    hidden["http_status"] = json!(403);
    hidden["fault"] = json!("not_allowed");
    hidden["source"]["addr"] = json!("203.0.113.0/24");
    let mut events = Events::default();
    for (record, status) in [(&stranger, "Failure"), (&hidden, "Failure")] {
        let event = events.take(record).unwrap().event();
        assert_eq!(faults(&event), [""; 0], "{event:#}");
        assert_eq!(
            (&event["status"], &event["action"]),
            (&json!(status), &json!("Denied"))
        );
    }
    // An outcome without its intent, and one of which nobody knows.
    let event = events
        .take(&outcome("sent_no_response", "maybe"))
        .unwrap()
        .event();
    assert_eq!(faults(&event), [""; 0], "{event:#}");
    assert_eq!(
        (&event["status"], &event["severity"]),
        (&json!("Unknown"), &json!("Medium"))
    );
    for operation in crate::a2a::Operation::ALL {
        let mut record = hidden.clone();
        record["operation"] = json!(operation.name());
        let event = events.take(&record).unwrap().event();
        assert_eq!(faults(&event), [""; 0], "{event:#}");
        assert_ne!(event["activity_id"], 99, "{operation:?}");
    }
    for kind in ["note", "config", "fetch", "checkpoint"] {
        assert_eq!(events.take(&json!({"seq": 9, "kind": kind})), None);
    }
}

#[test]
fn the_test_finds_what_is_wrong_with_an_event() {
    let mut events = Events::default();
    events.take(&asked());
    let event = events.take(&outcome("responded", "yes")).unwrap().event();
    let wrong = |name: &str, value: Value| {
        let mut event = event.clone();
        event[name] = value;
        faults(&event)
    };
    assert!(!wrong("severity_id", json!(7)).is_empty());
    assert!(!wrong("time", json!("now")).is_empty());
    assert!(!wrong("actor", json!({})).is_empty());
    assert!(!wrong("surprise", json!(1)).is_empty());
}

#[test]
fn intents_that_wait_are_bounded() {
    let mut events = Events::default();
    let mut intent = asked();
    for seq in 0..OPEN as u64 + 10 {
        intent["seq"] = json!(seq);
        events.take(&intent);
    }
    assert_eq!(events.open.len(), OPEN);
    assert_eq!(events.oldest_open(), Some(10));
}
