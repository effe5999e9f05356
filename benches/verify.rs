//! Who sends a request: cold (signature and all claims), refused, and cached, by algorithm; cached
//! beside a long denylist; and the cache with more tokens than it holds.
#![allow(missing_docs, reason = "criterion's macros make public items")]

mod fixture;

use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fixture::fixture;
use http::{HeaderMap, HeaderValue, header};
use portcullis::cli::dev_issuer::DevAlgorithm;
use portcullis::cli::server::Outside;
use portcullis::config::snapshot::Snapshot;
use portcullis::identity::assertion::{Asserter, Assertion};
use portcullis::identity::issuer::Grant;
use portcullis::identity::{Denial, Denied, SigningKey, accept};
use portcullis::pipeline::gate::Ports;
use portcullis::pipeline::metrics::Metrics;
use portcullis::pipeline::revocations::Added;
use portcullis::pipeline::token_cache::{TokenCache, TokenKey};
use portcullis::pipeline::{Gate, Presentation, SeenAs, Verified, authenticate};
use serde_json::Value;
use std::error::Error;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Where the requests come from.
const PEER: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// A gate, and what keeps its journal going.
fn gate(snapshot: Snapshot) -> Result<(Gate, impl Sized), Box<dyn Error>> {
    let (outside, journal) = Outside::system(&snapshot)?;
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
    Ok((Gate::new(ports, snapshot), journal))
}

/// A request with these fields.
fn presentation(headers: &HeaderMap) -> Presentation<'_> {
    Presentation {
        headers,
        query: None,
        peer: PEER,
        certificate: None,
        method: "POST",
        seen_as: SeenAs::Url("https://gateway.example/a2a"),
    }
}

fn verify(c: &mut Criterion, name: &str, algorithm: DevAlgorithm) -> Result<(), Box<dyn Error>> {
    let fixture = fixture(1, algorithm)?;
    let (gate, _journal) = gate(fixture.snapshot)?;
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
    // Both refusals should take as long: no clock tells which names of keys there are.
    let [unknown, forged] = refused(&fixture.token)?;
    for (what, token) in [("unknown_kid", &unknown), ("bad_signature", &forged)] {
        group.bench_function(BenchmarkId::new(what, name), |b| {
            b.iter(|| {
                let refused = accept(&live.issuers, black_box(token), now);
                assert!(refused.is_err());
                refused.err()
            });
        });
    }
    group.bench_function(BenchmarkId::new("cached", name), |b| {
        b.iter(|| {
            let presentation = presentation(black_box(&headers));
            let verified = at_once(authenticate(&gate, &live, &presentation));
            assert!(verified.is_some_and(|verified| verified.is_ok()));
        });
    });
    Ok(())
}

/// What a long denylist costs a request whose token is remembered.
fn denylist(c: &mut Criterion) -> Result<(), Box<dyn Error>> {
    let fixture = fixture(1, DevAlgorithm::Es256)?;
    let (gate, _journal) = gate(fixture.snapshot)?;
    let live = gate.live();
    let mut headers = HeaderMap::new();
    let bearer = HeaderValue::try_from(format!("Bearer {}", fixture.token))?;
    headers.insert(header::AUTHORIZATION, bearer);
    let once = || {
        let presentation = presentation(black_box(&headers));
        let verified = at_once(authenticate(&gate, &live, &presentation));
        assert!(verified.is_some_and(|verified| verified.is_ok()));
    };
    let entries: Vec<Added> = (0..DENIED).map(added).collect();
    let mut group = c.benchmark_group("denylist");
    // In turn, so that whatever else the machine does meets both alike.
    let mut took = [Duration::ZERO; 2];
    for _ in 0..20 {
        for (took, entries) in took.iter_mut().zip([&[], &entries[..]]) {
            gate.revocations.replace(entries.to_vec());
            let began = Instant::now();
            for _ in 0..5_000 {
                once();
            }
            *took += began.elapsed();
        }
    }
    for (entries, name) in [(&[][..], "none"), (&entries[..], "10000")] {
        gate.revocations.replace(entries.to_vec());
        group.bench_function(BenchmarkId::new("cached", name), |b| b.iter(once));
    }
    let [without, with] = took.map(|took| took.as_secs_f64());
    println!(
        "denylist: a cached token costs {:.3} with {DENIED} entries of what it costs without",
        with / without
    );
    Ok(())
}

/// Entries of the list.
const DENIED: usize = 10_000;

/// One that does not meet the fixture's token: by `jti`, `sub` and key in turn.
fn added(n: usize) -> Added {
    let issuer = "corp".into();
    let denied = match n % 3 {
        0 => Denied::Token {
            issuer,
            id: format!("token-{n}").into(),
        },
        1 => Denied::Subject {
            issuer,
            subject: format!("subject-{n}").into(),
            issued_before: n.is_multiple_of(2).then_some(1_800_000_000),
        },
        _ => {
            let mut print = [7; 32];
            print[..8].copy_from_slice(&n.to_be_bytes());
            Denied::Key(print)
        }
    };
    Added {
        denial: Denial {
            denied,
            until: None,
        },
        iss: None,
        added: 0,
        note: None,
    }
}

/// A token under a name of no key, and one whose signature is another's.
fn refused(token: &str) -> Result<[String; 2], Box<dyn Error>> {
    let (signed, signature) = token.rsplit_once('.').ok_or("no signature")?;
    let (header, payload) = signed.split_once('.').ok_or("no payload")?;
    let mut header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header)?)?;
    let kid = header["kid"].as_str().ok_or("no kid")?;
    header["kid"] = kid.chars().rev().collect::<String>().into();
    let unknown = URL_SAFE_NO_PAD.encode(header.to_string());
    let mut other = URL_SAFE_NO_PAD.decode(signature)?;
    other.reverse();
    let other = URL_SAFE_NO_PAD.encode(other);
    Ok([
        format!("{unknown}.{payload}.{signature}"),
        format!("{signed}.{other}"),
    ])
}

/// The cache of verified tokens, with fewer tokens than it holds and with far more.
fn cache(c: &mut Criterion) {
    let mut group = c.benchmark_group("token_cache");
    for tokens in [10_000, 1_000_000] {
        let keys: Vec<TokenKey> = (0..tokens).map(|n| TokenKey::of(&n.to_string())).collect();
        let (cache, now) = (TokenCache::new(), Duration::ZERO);
        let Some(verified) = somebody() else {
            panic!("no caller");
        };
        let mut at = 0;
        let mut look = || {
            at = (at + 1) % keys.len();
            let Some(key) = keys.get(at) else {
                return;
            };
            if cache.get(key, now).is_none() {
                cache.insert(*key, Arc::clone(&verified), now);
            }
        };
        for _ in 0..keys.len() {
            look();
        }
        group.bench_function(BenchmarkId::new("distinct", tokens), |b| b.iter(&mut look));
        assert!(cache.len() <= 10_000);
    }
}

fn somebody() -> Option<Arc<Verified>> {
    let fixture = fixture(1, DevAlgorithm::Es256).ok()?;
    let (gate, _journal) = gate(fixture.snapshot).ok()?;
    let live = gate.live();
    let mut headers = HeaderMap::new();
    let bearer = HeaderValue::try_from(format!("Bearer {}", fixture.token)).ok()?;
    headers.insert(header::AUTHORIZATION, bearer);
    at_once(authenticate(&gate, &live, &presentation(&headers)))?.ok()
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
    if let Err(error) = denylist(c) {
        panic!("denylist: {error}");
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

criterion_group!(benches, bench, cache, assertion);
criterion_main!(benches);
