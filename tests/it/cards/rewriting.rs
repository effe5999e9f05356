//! `tests/cases/cards`: an agent's card and a publication, and what is published of it.
//!
//! A case's `upstream` or `card` that is a string is compared byte for byte; an object stands for
//! its compact form. `UPDATE_EXPECT=1` writes what came out into the files.

use portcullis::a2a::card::{
    Interface, Promises, Publication, Scheme, SchemeKind, SecuritySchemes, rewrite,
};
use portcullis::a2a::{Binding, Versions};
use portcullis::pipeline::cards::OFFERED;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn older_shape() {
    check("older_shape");
}

#[test]
fn newer_shape() {
    check("newer_shape");
}

#[test]
fn hybrid() {
    check("hybrid");
}

#[test]
fn bindings() {
    check("bindings");
}

#[test]
fn narrowed() {
    check("narrowed");
}

#[test]
fn security() {
    check("security");
}

#[test]
fn other_members() {
    check("other_members");
}

#[test]
fn withheld() {
    check("withheld");
}

fn check(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cases/cards/{file}.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut cases: Value = serde_json::from_str(&text).unwrap();
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    for case in cases.as_array_mut().unwrap() {
        let upstream = text_of(&case["upstream"]);
        let outcome = outcome_of(
            &upstream,
            &case["publication"],
            case["upstream"].is_string(),
        );
        if update {
            case["expect"] = outcome;
        } else {
            assert_eq!(
                pretty(&outcome),
                pretty(&case["expect"]),
                "{file}: {}",
                case["case"]
            );
        }
    }
    if update {
        std::fs::write(&path, layout(&cases)).unwrap();
    }
}

/// Comparing text also compares the order of members.
fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// One line per member of a case, and of its expectation.
fn layout(cases: &Value) -> String {
    let members = |value: &Value, indent: &str| -> String {
        let members = value.as_object().unwrap().iter();
        let lines: Vec<String> = members
            .map(|(name, value)| match name.as_str() {
                "expect" => {
                    let inner = value.as_object().unwrap().iter();
                    let inner: Vec<String> = inner
                        .map(|(name, value)| format!("{indent}  \"{name}\": {value}"))
                        .collect();
                    format!("{indent}\"expect\": {{\n{}\n{indent}}}", inner.join(",\n"))
                }
                _ => format!("{indent}\"{name}\": {value}"),
            })
            .collect();
        lines.join(",\n")
    };
    let cases = cases.as_array().unwrap().iter();
    let cases: Vec<String> = cases
        .map(|case| format!("  {{\n{}\n  }}", members(case, "    ")))
        .collect();
    format!("[\n{}\n]\n", cases.join(",\n"))
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn outcome_of(upstream: &str, publication: &Value, as_text: bool) -> Value {
    let texts = |values: &[Box<str>]| values.iter().map(|v| v.to_string()).collect::<Vec<_>>();
    let published = with_publication(publication, |p| rewrite(upstream.as_bytes(), p));
    match published {
        Err(fault) => json!({"fault": fault.label(), "says": fault.to_string()}),
        Ok(published) => {
            let body = String::from_utf8(published.document.body.to_vec()).unwrap();
            let parsed: Value = serde_json::from_str(&body).unwrap();
            let card = if as_text { body.into() } else { parsed };
            let interfaces: Vec<Value> = published
                .interfaces
                .iter()
                .map(|i| {
                    json!(format!(
                        "`{}` -> `{}` {} 0.3={} 1.0={}",
                        i.public_path,
                        i.backend_path,
                        i.binding.label(),
                        i.versions.v0_3,
                        i.versions.v1_0
                    ))
                })
                .collect();
            let dropped: Vec<Value> = published
                .dropped
                .iter()
                .map(|d| json!(format!("{} {}", d.reason.label(), d.address)))
                .collect();
            json!({"card": card, "interfaces": interfaces, "skills": texts(&published.skills),
                "dropped": dropped, "removed": texts(&published.removed),
                "leaks": texts(&published.leaks)})
        }
    }
}

fn with_publication<T>(spec: &Value, run: impl FnOnce(&Publication<'_>) -> T) -> T {
    let strings = |value: &Value| -> Vec<Box<str>> {
        let values = value.as_array().into_iter().flatten();
        values.map(|v| v.as_str().unwrap().into()).collect()
    };
    let listed: Option<Vec<Interface>> = spec["listed"].as_array().map(|listed| {
        let read = |one: &Value| Interface {
            public_path: one["public_path"].as_str().unwrap().into(),
            backend_path: one["backend_path"].as_str().unwrap().into(),
            binding: match one["binding"].as_str() {
                Some("GRPC") => Binding::Grpc,
                Some("HTTP+JSON") => Binding::Rest,
                Some(_) | None => Binding::JsonRpc,
            },
            versions: Versions {
                v0_3: strings(&one["versions"]).contains(&"0.3".into()),
                v1_0: strings(&one["versions"]).contains(&"1.0".into()),
            },
            backend: 0,
        };
        listed.iter().map(read).collect()
    });
    run(&Publication {
        public_base: spec["public_base"].as_str().unwrap(),
        backend_host: spec["host"].as_str().unwrap(),
        backend_port: u16::try_from(spec["port"].as_u64().unwrap()).unwrap(),
        backend_base_path: spec["base_path"].as_str().unwrap(),
        also_origins: &strings(&spec["also_origins"]),
        listed: listed.as_deref(),
        schemes: &schemes(&spec["schemes"]),
        both_forms: spec["both_forms"].is_boolean(),
        grpc_authority: spec["grpc"].as_str(),
        offered: &OFFERED,
        reachable: None,
        promises: Promises {
            streaming: !spec["streaming"].is_boolean(),
            push: spec["push"].is_boolean(),
            extended: spec["extended"].is_boolean(),
        },
        covered_only: spec["covered_only"].is_boolean(),
        signer: None,
        shows: &|id| match spec["shows"].as_array() {
            Some(shown) => shown.iter().any(|s| s.as_str() == id),
            None => true,
        },
    })
}

fn schemes(spec: &Value) -> SecuritySchemes {
    let Some(schemes) = spec.as_array() else {
        return SecuritySchemes::default();
    };
    let read = |scheme: &Value| {
        let scopes = scheme["scopes"].as_array().into_iter().flatten();
        Scheme {
            name: scheme["name"].as_str().unwrap().into(),
            kind: match scheme["openid"].as_str() {
                Some(url) => SchemeKind::OpenIdConnect(url.into()),
                None => SchemeKind::Bearer,
            },
            scopes: scopes.map(|s| s.as_str().unwrap().into()).collect(),
        }
    };
    SecuritySchemes::of(&schemes.iter().map(read).collect::<Vec<_>>())
}

fn spec() -> Value {
    json!({"public_base": "https://gw.example.com/agents/w", "host": "b.example.com",
        "port": 8080, "base_path": "/a2a"})
}

#[test]
fn the_tag_follows_the_bytes_that_leave() {
    let card = br#"{"name":"w","url":"http://b.example.com:8080/a2a"}"#;
    let first = with_publication(&spec(), |p| rewrite(card, p)).unwrap();
    let again = with_publication(&spec(), |p| rewrite(card, p)).unwrap();
    let mut moved = spec();
    moved["public_base"] = json!("https://other.example.com/agents/w");
    let moved = with_publication(&moved, |p| rewrite(card, p)).unwrap();
    assert_eq!(first.document.etag, again.document.etag);
    assert_ne!(first.document.etag, moved.document.etag);
}

/// Addresses as cards write them: the backend's own, disguised, foreign, broken.
fn address() -> impl Strategy<Value = String> {
    let scheme = prop_oneof![
        Just("http://"),
        Just("https://"),
        Just("HTTP://"),
        Just(""),
        Just("x:")
    ];
    let host = prop_oneof![
        Just("b.example.com"),
        Just("B.EXAMPLE.com."),
        Just("[::]"),
        Just("127.0.0.9"),
        Just("localhost"),
        Just("u:p@b.example.com"),
        Just("other.example.com"),
        Just("[::1")
    ];
    let port = prop_oneof![
        Just(""),
        Just(":8080"),
        Just(":1"),
        Just(":99999"),
        Just(":")
    ];
    let path = prop_oneof![
        Just(""),
        Just("/"),
        Just("/a2a"),
        Just("/a2a/"),
        Just("/a2a/x"),
        Just("/a2a/../y"),
        Just("/a2a//z"),
        Just("/a2a/x?y"),
        Just("/a2a%2Fx"),
        Just("/a2ab")
    ];
    (scheme, host, port, path).prop_map(|(s, h, p, t)| format!("{s}{h}{p}{t}"))
}

fn interface(url: &'static str, binding: &'static str) -> impl Strategy<Value = Value> {
    let names = prop_oneof![
        Just("JSONRPC"),
        Just("GRPC"),
        Just("HTTP+JSON"),
        Just("odd")
    ];
    let versions = prop_oneof![Just("1.0"), Just("0.3.0"), Just("2.0"), Just("")];
    (address(), names, versions).prop_map(move |(address, name, version)| {
        json!({url: address, binding: name, "protocolVersion": version})
    })
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        address().prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("name".to_owned()),
        Just("url".to_owned()),
        Just("supportedInterfaces".to_owned()),
        Just("additionalInterfaces".to_owned()),
        Just("capabilities".to_owned()),
        Just("skills".to_owned()),
        Just("provider".to_owned()),
        ".{0,6}"
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = with_publication(&spec(), |p| rewrite(&bytes, p));
    }

    #[test]
    fn any_json_is_answered(value in json_value()) {
        let text = value.to_string();
        if let Ok(published) = with_publication(&spec(), |p| rewrite(text.as_bytes(), p)) {
            let read: Value = serde_json::from_slice(&published.document.body).unwrap();
            prop_assert!(read.is_object());
        }
    }

    #[test]
    fn no_address_of_a_published_card_is_the_backends(
        url in address(),
        additional in prop::collection::vec(interface("url", "transport"), 0..4),
        supported in prop::collection::vec(interface("url", "protocolBinding"), 0..4),
        elsewhere in prop::collection::vec(address(), 3),
    ) {
        let card = json!({"name": "w", "url": url, "additionalInterfaces": additional,
            "supportedInterfaces": supported, "documentationUrl": elsewhere[0],
            "provider": {"organization": "o", "url": elsewhere[1]},
            "capabilities": {"extensions": [{"uri": "urn:x", "params": {"at": elsewhere[2]}}]}});
        let text = card.to_string();
        let Ok(published) = with_publication(&spec(), |p| rewrite(text.as_bytes(), p)) else {
            return Ok(());
        };
        let read: Value = serde_json::from_slice(&published.document.body).unwrap();
        let lists = ["additionalInterfaces", "supportedInterfaces"];
        let listed = lists.iter().flat_map(|l| read[l].as_array().into_iter().flatten());
        for address in listed.map(|i| &i["url"]).chain(read.get("url")) {
            let address = address.as_str().unwrap();
            let below = address.strip_prefix("https://gw.example.com/agents/w");
            prop_assert!(below.is_some_and(|b| b.is_empty() || b.starts_with('/')), "{address}");
            // Every address that is advertised leads to an interface.
            let path = below.unwrap().trim_end_matches('/');
            prop_assert!(published.interfaces.iter().any(|i| *i.public_path == *path));
        }
        for interface in &published.interfaces {
            let path = &interface.backend_path;
            prop_assert!(path.starts_with("/a2a/") || **path == *"/a2a", "{path}");
        }
        if published.leaks.is_empty() {
            let body = String::from_utf8_lossy(&published.document.body).to_lowercase();
            prop_assert!(!body.contains("b.example.com"), "{body}");
        }
    }
}

#[test]
fn cards_made_to_exhaust_are_answered() {
    let open = "[".repeat(1 << 20);
    let nested = format!("{}{}", &open[..1 << 19], "]".repeat(1 << 19));
    let fault =
        |text: &str| with_publication(&spec(), |p| rewrite(text.as_bytes(), p)).unwrap_err();
    assert_eq!(fault(&open).label(), "not_json");
    assert_eq!(fault(&nested).label(), "too_deep");

    let many: Vec<Value> = (0..10_000)
        .map(|n| {
            json!({"url": format!("http://b.example.com:8080/a2a/{n}"),
                "protocolBinding": "JSONRPC", "protocolVersion": "1.0"})
        })
        .collect();
    let card = json!({"name": "w", "supportedInterfaces": many}).to_string();
    let published = with_publication(&spec(), |p| rewrite(card.as_bytes(), p)).unwrap();
    assert_eq!(published.interfaces.len(), 64);
    assert_eq!(published.dropped.len(), 10_000 - 64);
    assert_eq!(published.dropped[0].reason.label(), "too_many");
}
