//! The same truths where the agent speaks HTTP/2, and what only HTTP/2 can say.

use super::{ANSWER, Exchange, call, event, h2_at, patient, quick};
use crate::config::snapshot::Limits;
use crate::test_support::client::Client;
use crate::test_support::h2_agent::{H2Act, H2Agent, H2Answer, H2Then};
use crate::test_support::within;
use h2::Reason;
use serde_json::Value;
use tokio::sync::mpsc;

fn good() -> H2Act {
    H2Act::Answer(H2Answer::json(200, ANSWER))
}

/// One call, and its outcome record.
async fn one(agent: &H2Agent, limits: Limits, body: &str) -> (u16, Value) {
    let exchange = Exchange::to(h2_at(agent.address), limits);
    let response = exchange.post(body).await;
    (response.status, exchange.outcome().await)
}

#[track_caller]
fn says(outcome: &Value, delivery: &str, reached: &str, ended: &str) {
    let told = (&outcome["delivery"], &outcome["reached"], &outcome["ended"]);
    let want = (
        &Value::from(delivery),
        &Value::from(reached),
        &Value::from(ended),
    );
    assert_eq!(told, want, "{outcome}");
}

fn errors(outcome: &Value) -> Vec<&str> {
    let attempts = outcome["attempts"].as_array().unwrap();
    attempts
        .iter()
        .map(|a| a["error"].as_str().unwrap_or("none"))
        .collect()
}

#[tokio::test]
async fn a_refused_stream_is_sent_once_more() {
    let agent = H2Agent::start([H2Act::Refuse, good()]).await;
    let (status, outcome) = one(&agent, patient(), &call("SendMessage", 1)).await;
    assert_eq!(status, 200);
    says(&outcome, "responded", "yes", "complete");
    assert_eq!(errors(&outcome), ["not_processed", "none"], "{outcome}");
    let counts = agent.counts();
    assert_eq!(counts.requests(), 1);
    assert_eq!(
        counts.connections, 2,
        "the refusing connection was asked again"
    );
}

#[tokio::test]
async fn a_stream_that_is_refused_twice_reached_nobody() {
    let agent = H2Agent::start([H2Act::Refuse, H2Act::Refuse, good()]).await;
    let (status, outcome) = one(&agent, patient(), &call("SendMessage", 1)).await;
    assert_eq!(status, 502);
    says(&outcome, "connect_failed", "no", "agent_closed");
    assert_eq!(errors(&outcome), ["not_processed", "not_processed"]);
    assert_eq!(agent.counts().requests(), 0);
}

#[tokio::test]
async fn a_goaway_below_the_stream_is_sent_once_more() {
    let agent = H2Agent::start([H2Act::GoAwayBelow, good()]).await;
    let (status, outcome) = one(&agent, patient(), &call("SendMessage", 1)).await;
    assert_eq!(status, 200);
    says(&outcome, "responded", "yes", "complete");
    assert_eq!(errors(&outcome), ["not_processed", "none"], "{outcome}");
    assert_eq!(agent.counts().requests(), 1);
}

#[tokio::test]
async fn a_goaway_that_covers_the_stream_is_not() {
    let agent = H2Agent::start([H2Act::GoAwayAndClose, good()]).await;
    let (status, outcome) = one(&agent, patient(), &call("SendMessage", 1)).await;
    assert_eq!(status, 502);
    says(&outcome, "sent_no_response", "maybe", "agent_closed");
    assert_eq!(errors(&outcome), ["closed"], "{outcome}");
    assert_eq!(agent.counts().requests(), 1, "a message was sent twice");
}

#[tokio::test]
async fn a_stream_that_is_reset_after_reading_is_not() {
    for reason in [Reason::INTERNAL_ERROR, Reason::CANCEL, Reason::NO_ERROR] {
        let agent = H2Agent::start([H2Act::ReadThenReset(reason), good()]).await;
        let (status, outcome) = one(&agent, patient(), &call("SendMessage", 1)).await;
        assert_eq!(status, 502);
        says(&outcome, "sent_no_response", "maybe", "agent_closed");
        assert_eq!(errors(&outcome), ["reset"], "{outcome}");
        assert_eq!(agent.counts().requests(), 1, "a message was sent twice");
    }
}

#[tokio::test]
async fn a_refusal_before_the_body_was_read_is_passed_on() {
    let refusal = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"too large"}}"#;
    let agent = H2Agent::start([H2Act::EarlyUnread(H2Answer::json(413, refusal)), good()]).await;
    let exchange = Exchange::to(h2_at(agent.address), patient());
    let mut client = Client::connect(exchange.address).await.unwrap();
    let body = call("SendMessage", 5_000_000);
    let response = client.post_json("/", None, &[], &body).await.unwrap();
    assert_eq!(
        (response.status, response.text()),
        (413, refusal.to_owned())
    );
    let body = call("SendMessage", 1);
    let response = client.post_json("/", None, &[], &body).await.unwrap();
    assert_eq!(response.status, 200);
    // The stream was given up, not the connection.
    assert_eq!(agent.counts().connections, 1);
    let outcomes = exchange.outcomes(2).await;
    assert_eq!(outcomes[0]["response"]["http_status"], 413);
    assert_eq!(outcomes[1]["attempts"][0]["reused"], true);
}

/// An agent may begin to answer before it has read all: the rest is still sent.
#[tokio::test]
async fn an_early_good_answer_does_not_stop_the_body() {
    let agent = H2Agent::start([H2Act::Early(H2Answer::json(200, ANSWER))]).await;
    let body = call("SendMessage", 5_000_000);
    let (status, outcome) = one(&agent, patient(), &body).await;
    assert_eq!(status, 200);
    says(&outcome, "responded", "yes", "complete");
    let counts = agent.until("the whole body", |c| c.requests() == 1).await;
    assert_eq!(counts.seen[0].body.len(), body.len());
}

#[tokio::test]
async fn dies_in_the_middle_of_a_stream() {
    let (feed, fed) = mpsc::unbounded_channel();
    let agent = H2Agent::start([H2Act::Fed(stream(), fed, H2Then::Reset)]).await;
    let exchange = Exchange::to(h2_at(agent.address), patient());
    let mut client = exchange.begin(&call("SendStreamingMessage", 1)).await;
    feed.send(event("t1", "TASK_STATE_WORKING").into_bytes())
        .unwrap();
    let mut head = client.head().await.unwrap().unwrap();
    client.body_until(&mut head, "t1").await.unwrap();
    drop(feed);
    // The caller is told, and broken off all the same.
    let told = within("the error", client.body_until(&mut head, "\n\n")).await;
    assert!(told.unwrap().contains("-32603"));
    let rest = within("the cut", client.piece(&mut head)).await;
    assert!(rest.is_err(), "a broken stream ended like a whole one");
    let outcome = exchange.outcome().await;
    says(&outcome, "response_partial", "yes", "agent_closed");
}

#[tokio::test]
async fn caller_leaves_in_the_middle_of_a_stream() {
    let (feed, fed) = mpsc::unbounded_channel();
    let agent = H2Agent::start([H2Act::Fed(stream(), fed, H2Then::End), good()]).await;
    let exchange = Exchange::to(h2_at(agent.address), patient());
    let mut client = exchange.begin(&call("SendStreamingMessage", 1)).await;
    feed.send(event("t1", "TASK_STATE_WORKING").into_bytes())
        .unwrap();
    let mut head = client.head().await.unwrap().unwrap();
    client.body_until(&mut head, "t1").await.unwrap();
    drop(client);
    agent.until("our reset", |c| c.seen[0].reset).await;
    let outcome = exchange.outcome().await;
    says(&outcome, "response_partial", "yes", "caller_left");
    // The connection lives on.
    let response = exchange.post(&call("SendMessage", 1)).await;
    assert_eq!(response.status, 200);
    assert_eq!(agent.counts().connections, 1);
}

#[tokio::test]
async fn calls_share_a_connection() {
    let (feed, fed) = mpsc::unbounded_channel();
    let agent = H2Agent::start([H2Act::Fed(stream(), fed, H2Then::End), good(), good()]).await;
    let exchange = Exchange::to(h2_at(agent.address), patient());
    let mut streaming = exchange.begin(&call("SendStreamingMessage", 1)).await;
    feed.send(event("t1", "TASK_STATE_WORKING").into_bytes())
        .unwrap();
    let mut head = streaming.head().await.unwrap().unwrap();
    streaming.body_until(&mut head, "t1").await.unwrap();
    let mut client = Client::connect(exchange.address).await.unwrap();
    for _ in 0..2 {
        let response = client
            .post_json("/", None, &[], &call("SendMessage", 1))
            .await
            .unwrap();
        assert_eq!((response.status, response.text()), (200, ANSWER.to_owned()));
    }
    drop(feed);
    within("the end", async {
        while client_piece(&mut streaming, &mut head).await {}
    })
    .await;
    assert_eq!(agent.counts().connections, 1);
    for outcome in exchange.outcomes(3).await {
        assert_eq!(outcome["delivery"], "responded", "{outcome}");
    }
}

async fn client_piece(client: &mut Client, head: &mut crate::test_support::client::Head) -> bool {
    client.piece(head).await.unwrap().is_some()
}

#[tokio::test]
async fn an_agent_that_speaks_no_http2_gives_no_reply() {
    use crate::test_support::raw_agent::{Act, RawAgent, json_answer};
    let agent = RawAgent::start([Act::Answer(json_answer(200, ANSWER))]).await;
    let exchange = Exchange::to(h2_at(agent.address), quick());
    let response = exchange.post(&call("SendMessage", 1)).await;
    assert!(matches!(response.status, 502 | 504), "{}", response.status);
    // What it took for requests is the preface of HTTP/2.
    for seen in agent.counts().seen {
        assert!(!seen.head.starts_with(b"POST"), "{seen:?}");
    }
}

/// Only what may travel does, and nothing that belongs to one connection.
#[tokio::test]
async fn the_head_has_no_field_of_a_connection() {
    let agent = H2Agent::start([good()]).await;
    let exchange = Exchange::to(h2_at(agent.address), patient());
    let mut client = Client::connect(exchange.address).await.unwrap();
    let fields = [
        ("Connection", "keep-alive, X-Hop"),
        ("X-Hop", "1"),
        ("Keep-Alive", "timeout=5"),
        ("TE", "trailers"),
        ("Authorization", "Bearer x"),
        ("X-Custom", "kept"),
        (
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ),
        ("tracestate", "one=1"),
    ];
    let body = call("SendMessage", 1);
    client.post_json("/", None, &fields, &body).await.unwrap();
    let counts = agent.until("the request", |c| c.requests() == 1).await;
    let seen = &counts.seen[0];
    assert_eq!(
        (&*seen.method, &*seen.scheme, &*seen.path),
        ("POST", "http", "/")
    );
    assert_eq!(seen.authority, agent.address.to_string());
    let mut names: Vec<_> = seen.fields.keys().map(|n| n.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "a2a-version",
            "accept-encoding",
            "content-length",
            "content-type",
            "portcullis-request-id",
            "traceparent",
            "tracestate",
            "x-custom",
        ]
    );
    // The caller's trace goes on with us as the parent.
    let parent = seen.field("traceparent").unwrap();
    assert!(parent.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
    assert!(!parent.contains("00f067aa0ba902b7") && parent.ends_with("-01"));
}

fn stream() -> H2Answer {
    H2Answer {
        status: 200,
        fields: vec![("content-type", "text/event-stream".to_owned())],
        ..H2Answer::default()
    }
}
