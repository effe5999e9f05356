//! Replies that may not pass as they are.

use super::{ANSWER, Exchange, call, patient};
use crate::test_support::raw_agent::{Act, LAST_CHUNK, RawAgent, chunk, json_answer, stream_head};

fn answer(head: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[tokio::test]
async fn what_the_agent_says_of_itself_is_not_passed_on() {
    let table: &[(Vec<u8>, u16, i64)] = &[
        (
            answer(
                "307 Temporary Redirect\r\nLocation: http://agent.internal/",
                "",
            ),
            502,
            -32603,
        ),
        (
            answer("302 Found\r\nLocation: http://other.internal/", ""),
            502,
            -32603,
        ),
        (
            answer("401 Unauthorized\r\nWWW-Authenticate: Basic realm=x", ""),
            502,
            -32603,
        ),
        (answer("407 Proxy Authentication Required", ""), 502, -32603),
        (
            answer(
                "200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip",
                ANSWER,
            ),
            200,
            -32006,
        ),
        (
            answer("200 OK\r\nContent-Type: text/event-stream", "data: {}\n\n"),
            200,
            -32006,
        ),
        (
            answer("500 Oops\r\nContent-Type: text/html", "<html>stack</html>"),
            200,
            -32006,
        ),
        (
            answer(
                "200 OK\r\nContent-Type: application/json\r\nContent-Type: text/html",
                ANSWER,
            ),
            200,
            -32006,
        ),
        (
            answer("200 OK\r\nContent-Type: application/json", "[]"),
            200,
            -32006,
        ),
        (answer("204 No Content", ""), 200, -32006),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n".to_vec(),
            502,
            -32603,
        ),
        (b"SSH-2.0-OpenSSH\r\n".to_vec(), 502, -32603),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n{} ".to_vec(),
            502,
            -32603,
        ),
    ];
    for (bytes, status, code) in table {
        let shown = String::from_utf8_lossy(bytes);
        let agent = RawAgent::start([Act::AnswerThenClose(bytes.clone())]).await;
        let exchange = Exchange::start(agent.address, patient());
        let response = exchange.post(&call("SendMessage", 1)).await;
        assert_eq!(response.status, *status, "{shown}");
        assert_eq!(response.json()["error"]["code"], *code, "{shown}");
        assert_eq!(response.json()["id"], 1, "{shown}");
        let text = response.text();
        assert!(
            !text.contains("internal") && !text.contains("stack"),
            "{text}"
        );
        for name in ["location", "www-authenticate"] {
            assert_eq!(response.field(name), None, "{shown}");
        }
        let outcome = exchange.outcome().await;
        assert_ne!(outcome["delivery"], "not_attempted", "{shown}");
    }
}

#[tokio::test]
async fn interim_replies_are_swallowed() {
    let mut bytes = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(3);
    bytes.extend(json_answer(200, ANSWER));
    let agent = RawAgent::start([Act::Answer(bytes)]).await;
    let exchange = Exchange::start(agent.address, patient());
    let response = exchange.post(&call("SendMessage", 1)).await;
    assert_eq!((response.status, response.text()), (200, ANSWER.to_owned()));
}

/// A stream that has begun is told about a bad event in its own form, and ends.
#[tokio::test]
async fn a_bad_event_is_replaced() {
    let mut bytes = stream_head();
    bytes.extend(chunk(": hello\n\n"));
    bytes.extend(chunk("data: not json\n\n"));
    bytes.extend(LAST_CHUNK);
    let agent = RawAgent::start([Act::Answer(bytes)]).await;
    let exchange = Exchange::start(agent.address, patient());
    let response = exchange.post(&call("SendStreamingMessage", 1)).await;
    let text = response.text();
    assert!(
        text.starts_with(": hello\n\nevent: error\ndata: {"),
        "{text}"
    );
    assert!(
        text.contains("-32006") && !text.contains("not json"),
        "{text}"
    );
    let outcome = exchange.outcome().await;
    assert_eq!(outcome["response"]["judged"], "malformed", "{outcome}");
    assert_eq!(outcome["ended"], "malformed");
}

/// An event about another task than the stream's never leaves.
#[tokio::test]
async fn another_task_in_a_stream_cuts_it() {
    let event = |task: &str| {
        format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"statusUpdate\":{{\"taskId\":\"{task}\",\"contextId\":\"c1\",\"status\":{{\"state\":\"TASK_STATE_WORKING\"}}}}}}}}\n\n"
        )
    };
    let mut bytes = stream_head();
    bytes.extend(chunk(&event("mine")));
    bytes.extend(chunk(&event("theirs")));
    bytes.extend(LAST_CHUNK);
    let agent = RawAgent::start([Act::Answer(bytes)]).await;
    let exchange = Exchange::start(agent.address, patient());
    let response = exchange.post(&call("SendStreamingMessage", 1)).await;
    assert!(response.text().contains("mine") && !response.text().contains("theirs"));
    assert_eq!(
        exchange.outcome().await["response"]["malformed"],
        "other_task"
    );
}

#[tokio::test]
async fn a_large_reply_streams_through_unchanged() {
    let text = "y".repeat(3 * 1024 * 1024);
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"task":{{"id":"t1","contextId":"c1","status":{{"state":"TASK_STATE_COMPLETED"}},"history":"{text}"}}}}}}"#
    );
    let agent = RawAgent::start([Act::Answer(json_answer(200, &body))]).await;
    let exchange = Exchange::start(agent.address, patient());
    let response = exchange.post(&call("SendMessage", 1)).await;
    assert_eq!(response.status, 200);
    assert!(response.text() == body, "the reply changed on its way");
    let outcome = exchange.outcome().await;
    assert_eq!(outcome["response"]["judged"], "unjudged");
    assert_eq!(outcome["task_id"], "t1");
}

/// A reply without a length passes; the record says that its end proves nothing.
#[tokio::test]
async fn a_reply_that_ends_by_close_is_told() {
    let plain = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{ANSWER}");
    for (bytes, told) in [
        (plain.into_bytes(), true),
        (json_answer(200, ANSWER), false),
    ] {
        let agent = RawAgent::start([Act::AnswerThenClose(bytes)]).await;
        let exchange = Exchange::start(agent.address, patient());
        let response = exchange.post(&call("SendMessage", 1)).await;
        assert_eq!((response.status, response.text()), (200, ANSWER.to_owned()));
        let outcome = exchange.outcome().await;
        assert_eq!(
            outcome["response"]["ended_by_close"] == true,
            told,
            "{outcome}"
        );
    }
}
