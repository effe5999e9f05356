//! What the journal and the metrics say about calls, and what they never say.

use super::{POLICY, Stand, message};
use crate::support::client::get;
use crate::support::issuer::{Grant, Wrong};
use crate::support::memory_journal::MemoryJournal;
use portcullis::adapters::clock::SystemClock;
use portcullis::pipeline::ports::{Clock, JournalError};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

#[tokio::test]
async fn an_allowed_call_has_an_intent_and_an_outcome() {
    let stand = Stand::new().await;
    let body = message("SendMessage", "review-diff", "please review", &[]);
    let response = stand.call(&stand.reviewer(), "SendMessage", &body).await;
    let records = stand
        .gateway
        .journal
        .until("the outcome", |r| r.iter().any(|r| r["kind"] == "outcome"))
        .await;
    let of = |kind: &str| records.iter().find(|r| r["kind"] == kind).unwrap().clone();
    let (intent, outcome) = (of("intent"), of("outcome"));
    let id = response.field("portcullis-request-id").unwrap();
    assert_eq!(
        (&intent["request_id"], &outcome["request_id"]),
        (&id.into(), &id.into())
    );
    assert_eq!(outcome["intent"], intent["seq"]);
    let expected = json!({
        "generation": 1, "agent": "pr-agent", "surface": "agent", "binding": "jsonrpc",
        "version": "1.0", "operation": "SendMessage", "message_id": "m-1",
        "skill": {"id": "review-diff", "source": "metadata", "assurance": "declared"},
        "decision": {"effect": "allow", "reason": "allowed", "rule": "reviewers-review"},
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&intent[name], value, "{name} in {intent}");
    }
    let caller = &intent["caller"];
    assert_eq!(
        (
            &caller["issuer"],
            &caller["subject"],
            &caller["grant"],
            &caller["claims"]["role"]
        ),
        (
            &"corp".into(),
            &"alice".into(),
            &"agent".into(),
            &"reviewer".into()
        ),
        "{caller}"
    );
    assert_eq!(caller["fingerprint"].as_str().unwrap().len(), 16);
    assert_eq!(intent["request"]["bytes"], body.len());
    assert_eq!(
        intent["request"]["sha256"].as_str().unwrap(),
        crate::support::http1::sha256(body.as_bytes())
    );
    assert_eq!(
        (&outcome["delivery"], &outcome["reached"], &outcome["ended"]),
        (&"responded".into(), &"yes".into(), &"complete".into())
    );
    assert_eq!(outcome["response"]["judged"], "ok");
    assert!(
        outcome["task_id"].is_string() && outcome["context_id"].is_string(),
        "{outcome}"
    );
    // The intent was written before the agent was asked.
    let at = |kind: &str| records.iter().position(|r| r["kind"] == kind).unwrap();
    assert!(at("intent") < at("outcome"));
}

/// FC-86: allowed with a protocol error, refused, and allowed are told apart by fields alone.
#[tokio::test]
async fn refusals_say_which_rule_came_nearest() {
    let stand = Stand::new().await;
    let body = message("SendMessage", "review-diff", "x", &[]);
    let near =
        |claim_why: &str| json!({"rule": "reviewers-review", "claim": "role", "why": claim_why});
    let table: Vec<(String, Value)> = vec![
        (stand.token("alice", "author"), near("value_differs")),
        (
            stand.issuer.token("alice", Grant::Agent, Value::Null),
            near("missing"),
        ),
        (
            stand
                .issuer
                .token("alice", Grant::Agent, json!({"role": null})),
            near("null"),
        ),
        (
            stand
                .issuer
                .token("alice", Grant::Agent, json!({"role": 5})),
            near("wrong_type"),
        ),
    ];
    for (many, (token, near)) in table.iter().enumerate() {
        let before = stand.counted();
        let response = stand.call(token, "SendMessage", &body).await;
        stand.assert_refused(before, &response, 403, &near.to_string());
        assert!(
            !response.text().contains("reviewers-review"),
            "the rule went to the caller"
        );
        let record = stand.gateway.refusal(many + 1).await;
        assert_eq!(&record["decision"]["near"], near, "{record}");
        assert_eq!(record["decision"]["reason"], "no_rule");
        assert_eq!(
            (&record["delivery"], &record["reached"]),
            (&"not_attempted".into(), &"no".into())
        );
    }
}

#[tokio::test]
async fn every_refusal_is_recorded_once() {
    let stand = Stand::new().await;
    let body = message("SendMessage", "review-diff", "x", &[]);
    stand.post(None, &[], &body).await;
    stand
        .post(
            Some(&stand.issuer.bad_token("a", Wrong::Expired)),
            &[],
            &body,
        )
        .await;
    stand
        .call(&stand.token("a", "author"), "SendMessage", &body)
        .await;
    stand.call(&stand.reviewer(), "SendMessage", "{").await;
    stand
        .call(
            &stand.reviewer(),
            "GetTask",
            &crate::support::fake_agent::call("GetTask", json!({"id": "t"})),
        )
        .await;
    stand.gateway.refusal(5).await;
    let records = stand.gateway.journal.records();
    let refusals: Vec<_> = records.iter().filter(|r| r["kind"] == "refusal").collect();
    assert_eq!(refusals.len(), 5);
    let rules: Vec<_> = refusals
        .iter()
        .map(|r| r["token_reason"].as_str())
        .collect();
    assert_eq!(rules, [Some("TR-4"), Some("CL-3"), None, None, None]);
    // Before verification nothing of the token is recorded but that it was refused (LG-3).
    assert!(refusals[0]["caller"].is_null() && refusals[1]["caller"].is_null());
    assert_eq!(refusals[2]["caller"]["subject"], "a");
    assert_eq!(stand.gateway.count("intent"), 0);
}

/// No record, no permit: while the journal cannot be written, nothing passes.
#[tokio::test]
async fn without_a_journal_nothing_passes() {
    let stand = Stand::new().await;
    let body = message(
        "SendMessage",
        "review-diff",
        "x",
        &[("contextId", "c-claimed")],
    );
    for error in [
        JournalError::Full,
        JournalError::Failed,
        JournalError::TimedOut,
    ] {
        stand.gateway.journal.refuse(Some(error));
        let before = stand.counted();
        let response = stand.call(&stand.reviewer(), "SendMessage", &body).await;
        stand.assert_refused(before, &response, 503, &format!("{error}"));
        assert!(response.field("retry-after").is_some());
        assert_eq!(response.json()["id"], 1);
    }
    stand.gateway.journal.refuse(None);
    // The context that the refused calls wanted is nobody's: Bob may have it.
    let response = stand
        .call(&stand.token("bob", "reviewer"), "SendMessage", &body)
        .await;
    assert_eq!(
        (response.status, stand.counted()),
        (200, (1, 1)),
        "{}",
        response.text()
    );
}

/// A device that hangs is a device that cannot be written: the wait is bounded.
#[tokio::test]
async fn a_journal_that_does_not_answer_refuses_in_bounded_time() {
    let stand = Stand::new().await;
    let body = message("SendMessage", "review-diff", "x", &[]);
    stand.gateway.journal.hang(true);
    let before = stand.counted();
    let asked = std::time::Instant::now();
    let response = stand.call(&stand.reviewer(), "SendMessage", &body).await;
    let waited = asked.elapsed();
    stand.assert_refused(before, &response, 503, "a hung device");
    assert_eq!(response.json()["id"], 1);
    let bound = Duration::from_secs(2)..Duration::from_secs(6);
    assert!(bound.contains(&waited), "{waited:?}");
    stand.gateway.journal.hang(false);
    let response = stand.call(&stand.reviewer(), "SendMessage", &body).await;
    assert_eq!((response.status, stand.counted()), (200, (1, 1)));
}

/// ER-7: a panic is a refusal, and that of its own request alone.
#[tokio::test]
async fn er_7_a_panic_ends_its_request_and_no_other() {
    let stand = Stand::new().await;
    let body = message("SendMessage", "review-diff", "x", &[]);
    let before = stand.counted();
    stand.gateway.journal.panic_once();
    let response = stand.call(&stand.reviewer(), "SendMessage", &body).await;
    stand.assert_refused(before, &response, 500, "a panic");
    assert!(!response.text().contains("told"), "{}", response.text());
    let record = stand.gateway.refusal(1).await;
    assert_eq!(
        (&record["reached"], &record["operation"]),
        (&json!("no"), &json!("SendMessage"))
    );
    // It was allowed, and the record says why it was refused all the same.
    assert_eq!(
        (
            &record["decision"]["effect"],
            &record["error"],
            &record["http_status"]
        ),
        (&json!("allow"), &json!("panic"), &json!(500)),
        "{record}"
    );
    let response = stand.call(&stand.reviewer(), "SendMessage", &body).await;
    assert_eq!((response.status, stand.counted()), (200, (1, 1)));
    // Policy's own refusal has no error.
    let author = stand.token("a", "author");
    let response = stand.call(&author, "SendMessage", &body).await;
    assert_eq!(response.status, 403);
    assert_eq!(stand.gateway.refusal(2).await.get("error"), None);
}

/// Panics once, in the task that the journal has noted.
struct Startled {
    clock: SystemClock,
    journal: OnceLock<Arc<MemoryJournal>>,
}

impl Clock for Startled {
    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn monotonic(&self) -> Duration {
        let startled = self.journal.get().is_some_and(|j| j.is_noted());
        assert!(!startled, "as it was told");
        self.clock.monotonic()
    }
}

/// ER-7, after the intent: the outcome says that it was a panic, and that nothing left.
#[tokio::test]
async fn er_7_a_panic_after_the_intent_is_the_outcome() {
    let clock = Arc::new(Startled {
        clock: SystemClock::new(),
        journal: OnceLock::new(),
    });
    let stand = Stand::timed(clock.clone()).await;
    assert!(clock.journal.set(stand.gateway.journal.clone()).is_ok());
    let body = message("SendMessage", "review-diff", "x", &[]);
    let before = stand.counted();
    stand.gateway.journal.note_next();
    let response = stand.call(&stand.reviewer(), "SendMessage", &body).await;
    assert_eq!(response.status, 500, "{}", response.text());
    assert_eq!(stand.counted(), before, "the agent was touched");
    assert!(!response.text().contains("told"), "{}", response.text());
    let outcome = stand.gateway.journal.of_kind("outcome", 1).await.pop();
    let outcome = outcome.unwrap();
    assert_eq!(
        (&outcome["ended"], &outcome["delivery"], &outcome["reached"]),
        (&json!("panic"), &json!("not_attempted"), &json!("no")),
        "{outcome}"
    );
    assert_eq!(
        (
            stand.gateway.count("intent"),
            stand.gateway.count("refusal")
        ),
        (1, 0)
    );
    let response = stand.call(&stand.reviewer(), "SendMessage", &body).await;
    assert_eq!((response.status, stand.counted()), (200, (1, 1)));
}

#[tokio::test]
async fn metrics_count_by_closed_labels() {
    let stand = Stand::new().await;
    let body = message("SendMessage", "review-diff", "x", &[]);
    stand.call(&stand.reviewer(), "SendMessage", &body).await;
    stand
        .call(&stand.token("a", "author"), "SendMessage", &body)
        .await;
    stand
        .post(
            Some(&stand.issuer.bad_token("a", Wrong::Expired)),
            &[],
            &body,
        )
        .await;
    stand.gateway.refusal(2).await;
    stand.gateway.journal.of_kind("outcome", 1).await;
    let metrics = get(stand.gateway.admin, "/metrics", &[])
        .await
        .unwrap()
        .text();
    for line in [
        r#"portcullis_requests_total{agent="pr-agent",effect="allow",operation="SendMessage",reason="allowed",surface="agent"} 1"#,
        r#"portcullis_requests_total{agent="pr-agent",effect="deny",operation="SendMessage",reason="no_rule",surface="agent"} 1"#,
        r#"portcullis_deliveries_total{agent="pr-agent",delivery="responded"} 1"#,
        r#"portcullis_attempts_total{agent="pr-agent",reused="false",stage="response"} 1"#,
        r#"portcullis_skills_total{agent="pr-agent",assurance="declared",source="metadata"} 1"#,
        r#"portcullis_auth_failures_total{issuer="corp",reason="expired"} 1"#,
        r#"portcullis_issuer_keys_age_seconds{issuer="corp"} "#,
        r#"portcullis_request_duration_seconds_count{agent="pr-agent",operation="SendMessage",streaming="false"} 1"#,
        r#"portcullis_overhead_seconds_count{phase="total"} 1"#,
        r#"portcullis_overhead_seconds_count{phase="authenticate"} 2"#,
        r#"portcullis_overhead_seconds_count{phase="record"} 1"#,
    ] {
        assert!(metrics.contains(line), "no {line} in\n{metrics}");
    }
}

/// I-9: no token, credential or message text in any record, metric or answer.
#[tokio::test]
async fn secrets_stay_out_of_records_metrics_and_answers() {
    let stand = Stand::with_policy(POLICY).await;
    let marker = "very-secret-words";
    let tokens = [
        stand.reviewer(),
        stand.token("alice", "author"),
        stand.issuer.bad_token("alice", Wrong::Signature),
        stand.issuer.bad_token("alice", Wrong::Expired),
    ];
    let mut answers = String::new();
    for token in &tokens {
        for method in ["SendMessage", "message/stream"] {
            let body = message(method, "review-diff", marker, &[]);
            let fields = [("Cookie", "session=cookie-secret"), ("A2A-Version", "1.0")];
            answers += &stand.post(Some(token), &fields[..1], &body).await.text();
            answers += &stand.call(token, method, &body).await.text();
            let broken = format!("{{\"text\":\"{marker}\"");
            answers += &stand.post(Some(token), &fields, &broken).await.text();
        }
    }
    stand.gateway.refusal(10).await;
    let records: String = stand
        .gateway
        .journal
        .records()
        .iter()
        .map(Value::to_string)
        .collect();
    let metrics = get(stand.gateway.admin, "/metrics", &[])
        .await
        .unwrap()
        .text();
    let ready = get(stand.gateway.admin, "/readyz", &[])
        .await
        .unwrap()
        .text();
    for (what, text) in [
        ("records", &records),
        ("metrics", &metrics),
        ("readiness", &ready),
    ] {
        assert!(!text.contains(marker), "message text in {what}");
        assert!(!text.contains("cookie-secret"), "a cookie in {what}");
    }
    for token in &tokens {
        for part in token.split('.').filter(|part| part.len() > 20) {
            for (what, text) in [
                ("records", &records),
                ("metrics", &metrics),
                ("answers", &answers),
                ("readiness", &ready),
            ] {
                assert!(!text.contains(part), "part of a token in {what}");
            }
        }
    }
}
