//! Replies with which an agent, or what pretends to be one, would harm a caller or the gateway.

use crate::calls::rig::{Rig, task};
use crate::calls::{RPC, message};
use crate::support::client::request_head;
use crate::support::issuer::Grant;
use crate::support::raw_agent::{Act, LAST_CHUNK, chunk, json_answer, stream_head};
use serde_json::{Value, json};

/// A reply to HEAD has no body, whatever its length says: nobody waits for one.
#[tokio::test]
async fn a_reply_to_head_ends_with_its_header() {
    let head = |fields: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n{fields}\r\n\r\n").into_bytes()
    };
    let rig = Rig::with(
        [
            Act::Answer(head("Content-Length: 1000")),
            Act::Answer(head("Transfer-Encoding: chunked")),
            Act::Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()),
        ],
        |yaml| yaml.replace("/config, methods: [GET]", "/config, methods: [GET, HEAD]"),
    )
    .await;
    let bearer = format!("Bearer {}", rig.token("carol", Grant::Full));
    let mut client = rig.client().await;
    let request = |method| {
        let fields = [("Authorization", bearer.as_str())];
        request_head(method, "/agents/pr-agent/config", &fields, None)
    };
    for length in [Some("1000"), None] {
        client.send(request("HEAD").as_bytes()).await.unwrap();
        let answer = client.head().await.unwrap().unwrap();
        assert_eq!(
            (answer.status, answer.field("content-length")),
            (200, length)
        );
    }
    // The caller's connection goes on behind the header.
    client.send(request("GET").as_bytes()).await.unwrap();
    assert_eq!(client.response().await.unwrap().text(), "ok");
    for outcome in rig.gateway.journal.of_kind("outcome", 3).await {
        assert_eq!(outcome["delivery"], "responded", "{outcome}");
    }
}

/// Folded fields (RFC 9112 section 5.2) and the gateway's own names never reach a caller.
#[tokio::test]
async fn no_field_of_a_reply_breaks_out_of_its_line() {
    let body = task("t-1", "c-1");
    let reply = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Folded: a\r\n Set-Cookie: b=c\r\n\
         portcullis-request-id: forged\r\nPortcullis_Assertion: forged\r\n\
         Refresh: 0;url=http://agent.internal/\r\nX-Kept: yes\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let rig = Rig::new([Act::Answer(reply.into_bytes())]).await;
    let mut client = rig.begin("alice", "SendMessage").await;
    let head = client.head().await.unwrap().unwrap();
    let raw = String::from_utf8(head.raw.clone()).unwrap().to_lowercase();
    for never in [
        "\r\n ",
        "\r\n\t",
        "\nset-cookie",
        "forged",
        "agent.internal",
    ] {
        assert!(!raw.contains(never), "`{}` in {raw}", never.escape_debug());
    }
    assert!(raw.contains("x-kept: yes"), "{raw}");
}

/// Both framings at once, two lengths, or a length that is none: the reply is framed as one thing
/// or it is no reply.
#[tokio::test]
async fn a_reply_of_unclear_length_desynchronises_nobody() {
    let body = task("t-1", "c-1");
    let reply = |fields: &str, body: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{fields}\r\n\r\n{body}")
            .into_bytes()
    };
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let n = body.len();
    let rig = Rig::new([
        Act::AnswerThenClose(reply(
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            &chunked,
        )),
        Act::AnswerThenClose(reply(
            &format!("Content-Length: 5\r\nContent-Length: {n}"),
            &body,
        )),
        Act::AnswerThenClose(reply(&format!("Content-Length: +{n}"), &body)),
        Act::AnswerThenClose(reply("Content-Length: 18446744073709551616", &body)),
        Act::AnswerThenClose(reply(&format!("Content-Length: {}", n + 5), &body)),
        Act::AnswerThenClose(
            b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n".to_vec(),
        ),
        Act::AnswerThenClose(b"not http at all\r\n\r\n".to_vec()),
    ])
    .await;
    let token = rig.token("alice", Grant::Agent);
    let call = message("SendMessage", "hello", "hi", &[]);
    let mut client = rig.client().await;
    for status in [200, 502, 502, 502, 502, 502, 502] {
        let version = [("A2A-Version", "1.0")];
        let answer = client
            .post_json(RPC, Some(&token), &version, &call)
            .await
            .unwrap();
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(answer.json()["id"], 1);
    }
    assert_eq!(rig.calls(), 7, "nothing was sent twice");
}

/// A large reply streams, but its end waits for its ids: of another caller's task the end never
/// comes, and the connection shows that it was broken off.
#[tokio::test]
async fn a_large_reply_about_anothers_task_is_broken_off() {
    let large = |id: &str, context: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "result": {"task": {
            "artifacts": [{"artifactId": "a", "parts": [{"text": "x".repeat(2 << 20)}]}],
            "status": {"state": "TASK_STATE_COMPLETED"}, "id": id, "contextId": context}}})
        .to_string()
    };
    let rig = Rig::new([
        Act::Answer(json_answer(200, &large("t-alice", "c-alice"))),
        Act::Answer(json_answer(200, &large("t-alice", "c-bob"))),
    ])
    .await;
    let first = rig.ask("alice", "SendMessage").await;
    assert_eq!(first.json()["result"]["task"]["id"], "t-alice");
    let mut client = rig.begin("bob", "SendMessage").await;
    let mut head = client.head().await.unwrap().unwrap();
    let mut body = Vec::new();
    let proper_end = loop {
        match client.piece(&mut head).await {
            Ok(Some(piece)) => body.extend(piece),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    assert!(
        !proper_end
            || serde_json::from_slice::<Value>(&body).is_ok_and(|v| v["error"]["code"] == -32006)
    );
    assert!(!String::from_utf8_lossy(&body).contains("t-alice"));
    let outcomes = rig.gateway.journal.of_kind("outcome", 2).await;
    assert_eq!(outcomes[1]["response"]["malformed"], "foreign_id");
    assert_eq!(outcomes[1]["ended"], "malformed");
}

fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// Events that came with a bad one, before it, are the caller's; those behind it are nobody's.
#[tokio::test]
async fn only_what_follows_a_bad_event_is_withheld() {
    let update = json!({"jsonrpc": "2.0", "id": 1, "result": {"statusUpdate": {
        "taskId": "t-other", "contextId": "c-1", "status": {"state": "TASK_STATE_WORKING"}}}});
    let mut stream = stream_head();
    let events = [
        event(&task("t-1", "c-1")),
        event(&update.to_string()),
        event(&task("t-1", "c-1")).replace("COMPLETED", "FAILED"),
    ];
    stream.extend(chunk(&events.concat()));
    stream.extend(LAST_CHUNK);
    let rig = Rig::new([Act::Answer(stream)]).await;
    let answer = rig.ask("alice", "SendStreamingMessage").await;
    let text = answer.text();
    assert!(text.starts_with(&events[0]), "{text}");
    assert!(
        !text.contains("t-other") && !text.contains("FAILED"),
        "{text}"
    );
    let last = text[events[0].len()..]
        .strip_prefix("event: error\ndata: ")
        .unwrap();
    let last: Value = serde_json::from_str(last.trim_end()).unwrap();
    assert_eq!(
        (&last["error"]["code"], &last["id"]),
        (&json!(-32006), &json!(1))
    );
}

/// Of an event too large to be held the beginning is out before its ids are known. The blank line
/// that would make a client act on it never comes, not even as part of an error event.
#[tokio::test]
async fn a_large_event_about_anothers_task_is_never_completed() {
    let large = json!({"jsonrpc": "2.0", "id": 1, "result": {"task": {
        "artifacts": [{"artifactId": "a", "parts": [{"text": "x".repeat(5 << 20)}]}],
        "status": {"state": "TASK_STATE_COMPLETED"}, "id": "t-alice", "contextId": "c-bob"}}});
    let mut stream = stream_head();
    stream.extend(chunk(&event(&large.to_string())));
    stream.extend(LAST_CHUNK);
    let rig = Rig::new([
        Act::Answer(json_answer(200, &task("t-alice", "c-alice"))),
        Act::Answer(stream),
    ])
    .await;
    assert_eq!(rig.ask("alice", "SendMessage").await.status, 200);
    let mut client = rig.begin("bob", "SendStreamingMessage").await;
    let mut head = client.head().await.unwrap().unwrap();
    let mut body = Vec::new();
    while let Ok(Some(piece)) = client.piece(&mut head).await {
        body.extend(piece);
    }
    assert!(body.len() > 4 << 20, "{}", body.len());
    assert!(
        !body.windows(2).any(|w| w == b"\n\n"),
        "the event was completed"
    );
    let outcomes = rig.gateway.journal.of_kind("outcome", 2).await;
    assert_eq!(outcomes[1]["response"]["malformed"], "foreign_id");
}

/// A status that has no body ends with its header, and what the agent sends all the same is
/// nobody's.
#[tokio::test]
async fn a_status_without_a_body_has_none() {
    let with_body =
        |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\nEVIL!").into_bytes();
    let rig = Rig::new([
        Act::Answer(with_body("304 Not Modified")),
        Act::Answer(with_body("204 No Content")),
        Act::Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()),
    ])
    .await;
    let bearer = format!("Bearer {}", rig.token("carol", Grant::Full));
    let fields = [("Authorization", bearer.as_str())];
    let mut client = rig.client().await;
    for (status, body) in [(304, ""), (204, ""), (200, "ok")] {
        let head = request_head("GET", "/agents/pr-agent/config", &fields, None);
        client.send(head.as_bytes()).await.unwrap();
        let answer = client.response().await.unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (status, body));
    }
}
