//! The table of callers, its controls, and the trap.

use super::{POLICY, Stand, message};
use crate::support::client::Client;
use crate::support::fake_agent::version_of;
use crate::support::issuer::{Grant, Wrong};
use portcullis::cli::demo_agent::GREETING;
use serde_json::{Value, json};

const METHODS: [&str; 4] = [
    "SendMessage",
    "message/send",
    "SendStreamingMessage",
    "message/stream",
];

fn review(method: &str) -> String {
    message(method, "review-diff", "please review", &[])
}

#[tokio::test]
async fn callers_in_both_versions_unary_and_streaming() {
    let stand = Stand::new().await;
    for method in METHODS {
        let body = review(method);
        let before = stand.counted();
        let good = stand.call(&stand.reviewer(), method, &body).await;
        assert_eq!(good.status, 200, "{method}: {}", good.text());
        assert!(good.text().contains(GREETING), "{method}: {}", good.text());
        assert_eq!(stand.counted(), (before.0 + 1, before.1 + 1), "{method}");

        let bad = |wrong| stand.issuer.bad_token("alice", wrong);
        let refused: Vec<(&str, Option<String>, u16)> = vec![
            ("no token", None, 401),
            ("wrong audience", Some(bad(Wrong::Audience)), 401),
            ("wrong role", Some(stand.token("alice", "author")), 403),
            (
                "missing role",
                Some(stand.issuer.token("alice", Grant::Agent, Value::Null)),
                403,
            ),
            ("bad signature", Some(bad(Wrong::Signature)), 401),
            ("expired", Some(bad(Wrong::Expired)), 401),
            ("no grant", Some(bad(Wrong::NoGrant)), 403),
        ];
        for (who, token, status) in refused {
            let before = stand.counted();
            let response = stand
                .post(token.as_deref(), version_of(method), &body)
                .await;
            stand.assert_refused(before, &response, status, &format!("{method}, {who}"));
            assert_eq!(response.field("location"), None);
        }
        let again = stand.call(&stand.reviewer(), method, &body).await;
        assert!(
            again.text().contains(GREETING),
            "{method}: {}",
            again.text()
        );
    }
}

/// The role rule is what refused the wrong role: without it the same caller gets through.
#[tokio::test]
async fn without_the_role_rule_the_wrong_role_gets_through() {
    let open = POLICY.replace("    require: {role: {equals: reviewer}}\n", "");
    let stand = Stand::with_policy(&open).await;
    let response = stand
        .call(
            &stand.token("alice", "author"),
            "SendMessage",
            &review("SendMessage"),
        )
        .await;
    assert!(response.text().contains(GREETING), "{}", response.text());
    assert_eq!(stand.counted(), (1, 1));
}

/// `deny … unless role equals reviewer` must refuse a token without a role, and one with a null or
/// mistyped role; so must the form with `when`.
#[tokio::test]
async fn a_negative_rule_does_not_fail_open() {
    let allow = "  - id: all
    allow: {agents: [pr-agent], operations: [messages], skills: any}
    grant: agent
";
    let unless = "  - id: trap
    deny: {agents: any, operations: any, skills: any}
    unless: {role: {equals: reviewer}}
";
    let when = "  - id: trap
    deny: {agents: any, operations: any, skills: any}
    when: {role: {equals: contractor}}
";
    let odd = [
        Value::Null,
        json!(5),
        json!(true),
        json!(["reviewer"]),
        json!({ "a": "reviewer" }),
    ];
    for (rule, admitted, turned_away) in [
        (unless, "reviewer", "Reviewer"),
        (when, "reviewer", "contractor"),
    ] {
        let stand =
            Stand::with_policy(&format!("version: 1\npolicy: trap\nrules:\n{allow}{rule}")).await;
        let body = review("SendMessage");
        let good = stand
            .call(&stand.token("alice", admitted), "SendMessage", &body)
            .await;
        assert_eq!(
            (good.status, stand.counted()),
            (200, (1, 1)),
            "{rule}: {}",
            good.text()
        );
        let mut tokens = vec![
            stand.issuer.token("alice", Grant::Agent, Value::Null),
            stand.token("alice", turned_away),
        ];
        tokens.extend(odd.iter().map(|role| {
            stand
                .issuer
                .token("alice", Grant::Agent, json!({ "role": role }))
        }));
        for token in tokens {
            let before = stand.counted();
            let response = stand.call(&token, "SendMessage", &body).await;
            stand.assert_refused(before, &response, 403, rule);
        }
    }
}

/// Whoever knows the agent's address can walk around the gateway: this shows that the counters
/// count, and that closing the way is the operator's part.
#[tokio::test]
async fn a_direct_call_executes() {
    let stand = Stand::new().await;
    let mut client = Client::connect(stand.agent.address()).await.unwrap();
    let body = review("SendMessage");
    let response = client
        .post_json("/a2a", None, version_of("SendMessage"), &body)
        .await
        .unwrap();
    assert!(response.text().contains(GREETING));
    assert_eq!(stand.counted(), (1, 1));
}

/// What the agent receives is what was sent, and nothing of the caller's credentials.
#[tokio::test]
async fn the_agent_sees_the_callers_bytes_and_not_its_credentials() {
    let stand = Stand::new().await;
    let token = stand.reviewer();
    let body = format!("{{\"x-note\":{{\"n\":1.0}},{}", &review("SendMessage")[1..]);
    let fields = [
        ("A2A-Version", "1.0"),
        ("Cookie", "a=b"),
        ("X-Forwarded-For", "10.0.0.1"),
        ("Portcullis-Request-Id", "forged"),
        ("portcullis_assertion", "forged"),
        ("A2A-Extensions", "https://example.com/e1"),
    ];
    let response = stand.post(Some(&token), &fields, &body).await;
    assert_eq!(response.status, 200, "{}", response.text());
    let received = stand.agent.requests().pop().unwrap();
    assert_eq!(received.body, body.as_bytes());
    let head = String::from_utf8(received.head).unwrap().to_lowercase();
    for absent in [
        "authorization",
        "bearer",
        "cookie",
        "x-forwarded-for",
        "forged",
        &token.to_lowercase(),
    ] {
        assert!(!head.contains(absent), "{absent} in {head}");
    }
    let id = response
        .field("portcullis-request-id")
        .unwrap()
        .to_lowercase();
    assert!(
        head.contains(&format!("portcullis-request-id: {id}")),
        "{head}"
    );
    assert_eq!(head.matches("a2a-version: 1.0").count(), 1, "{head}");
    assert!(
        head.contains("a2a-extensions: https://example.com/e1"),
        "{head}"
    );
}

/// 1 B to 5 MB, three in a row on one connection, with and without a length, byte for byte.
#[tokio::test]
async fn bodies_pass_byte_for_byte_up_to_the_limit() {
    let stand = Stand::new().await;
    let token = stand.reviewer();
    let bearer = format!("Bearer {token}");
    let fields = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("A2A-Version", "1.0"),
    ];
    for size in [1, 100_000, 5_000_000] {
        let body = message("SendMessage", "review-diff", &"z".repeat(size), &[]);
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        for chunked in [false, false, false, true, true, true] {
            let response = if chunked {
                let mut all = fields.to_vec();
                all.push(("Transfer-Encoding", "chunked"));
                let mut bytes =
                    crate::support::client::request_head("POST", super::RPC, &all, None)
                        .into_bytes();
                for piece in body.as_bytes().chunks(40_000) {
                    bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
                    bytes.extend(piece);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"0\r\n\r\n");
                client.send(&bytes).await.unwrap();
                client.response().await.unwrap()
            } else {
                client
                    .request("POST", super::RPC, &fields, body.as_bytes())
                    .await
                    .unwrap()
            };
            assert_eq!(response.status, 200, "{size}, chunked {chunked}");
            assert_eq!(stand.agent.requests().pop().unwrap().body, body.as_bytes());
        }
    }
    // The limit is 8 MiB, also for a body that does not say its length.
    let over = message("SendMessage", "review-diff", &"z".repeat(8 << 20), &[]);
    let before = stand.counted();
    let response = stand
        .post(Some(&token), &[("A2A-Version", "1.0")], &over)
        .await;
    stand.assert_refused(before, &response, 413, "over the limit, with a length");
    let mut all = fields.to_vec();
    all.push(("Transfer-Encoding", "chunked"));
    let head = crate::support::client::request_head("POST", super::RPC, &all, None);
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    client.send(head.as_bytes()).await.unwrap();
    for _ in 0..9 {
        let piece = vec![b'z'; 1 << 20];
        let framed = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
        if client.send(&framed).await.is_err() {
            break;
        }
    }
    let response = client.response().await.unwrap();
    stand.assert_refused(before, &response, 413, "over the limit, chunked");
}
