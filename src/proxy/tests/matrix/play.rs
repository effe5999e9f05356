//! One row, played and compared.

use super::super::{ANSWER, Exchange, call, h2_at};
use super::{Kept, Leaves, On, Part, Row, Speaking};
use crate::test_support::client::Client;
use crate::test_support::gates::backend_at;
use crate::test_support::h2_agent::{H2Act, H2Agent, H2Answer};
use crate::test_support::raw_agent::{Act, RawAgent, RefusingPort, json_answer};
use serde_json::Value;
use std::net::SocketAddr;

enum Agent {
    None(RefusingPort),
    H1(RawAgent),
    H2(H2Agent),
}

/// One request at the agent, as far as it came.
struct Arrived {
    body: Vec<u8>,
    complete: bool,
}

impl Agent {
    /// Answers one call where the connection is to be kept, plays `part`, and would answer whatever
    /// came after that.
    async fn start(part: Part, on: On) -> Agent {
        let before = usize::from(on == Kept);
        match part {
            Part::Refuses => Agent::None(RefusingPort::new()),
            Part::H1(act) => {
                let good = || Act::Answer(json_answer(200, ANSWER));
                let mut script: Vec<_> = (0..before).map(|_| good()).collect();
                script.extend([act, good()]);
                Agent::H1(RawAgent::start(script).await)
            }
            Part::H2(act) => {
                let good = || H2Act::Answer(H2Answer::json(200, ANSWER));
                let mut script: Vec<_> = (0..before).map(|_| good()).collect();
                script.extend([act, good()]);
                Agent::H2(H2Agent::start(script).await)
            }
        }
    }

    fn address(&self) -> SocketAddr {
        match self {
            Agent::None(port) => port.address,
            Agent::H1(agent) => agent.address,
            Agent::H2(agent) => agent.address,
        }
    }

    /// Its log.
    fn arrived(&self) -> Vec<Arrived> {
        match self {
            Agent::None(_) => Vec::new(),
            Agent::H1(agent) => {
                let seen = agent.counts().seen.into_iter().map(|seen| Arrived {
                    body: seen.body,
                    complete: seen.complete,
                });
                seen.collect()
            }
            Agent::H2(agent) => {
                let seen = agent.counts().seen.into_iter().map(|seen| Arrived {
                    body: seen.body,
                    complete: seen.complete,
                });
                seen.collect()
            }
        }
    }

    async fn until_read(&self, many: usize) {
        match self {
            Agent::None(_) => {}
            Agent::H1(agent) => {
                agent.until("it", |c| c.requests() == many).await;
            }
            Agent::H2(agent) => {
                agent.until("it", |c| c.requests() == many).await;
            }
        }
    }

    /// Waits until it has noticed that we left it.
    async fn until_left(&self) {
        match self {
            Agent::None(_) => {}
            Agent::H1(agent) => {
                agent.until("our leaving", |c| c.left == 1).await;
            }
            Agent::H2(agent) => {
                let last = |c: &crate::test_support::h2_agent::H2Counts| {
                    c.seen.last().is_some_and(|seen| seen.reset)
                };
                agent.until("our reset", last).await;
            }
        }
    }
}

pub(super) async fn play(row: &Row) {
    let versions = [(row.h1, backend_at as Speaking), (row.h2, h2_at)];
    for (version, (part, backend)) in versions.into_iter().enumerate() {
        for &on in row.on {
            if let Some(part) = part {
                let shown = format!("HTTP/{} {on:?}", version + 1);
                one(row, Agent::start(part(), on).await, backend, on, &shown).await;
            }
        }
    }
}

async fn one(row: &Row, agent: Agent, backend: Speaking, on: On, shown: &str) {
    let exchange = Exchange::to(backend(agent.address()), (row.limits)());
    let before = usize::from(on == Kept);
    if on == Kept {
        let warm = exchange.post(&call("SendMessage", 1)).await;
        assert_eq!(warm.status, 200, "{shown}");
        exchange.outcomes(1).await;
    }
    let body = call(row.call, row.padding);
    let mut client = exchange.begin(&body).await;
    match row.leaves {
        Leaves::Never => {
            let status = answered(&mut client, row).await;
            assert_eq!(status, row.status, "{shown}");
        }
        Leaves::BeforeHeader => agent.until_read(before + 1).await,
        Leaves::AfterHeader => {
            let mut head = client.head().await.unwrap().unwrap();
            client.piece(&mut head).await.unwrap();
        }
    }
    if row.leaves != Leaves::Never {
        drop(client);
        agent.until_left().await;
    }
    let outcome = exchange.outcomes(before + 1).await.remove(before);
    check(row, &agent, &outcome, &body, before, shown);
}

/// Reads what the caller gets, to its end or to where it is broken off.
async fn answered(client: &mut Client, row: &Row) -> u16 {
    let mut head = client.head().await.unwrap().unwrap();
    let mut read = Vec::new();
    while let Ok(Some(piece)) = client.piece(&mut head).await {
        read.extend(piece);
    }
    if matches!(head.status, 502 | 504) {
        let told: Value = serde_json::from_slice(&read).unwrap();
        let said = (&told["id"], &told["error"]["code"]);
        assert_eq!(said, (&1.into(), &(-32603).into()), "{}", row.call);
    }
    head.status
}

#[track_caller]
fn check(row: &Row, agent: &Agent, outcome: &Value, body: &str, before: usize, shown: &str) {
    let attempts = outcome["attempts"].as_array().unwrap();
    let last = attempts.last().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let delivery = text(&outcome["delivery"]);
    let said = [
        delivery.clone(),
        text(&outcome["ended"]),
        text(&last["stage"]),
        text(&last["error"]),
    ]
    .join(" ");
    assert!(
        row.says.contains(&&*said),
        "{shown}: `{said}` in {outcome:#}"
    );
    let reached = match &*delivery {
        "not_attempted" | "connect_failed" => "no",
        "sent_partial" | "sent_no_response" => "maybe",
        "responded" | "response_partial" => "yes",
        other => panic!("`{other}`"),
    };
    assert_eq!(outcome["reached"], reached, "{shown}");
    assert_eq!(attempts.len(), 1, "{shown}: {outcome:#}");
    assert_eq!(last["peer"], agent.address().to_string(), "{shown}");
    assert_eq!(last["reused"], before == 1, "{shown}");
    assert_eq!(last["body_len"], body.len(), "{shown}");
    let sent = usize::try_from(last["bytes_sent"].as_u64().unwrap()).unwrap();
    match &*delivery {
        "connect_failed" => assert_eq!(sent, 0, "{shown}"),
        "sent_partial" => assert!(sent < body.len(), "{shown}: {sent}"),
        "sent_no_response" => assert_eq!(sent, body.len(), "{shown}"),
        _ => assert!(sent <= body.len(), "{shown}: {sent}"),
    }
    if shown.starts_with("HTTP/1") && reached == "maybe" {
        let tcp = &last["tcp"];
        assert!(tcp["bytes_acked"].is_u64(), "{shown}: {last}");
    }
    // The agent's own log.
    let arrived = agent.arrived();
    let came = &arrived[before.min(arrived.len())..];
    assert!(came.len() <= 1, "{shown}: the call was sent twice");
    match came.first() {
        None => assert_ne!(reached, "yes", "{shown}"),
        Some(came) => {
            assert_ne!(reached, "no", "{shown}");
            assert!(
                came.body.len() <= sent,
                "{shown}: more arrived than was sent"
            );
            assert!(body.as_bytes().starts_with(&came.body), "{shown}");
            if came.complete {
                assert_eq!((sent, came.body.len()), (body.len(), body.len()), "{shown}");
            }
        }
    }
    let response = &outcome["response"];
    assert_eq!(response.is_object(), reached == "yes", "{shown}");
    if response.is_object() {
        let (states, events) = row.events;
        assert_eq!(response["states"], serde_json::json!(states), "{shown}");
        assert_eq!(response["events"], events, "{shown}: {outcome:#}");
    }
}
