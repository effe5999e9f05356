//! What a connection may cost: slow heads, idle connections, and how many there may be.

use crate::proxy::app::App;
use crate::proxy::door::Door;
use crate::proxy::limits::Connections;
use crate::proxy::{Links, Stopping, listen};
use crate::test_support::client::{Client, request_head};
use crate::test_support::gates::{backend_at, gate_for};
use crate::test_support::memory_journal::MemoryJournal;
use crate::test_support::{loopback, within};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The public application behind its door, with these bounds.
fn start(connections: Connections) -> (SocketAddr, watch::Sender<bool>, Stopping) {
    let gate = gate_for(
        backend_at(loopback()),
        super::quick(),
        Arc::new(MemoryJournal::default()),
    );
    let stopping = Stopping::new();
    let app = App {
        listener: gate.live().snapshot.listeners[0].clone(),
        index: 0,
        ready: Arc::new(|| true),
        gate,
        links: Arc::new(Links::new()),
        connections,
        stopping: stopping.clone(),
    };
    let bound = listen::bind(loopback()).unwrap();
    let address = bound.address;
    let (stop, stopped) = watch::channel(false);
    bound.serve(Door::new(app), stopped);
    (address, stop, stopping)
}

const SHORT: Connections = Connections {
    head: Duration::from_millis(600),
    idle: 1,
    open: 3,
};

/// Bytes that trickle in do not move the deadline: it is for the whole head.
#[tokio::test]
async fn a_slow_head_is_given_up() {
    let (address, _stop, _) = start(SHORT);
    for slow in [
        "",
        "G",
        "GET /x HTTP/1.1\r\nHost: localhost\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM",
    ] {
        let mut client = Client::connect(address).await.unwrap();
        client.send(slow.as_bytes()).await.unwrap();
        if slow.is_empty() || slow.starts_with("PRI") {
            within("the connection to close", client.is_closed()).await;
            continue;
        }
        let mut pace = tokio::time::interval(Duration::from_millis(20));
        within("the connection to close", async {
            while client.send(b"X").await.is_ok() {
                pace.tick().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let (address, _stop, _) = start(SHORT);
    let mut client = Client::connect(address).await.unwrap();
    client
        .send(request_head("GET", "/x", &[], None).as_bytes())
        .await
        .unwrap();
    let response = client.response().await.unwrap();
    assert_eq!(
        (response.status, response.field("connection")),
        (401, Some("keep-alive"))
    );
    assert!(client.is_closed().await);
}

/// Over the cap a connection is closed at once, and a place that becomes free is used again.
#[tokio::test]
async fn connections_are_capped() {
    let (address, _stop, _) = start(Connections {
        head: Duration::from_secs(20),
        ..SHORT
    });
    let ask = request_head("GET", "/x", &[], None);
    let mut open = Vec::new();
    for _ in 0..SHORT.open {
        let mut client = Client::connect(address).await.unwrap();
        client.send(ask.as_bytes()).await.unwrap();
        assert_eq!(client.response().await.unwrap().status, 401);
        open.push(client);
    }
    let mut over = Client::connect(address).await.unwrap();
    assert!(over.is_closed().await);
    open.pop();
    within("a free place", async {
        loop {
            let mut client = Client::connect(address).await.unwrap();
            let sent = client.send(ask.as_bytes()).await;
            if sent.is_ok() && client.response().await.is_ok_and(|r| r.status == 401) {
                return;
            }
        }
    })
    .await;
}
