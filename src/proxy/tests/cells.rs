//! The six HTTP/1.1 cells: 1 B, 100 KB and 5 MB, with a length and chunked, three in a row on one
//! connection, byte for byte.

use super::{Exchange, call, patient};
use crate::test_support::client::{Client, request_head};
use crate::test_support::raw_agent::{Act, RawAgent, json_answer};

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"a","role":"ROLE_AGENT","parts":[]}}}"#;

async fn cell(padding: usize, chunked: bool) {
    let agent = RawAgent::start((0..3).map(|_| Act::Answer(json_answer(200, ANSWER)))).await;
    let exchange = Exchange::start(agent.address, patient());
    let mut client = Client::connect(exchange.address).await.unwrap();
    let body = call("SendMessage", padding);
    for round in 0..3 {
        let length = (!chunked).then_some(body.len());
        let mut fields = vec![("Content-Type", "application/json")];
        if chunked {
            fields.push(("Transfer-Encoding", "chunked"));
        }
        let mut request = request_head("POST", "/", &fields, length).into_bytes();
        if chunked {
            for piece in body.as_bytes().chunks(33_333) {
                request.extend(format!("{:x}\r\n", piece.len()).bytes());
                request.extend(piece);
                request.extend(b"\r\n");
            }
            request.extend(b"0\r\n\r\n");
        } else {
            request.extend(body.bytes());
        }
        client.send(&request).await.unwrap();
        let response = client.response().await.unwrap();
        assert_eq!(
            (response.status, response.text()),
            (200, ANSWER.to_owned()),
            "round {round}"
        );
    }
    let counts = agent.counts();
    assert_eq!(counts.requests(), 3);
    for seen in &counts.seen {
        assert!(seen.complete);
        assert_eq!(seen.body, body.as_bytes(), "the agent saw other bytes");
        assert_eq!(seen.field("content-length"), Some(body.len().to_string()));
        assert_eq!(seen.field("transfer-encoding"), None);
    }
    assert_eq!(
        counts.connections, 1,
        "the agent's connection was not used again"
    );
    for outcome in exchange.outcomes(3).await {
        assert_eq!(outcome["delivery"], "responded");
        assert_eq!(outcome["attempts"][0]["bytes_sent"], body.len());
    }
}

#[tokio::test]
async fn one_byte_with_length() {
    cell(1, false).await;
}

#[tokio::test]
async fn one_byte_chunked() {
    cell(1, true).await;
}

#[tokio::test]
async fn hundred_kilobytes_with_length() {
    cell(100_000, false).await;
}

#[tokio::test]
async fn hundred_kilobytes_chunked() {
    cell(100_000, true).await;
}

#[tokio::test]
async fn five_megabytes_with_length() {
    cell(5_000_000, false).await;
}

#[tokio::test]
async fn five_megabytes_chunked() {
    cell(5_000_000, true).await;
}

/// The next request may come before the answer to the one before it.
#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let agent = RawAgent::start((0..2).map(|_| Act::Answer(json_answer(200, ANSWER)))).await;
    let exchange = Exchange::start(agent.address, patient());
    let mut client = Client::connect(exchange.address).await.unwrap();
    let body = call("SendMessage", 1);
    let head = request_head(
        "POST",
        "/",
        &[("Content-Type", "application/json")],
        Some(body.len()),
    );
    client
        .send(format!("{head}{body}{head}{body}").as_bytes())
        .await
        .unwrap();
    for _ in 0..2 {
        assert_eq!(client.response().await.unwrap().text(), ANSWER);
    }
    assert_eq!(agent.counts().requests(), 2);
}
