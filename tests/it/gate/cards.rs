//! Cards as strangers see them.

use super::Stand;
use crate::support::client::{Client, Response, get, request_head};
use crate::support::gateway::Gateway;
use crate::support::raw_agent::{Act, RawAgent, RefusingPort, json_answer};

const CARD: &str = "/agents/open/.well-known/agent-card.json";

/// Everything that a caller can see but for the request id and the date.
fn visible(response: &Response) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let mut fields: Vec<_> = response
        .fields
        .iter()
        .filter(|(name, _)| {
            !name.eq_ignore_ascii_case("date")
                && !name.eq_ignore_ascii_case("portcullis-request-id")
        })
        .cloned()
        .collect();
    fields.sort();
    (response.status, fields, response.body.clone())
}

#[tokio::test]
async fn both_names_give_the_same_rewritten_card() {
    let stand = Stand::new().await;
    let address = stand.gateway.address;
    let card = get(address, CARD, &[]).await.unwrap();
    let old = get(address, "/agents/open/.well-known/agent.json", &[])
        .await
        .unwrap();
    assert_eq!(card.status, 200);
    assert_eq!(visible(&card), visible(&old));
    let text = card.text();
    let backend = stand.agent.address().to_string();
    assert!(!text.contains(&backend), "{backend} in {text}");
    let public = format!("http://{address}/agents/open/a2a");
    assert_eq!(
        card.json()["supportedInterfaces"][0]["url"],
        public.as_str()
    );
    assert_eq!(card.json()["url"], public.as_str());
    assert!(text.contains("earer"), "our scheme is not declared: {text}");
    stand.untouched();
}

#[tokio::test]
async fn validators_are_our_own() {
    let stand = Stand::new().await;
    let address = stand.gateway.address;
    let first = get(address, CARD, &[]).await.unwrap();
    let etag = first.field("etag").unwrap().to_owned();
    for list in [format!("\"x\", W/{etag}"), "*".to_owned(), etag.clone()] {
        let again = get(address, CARD, &[("If-None-Match", &list)])
            .await
            .unwrap();
        assert_eq!((again.status, again.body.len()), (304, 0), "{list}");
        assert_eq!(again.field("etag"), Some(etag.as_str()));
    }
    let other = get(address, CARD, &[("If-None-Match", "\"other\"")])
        .await
        .unwrap();
    assert_eq!(other.status, 200);
    let mut client = Client::connect(address).await.unwrap();
    client
        .send(request_head("HEAD", CARD, &[], None).as_bytes())
        .await
        .unwrap();
    let head = client.head().await.unwrap().unwrap();
    assert_eq!(head.status, 200);
    assert_eq!(
        head.field("content-length"),
        Some(first.body.len().to_string().as_str())
    );
    // Nothing follows the head: the connection goes on with the next request.
    client
        .send(request_head("GET", CARD, &[], None).as_bytes())
        .await
        .unwrap();
    assert_eq!(client.response().await.unwrap().body, first.body);
    stand.untouched();
}

#[tokio::test]
async fn a_hidden_card_is_a_path_that_never_existed() {
    let stand = Stand::new().await;
    let address = stand.gateway.address;
    let unknown = get(address, "/agents/nobody/.well-known/agent-card.json", &[])
        .await
        .unwrap();
    assert_eq!(unknown.status, 404);
    for path in [
        "/agents/hidden/.well-known/agent-card.json",
        "/agents/hidden/.well-known/agent.json",
        "/.well-known/agent-card.json",
        "/agents/open/a2a/.well-known/agent-card.json",
        "/x/y/z/.well-known/agent.json",
    ] {
        let response = get(address, path, &[]).await.unwrap();
        assert_eq!(visible(&response), visible(&unknown), "{path}");
    }
    stand.untouched();
}

#[tokio::test]
async fn only_the_exact_card_path_is_public() {
    let stand = Stand::new().await;
    for (method, path) in [
        ("POST", CARD),
        ("DELETE", CARD),
        ("GET", "/.well-knownprivate"),
        ("GET", "/agents/open/.well-known/agent-card.jsonx"),
        ("GET", "/agents/open/.well-known/"),
    ] {
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        let response = client.request(method, path, &[], b"").await.unwrap();
        assert_eq!(response.status, 401, "{method} {path}");
    }
    stand.untouched();
}

fn in_front_of(agent: std::net::SocketAddr) -> String {
    format!(
        "version: 1
listeners: [{{name: public, bind: PUBLIC, public_url: http://PUBLIC}}]
admin: {{bind: 127.0.0.1:0}}
agents:
  - {{name: open, route: {{path: /agents/open}}, publish: true, backend: {{url: http://{agent}}}, skills: [hello]}}
audit: {{journal: {{dir: journal}}}}
"
    )
}

#[tokio::test]
async fn an_unreadable_card_is_withheld() {
    for answer in [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>".to_vec(),
        json_answer(200, "[]"),
        json_answer(200, r#"{"name":"w","name":"v","url":"http://x/"}"#),
        json_answer(200, r#"{"name":"w","url":"http://other.example.com/"}"#),
        b"HTTP/1.1 302 Found\r\nLocation: http://internal/\r\nContent-Length: 0\r\n\r\n".to_vec(),
    ] {
        let agent = RawAgent::start([Act::Answer(answer)]).await;
        let gateway = Gateway::start(&in_front_of(agent.address));
        gateway
            .journal
            .until("the fetch", |r| r.iter().any(|r| r["kind"] == "fetch"))
            .await;
        let response = get(gateway.address, CARD, &[]).await.unwrap();
        assert_eq!(response.status, 502, "{}", response.text());
        assert!(!response.text().contains("internal") && !response.text().contains("html"));
        let seen = agent.counts().seen;
        assert_eq!(seen[0].field("portcullis-purpose").as_deref(), Some("card"));
    }
}

#[tokio::test]
async fn a_card_that_is_not_there_yet_is_unavailable() {
    let port = RefusingPort::new();
    let gateway = Gateway::start(&in_front_of(port.address));
    gateway
        .journal
        .until("the fetch", |r| r.iter().any(|r| r["kind"] == "fetch"))
        .await;
    let response = get(gateway.address, CARD, &[]).await.unwrap();
    assert_eq!(response.status, 503);
    let retry: u64 = response.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&retry));
}

#[tokio::test]
async fn a_new_public_url_is_another_card() {
    let stand = Stand::new().await;
    let first = get(stand.gateway.address, CARD, &[]).await.unwrap();
    let etag = first.field("etag").unwrap().to_owned();
    let changed = super::yaml(&stand.agent).replace(
        "public_url: http://PUBLIC",
        "public_url: http://agents.example.com",
    );
    stand.gateway.write("gateway.yaml", &changed);
    stand.gateway.until_generation(2).await;
    let second = get(stand.gateway.address, CARD, &[("If-None-Match", &etag)])
        .await
        .unwrap();
    assert_eq!(second.status, 200);
    assert!(
        second
            .text()
            .contains("http://agents.example.com/agents/open/a2a")
    );
    stand.untouched();
}
