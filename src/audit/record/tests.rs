#![allow(clippy::unwrap_used)]

use super::*;
use crate::audit::redact::Fingerprint;
use aws_lc_rs::hmac;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::Duration;

const HEAD: Head<'static> = Head {
    time: Time(1_798_675_199_007),
    instance: "gw-1",
    generation: 3,
    policy_digest: "d1",
};

fn object(record: &Record<'_>) -> Value {
    let mut bytes = b"{".to_vec();
    bytes.extend(record.members());
    bytes.push(b'}');
    serde_json::from_slice(&bytes).unwrap()
}

fn asked<'a>(
    caller: Option<Caller<'a>>,
    message_id: &'a str,
    references: &'a [Box<str>],
) -> Asked<'a> {
    Asked {
        request_id: "01JZZZZZZZZZZZZZZZZZZZZZZZ",
        trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
        source: Source {
            addr: Address::Plain("192.0.2.1:4711".parse().unwrap()),
            listener: "public",
            certificate: Some(Sha256([0xcd; 32])),
        },
        caller,
        agent: Some("pr-agent"),
        surface: Surface::Agent,
        binding: Some(Binding::JsonRpc),
        version: Some(Version::V1_0),
        operation: Some(Operation::SendMessage),
        tenant: None,
        skill: Some(Skill {
            id: Some(Text("review-diff")),
            source: SkillSource::Metadata,
            assurance: Some(Assurance::Declared),
        }),
        message_id: Some(Id(message_id)),
        task_id: None,
        context_id: None,
        reference_task_ids: Ids(references),
        extensions: Ids(&[]),
        declared_extensions: Ids(&[]),
        push_config_id: None,
        webhook_hosts: Ids(&[]),
        decision: Decision {
            effect: Effect::Allow,
            reason: "rule",
            rule: Some("r1"),
            near: None,
            shadow: Shadows(&[]),
        },
        request: Request {
            method: Text("POST"),
            path: Some(Id("/agents/pr-agent")),
            bytes: 812,
            sha256: Some(Sha256([0xab; 32])),
            forwarded: None,
        },
    }
}

#[test]
fn a_record_calls_its_kind_what_its_line_does() {
    let note = Record::Note(Note::about(HEAD, NoteTopic::Admin));
    let config = Record::Config(ConfigChange {
        head: HEAD,
        result: ConfigResult::Rejected,
        trigger: Trigger::Watch,
        problems: 1,
        codes: Ids::default(),
        files: &[],
        more_files: 0,
    });
    for record in [note, config] {
        assert_eq!(object(&record)["kind"], record.kind());
    }
}

#[test]
fn an_intent_says_who_asked_for_what() {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
    let groups = ["staff".into(), "eu".into()];
    let actors = [("agent-7", None), ("a9", Some("https://other.example"))].map(
        |(subject, issuer): (&str, Option<&str>)| crate::identity::Actor {
            subject: subject.into(),
            issuer: issuer.map(Box::from),
        },
    );
    let claims = [
        ("role", ClaimValue::Text(Id("reviewer"))),
        ("groups", ClaimValue::Texts(Ids(&groups))),
    ];
    let caller = Caller {
        issuer: "corp",
        subject: Id("alice"),
        client: None,
        actors: Actors(&actors),
        fingerprint: Fingerprint::of(&key, b"what do ya want for nothing?"),
        grant: Grant::Agent,
        proof: Proof::Mtls,
        scopes: Ids(&[]),
        claims: Claims(&claims),
        no_claims: NoClaims(&[("level", "null")]),
    };
    let record = Record::Intent(Intent {
        head: HEAD,
        asked: asked(Some(caller), "m\n1", &[]),
    });
    assert_eq!(
        object(&record),
        json!({
            "kind": "intent", "time": "2026-12-30T23:59:59.007Z", "instance": "gw-1",
            "generation": 3, "policy_digest": "d1", "request_id": "01JZZZZZZZZZZZZZZZZZZZZZZZ",
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
            "source": {"addr": "192.0.2.1:4711", "listener": "public",
                "certificate": "cd".repeat(32)},
            "caller": {"issuer": "corp", "subject": "alice",
                "actors": [{"subject": "agent-7"}, {"subject": "a9", "issuer": "https://other.example"}],
                "fingerprint": "5bdcc146bf60754e",
                "grant": "agent", "proof": "mtls", "scopes": [], "claims": {"role": "reviewer", "groups": ["staff", "eu"]},
                "no_claims": {"level": "null"}},
            "agent": "pr-agent", "surface": "agent", "binding": "jsonrpc", "version": "1.0",
            "operation": "SendMessage",
            "skill": {"id": "review-diff", "source": "metadata", "assurance": "declared"},
            "message_id": "m\\u{a}1",
            "decision": {"effect": "allow", "reason": "rule", "rule": "r1"},
            "request": {"method": "POST", "path": "/agents/pr-agent", "bytes": 812,
                "sha256": "ab".repeat(32)},
        })
    );
}

#[test]
fn a_refusal_always_says_untouched() {
    let record = Record::Refusal(Refusal {
        head: HEAD,
        asked: asked(None, "m", &[]),
        http_status: 401,
        fault: "invalid_token",
        token_reason: Some("CA-4"),
        error: None,
        reach: Reach::UNTOUCHED,
    });
    let value = object(&record);
    assert_eq!(value["delivery"], "not_attempted");
    assert_eq!(value["reached"], "no");
    assert_eq!(value.get("caller"), None);
}

#[test]
fn an_outcome_says_how_far_it_got_and_what_came_back() {
    let attempts = [Attempt {
        peer: Cow::Borrowed("127.0.0.1:9999"),
        reused: true,
        started_ms: Millis(Duration::from_micros(310)),
        ms: Millis(Duration::from_micros(2500)),
        stage: Stage::Wait,
        bytes_sent: 10,
        body_len: 10,
        error: Some(AttemptError::Reset),
        tcp: Some(Tcp {
            state: 7,
            bytes_sent: 10,
            bytes_acked: 9,
            notsent: 1,
        }),
    }];
    let note = ArtifactNote {
        id: Some("a1".into()),
        name: None,
        media_types: vec!["text/plain".into()],
        bytes: 17,
    };
    let record = Record::Outcome(Outcome {
        head: HEAD,
        request_id: "R",
        intent: 41,
        agent: "pr-agent",
        operation: Some(Operation::SendMessage),
        reach: Delivery::ResponsePartial.into(),
        attempts: &attempts,
        response: Some(Response {
            http_status: 200,
            grpc_status: None,
            rpc_code: None,
            kind: Some(EventKind::StatusUpdate),
            extensions: Ids(&[]),
            states: &[TaskState::Submitted, TaskState::InputRequired],
            bytes: 99,
            events: 2,
            judged: Judged::Ok,
            malformed: None,
            ended_by_close: false,
        }),
        task_id: Some(Id("t1")),
        context_id: None,
        artifacts: Artifacts(std::slice::from_ref(&note)),
        ended: Ended::CallerLeft,
        ms: Timing {
            total: Millis(Duration::from_millis(12)),
            to_response: None,
            overhead: Some(Millis(Duration::from_micros(125))),
        },
    });
    assert_eq!(
        object(&record),
        json!({
            "kind": "outcome", "time": "2026-12-30T23:59:59.007Z", "instance": "gw-1",
            "generation": 3, "policy_digest": "d1", "request_id": "R", "intent": 41,
            "agent": "pr-agent", "operation": "SendMessage",
            "delivery": "response_partial", "reached": "yes",
            "attempts": [{"peer": "127.0.0.1:9999", "reused": true, "started_ms": 0.31, "ms": 2.5,
                "stage": "wait", "bytes_sent": 10, "body_len": 10, "error": "reset",
                "tcp": {"state": 7, "bytes_sent": 10, "bytes_acked": 9, "notsent": 1}}],
            "response": {"http_status": 200, "kind": "status_update",
                "states": ["submitted", "input_required"], "bytes": 99, "events": 2,
                "judged": "ok"},
            "task_id": "t1",
            "artifacts": [{"id": "a1", "media_types": ["text/plain"], "bytes": 17}],
            "ended": "caller_left", "ms": {"total": 12.0, "overhead": 0.125},
        })
    );
}

#[test]
fn callers_cannot_make_a_record_large() {
    let references: Vec<Box<str>> = (0..5000).map(|_| "x".repeat(5000).into()).collect();
    let long = "\u{1}".repeat(1 << 20);
    let record = Record::Intent(Intent {
        head: HEAD,
        asked: asked(None, &long, &references),
    });
    assert!(record.members().len() < 32 << 10);
    let value = object(&record);
    assert_eq!(value["reference_task_ids"].as_array().unwrap().len(), 33);
    assert_eq!(value["reference_task_ids"][32], "… and 4968 more");
}

#[test]
fn labels_and_serialised_names_agree_and_every_delivery_has_its_reach() {
    for delivery in Delivery::ALL {
        assert_eq!(json!(delivery), delivery.label());
    }
    let reached: Vec<&str> = Delivery::ALL.iter().map(|d| d.reached().label()).collect();
    assert_eq!(
        reached,
        ["no", "no", "maybe", "maybe", "yes", "yes", "maybe"]
    );
}
