//! Who sends a request: cold (signature and all claims) and cached, by algorithm.
#![allow(missing_docs, reason = "criterion's macros make public items")]

mod fixture;

use aws_lc_rs::signature::Ed25519KeyPair;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fixture::fixture;
use http::{HeaderMap, HeaderValue, header};
use portcullis::cli::dev_issuer::DevAlgorithm;
use portcullis::cli::server::Outside;
use portcullis::identity::assertion::{Asserter, Assertion};
use portcullis::identity::issuer::Grant;
use portcullis::identity::{SigningKey, accept};
use portcullis::pipeline::gate::Ports;
use portcullis::pipeline::metrics::Metrics;
use portcullis::pipeline::{Gate, Presentation, SeenAs, authenticate};
use std::error::Error;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Where the requests come from.
const PEER: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn verify(c: &mut Criterion, name: &str, algorithm: DevAlgorithm) -> Result<(), Box<dyn Error>> {
    let fixture = fixture(1, algorithm)?;
    let (outside, _journal) = Outside::system(&fixture.snapshot)?;
    let ports = Ports {
        clock: outside.clock,
        random: outside.random,
        journal: outside.journal,
        ownership: outside.ownership,
        resolver: outside.resolver,
        introspector: outside.introspector,
        metrics: Arc::new(Metrics::new()?),
        keys: None,
        issuer_source: outside.issuer_source,
        revoked: Vec::new(),
        instance: outside.instance,
    };
    let gate = Gate::new(ports, fixture.snapshot);
    let live = gate.live();
    let mut headers = HeaderMap::new();
    let bearer = HeaderValue::try_from(format!("Bearer {}", fixture.token))?;
    headers.insert(header::AUTHORIZATION, bearer);
    let now = i64::try_from(gate.clock.now() / 1000)?;
    let mut group = c.benchmark_group("verify");
    group.bench_function(BenchmarkId::new("cold", name), |b| {
        b.iter(|| {
            let accepted = accept(&live.issuers, black_box(&fixture.token), now);
            assert!(accepted.is_ok());
            accepted
        });
    });
    group.bench_function(BenchmarkId::new("cached", name), |b| {
        b.iter(|| {
            let presentation = Presentation {
                headers: black_box(&headers),
                query: None,
                peer: PEER,
                certificate: None,
                method: "POST",
                seen_as: SeenAs::Url("https://gateway.example/a2a"),
            };
            let verified = at_once(authenticate(&gate, &live, &presentation));
            assert!(verified.is_some_and(|verified| verified.is_ok()));
        });
    });
    Ok(())
}

/// With known keys nothing is waited for, so no runtime is measured.
fn at_once<T>(judging: impl Future<Output = T>) -> Option<T> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(judging).poll(&mut context) {
        Poll::Ready(judged) => Some(judged),
        Poll::Pending => None,
    }
}

fn bench(c: &mut Criterion) {
    for (name, algorithm) in DevAlgorithm::NAMES {
        if let Err(error) = verify(c, name, algorithm) {
            panic!("{name}: {error}");
        }
    }
}

/// What an agent with `identity: assertion` costs for each call.
fn assertion(c: &mut Criterion) {
    let Ok(pair) = Ed25519KeyPair::generate() else {
        panic!("no key");
    };
    let asserter = Asserter::new(Arc::new(SigningKey::new(pair)));
    let body = [7; 32];
    c.bench_function("assertion", |b| {
        b.iter(|| {
            asserter.sign(black_box(&Assertion {
                gateway: "https://agents.example.com",
                agent: "pr-agent",
                subject: "3f2c9d1e-8a41-4a8f-9f60-1f5f0d4f8c55",
                issuer: "corp",
                client: Some("console"),
                actors: &[],
                grant: Some(Grant::Agent),
                skill: Some("review-diff"),
                rule: Some("reviewers-review"),
                request_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
                part: 1,
                method: "POST",
                target: "/a2a",
                body: &body,
                issued: 1_800_000_000,
            }))
        });
    });
}

criterion_group!(benches, bench, assertion);
criterion_main!(benches);
