//! Agents that refuse, close, reset, hang and die: what the outcome says of each.

use super::{ANSWER, Exchange, call, event, patient, quick};
use crate::config::snapshot::Limits;
use crate::test_support::client::Client;
use crate::test_support::raw_agent::{
    Act, RawAgent, RefusingPort, Then, chunk, json_answer, stream_head,
};
use serde_json::Value;
use tokio::sync::mpsc;

/// What one call to a misbehaving agent came to.
struct Came {
    status: u16,
    code: Value,
    outcome: Value,
}

async fn one(agent: &RawAgent, limits: Limits, body: &str) -> Came {
    let exchange = Exchange::start(agent.address, limits);
    let response = exchange.post(body).await;
    let json = response.json();
    assert_eq!(json["id"], 1, "the answer does not echo the id: {json}");
    Came {
        status: response.status,
        code: json["error"]["code"].clone(),
        outcome: exchange.outcome().await,
    }
}

#[track_caller]
fn says(came: &Came, status: u16, code: i64, delivery: &str, reached: &str, ended: &str) {
    let told = (
        &came.outcome["delivery"],
        &came.outcome["reached"],
        &came.outcome["ended"],
    );
    assert_eq!(
        (came.status, &came.code, told),
        (
            status,
            &Value::from(code),
            (
                &Value::from(delivery),
                &Value::from(reached),
                &Value::from(ended)
            )
        ),
        "{}",
        came.outcome
    );
}

#[tokio::test]
async fn refused_connection() {
    let port = RefusingPort::new();
    let exchange = Exchange::start(port.address, patient());
    let mut client = Client::connect(exchange.address).await.unwrap();
    let body = call("SendMessage", 1);
    let response = client.post_json("/", None, &[], &body).await.unwrap();
    assert_eq!(response.status, 502);
    let outcome = exchange.outcome().await;
    assert_eq!(outcome["delivery"], "connect_failed");
    assert_eq!(outcome["reached"], "no");
    assert_eq!(outcome["attempts"][0]["error"], "refused");
    // The caller's connection lives on.
    let again = client.post_json("/", None, &[], &body).await.unwrap();
    assert_eq!(again.status, 502);
}

#[tokio::test]
async fn closes_at_once() {
    let agent = RawAgent::start([Act::Close]).await;
    let came = one(&agent, patient(), &call("SendMessage", 1)).await;
    says(
        &came,
        502,
        -32603,
        "sent_no_response",
        "maybe",
        "agent_closed",
    );
}

#[tokio::test]
async fn resets_at_once() {
    let agent = RawAgent::start([Act::Reset]).await;
    let came = one(&agent, patient(), &call("SendMessage", 1)).await;
    assert_eq!(came.status, 502);
    // The reset may arrive before our first write is made, or after the kernel took it.
    let delivery = came.outcome["delivery"].as_str().unwrap();
    assert!(
        matches!(delivery, "sent_no_response" | "connect_failed"),
        "{}",
        came.outcome
    );
}

#[tokio::test]
async fn reads_the_header_only_and_closes() {
    let agent = RawAgent::start([Act::HeadThenClose]).await;
    let came = one(&agent, patient(), &call("SendMessage", 1)).await;
    says(
        &came,
        502,
        -32603,
        "sent_no_response",
        "maybe",
        "agent_closed",
    );
}

#[tokio::test]
async fn never_reads_a_large_body() {
    let agent = RawAgent::start([Act::NeverRead]).await;
    let came = one(&agent, quick(), &call("SendMessage", 9_000_000)).await;
    says(&came, 504, -32603, "sent_partial", "maybe", "unary_timeout");
    let attempt = &came.outcome["attempts"][0];
    assert!(
        attempt["bytes_sent"].as_u64().unwrap() < 9_000_000,
        "{attempt}"
    );
    assert!(attempt["tcp"]["bytes_acked"].is_u64(), "{attempt}");
}

#[tokio::test]
async fn reads_all_and_closes_and_is_not_asked_twice() {
    let agent = RawAgent::start([Act::ReadThenClose, Act::Answer(json_answer(200, ANSWER))]).await;
    let came = one(&agent, patient(), &call("SendMessage", 1)).await;
    says(
        &came,
        502,
        -32603,
        "sent_no_response",
        "maybe",
        "agent_closed",
    );
    assert_eq!(agent.counts().requests(), 1, "a message was sent twice");
}

#[tokio::test]
async fn reads_all_and_hangs() {
    let agent = RawAgent::start([Act::Hang]).await;
    let came = one(&agent, quick(), &call("SendMessage", 1)).await;
    says(
        &came,
        504,
        -32603,
        "sent_no_response",
        "maybe",
        "unary_timeout",
    );
}

#[tokio::test]
async fn dies_in_the_middle_of_a_unary_reply() {
    let cut = json_answer(200, ANSWER);
    let agent = RawAgent::start([Act::AnswerThenClose(cut[..cut.len() - 9].to_vec())]).await;
    let came = one(&agent, patient(), &call("SendMessage", 1)).await;
    says(
        &came,
        502,
        -32603,
        "response_partial",
        "yes",
        "agent_closed",
    );
}

#[tokio::test]
async fn dies_in_the_middle_of_a_stream() {
    let mut answer = stream_head();
    answer.extend(chunk(&event("t1", "TASK_STATE_WORKING")));
    let agent = RawAgent::start([Act::AnswerThenReset(answer)]).await;
    let exchange = Exchange::start(agent.address, patient());
    let mut client = exchange.begin(&call("SendStreamingMessage", 1)).await;
    let mut head = client.head().await.unwrap().unwrap();
    assert_eq!(head.status, 200);
    let mut cut = None;
    for _ in 0..10 {
        match client.piece(&mut head).await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a broken stream ended like a whole one"),
            Err(error) => {
                cut = Some(error);
                break;
            }
        }
    }
    assert!(cut.is_some());
    let outcome = exchange.outcome().await;
    assert_eq!(outcome["delivery"], "response_partial");
    assert_eq!(outcome["ended"], "agent_closed");
    assert_eq!(outcome["response"]["states"][0], "working");
}

#[tokio::test]
async fn answers_before_it_has_read_the_body() {
    let refusal = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"too large"}}"#;
    let agent = RawAgent::start([
        Act::EarlyThenClose(json_answer(413, refusal)),
        Act::Answer(json_answer(200, ANSWER)),
    ])
    .await;
    let exchange = Exchange::start(agent.address, patient());
    let mut client = Client::connect(exchange.address).await.unwrap();
    let body = call("SendMessage", 5_000_000);
    let response = client.post_json("/", None, &[], &body).await.unwrap();
    assert_eq!(
        (response.status, response.text()),
        (413, refusal.to_owned())
    );
    // The half-written connection is not used again.
    let response = client
        .post_json("/", None, &[], &call("SendMessage", 1))
        .await
        .unwrap();
    assert_eq!(response.status, 200);
    assert_eq!(agent.counts().connections, 2);
    let outcomes = exchange.outcomes(2).await;
    assert_eq!(outcomes[0]["response"]["http_status"], 413);
    assert_eq!(outcomes[0]["reached"], "yes");
}

#[tokio::test]
async fn a_pooled_connection_that_was_closed_is_no_attempt() {
    let agent = RawAgent::start([
        Act::AnswerThenClose(json_answer(200, ANSWER)),
        Act::Answer(json_answer(200, ANSWER)),
    ])
    .await;
    let exchange = Exchange::start(agent.address, patient());
    let mut client = Client::connect(exchange.address).await.unwrap();
    let body = call("SendMessage", 1);
    assert_eq!(
        client
            .post_json("/", None, &[], &body)
            .await
            .unwrap()
            .status,
        200
    );
    agent.until("the connection to end", |c| c.ended >= 1).await;
    assert_eq!(
        client
            .post_json("/", None, &[], &body)
            .await
            .unwrap()
            .status,
        200
    );
    let outcomes = exchange.outcomes(2).await;
    assert_eq!(
        outcomes[1]["attempts"].as_array().unwrap().len(),
        1,
        "{}",
        outcomes[1]
    );
    assert_eq!(outcomes[1]["attempts"][0]["reused"], false);
    assert_eq!(agent.counts().requests(), 2);
}

#[tokio::test]
async fn caller_leaves_before_the_header_of_a_read() {
    let (_feed, fed) = mpsc::unbounded_channel();
    let agent = RawAgent::start([Act::Fed(fed, Then::Close)]).await;
    let exchange = Exchange::start(agent.address, patient());
    let client = exchange.begin(&call("GetTask", 1)).await;
    agent.until("the request", |c| c.requests() == 1).await;
    drop(client);
    let outcome = exchange.outcome().await;
    assert_eq!(outcome["delivery"], "sent_no_response");
    assert_eq!(outcome["ended"], "caller_left");
    agent.until("our leaving", |c| c.left >= 1).await;
}

/// The caller of a send leaves: we read on, since the reply names a task that must be bound.
#[tokio::test]
async fn caller_leaves_before_the_header_of_a_send() {
    let (feed, fed) = mpsc::unbounded_channel();
    let agent = RawAgent::start([Act::Fed(fed, Then::Keep)]).await;
    let exchange = Exchange::start(agent.address, patient());
    let client = exchange.begin(&call("SendMessage", 1)).await;
    agent.until("the request", |c| c.requests() == 1).await;
    drop(client);
    let reply = r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t9","contextId":"c9","status":{"state":"TASK_STATE_COMPLETED"}}}}"#;
    feed.send(json_answer(200, reply)).unwrap();
    drop(feed);
    let outcome = exchange.outcome().await;
    assert_eq!(outcome["delivery"], "responded", "{outcome}");
    assert_eq!(outcome["task_id"], "t9");
    // The reply may be here before the caller's leaving is; both are an end that is known.
    let ended = outcome["ended"].as_str().unwrap();
    assert!(matches!(ended, "caller_left" | "complete"), "{outcome}");
}

#[tokio::test]
async fn caller_leaves_in_the_middle_of_a_stream() {
    let (feed, fed) = mpsc::unbounded_channel();
    let agent = RawAgent::start([Act::Fed(fed, Then::Close)]).await;
    let exchange = Exchange::start(agent.address, patient());
    let mut client = exchange.begin(&call("SendStreamingMessage", 1)).await;
    feed.send(stream_head()).unwrap();
    feed.send(chunk(&event("t1", "TASK_STATE_WORKING")))
        .unwrap();
    let mut head = client.head().await.unwrap().unwrap();
    client.body_until(&mut head, "t1").await.unwrap();
    drop(client);
    // Upstream is closed at once, while the agent is silent.
    agent.until("our leaving", |c| c.left >= 1).await;
    let outcome = exchange.outcome().await;
    assert_eq!(outcome["delivery"], "response_partial");
    assert_eq!(outcome["ended"], "caller_left");
    assert_eq!(outcome["response"]["events"], 1);
}

#[tokio::test]
async fn a_silent_stream_is_cut() {
    let (feed, fed) = mpsc::unbounded_channel();
    let agent = RawAgent::start([Act::Fed(fed, Then::Close)]).await;
    let exchange = Exchange::start(agent.address, quick());
    let mut client = exchange.begin(&call("SendStreamingMessage", 1)).await;
    feed.send(stream_head()).unwrap();
    feed.send(chunk(&event("t1", "TASK_STATE_WORKING")))
        .unwrap();
    let mut head = client.head().await.unwrap().unwrap();
    client.body_until(&mut head, "t1").await.unwrap();
    assert!(
        client.piece(&mut head).await.is_err(),
        "a cut stream ended like a whole one"
    );
    assert_eq!(exchange.outcome().await["ended"], "idle_timeout");
}
