//! Replies of agents: the case files in `tests/cases/replies`, and what holds for any bytes.
//!
//! Each case is read whole, as listed, byte by byte, and cut at random; all must agree.
//! `UPDATE_EXPECT=1` rewrites the expectations.
#![allow(clippy::unwrap_used)]

mod grpc;

use bytes::Bytes;
use http::HeaderMap;
use portcullis::a2a::{
    Binding, Dialect, Event, EventKind, Expectation, Operation, Piece, Reader, Version,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// What a reply came to, without regard to how its bytes were cut.
#[derive(Debug, Clone, PartialEq)]
struct Reading {
    /// Events, and the code that ended the reply.
    steps: Vec<Value>,
    /// The first flaw, withheld or not.
    malformed: Option<&'static str>,
    /// Whether everything came out.
    complete: bool,
}

fn expectation(event_stream: bool) -> Expectation {
    Expectation {
        dialect: Dialect {
            binding: Binding::JsonRpc,
            version: Version::V1_0,
        },
        http_status: 200,
        operation: if event_stream {
            Operation::SendStreamingMessage
        } else {
            Operation::SendMessage
        },
        rpc_id: Some("1".into()),
        event_stream,
        max_held: 1 << 20,
        max_event: 4 << 20,
        guard: true,
    }
}

/// Reads `chunks`; fails when bytes come out that did not go in.
fn read(expectation: &Expectation, chunks: &[&[u8]]) -> Reading {
    read_with(expectation, chunks, None)
}

/// The same with trailers behind it.
fn read_with(expectation: &Expectation, chunks: &[&[u8]], trailers: Option<&HeaderMap>) -> Reading {
    let mut reader = Reader::new(expectation.clone());
    let mut pieces = Vec::new();
    for chunk in chunks {
        reader.push(Bytes::copy_from_slice(chunk), &mut pieces);
    }
    reader.finish(&mut pieces);
    if let Some(trailers) = trailers {
        reader.trailers(trailers, &mut pieces);
    }
    let mut bytes = Vec::new();
    let mut steps = Vec::new();
    let mut ended = false;
    for piece in &pieces {
        assert!(!ended, "something comes after a malformed piece");
        match piece {
            Piece::Pass(part) | Piece::Part(part) => {
                assert!(!part.is_empty(), "an empty piece passes");
                bytes.extend_from_slice(part);
            }
            Piece::Event(part, event) => {
                bytes.extend_from_slice(part);
                steps.push(json!({"event": event_json(event)}));
            }
            Piece::Unjudged(part, event) => {
                bytes.extend_from_slice(part);
                steps.push(json!({"unjudged": event_json(event)}));
            }
            Piece::Malformed(code) => {
                ended = true;
                steps.push(json!({"malformed": code}));
            }
        }
    }
    let input = chunks.concat();
    if ended {
        assert!(input.starts_with(&bytes), "other bytes came out");
    } else {
        assert_eq!(input, bytes, "other bytes came out");
    }
    Reading {
        steps,
        malformed: reader.malformed(),
        complete: !ended,
    }
}

fn event_json(event: &Event) -> Value {
    let mut fields = Map::new();
    fields.insert(
        "kind".into(),
        match event.kind {
            EventKind::Error(code) => json!({"error": code}),
            kind => json!(format!("{kind:?}")),
        },
    );
    if let Some(id) = &event.task_id {
        fields.insert("task_id".into(), json!(id));
    }
    if let Some(id) = &event.context_id {
        fields.insert("context_id".into(), json!(id));
    }
    if let Some(state) = event.state {
        fields.insert("state".into(), json!(format!("{state:?}")));
    }
    if !event.artifacts.is_empty() {
        let notes = event.artifacts.iter().map(|note| {
            json!({
                "id": note.id, "name": note.name,
                "media_types": note.media_types, "bytes": note.bytes,
            })
        });
        fields.insert("artifacts".into(), notes.collect());
    }
    Value::Object(fields)
}

/// Cuts `body` into chunks of 1 to `longest` bytes; the same seed cuts the same way.
fn cut(body: &[u8], mut seed: u64, longest: usize) -> Vec<&[u8]> {
    let mut chunks = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let length = 1 + (seed >> 33) as usize % longest;
        let (chunk, more) = rest.split_at(length.min(rest.len()));
        chunks.push(chunk);
        rest = more;
    }
    chunks
}

/// One reading, after demanding that every way of cutting agrees.
fn read_every_way(
    expectation: &Expectation,
    chunks: &[&[u8]],
    trailers: Option<&HeaderMap>,
) -> Reading {
    let body = chunks.concat();
    let whole = read_with(expectation, &[&body], trailers);
    let mut ways = vec![chunks.to_vec(), body.chunks(1).collect()];
    ways.extend((0..8).map(|seed| cut(&body, seed, 1 + (seed as usize * 7) % 40)));
    for way in ways {
        let cut = read_with(expectation, &way, trailers);
        assert_eq!(whole, cut, "cut as {way:?}");
    }
    whole
}

#[test]
fn cases_come_to_what_they_say() {
    let files = files();
    assert!(!files.is_empty());
    for file in files {
        check(&file);
    }
}

/// Runs every case of a file in every variant that it names.
fn check(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let mut cases: Value = serde_json::from_str(&text).unwrap();
    let mut failures = Vec::new();
    for case in cases.as_array_mut().unwrap() {
        let mut found = Map::new();
        for (version, framing) in variants(case) {
            let reading = read_case(case, &version, framing == "stream");
            let mut steps = reading.steps;
            if let Some(code) = reading.malformed.filter(|_| reading.complete) {
                steps.push(json!({"passed_malformed": code}));
            }
            found.insert(format!("{framing} {version}"), json!(steps));
        }
        let found = Value::Object(found);
        if case["expect"] != found {
            failures.push(format!("{}: {found}", case["name"]));
            case["expect"] = found;
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let text = serde_json::to_string_pretty(&cases).unwrap() + "\n";
        std::fs::write(file, text).unwrap();
    } else {
        assert!(failures.is_empty(), "{}: {failures:#?}", file.display());
    }
}

/// A case in one of its variants.
struct Variant {
    expectation: Expectation,
    chunks: Vec<Vec<u8>>,
    trailers: Option<HeaderMap>,
}

/// The replies of all cases, each as what it was expected to be and its body.
pub fn bodies() -> impl Iterator<Item = (Expectation, Vec<u8>)> {
    files().into_iter().flat_map(|file| {
        let text = std::fs::read_to_string(file).unwrap();
        let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
        let mut bodies = Vec::new();
        for case in &cases {
            for (version, framing) in variants(case) {
                let variant = variant(case, &version, framing == "stream");
                bodies.push((variant.expectation, variant.chunks.concat()));
            }
        }
        bodies
    })
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/replies");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

/// Versions and framings of a case.
fn variants(case: &Value) -> Vec<(String, String)> {
    let framings = if case["frames"].is_array() {
        vec!["grpc".to_owned()]
    } else if case["document"].is_null() {
        vec!["stream".to_owned()]
    } else {
        strings(&case["as"], &["unary", "stream"])
    };
    let mut variants = Vec::new();
    for version in strings(&case["versions"], &["1.0"]) {
        for framing in &framings {
            variants.push((version.clone(), framing.clone()));
        }
    }
    variants
}

fn read_case(case: &Value, version: &str, event_stream: bool) -> Reading {
    let variant = variant(case, version, event_stream);
    let chunks: Vec<&[u8]> = variant.chunks.iter().map(Vec::as_slice).collect();
    read_every_way(&variant.expectation, &chunks, variant.trailers.as_ref())
}

fn variant(case: &Value, version: &str, event_stream: bool) -> Variant {
    let mut expectation = expectation(event_stream);
    expectation.dialect.version = match version {
        "0.3" => Version::V0_3,
        "1.0" => Version::V1_0,
        other => panic!("no version `{other}`"),
    };
    if let Some(name) = case["operation"].as_str() {
        let mut all = Operation::ALL.into_iter();
        expectation.operation = all.find(|operation| operation.name() == name).unwrap();
    }
    if let Some(raw) = case["rpc_id"].as_str() {
        expectation.rpc_id = Some(raw.into());
    }
    if let Some(name) = case["binding"].as_str() {
        expectation.dialect.binding = match name {
            "rest" => Binding::Rest,
            "grpc" => Binding::Grpc,
            other => panic!("no binding `{other}`"),
        };
        expectation.rpc_id = None;
    }
    if let Some(status) = case["status"].as_u64() {
        expectation.http_status = status as u16;
    }
    expectation.guard = case["guard"] != json!(false);
    if let Some(limit) = case["limit"].as_u64() {
        (expectation.max_held, expectation.max_event) = (limit as usize, limit as usize);
    }
    if case["frames"].is_array() {
        let (body, trailers) = grpc::reply(case, version);
        return Variant {
            expectation,
            chunks: vec![body],
            trailers: Some(trailers),
        };
    }
    let chunks = match &case["document"] {
        Value::Null => strings(&case["stream"], &[]),
        Value::String(raw) if event_stream => vec![format!("data: {raw}\n\n")],
        Value::String(raw) => vec![raw.clone()],
        value if event_stream => vec![format!("data: {value}\n\n")],
        value => vec![value.to_string()],
    };
    Variant {
        expectation,
        chunks: chunks.into_iter().map(String::into_bytes).collect(),
        trailers: None,
    }
}

fn strings(value: &Value, default: &[&str]) -> Vec<String> {
    match value.as_array() {
        Some(items) => items
            .iter()
            .map(|item| item.as_str().unwrap().to_owned())
            .collect(),
        None => default.iter().map(|&item| item.to_owned()).collect(),
    }
}

#[test]
fn a_reply_in_one_chunk_is_not_copied() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t1"}}}"#;
    let event = format!("data: {answer}\n\n");
    for (event_stream, body) in [(false, answer.to_owned()), (true, event.repeat(3))] {
        let chunk = Bytes::from(body);
        let range = chunk.as_ptr_range();
        let mut reader = Reader::new(expectation(event_stream));
        let mut pieces = Vec::new();
        reader.push(chunk.clone(), &mut pieces);
        reader.finish(&mut pieces);
        assert_eq!(pieces.len(), if event_stream { 3 } else { 1 });
        for piece in &pieces {
            let Piece::Event(bytes, _) = piece else {
                panic!("not an event: {piece:?}");
            };
            assert!(range.contains(&bytes.as_ptr()));
        }
    }
}

#[test]
fn an_event_leaves_with_its_blank_line_and_a_comment_with_its_line() {
    let mut reader = Reader::new(expectation(true));
    let mut pieces = Vec::new();
    let event = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"task\":{\"id\":\"t1\"}}}\r";
    reader.push(Bytes::from(event), &mut pieces);
    assert_eq!(pieces, [], "the event is not whole");
    reader.push(Bytes::from("\r"), &mut pieces);
    assert!(matches!(pieces[..], [Piece::Event(..)]), "{pieces:?}");
    reader.push(Bytes::from(": pi"), &mut pieces);
    assert_eq!(pieces.len(), 1, "the comment is not whole");
    reader.push(Bytes::from("ng\n"), &mut pieces);
    assert_eq!(pieces[1..], [Piece::Pass(Bytes::from(": ping\n"))]);
}

#[test]
fn an_oversize_reply_passes_but_for_the_chunk_that_closes_it() {
    let mut expectation = expectation(false);
    expectation.max_held = 16;
    let mut reader = Reader::new(expectation);
    let mut pieces = Vec::new();
    let start = r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t1"}"#;
    reader.push(Bytes::from(start), &mut pieces);
    assert_eq!(pieces, [Piece::Part(Bytes::from(start))]);
    reader.push(Bytes::from("}}"), &mut pieces);
    reader.push(Bytes::from("\n"), &mut pieces);
    assert_eq!(pieces.len(), 1, "the end left before its ids were told");
    reader.finish(&mut pieces);
    let Piece::Unjudged(bytes, event) = &pieces[1] else {
        panic!("not unjudged: {pieces:?}");
    };
    assert_eq!(&bytes[..], b"}}\n");
    assert_eq!(event.task_id.as_deref(), Some("t1"));
}

#[test]
fn nothing_comes_out_after_a_malformed_event() {
    let mut reader = Reader::new(expectation(true));
    let mut pieces = Vec::new();
    reader.push(Bytes::from("data: oops"), &mut pieces);
    assert_eq!(pieces, [Piece::Malformed("non_json_event")]);
    reader.push(Bytes::from("\n\n: more\n"), &mut pieces);
    reader.finish(&mut pieces);
    assert_eq!(pieces.len(), 1);
}

#[test]
fn deep_nesting_is_bounded() {
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"message":{{}},"x":{open}{close}}}}}"#)
    };
    for (levels, malformed) in [(500, None), (100_000, Some("too_deep"))] {
        for event_stream in [false, true] {
            let body = if event_stream {
                format!("data: {}\n\n", deep(levels))
            } else {
                deep(levels)
            };
            let reading = read(&expectation(event_stream), &[body.as_bytes()]);
            assert_eq!(reading.malformed, malformed, "{levels} {event_stream}");
            let bytewise: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
            assert_eq!(reading, read(&expectation(event_stream), &bytewise));
        }
    }
}

#[test]
fn at_most_32_artifacts_are_noted() {
    let many = r#"{"artifactId":"a","parts":[]},"#.repeat(1000);
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"task":{{"id":"t1","artifacts":[{many}{{}}]}}}}}}"#
    );
    let reading = read(&expectation(false), &[body.as_bytes()]);
    let notes = reading.steps[0]["event"]["artifacts"].as_array().unwrap();
    assert_eq!(notes.len(), 32);
}

/// Bytes that come close to a reply: scraps of good and bad ones, and noise.
fn scraps() -> impl Strategy<Value = Vec<u8>> {
    let scrap = prop_oneof![
        proptest::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"",
            "\\",
            "\\u00",
            "\\ud83d",
            "null",
            "1",
            "-0.5e3",
            "\n",
            "\r",
            "\r\n",
            "data:",
            "data: ",
            ": c\n",
            "event: error\n",
            "\n\n",
            "é",
            "\u{feff}",
            "\"jsonrpc\":\"2.0\",",
            "\"id\":1,",
            "\"id\":\"t1\"",
            "\"result\":{",
            "\"task\":{",
            "\"taskId\":",
            "\"contextId\":\"c1\"",
            "\"kind\":\"task\",",
            "\"error\":",
            "\"artifacts\":[{\"parts\":[{\"text\":\"x\"}]}]",
            "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"task\":{\"id\":\"t1\"}}}\n\n",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"task\":{\"id\":\"t1\",\"x\":",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 1..4),
    ];
    proptest::collection::vec(scrap, 0..24).prop_map(|scraps| scraps.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_cut_anyhow_come_to_the_same(
        body in scraps(),
        seed in any::<u64>(),
        longest in 1usize..30,
        limit in prop_oneof![Just(1usize << 20), 0usize..80],
        event_stream in any::<bool>(),
        guard in any::<bool>(),
    ) {
        let mut expectation = expectation(event_stream);
        expectation.guard = guard;
        (expectation.max_held, expectation.max_event) = (limit, limit);
        let whole = read(&expectation, &[&body]);
        let bytewise: Vec<&[u8]> = body.chunks(1).collect();
        prop_assert_eq!(&whole, &read(&expectation, &bytewise));
        prop_assert_eq!(&whole, &read(&expectation, &cut(&body, seed, longest)));
        prop_assert!(whole.complete || guard, "withheld without a guard");
    }
}
