//! `portcullis token inspect --config`: what the gateway would say.

use super::Fixture;
use crate::support::issuer::{Grant, Wrong};
use serde_json::{Value, json};

/// The rule that refuses a bad token.
fn rule(wrong: Wrong) -> &'static str {
    match wrong {
        Wrong::Audience | Wrong::Lacks("aud") => "CL-2",
        Wrong::Expired | Wrong::Lacks("exp") => "CL-3",
        Wrong::Signature | Wrong::Key | Wrong::Payload => "FM-6",
        Wrong::Issuer => "IS-1",
        Wrong::UnknownKid => "KY-1",
        Wrong::Typ => "HD-5",
        Wrong::AlgNone => "FM-1",
        Wrong::Lacks("iss") => "CL-1",
        Wrong::Lacks("iat") => "CL-5",
        Wrong::Lacks("sub") => "CL-7",
        Wrong::Lacks("jti") => "CL-8",
        Wrong::Lacks("client_id") => "CL-9",
        Wrong::Lacks(other) => panic!("no rule for {other}"),
        Wrong::NoGrant => "GR-1",
    }
}

#[test]
fn inspect_says_what_the_gateway_would_say() {
    let fixture = Fixture::new();
    let config = fixture.path("gateway.yaml");
    let inspect = ["token", "inspect", "--config", config.to_str().unwrap()];
    let good = fixture.issuer.token("alice", Grant::Agent, Value::Null);
    let said = fixture.good(&inspect, &good);
    for wanted in [
        "signature verified\n",
        "\nthe gateway would accept it\n",
        "  note: issuer entry `dev` is a development issuer\n",
        "expires in ",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    for wrong in Wrong::INVALID {
        let token = fixture.issuer.bad_token("alice", wrong);
        let output = fixture.run(&inspect, &token);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{wrong:?}: {said}");
        assert!(
            said.contains("\nthe gateway would refuse it\n"),
            "{wrong:?}: {said}"
        );
        // The rule at fault comes first; what follows from a claim that is not there may follow.
        let first = said.split("\n  refused by ").nth(1).unwrap();
        assert!(
            first.starts_with(&format!("{}: ", rule(wrong))),
            "{wrong:?}: {said}"
        );
        let refusals = said.matches("\n  refused by ").count();
        let alone = !matches!(wrong, Wrong::Lacks(_));
        assert!(refusals == 1 || !alone, "{wrong:?}: {said}");
        let signed_well = !matches!(rule(wrong), "FM-6" | "FM-1" | "KY-1" | "IS-1" | "CL-1");
        assert_eq!(
            said.starts_with("signature verified\n"),
            signed_well,
            "{wrong:?}: {said}"
        );
        let last = token.rsplit('.').next().unwrap();
        assert!(
            last.is_empty() || !said.contains(last),
            "{wrong:?}: the signature is shown"
        );
    }
    // Accepted, and worth nothing.
    let said = fixture.good(&inspect, &fixture.issuer.bad_token("alice", Wrong::NoGrant));
    assert!(said.contains("GR-1: "), "{said}");
    assert!(
        said.contains("\nthe gateway would accept it, and refuse every request: it has no grant\n")
    );
}

#[test]
fn a_verdict_as_json_names_every_finding() {
    let fixture = Fixture::new();
    let config = fixture.path("gateway.yaml");
    let inspect = [
        "token",
        "inspect",
        "--json",
        "--config",
        config.to_str().unwrap(),
    ];
    let mut claims = fixture
        .issuer
        .claims("alice", Grant::Full, json!({ "aud": "elsewhere" }));
    claims.lifetime = 7200;
    let output = fixture.run(&inspect, &fixture.issuer.mint(&claims));
    assert_eq!(output.status.code(), Some(1));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["signature"], "verified");
    assert_eq!(said["gateway"]["accepted"], false);
    assert_eq!(said["gateway"]["development"], true);
    let rules: Vec<&str> = said["gateway"]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["refuses"] == true)
        .map(|f| f["rule"].as_str().unwrap())
        .collect();
    assert_eq!(rules, ["CL-2", "CL-6"]);
    for (grant, name) in [(Grant::Agent, "agent"), (Grant::Full, "full")] {
        let said = fixture.good(&inspect, &fixture.issuer.token("a", grant, Value::Null));
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["gateway"]["grant"], name);
        assert_eq!(said["gateway"]["accepted"], true);
    }
    // What is no token has no parts to show, and a verdict all the same.
    let output = fixture.run(&inspect, "hello");
    assert_eq!(output.status.code(), Some(1));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(said.get("payload").is_none());
    assert_eq!(said["gateway"]["findings"][0]["rule"], "FM-1");
}
