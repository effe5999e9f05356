//! The agents that other tests trust, tested themselves.

use crate::support::client::{self, Client, request_head};
use crate::support::fake_agent::{self, call, message, version_of};
use crate::support::http1::{chunked, sha256};
use crate::support::raw_agent::{self, Act, RawAgent, RefusingPort, Then, json_answer};
use portcullis::cli::demo_agent::{CardShape, DemoAgent, GREETING};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;

async fn ask(agent: &DemoAgent, method: &str, body: &str) -> Value {
    let answer = client::post_json(agent.address(), "/a2a", None, version_of(method), body).await;
    answer.unwrap().json()
}

async fn say(agent: &DemoAgent, method: &str, text: &str, ids: &[(&str, &str)]) -> Value {
    ask(agent, method, &message(method, text, ids)).await
}

#[tokio::test]
async fn the_honest_agent_greets_in_both_versions() {
    let agent = fake_agent::start().await;
    for (method, task, state) in [
        ("SendMessage", "/result/task", "TASK_STATE_COMPLETED"),
        ("message/send", "/result", "completed"),
    ] {
        let reply = say(&agent, method, "hi", &[]).await;
        let task = reply.pointer(task).unwrap();
        assert_eq!(task["status"]["state"], state, "{method}");
        assert!(task["id"].is_string() && task["contextId"].is_string());
        let said = task.pointer("/artifacts/0/parts/0/text").unwrap();
        assert_eq!(said, GREETING, "{method}");
    }
    let counters = agent.counters();
    assert_eq!((counters.requests(), counters.executions()), (2, 2));
    assert_eq!(agent.requests().len(), 2);
    assert!(
        agent.requests()[0]
            .head
            .starts_with(b"POST /a2a HTTP/1.1\r\n")
    );
    agent.stop().await;
}

#[tokio::test]
async fn the_honest_agent_follows_tasks() {
    for (send, get, cancel, task) in [
        ("SendMessage", "GetTask", "CancelTask", "/result/task"),
        ("message/send", "tasks/get", "tasks/cancel", "/result"),
    ] {
        let agent = fake_agent::start().await;
        let first = say(&agent, send, "ask", &[]).await;
        let first = first.pointer(task).unwrap();
        let (id, context) = (
            first["id"].as_str().unwrap(),
            first["contextId"].as_str().unwrap(),
        );
        let next = say(
            &agent,
            send,
            "wait",
            &[("taskId", id), ("contextId", context)],
        )
        .await;
        assert_eq!(
            next.pointer(task).unwrap()["metadata"]["turns"],
            2,
            "{send}"
        );
        let other = say(
            &agent,
            send,
            "hi",
            &[("taskId", id), ("contextId", "other")],
        )
        .await;
        assert_eq!(other["error"]["code"], -32602, "{send}");
        let by_id = call(get, json!({"id": id}));
        assert_eq!(ask(&agent, get, &by_id).await["result"]["id"], id);
        let gone = ask(&agent, cancel, &call(cancel, json!({"id": id}))).await;
        assert!(
            gone["result"]["status"]["state"]
                .as_str()
                .unwrap()
                .to_lowercase()
                .ends_with("canceled")
        );
        let again = ask(&agent, cancel, &call(cancel, json!({"id": id}))).await;
        assert_eq!(again["error"]["code"], -32002);
        let unknown = ask(&agent, get, &call(get, json!({"id": "nobody's"}))).await;
        assert_eq!(unknown["error"]["code"], -32001);
        let continued = say(&agent, send, "hi", &[("taskId", id)]).await;
        assert_eq!(continued["error"]["code"], -32004);
        assert_eq!(
            agent.counters().executions(),
            2,
            "only messages acted on count"
        );
    }
}

#[tokio::test]
async fn the_honest_agent_streams_and_is_watched() {
    for (stream, watch, cancel, working) in [
        (
            "SendStreamingMessage",
            "SubscribeToTask",
            "CancelTask",
            "TASK_STATE_WORKING",
        ),
        (
            "message/stream",
            "tasks/resubscribe",
            "tasks/cancel",
            "\"working\"",
        ),
    ] {
        let agent = fake_agent::start().await;
        let answer = say_streaming(&agent, stream, &message(stream, "hi", &[])).await;
        let (mut client, mut head) = answer;
        let mut events = String::new();
        while let Some(piece) = client.piece(&mut head).await.unwrap() {
            events += std::str::from_utf8(&piece).unwrap();
        }
        assert_eq!(events.matches("data: {\"jsonrpc\"").count(), 4, "{events}");
        assert!(
            events.contains(working) && events.contains(GREETING),
            "{events}"
        );

        let (mut open, mut head) =
            say_streaming(&agent, stream, &message(stream, "wait", &[])).await;
        open.body_until(&mut head, working).await.unwrap();
        let by_id = json!({"id": "task-2"});
        let (mut watcher, mut watched) =
            say_streaming(&agent, watch, &call(watch, by_id.clone())).await;
        watcher.body_until(&mut watched, "task-2").await.unwrap();
        ask(&agent, cancel, &call(cancel, by_id)).await;
        for (client, head) in [(&mut open, &mut head), (&mut watcher, &mut watched)] {
            let mut rest = String::new();
            while let Some(piece) = client.piece(head).await.unwrap() {
                rest += std::str::from_utf8(&piece).unwrap();
            }
            assert!(rest.to_lowercase().contains("canceled"), "{rest}");
        }
    }
}

async fn say_streaming(agent: &DemoAgent, method: &str, body: &str) -> (Client, client::Head) {
    let mut client = Client::connect(agent.address()).await.unwrap();
    let mut fields = vec![("Content-Type", "application/json")];
    fields.extend_from_slice(version_of(method));
    let head = request_head("POST", "/a2a", &fields, Some(body.len()));
    client.send((head + body).as_bytes()).await.unwrap();
    let head = client.head().await.unwrap().unwrap();
    assert_eq!(head.field("content-type"), Some("text/event-stream"));
    (client, head)
}

#[tokio::test]
async fn the_honest_agent_refuses_what_it_must() {
    let agent = fake_agent::start().await;
    let refused = |body: &'static str, fields: &'static [(&str, &str)]| {
        let address = agent.address();
        async move {
            let answer = client::post_json(address, "/a2a", None, fields, body).await;
            answer.unwrap().json()["error"]["code"].as_i64().unwrap()
        }
    };
    assert_eq!(refused("{", &[]).await, -32700);
    assert_eq!(refused("[]", &[]).await, -32600);
    assert_eq!(refused(r#"{"id":1,"method":"x"}"#, &[]).await, -32601);
    assert_eq!(
        refused(r#"{"id":1,"method":"GetTask","params":{}}"#, &[]).await,
        -32009
    );
    assert_eq!(
        refused(
            r#"{"id":1,"method":"GetTask","params":{}}"#,
            &[("A2A-Version", "1.0")]
        )
        .await,
        -32602
    );
    assert_eq!(agent.counters().requests(), 5);
    assert_eq!(agent.counters().executions(), 0);
}

#[tokio::test]
async fn cards_have_the_shape_asked_for_and_are_counted_apart() {
    for (shape, v1, v03) in [
        (CardShape::V1_0, true, false),
        (CardShape::V0_3, false, true),
        (CardShape::Hybrid, true, true),
    ] {
        let agent = fake_agent::start_with(shape).await;
        let card = client::get(agent.address(), "/.well-known/agent-card.json", &[]).await;
        let card = card.unwrap().json();
        assert_eq!(card.get("supportedInterfaces").is_some(), v1, "{shape:?}");
        assert_eq!(card.get("url").is_some(), v03, "{shape:?}");
        let other = client::get(agent.address(), "/a2a/status", &[])
            .await
            .unwrap();
        assert_eq!(other.status, 200);
        let unknown = client::get(agent.address(), "/else", &[]).await.unwrap();
        assert_eq!(unknown.status, 404);
        let counts = client::get(agent.address(), "/counters", &[])
            .await
            .unwrap();
        assert_eq!(
            counts.json(),
            json!({"requests": 2, "executions": 1, "cards": 1})
        );
    }
}

#[tokio::test]
async fn bodies_arrive_whole_in_either_framing_on_one_connection() {
    let agent = RawAgent::start((0..6).map(|_| Act::Answer(json_answer(200, "{}")))).await;
    let mut client = Client::connect(agent.address).await.unwrap();
    let mut hashes = Vec::new();
    for size in [1, 100_000, 5_000_000] {
        let body: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        hashes.extend([sha256(&body), sha256(&body)]);
        let answer = client.request("POST", "/x", &[], &body).await.unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (200, "{}"));
        let fields = [("Transfer-Encoding", "chunked")];
        client
            .send(request_head("POST", "/x", &fields, None).as_bytes())
            .await
            .unwrap();
        client.send(&chunked(&body, 70_000)).await.unwrap();
        assert_eq!(client.response().await.unwrap().status, 200);
    }
    let counts = agent.counts();
    assert_eq!((counts.connections, counts.requests()), (1, 6));
    assert!(counts.bytes > 10_200_002);
    let seen: Vec<String> = counts.seen.iter().map(|seen| seen.body_hash()).collect();
    assert_eq!(seen, hashes);
}

#[tokio::test]
async fn the_raw_agent_breaks_off_where_its_script_says() {
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".to_vec();
    // For each act: whether an answer's header comes, whole requests that the agent saw.
    let cases: Vec<(&str, Act, bool, usize)> = vec![
        ("close", Act::Close, false, 0),
        ("reset", Act::Reset, false, 0),
        ("head", Act::HeadThenClose, false, 0),
        ("read", Act::ReadThenClose, false, 1),
        ("cut", Act::AnswerThenClose(cut.clone()), true, 1),
        ("cut, reset", Act::AnswerThenReset(cut), true, 1),
    ];
    for (name, act, answers, requests) in cases {
        let agent = RawAgent::start([act]).await;
        let mut client = Client::connect(agent.address).await.unwrap();
        // The agent may be gone before the request is written.
        let _ = client
            .send(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi")
            .await;
        match client.head().await {
            // A reset may overtake the header that was sent before it.
            Ok(Some(mut head)) => {
                assert!(answers, "{name}");
                let first = client.piece(&mut head).await;
                assert!(
                    first.is_err() || client.piece(&mut head).await.is_err(),
                    "{name}: the body must not end properly"
                );
            }
            Ok(None) => assert!(!answers, "{name}"),
            Err(_) => assert!(name != "cut", "{name}"),
        }
        let counts = agent.until("the end", |counts| counts.ended == 1).await;
        assert_eq!(counts.requests(), requests, "{name}");
    }
}

#[tokio::test]
async fn the_raw_agent_answers_early() {
    let agent = RawAgent::start([Act::EarlyThenClose(json_answer(413, "no"))]).await;
    let mut client = Client::connect(agent.address).await.unwrap();
    client
        .send(b"POST / HTTP/1.1\r\nContent-Length: 9000000\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(client.response().await.unwrap().status, 413);
    assert_eq!(agent.counts().requests(), 0);
}

#[tokio::test]
async fn the_raw_agent_notices_who_leaves() {
    for act in [
        Act::Hang,
        Act::Drip(json_answer(200, "{}"), 1, Duration::from_secs(60)),
    ] {
        let agent = RawAgent::start([act]).await;
        let mut client = Client::connect(agent.address).await.unwrap();
        client.send(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        agent
            .until("the request", |counts| counts.requests() == 1)
            .await;
        assert_eq!(agent.counts().left, 0);
        drop(client);
        agent
            .until("the caller to leave", |counts| counts.left == 1)
            .await;
    }
}

#[tokio::test]
async fn a_fed_stream_is_in_the_hands_of_the_test() {
    let (feed, pieces) = mpsc::unbounded_channel();
    let agent = RawAgent::start([Act::Fed(pieces, Then::Close)]).await;
    let mut client = Client::connect(agent.address).await.unwrap();
    client.send(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    feed.send(raw_agent::stream_head()).unwrap();
    let mut head = client.head().await.unwrap().unwrap();
    feed.send(raw_agent::chunk("data: 1\n\n")).unwrap();
    assert_eq!(
        client.piece(&mut head).await.unwrap().unwrap(),
        b"data: 1\n\n"
    );
    drop(feed);
    assert!(client.piece(&mut head).await.is_err(), "no last chunk came");
}

#[tokio::test]
async fn a_refusing_port_refuses_and_a_stopped_agent_is_gone() {
    let port = RefusingPort::new();
    assert!(Client::connect(port.address).await.is_err());
    let agent = RawAgent::start([]).await;
    let address = agent.address;
    let mut client = Client::connect(address).await.unwrap();
    agent.stop().await;
    assert!(client.is_closed().await);
    assert!(Client::connect(address).await.is_err());
}
