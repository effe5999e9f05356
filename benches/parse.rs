//! From the bytes of a request to a [`portcullis::a2a::Call`], and the SHA-256 that its record has.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use http::{HeaderMap, HeaderValue, Method};
use portcullis::a2a::skill_rules::{Selector, SkillRules};
use portcullis::a2a::{Binding, ReadRules, Request, Version, Versions, parse};
use portcullis::pipeline::admit::body_hash;
use serde_json::{Value, json};
use std::hint::black_box;
use std::sync::Arc;

fn params(length: usize) -> Value {
    json!({
        "message": {
            "messageId": "m-1", "contextId": "c-1", "role": "ROLE_USER",
            "metadata": {"skillId": "review-diff"},
            "parts": [{"text": "x".repeat(length)}],
        },
        "configuration": {"acceptedOutputModes": ["text/plain"]},
    })
}

/// A body of `size` bytes, made of the parameters of that size.
fn sized(size: usize, body: impl Fn(Value) -> Value) -> Bytes {
    let bare = body(params(0)).to_string().len();
    body(params(size.saturating_sub(bare))).to_string().into()
}

fn send_message(size: usize) -> Bytes {
    sized(
        size,
        |params| json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}),
    )
}

fn rest_message(size: usize) -> Bytes {
    sized(size, |params| params)
}

fn bench(c: &mut Criterion) {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("a2a-version", HeaderValue::from_static("1.0"));
    let mut versions = Versions::default();
    versions.insert(Version::V1_0);
    let rules = ReadRules {
        versions,
        tenants: false,
        skills: Some(Arc::new(SkillRules::new(vec![Selector::Metadata(
            "skillId".into(),
        )]))),
        ..ReadRules::default()
    };
    let mut group = c.benchmark_group("parse");
    let body = rest_message(1024);
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function(BenchmarkId::new("rest_send_message", 1024), |b| {
        b.iter(|| {
            let request = Request {
                method: &Method::POST,
                path: black_box("/message:send"),
                query: None,
                headers: black_box(&headers),
                body: &body,
            };
            let reading = parse(Binding::Rest, &request, &rules);
            assert!(reading.is_ok());
            reading
        });
    });
    for size in [1024, 64 * 1024, 1024 * 1024] {
        let body = send_message(size);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_with_input(BenchmarkId::new("send_message", size), &body, |b, body| {
            b.iter(|| {
                let request = Request {
                    method: &Method::POST,
                    path: "",
                    query: None,
                    headers: black_box(&headers),
                    body,
                };
                let reading = parse(Binding::JsonRpc, &request, &rules);
                assert!(reading.is_ok());
                reading
            });
        });
        group.bench_with_input(BenchmarkId::new("sha256", size), &body, |b, body| {
            b.iter(|| body_hash(black_box(body)));
        });
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
