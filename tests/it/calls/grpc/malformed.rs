//! The reply guard in gRPC: whatever the agent answers, the caller gets a status, and the next call
//! goes on over the same connection.

use super::{
    NEW, OLD, Stand, assert_status, good, head, message, path, reply, request, task, trailers_only,
};
use crate::support::h2_agent::{H2Act, H2Answer};
use crate::support::h2_client::{H2Client, H2Response};
use crate::support::proto::{delimited, framed};
use h2::Reason;
use serde_json::{Value, json};

const UNARY: &str = "SendMessage";
const STREAM: &str = "SendStreamingMessage";

fn work(package: &str, method: &str) -> Vec<u8> {
    reply(package, method, &json!([["task", task()]]))
}

/// An HTTP reply of some other kind.
fn other(status: u16, media: &str, body: &[u8]) -> H2Act {
    H2Act::Answer(H2Answer {
        status,
        fields: vec![("content-type", media.to_owned())],
        body: body.to_vec(),
        trailers: Some(vec![("grpc-status", "0".to_owned())]),
    })
}

/// What comes behind a good body.
fn ending(body: Vec<u8>, trailers: Option<&[(&'static str, &str)]>) -> H2Act {
    let mut answer = H2Answer::grpc(body, trailers.unwrap_or_default());
    if trailers.is_none() {
        answer.trailers = None;
    }
    H2Act::Answer(answer)
}

/// What the agent does, and what the record calls it. Some is told in the head of a stream too.
struct Case {
    what: &'static str,
    act: H2Act,
    code: &'static str,
    in_head: bool,
}

/// Messages, frames, trailers and heads that are none.
fn cases(package: &str, method: &str) -> Vec<Case> {
    let fields = |value: Value| reply(package, method, &value);
    let body = work(package, method);
    let mut compressed = body.clone();
    compressed[0] = 1;
    let mut flagged = body.clone();
    flagged[0] = 2;
    let mut wrong_kind = Vec::new();
    delimited(9, b"x", &mut wrong_kind);
    let html = b"<html><h1>500</h1></html>";
    let framed_body = |what, frame: Vec<u8>, code| (what, good(frame), code, false);
    let mut all = vec![
        framed_body("no protobuf", framed(b"\xff\xff"), "not_protobuf"),
        framed_body("JSON in a frame", framed(br#"{"task":{}}"#), "not_protobuf"),
        framed_body("an empty message", framed(b""), "no_result"),
        framed_body("another kind of message", framed(&wrong_kind), "no_result"),
        framed_body(
            "a task without an id",
            fields(json!([["task", []]])),
            "no_id",
        ),
        framed_body(
            "two results",
            fields(json!([["task", task()], ["task", task()]])),
            "ambiguous",
        ),
        framed_body(
            "an id twice",
            fields(json!([["task", [["id", "t-1"], ["id", "t-2"]]]])),
            "ambiguous",
        ),
        framed_body(
            "an id that is no text",
            fields(json!([["task", [["id", {"hex": "ff"}]]]])),
            "not_protobuf",
        ),
        framed_body("half a prefix", body[..3].to_vec(), "truncated"),
        framed_body("half a message", body[..9].to_vec(), "truncated"),
        framed_body("compressed unannounced", compressed, "compressed_message"),
        framed_body("an unknown flag", flagged, "bad_frame"),
        (
            "no trailers",
            ending(body.clone(), None),
            "no_grpc_status",
            false,
        ),
        (
            "trailers without a status",
            ending(body.clone(), Some(&[("x-other", "1")])),
            "no_grpc_status",
            false,
        ),
        (
            "a status that is no number",
            ending(body.clone(), Some(&[("grpc-status", "OK")])),
            "bad_grpc_status",
            false,
        ),
        (
            "our own credentials",
            ending(Vec::new(), Some(&[("grpc-status", "16")])),
            "agent_unauthenticated",
            false,
        ),
        (
            "a page",
            other(500, "text/html", html),
            "bad_content_type",
            true,
        ),
        (
            "a page under 200",
            other(200, "text/html", html),
            "bad_content_type",
            true,
        ),
        (
            "JSON",
            other(200, "application/json", b"{}"),
            "bad_content_type",
            true,
        ),
        (
            "an event stream",
            other(200, "text/event-stream", b"data: {}\n\n"),
            "bad_content_type",
            true,
        ),
        (
            "an error status",
            other(503, "application/grpc", &body),
            "bad_status",
            true,
        ),
    ];
    if method == UNARY {
        let twice = [body.clone(), body.clone()].concat();
        all.extend([
            ("two messages", good(twice), "second_message", false),
            (
                "a status without a message",
                good(Vec::new()),
                "no_message",
                false,
            ),
            (
                "the same in the head",
                trailers_only(&[("grpc-status", "0")]),
                "no_message",
                false,
            ),
        ]);
    }
    let case = |(what, act, code, in_head)| Case {
        what,
        act,
        code,
        in_head,
    };
    all.into_iter().map(case).collect()
}

async fn ask(stand: &Stand, client: &mut H2Client, package: &str, method: &str) -> H2Response {
    client
        .request(
            "POST",
            &path(package, method),
            &head(Some(&stand.token("alice")), &[]),
            &request(package, method, &message(package, &[])),
        )
        .await
        .unwrap()
}

/// A stream's own end, behind `before`.
#[track_caller]
fn assert_trailers(answer: &H2Response, before: &[u8], status: &str, what: &str) {
    assert_eq!(answer.status, 200, "{what}: {answer:?}");
    assert_eq!(answer.body, before, "{what}");
    assert_eq!(
        answer.trailer("grpc-status"),
        Some(status),
        "{what}: {answer:?}"
    );
    assert!(answer.trailer("grpc-message").is_some(), "{what}");
    assert!(
        answer.trailer("grpc-status-details-bin").is_some(),
        "{what}"
    );
}

#[tokio::test]
async fn malformed_replies_come_to_a_status() {
    for package in [NEW, OLD] {
        let stand = Stand::behind_listener([]).await;
        let mut client = stand.client().await;
        let mut calls = 0;
        for method in [UNARY, STREAM] {
            for Case {
                what,
                act,
                code,
                in_head,
            } in cases(package, method)
            {
                let what = format!("{package}, {method}, {what}");
                stand.agent.play([act]);
                let answer = ask(&stand, &mut client, package, method).await;
                match method == STREAM && !in_head {
                    true => {
                        let before = match code.ends_with("grpc_status") {
                            true => work(package, method),
                            false => Vec::new(),
                        };
                        assert_trailers(&answer, &before, "13", &what);
                    }
                    false => assert_status(&answer, "13", &what),
                }
                let shown = format!("{answer:?}");
                assert!(!shown.contains("<h1>"), "{what}: {shown}");
                calls += 1;
                let outcome = stand.outcome(calls).await;
                let response = &outcome["response"];
                assert_eq!(response["judged"], "malformed", "{what}: {outcome}");
                assert_eq!(response["malformed"], code, "{what}: {outcome}");
                assert_eq!(outcome["ended"], "malformed", "{what}: {outcome}");

                let body = work(package, method);
                stand.agent.play([good(body.clone())]);
                let next = ask(&stand, &mut client, package, method).await;
                assert_eq!(next.body, body, "behind {what}");
                assert_eq!(next.trailer("grpc-status"), Some("0"), "behind {what}");
                calls += 1;
                let outcome = stand.outcome(calls).await;
                assert_eq!(outcome["response"]["judged"], "ok", "behind {what}");
            }
        }
    }
}

/// What was good leaves before the flaw behind it is told.
#[tokio::test]
async fn a_flaw_within_a_stream_ends_it_with_a_status() {
    for package in [NEW, OLD] {
        let stand = Stand::behind_listener([]).await;
        let mut client = stand.client().await;
        let event = work(package, STREAM);
        let about = |task: &str, context: &str| {
            let update = json!([
                ["task_id", task],
                ["context_id", context],
                ["status", [["state", 2]]]
            ]);
            reply(package, STREAM, &json!([["status_update", update]]))
        };
        for (calls, (what, flaw, code)) in [
            ("another task", about("t-2", "c-1"), "other_task"),
            ("another context", about("t-1", "c-2"), "other_context"),
            ("no protobuf", framed(b"\xff\xff"), "not_protobuf"),
            ("half a message", event[..9].to_vec(), "truncated"),
        ]
        .into_iter()
        .enumerate()
        {
            stand.agent.play([good([event.clone(), flaw].concat())]);
            let answer = ask(&stand, &mut client, package, STREAM).await;
            assert_trailers(&answer, &event, "13", what);
            let outcome = stand.outcome(calls + 1).await;
            assert_eq!(outcome["response"]["malformed"], code, "{what}: {outcome}");
        }
    }
}

#[tokio::test]
async fn an_answer_about_another_task_is_withheld() {
    for package in [NEW, OLD] {
        let stand = Stand::behind_listener([good(work(package, UNARY))]).await;
        let mut client = stand.client().await;
        ask(&stand, &mut client, package, UNARY).await;
        let other = json!([
            ["id", "t-2"],
            ["context_id", "c-1"],
            ["status", [["state", 3]]]
        ]);
        let asked = match package {
            OLD => json!([["name", "tasks/t-1"]]),
            _ => json!([["id", "t-1"]]),
        };
        for method in ["GetTask", "CancelTask"] {
            stand.agent.play([good(reply(package, method, &other))]);
            let answer = client
                .request(
                    "POST",
                    &path(package, method),
                    &head(Some(&stand.token("alice")), &[]),
                    &request(package, method, &asked),
                )
                .await
                .unwrap();
            assert_status(&answer, "13", method);
        }
        let outcome = stand.outcome(3).await;
        assert_eq!(outcome["response"]["malformed"], "other_task", "{outcome}");
    }
}

/// A message over the limit passes; what it names is its caller's, and the record says so.
#[tokio::test]
async fn a_message_over_the_limit_passes_unjudged() {
    for package in [NEW, OLD] {
        let stand = Stand::behind_listener([]).await;
        let mut client = stand.client().await;
        for (calls, method) in [UNARY, STREAM].into_iter().enumerate() {
            let large = json!([["task", [["id", "t-1"], ["context_id", "c-1"],
                ["metadata", {"struct": {"x": "y".repeat(5 << 20)}}]]]]);
            let body = reply(package, method, &large);
            stand.agent.play([good(body.clone())]);
            let answer = ask(&stand, &mut client, package, method).await;
            assert_eq!(answer.body.len(), body.len(), "{method}");
            assert!(answer.body == body, "{method}: other bytes");
            assert_eq!(answer.trailer("grpc-status"), Some("0"), "{method}");
            let outcome = stand.outcome(calls + 1).await;
            assert_eq!(outcome["response"]["judged"], "unjudged", "{outcome}");
            assert_eq!(outcome["task_id"], "t-1", "{outcome}");
        }
    }
}

/// Of a message that is too large to be held a part is out when it proves to be cut: no status may
/// stand behind that.
#[tokio::test]
async fn half_a_message_over_the_limit_is_reset() {
    for method in [UNARY, STREAM] {
        let stand = Stand::behind_listener([]).await;
        let mut client = stand.client().await;
        let mut cut = vec![0];
        cut.extend((5_u32 << 20).to_be_bytes());
        cut.extend([0x0a, 0x05]);
        stand.agent.play([good(cut)]);
        let answer = client
            .request(
                "POST",
                &path(NEW, method),
                &head(Some(&stand.token("alice")), &[]),
                &request(NEW, method, &message(NEW, &[])),
            )
            .await;
        assert!(answer.is_err(), "{method}: {answer:?}");
        stand.agent.play([good(work(NEW, method))]);
        let next = ask(&stand, &mut client, NEW, method).await;
        assert_eq!(next.trailer("grpc-status"), Some("0"), "{method}");
    }
}

#[tokio::test]
async fn an_agent_that_breaks_off_comes_to_a_status() {
    for package in [NEW, OLD] {
        for method in [UNARY, STREAM] {
            let stand = Stand::behind_listener([]).await;
            let mut client = stand.client().await;
            stand
                .agent
                .play([H2Act::ReadThenReset(Reason::INTERNAL_ERROR)]);
            let answer = ask(&stand, &mut client, package, method).await;
            assert_status(&answer, "14", method);
            let (agent, pieces) = tokio::sync::mpsc::unbounded_channel();
            let act = H2Act::Fed(
                H2Answer::grpc(Vec::new(), &[]),
                pieces,
                crate::support::h2_agent::H2Then::Reset,
            );
            stand.agent.play([act]);
            agent.send(work(package, method)).unwrap();
            if method == UNARY {
                drop(agent);
                let answer = ask(&stand, &mut client, package, method).await;
                assert_status(&answer, "14", method);
            } else {
                let mut answer = client
                    .begin(
                        "POST",
                        &path(package, method),
                        &head(Some(&stand.token("alice")), &[]),
                        &request(package, method, &message(package, &[])),
                    )
                    .await
                    .unwrap();
                // A reset may overtake what was sent before it.
                let first = answer.piece().await.unwrap();
                assert_eq!(first.as_deref(), Some(&*work(package, method)));
                drop(agent);
                let rest = answer.rest().await.unwrap();
                assert_trailers(&rest, b"", "14", package);
            }
            stand.agent.play([good(work(package, method))]);
            let next = ask(&stand, &mut client, package, method).await;
            assert_eq!(next.trailer("grpc-status"), Some("0"), "{method}");
        }
    }
}
