//! The reply guard against a live gateway: whatever the agent answers, what the caller gets is
//! well-formed for its binding, and the next call goes on.

use super::message;
use super::rest::{REST, Stand};
use crate::support::client::{Client, Response, request_head};
use crate::support::fake_agent;
use crate::support::issuer::Grant;
use crate::support::raw_agent::{Act, LAST_CHUNK, chunk, json_answer, stream_head};
use serde_json::{Value, json};

/// One way to ask, with what a good answer to it is.
#[derive(Debug, Clone, Copy)]
struct Way {
    rest: bool,
    older: bool,
    streaming: bool,
}

impl Way {
    fn all() -> impl Iterator<Item = Way> {
        (0..8_u8).map(|bits| Way {
            rest: bits & 1 != 0,
            older: bits & 2 != 0,
            streaming: bits & 4 != 0,
        })
    }

    /// The request, as its bytes go.
    fn request(self, token: &str) -> Vec<u8> {
        let method = match (self.older, self.streaming) {
            (false, false) => "SendMessage",
            (false, true) => "SendStreamingMessage",
            (true, false) => "message/send",
            (true, true) => "message/stream",
        };
        let parts = if self.older { "content" } else { "parts" };
        let verb = if self.streaming { "stream" } else { "send" };
        let prefix = if self.older { "/v1" } else { "" };
        let (path, body) = match self.rest {
            false => (super::RPC.to_owned(), message(method, "hello", "hi", &[])),
            true => (
                format!("{REST}{prefix}/message:{verb}"),
                json!({"message": {"messageId": "m1", "role": "ROLE_USER",
                    parts: [{"text": "hi"}], "metadata": {"skillId": "hello"}}})
                .to_string(),
            ),
        };
        let bearer = format!("Bearer {token}");
        let mut fields = vec![
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
        ];
        fields.extend_from_slice(fake_agent::version_of(method));
        (request_head("POST", &path, &fields, Some(body.len())) + &body).into_bytes()
    }

    /// Asks, and gives what the caller got.
    async fn ask(self, stand: &Stand, token: &str) -> Response {
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        client.send(&self.request(token)).await.unwrap();
        client.response().await.unwrap()
    }

    /// An answer of the agent's: a document, or a stream with this as its only event.
    fn answer(self, document: &str) -> Act {
        if !self.streaming {
            return Act::Answer(json_answer(200, document));
        }
        let mut bytes = stream_head();
        bytes.extend(chunk(": first\n\n"));
        bytes.extend(chunk(&format!("data: {document}\n\n")));
        bytes.extend(LAST_CHUNK);
        Act::Answer(bytes)
    }

    fn good(self) -> Value {
        let task = json!({"id": "t1", "contextId": "c1",
            "status": {"state": "TASK_STATE_WORKING"}});
        match (self.rest, self.older) {
            (true, _) => json!({"task": task}),
            (false, false) => {
                json!({"jsonrpc": "2.0", "id": 1, "result": {"task": task}})
            }
            (false, true) => json!({"jsonrpc": "2.0", "id": 1, "result": {
                "kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "working"}}}),
        }
    }

    /// The error that the caller got, as its clients find it.
    fn error(self, response: &Response) -> Value {
        let text = response.text();
        let document: Value = if self.streaming && response.status == 200 && text.starts_with(':') {
            let named = self.rest || !self.older;
            let event = text.strip_prefix(": first\n\n").unwrap();
            let name = if named { "event: error\n" } else { "" };
            let data = event.strip_prefix(&format!("{name}data: ")).unwrap();
            serde_json::from_str(data.strip_suffix("\n\n").unwrap()).unwrap()
        } else {
            let unary = if self.rest { 500 } else { 200 };
            assert_eq!(response.status, unary, "{self:?}: {text}");
            assert_eq!(response.field("content-type"), Some("application/json"));
            response.json()
        };
        if self.rest && self.older {
            return document;
        }
        if !self.rest {
            assert_eq!(document["id"], 1, "{self:?}");
        }
        document["error"].clone()
    }

    fn assert_invalid(self, response: &Response, what: &str) {
        let error = self.error(response);
        let shown = format!("{self:?}, {what}: {}", response.text());
        match (self.rest, self.older) {
            (false, _) => assert_eq!(error["code"], -32006, "{shown}"),
            (true, false) => {
                assert_eq!(error["code"], 500, "{shown}");
                assert_eq!(error["status"], "INTERNAL", "{shown}");
                let reason = &error["details"][0]["reason"];
                assert_eq!(reason, "INVALID_AGENT_RESPONSE", "{shown}");
            }
            (true, true) => {
                assert_eq!(error["code"], -32006, "{shown}");
                assert_eq!(error["type"], "InvalidAgentResponseError", "{shown}");
            }
        }
        assert!(
            !shown.contains("boom") && !shown.contains("<h1>"),
            "{shown}"
        );
    }
}

/// The seven of `design.md` section 6, and what their records say.
fn seven(way: Way) -> Vec<(&'static str, Act)> {
    let good = way.good().to_string();
    let error = |error: Value| match way.rest {
        false => json!({"jsonrpc": "2.0", "id": 1, "error": error}),
        true => json!({"error": error}),
    };
    let neither = match way.rest {
        false => json!({"jsonrpc": "2.0", "id": 1}),
        true => json!({}),
    };
    let html = "<html><h1>500</h1></html>";
    let page = |status: &str| {
        let length = html.len();
        let head = "Content-Type: text/html\r\nContent-Length";
        Act::Answer(format!("HTTP/1.1 {status}\r\n{head}: {length}\r\n\r\n{html}").into_bytes())
    };
    // In REST an error has an error status, unless it comes within a stream.
    let erroneous = |document: Value| match way.rest && !way.streaming {
        true => Act::Answer(json_answer(500, &document.to_string())),
        false => way.answer(&document.to_string()),
    };
    vec![
        ("a list", way.answer(&format!("[{good}]"))),
        ("a string", way.answer(r#""boom""#)),
        ("neither result nor error", way.answer(&neither.to_string())),
        ("an error that is a string", erroneous(error(json!("boom")))),
        (
            "an error without a message",
            erroneous(error(json!({"code": -32603}))),
        ),
        ("no JSON", way.answer("boom")),
        ("a page", page("500 Internal Server Error")),
        ("a page under 200", page("200 OK")),
    ]
}

#[tokio::test]
async fn the_seven_malformed_replies_come_to_a_typed_error() {
    let stand = Stand::new().await;
    let token = stand.token(Grant::Agent);
    let mut calls = 0;
    for way in Way::all() {
        for (what, act) in seven(way) {
            stand.agent.play([act, way.answer(&way.good().to_string())]);
            let response = way.ask(&stand, &token).await;
            way.assert_invalid(&response, what);
            let next = way.ask(&stand, &token).await;
            assert_eq!(next.status, 200, "{way:?} behind {what}");
            let good = way.good().to_string();
            assert!(next.text().contains(&good), "{way:?} behind {what}");
            calls += 2;
            let records = stand.gateway.journal.until("outcomes", |records| {
                records.iter().filter(|r| r["kind"] == "outcome").count() == calls
            });
            let records = records.await;
            let mut outcomes = records.iter().filter(|r| r["kind"] == "outcome").rev();
            let last = outcomes.next().unwrap();
            assert_eq!(last["response"]["judged"], "ok", "{way:?} behind {what}");
            let malformed = outcomes.next().unwrap();
            let response = &malformed["response"];
            assert_eq!(
                response["judged"], "malformed",
                "{way:?}, {what}: {malformed}"
            );
            assert_eq!(malformed["ended"], "malformed", "{way:?}, {what}");
        }
    }
}

/// A stream that ends within an event, and one whose connection breaks: both are told.
#[tokio::test]
async fn truncated_streams_come_to_a_typed_error() {
    let stand = Stand::new().await;
    let token = stand.token(Grant::Agent);
    for way in Way::all().filter(|way| way.streaming) {
        let good = way.good();
        let mut unfinished = stream_head();
        unfinished.extend(chunk(": first\n\n"));
        unfinished.extend(chunk(&format!("data: {good}\n")));
        unfinished.extend(LAST_CHUNK);
        stand.agent.play([Act::Answer(unfinished)]);
        let response = way.ask(&stand, &token).await;
        way.assert_invalid(&response, "no blank line");
        assert!(!response.text().contains("t1"), "{}", response.text());

        let mut broken = stream_head();
        broken.extend(chunk(&format!("data: {good}\n\n")));
        broken.extend(chunk("data: {\"js"));
        stand.agent.play([Act::AnswerThenClose(broken)]);
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        client.send(&way.request(&token)).await.unwrap();
        let mut head = client.head().await.unwrap().unwrap();
        let text = client.body_until(&mut head, "}\n\n").await.unwrap();
        let text = match text.contains("error") {
            true => text,
            false => text + &client.body_until(&mut head, "}\n\n").await.unwrap(),
        };
        assert!(text.contains("could not be reached"), "{way:?}: {text}");
        assert!(!text.contains("{\"js\n"), "{way:?}: {text}");
        assert!(
            client.piece(&mut head).await.is_err(),
            "{way:?}: a proper end"
        );
    }
}

/// An event over the limit passes; what it names is its caller's, and the record says so.
#[tokio::test]
async fn an_event_over_the_limit_passes_unjudged() {
    let stand = Stand::new().await;
    let token = stand.token(Grant::Agent);
    for way in Way::all().filter(|way| way.streaming) {
        let mut event = way.good();
        let task = match way.rest {
            true => &mut event["task"],
            false if way.older => &mut event["result"],
            false => &mut event["result"]["task"],
        };
        task["metadata"] = json!({"x": "y".repeat(5 << 20)});
        stand.agent.play([way.answer(&event.to_string())]);
        let response = way.ask(&stand, &token).await;
        assert!(response.text().contains(&event.to_string()), "{way:?}");
    }
    let records = stand.gateway.journal.until("outcomes", |records| {
        records.iter().filter(|r| r["kind"] == "outcome").count() == 4
    });
    for outcome in records.await.iter().filter(|r| r["kind"] == "outcome") {
        assert_eq!(outcome["response"]["judged"], "unjudged", "{outcome}");
        assert_eq!(outcome["task_id"], "t1", "{outcome}");
    }
}
