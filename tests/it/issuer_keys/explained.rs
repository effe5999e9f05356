//! `portcullis token explain-issuer`, and `inspect` with an issuer on the network.

use crate::support::issuer::{DevAlgorithm, Issuer};
use crate::support::issuer_stub::{IssuerStub, Mode};
use serde_json::{Value, json};
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

fn gateway(entry: &str) -> String {
    format!(
        "version: 1
listeners: [{{name: public, bind: 127.0.0.1:0, public_url: http://localhost}}]
agents: [{{name: one, route: {{path: /one}}, backend: {{url: \"http://127.0.0.1:9\"}}}}]
audit: {{journal: {{dir: journal}}}}
{entry}"
    )
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

    let mut arguments = asking(&stub, &ca);
    arguments.extend(["--audience", "https://gateway.test"]);
    let output = run(&arguments).await;
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
    assert!(
        !said.contains("missing") && !said.contains("FILL_IN"),
        "{said}"
    );
    let entry = &said[said.find("issuers:\n").unwrap()..];
    let file = folder.path().join("gateway.yaml");
    std::fs::write(&file, gateway(entry)).unwrap();
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

/// An issuer as one product publishes it.
struct Published {
    /// Below the server's address.
    path: &'static str,
    /// Its metadata; `ISS` stands for the issuer.
    metadata: Value,
    algorithm: DevAlgorithm,
    profile: &'static str,
    /// What has to be filled in, and with what.
    missing: &'static [(&'static str, &'static str, &'static str)],
}

const AUDIENCE: (&str, &str, &str) = ("audiences", "FILL_IN_AUDIENCE", "https://gateway.test");

fn products() -> Vec<Published> {
    let entra = json!({
        "issuer": "ISS", "jwks_uri": "https://SELF/discovery/v2.0/keys",
        "token_endpoint": "https://SELF/oauth2/v2.0/token",
        "response_types_supported": ["code", "id_token", "code id_token", "id_token token"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "tenant_region_scope": "EU", "cloud_instance_name": "microsoftonline.com",
        "cloud_graph_host_name": "graph.windows.net", "msgraph_host": "graph.microsoft.com",
    });
    vec![
        Published {
            path: "",
            metadata: json!({
                "issuer": "ISS", "jwks_uri": "ISS/jwks.json", "token_endpoint": "ISS/token",
                "id_token_signing_alg_values_supported": ["ES256", "RS256"],
            }),
            algorithm: DevAlgorithm::Es256,
            profile: "strict",
            missing: &[AUDIENCE],
        },
        Published {
            path: "/realms/agents",
            metadata: json!({
                "issuer": "ISS",
                "authorization_endpoint": "ISS/protocol/openid-connect/auth",
                "token_endpoint": "ISS/protocol/openid-connect/token",
                "introspection_endpoint": "ISS/protocol/openid-connect/token/introspect",
                "jwks_uri": "ISS/protocol/openid-connect/certs",
                "check_session_iframe": "ISS/protocol/openid-connect/login-status-iframe.html",
                "id_token_signing_alg_values_supported":
                    ["PS384", "RS384", "EdDSA", "ES384", "HS256", "ES256", "RS256", "PS256"],
            }),
            algorithm: DevAlgorithm::Rs256,
            profile: "keycloak",
            missing: &[AUDIENCE],
        },
        Published {
            path: "/7d5b7a9c-1f0e-4f43-9a53-2c8f2b1f7a10/v2.0",
            metadata: entra.clone(),
            algorithm: DevAlgorithm::Rs256,
            profile: "entra",
            missing: &[AUDIENCE],
        },
        Published {
            path: "/contoso/v2.0",
            metadata: entra,
            algorithm: DevAlgorithm::Rs256,
            profile: "entra",
            missing: &[AUDIENCE, ("tenants", "FILL_IN_TENANT", "contoso")],
        },
        Published {
            path: "/",
            metadata: json!({
                "issuer": "ISS", "authorization_endpoint": "ISSauthorize",
                "token_endpoint": "ISSoauth/token",
                "device_authorization_endpoint": "ISSoauth/device/code",
                "mfa_challenge_endpoint": "ISSmfa/challenge",
                "jwks_uri": "ISS.well-known/jwks.json",
                "id_token_signing_alg_values_supported": ["HS256", "RS256", "PS256"],
            }),
            algorithm: DevAlgorithm::Rs256,
            profile: "auth0",
            missing: &[AUDIENCE],
        },
        Published {
            path: "/oauth2/default",
            metadata: json!({
                "issuer": "ISS", "authorization_endpoint": "ISS/v1/authorize",
                "token_endpoint": "ISS/v1/token", "jwks_uri": "ISS/v1/keys",
                "introspection_endpoint": "ISS/v1/introspect",
                "id_token_signing_alg_values_supported": ["RS256"],
            }),
            algorithm: DevAlgorithm::Rs256,
            profile: "okta",
            missing: &[AUDIENCE],
        },
        Published {
            path: "/eu-central-1_aBcDeFgHi",
            metadata: json!({
                "issuer": "ISS", "jwks_uri": "ISS/.well-known/jwks.json",
                "authorization_endpoint":
                    "https://agents.auth.eu-central-1.amazoncognito.com/oauth2/authorize",
                "token_endpoint":
                    "https://agents.auth.eu-central-1.amazoncognito.com/oauth2/token",
                "userinfo_endpoint":
                    "https://agents.auth.eu-central-1.amazoncognito.com/oauth2/userInfo",
                "id_token_signing_alg_values_supported": ["RS256"],
            }),
            algorithm: DevAlgorithm::Rs256,
            profile: "cognito",
            missing: &[("clients", "FILL_IN_CLIENT", "4t5l3kq9u1example")],
        },
        Published {
            path: "",
            metadata: json!({
                "issuer": "ISS", "jwks_uri": "ISS/keys", "authorization_endpoint": "",
                "response_types_supported": ["id_token"], "subject_types_supported": [],
                "id_token_signing_alg_values_supported": ["RS256", "ES256", "ES384"],
            }),
            algorithm: DevAlgorithm::Es256,
            profile: "spiffe",
            missing: &[
                AUDIENCE,
                ("trust_domain", "FILL_IN_TRUST_DOMAIN", "example.org"),
            ],
        },
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_product_is_known_by_its_metadata_and_its_entry_loads_once_it_is_filled_in() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    for product in products() {
        // Entra's keys name no algorithm.
        let mut jwks: Value = serde_json::from_str(&Issuer::new(product.algorithm).jwks()).unwrap();
        if product.profile == "entra" {
            jwks["keys"][0].as_object_mut().unwrap().remove("alg");
        }
        let issuer = format!("https://SELF{}", product.path);
        let stub = IssuerStub::start(&issuer, &jwks.to_string()).await;
        stub.publish(&product.metadata.to_string().replace("ISS", &issuer));
        std::fs::write(&ca, &stub.ca).unwrap();

        let mut arguments = asking(&stub, &ca);
        arguments.push("--json");
        let output = run(&arguments).await;
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(said["profile"], product.profile, "{said}");
        let missing = said["missing"].as_array().unwrap().iter();
        let missing: Vec<_> = missing.map(|m| (&m["field"], &m["placeholder"])).collect();
        let wanted = product.missing.iter();
        let wanted: Vec<_> = wanted
            .map(|(f, p, _)| (Value::from(*f), Value::from(*p)))
            .collect();
        assert_eq!(
            missing,
            wanted.iter().map(|(f, p)| (f, p)).collect::<Vec<_>>(),
            "{said}"
        );

        let mut entry = said["entry"].as_str().unwrap().to_owned();
        for (field, placeholder, with) in product.missing {
            let marked = entry
                .lines()
                .find(|l| l.trim_start().starts_with(&format!("{field}: ")));
            let marked = marked.unwrap();
            assert!(
                marked.contains(placeholder) && marked.contains("# FILL IN: "),
                "{entry}"
            );
            entry = entry.replace(placeholder, with);
        }
        assert!(!entry.contains("FILL_IN"), "{entry}");
        let file = folder.path().join("gateway.yaml");
        std::fs::write(&file, gateway(&entry)).unwrap();
        let loaded = portcullis::config::load(&file);
        let loaded = loaded.unwrap_or_else(|problems| panic!("{entry}\n{problems}"));
        let [config] = &loaded.snapshot.issuers[..] else {
            panic!("{entry}");
        };
        assert_eq!(config.profile.rules().name, product.profile);

        // The same for people.
        let output = run(&asking(&stub, &ca)).await;
        let said = String::from_utf8(output.stdout).unwrap();
        for (field, ..) in product.missing {
            assert!(said.contains(&format!("\nmissing  {field}: ")), "{said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_metadata_says_instead_is_told() {
    let stub = IssuerStub::start("https://SELF", r#"{"keys": []}"#).await;
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, &stub.ca).unwrap();
    let cases = [
        (
            json!({"issuer": "https://SELF/", "jwks_uri": "https://SELF/k"}),
            format!("its metadata is that of \"{}/\"", stub.issuer()),
        ),
        (
            json!({"issuer": "https://SELF\u{1b}[31m", "jwks_uri": "https://SELF/k"}),
            format!("its metadata is that of \"{}\u{fffd}[31m\"", stub.issuer()),
        ),
        (
            json!({"issuer": "https://SELF", "jwks_uri": "https://keys.example.test/k"}),
            "add `--host keys.example.test`".to_owned(),
        ),
    ];
    for (metadata, wanted) in cases {
        stub.publish(&metadata.to_string());
        let output = run(&asking(&stub, &ca)).await;
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&wanted), "{wanted}: {said}");
        assert!(!said.contains("issuers:"), "{said}");
    }
}
