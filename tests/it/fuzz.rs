//! The fuzz targets' invariants over seeds made from the case files.
//!
//! With `PORTCULLIS_FUZZ_SEEDS=DIR` the seeds are also written, for `tests/fuzz/run`.

use crate::support::proto::{encode, framed};
use crate::{replies, wire};
use portcullis::a2a;
use portcullis::a2a::{Binding, Expectation, Operation, Version};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[path = "../fuzz/src/invariants.rs"]
mod invariants;

/// Longest seed; the fuzzer is slow on longer ones.
const LONGEST: usize = 4096;

/// Runs a target over its seeds, and writes them when asked to.
fn hold(target: &str, run: fn(&[u8]), seeds: impl IntoIterator<Item = Vec<u8>>) {
    let folder = std::env::var_os("PORTCULLIS_FUZZ_SEEDS").map(|at| PathBuf::from(at).join(target));
    if let Some(folder) = &folder {
        std::fs::create_dir_all(folder).unwrap();
    }
    let mut count = 0;
    for seed in seeds {
        run(&seed);
        count += 1;
        if let Some(folder) = folder.as_ref().filter(|_| seed.len() <= LONGEST) {
            std::fs::write(folder.join(format!("{count:04}")), &seed).unwrap();
        }
    }
    assert!(count > 0, "{target} has no seeds");
}

fn requests(binding: Binding) -> impl Iterator<Item = wire::Case> {
    let mine = move |case: &wire::Case| case.binding == binding;
    wire::cases().into_iter().filter(mine)
}

fn declared(case: &wire::Case) -> Option<&str> {
    case.headers.get("a2a-version")?.to_str().ok()
}

#[test]
fn jsonrpc_requests() {
    let seeds = requests(Binding::JsonRpc).map(|case| {
        let choice = match declared(&case) {
            Some("1.0") => 0,
            Some("0.3") => 1,
            _ => 4,
        };
        [&[choice], &case.body[..]].concat()
    });
    hold("jsonrpc_request", invariants::jsonrpc_request, seeds);
}

#[test]
fn rest_requests() {
    let seeds = requests(Binding::Rest).map(|case| {
        let method = match case.method.as_str() {
            "GET" => 0,
            "POST" => 1,
            "DELETE" => 2,
            _ => 3,
        };
        let version = match declared(&case) {
            Some("1.0") => 0,
            Some("0.3") => 1,
            _ => 2,
        };
        let query = case.query.as_deref();
        let choice = method | version << 2 | u8::from(query.is_some()) << 4;
        let target = format!("{}\n{}\n", case.path, query.unwrap_or_default());
        [&[choice], target.as_bytes(), &case.body[..]].concat()
    });
    hold("rest_request", invariants::rest_request, seeds);
}

#[test]
fn grpc_requests() {
    let message = json!([
        ["message_id", "m"],
        ["task_id", "t"],
        ["parts", [["text", "hi"]]]
    ]);
    let send = json!([["message", message], ["metadata", {"struct": {"skillId": "hello"}}]]);
    let written = [
        (0, "lf.a2a.v1", "SendMessageRequest", send),
        (1, "lf.a2a.v1", "GetTaskRequest", json!([["id", "t"]])),
        (10, "a2a.v1", "GetTaskRequest", json!([["name", "tasks/t"]])),
    ];
    let written = written
        .into_iter()
        .map(|(choice, package, message, fields)| {
            [&[choice], &framed(&encode(package, message, &fields))[..]].concat()
        });
    let seeds = requests(Binding::Grpc).map(|case| {
        let known = invariants::GRPC_METHODS.iter();
        let choice = known.clone().position(|path| *path == case.path);
        [&[choice.unwrap_or(0) as u8], &case.body[..]].concat()
    });
    hold(
        "grpc_request",
        invariants::grpc_request,
        seeds.chain(written),
    );
}

#[test]
fn replies_of_agents() {
    let seeds =
        replies::bodies().map(|(expectation, body)| [&choices(&expectation)[..], &body].concat());
    hold("reply", invariants::reply, seeds);
}

fn choices(expectation: &Expectation) -> [u8; 4] {
    let binding = match expectation.dialect.binding {
        Binding::JsonRpc => 0,
        Binding::Rest => 1,
        Binding::Grpc => 2,
    };
    let small = expectation.max_held < 256;
    let older = expectation.dialect.version == Version::V0_3;
    let kind = binding
        | u8::from(expectation.event_stream) << 2
        | u8::from(small) << 3
        | u8::from(older) << 4
        | u8::from(!expectation.guard) << 5;
    let operation = Operation::ALL.iter();
    let operation = operation.clone().position(|o| *o == expectation.operation);
    let status = match expectation.http_status {
        0..=203 => 0,
        204 => 1,
        205..=499 => 2,
        _ => 3,
    };
    let limit = u8::try_from(expectation.max_held).unwrap_or(7);
    [kind, operation.unwrap() as u8, status, limit]
}

#[test]
fn cards() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/cards");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    let mut seeds = Vec::new();
    for file in files {
        let cases: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for case in cases.as_array().into_iter().flatten() {
            seeds.push(match &case["upstream"] {
                Value::String(text) => text.clone().into_bytes(),
                card => card.to_string().into_bytes(),
            });
        }
    }
    hold("card", invariants::card, seeds);
}
