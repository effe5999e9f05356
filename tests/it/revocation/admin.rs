//! The admin API: who may, what is taken, what is refused.

use super::{Stand, empty, token};
use crate::support::client::get;
use crate::support::issuer::{Grant, Wrong};
use portcullis::adapters::clock::{ManualClock, SystemClock};
use portcullis::pipeline::ports::Clock;
use serde_json::{Value, json};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// One exchange; `body` as JSON.
async fn exchange<S>(
    mut stream: S,
    method: &str,
    path: &str,
    body: Option<Value>,
    fields: &[(&str, &str)],
) -> (u16, String, String)
where
    S: AsyncReadExt + AsyncWriteExt + Unpin,
{
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    let mut head = format!(
        "{method} /admin/v1/{path} HTTP/1.1\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !fields.iter().any(|(name, _)| *name == "Host") {
        head.push_str("Host: localhost\r\n");
    }
    if !body.is_empty() && !fields.iter().any(|(name, _)| *name == "Content-Type") {
        head.push_str("Content-Type: application/json\r\n");
    }
    stream
        .write_all(format!("{head}\r\n{body}").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}

pub async fn by_socket(
    socket: &Path,
    method: &str,
    path: &str,
    body: Option<Value>,
    fields: &[(&str, &str)],
) -> (u16, Value) {
    let stream = UnixStream::connect(socket).await.unwrap();
    let (status, _, body) = exchange(stream, method, path, body, fields).await;
    (status, serde_json::from_str(&body).unwrap_or(Value::Null))
}

async fn by_address(
    stand: &Stand,
    method: &str,
    path: &str,
    body: Option<Value>,
    fields: &[(&str, &str)],
) -> (u16, String, Value) {
    let stream = TcpStream::connect(stand.gateway.admin).await.unwrap();
    let (status, head, body) = exchange(stream, method, path, body, fields).await;
    (
        status,
        head,
        serde_json::from_str(&body).unwrap_or(Value::Null),
    )
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[tokio::test]
async fn by_the_address_it_takes_the_full_grant_and_nothing_less() {
    let stand = Stand::new().await;
    let full = stand.corp.token("root", Grant::Full, Value::Null);
    let agent = token(&stand.corp, "alice", empty());
    let bad = stand.corp.bad_token("root", Wrong::Signature);
    let order = || Some(json!({"issuer": "corp", "sub": "mallory"}));
    for (method, path, body) in [
        ("GET", "revocations", None),
        ("POST", "revocations", order()),
        ("DELETE", "revocations/0011223344556677", None),
        ("POST", "reload", None),
        ("GET", "issuers", None),
        ("GET", "nowhere", None),
    ] {
        let (status, head, _) = by_address(&stand, method, path, body.clone(), &[]).await;
        assert_eq!(status, 401, "{path}");
        assert!(head.contains("Bearer realm"), "{head}");
        let fields = [("Authorization", &*bearer(&bad))];
        let (status, head, _) = by_address(&stand, method, path, body.clone(), &fields).await;
        assert_eq!(status, 401, "{path}");
        assert!(head.contains("invalid_token"), "{head}");
        let fields = [("Authorization", &*bearer(&agent))];
        let (status, head, _) = by_address(&stand, method, path, body, &fields).await;
        assert_eq!(status, 403, "{path}");
        assert!(head.contains("insufficient_scope"), "{head}");
    }
    assert!(stand.gateway.server.gate.revocations.added().is_empty());
    let fields = [("Authorization", &*bearer(&full))];
    let (status, _, shown) = by_address(&stand, "POST", "revocations", order(), &fields).await;
    assert_eq!(status, 201, "{shown}");
    let notes = stand.gateway.journal.records();
    let note = notes.iter().find(|r| r["note"] == "admin").unwrap();
    let wanted = format!("revoke sub {} by corp/root", shown["id"].as_str().unwrap());
    assert_eq!(note["detail"], wanted.as_str());
    stand
        .assert_revoked(&token(&stand.corp, "mallory", empty()), "revoked_subject")
        .await;
}

/// I-3: there is no door at which a bad token counts as none.
#[tokio::test]
async fn a_bad_token_is_refused_on_the_socket_too() {
    let stand = Stand::new().await;
    let socket = stand.socket();
    let bad = bearer(&stand.corp.bad_token("root", Wrong::Signature));
    let agent = bearer(&token(&stand.corp, "alice", empty()));
    for (fields, status) in [
        (vec![], 200),
        (vec![("Authorization", &*bad)], 401),
        (vec![("Authorization", &*agent)], 403),
        (vec![("Authorization", "Basic cm9vdDpyb290")], 401),
        (vec![("Authorization", "")], 401),
        (vec![("Origin", "https://evil.example.com")], 421),
        (vec![("Host", "evil.example.com")], 421),
    ] {
        let (found, _) = by_socket(&socket, "GET", "revocations", None, &fields).await;
        assert_eq!(found, status, "{fields:?}");
    }
    let (status, _) = by_socket(&socket, "GET", "revocations?access_token=x", None, &[]).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn orders_are_strict_json_and_say_what_is_wrong() {
    let stand = Stand::new().await;
    for (order, told) in [
        (json!([]), "no JSON object"),
        (json!({}), "exactly one of"),
        (json!({"issuer": "corp"}), "exactly one of"),
        (
            json!({"issuer": "corp", "jti": "a", "sub": "b"}),
            "exactly one of",
        ),
        (json!({"jti": "a"}), "`issuer` is missing"),
        (
            json!({"issuer": "corpo", "jti": "a"}),
            "no issuer entry is called `corpo`",
        ),
        (json!({"issuer": "corp", "jti": ""}), "`jti` is no string"),
        (json!({"issuer": "corp", "jti": 7}), "`jti` is no string"),
        (
            json!({"issuer": "corp", "jti": "a", "untill": 1}),
            "unknown member `untill`",
        ),
        (
            json!({"issuer": "corp", "jti": "a", "until": 1}),
            "has passed already",
        ),
        (
            json!({"issuer": "corp", "jti": "a", "until": "soon"}),
            "`until` is no instant",
        ),
        (
            json!({"issuer": "corp", "jti": "a", "issued_before": 1}),
            "does not go with",
        ),
        (
            json!({"issuer": "corp", "sub": "a", "issued_before": null}),
            "is no instant",
        ),
        (
            json!({"issuer": "corp", "key": "x"}),
            "does not go with `key`",
        ),
        (json!({"key": "x"}), "no RFC 7638 thumbprint"),
        (json!({"signing_input": "x"}), "no SHA-256"),
    ] {
        let (status, body) = stand
            .order("POST", "revocations", Some(order.clone()))
            .await;
        let message = body["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(status, 400, "{order}: {body}");
        assert!(message.contains(told), "{order}: {message}");
    }
    let socket = stand.socket();
    let plain = [("Content-Type", "text/plain")];
    let order = Some(json!({"issuer": "corp", "jti": "a"}));
    let (status, _) = by_socket(&socket, "POST", "revocations", order, &plain).await;
    assert_eq!(status, 415);
    let large = Some(json!({"note": "x".repeat(70_000)}));
    let (status, _) = by_socket(&socket, "POST", "revocations", large, &[]).await;
    assert_eq!(status, 413);
    for (method, path, status) in [
        ("PUT", "revocations", 405),
        ("GET", "reload", 405),
        ("GET", "nowhere", 404),
        ("DELETE", "revocations/0011223344556677", 404),
        ("GET", "revocations?limit=1", 400),
    ] {
        assert_eq!(
            stand.order(method, path, None).await.0,
            status,
            "{method} {path}"
        );
    }
    assert!(stand.gateway.server.gate.revocations.added().is_empty());
}

#[tokio::test]
async fn a_reload_is_asked_for_and_issuers_are_shown() {
    let stand = Stand::new().await;
    let (status, body) = stand.order("POST", "reload", None).await;
    assert_eq!((status, &body["generation"]), (202, &json!(1)));
    let (status, body) = stand.order("GET", "issuers", None).await;
    assert_eq!(status, 200);
    assert_eq!(body["issuers"][0]["name"], "corp");
    assert_eq!(body["issuers"][0]["usable_keys"], 1);
    assert_eq!(body["issuers"][1]["name"], "partner");
    for (path, status) in [
        ("issuers/corp/refresh", 409),
        ("issuers/nobody/refresh", 404),
    ] {
        assert_eq!(stand.order("POST", path, None).await.0, status, "{path}");
        assert_eq!(stand.order("GET", path, None).await.0, 405, "{path}");
    }
}

#[tokio::test]
async fn the_socket_is_its_users_own_and_goes_with_the_gateway() {
    let stand = Stand::new().await;
    let socket = stand.socket();
    let metadata = std::fs::symlink_metadata(&socket).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let folder = socket.parent().unwrap().to_owned();
    let names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(
        !names
            .iter()
            .any(|name| name.to_string_lossy().starts_with('.')),
        "{names:?}"
    );
    let Stand {
        gateway,
        agent: _agent,
        ..
    } = stand;
    assert!(gateway.server.stop(std::time::Duration::from_secs(5)).await);
    assert!(!socket.exists());
}

#[test]
fn a_dead_sockets_name_is_taken_over_and_a_live_ones_is_not() {
    use portcullis::proxy::socket::bind_socket;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let bound = bind_socket(&path).unwrap();
    let error = bind_socket(&path).unwrap_err().to_string();
    assert!(error.contains("another process answers there"), "{error}");
    drop(bound);
    assert!(!path.exists());
    std::fs::write(&path, "mine").unwrap();
    let error = bind_socket(&path).unwrap_err().to_string();
    assert!(error.contains("no socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

#[tokio::test]
async fn metrics_count_the_entries_in_force_by_kind() {
    let clock = Arc::new(ManualClock::at(SystemClock::new().now()));
    let listed = "version: 1\nrevoked:\n  - {issuer: corp, sub: mallory}\n";
    let stand = Stand::with(listed, Some(clock.clone()), |yaml| yaml).await;
    let counted = async || {
        let metrics = get(stand.gateway.admin, "/metrics", &[])
            .await
            .unwrap()
            .text();
        let kinds = ["jti", "sub", "client_id", "sid", "key", "signing_input"];
        kinds.map(|kind| {
            let name = format!("portcullis_denylist_entries{{kind=\"{kind}\"}} ");
            let line = metrics
                .lines()
                .find_map(|line| line.strip_prefix(&name))
                .unwrap();
            line.parse::<usize>().unwrap()
        })
    };
    assert_eq!(counted().await, [0, 1, 0, 0, 0, 0]);
    stand.revoke(json!({"issuer": "corp", "jti": "one"})).await;
    stand.revoke(json!({"issuer": "corp", "jti": "two"})).await;
    let sub = stand
        .revoke(json!({"issuer": "partner", "sub": "alice"}))
        .await;
    stand.revoke(json!({"key": "A".repeat(43)})).await;
    assert_eq!(counted().await, [2, 2, 0, 0, 1, 0]);
    let path = format!("revocations/{}", sub["id"].as_str().unwrap());
    stand.order("DELETE", &path, None).await;
    assert_eq!(counted().await, [2, 1, 0, 0, 1, 0]);
    // What has ended with its tokens is not in force.
    clock.advance(Duration::from_secs(90_000));
    assert_eq!(counted().await, [0, 1, 0, 0, 1, 0]);
}
