//! `portcullis token explain-issuer`, and `inspect` with an issuer on the network.

use crate::support::issuer::{DevAlgorithm, Issuer};
use crate::support::issuer_stub::{IssuerStub, Mode};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

async fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output());
    output.await.unwrap().unwrap()
}

/// The command line for an issuer on this machine.
fn asking<'a>(stub: &'a IssuerStub, ca: &'a Path) -> Vec<&'a str> {
    let ca = ca.to_str().unwrap();
    vec![
        "token",
        "explain-issuer",
        stub.issuer(),
        "--ca",
        ca,
        "--loopback",
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_is_explained_and_its_entry_is_one_that_loads() {
    let key = Issuer::new(DevAlgorithm::Es256);
    let mut jwks: Value = serde_json::from_str(&key.jwks()).unwrap();
    jwks["keys"]
        .as_array_mut()
        .unwrap()
        .push(serde_json::json!({"kty": "oct", "k": "AAAA"}));
    let stub = IssuerStub::start("https://SELF", &jwks.to_string()).await;
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, &stub.ca).unwrap();

    let output = run(&asking(&stub, &ca)).await;
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    for wanted in [
        format!("keys     {}/jwks.json\n", stub.issuer()),
        format!("  good   \"{}\", ES256\n", key.key().kid()),
        "  unused key 2 is a symmetric key".to_owned(),
        "(KY-13)\n".to_owned(),
        "profile  strict (RFC 9068)\n".to_owned(),
    ] {
        assert!(said.contains(&wanted), "{wanted}: {said}");
    }
    let entry = &said[said.find("issuers:\n").unwrap()..];
    let file = folder.path().join("gateway.yaml");
    let yaml = format!(
        "version: 1
listeners: [{{name: public, bind: 127.0.0.1:0, public_url: http://localhost}}]
agents: [{{name: one, route: {{path: /one}}, backend: {{url: \"http://127.0.0.1:9\"}}}}]
audit: {{journal: {{dir: journal}}}}
{entry}"
    );
    std::fs::write(&file, yaml).unwrap();
    let loaded = portcullis::config::load(&file).unwrap_or_else(|problems| panic!("{problems}"));
    assert!(loaded.snapshot.issuers[0].keys.remote().unwrap().loopback);

    // With the entry, a token is judged with the keys that are there now.
    let mut claims = key.claims("alice", crate::support::issuer::Grant::Agent, Value::Null);
    claims.issuer = stub.issuer().to_owned();
    claims.audience = "https://gateway.test".to_owned();
    let token = key.mint(&claims);
    let file = file.to_str().unwrap();
    let output = run(&["token", "inspect", "--config", file, &token]).await;
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("the gateway would accept it"), "{said}");
    stub.set(Mode::Http500, "{}");
    let output = run(&["token", "inspect", "--config", file, &token]).await;
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("could not be fetched"), "{said}");
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("status 500")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_without_usable_keys_is_a_no_with_its_reason() {
    let stub = IssuerStub::start("https://SELF", r#"{"keys": []}"#).await;
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, &stub.ca).unwrap();
    for (mode, error) in [
        (Mode::Ok, Value::Null),
        (Mode::Redirect, "redirected".into()),
        (
            Mode::DiscoveryIssuerMismatch,
            "metadata_of_another_issuer".into(),
        ),
        (Mode::Untrusted, "untrusted".into()),
    ] {
        stub.set(mode, r#"{"keys": []}"#);
        let mut arguments = asking(&stub, &ca);
        arguments.push("--json");
        let output = run(&arguments).await;
        assert_eq!(output.status.code(), Some(1), "{mode:?}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&said["error"], &said["entry"]),
            (&error, &Value::Null),
            "{said}"
        );
    }
    // Without the flag this machine is not asked at all.
    let before = stub.fetches();
    let mut arguments = asking(&stub, &ca);
    arguments.retain(|argument| *argument != "--loopback");
    let output = run(&arguments).await;
    assert_eq!((output.status.code(), stub.fetches()), (Some(1), before));
}
