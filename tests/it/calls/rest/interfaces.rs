//! Interfaces of the REST binding: what cards and configuration say of them, and where they lead.

use super::{REST, Stand, send, task};
use crate::calls::message;
use crate::support::client::Client;
use crate::support::issuer::Grant;
use crate::support::raw_agent::{Act, json_answer};
use serde_json::json;

/// FC-02: the published address leads back to where the card's own address led.
#[tokio::test]
async fn fc_02_the_card_names_the_rest_interface_below_the_route() {
    let stand = Stand::new().await;
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let path = "/agents/pr-agent/.well-known/agent-card.json";
    let card = client.request("GET", path, &[], b"").await.unwrap().json();
    let url = format!("http://{}{REST}", stand.gateway.address);
    let rest = json!({"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"});
    assert_eq!(card["supportedInterfaces"][1], rest);
    let rest = json!({"url": url, "transport": "HTTP+JSON"});
    let additional = card["additionalInterfaces"].as_array().unwrap();
    assert!(additional.contains(&rest), "{card}");
}

/// FC-20: the agent's own base path is sent byte for byte, with what the caller asked for behind.
#[tokio::test]
async fn fc_20_the_base_path_is_sent_as_it_was_configured() {
    let stand = Stand::with(|yaml| {
        yaml.replace(
            "    skills:",
            "    interfaces:
      - {binding: JSONRPC, version: '1.0', backend: /arn%3Ax%3Ay%2Fz/}
      - {binding: HTTP+JSON, version: ['0.3', '1.0'], backend: /arn%3Ax%3Ay%2Fz/}
    skills:",
        )
    })
    .await;
    let token = stand.token(Grant::Agent);
    let rest = json!({"task": task()});
    let rpc = json!({"jsonrpc": "2.0", "id": 1, "result": rest});
    for (below, body, reply, sent) in [
        ("/message:send", send("parts"), &rest, "/message:send"),
        (
            "/v1/message:send",
            send("content"),
            &rest,
            "/v1/message:send",
        ),
        ("", message("SendMessage", "hello", "hi", &[]), &rpc, "/"),
    ] {
        let answer = Act::Answer(json_answer(200, &reply.to_string()));
        stand.agent.play([answer]);
        let response = stand
            .send(&token, &format!("/agents/pr-agent{below}"), &body)
            .await;
        assert_eq!(response.status, 200, "{below}: {}", response.text());
        let line = format!("POST /arn%3Ax%3Ay%2Fz{sent} HTTP/1.1");
        assert_eq!(stand.last().fields().0, line);
    }
}

/// An agent of 0.3 that speaks REST only.
#[tokio::test]
async fn an_older_card_may_offer_rest_alone() {
    let older = |port| {
        json!({
            "name": "raw", "description": "raw", "version": "1", "protocolVersion": "0.3.0",
            "url": format!("http://127.0.0.1:{port}/a2a/rest/"), "preferredTransport": "HTTP+JSON",
            "capabilities": {}, "skills": [],
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        })
    };
    let stand = Stand::of(older, |yaml| yaml).await;
    let path = "/agents/pr-agent/.well-known/agent-card.json";
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let card = client.request("GET", path, &[], b"").await.unwrap().json();
    let url = format!("http://{}{REST}/", stand.gateway.address);
    assert_eq!(
        (&card["url"], &card["preferredTransport"]),
        (&json!(url), &json!("HTTP+JSON"))
    );
    // What the card does not offer is refused in the form of the path's own version.
    let newer = stand
        .ask("POST", "/message:send", &[], &send("parts"))
        .await;
    assert_eq!(newer.status, 400);
    let details = &newer.json()["error"]["details"][0];
    assert_eq!(details["reason"], "VERSION_NOT_SUPPORTED");
    let declared = [("A2A-Version", "1.0")];
    let mixed = stand
        .ask("POST", "/v1/message:send", &declared, &send("content"))
        .await;
    assert_eq!(mixed.status, 400);
    assert_eq!(mixed.json()["type"], "VersionNotSupportedError");
    assert_eq!(stand.seen(), []);
    let reply = json!({"task": task()}).to_string();
    stand.agent.play([Act::Answer(json_answer(200, &reply))]);
    let response = stand
        .ask("POST", "/v1/message:send", &[], &send("content"))
        .await;
    assert_eq!(response.status, 200, "{}", response.text());
    let line = "POST /a2a/rest/v1/message:send HTTP/1.1";
    assert_eq!(stand.last().fields().0, line);
}

/// A path that is both an operation's and declared as the backend's own needs the full grant.
#[tokio::test]
async fn a_card_never_lowers_the_surface_of_a_declared_path() {
    let declared = "backend_paths:\n      - {path: '/a2a/rest/message:send', methods: [POST]}";
    let stand = Stand::with(|yaml| yaml.replace("backend_paths:", declared)).await;
    let refused = stand
        .ask("POST", "/message:send", &[], &send("parts"))
        .await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert_eq!(stand.seen(), []);
    let reply = json!({"task": task()}).to_string();
    stand.agent.play([Act::Answer(json_answer(200, &reply))]);
    let full = format!("Bearer {}", stand.token(Grant::Full));
    let fields = [
        ("Authorization", &*full),
        ("Content-Type", "application/json"),
    ];
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let path = format!("{REST}/message:send");
    let body = send("parts");
    let passed = client
        .request("POST", &path, &fields, body.as_bytes())
        .await;
    assert_eq!((passed.unwrap().status, stand.seen().len()), (200, 1));
}
