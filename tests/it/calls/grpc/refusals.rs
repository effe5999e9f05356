//! What never reaches an agent: answered in trailers alone.

use super::{NEW, OLD, Stand, assert_status, good, head, message, path, reply, request, task};
use crate::support::issuer::{Grant, Wrong};
use crate::support::proto::framed;
use serde_json::json;

/// What it is, path, token, further fields, body, and the status.
type Case<'a> = (
    &'a str,
    &'a str,
    Option<&'a str>,
    &'a [(&'static str, &'a str)],
    &'a [u8],
    &'a str,
);

#[tokio::test]
async fn refusals_are_trailers_alone_and_nothing_reaches_the_agent() {
    let first = reply(NEW, "SendMessage", &json!([["task", task()]]));
    let stand = Stand::behind_listener([good(first)]).await;
    let alice = stand.token("alice");
    let mallory = stand.token("mallory");
    let guest = stand
        .issuer
        .token("guest", Grant::Agent, json!({"role": "guest"}));
    let full = stand
        .issuer
        .token("root", Grant::Full, json!({"role": "reviewer"}));
    let expired = stand.issuer.bad_token("alice", Wrong::Expired);
    let mut client = stand.client().await;
    let send = request(NEW, "SendMessage", &message(NEW, &[]));
    let get = request(NEW, "GetTask", &json!([["id", "t-1"]]));
    let old_get = request(OLD, "GetTask", &json!([["name", "tasks/t-1"]]));
    let (new_path, get_path) = (path(NEW, "SendMessage"), path(NEW, "GetTask"));
    let made = client
        .request("POST", &new_path, &head(Some(&alice), &[]), &send)
        .await
        .unwrap();
    assert_eq!(made.trailer("grpc-status"), Some("0"), "{made:?}");
    let mut gzip = send.clone();
    gzip[0] = 1;
    let two_ids = request(NEW, "GetTask", &json!([["id", "t-2"], ["id", "t-1"]]));
    let theirs = |package| {
        request(
            package,
            "SendMessage",
            &message(package, &[("task_id", "t-1")]),
        )
    };
    let (new_theirs, old_theirs) = (theirs(NEW), theirs(OLD));
    let none: &[(&'static str, &str)] = &[];
    let cases: &[Case<'_>] = &[
        ("no token", &get_path, None, none, &get, "16"),
        ("expired", &get_path, Some(&expired), none, &get, "16"),
        (
            "no token, no such method",
            "/lf.a2a.v1.A2AService/X",
            None,
            none,
            &get,
            "16",
        ),
        ("no rule", &new_path, Some(&guest), none, &send, "7"),
        ("another's task", &get_path, Some(&mallory), none, &get, "5"),
        (
            "another's task in 0.3",
            "/a2a.v1.A2AService/GetTask",
            Some(&mallory),
            none,
            &old_get,
            "5",
        ),
        (
            "no such task",
            &get_path,
            Some(&mallory),
            none,
            &request(NEW, "GetTask", &json!([["id", "no"]])),
            "5",
        ),
        (
            "another's task in a message (FC-48)",
            &new_path,
            Some(&mallory),
            none,
            &new_theirs,
            "5",
        ),
        (
            "the same in 0.3 (FC-48)",
            "/a2a.v1.A2AService/SendMessage",
            Some(&mallory),
            none,
            &old_theirs,
            "5",
        ),
        (
            "1.0 bytes under the name of 0.3 (FC-48)",
            "/a2a.v1.A2AService/SendMessage",
            Some(&alice),
            none,
            &send,
            "3",
        ),
        ("an id twice", &get_path, Some(&alice), none, &two_ids, "3"),
        ("no frame", &get_path, Some(&alice), none, b"", "3"),
        (
            "a compressed message",
            &new_path,
            Some(&alice),
            none,
            &gzip,
            "12",
        ),
        (
            "a compression",
            &new_path,
            Some(&alice),
            &[("grpc-encoding", "gzip")],
            &send,
            "12",
        ),
        (
            "the version of the other package",
            &get_path,
            Some(&alice),
            &[("a2a-version", "0.3")],
            &get,
            "9",
        ),
        (
            "no timeout",
            &get_path,
            Some(&alice),
            &[("grpc-timeout", "soon")],
            &get,
            "3",
        ),
        (
            "no time",
            &get_path,
            Some(&alice),
            &[("grpc-timeout", "0n")],
            &get,
            "4",
        ),
        (
            "a query",
            "/lf.a2a.v1.A2AService/GetTask?x=1",
            Some(&alice),
            none,
            &get,
            "3",
        ),
        (
            "no such method",
            "/lf.a2a.v1.A2AService/X",
            Some(&full),
            none,
            &get,
            "12",
        ),
        (
            "reflection (FC-47)",
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            Some(&full),
            none,
            &get,
            "12",
        ),
        (
            "old reflection (FC-47)",
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            Some(&full),
            none,
            &get,
            "12",
        ),
        (
            "health (FC-47)",
            "/grpc.health.v1.Health/Check",
            Some(&full),
            none,
            &framed(b""),
            "12",
        ),
        (
            "health without a token (FC-47)",
            "/grpc.health.v1.Health/Check",
            None,
            none,
            &framed(b""),
            "16",
        ),
        (
            "another service (FC-47)",
            "/evil.Service/X",
            Some(&full),
            none,
            &get,
            "12",
        ),
    ];
    for (what, path, token, more, body, status) in cases {
        let answer = client
            .request("POST", path, &head(*token, more), body)
            .await
            .unwrap();
        assert_status(&answer, status, what);
        let challenged = answer.field("www-authenticate").is_some();
        assert_eq!(challenged, *status == "16", "{what}");
        assert_eq!(stand.seen().len(), 1, "{what}: the agent was touched");
    }
    // Absent and another's are the same bytes but for the request's id.
    let mut answers = Vec::new();
    for id in ["t-1", "no"] {
        let body = request(NEW, "GetTask", &json!([["id", id]]));
        let mut answer = client
            .request("POST", &get_path, &head(Some(&mallory), &[]), &body)
            .await
            .unwrap();
        answer.fields.remove("portcullis-request-id");
        answer.fields.remove("date");
        answers.push(answer.fields);
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(stand.seen().len(), 1);
}

#[tokio::test]
async fn what_is_no_grpc_is_told_so_in_http() {
    let stand = Stand::behind_listener([]).await;
    let token = stand.token("alice");
    let mut client = stand.client().await;
    let answer = client
        .post_json(&path(NEW, "GetTask"), Some(&token), "{}")
        .await
        .unwrap();
    assert_eq!(answer.status, 415, "{answer:?}");
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(answer.field("grpc-status"), None);
    assert!(stand.seen().is_empty());
}
