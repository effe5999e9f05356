//! `portcullis prove` with parts that are outside of it, and its result files.

use super::policy_cli::fixture;
use super::support::gateway::{Gateway, Setup};
use super::support::issuer::{DevAlgorithm, Issuer};
use super::support::{fake_agent, loopback, within};
use super::token_cli::Fixture;
use portcullis::cli::demo_agent::DemoAgent;
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const PROGRAM: &str = env!("CARGO_BIN_EXE_portcullis");

/// Runs the program without holding up the servers of the test.
async fn prove(arguments: &[&str]) -> (Option<i32>, String) {
    let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
    let run = tokio::task::spawn_blocking(move || {
        Command::new(PROGRAM).arg("prove").args(arguments).output()
    });
    said(within("the command", run).await.unwrap().unwrap())
}

fn said(output: Output) -> (Option<i32>, String) {
    let mut text = String::from_utf8(output.stdout).unwrap();
    text.push_str(&String::from_utf8(output.stderr).unwrap());
    assert!(!text.contains("eyJ"), "a token is shown:\n{text}");
    (output.status.code(), text)
}

/// A result of the fixture's tests, signed by the gateway's own key.
fn signed(fixture: &Fixture) -> Value {
    let out = fixture.path("proof.json");
    let config = fixture.path("prove/gate.yaml");
    let (config, out) = (config.to_str().unwrap(), out.to_str().unwrap());
    let output = fixture.run(&["prove", "--config", config, "--out", out], "");
    let (code, text) = said(output);
    assert_eq!(code, Some(0), "{text}");
    serde_json::from_slice(&fs::read(out).unwrap()).unwrap()
}

fn verify(fixture: &Fixture, more: &[&str]) -> (Option<i32>, String) {
    let file = fixture.path("proof.json");
    let mut arguments = vec!["prove", "--verify", file.to_str().unwrap()];
    arguments.extend(more);
    said(fixture.run(&arguments, ""))
}

/// Paths of everything in a value that is no object and no list.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                leaves(value, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (i, value) in items.iter().enumerate().take(1) {
                leaves(value, &format!("{path}/{i}"), found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

#[test]
fn no_field_of_a_signed_result_can_change() {
    let fixture = fixture();
    let result = signed(&fixture);
    let key = fixture.path("prove/state/keys/proof.pem");
    let key = ["--key", key.to_str().unwrap()];
    let (code, text) = verify(&fixture, &key);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("29 proven, 0 failed, 2 not tried"), "{text}");
    for (member, expected) in [
        ("kind", json!("proof")),
        ("v", json!(1)),
        ("mode", json!("separate_gateway")),
    ] {
        assert_eq!(result[member], expected, "{member}");
    }
    let row = &result["rows"][0];
    assert_eq!(
        (&row["requests"], &row["executions"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(row["got"]["rule"], "reviewers-review");
    assert!(row["got"]["request_id"].is_string());
    assert!(
        result["issuers"]
            .as_array()
            .unwrap()
            .iter()
            .all(|i| i["simulated"] == true)
    );
    let text = result.to_string();
    assert!(
        !text.contains("PRIVATE") && !text.contains("\"d\""),
        "{text}"
    );

    let mut paths = Vec::new();
    leaves(&result, "", &mut paths);
    assert!(paths.len() > 40, "{paths:?}");
    let put = |value: &Value| fs::write(fixture.path("proof.json"), value.to_string()).unwrap();
    for path in paths {
        let mut changed = result.clone();
        let leaf = changed.pointer_mut(&path).unwrap();
        *leaf = match &*leaf {
            Value::String(text) if path == "/signature" => {
                json!(format!(
                    "{}A{}",
                    &text[..text.len() - 20],
                    &text[text.len() - 19..]
                ))
            }
            Value::String(text) => json!(format!("{text}x")),
            Value::Number(number) => json!(number.as_u64().unwrap() + 1),
            Value::Bool(flag) => json!(!flag),
            Value::Null => json!("x"),
            Value::Array(_) => json!(["x"]),
            Value::Object(_) => json!({"x": 1}),
        };
        if changed == result {
            continue;
        }
        put(&changed);
        let (code, text) = verify(&fixture, &key);
        assert_eq!(code, Some(5), "{path}\n{text}");
        assert!(text.contains("NOT PROVEN"), "{path}\n{text}");
    }
    // A row less, a member more, no signature.
    type Change = fn(&mut Value);
    let changes: [Change; 4] = [
        |v| drop(v["rows"].as_array_mut().unwrap().pop()),
        |v| v["more"] = json!(1),
        |v| drop(v.as_object_mut().unwrap().remove("signature")),
        |v| drop(v.as_object_mut().unwrap().remove("off")),
    ];
    for change in changes {
        let mut changed = result.clone();
        change(&mut changed);
        put(&changed);
        assert_eq!(verify(&fixture, &key).0, Some(5));
    }
    // Space and order are nothing.
    fs::write(fixture.path("proof.json"), format!("{result:#}")).unwrap();
    assert_eq!(verify(&fixture, &key).0, Some(0));
}

#[test]
fn a_result_is_of_one_key_and_of_the_files_that_were_tried() {
    let fixture = fixture();
    let result = signed(&fixture);
    let path = |name: &str| fixture.path(name).to_str().unwrap().to_owned();
    let config = path("prove/gate.yaml");
    let with_config = ["--config", config.as_str()];
    let (code, text) = verify(&fixture, &with_config);
    assert_eq!(code, Some(0), "{text}");
    // Whoever trusts the key in the result can keep it.
    fs::write(
        path("trusted.json"),
        json!({"keys": [result["key"]]}).to_string(),
    )
    .unwrap();
    assert_eq!(
        verify(&fixture, &["--jwks", &path("trusted.json")]).0,
        Some(0)
    );
    let (code, text) = verify(&fixture, &["--key", &path("other.private.pem")]);
    assert_eq!(code, Some(5), "{text}");
    assert!(text.contains("signed by another key"), "{text}");
    assert_eq!(
        verify(&fixture, &["--jwks", &path("dev.jwks.json")]).0,
        Some(5)
    );

    let policy = fs::read_to_string(path("prove/team.yaml")).unwrap();
    fs::write(path("prove/team.yaml"), format!("{policy}# wider\n")).unwrap();
    let (code, text) = verify(&fixture, &with_config);
    assert_eq!(code, Some(5), "{text}");
    assert!(
        text.contains("team.yaml` is not a policy that was tried"),
        "{text}"
    );
    assert!(text.contains("is not in force"), "{text}");
    fs::write(path("prove/team.yaml"), &policy).unwrap();
    assert_eq!(verify(&fixture, &with_config).0, Some(0));

    let gateway = fs::read_to_string(&config).unwrap();
    fs::write(
        &config,
        gateway.replace("deny_status: 200", "deny_status: 403"),
    )
    .unwrap();
    let (code, text) = verify(&fixture, &with_config);
    assert_eq!(code, Some(5), "{text}");
    assert!(
        text.contains("is not the gateway file that was tried"),
        "{text}"
    );
    fs::write(&config, "version: [").unwrap();
    assert_eq!(verify(&fixture, &with_config).0, Some(3));
}

/// What is signed is what was found: a failure stays one.
#[test]
fn a_failed_run_is_signed_as_one() {
    let fixture = fixture();
    let path = |name: &str| fixture.path(name).to_str().unwrap().to_owned();
    let (config, wrong, out) = (
        path("prove/gate.yaml"),
        path("prove/failing/wrong_test.yaml"),
        path("proof.json"),
    );
    let arguments = ["prove", "--config", &config, "--out", &out, &wrong];
    let (code, text) = said(fixture.run(&arguments, ""));
    assert_eq!(code, Some(4), "{text}");
    let (code, text) = verify(&fixture, &["--config", &config]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("1 proven, 4 failed, 0 not tried"), "{text}");
    let result: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    assert_eq!(result["rows"][0]["result"], "failed");
    assert_eq!(result["rows"][0]["executions"], 0);
}

/// Files for a gateway with one agent at `agent`, and its policy with tests.
fn files(folder: &Path, agent: SocketAddr, issuer: &Issuer) -> String {
    let jwks = issuer.write_jwks(folder, "dev");
    let entry = issuer.yaml_entry("dev", &jwks, "{role: {path: [role], type: string}}");
    fs::write(folder.join("policy.yaml"), POLICY).unwrap();
    let yaml = format!(
        "version: 1
listeners: [{{name: public, bind: 127.0.0.1:0, public_url: http://localhost}}]
admin: {{bind: 127.0.0.1:0}}
issuers:
{entry}agents:
  - name: pr-agent
    route: {{path: /agents/pr-agent}}
    publish: true
    backend: {{url: http://{agent}}}
    skills: [review-diff, hello]
    skill_from: [{{metadata: skillId}}]
policies: {{files: [policy.yaml]}}
audit: {{journal: {{dir: journal}}}}
"
    );
    let file = folder.join("gateway.yaml");
    fs::write(&file, &yaml).unwrap();
    yaml
}

const POLICY: &str = "version: 1
policy: p
rules:
  - id: reviewers
    allow: {agents: [pr-agent], operations: [messages], skills: [review-diff]}
    grant: agent
    require: {role: {equals: reviewer}}
  - id: own-tasks
    allow: {agents: [pr-agent], operations: [tasks, list]}
    grant: agent
tests:
  - name: a reviewer reviews
    as: {grant: agent, claims: {role: reviewer}}
    call: {agent: pr-agent, operation: SendMessage, skill: review-diff}
    expect: {effect: allow, rule: reviewers, http: 200}
  - name: an author does not
    as: {grant: agent, claims: {role: author}}
    call: {agent: pr-agent, operation: SendMessage, skill: review-diff}
    expect: {effect: deny, reason: no_rule, http: 403}
  - name: the list
    as: {grant: agent, claims: {role: author}}
    call: {agent: pr-agent, operation: ListTasks}
    expect: {effect: allow, rule: own-tasks}
  - name: one's own task
    as: {grant: agent}
    call: {agent: pr-agent, operation: GetTask}
    expect: {effect: allow, rule: own-tasks}
  - name: another one's
    as: {grant: agent}
    call: {agent: pr-agent, operation: GetTask, owned: false}
    expect: {effect: deny, reason: not_owner, http: 200}
";

/// A counter that answers what `count` makes of the agent's own, and of how often it was asked.
async fn counter(agent: Arc<DemoAgent>, count: fn(u64, u64) -> u64) -> String {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for asked in 1.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let number = count(agent.counters().executions(), asked);
            let body = json!({"agent": {"acted": number}}).to_string();
            let reply = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_agents_own_count_is_the_proof() {
    let folder = tempfile::tempdir().unwrap();
    let agent = Arc::new(fake_agent::start().await);
    let issuer = Issuer::new(DevAlgorithm::Es256);
    files(folder.path(), agent.address(), &issuer);
    let config = folder.path().join("gateway.yaml");
    let config = config.to_str().unwrap();
    let real = [
        "--config",
        config,
        "--real-agents",
        "--counter-path",
        "agent.acted",
    ];
    let with = |url: &str| {
        let mut all = real.map(str::to_owned).to_vec();
        all.extend(["--counter-url".to_owned(), format!("pr-agent={url}")]);
        all
    };
    let run = async |url: String| {
        let arguments = with(&url);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        prove(&arguments).await
    };

    let (code, text) = run(counter(agent.clone(), |count, _| count).await).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("5 proven, 0 failed, 0 not tried"), "{text}");
    assert!(
        text.contains("  200   ? × 1    proven     a reviewer reviews"),
        "{text}"
    );
    assert!(
        text.contains("  403   ? × 0    proven     an author does not"),
        "{text}"
    );
    assert_eq!(agent.counters().executions(), 1);
    assert_eq!(agent.counters().requests(), 3);

    // One that acts twice on what it got once.
    let (code, text) = run(counter(agent.clone(), |count, _| count * 2).await).await;
    assert_eq!(code, Some(4), "{text}");
    assert!(
        text.contains("FAILED     a reviewer reviews\n        allowed, and the agent executed 2"),
        "{text}"
    );
    // One that acts all the time, as others call it around the gateway.
    let (code, text) = run(counter(agent.clone(), |count, asked| count + asked).await).await;
    assert_eq!(code, Some(4), "{text}");
    assert!(
        text.contains("to be refused, and the agent executed 1"),
        "{text}"
    );
    assert!(
        text.contains("its agent counted while nothing was sent"),
        "{text}"
    );
    assert!(
        text.contains("FAILED: agent pr-agent counted after its last test"),
        "{text}"
    );
    // One whose count is of something else.
    let (code, text) = run(counter(agent.clone(), |_, asked| 1000 - asked).await).await;
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("0 proven, 5 failed"), "{text}");
    assert!(text.contains("counter went backwards"), "{text}");
    // One that counts nothing, and one that says nothing.
    let (code, text) = run(counter(agent.clone(), |_, _| 7).await).await;
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("allowed, and the agent executed 0"), "{text}");
    let (code, text) = prove(&["--config", config, "--real-agents"]).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("0 proven, 0 failed, 5 not tried"), "{text}");
    assert!(text.contains("its agent has no counter"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_runs_is_tried_with_tokens_of_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let agent = Arc::new(fake_agent::start().await);
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let yaml = files(folder.path(), agent.address(), &issuer);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    issuer.key().save(Path::new(&at("dev.pem"))).unwrap();
    let jwks = issuer.jwks();
    let setup = |policy: &str| {
        Gateway::start_with(Setup {
            yaml: &yaml,
            files: &[("policy.yaml", policy), ("dev.jwks.json", &jwks)],
            clock: None,
        })
    };
    let command = format!(
        "case \"$(cat)\" in *'\"role\":\"reviewer\"'*) set -- --claim role=reviewer;; esac; \
         {PROGRAM} token mint --key {} --config {} --sub alice --grant $PORTCULLIS_GRANT \"$@\" 2>&-",
        at("dev.pem"),
        at("gateway.yaml"),
    );
    let url = format!("{}/counters", agent.url());
    let run = async |gateway: &Gateway, command: &str| {
        let (config, gateway) = (at("gateway.yaml"), format!("http://{}", gateway.address));
        prove(&[
            "--config",
            &config,
            "--gateway",
            &gateway,
            "--token-command",
            command,
            "--counter-url",
            &url,
            "--json",
        ])
        .await
    };

    let gateway = setup(POLICY).with_cards().await;
    let (code, text) = run(&gateway, &command).await;
    assert_eq!(code, Some(0), "{text}");
    let result: Value = serde_json::from_str(&text).unwrap();
    let results: Vec<&str> = result["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["result"].as_str().unwrap())
        .collect();
    assert_eq!(
        results,
        ["proven", "proven", "proven", "not_tried", "proven"],
        "{text}"
    );
    assert_eq!(result["mode"], "running_gateway");
    assert_eq!(result["simulated"], json!([]));
    assert_eq!(result["rows"][1]["executions"], 0);
    assert_eq!(agent.counters().executions(), 1);

    // No token, no proof; what the command says is nobody's to see.
    for command in ["echo secret-words; exit 3", "echo", "cat"] {
        let (code, text) = run(&gateway, command).await;
        assert_eq!(code, Some(1), "{text}");
        assert!(!text.contains("secret-words"), "{text}");
    }
    // A gateway that allows more than the policy that is proven.
    let wide = POLICY.replace("    require: {role: {equals: reviewer}}\n", "");
    let gateway = setup(&wide).with_cards().await;
    let (code, text) = run(&gateway, &command).await;
    assert_eq!(code, Some(4), "{text}");
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["rows"][1]["result"], "failed", "{text}");
    assert_eq!(result["rows"][1]["executions"], 1, "{text}");
}
