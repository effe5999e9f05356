//! From the bytes of a request to a [`portcullis::a2a::Call`], the SHA-256 that its record has, and
//! from an event of a stream to what it names.
#![allow(missing_docs, reason = "criterion's macros make public items")]

#[path = "../tests/it/support/proto.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod proto;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use http::{HeaderMap, HeaderValue, Method};
use portcullis::a2a::skill_rules::{Selector, SkillRules};
use portcullis::a2a::{
    Binding, Dialect, Expectation, Operation, Piece, ReadRules, Reader, Request, Version, Versions,
    parse,
};
use portcullis::pipeline::admit::body_hash;
use serde_json::{Value, json};
use std::hint::black_box;
use std::sync::Arc;

const GRPC_PACKAGE: &str = "lf.a2a.v1";

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

/// A frame of `size` bytes.
fn grpc_message(size: usize) -> Bytes {
    let framed = |text: String| {
        let message = json!([
            ["message_id", "m-1"], ["context_id", "c-1"], ["role", 1],
            ["parts", [["text", text]]],
            ["metadata", {"struct": {"skillId": "review-diff"}}],
        ]);
        let fields = json!([
            ["message", message],
            ["configuration", [["accepted_output_modes", "text/plain"]]],
        ]);
        proto::framed(&proto::encode(GRPC_PACKAGE, "SendMessageRequest", &fields))
    };
    // Two lengths, of the part and of the text in it, take a byte more each, and so does the
    // message's.
    let bare = framed(String::new()).len() + 3;
    framed("x".repeat(size.saturating_sub(bare))).into()
}

/// An event of 1 KB with a piece of an artifact, in both framings.
fn events() -> [(&'static str, Dialect, Bytes); 2] {
    let text = "x".repeat(800);
    let event = json!({"jsonrpc": "2.0", "id": 1, "result": {"artifactUpdate": {
        "taskId": "t-1", "contextId": "c-1", "append": true, "lastChunk": false,
        "artifact": {"artifactId": "a-1", "name": "review", "parts": [{"text": text}]}}}});
    let update = json!([[
        "artifact_update",
        [
            ["task_id", "t-1"],
            ["context_id", "c-1"],
            [
                "artifact",
                [
                    ["artifact_id", "a-1"],
                    ["name", "review"],
                    ["parts", [["text", text]]]
                ]
            ],
            ["append", true],
        ]
    ]]);
    let frame = proto::framed(&proto::encode(GRPC_PACKAGE, "StreamResponse", &update));
    let dialect = |binding| Dialect {
        binding,
        version: Version::V1_0,
    };
    [
        (
            "sse_event",
            dialect(Binding::JsonRpc),
            format!("data: {event}\n\n").into(),
        ),
        ("grpc_event", dialect(Binding::Grpc), frame.into()),
    ]
}

fn head(media_type: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static(media_type));
    headers.insert("a2a-version", HeaderValue::from_static("1.0"));
    headers
}

fn bench(c: &mut Criterion) {
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
    let json = head("application/json");
    let grpc = head("application/grpc");
    let grpc_path = "/lf.a2a.v1.A2AService/SendMessage";
    let mut group = c.benchmark_group("parse");
    let mut bench = |name, binding, path, headers: &HeaderMap, body: Bytes| {
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(BenchmarkId::new(name, body.len()), |b| {
            b.iter(|| {
                let request = Request {
                    method: &Method::POST,
                    path: black_box(path),
                    query: None,
                    headers: black_box(headers),
                    body: &body,
                };
                let reading = parse(binding, &request, &rules);
                assert!(reading.is_ok());
                reading
            });
        });
    };
    let (rest, framed) = (rest_message(1024), grpc_message(1024));
    bench(
        "rest_send_message",
        Binding::Rest,
        "/message:send",
        &json,
        rest,
    );
    bench("grpc_send_message", Binding::Grpc, grpc_path, &grpc, framed);
    let sizes = [1024, 64 * 1024, 1024 * 1024];
    for size in sizes {
        bench(
            "send_message",
            Binding::JsonRpc,
            "",
            &json,
            send_message(size),
        );
    }
    for size in sizes {
        let body = send_message(size);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_with_input(BenchmarkId::new("sha256", size), &body, |b, body| {
            b.iter(|| body_hash(black_box(body)));
        });
    }
}

fn bench_events(c: &mut Criterion) {
    let mut group = c.benchmark_group("read");
    for (name, dialect, event) in events() {
        let mut reader = Reader::new(Expectation {
            dialect,
            http_status: 200,
            operation: Operation::SendStreamingMessage,
            rpc_id: Some("1".into()),
            event_stream: dialect.binding != Binding::Grpc,
            max_held: 1 << 20,
            max_event: 4 << 20,
            guard: true,
        });
        let mut pieces = Vec::new();
        group.throughput(Throughput::Bytes(event.len() as u64));
        group.bench_function(BenchmarkId::new(name, event.len()), |b| {
            b.iter(|| {
                pieces.clear();
                reader.push(black_box(event.clone()), &mut pieces);
                assert!(matches!(pieces[..], [Piece::Event(..)]));
            });
        });
    }
}

criterion_group!(benches, bench, bench_events);
criterion_main!(benches);
