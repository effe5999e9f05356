//! Field cases of JSON-RPC, FC-21 to FC-32, against a live gateway.

use super::{POLICY, RPC, Stand, message};
use crate::support::client::{Client, Response, request_head};
use crate::support::fake_agent::call;
use serde_json::{Value, json};

/// The error code of an answer, and its id as its bytes stood.
fn said(response: &Response) -> (Value, String) {
    let body = response.json();
    (body["error"]["code"].clone(), body["id"].to_string())
}

impl Stand {
    /// Sends a body that must be refused without the agent being touched.
    async fn refused(&self, body: &str) -> (u16, Value, String) {
        let before = self.counted();
        let response = self.post(Some(&self.reviewer()), VERSION, body).await;
        assert_eq!(self.counted(), before, "{body}: the agent was touched");
        let (code, id) = said(&response);
        assert_eq!(response.field("content-type"), Some("application/json"));
        (response.status, code, id)
    }

    /// Sends a body that must reach the agent as it is.
    async fn passes(&self, body: &str) -> Response {
        let before = self.counted();
        let response = self.post(Some(&self.reviewer()), VERSION, body).await;
        assert_eq!(
            self.counted().1,
            before.1 + 1,
            "{body}: {}",
            response.text()
        );
        let got = self.agent.requests().pop().unwrap();
        assert_eq!(got.body, body.as_bytes(), "other bytes arrived");
        response
    }
}

const VERSION: &[(&str, &str)] = &[("A2A-Version", "1.0")];

/// A message that the reviewer may send, with this text for the id.
fn with_id(id: &str) -> String {
    message("SendMessage", "hello", "hi", &[]).replace("\"id\":1", &format!("\"id\":{id}"))
}

#[tokio::test]
async fn fc_21_a_batch_is_refused_whole() {
    let stand = Stand::new().await;
    let one = message("SendMessage", "hello", "hi", &[]);
    for batch in [
        "[]".to_owned(),
        format!("[{one}]"),
        format!("[{one},{one}]"),
    ] {
        let refused = stand.refused(&batch).await;
        assert_eq!(refused, (200, json!(-32600), "null".to_owned()), "{batch}");
    }
    let record = stand.gateway.refusal(3).await;
    assert_eq!(record["fault"], "malformed");
}

#[tokio::test]
async fn fc_22_a_member_that_occurs_twice_is_refused() {
    let stand = Stand::new().await;
    let good = message("SendMessage", "hello", "hi", &[]);
    for (what, twice) in [
        ("\"method\":", "\"method\":\"GetTask\",\"method\":"),
        ("\"params\":", "\"params\":{},\"params\":"),
        ("\"message\":", "\"message\":{},\"message\":"),
        ("\"messageId\":", "\"messageId\":\"n\",\"messageId\":"),
        ("\"skillId\":", "\"skillId\":\"review-diff\",\"skillId\":"),
        (
            "\"messageId\":",
            "\"x\":{\"a\":1,\"\\u0061\":2},\"messageId\":",
        ),
    ] {
        assert!(good.contains(what));
        let (status, code, id) = stand.refused(&good.replacen(what, twice, 1)).await;
        assert_eq!((status, code, &*id), (200, json!(-32600), "1"), "{twice}");
    }
    let both =
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"mine","id":"theirs"}}"#;
    assert_eq!(stand.refused(both).await.1, -32600);
    assert_eq!(stand.gateway.count("refusal"), 7);
}

#[tokio::test]
async fn fc_23_names_that_differ_by_case_are_refused() {
    let stand = Stand::new().await;
    let good = message("SendMessage", "hello", "hi", &[]);
    for (from, to, code) in [
        ("\"method\":", "\"METHOD\":", -32600),
        ("\"method\":", "\"method\":\"GetTask\",\"Method\":", -32600),
        ("\"params\":", "\"Params\":", -32600),
        ("\"message\":", "\"Message\":", -32602),
        ("\"messageId\":", "\"taskid\":\"t\",\"messageId\":", -32602),
        ("\"messageId\":", "\"task_id\":\"t\",\"messageId\":", -32602),
        (
            "\"messageId\":",
            "\"ta\\u017fkId\":\"t\",\"messageId\":",
            -32602,
        ),
    ] {
        let (_, found, _) = stand.refused(&good.replacen(from, to, 1)).await;
        assert_eq!(found, code, "{to}");
    }
}

#[tokio::test]
async fn fc_24_ids_come_back_as_they_were() {
    let stand = Stand::new().await;
    for id in [
        "42",
        "0",
        "-1",
        "\"42\"",
        "\"\"",
        "\"a\\u0062\"",
        "9007199254740993",
    ] {
        let response = stand.passes(&with_id(id)).await;
        // The agent's own answer, whose id the gateway compares with the one that was sent.
        assert!(response.text().contains("\"id\":"), "{}", response.text());
        let denied =
            call("GetTask", json!({"id": "nobody's"})).replace("\"id\":1", &format!("\"id\":{id}"));
        let before = stand.counted();
        let response = stand.post(Some(&stand.reviewer()), VERSION, &denied).await;
        assert_eq!(stand.counted(), before);
        let start = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":");
        assert!(response.text().starts_with(&start), "{}", response.text());
    }
    for id in ["null", "true", "1.5", "{}", "[1]"] {
        let refused = stand.refused(&with_id(id)).await;
        assert_eq!(refused, (200, json!(-32600), "null".to_owned()), "{id}");
    }
}

#[tokio::test]
async fn fc_25_refusals_keep_the_id() {
    let stand = Stand::new().await;
    let body = with_id("\"q-9\"");
    let denied = body.replace("hello", "review-diff");
    let before = stand.counted();
    let author = stand.token("alice", "author");
    let response = stand.post(Some(&author), VERSION, &denied).await;
    assert_eq!(
        (response.status, said(&response).1.as_str()),
        (403, "\"q-9\"")
    );
    // Before the body is read there is no id to keep: the documented document, in both cases.
    for (token, status) in [(None, 401), (Some("a.b.c"), 401)] {
        let response = stand.post(token, VERSION, &body).await;
        assert_eq!(
            (response.status, said(&response).1.as_str()),
            (status, "null")
        );
    }
    assert_eq!(stand.counted(), before);
}

#[tokio::test]
async fn fc_26_what_is_no_json_is_a_parse_error() {
    let stand = Stand::new().await;
    let good = message("SendMessage", "hello", "hi", &[]);
    let bodies = [
        "{\"jsonrpc\":\"2.0\",".to_owned(),
        String::new(),
        "{}{}".to_owned(),
        "{\"a\":1} x".to_owned(),
        format!("{good}{good}"),
        format!("\u{feff}{good}"),
    ];
    for body in &bodies {
        let refused = stand.refused(body).await;
        assert_eq!(refused, (200, json!(-32700), "null".to_owned()), "{body}");
    }
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let bearer = format!("Bearer {}", stand.reviewer());
    let fields = [
        ("Content-Type", "application/json"),
        ("Authorization", &bearer),
    ];
    let before = stand.counted();
    let response = client
        .request("POST", RPC, &fields, b"\xff\xfe")
        .await
        .unwrap();
    assert_eq!(
        (said(&response).0, stand.counted()),
        (json!(-32700), before)
    );
}

#[tokio::test]
async fn fc_27_unknown_methods_are_not_forwarded() {
    let stand = Stand::new().await;
    for method in [
        "message.send",
        "sendmessage",
        "SendMessage ",
        "tasks/send",
        "rpc.x",
        "",
    ] {
        let good = message("SendMessage", "hello", "hi", &[]);
        let body = good.replace("\"SendMessage\"", &json!(method).to_string());
        let refused = stand.refused(&body).await;
        assert_eq!(refused, (200, json!(-32601), "1".to_owned()), "{method}");
    }
}

#[tokio::test]
async fn fc_28_media_types() {
    let stand = Stand::new().await;
    let body = message("SendMessage", "hello", "hi", &[]);
    let bearer = format!("Bearer {}", stand.reviewer());
    let ask = async |types: &[&str]| {
        let mut fields = vec![("A2A-Version", "1.0"), ("Authorization", bearer.as_str())];
        fields.extend(types.iter().map(|t| ("Content-Type", *t)));
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        client
            .request("POST", RPC, &fields, body.as_bytes())
            .await
            .unwrap()
    };
    for good in ["application/json", "Application/JSON ; Charset=\"UTF-8\""] {
        assert_eq!(ask(&[good]).await.status, 200, "{good}");
    }
    let before = stand.counted();
    for bad in [
        &[][..],
        &["text/plain"],
        &["application/x-www-form-urlencoded"],
        &["application/jsonp"],
        &["application/json; charset=utf-16"],
        &["application/json", "application/json"],
        &["application/json", "text/plain"],
    ] {
        let response = ask(bad).await;
        assert_eq!(
            (response.status, said(&response).0),
            (415, json!(-32005)),
            "{bad:?}"
        );
    }
    assert_eq!(stand.counted(), before);
}

#[tokio::test]
async fn fc_29_id_zero_is_an_id_and_none_is_none() {
    let stand = Stand::new().await;
    assert_eq!(stand.passes(&with_id("0")).await.json()["id"], 0);
    let without = with_id("0").replacen("\"id\":0,", "", 1);
    assert!(!without.contains("\"id\""));
    let refused = stand.refused(&without).await;
    assert_eq!(refused, (200, json!(-32600), "null".to_owned()));
}

#[tokio::test]
async fn fc_30_too_large_is_said_to_be_so() {
    let stand = Stand::with(POLICY, |yaml| yaml.replace("body: 8MiB", "body: 2MiB")).await;
    let exactly = |size: usize| {
        let bare = message("SendMessage", "hello", "", &[]).len();
        message("SendMessage", "hello", &"x".repeat(size - bare), &[])
    };
    let limit = 2 << 20;
    stand.passes(&exactly(limit)).await;
    let before = stand.counted();
    let over = exactly(limit + 1);
    let response = stand.post(Some(&stand.reviewer()), VERSION, &over).await;
    assert_eq!((response.status, said(&response).0), (413, json!(-32600)));
    // The same without a length.
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let bearer = format!("Bearer {}", stand.reviewer());
    let fields = [
        ("Content-Type", "application/json"),
        ("A2A-Version", "1.0"),
        ("Authorization", &bearer),
        ("Transfer-Encoding", "chunked"),
    ];
    let head = request_head("POST", RPC, &fields, None);
    client.send(head.as_bytes()).await.unwrap();
    let mut chunked = Vec::new();
    for piece in over.as_bytes().chunks(64 << 10) {
        chunked.extend(format!("{:x}\r\n", piece.len()).bytes());
        chunked.extend_from_slice(piece);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    // The gateway may answer and close before it has read all of it.
    let _ = client.send(&chunked).await;
    assert_eq!(client.response().await.unwrap().status, 413);
    assert_eq!(stand.counted(), before);
}

#[tokio::test]
async fn fc_31_deep_nesting_is_refused_at_once() {
    let stand = Stand::new().await;
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let good = message("SendMessage", "hello", "hi", &[]);
    for place in ["\"params\":", "\"message\":", "\"messageId\":"] {
        let body = good.replacen(place, &format!("\"x\":{deep},{place}"), 1);
        let (status, code, _) = stand.refused(&body).await;
        assert_eq!((status, code), (200, json!(-32700)), "{place}");
    }
    stand.passes(&good).await;
}

#[tokio::test]
async fn fc_32_envelope_faults_and_members_of_others() {
    let stand = Stand::new().await;
    let good = message("SendMessage", "hello", "hi", &[]);
    for (from, to, code) in [
        ("\"jsonrpc\":\"2.0\",", "", -32600),
        ("\"2.0\"", "2.0", -32600),
        ("\"SendMessage\"", "[\"SendMessage\"]", -32600),
    ] {
        assert_eq!(
            stand.refused(&good.replacen(from, to, 1)).await.1,
            code,
            "{to}"
        );
    }
    for params in [json!("t1"), json!([1]), json!(null), json!(5)] {
        let body = call("GetTask", params);
        assert_eq!(stand.refused(&body).await.1, -32602, "{body}");
    }
    let extra = good
        .replacen("\"method\":", "\"trace\":\"x\",\"method\":", 1)
        .replacen("\"message\":", "\"x-note\":{},\"message\":", 1);
    stand.passes(&extra).await;
}
