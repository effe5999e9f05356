//! The corpus's cases of revocation, step by step through the gate.

use crate::support::fake_resolver::FakeResolver;
use crate::support::memory_journal::MemoryJournal;
use http::{HeaderMap, HeaderName};
use portcullis::a2a::Fault;
use portcullis::a2a::strict_json::parse_value;
use portcullis::adapters::clock::ManualClock;
use portcullis::adapters::fetch::introspection::IntrospectionClient;
use portcullis::adapters::ownership_memory::MemoryStore;
use portcullis::adapters::random::SystemRandom;
use portcullis::config;
use portcullis::identity::issuer::Grant;
use portcullis::pipeline::gate::{Gate, Ports};
use portcullis::pipeline::metrics::Metrics;
use portcullis::pipeline::revocations::{form, seconds};
use portcullis::pipeline::{Presentation, SeenAs, authenticate};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// Cases that need no connection of their own; over HTTP they are in `corpus::steps`.
const CASES: [&str; 6] = ["rv-001", "rv-002", "rv-003", "rv-004", "rv-005", "rv-006"];

const YAML: &str = "version: 1
listeners: [{name: public, bind: 127.0.0.1:0, public_url: http://localhost}]
agents:
  - name: one
    route: {path: /agents/one}
    backend: {url: http://127.0.0.1:9}
issuers:
  - name: A
    issuer: https://issuer-a.example
    audiences: [https://gateway.example/a2a]
    keys: {file: A.json}
    grants: [{path: [scope], form: space_string, map: {a2a:use: agent, gw:full: full}}]
  - name: B
    issuer: https://issuer-b.example
    audiences: [https://gateway.example/a2a]
    keys: {file: B.json}
    grants: [{path: [scope], form: space_string, map: {a2a:use: agent, gw:full: full}}]
audit: {journal: {dir: journal}}
";

fn gate(world: &Value, clock: Arc<ManualClock>) -> Gate {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("gateway.yaml"), YAML).unwrap();
    for issuer in ["A", "B"] {
        let jwks = world["jwks"][issuer]["default"].as_str().unwrap();
        std::fs::write(folder.path().join(format!("{issuer}.json")), jwks).unwrap();
    }
    let loaded = config::load(&folder.path().join("gateway.yaml"))
        .unwrap_or_else(|problems| panic!("{problems}"));
    let ports = Ports {
        clock: clock.clone(),
        random: Arc::new(SystemRandom),
        journal: Arc::new(MemoryJournal::default()),
        resolver: Arc::new(FakeResolver),
        introspector: Arc::new(IntrospectionClient::default()),
        ownership: Arc::new(MemoryStore::new(clock, Duration::from_secs(60), 1)),
        metrics: Arc::new(Metrics::new().unwrap()),
        keys: None,
        revoked: Vec::new(),
        issuer_source: Arc::new(portcullis::pipeline::issuer_keys::Nowhere),
        instance: "test".into(),
    };
    Gate::new(ports, loaded.snapshot)
}

/// Status of a request, by token and grant alone.
async fn requested(gate: &Gate, request: &Value) -> u16 {
    let mut headers = HeaderMap::new();
    for pair in request["headers"].as_array().unwrap() {
        let name: HeaderName = pair[0].as_str().unwrap().parse().unwrap();
        headers.append(name, pair[1].as_str().unwrap().parse().unwrap());
    }
    let presentation = Presentation {
        headers: &headers,
        query: None,
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        certificate: None,
        method: "POST",
        seen_as: SeenAs::Url("https://gateway.example/a2a"),
    };
    match authenticate(gate, &gate.live(), &presentation).await {
        Ok(verified) => {
            let needed = match request["surface"].as_str() {
                Some("a2a") => Grant::Agent,
                _ => Grant::Full,
            };
            let enough = verified
                .principal
                .grant
                .is_some_and(|grant| grant >= needed);
            if enough { 200 } else { 403 }
        }
        Err(rejection) => {
            assert_eq!(rejection.fault, Fault::Unauthenticated);
            401
        }
    }
}

/// The corpus's order, as operators give it.
fn revoke(gate: &Gate, by: &Value) {
    let mut order = by.clone();
    let issuer = order.as_object_mut().unwrap().remove("iss").unwrap();
    order["issuer"] = issuer;
    let order = parse_value(order.to_string().as_bytes(), 4).unwrap();
    let (live, now) = (gate.live(), seconds(gate.clock.now()));
    let added = form::read_order(&order, &live.snapshot.issuers, now).unwrap();
    gate.revocations.replace(vec![added]);
}

#[tokio::test]
async fn every_step_of_the_corpus_has_its_outcome() {
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let world = read(include_str!("../../cases/tokens/concrete.json"));
    let stepped = read(include_str!("../../cases/tokens/steps.json"));
    let now = world["now"].as_u64().unwrap() * 1000;
    for id in CASES {
        let mut cases = stepped["cases"].as_array().unwrap().iter();
        let case = cases.find(|case| case["id"] == id).unwrap();
        let clock = Arc::new(ManualClock::at(now));
        let gate = gate(&world, clock.clone());
        for (at, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            match step["do"].as_str().unwrap() {
                "request" => {
                    for request in step["requests"].as_array().unwrap() {
                        let found = requested(&gate, request).await;
                        let wanted = request["expect"]["status"].as_u64().unwrap();
                        assert_eq!(u64::from(found), wanted, "{} step {at}", case["id"]);
                    }
                }
                "revoke" => revoke(&gate, &step["by"]),
                "advance_clock" => {
                    clock.advance(Duration::from_secs(step["seconds"].as_u64().unwrap()));
                }
                other => panic!("no step {other}"),
            }
        }
    }
}
