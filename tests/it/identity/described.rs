//! A caller that is only described is what a real token with the same payload makes of it.

use crate::support::issuer::{DevAlgorithm, Issuer};
use portcullis::a2a::strict_json::{Value, parse_value};
use portcullis::config;
use portcullis::identity::issuer::{Algorithm, Grant, IssuerConfig, KeyFile, KeyOrigin, Typ};
use portcullis::identity::trial::{Beside, completed, instant, principal};
use portcullis::identity::{Issuers, Principal, ProofKind, accept};
use std::path::Path;
use std::sync::Arc;

const EXAMPLES: [&str; 6] = ["keycloak", "entra", "auth0", "okta", "cognito", "spiffe"];

fn payload(text: &str) -> Value {
    parse_value(text.as_bytes(), 16).unwrap()
}

/// The issuer entries of the shipped examples, and a strict one, with our key.
fn entries(issuer: &Issuer) -> Vec<Arc<IssuerConfig>> {
    let products = EXAMPLES.map(|name| format!("config/issuers/{name}.yaml"));
    let files = products.iter().map(String::as_str);
    let mut entries = Vec::new();
    for file in files.chain(["config/gateway.yaml"]) {
        let snapshot = config::load(Path::new(file)).unwrap().snapshot;
        let mut entry = IssuerConfig::clone(&snapshot.issuers[0]);
        entry.algorithms = vec![Algorithm::Es256];
        entry.keys = KeyOrigin::File(KeyFile {
            path: "jwks.json".into(),
            content: issuer.jwks().into_bytes().into(),
        });
        entries.push(Arc::new(entry));
    }
    entries
}

#[test]
fn a_described_caller_is_what_its_token_would_be() {
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let (mut good, mut bad) = (0, 0);
    for entry in entries(&issuer) {
        let issuers = Issuers::compile(std::slice::from_ref(&entry)).0;
        let typ = match entry.typ[0] {
            Typ::AtJwt => r#","typ":"at+jwt""#,
            Typ::Jwt => r#","typ":"JWT""#,
            Typ::Jose => r#","typ":"JOSE""#,
            Typ::Absent => "",
        };
        let header = format!(r#"{{"alg":"ES256","kid":"{}"{typ}}}"#, issuer.key().kid());
        for (text, accepted) in [
            (r#"{}"#, true),
            (
                r#"{"role":"reviewer","groups":["a","b"],"scope":"x y","scp":["x"]}"#,
                true,
            ),
            (
                r#"{"scope":"a2a.full a2a.agent","realm_access":{"roles":["agents"]}}"#,
                true,
            ),
            (
                r#"{"act":{"sub":"robot","act":{"sub":"other"}},"scope":"a2a.full"}"#,
                true,
            ),
            (r#"{"role":null,"groups":"a","level":[1],"sid":"s"}"#, true),
            (r#"{"iat":1760000000,"exp":1760000300}"#, true),
            (r#"{"exp":1760000300}"#, true),
            (r#"{"sub":null}"#, false),
            (r#"{"sub":""}"#, false),
            (r#"{"aud":["https://elsewhere.example"]}"#, false),
            (r#"{"iss":"https://elsewhere.example"}"#, false),
            (r#"{"act":"robot"}"#, false),
            (r#"{"cnf":{}}"#, false),
            (r#"{"nonce":"n"}"#, false),
            (r#"{"iat":1760000000,"exp":1860000000}"#, false),
        ] {
            let claims = payload(text);
            let beside = Beside {
                proof: Some(ProofKind::Dpop),
                client: None,
                grant: None,
            };
            let whole = completed(&claims, &entry, &beside);
            let signed = issuer
                .key()
                .sign(header.as_bytes(), whole.to_string().as_bytes());
            let real = accept(&issuers, &signed.unwrap(), instant(&whole, &entry));
            let described = principal(&whole, (0, &entry), None);
            let name = &entry.name;
            match (real, described) {
                (Ok(real), Ok(described)) => {
                    good += 1;
                    assert!(accepted, "{name} {text}");
                    let described = Principal {
                        key: real.key,
                        algorithm: real.algorithm,
                        signing_input: real.signing_input,
                        ..described
                    };
                    assert_eq!(described, real, "{name} {text}");
                }
                (Err(real), Err(described)) => {
                    bad += 1;
                    assert!(!accepted, "{name} {text}: {real:?}");
                    assert_eq!(described, real.fault, "{name} {text}");
                }
                (real, described) => panic!("{name} {text}: {real:?}, {described:?}"),
            }
        }
    }
    assert!(good >= 40 && bad >= 40, "{good} {bad}");
}

#[test]
fn a_stated_grant_counts_where_no_mark_gives_one_and_delegation_caps_it() {
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let entries = entries(&issuer);
    let strict = entries.last().unwrap();
    let grant = |text: &str, stated| {
        let whole = completed(&payload(text), strict, &Beside::default());
        principal(&whole, (0, strict), stated).unwrap().grant
    };
    assert_eq!(grant("{}", None), None);
    assert_eq!(grant("{}", Some(Grant::Full)), Some(Grant::Full));
    let marked = r#"{"scope":"a2a.agent"}"#;
    assert_eq!(grant(marked, Some(Grant::Full)), Some(Grant::Agent));
    let delegated = r#"{"act":{"sub":"robot"}}"#;
    assert_eq!(grant(delegated, Some(Grant::Full)), Some(Grant::Agent));
    assert_eq!(grant(delegated, None), None);
}
