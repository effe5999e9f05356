//! The cells: 1 B, 100 KB and 5 MB, with a length and without, from callers of either HTTP version to
//! agents of either, three in a row on one connection, byte for byte.

use super::{ANSWER, Exchange, call, h2_at, patient};
use crate::config::snapshot::Backend;
use crate::test_support::client::{Client, request_head};
use crate::test_support::gates::backend_at;
use crate::test_support::h2_agent::{H2Act, H2Agent, H2Answer};
use crate::test_support::h2_client::H2Client;
use crate::test_support::http1::chunked;
use crate::test_support::raw_agent::{Act, RawAgent, json_answer};

/// How a body is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
}
use Framing::{Chunked, Length};

const ROUNDS: usize = 3;

/// What the agent saw of one request.
struct Arrived {
    body: Vec<u8>,
    complete: bool,
    length: Option<String>,
    coding: Option<String>,
}

/// An agent in either version, which answers three calls.
enum Up {
    H1(RawAgent),
    H2(H2Agent),
}

impl Up {
    async fn h1() -> Up {
        let answers = (0..ROUNDS).map(|_| Act::Answer(json_answer(200, ANSWER)));
        Up::H1(RawAgent::start(answers).await)
    }

    async fn h2() -> Up {
        let answers = (0..ROUNDS).map(|_| H2Act::Answer(H2Answer::json(200, ANSWER)));
        Up::H2(H2Agent::start(answers).await)
    }

    fn backend(&self) -> Backend {
        match self {
            Up::H1(agent) => backend_at(agent.address),
            Up::H2(agent) => h2_at(agent.address),
        }
    }

    /// Connections, and what came on them.
    fn arrived(&self) -> (u64, Vec<Arrived>) {
        let text = |value: Option<&str>| value.map(str::to_owned);
        match self {
            Up::H1(agent) => {
                let counts = agent.counts();
                let seen = counts.seen.iter().map(|seen| Arrived {
                    body: seen.body.clone(),
                    complete: seen.complete,
                    length: seen.field("content-length"),
                    coding: seen.field("transfer-encoding"),
                });
                (counts.connections, seen.collect())
            }
            Up::H2(agent) => {
                let counts = agent.counts();
                let seen = counts.seen.iter().map(|seen| Arrived {
                    body: seen.body.clone(),
                    complete: seen.complete,
                    length: text(seen.field("content-length")),
                    coding: text(seen.field("transfer-encoding")),
                });
                (counts.connections, seen.collect())
            }
        }
    }
}

async fn from_h1(up: Up, padding: usize, framing: Framing) {
    let exchange = Exchange::to(up.backend(), patient());
    let mut client = Client::connect(exchange.address).await.unwrap();
    let body = call("SendMessage", padding);
    for round in 0..ROUNDS {
        let length = (framing == Length).then_some(body.len());
        let mut fields = vec![("Content-Type", "application/json")];
        if framing == Chunked {
            fields.push(("Transfer-Encoding", "chunked"));
        }
        let mut request = request_head("POST", "/", &fields, length).into_bytes();
        match framing {
            Length => request.extend(body.bytes()),
            Chunked => request.extend(chunked(body.as_bytes(), 33_333)),
        }
        client.send(&request).await.unwrap();
        let response = client.response().await.unwrap();
        assert_eq!(
            (response.status, response.text()),
            (200, ANSWER.to_owned()),
            "round {round}"
        );
    }
    check(&exchange, &up, &body).await;
}

async fn from_h2(up: Up, padding: usize, framing: Framing) {
    let exchange = Exchange::to(up.backend(), patient());
    let mut client = H2Client::connect(exchange.address).await;
    let body = call("SendMessage", padding);
    let mut fields = vec![("content-type", "application/json".to_owned())];
    if framing == Length {
        fields.push(("content-length", body.len().to_string()));
    }
    for round in 0..ROUNDS {
        let sent = client.request("POST", "/", &fields, body.as_bytes()).await;
        let response = sent.unwrap();
        assert_eq!(
            (response.status, response.text()),
            (200, ANSWER.to_owned()),
            "round {round}"
        );
        assert_eq!(response.field("transfer-encoding"), None);
    }
    check(&exchange, &up, &body).await;
}

/// Byte for byte, with a length, on one connection, and recorded.
async fn check(exchange: &Exchange, up: &Up, body: &str) {
    let (connections, arrived) = up.arrived();
    assert_eq!(arrived.len(), ROUNDS);
    for seen in arrived {
        assert!(seen.complete);
        assert_eq!(seen.body, body.as_bytes(), "the agent saw other bytes");
        assert_eq!(seen.length, Some(body.len().to_string()));
        assert_eq!(seen.coding, None);
    }
    assert_eq!(connections, 1, "the agent's connection was not used again");
    for outcome in exchange.outcomes(ROUNDS).await {
        assert_eq!(outcome["delivery"], "responded");
        assert_eq!(outcome["attempts"][0]["bytes_sent"], body.len());
    }
}

macro_rules! cells {
    ($($name:ident: $from:ident, $up:ident, $padding:literal, $framing:ident;)*) => {$(
        #[tokio::test]
        async fn $name() {
            $from(Up::$up().await, $padding, $framing).await;
        }
    )*};
}

cells! {
    one_byte_length_h1_h1: from_h1, h1, 1, Length;
    one_byte_chunked_h1_h1: from_h1, h1, 1, Chunked;
    hundred_kb_length_h1_h1: from_h1, h1, 100_000, Length;
    hundred_kb_chunked_h1_h1: from_h1, h1, 100_000, Chunked;
    five_mb_length_h1_h1: from_h1, h1, 5_000_000, Length;
    five_mb_chunked_h1_h1: from_h1, h1, 5_000_000, Chunked;
    one_byte_length_h1_h2: from_h1, h2, 1, Length;
    one_byte_chunked_h1_h2: from_h1, h2, 1, Chunked;
    hundred_kb_length_h1_h2: from_h1, h2, 100_000, Length;
    hundred_kb_chunked_h1_h2: from_h1, h2, 100_000, Chunked;
    five_mb_length_h1_h2: from_h1, h2, 5_000_000, Length;
    five_mb_chunked_h1_h2: from_h1, h2, 5_000_000, Chunked;
    one_byte_length_h2_h1: from_h2, h1, 1, Length;
    one_byte_chunked_h2_h1: from_h2, h1, 1, Chunked;
    hundred_kb_length_h2_h1: from_h2, h1, 100_000, Length;
    hundred_kb_chunked_h2_h1: from_h2, h1, 100_000, Chunked;
    five_mb_length_h2_h1: from_h2, h1, 5_000_000, Length;
    five_mb_chunked_h2_h1: from_h2, h1, 5_000_000, Chunked;
    one_byte_length_h2_h2: from_h2, h2, 1, Length;
    one_byte_chunked_h2_h2: from_h2, h2, 1, Chunked;
    hundred_kb_length_h2_h2: from_h2, h2, 100_000, Length;
    hundred_kb_chunked_h2_h2: from_h2, h2, 100_000, Chunked;
    five_mb_length_h2_h2: from_h2, h2, 5_000_000, Length;
    five_mb_chunked_h2_h2: from_h2, h2, 5_000_000, Chunked;
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
