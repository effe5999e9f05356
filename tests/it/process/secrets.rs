//! I-9: whatever callers and agents send, no token, credential or message text comes out again in
//! a log, a record, a metric or a reason, even with the log wide open.

use super::{card, hello_agent};
use crate::support::client::{Client, get, request_head};
use crate::support::fake_agent::message;
use crate::support::http1::chunked;
use crate::support::issuer::{DevAlgorithm, Grant, Issuer, Wrong};
use crate::support::process::{Files, Plan, Process, RPC, eventually, of_kind};
use crate::support::raw_agent::{Act, RawAgent, chunk, json_answer, stream_head};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::time::Duration;

/// Stands in every text that must not come out; header names are folded, so it has one case.
const MARK: &str = "qzsecretzq";

const FORMS: [&str; 2] = ["pretty", "json"];

fn start(files: &Files, form: &str) -> Process {
    // Named targets as well: a more specific directive must not win either.
    let open = "trace,pingora_core=trace,pingora_proxy=trace,hyper_util=trace,log=trace";
    Process::start_unready(files, &["--log", form], &[("PORTCULLIS_LOG", open)])
}

async fn until_cards(process: &Process) {
    process
        .until_ready("cards", |r| r.json()["reasons"] == json!([]))
        .await;
}

/// Sends bytes on a connection of their own and waits a moment for the answer.
async fn send(process: &Process, bytes: &[u8]) {
    let Ok(mut client) = Client::connect(process.public).await else {
        return;
    };
    // Some inputs get no answer, or a reset.
    if client.send(bytes).await.is_ok() {
        let answer = tokio::time::timeout(Duration::from_millis(400), client.response());
        let _ = answer.await;
    }
}

fn post(path: &str, fields: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = request_head("POST", path, fields, Some(body.len())).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Stops the process and searches everything that it ever said for each of `secrets`.
async fn search(mut process: Process, files: &Files, secrets: &[String]) {
    let mut said = Vec::new();
    for path in ["/readyz", "/metrics", "/livez"] {
        let answer = get(process.admin, path, &[]).await.unwrap();
        said.push((path, answer.text()));
    }
    process.signal("TERM");
    assert!(process.ended().await.success());
    let log = process.written();
    // Whether a line of theirs holds a secret today is luck, so there are none.
    for library in ["pingora_", "hyper", "reqwest", "rustls", "h2::"] {
        assert!(!log.contains(library), "{library} speaks in the log: {log}");
    }
    said.push(("the log", log));
    let journal = String::from_utf8(files.journal_bytes()).unwrap();
    said.push(("the journal", journal));
    let marked = STANDARD.encode(MARK);
    for (place, text) in said {
        let folded = text.to_ascii_lowercase();
        for (hay, secret) in [(&folded, MARK), (&text, &marked)] {
            let found = hay.lines().find(|line| line.contains(secret));
            assert!(found.is_none(), "{place} says {}", found.unwrap());
        }
        for secret in secrets {
            assert!(!text.contains(secret), "{place} has `{secret}`");
        }
    }
}

/// All parts of a token that are long enough to be looked for.
fn parts(tokens: &[String]) -> Vec<String> {
    let parts = tokens.iter().flat_map(|token| token.split('.'));
    parts.filter(|p| p.len() >= 16).map(str::to_owned).collect()
}

#[tokio::test]
async fn nothing_that_a_caller_sends_is_said_again() {
    let agent = hello_agent().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    for form in FORMS {
        let files = Files::write(&issuer, &Plan::for_agent(&agent.url()));
        let process = start(&files, form);
        until_cards(&process).await;
        let extra = json!({"role": "reviewer", "email": MARK, "realm": {"roles": [MARK]}});
        let good = issuer.token("alice", Grant::Agent, extra);
        let mut tokens = vec![good.clone()];
        tokens.extend(Wrong::INVALID.map(|wrong| issuer.bad_token("alice", wrong)));
        tokens.push(issuer.bad_token("alice", Wrong::NoGrant));
        for token in &tokens {
            for bytes in with_token(token) {
                send(&process, &bytes).await;
            }
        }
        for bytes in credentials()
            .into_iter()
            .chain(bodies(&good))
            .chain(malformed(&good))
        {
            send(&process, &bytes).await;
        }
        assert!(agent.counters().executions() > 0, "nothing got through");
        let written = process.written();
        assert!(
            written.contains("agent card fetched"),
            "the log is not open"
        );
        let records = files.records();
        assert!(of_kind(&records, "refusal").len() > 60, "{}", records.len());
        search(process, &files, &parts(&tokens)).await;
    }
}

/// A message with a marked text, and the token everywhere that people put it.
fn with_token(token: &str) -> Vec<Vec<u8>> {
    let body = message("SendMessage", MARK, &[]);
    let bearer = format!("Bearer {token}");
    let cookie = format!("session={token}");
    let typed = |fields: &[(&str, &str)], path: &str| {
        let mut all = vec![("Content-Type", "application/json"), ("A2A-Version", "1.0")];
        all.extend_from_slice(fields);
        post(path, &all, body.as_bytes())
    };
    vec![
        typed(&[("Authorization", &bearer)], RPC),
        typed(&[("Authorization", &bearer), ("Cookie", &cookie)], RPC),
        typed(
            &[("Authorization", &bearer), ("Authorization", &bearer)],
            RPC,
        ),
        typed(
            &[("Authorization", &format!("DPoP {token}")), ("DPoP", token)],
            RPC,
        ),
        typed(&[("Authorization", token), ("X-Api-Key", token)], RPC),
        typed(&[], &format!("{RPC}?access_token={token}")),
        typed(&[], &format!("/{token}")),
    ]
}

fn credentials() -> Vec<Vec<u8>> {
    let basic = format!("Basic {}", STANDARD.encode(MARK));
    let values = [
        &basic,
        "Bearer qzsecretzq",
        "Bearer qzsecretzq.qzsecretzq.qzsecretzq",
        "Bearer qzsecretzq qzsecretzq",
        "qzsecretzq",
    ];
    let one = |value: &&str| post(RPC, &[("Authorization", value)], MARK.as_bytes());
    values.iter().map(one).collect()
}

/// Bodies of a good caller, marked where text belongs and where it does not.
fn bodies(token: &str) -> Vec<Vec<u8>> {
    let bearer = format!("Bearer {token}");
    let sent = |body: &[u8], kind: &str, version: &str| {
        let fields = [
            ("Authorization", &*bearer),
            ("Content-Type", kind),
            ("A2A-Version", version),
        ];
        post(RPC, &fields, body)
    };
    let json = |body: &str| sent(body.as_bytes(), "application/json", "1.0");
    let mut rich: serde_json::Value =
        serde_json::from_str(&message("SendMessage", MARK, &[])).unwrap();
    rich["id"] = MARK.into();
    rich["params"]["metadata"] = json!({MARK: MARK});
    rich["params"]["message"]["metadata"] = json!({MARK: MARK, "skillId": MARK});
    rich["params"]["message"]["parts"] = json!([
        {"text": MARK}, {"data": {MARK: [MARK]}}, {"raw": STANDARD.encode(MARK)},
        {"url": format!("https://files.example/{MARK}?sig={MARK}"), "filename": MARK}]);
    let mut pushed = rich.clone();
    pushed["params"]["configuration"] = json!({"taskPushNotificationConfig": {
        "url": format!("https://hooks.example/{MARK}"), "token": MARK,
        "authentication": {"scheme": "Bearer", "credentials": MARK}}});
    let legacy = message("message/send", MARK, &[]);
    vec![
        json(&rich.to_string()),
        json(&pushed.to_string()),
        json(&format!("{{\"{MARK}")),
        json(&format!("[{rich}]")),
        json(&format!("{rich}{MARK}")),
        json(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{MARK}\"}}"
        )),
        json(&format!("{{\"{MARK}\":1,\"{MARK}\":2}}")),
        json(&legacy),
        sent(legacy.as_bytes(), MARK, "1.0"),
        sent(legacy.as_bytes(), "application/json", MARK),
        sent(
            &[MARK.as_bytes(), b"\xff\xfe"].concat(),
            "application/json",
            "1.0",
        ),
    ]
}

/// What is not HTTP, or not quite.
fn malformed(token: &str) -> Vec<Vec<u8>> {
    let head = |line: &str, fields: &str| {
        format!("{line}\r\nAuthorization: Bearer {token}\r\n{fields}\r\n").into_bytes()
    };
    let get = format!("GET {RPC}?{MARK}={MARK} HTTP/1.1");
    let post = format!("POST {RPC} HTTP/1.1\r\nHost: localhost");
    let long = MARK.repeat(5_000);
    let mut inputs = vec![
        format!("{MARK}\r\n\r\n").into_bytes(),
        format!("\u{16}\u{3}\u{1}{MARK}\r\n\r\n").into_bytes(),
        format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{MARK}").into_bytes(),
        head(&format!("{MARK} / HTTP/1.1"), "Host: localhost\r\n"),
        head(
            &format!("GET /{MARK}/../%2e%2f{MARK} HTTP/1.1"),
            "Host: localhost\r\n",
        ),
        head(&format!("GET /{MARK} HTTP/9.9"), "Host: localhost\r\n"),
        head(
            &format!("GET http://{MARK}/ HTTP/1.1"),
            "Host: localhost\r\n",
        ),
        head(
            &format!("CONNECT {MARK}:443 HTTP/1.1"),
            "Host: localhost\r\n",
        ),
        head(&get, ""),
        head(&get, &format!("Host: {MARK}\r\n")),
        head(&get, &format!("Host: a\r\nHost: {MARK}\r\n")),
        head(&get, &format!("Host: localhost\r\nX-Long: {long}\r\n")),
    ];
    for field in [
        format!("{MARK}\r\n"),
        format!("{MARK} {MARK}: x\r\n"),
        format!("{MARK}\u{0}: {MARK}\u{0}\r\n"),
        format!("X: y\r\n {MARK}\r\n"),
        format!("Content-Length: {MARK}\r\n"),
        format!("Content-Length: 1\r\nContent-Length: 2\r\nX: {MARK}\r\n"),
        format!("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n{MARK}: {MARK}\r\n"),
        format!("Transfer-Encoding: {MARK}\r\n"),
        format!("Transfer-Encoding: chunked\r\n\r\n{MARK}\r\n{MARK}\r\n"),
        format!("Content-Encoding: {MARK}\r\nContent-Length: 0\r\n"),
        format!("Connection: {MARK}, Host\r\n{MARK}: 1\r\nContent-Length: 0\r\n"),
        format!("Expect: {MARK}\r\nContent-Length: 0\r\n"),
        format!("traceparent: {MARK}\r\nForwarded: for={MARK}\r\nContent-Length: 0\r\n"),
        format!("Portcullis-Assertion: {MARK}\r\nContent-Length: 0\r\n"),
        // Longer than what comes.
        format!("Content-Length: 900\r\n\r\n{MARK}"),
    ] {
        inputs.push(head(&post, &field));
    }
    inputs
}

/// An agent's replies, good ones and broken ones, are as private as a caller's requests.
#[tokio::test]
async fn nothing_that_an_agent_answers_is_said_again() {
    let issuer = Issuer::new(DevAlgorithm::Es256);
    for form in FORMS {
        let agent = RawAgent::start([]).await;
        let replies = replies();
        let many = replies.len();
        agent.play([Act::Answer(card(agent.address.port()))]);
        agent.play(replies.into_iter().map(Act::AnswerThenClose));
        let url = format!("http://{}", agent.address);
        let files = Files::write(&issuer, &Plan::for_agent(&url));
        let process = start(&files, form);
        until_cards(&process).await;
        let token = issuer.token("alice", Grant::Agent, json!(null));
        for number in 0..many {
            let method = ["SendMessage", "SendStreamingMessage"][number % 2];
            let body = message(method, MARK, &[]);
            let fields = [
                ("Authorization", &*format!("Bearer {token}")),
                ("Content-Type", "application/json"),
                ("A2A-Version", "1.0"),
            ];
            send(&process, &post(RPC, &fields, body.as_bytes())).await;
        }
        agent
            .until("every reply to be asked for", |c| c.requests() > many)
            .await;
        eventually("every outcome", async || {
            let records = files.records();
            (of_kind(&records, "outcome").len() == many).then_some(())
        })
        .await;
        search(process, &files, &parts(&[token])).await;
    }
}

/// Each of them twice: once for a unary call, once for a stream.
fn replies() -> Vec<Vec<u8>> {
    let task = json!({"jsonrpc": "2.0", "id": 1, "result": {"task": {
        "id": "t-1", "contextId": "c-1", "metadata": {MARK: MARK},
        "status": {"state": "TASK_STATE_COMPLETED", "message": {
            "messageId": "r", "role": "ROLE_AGENT", "parts": [{"text": MARK}]}},
        "artifacts": [{"artifactId": "a-1", "parts": [{"text": MARK}, {"data": {MARK: 1}}]}]}}});
    let error = json!({"jsonrpc": "2.0", "id": 1,
        "error": {"code": -32000, "message": MARK, "data": {MARK: MARK}}});
    let plain = |head: &str| format!("{head}\r\n\r\n{MARK}").into_bytes();
    let streamed = |event: &str| {
        let mut stream = stream_head();
        stream.extend(chunk(event));
        stream.extend(chunked(b"", 1));
        stream
    };
    let once = vec![
        json_answer(200, &task.to_string()),
        json_answer(200, &error.to_string()),
        json_answer(200, &format!("[\"{MARK}\"]")),
        json_answer(
            200,
            &json!({"jsonrpc": "2.0", "id": 1, "error": MARK}).to_string(),
        ),
        json_answer(
            200,
            &json!({"jsonrpc": "2.0", "id": MARK, "result": MARK}).to_string(),
        ),
        json_answer(200, &format!("{{\"{MARK}\": {MARK}")),
        json_answer(500, &format!("<html>{MARK}</html>")),
        plain(MARK),
        plain(&format!("HTTP/1.1 200 {MARK}\r\n{MARK}")),
        plain(&format!("HTTP/1.1 200 OK\r\nContent-Length: {MARK}")),
        plain(&format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 900\r\nX: {MARK}"
        )),
        plain(&format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nX: {MARK}"
        )),
        plain("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2"),
        plain("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked"),
        plain(&format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {MARK}\r\nContent-Encoding: {MARK}"
        )),
        plain(&format!(
            "HTTP/1.1 401 No\r\nContent-Length: 0\r\nWWW-Authenticate: {MARK}"
        )),
        plain(&format!(
            "HTTP/1.1 302 No\r\nContent-Length: 0\r\nLocation: http://{MARK}/"
        )),
        streamed(&format!("data: {task}\n\n")),
        streamed(&format!("data: {MARK}\n\n")),
        streamed(&format!("event: {MARK}\nid: {MARK}\n: {MARK}\n\n")),
    ];
    once.iter().flat_map(|r| [r.clone(), r.clone()]).collect()
}

/// What is wrong with a card is said; what stands in it is not, but for the addresses of its
/// interfaces, which an operator must see to declare them.
#[tokio::test]
async fn nothing_of_a_broken_card_is_said_again() {
    let issuer = Issuer::new(DevAlgorithm::Es256);
    for answer in [
        json_answer(200, &format!("{{\"{MARK}\": {MARK}")),
        json_answer(
            200,
            &json!({"name": MARK, "description": MARK, MARK: MARK}).to_string(),
        ),
        json_answer(200, &format!("{{\"{MARK}\": 1, \"{MARK}\": 2}}")),
        format!("{MARK}\r\n\r\n{MARK}").into_bytes(),
        format!("HTTP/1.1 302 No\r\nLocation: http://{MARK}/{MARK}\r\n\r\n").into_bytes(),
    ] {
        let agent = RawAgent::start([Act::AnswerThenClose(answer)]).await;
        let url = format!("http://{}", agent.address);
        let files = Files::write(&issuer, &Plan::for_agent(&url));
        let process = start(&files, "pretty");
        eventually("the log to name the trouble", async || {
            process.written().contains("agent card: ").then_some(())
        })
        .await;
        search(process, &files, &[]).await;
    }
}

/// What tells the agent that it is us is as secret as what callers send.
#[tokio::test]
async fn nothing_that_says_who_we_are_is_said_again() {
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let by_file = "{header: {name: X-Api-Key, value: {file: secret.txt}}}";
    let by_variable = "{header: {name: X-Api-Key, value: \"${PORTCULLIS_TEST_KEY}\"}}";
    for identity in ["assertion", by_file, by_variable] {
        let agent = hello_agent().await;
        let url = format!("{}, identity: {identity}", agent.url());
        let files = Files::write(
            &issuer,
            &Plan {
                agent_members: "keys: {dir: made-keys}\n",
                ..Plan::for_agent(&url)
            },
        );
        files.put("secret.txt", MARK);
        let variables = [("PORTCULLIS_LOG", "trace"), ("PORTCULLIS_TEST_KEY", MARK)];
        let process = Process::start_unready(&files, &[], &variables);
        until_cards(&process).await;
        let token = issuer.token("alice", Grant::Agent, json!({"role": "reviewer"}));
        for bytes in with_token(&token) {
            send(&process, &bytes).await;
        }
        let name = match identity {
            "assertion" => "portcullis-assertion",
            _ => "x-api-key",
        };
        let sent: Vec<String> = agent
            .requests()
            .iter()
            .filter_map(|r| {
                let head = String::from_utf8(r.head.clone()).unwrap();
                let mut lines = head.lines();
                let value = lines.find_map(|l| l.strip_prefix(&format!("{name}: ")));
                value.map(str::to_owned)
            })
            .collect();
        assert!(!sent.is_empty(), "the agent was told nothing: {identity}");
        if identity != "assertion" {
            assert!(sent.iter().all(|value| value == MARK), "{identity}");
        }
        // A literal in the file is refused, and the refusal does not quote it.
        let literal = files.text("gateway.yaml").replace(
            &format!("identity: {identity}"),
            &format!("identity: {{header: {{name: X-Api-Key, value: {MARK}}}}}"),
        );
        files.put("gateway.yaml", &literal);
        process.signal("HUP");
        let reloads = "portcullis_reloads_total{result=\"failed\"} 1";
        eventually("the broken file to be refused", async || {
            let metrics = get(process.admin, "/metrics", &[]).await.ok()?;
            metrics.text().contains(reloads).then_some(())
        })
        .await;
        search(process, &files, &[parts(&[token]), parts(&sent)].concat()).await;
    }
}
