//! Requests that are not acceptable HTTP, hosts that are not ours, and paths that trick.

use super::Stand;
use crate::support::client::{Client, get};

/// Raw bytes, the status they get, and whether the connection is closed.
const TABLE: &[(&str, u16)] = &[
    ("GET / HTTP/1.1\r\n\r\n", 400),
    (
        "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        400,
    ),
    (
        "GET http://evil.example.com/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        400,
    ),
    (
        "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        405,
    ),
    ("GET / HTTP/1.1\nHost: localhost\r\n\r\n", 400),
    (
        "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    (
        "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        400,
    ),
    (
        "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        400,
    ),
    (
        "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2, 2\r\n\r\n{}",
        400,
    ),
    (
        "POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    (
        "POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: identity\r\n\r\n",
        400,
    ),
    (
        "POST /a HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    (
        "GET / HTTP/1.1\r\nHost: localhost\r\nBad Name: x\r\n\r\n",
        400,
    ),
    ("\u{1}\u{2}\u{3}\r\n\r\n", 400),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n", 421),
    (
        "GET /agents/open/.well-known/agent-card.json HTTP/1.1\r\nHost: evil.example.com\r\n\r\n",
        421,
    ),
    (
        "GET /agents/open/../hidden HTTP/1.1\r\nHost: localhost\r\n\r\n",
        400,
    ),
    (
        "GET /agents/open/%2e%2e/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n",
        400,
    ),
    ("GET //agents/open HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (
        "GET /agents/open%2fmessage HTTP/1.1\r\nHost: localhost\r\n\r\n",
        400,
    ),
    (
        "GET /agents/open/..;/admin HTTP/1.1\r\nHost: localhost\r\n\r\n",
        400,
    ),
    (
        "GET /agents/open/%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        400,
    ),
    ("GET /agents\\open HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (
        "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: authorization\r\n\r\n",
        400,
    ),
    (
        "POST / HTTP/1.1\r\nHost: localhost\r\nExpect: something\r\nContent-Length: 0\r\n\r\n",
        400,
    ),
];

#[tokio::test]
async fn unacceptable_requests_are_answered_and_recorded() {
    let stand = Stand::new().await;
    for (many, (raw, status)) in TABLE.iter().enumerate() {
        let shown = raw.escape_debug().to_string();
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        client.send(raw.as_bytes()).await.unwrap();
        let response = client
            .response()
            .await
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert_eq!(response.status, *status, "{shown}");
        assert!(
            !response.text().contains("evil"),
            "{shown}: {}",
            response.text()
        );
        let record = stand.gateway.refusal(many + 1).await;
        assert_eq!(record["http_status"], *status, "{shown}");
        assert_eq!(
            (&record["delivery"], &record["reached"]),
            (&"not_attempted".into(), &"no".into())
        );
        stand.untouched();
    }
}

#[tokio::test]
async fn too_many_and_too_large_headers() {
    let stand = Stand::new().await;
    let many = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "X: y\r\n".repeat(120)
    );
    let large = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "y".repeat(40_000)
    );
    for raw in [many, large] {
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        client.send(raw.as_bytes()).await.unwrap();
        assert_eq!(client.response().await.unwrap().status, 431);
    }
    stand.untouched();
}

/// The same answer for every path that needs a token, whether it exists or not.
#[tokio::test]
async fn without_a_token_every_path_is_the_same() {
    let stand = Stand::new().await;
    let mut bodies = Vec::new();
    for path in [
        "/",
        "/agents/open/a2a",
        "/agents/hidden/a2a",
        "/agents/hidden/config",
        "/nowhere",
    ] {
        let response = get(stand.gateway.address, path, &[]).await.unwrap();
        assert_eq!(response.status, 401, "{path}");
        assert_eq!(
            response.field("www-authenticate"),
            Some("Bearer realm=\"portcullis\"")
        );
        assert_eq!(response.field("cache-control"), Some("no-store"));
        assert_eq!(response.field("location"), None);
        bodies.push(response.body);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
    stand.untouched();
}

/// A refusal does not wait for the body; a small rest is drained and the connection lives on.
#[tokio::test]
async fn a_refused_body_is_drained_or_the_connection_closed() {
    let stand = Stand::new().await;
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let head = |length: usize| {
        format!("POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n")
    };
    client.send(head(100_000).as_bytes()).await.unwrap();
    let first = client.response().await.unwrap();
    assert_eq!(
        (first.status, first.field("connection")),
        (401, Some("keep-alive"))
    );
    client.send(&vec![b'x'; 100_000]).await.unwrap();
    client.send(head(50_000_000).as_bytes()).await.unwrap();
    let second = client.response().await.unwrap();
    assert_eq!(
        (second.status, second.field("connection")),
        (401, Some("close"))
    );
    stand.untouched();
}
