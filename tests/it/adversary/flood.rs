//! Strangers in great number: what they cost is bounded.

use crate::calls::{RPC, Stand, message};
use crate::support::client::{Client, get, request_head};
use serde_json::Value;
use std::collections::BTreeSet;

/// Above a hundred a second, refusals of callers without a good token are counted in a summary
/// and not recorded one by one; everything else still is.
#[tokio::test]
async fn strangers_do_not_fill_the_journal() {
    let stand = Stand::new().await;
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let requests = request_head("GET", "/nowhere", &[], None).repeat(50);
    let mut sent = 0;
    // Until a second has passed in which more than a hundred came.
    while stand.gateway.count("refusals") == 0 {
        assert!(sent < 100_000, "no summary after {sent} requests");
        client.send(requests.as_bytes()).await.unwrap();
        for _ in 0..50 {
            assert_eq!(client.response().await.unwrap().status, 401);
        }
        sent += 50;
    }
    let token = stand.token("alice", "author");
    let body = message("SendMessage", "review-diff", "x", &[]);
    let before = stand.counted();
    let refused = stand
        .post(Some(&token), &[("A2A-Version", "1.0")], &body)
        .await;
    stand.assert_refused(before, &refused, 403, RPC);
    let total = |records: &[Value]| {
        let counted: u64 = records
            .iter()
            .filter(|r| r["kind"] == "refusals")
            .map(|r| r["count"].as_u64().unwrap())
            .sum();
        let single = records.iter().filter(|r| r["kind"] == "refusal").count() as u64;
        counted + single
    };
    // Nobody is forgotten: what is not recorded is counted, without another request.
    let records = stand
        .gateway
        .journal
        .until("everybody to be counted", |r| total(r) == sent + 1)
        .await;
    let summary = records.iter().find(|r| r["kind"] == "refusals").unwrap();
    assert_eq!(summary["reasons"]["no_credential"], summary["count"]);
    let known = records
        .iter()
        .filter(|r| r["kind"] == "refusal" && r["caller"].is_object())
        .count();
    assert_eq!(known, 1);
}

/// What strangers and callers write into paths, ids, hosts, methods and versions makes no time
/// series (FC-92).
#[tokio::test]
async fn whatever_is_asked_for_makes_no_new_series() {
    const REQUESTS: usize = 10_000;
    let stand = Stand::new().await;
    let bearer = format!("Bearer {}", stand.token("alice", "author"));
    let admin = stand.gateway.admin;
    let series = async || {
        let text = get(admin, "/metrics", &[]).await.unwrap().text();
        let names = text.lines().filter(|line| !line.starts_with('#'));
        names
            .map(|line| line.rsplit_once(' ').unwrap().0.to_owned())
            .collect::<BTreeSet<String>>()
    };
    let one = |number: usize| {
        // Spread over 64 bits, the same in every run.
        let odd = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let path = match number % 4 {
            0 => format!("/{odd:x}/{number}"),
            1 => format!("/agents/pr-agent/tasks/{odd:x}"),
            2 => format!("/agents/{odd:x}/.well-known/agent-card.json"),
            _ => format!("/agents/pr-agent/{odd:x}?{number}={odd}"),
        };
        let method = ["GET", "OPTIONS", "PUT", "DELETE", "PATCH"][number / 4 % 5];
        let host = match number / 20 % 3 {
            0 => format!("{odd:x}.example.com"),
            _ => "localhost".to_owned(),
        };
        let version = format!("{}.{odd}", number % 7);
        let mut fields = vec![("Host", host.as_str()), ("A2A-Version", version.as_str())];
        if (number / 60).is_multiple_of(2) {
            fields.push(("Authorization", bearer.as_str()));
        }
        request_head(method, &path, &fields, None)
    };
    let mut known = None;
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    for number in 0..REQUESTS {
        let sent = client.send(one(number).as_bytes()).await;
        // A refusal may end its connection.
        if sent.is_err() || client.response().await.is_err() {
            client = Client::connect(stand.gateway.address).await.unwrap();
        }
        // Every kind of request has come up to here.
        if number == REQUESTS / 10 {
            known = Some(series().await);
        }
    }
    let after = series().await;
    let new = after.difference(known.as_ref().unwrap());
    // A kind of record that comes once a second is over.
    let summaries = "portcullis_journal_records_total{kind=\"refusals\"}";
    let new: Vec<&String> = new.filter(|series| *series != summaries).collect();
    assert!(new.is_empty(), "{new:?}");
}
