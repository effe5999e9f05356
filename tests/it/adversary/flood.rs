//! Strangers in great number: what they cost is bounded.

use crate::calls::{RPC, Stand, message};
use crate::support::client::{Client, request_head};
use serde_json::Value;

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
