//! What operators see: health, metrics, reloads, and how a gateway stops.

use super::{Stand, yaml};
use crate::support::client::{Client, get, request_head};
use crate::support::within;
use portcullis::pipeline::ports::JournalError;
use std::time::Duration;

#[tokio::test]
async fn live_ready_and_metrics() {
    let stand = Stand::new().await;
    let admin = stand.gateway.admin;
    assert_eq!(get(admin, "/livez", &[]).await.unwrap().status, 200);
    let ready = get(admin, "/readyz", &[]).await.unwrap();
    assert_eq!(ready.status, 200, "{}", ready.text());
    assert_eq!(ready.json()["generation"], 1);
    get(stand.gateway.address, "/nowhere", &[]).await.unwrap();
    get(
        stand.gateway.address,
        "/agents/open/.well-known/agent.json",
        &[],
    )
    .await
    .unwrap();
    let metrics = get(admin, "/metrics", &[]).await.unwrap().text();
    for line in [
        r#"portcullis_requests_total{agent="none",effect="deny",operation="none",reason="no_credential",surface="none"} 1"#,
        r#"portcullis_requests_total{agent="open",effect="allow",operation="none",reason="card",surface="card"} 1"#,
        "portcullis_generation 1",
    ] {
        assert!(metrics.contains(line), "no {line} in\n{metrics}");
    }
    assert_eq!(get(admin, "/nothing", &[]).await.unwrap().status, 404);
}

#[tokio::test]
async fn a_journal_in_trouble_is_not_ready() {
    let stand = Stand::new().await;
    stand.gateway.journal.refuse(Some(JournalError::Full));
    let ready = get(stand.gateway.admin, "/readyz", &[]).await.unwrap();
    assert_eq!(ready.status, 503);
    assert_eq!(ready.json()["reasons"][0]["what"], "journal");
    stand.gateway.journal.refuse(None);
    assert_eq!(
        get(stand.gateway.admin, "/readyz", &[])
            .await
            .unwrap()
            .status,
        200
    );
}

/// One keep-alive connection sees the new generation with its next request (FC-80).
#[tokio::test]
async fn a_reload_swaps_everything_at_once_and_a_broken_one_nothing() {
    let stand = Stand::new().await;
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let card = |name: &str| format!("/agents/{name}/.well-known/agent.json");
    let mut ask = async |path: String| {
        client
            .send(request_head("GET", &path, &[], None).as_bytes())
            .await
            .unwrap();
        client.response().await.unwrap().status
    };
    assert_eq!(
        (ask(card("open")).await, ask(card("blue")).await),
        (200, 404)
    );

    let good = yaml(&stand.agent);
    stand.gateway.write(
        "gateway.yaml",
        &good.replace("publish: true", "publisch: true"),
    );
    let broken = |r: &[serde_json::Value]| r.iter().any(|r| r["result"] == "rejected");
    stand.gateway.journal.until("the rejection", broken).await;
    assert_eq!(ask(card("open")).await, 200);
    let ready = get(stand.gateway.admin, "/readyz", &[]).await.unwrap();
    assert_eq!(ready.status, 200, "a refused reload must not stop traffic");
    assert!(ready.text().contains("publisch"), "{}", ready.text());

    stand.gateway.write(
        "gateway.yaml",
        &good.replace("/agents/open", "/agents/blue"),
    );
    stand.gateway.until_generation(2).await;
    assert_eq!(
        (ask(card("open")).await, ask(card("blue")).await),
        (404, 200)
    );
    let metrics = get(stand.gateway.admin, "/metrics", &[])
        .await
        .unwrap()
        .text();
    assert!(metrics.contains("portcullis_generation 2"), "{metrics}");
    assert!(
        !get(stand.gateway.admin, "/readyz", &[])
            .await
            .unwrap()
            .text()
            .contains("publisch")
    );
    // Every record says under which generation it was made.
    get(stand.gateway.address, "/nowhere", &[]).await.unwrap();
    assert_eq!(stand.gateway.refusal(1).await["generation"], 2);
    stand.untouched();
}

#[tokio::test]
async fn stopping_closes_idle_connections_and_takes_no_more() {
    let Stand {
        agent: _agent,
        gateway,
    } = Stand::new().await;
    let mut idle = Client::connect(gateway.address).await.unwrap();
    idle.send(request_head("GET", "/nowhere", &[], None).as_bytes())
        .await
        .unwrap();
    assert_eq!(idle.response().await.unwrap().status, 401);
    let address = gateway.address;
    assert!(gateway.server.stop(Duration::from_secs(5)).await);
    assert!(idle.is_closed().await);
    within("the port to close", async {
        while Client::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Strangers cannot fill the disk: beyond a rate their refusals are counted, and none is lost.
#[tokio::test]
async fn a_flood_of_strangers_is_counted_instead_of_recorded() {
    let stand = Stand::new().await;
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    const MANY: u64 = 700;
    let request = request_head("GET", "/nowhere", &[], None);
    for _ in 0..MANY {
        client.send(request.as_bytes()).await.unwrap();
        assert_eq!(client.response().await.unwrap().status, 401);
    }
    let told = |records: &[serde_json::Value]| {
        let single = records.iter().filter(|r| r["kind"] == "refusal").count() as u64;
        let summed: u64 = records
            .iter()
            .filter(|r| r["kind"] == "refusals")
            .map(|r| r["reasons"]["no_credential"].as_u64().unwrap())
            .sum();
        (single, summed)
    };
    let records = stand
        .gateway
        .journal
        .until("all refusals", |records| {
            let (single, summed) = told(records);
            single + summed == MANY
        })
        .await;
    assert!(told(&records).1 > 0, "nothing was counted");
    stand.untouched();
}
