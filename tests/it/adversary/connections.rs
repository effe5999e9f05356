//! One connection, several requests: where the next one begins, and whose reply is whose.

use crate::calls::rig::{Rig, task};
use crate::calls::{RPC, Stand, message};
use crate::support::client::{Client, request_head};
use crate::support::issuer::Grant;
use crate::support::raw_agent::{Act, json_answer};
use serde_json::Value;

/// Method, path, fields, body, and the status that is due.
type Attempt<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str, u16);

/// After each kind of refusal the connection is closed, or the next request is read from its own
/// first byte: never from within the body of the one before.
#[tokio::test]
async fn a_refused_body_is_never_the_next_request() {
    let stand = Stand::new().await;
    let good = format!("Bearer {}", stand.reviewer());
    let full = stand.issuer.token("carol", Grant::Full, Value::Null);
    let full = format!("Bearer {full}");
    // What a body smuggles: a request that would be let through.
    let smuggled = request_head(
        "GET",
        "/agents/pr-agent/config",
        &[("Authorization", &full)],
        None,
    );
    let chunked = format!("{:x}\r\n{smuggled}\r\n0\r\n\r\n", smuggled.len());
    let json = ("Content-Type", "application/json");
    let long = ("Content-Length", "99999999");
    let table: &[Attempt<'_>] = &[
        ("POST", "/nowhere", &[], &smuggled, 401),
        (
            "POST",
            RPC,
            &[("Authorization", "Bearer x")],
            &smuggled,
            401,
        ),
        (
            "POST",
            "/nowhere",
            &[("Authorization", &good)],
            &smuggled,
            404,
        ),
        (
            "GET",
            "/agents/pr-agent/config",
            &[("Authorization", &good)],
            &smuggled,
            403,
        ),
        ("POST", RPC, &[("Authorization", &good)], &smuggled, 415),
        (
            "POST",
            RPC,
            &[("Authorization", &good), json],
            &smuggled,
            400,
        ),
        (
            "PUT",
            RPC,
            &[("Authorization", &good), json],
            &smuggled,
            405,
        ),
        (
            "POST",
            RPC,
            &[("Authorization", &good), json, long],
            &smuggled,
            413,
        ),
        ("POST", "/agents/../x", &[], &smuggled, 400),
        (
            "POST",
            "/nowhere",
            &[("Host", "other.example.com")],
            &smuggled,
            421,
        ),
        (
            "GET",
            "/agents/pr-agent/.well-known/agent-card.json",
            &[],
            &smuggled,
            200,
        ),
        (
            "GET",
            "/agents/x/.well-known/agent-card.json",
            &[],
            &smuggled,
            404,
        ),
        (
            "POST",
            "/nowhere",
            &[("Transfer-Encoding", "chunked")],
            &chunked,
            401,
        ),
        (
            "POST",
            RPC,
            &[("Authorization", &good), ("Transfer-Encoding", "chunked")],
            &chunked,
            415,
        ),
        (
            "POST",
            "/nowhere",
            &[("Expect", "100-continue")],
            &smuggled,
            401,
        ),
    ];
    for (method, path, fields, body, status) in table {
        let shown = format!("{method} {path} {fields:?}");
        let framed = |name: &str| fields.iter().any(|(n, _)| *n == name);
        let length =
            (!framed("Transfer-Encoding") && !framed("Content-Length")).then_some(body.len());
        let before = stand.counted();
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        let head = request_head(method, path, fields, length);
        client.send((head + body).as_bytes()).await.unwrap();
        let first = client
            .response()
            .await
            .unwrap_or_else(|e| panic!("{shown}: {e}"));
        let status = if *status == 400 && path == &RPC {
            first.status
        } else {
            *status
        };
        assert_eq!(first.status, status, "{shown}: {}", first.text());
        // A marked request: the next answer is its own, or there is none.
        let next = request_head("GET", "/agents/../marked", &[], None);
        if client.send(next.as_bytes()).await.is_ok()
            && let Ok(second) = client.response().await
        {
            assert_eq!(second.status, 400, "{shown}: {}", second.text());
            assert_eq!(first.field("connection"), Some("keep-alive"), "{shown}");
        }
        assert_eq!(stand.counted(), before, "{shown}: the agent was touched");
    }
}

/// A caller that was refused before it was told to go on sends no body (RFC 9110 section 10.1.1):
/// what comes next on its connection must not be swallowed as that body.
#[tokio::test]
async fn a_body_that_was_never_asked_for_is_not_awaited_on_a_kept_connection() {
    let stand = Stand::new().await;
    let before = stand.counted();
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let fields = [("Expect", "100-continue")];
    let head = request_head("POST", "/nowhere", &fields, Some(60));
    client.send(head.as_bytes()).await.unwrap();
    let first = client.response().await.unwrap();
    stand.assert_refused(before, &first, 401, "no token");
    assert_eq!(first.field("connection"), Some("close"));
    assert!(client.is_closed().await);
}

/// Requests sent in one go are answered in order, each by its own reply.
#[tokio::test]
async fn pipelined_requests_keep_their_order() {
    let stand = Stand::new().await;
    let bearer = format!("Bearer {}", stand.reviewer());
    let fields = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("A2A-Version", "1.0"),
    ];
    let mut all = String::new();
    for text in ["first", "second", "third"] {
        let body = message("SendMessage", "hello", "hi", &[]);
        let body = body.replace("\"id\":1", &format!("\"id\":\"{text}\""));
        all += &request_head("POST", RPC, &fields, Some(body.len()));
        all += &body;
        all += &request_head("GET", "/nowhere", &[], None);
    }
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    client.send(all.as_bytes()).await.unwrap();
    for text in ["first", "second", "third"] {
        let answer = client.response().await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.text().contains(text), "{text}: {}", answer.text());
        assert_eq!(client.response().await.unwrap().status, 401);
    }
}

/// What an agent says beyond its reply, or too early, is nobody's reply.
#[tokio::test]
async fn an_agents_surplus_never_answers_another_caller() {
    let mine = json_answer(200, &task("t-alice", "c-alice"));
    let surplus = json_answer(200, &task("t-evil", "c-evil"));
    let both = [mine.clone(), surplus.clone()].concat();
    let (later, rest) = tokio::sync::mpsc::unbounded_channel();
    let bobs = || Act::Answer(json_answer(200, &task("t-bob", "c-bob")));
    let rig = Rig::new([
        Act::Answer(both),
        bobs(),
        Act::Fed(rest, crate::support::raw_agent::Then::Keep),
        bobs(),
    ])
    .await;
    assert!(
        rig.ask("alice", "SendMessage")
            .await
            .text()
            .contains("t-alice")
    );
    let bob = rig.ask("bob", "SendMessage").await;
    assert!(bob.text().contains("t-bob"), "{}", bob.text());
    // The surplus comes when the connection is in the pool already.
    later.send(mine).unwrap();
    assert!(
        rig.ask("alice", "SendMessage")
            .await
            .text()
            .contains("t-alice")
    );
    later.send(surplus).unwrap();
    drop(later);
    let bob = rig.ask("bob", "SendMessage").await;
    assert!(!bob.text().contains("evil"), "{}", bob.text());
}

/// A caller of HTTP/1.0 gets a reply that it can delimit, by length or by the end.
#[tokio::test]
async fn an_old_caller_gets_a_reply_without_chunks() {
    let chunks = |body: &str| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        [
            head.as_bytes(),
            &crate::support::http1::chunked(body.as_bytes(), 7),
        ]
        .concat()
    };
    let rig = Rig::new([
        Act::Answer(chunks(&task("t-1", "c-1"))),
        Act::Answer(chunks("short")),
    ])
    .await;
    let bearer = format!("Bearer {}", rig.token("alice", Grant::Full));
    let body = message("SendMessage", "hello", "hi", &[]);
    for (method, path, body, text) in [
        ("POST", RPC, body.as_str(), "t-1"),
        ("GET", "/agents/pr-agent/config", "", "short"),
    ] {
        let fields = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("A2A-Version", "1.0"),
            ("Connection", "keep-alive"),
        ];
        let head = request_head(method, path, &fields, Some(body.len()));
        let mut client = rig.client().await;
        let old = head.replacen("HTTP/1.1", "HTTP/1.0", 1) + body;
        client.send(old.as_bytes()).await.unwrap();
        let answer = client.response().await.unwrap();
        assert_eq!(answer.field("transfer-encoding"), None);
        assert!(answer.text().contains(text), "{}", answer.text());
    }
}

/// A caller that leaves within its body is recorded once, and the agent hears nothing of it.
#[tokio::test]
async fn a_caller_that_leaves_within_its_body_is_one_refusal() {
    let stand = Stand::new().await;
    let bearer = format!("Bearer {}", stand.reviewer());
    let fields = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    let before = stand.counted();
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let head = request_head("POST", RPC, &fields, Some(1000));
    client
        .send((head + "{\"jsonrpc\"").as_bytes())
        .await
        .unwrap();
    drop(client);
    let record = stand.gateway.refusal(1).await;
    assert_eq!(record["decision"]["reason"], "caller_left", "{record}");
    assert_eq!(record["delivery"], "not_attempted");
    // Whatever else would be written about it is written before a later request is.
    let answer = stand.post(None, &[], "{}").await;
    stand.assert_refused(before, &answer, 401, "no token");
    stand.gateway.refusal(2).await;
    let counts = ["refusal", "intent", "outcome"].map(|kind| stand.gateway.count(kind));
    assert_eq!(counts, [2, 0, 0]);
}
