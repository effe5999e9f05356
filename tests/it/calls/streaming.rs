//! Field cases of event streams, FC-33 to FC-40, against a live gateway with a scripted agent.

use super::message;
use super::rest::{REST, Stand};
use crate::support::client::{Client, Head, Response, request_head};
use crate::support::fake_agent::{call, version_of};
use crate::support::issuer::Grant;
use crate::support::raw_agent::{Act, LAST_CHUNK, Then, chunk, json_answer, stream_head};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A task as the only member of a 1.0 result, wrapped for JSON-RPC.
fn event(task: &str, state: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "result": {"task": {
        "id": task, "contextId": format!("c-{task}"), "status": {"state": state}}}})
    .to_string()
}

/// Opens a stream; its head has come when this returns.
async fn open(stand: &Stand, path: &str, method: &str, body: &str) -> (Client, Head) {
    let bearer = format!("Bearer {}", stand.token(Grant::Agent));
    let mut fields = vec![
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    fields.extend_from_slice(version_of(method));
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let head = request_head("POST", path, &fields, Some(body.len()));
    client.send((head + body).as_bytes()).await.unwrap();
    let head = client.head().await.unwrap().unwrap();
    assert_eq!(head.status, 200);
    (client, head)
}

/// The last outcome, once there are `many`.
async fn outcome(stand: &Stand, many: usize) -> Value {
    let outcomes = stand.gateway.journal.of_kind("outcome", many);
    outcomes.await.pop().unwrap()
}

/// A streaming call in JSON-RPC 1.0, in front of an agent that answers with these bytes.
async fn answered(stand: &Stand, bytes: Vec<u8>) -> Response {
    stand.agent.play([Act::Answer(bytes)]);
    let body = message("SendStreamingMessage", "hello", "hi", &[]);
    stand.post(&stand.token(Grant::Agent), &body).await
}

/// What Bob and Alice get when they ask for a task that is Alice's.
async fn assert_only_alices(stand: &Stand, task: &str) {
    let before = stand.seen().len();
    let body = call("GetTask", json!({"id": task}));
    let bob = stand.token_of("bob");
    let refused = stand.post(&bob, &body).await;
    assert_eq!(refused.json()["error"]["code"], -32001, "{task}");
    assert_eq!(stand.seen().len(), before, "{task}: the agent was asked");
    let own = json!({"jsonrpc": "2.0", "id": 1, "result": {
        "id": task, "contextId": format!("c-{task}"),
        "status": {"state": "TASK_STATE_COMPLETED"}}});
    stand
        .agent
        .play([Act::Answer(json_answer(200, &own.to_string()))]);
    let alice = stand.post(&stand.token(Grant::Agent), &body).await;
    assert_eq!(alice.json()["result"]["id"], *task);
}

#[tokio::test]
async fn fc_33_events_leave_as_they_come() {
    let stand = Stand::new().await;
    let bare = |text: &str| {
        let whole: Value = serde_json::from_str(text).unwrap();
        whole["result"].to_string()
    };
    let task = event("t1", "TASK_STATE_WORKING");
    let tagged = json!({"jsonrpc": "2.0", "id": 1, "result": {"kind": "task", "id": "t1",
        "contextId": "c-t1", "status": {"state": "working"}}})
    .to_string();
    let rest = json!({"message": {"messageId": "m-1", "role": "ROLE_USER",
        "parts": [{"text": "hi"}], "metadata": {"skillId": "hello"}}});
    let follow = |method: &str| call(method, json!({"id": "t1"}));
    let ways = [
        (
            super::RPC.to_owned(),
            "SendStreamingMessage",
            message("SendStreamingMessage", "hello", "hi", &[]),
            task.clone(),
        ),
        (
            super::RPC.to_owned(),
            "SubscribeToTask",
            follow("SubscribeToTask"),
            task.clone(),
        ),
        (
            super::RPC.to_owned(),
            "message/stream",
            message("message/stream", "hello", "hi", &[]),
            tagged.clone(),
        ),
        (
            super::RPC.to_owned(),
            "tasks/resubscribe",
            follow("tasks/resubscribe"),
            tagged,
        ),
        (
            format!("{REST}/message:stream"),
            "SendStreamingMessage",
            rest.to_string(),
            bare(&task),
        ),
        (
            format!("{REST}/tasks/t1:subscribe"),
            "SubscribeToTask",
            String::new(),
            bare(&task),
        ),
    ];
    for (path, method, body, first) in ways {
        let (agent, pieces) = mpsc::unbounded_channel();
        stand.agent.play([Act::Fed(pieces, Then::Keep)]);
        agent.send(stream_head()).unwrap();
        agent.send(chunk(&format!("data: {first}\n\n"))).unwrap();
        let (mut client, mut head) = open(&stand, &path, method, &body).await;
        for (name, value) in [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-store"),
            ("x-accel-buffering", "no"),
        ] {
            assert_eq!(head.field(name), Some(value), "{path}, {method}");
        }
        // The agent says nothing more until the caller has read the first event.
        let read = client.body_until(&mut head, "\n\n").await.unwrap();
        assert_eq!(read, format!("data: {first}\n\n"), "{path}, {method}");
        let second = format!("data: {first}\n\n");
        agent.send(chunk(&second)).unwrap();
        assert_eq!(client.body_until(&mut head, "\n\n").await.unwrap(), second);
        agent.send(LAST_CHUNK.to_vec()).unwrap();
        assert_eq!(
            client.piece(&mut head).await.unwrap(),
            None,
            "{path}, {method}"
        );
    }
}

#[tokio::test]
async fn fc_34_comments_pass_and_keep_a_stream_alive() {
    let idle = |yaml: String| {
        yaml.replace(
            "limits: {body: 8MiB}",
            "limits: {body: 8MiB, idle_stream: 1s}",
        )
    };
    let stand = Stand::with(idle).await;
    let (agent, pieces) = mpsc::unbounded_channel();
    stand.agent.play([Act::Fed(pieces, Then::Keep)]);
    agent.send(stream_head()).unwrap();
    let body = message("SendStreamingMessage", "hello", "hi", &[]);
    let (mut client, mut head) = open(&stand, super::RPC, "SendStreamingMessage", &body).await;
    let began = std::time::Instant::now();
    let mut comments = [": ping\n\n", ":\n", ":\r\n"].iter().cycle();
    // Comments alone keep it open for longer than the bound on silence.
    while began.elapsed() < std::time::Duration::from_millis(1500) {
        let comment = comments.next().unwrap();
        agent.send(chunk(comment)).unwrap();
        let read = client.body_until(&mut head, comment).await.unwrap();
        assert_eq!(read, *comment);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let last = format!("data: {}\n\n", event("t1", "TASK_STATE_COMPLETED"));
    agent.send(chunk(&last)).unwrap();
    agent.send(LAST_CHUNK.to_vec()).unwrap();
    assert_eq!(client.body_until(&mut head, "\n\n").await.unwrap(), last);
    let outcome = outcome(&stand, 1).await;
    assert_eq!(outcome["response"]["events"], 1, "{outcome}");
    assert_eq!(outcome["response"]["judged"], "ok", "{outcome}");
}

#[tokio::test]
async fn fc_35_all_line_ends_are_read_and_kept() {
    let stand = Stand::new().await;
    for (number, end) in ["\n", "\r\n", "\r"].into_iter().enumerate() {
        for bytewise in [false, true] {
            let task = format!("t-{number}-{bytewise}");
            let text = format!("data: {}{end}{end}", event(&task, "TASK_STATE_WORKING"));
            let mut bytes = stream_head();
            match bytewise {
                false => bytes.extend(chunk(&text)),
                true => text
                    .chars()
                    .for_each(|c| bytes.extend(chunk(&c.to_string()))),
            }
            bytes.extend(LAST_CHUNK);
            let response = answered(&stand, bytes).await;
            assert_eq!(response.text(), text, "{end:?}");
            assert_only_alices(&stand, &task).await;
        }
    }
}

#[tokio::test]
async fn fc_36_one_event_over_several_lines() {
    let stand = Stand::new().await;
    let text = "data: {\ndata:   \"jsonrpc\":\"2.0\",\"id\":1,\ndata:   \"result\":{\"task\":{\"id\":\"t9\",\"contextId\":\"c-t9\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}}\n\n";
    let mut bytes = stream_head();
    bytes.extend(chunk(text));
    bytes.extend(LAST_CHUNK);
    let response = answered(&stand, bytes).await;
    assert_eq!(response.text(), text);
    assert_only_alices(&stand, "t9").await;
}

#[tokio::test]
async fn fc_37_a_silent_stream_is_cut_so_that_it_shows() {
    let idle = |yaml: String| {
        yaml.replace(
            "limits: {body: 8MiB}",
            "limits: {body: 8MiB, idle_stream: 1s}",
        )
    };
    let stand = Stand::with(idle).await;
    let (agent, pieces) = mpsc::unbounded_channel();
    stand.agent.play([Act::Fed(pieces, Then::Keep)]);
    agent.send(stream_head()).unwrap();
    let first = format!("data: {}\n\n", event("t1", "TASK_STATE_WORKING"));
    agent.send(chunk(&first)).unwrap();
    let body = message("SendStreamingMessage", "hello", "hi", &[]);
    let (mut client, mut head) = open(&stand, super::RPC, "SendStreamingMessage", &body).await;
    client.body_until(&mut head, "\n\n").await.unwrap();
    // Whatever is said at the end, the connection does not end properly.
    while let Ok(Some(_)) = client.piece(&mut head).await {}
    assert!(client.is_closed().await);
    let outcome = outcome(&stand, 1).await;
    assert_eq!(outcome["ended"], "idle_timeout", "{outcome}");
    assert_eq!(outcome["delivery"], "response_partial", "{outcome}");
    stand
        .agent
        .until("the agent to be left", |c| c.left == 1)
        .await;
}

#[tokio::test]
async fn fc_39_callers_who_leave_close_the_way_to_the_agent() {
    const STREAMS: u64 = 20;
    let stand = Stand::new().await;
    let body = message("SendStreamingMessage", "hello", "hi", &[]);
    let mut agents = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..STREAMS {
        let (agent, pieces) = mpsc::unbounded_channel();
        stand.agent.play([Act::Fed(pieces, Then::Keep)]);
        agent.send(stream_head()).unwrap();
        agents.push(agent);
        clients.push(open(&stand, super::RPC, "SendStreamingMessage", &body).await);
    }
    drop(clients);
    let left = |counts: &crate::support::raw_agent::Counts| counts.left == STREAMS;
    stand.agent.until("all streams to be left", left).await;
    let outcome = outcome(&stand, usize::try_from(STREAMS).unwrap()).await;
    assert_eq!(outcome["ended"], "caller_left", "{outcome}");
}

#[tokio::test]
async fn fc_40_errors_before_a_stream_are_json() {
    let stand = Stand::new().await;
    let body = message("SendStreamingMessage", "review-diff", "hi", &[]);
    let before = stand.seen().len();
    let author = stand.token_with("alice", "author");
    let refused = stand.post(&author, &body).await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.field("content-type"), Some("application/json"));
    assert_eq!(refused.json()["id"], 1);
    assert_eq!(stand.seen().len(), before, "the agent was asked");
    // The agent's own error passes as it is, and is no success.
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"no streams"}}"#;
    let response = answered(&stand, json_answer(200, error)).await;
    assert_eq!(response.text(), error);
    assert_eq!(response.field("content-type"), Some("application/json"));
    let outcome = outcome(&stand, 1).await;
    assert_eq!(outcome["response"]["judged"], "error", "{outcome}");
    assert_eq!(outcome["response"]["rpc_code"], -32004, "{outcome}");
}
