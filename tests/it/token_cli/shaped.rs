//! `portcullis token mint` for every product: what it makes, the product's entry takes.

use super::Fixture;
use serde_json::{Value, json};
use std::fs;

/// Writes the example of a product beside the fixture's key, for that key.
fn example(fixture: &Fixture, product: &str) -> String {
    let text = fs::read_to_string(format!("config/issuers/{product}.yaml")).unwrap();
    let keys = text.lines().find(|l| l.trim_start().starts_with("keys: "));
    let text = text.replace(
        keys.unwrap(),
        "    keys: {file: dev.jwks.json}\n    algorithms: [ES256]\n    development: true",
    );
    let policy = fs::read_to_string("config/issuers/policy.yaml").unwrap();
    fs::write(fixture.path("policy.yaml"), policy).unwrap();
    let file = fixture.path(&format!("{product}.yaml"));
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn mint(fixture: &Fixture, config: &str, options: &[&str]) -> (String, String) {
    let key = fixture.path("dev.private.pem");
    let key = key.to_str().unwrap();
    let mut arguments = vec!["token", "mint", "--key", key, "--config", config];
    arguments.extend(options);
    let output = fixture.run(&arguments, "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{options:?}: {said}");
    (String::from_utf8(output.stdout).unwrap(), said)
}

fn inspect(fixture: &Fixture, config: &str, token: &str) -> Value {
    let arguments = ["token", "inspect", "--json", "--config", config];
    let output = fixture.run(&arguments, token);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_product_takes_what_is_minted_for_it() {
    let fixture = Fixture::new();
    for (product, claim, client) in [
        ("keycloak", "typ", "azp"),
        ("entra", "ver", "azp"),
        ("auth0", "sub", "azp"),
        ("okta", "ver", "cid"),
        ("cognito", "token_use", "client_id"),
        ("spiffe", "sub", "sub"),
    ] {
        let config = example(&fixture, product);
        let (token, said) = mint(&fixture, &config, &["--sub", "alice", "--grant", "agent"]);
        assert_eq!(said, "", "{product}");
        let shown = inspect(&fixture, &config, &token);
        assert_eq!(shown["gateway"]["accepted"], true, "{product}: {shown}");
        assert_eq!(shown["gateway"]["grant"], "agent", "{product}: {shown}");
        for claim in [claim, client] {
            assert!(!shown["payload"][claim].is_null(), "{product}: {shown}");
        }
        // The same with an actor, who is named in the verdict.
        let options = ["--sub", "alice", "--grant", "agent", "--actor", "agent-7"];
        let (token, _) = mint(&fixture, &config, &options);
        let shown = inspect(&fixture, &config, &token);
        let findings = shown["gateway"]["findings"].as_array().unwrap();
        let told = findings.iter().find(|f| f["rule"] == "GR-8").unwrap();
        assert!(
            told["text"].as_str().unwrap().contains("`agent-7` acts"),
            "{told}"
        );
    }
}

#[test]
fn another_products_token_is_refused_by_the_rule_that_tells_it() {
    let fixture = Fixture::new();
    let config = example(&fixture, "entra");
    for (profile, rule) in [
        ("keycloak", "CL-10"),
        ("okta", "HD-5"),
        ("cognito", "HD-5"),
        ("strict", "HD-5"),
    ] {
        let options = ["--sub", "alice", "--grant", "agent", "--profile", profile];
        let (token, _) = mint(&fixture, &config, &options);
        let shown = inspect(&fixture, &config, &token);
        assert_eq!(shown["gateway"]["accepted"], false, "{profile}: {shown}");
        let findings = shown["gateway"]["findings"].as_array().unwrap();
        let refused = |f: &&Value| f["refuses"] == true && f["rule"] == rule;
        assert!(findings.iter().any(|f| refused(&f)), "{profile}: {shown}");
    }
}

#[test]
fn actors_stand_in_their_order() {
    let fixture = Fixture::new();
    let config = fixture.path("gateway.yaml");
    let config = config.to_str().unwrap();
    let options = [
        "--sub", "alice", "--actor", "outer", "--actor", "inner", "--grant", "full",
    ];
    let (token, said) = mint(&fixture, config, &options);
    assert!(said.contains("at the grant `agent` at most"), "{said}");
    let shown = inspect(&fixture, config, &token);
    assert_eq!(
        shown["payload"]["act"],
        json!({"sub": "outer", "act": {"sub": "inner"}})
    );
    assert_eq!(shown["gateway"]["grant"], "agent", "{shown}");
    let many: Vec<&str> = ["--actor", "a"].repeat(5);
    let (token, _) = mint(&fixture, config, &[&["--sub", "alice"], &many[..]].concat());
    let shown = inspect(&fixture, config, &token);
    assert_eq!(shown["gateway"]["accepted"], false, "{shown}");
}
