//! What the matrix cannot say: more than one connection, more than one address, callers that are not
//! waited for.

use super::{ANSWER, Exchange, call, patient, quick};
use crate::config::snapshot::Backend;
use crate::test_support::client::Client;
use crate::test_support::gates::backend_at;
use crate::test_support::loopback;
use crate::test_support::raw_agent::{Act, RawAgent, RefusingPort, Then, json_answer};
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

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
    for first in [Act::AnswerThenClose, Act::AnswerThenReset] {
        closed_while_idle(first(json_answer(200, ANSWER))).await;
    }
}

async fn closed_while_idle(first: Act) {
    let agent = RawAgent::start([first, Act::Answer(json_answer(200, ANSWER))]).await;
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

/// The same in the middle of the reply.
#[tokio::test]
async fn caller_leaves_in_the_middle_of_a_reply_to_a_send() {
    let (feed, fed) = mpsc::unbounded_channel();
    let agent = RawAgent::start([Act::Fed(fed, Then::Keep)]).await;
    let exchange = Exchange::start(agent.address, patient());
    let mut client = exchange.begin(&call("SendMessage", 1)).await;
    agent.until("the request", |c| c.requests() == 1).await;
    let text = "y".repeat(3 << 20);
    let reply = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"task":{{"id":"t9","contextId":"c9","status":{{"state":"TASK_STATE_COMPLETED"}},"history":"{text}"}}}}}}"#
    );
    let reply = json_answer(200, &reply);
    let (first, rest) = reply.split_at(2 << 20);
    feed.send(first.to_vec()).unwrap();
    let mut head = client.head().await.unwrap().unwrap();
    client.piece(&mut head).await.unwrap();
    drop(client);
    feed.send(rest.to_vec()).unwrap();
    drop(feed);
    let outcome = exchange.outcome().await;
    assert_eq!(outcome["delivery"], "responded", "{outcome}");
    assert_eq!(outcome["ended"], "caller_left", "{outcome}");
    assert_eq!(outcome["task_id"], "t9");
}

/// A read changes nothing, so it is asked once more where a kept connection broke under it.
#[tokio::test]
async fn a_read_is_asked_once_more_on_a_new_connection() {
    let good = || Act::Answer(json_answer(200, ANSWER));
    for (last, status, delivery) in [
        (good(), 200, "responded"),
        (Act::ReadThenClose, 502, "sent_no_response"),
    ] {
        let agent = RawAgent::start([good(), Act::ReadThenClose, last, good()]).await;
        let exchange = Exchange::start(agent.address, patient());
        assert_eq!(exchange.post(&call("SendMessage", 1)).await.status, 200);
        let response = exchange.post(&call("GetTask", 1)).await;
        assert_eq!(response.status, status);
        let outcome = exchange.outcomes(2).await.remove(1);
        assert_eq!(outcome["delivery"], delivery, "{outcome}");
        let attempts = outcome["attempts"].as_array().unwrap();
        let tried: Vec<_> = attempts.iter().map(|a| &a["reused"]).collect();
        assert_eq!(tried, [true, false], "{outcome}");
        assert_eq!(attempts[0]["error"], "closed", "{outcome}");
        assert_eq!(agent.counts().requests(), 3);
    }
}

/// Once more, and on a kept connection only: a new one that breaks says something of the call.
#[tokio::test]
async fn a_read_is_not_asked_again_where_the_connection_was_new() {
    let good = Act::Answer(json_answer(200, ANSWER));
    let agent = RawAgent::start([Act::ReadThenClose, good]).await;
    let exchange = Exchange::start(agent.address, patient());
    assert_eq!(exchange.post(&call("GetTask", 1)).await.status, 502);
    assert_eq!(exchange.outcome().await["delivery"], "sent_no_response");
    assert_eq!(agent.counts().requests(), 1);
}

fn at_addresses(exchange: &Exchange, addresses: &[SocketAddr]) {
    let app = &exchange.app;
    let peers = app.links.peers(&app.gate.live(), 0, 0).unwrap();
    peers.assume(addresses);
}

#[tokio::test]
async fn every_address_that_was_tried_is_listed() {
    let refusing = RefusingPort::new();
    let agent = RawAgent::start([Act::Answer(json_answer(200, ANSWER))]).await;
    let exchange = Exchange::start(agent.address, patient());
    at_addresses(&exchange, &[refusing.address, agent.address]);
    let response = exchange.post(&call("SendMessage", 1)).await;
    assert_eq!(response.status, 200);
    let outcome = exchange.outcome().await;
    assert_eq!(outcome["delivery"], "responded");
    let attempts = outcome["attempts"].as_array().unwrap();
    let tried: Vec<_> = attempts
        .iter()
        .map(|a| [&a["peer"], &a["stage"], &a["error"]].map(|v| v.as_str().unwrap_or("none")))
        .collect();
    let (first, second) = (refusing.address.to_string(), agent.address.to_string());
    assert_eq!(
        tried,
        [
            [&*first, "connect", "refused"],
            [&*second, "response", "none"]
        ]
    );
    assert_eq!(agent.counts().requests(), 1);
}

/// After a byte has left, no other address is tried.
#[tokio::test]
async fn no_other_address_is_tried_once_a_message_has_left() {
    let first = RawAgent::start([Act::ReadThenClose]).await;
    let second = RawAgent::start([Act::Answer(json_answer(200, ANSWER))]).await;
    let exchange = Exchange::start(first.address, patient());
    at_addresses(&exchange, &[first.address, second.address]);
    assert_eq!(exchange.post(&call("SendMessage", 1)).await.status, 502);
    let outcome = exchange.outcome().await;
    assert_eq!(outcome["delivery"], "sent_no_response");
    assert_eq!(outcome["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(second.counts().connections, 0);
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_an_attempt() {
    let backend = Backend {
        host: "no such name".into(),
        ..backend_at(loopback())
    };
    let exchange = Exchange::to(backend, patient());
    assert_eq!(exchange.post(&call("SendMessage", 1)).await.status, 502);
    let outcome = exchange.outcome().await;
    assert_eq!(
        (&outcome["delivery"], &outcome["reached"]),
        (&"connect_failed".into(), &"no".into())
    );
    let attempt = &outcome["attempts"][0];
    assert_eq!(
        (&attempt["stage"], &attempt["error"]),
        (&"connect".into(), &"dns".into())
    );
    assert_eq!(attempt["bytes_sent"], 0);
}

/// A listener whose queue is full answers nobody.
#[tokio::test]
async fn a_connection_that_is_not_made_in_time_reached_nobody() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(loopback()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    let moment = std::time::Duration::from_millis(200);
    while let Ok(made) = tokio::time::timeout(moment, TcpStream::connect(address)).await {
        waiting.push(made.unwrap());
        assert!(waiting.len() < 64, "the queue is never full");
    }
    let exchange = Exchange::start(address, quick());
    assert_eq!(exchange.post(&call("SendMessage", 1)).await.status, 502);
    let outcome = exchange.outcome().await;
    assert_eq!(outcome["delivery"], "connect_failed");
    let attempt = &outcome["attempts"][0];
    assert_eq!(
        (&attempt["stage"], &attempt["error"]),
        (&"connect".into(), &"timed_out".into())
    );
}
