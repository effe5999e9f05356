//! FC-94: one trace from the caller to the agent and into the journal.

use super::rig::Rig;
use super::{RPC, Stand, message};
use crate::support::issuer::Grant;
use crate::support::raw_agent::{Act, json_answer};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"a","role":"ROLE_AGENT","parts":[]}}}"#;

/// What the agent got: the `traceparent` in its four parts.
fn parts(seen: Option<&str>) -> [String; 4] {
    let seen = seen.expect("the agent got no traceparent");
    let parts: Vec<_> = seen.split('-').map(str::to_owned).collect();
    parts.try_into().unwrap()
}

async fn call(rig: &Rig, fields: &[(&str, &str)]) {
    let token = rig.token("alice", Grant::Agent);
    let fields = [&[("A2A-Version", "1.0")], fields].concat();
    let body = message("SendMessage", "hello", "hi", &[]);
    let mut client = rig.client().await;
    let response = client.post_json(RPC, Some(&token), &fields, &body).await;
    assert_eq!(response.unwrap().status, 200);
}

#[tokio::test]
async fn a_valid_trace_is_continued() {
    for (sent, flags) in [("01", "01"), ("00", "00")] {
        let rig = Rig::new([Act::AnswerThenClose(json_answer(200, ANSWER))]).await;
        let parent = format!("{}{sent}", &PARENT[..53]);
        let state = [
            ("traceparent", parent.as_str()),
            ("tracestate", "one=1"),
            ("tracestate", "two=2"),
        ];
        call(&rig, &state).await;
        let seen = rig.agent.counts().seen.pop().unwrap();
        let [version, trace, span, said] = parts(seen.field("traceparent").as_deref());
        assert_eq!(
            [&*version, &*trace, &*said],
            ["00", TRACE, flags],
            "{seen:?}"
        );
        assert_ne!(span, "00f067aa0ba902b7", "our own place in the trace");
        let (_, fields) = seen.fields();
        let of = |name: &str| fields.iter().filter(|(n, _)| n == name).count();
        assert_eq!((of("traceparent"), of("tracestate")), (1, 2));
        let intent = rig.gateway.journal.of_kind("intent", 1).await.remove(0);
        assert_eq!(intent["trace_id"], TRACE);
    }
}

#[tokio::test]
async fn what_is_no_trace_begins_one_without_the_callers_state() {
    let upper = PARENT.to_uppercase();
    let table: [&[(&str, &str)]; 5] = [
        &[],
        &[("traceparent", "nonsense"), ("tracestate", "a=1")],
        &[("traceparent", &upper), ("tracestate", "a=1")],
        &[
            ("traceparent", PARENT),
            ("traceparent", PARENT),
            ("tracestate", "a=1"),
        ],
        &[("tracestate", "a=1")],
    ];
    let acts = table.map(|_| Act::AnswerThenClose(json_answer(200, ANSWER)));
    let rig = Rig::new(acts).await;
    let mut begun = Vec::new();
    for (many, fields) in table.into_iter().enumerate() {
        call(&rig, fields).await;
        let seen = rig.agent.counts().seen.pop().unwrap();
        let [version, trace, _, flags] = parts(seen.field("traceparent").as_deref());
        assert_eq!([&*version, &*flags], ["00", "01"], "{fields:?}");
        assert_eq!(seen.field("tracestate"), None, "{fields:?}");
        let intents = rig.gateway.journal.of_kind("intent", many + 1).await;
        assert_eq!(intents[many]["trace_id"], *trace, "{fields:?}");
        assert_ne!(trace, TRACE, "{fields:?}");
        assert!(!begun.contains(&trace), "two traces with one id");
        begun.push(trace);
    }
}

#[tokio::test]
async fn a_refusal_names_its_trace_and_reaches_nobody() {
    let stand = Stand::new().await;
    let before = stand.counted();
    let fields = [("A2A-Version", "1.0"), ("traceparent", PARENT)];
    let body = message("SendMessage", "review-diff", "x", &[]);
    let author = stand.token("alice", "author");
    for (many, token) in [Some(&*author), None].into_iter().enumerate() {
        let response = stand.post(token, &fields, &body).await;
        let status = if token.is_some() { 403 } else { 401 };
        stand.assert_refused(before, &response, status, "traced");
        assert_eq!(stand.gateway.refusal(many + 1).await["trace_id"], TRACE);
    }
}
