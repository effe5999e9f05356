//! Chunked bodies that two parsers would end at different places (RFC 9112 section 7.1).

use crate::calls::{RPC, Stand, message};
use crate::support::client::{Client, request_head};
use crate::support::issuer::Grant;
use serde_json::Value;

/// The head of a call whose body is in chunks.
fn head(stand: &Stand) -> String {
    let bearer = format!("Bearer {}", stand.reviewer());
    let fields = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("A2A-Version", "1.0"),
        ("Transfer-Encoding", "chunked"),
    ];
    request_head("POST", RPC, &fields, None)
}

/// Each is refused or read as every parser reads it; none leaves a second request behind.
#[tokio::test]
async fn an_unclear_chunk_ends_the_connection() {
    let stand = Stand::new().await;
    let head = head(&stand);
    let full = stand.issuer.token("carol", Grant::Full, Value::Null);
    let full = format!("Bearer {full}");
    let smuggled = request_head(
        "GET",
        "/agents/pr-agent/config",
        &[("Authorization", &full)],
        None,
    );
    let body = message("SendMessage", "hello", "hi", &[]);
    let n = body.len();
    for framed in [
        format!("{n:x}\n{body}\r\n0\r\n\r\n"),
        format!("{n:x}\r\n{body}\n0\r\n\r\n"),
        format!("{n:x}\r\n{body}XX0\r\n\r\n"),
        format!("{n:x}\r\n{body}\r\n0\n\n"),
        format!("0x{n:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("+{n:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("-1\r\n{body}\r\n0\r\n\r\n"),
        format!(" {n:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("\r\n{n:x}\r\n{body}\r\n0\r\n\r\n"),
        "\r\n".to_owned(),
        "\r\n\r\n".to_owned(),
        "1\r\n{\r\n\r\n\r\n".to_owned(),
        format!("10000000000000{n:04x}\r\n{body}\r\n0\r\n\r\n"),
        format!("ffffffffffffffff\r\n{body}\r\n0\r\n\r\n"),
        format!("g\r\n{body}\r\n0\r\n\r\n"),
    ] {
        let shown = framed.escape_debug().to_string();
        let before = stand.counted();
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        client
            .send((head.clone() + &framed + &smuggled).as_bytes())
            .await
            .unwrap();
        let _ = client.half_close().await;
        let first = client.response().await;
        if let Ok(first) = &first {
            assert!(
                [400, 413].contains(&first.status) || first.text().contains("-32700"),
                "{shown}: {}",
                first.text()
            );
            assert_eq!(first.field("connection"), Some("close"), "{shown}");
        }
        assert!(client.response().await.is_err(), "{shown}: a second answer");
        assert_eq!(stand.counted(), before, "{shown}: the agent was touched");
    }
}

/// What every parser reads alike is read; trailers go nowhere.
#[tokio::test]
async fn extensions_pass_and_trailers_stay() {
    let stand = Stand::new().await;
    let head = head(&stand);
    let body = message("SendMessage", "hello", "hi", &[]);
    let n = body.len();
    for framed in [
        format!("{n:X};a=b\r\n{body}\r\n0;c\r\n\r\n"),
        format!("{n:x}\r\n{body}\r\n000\r\nA2A-Version: 0.3\r\nX-Trailer: yes\r\n\r\n"),
    ] {
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        client
            .send((head.clone() + &framed).as_bytes())
            .await
            .unwrap();
        let answer = client.response().await.unwrap();
        assert_eq!(answer.status, 200, "{framed}: {}", answer.text());
    }
    for seen in stand.agent.requests() {
        let head = String::from_utf8(seen.head.clone()).unwrap().to_lowercase();
        assert!(
            !head.contains("trailer") && !head.contains("chunked"),
            "{head}"
        );
        assert!(head.contains("a2a-version: 1.0"), "{head}");
    }
}

/// A good chunked call is answered; what came together with it is not taken for a request.
#[tokio::test]
async fn nothing_that_comes_with_a_chunked_body_is_a_request() {
    let stand = Stand::new().await;
    let head = head(&stand);
    let body = message("SendMessage", "hello", "hi", &[]);
    let one = format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    client.send(format!("{one}{one}").as_bytes()).await.unwrap();
    assert_eq!(client.response().await.unwrap().status, 200);
    assert!(client.is_closed().await);
    assert_eq!(stand.counted(), (1, 1));
}
