//! `portcullis revoke` and `portcullis reload` as commands, against a gateway in a process of its
//! own: each option does what it says to the next call.

use super::hello_agent;
use crate::support::client::{get, post_json};
use crate::support::fake_agent::{message, version_of};
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::process::{Files, OPEN, Plan, Process, RPC, eventually, of_kind};
use portcullis::cli::demo_agent::DemoAgent;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// A gateway with a socket and a place for revocations.
struct Stand {
    agent: DemoAgent,
    issuer: Issuer,
    files: Files,
    process: Process,
}

impl Stand {
    async fn new() -> Stand {
        let agent = hello_agent().await;
        let issuer = Issuer::new(DevAlgorithm::Es256);
        let files = Files::write(&issuer, &Plan::for_agent(&agent.url()));
        let yaml = files.text("gateway.yaml").replace(
            "admin: {bind: 127.0.0.1:0}",
            "admin: {bind: 127.0.0.1:0, socket: state/admin.sock}\n\
             revocation: {state: state/revoked.json}",
        );
        files.put("gateway.yaml", &yaml);
        let process = Process::start(&files).await;
        Stand {
            agent,
            issuer,
            files,
            process,
        }
    }

    async fn status(&self, token: &str) -> u16 {
        let body = message("SendMessage", "hi", &[]);
        let version = version_of("SendMessage");
        let reply = post_json(self.process.public, RPC, Some(token), version, &body).await;
        reply.unwrap().status
    }

    async fn assert_passes(&self, token: &str, what: &str) {
        let before = self.agent.counters().executions();
        assert_eq!(self.status(token).await, 200, "{what}");
        assert_eq!(self.agent.counters().executions(), before + 1, "{what}");
    }

    async fn assert_revoked(&self, token: &str, what: &str) {
        let counters = self.agent.counters();
        let before = (counters.requests(), counters.executions());
        assert_eq!(self.status(token).await, 401, "{what}");
        let after = (counters.requests(), counters.executions());
        assert_eq!(after, before, "{what}: the agent was touched");
    }

    /// The command, with the gateway named by its file.
    fn command(&self, arguments: &[&str]) -> Output {
        let file = self.files.path("gateway.yaml");
        let (command, options) = arguments.split_first().unwrap();
        let mut all = vec![*command, "--config", file.to_str().unwrap()];
        all.extend(options);
        portcullis(&all, "")
    }

    /// The same, which must succeed, with its answer as JSON.
    fn done(&self, arguments: &[&str]) -> Value {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        answer(&self.command(&arguments))
    }

    fn token(&self, subject: &str, extra: Value) -> String {
        self.issuer.token(subject, Grant::Agent, extra)
    }
}

fn portcullis(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn answer(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn claim(token: &str, name: &str) -> String {
    use base64::Engine;
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let payload = engine.decode(token.split('.').nth(1).unwrap()).unwrap();
    let payload: Value = serde_json::from_slice(&payload).unwrap();
    payload[name].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_revocation_is_made_listed_and_taken_back() {
    let stand = Stand::new().await;
    let alice = stand.token("alice", json!({"sid": "session-1"}));
    let bob = stand.token("bob", json!({"client_id": "other-client"}));
    let token = stand.files.path("alice.token");
    std::fs::write(&token, format!("{alice}\n")).unwrap();
    let (jti, token) = (claim(&alice, "jti"), token.to_str().unwrap());
    let kid = stand.issuer.key().kid().to_owned();
    // Whether only Alice is met.
    let orders: [(&[&str], bool); 7] = [
        (&["--jti", &jti, "--issuer", "corp"], true),
        (&["--sub", "alice", "--issuer", "corp"], true),
        (
            &[
                "--sub",
                "alice",
                "--issuer",
                "corp",
                "--issued-before",
                "2100-01-01T00:00:00Z",
            ],
            true,
        ),
        (&["--sid", "session-1", "--issuer", "corp"], true),
        (&["--client-id", "test-client", "--issuer", "corp"], true),
        (&["--token", token], true),
        // The names of development keys are their thumbprints.
        (&["--key", &kid], false),
    ];
    for (order, only_alice) in orders {
        stand
            .assert_passes(&alice, &format!("before {order:?}"))
            .await;
        let mut arguments = vec!["revoke"];
        arguments.extend(order);
        let made = stand.done(&arguments);
        let id = made["id"].as_str().unwrap().to_owned();
        stand.assert_revoked(&alice, &format!("{order:?}")).await;
        match only_alice {
            true => {
                stand
                    .assert_passes(&bob, &format!("{order:?}, another"))
                    .await
            }
            false => {
                stand
                    .assert_revoked(&bob, &format!("{order:?}, another"))
                    .await
            }
        }
        let listed = stand.done(&["revoke", "--list"]);
        assert_eq!(
            listed["revocations"].as_array().unwrap().len(),
            1,
            "{listed}"
        );
        assert_eq!(listed["revocations"][0]["id"], id.as_str());
        // The token is nowhere, only the hash of what was signed.
        assert!(!listed.to_string().contains(&alice[..40]), "{order:?}");
        stand.done(&["revoke", "--remove", &id]);
        stand
            .assert_passes(&alice, &format!("after {order:?}"))
            .await;
    }
    // Issued after the instant.
    let order = [
        "revoke",
        "--sub",
        "alice",
        "--issuer",
        "corp",
        "--issued-before",
        "2020-01-01T00:00:00Z",
    ];
    stand.done(&order);
    stand.assert_passes(&alice, "issued later").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_options_and_every_mistake_say_what_they_did() {
    let stand = Stand::new().await;
    let alice = stand.token("alice", json!({}));
    let socket = stand.files.path("state/admin.sock");
    let socket = socket.to_str().unwrap();

    // By the socket itself, from standard input, with an end and a reason.
    let order = [
        "revoke",
        "--socket",
        socket,
        "--token",
        "-",
        "--until",
        "2100-01-01T00:00:00Z",
        "--note",
        "left the company",
        "--json",
    ];
    let made = answer(&portcullis(&order, &alice));
    assert_eq!(made["until"], 4_102_444_800_i64);
    assert_eq!(made["note"], "left the company");
    stand.assert_revoked(&alice, "by the socket").await;
    let listed = portcullis(&["revoke", "--socket", socket, "--list"], "");
    let listed = String::from_utf8(listed.stdout).unwrap();
    let id = made["id"].as_str().unwrap();
    assert!(listed.starts_with(id), "{listed}");
    assert!(listed.contains("note=\"left the company\""), "{listed}");
    let removed = stand.command(&["revoke", "--remove", id]);
    let removed = String::from_utf8(removed.stdout).unwrap();
    assert_eq!(removed, format!("{id} is taken back\n"));
    stand.assert_passes(&alice, "taken back").await;
    let listed = stand.command(&["revoke", "--list"]);
    assert_eq!(listed.stdout, b"nothing is revoked\n");
    // What an operator's terminal is shown is escaped.
    let made = stand.command(&["revoke", "--jti", "x\u{1b}[31m", "--issuer", "corp"]);
    assert_eq!(made.status.code(), Some(0));
    let made = String::from_utf8(made.stdout).unwrap();
    assert!(made.contains(r#"jti="x\u001b[31m""#), "{made}");
    let id = made.split_whitespace().nth(1).unwrap();
    stand.done(&["revoke", "--remove", id]);

    let garbage = stand.files.path("garbage");
    std::fs::write(&garbage, "not a token").unwrap();
    let garbage = garbage.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 10] = [
        (&["revoke"], 2, "--list"),
        (
            &["revoke", "--list", "--jti", "x"],
            2,
            "cannot be used with",
        ),
        (&["revoke", "--jti", "x"], 2, "--issuer"),
        (
            &[
                "revoke",
                "--jti",
                "x",
                "--issuer",
                "corp",
                "--issued-before",
                "2020-01-01T00:00:00Z",
            ],
            1,
            "`issued_before` does not go with `jti`",
        ),
        (
            &["revoke", "--remove", "../reload"],
            2,
            "not the id of an entry",
        ),
        (&["revoke", "--remove", "0011223344556677"], 1, "error: "),
        (
            &["revoke", "--jti", "x", "--issuer", "nobody"],
            1,
            "no issuer entry is called `nobody`",
        ),
        (
            &[
                "revoke",
                "--sub",
                "x",
                "--issuer",
                "corp",
                "--until",
                "2020-01-01T00:00:00Z",
            ],
            1,
            "has passed",
        ),
        (&["revoke", "--token", garbage], 3, "no signed token"),
        (
            &["revoke", "--socket", garbage, "--list"],
            1,
            "is the gateway running",
        ),
    ];
    for (arguments, code, wanted) in cases {
        let output = stand.command(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(wanted), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(
        stand.done(&["revoke", "--list"]),
        json!({"revocations": []})
    );
    let no_socket = stand.files.path("other.yaml");
    std::fs::write(&no_socket, "version: 1\n").unwrap();
    let output = portcullis(&["reload", "--config", no_socket.to_str().unwrap()], "");
    assert_eq!(output.status.code(), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_is_ordered_by_the_socket_and_by_a_token() {
    let stand = Stand::new().await;
    let alice = stand.token("alice", json!({}));
    let at = OPEN.find("  - id: tasks").unwrap();
    let reviewers = "    require: {role: {equals: reviewer}}\n";
    let narrowed = format!("{}{reviewers}{}", &OPEN[..at], &OPEN[at..]);
    let until = async |status: u16| {
        let what = format!("{status} after the reload");
        eventually(&what, async || {
            (stand.status(&alice).await == status).then_some(())
        })
        .await;
    };
    stand.files.put("policy.yaml", &narrowed);
    let output = stand.command(&["reload"]);
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.starts_with("asked; generation 1 is in force"),
        "{said}"
    );
    until(403).await;
    stand.files.put("policy.yaml", OPEN);
    assert_eq!(stand.done(&["reload"])["generation"], 2);
    until(200).await;
    let records = stand.files.records();
    let configs = of_kind(&records, "config");
    let triggers: Vec<&Value> = configs.iter().map(|r| &r["trigger"]).collect();
    assert_eq!(triggers, ["start", "admin", "admin"]);

    // The same orders by the address, with the full grant and nothing less.
    let admin = stand.process.admin;
    let order = json!({"issuer": "corp", "sub": "alice"}).to_string();
    let agent = stand.token("root", json!({}));
    let full = stand.issuer.token("root", Grant::Full, json!({}));
    for (token, revoked, reloaded) in [
        (None, 401, 401),
        (Some(&*agent), 403, 403),
        (Some(&*full), 201, 202),
    ] {
        let reply = post_json(admin, "/admin/v1/revocations", token, &[], &order).await;
        assert_eq!(reply.unwrap().status, revoked);
        let reply = post_json(admin, "/admin/v1/reload", token, &[], "").await;
        assert_eq!(reply.unwrap().status, reloaded);
    }
    stand.assert_revoked(&alice, "by the address").await;
    let bearer = format!("Bearer {full}");
    let listed = get(
        admin,
        "/admin/v1/revocations",
        &[("Authorization", &bearer)],
    )
    .await;
    assert_eq!(listed.unwrap().json()["total"], 1);
}
