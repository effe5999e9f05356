//! Requests as bytes: which call each one is, or why it is none.
//!
//! `tests/cases/wire/*.json` are lists of cases: `name`, `headers` (default: `content-type:
//! application/json`), `query`, `binding` (default: `JSONRPC`), `method` (default: `POST`), `path`
//! below the interface, `rules` (default: both versions, no tenants, no skill selectors), `body`,
//! and `expect`: the call without its empty fields and, but for JSON-RPC, what is forwarded in the
//! place of what came; or the refusal with the answer to it. A body is a
//! string or a list of pieces: strings, `{"hex": …}`, or `{"repeat": …, "times": n}`, where `#`
//! becomes the count. In gRPC `message` may stand for `body`: the message in the one frame, as
//! `support::proto` writes it, of the path's method or of the package and type in `as`.
//! `UPDATE_EXPECT=1` writes the expectations.
#![allow(clippy::unwrap_used)]

mod answers;
mod head;
mod properties;
mod rest;
mod splices;

use crate::support::proto;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use portcullis::a2a::call::MALFORMED_CODES;
use portcullis::a2a::skill_rules::{DataPath, Selector, SkillRules};
use portcullis::a2a::{self, Binding, Call, Malformed, ReadRules, Reading, Request, Version};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One request, complete enough to be sent.
pub struct Case {
    pub name: String,
    pub headers: HeaderMap,
    pub query: Option<String>,
    pub binding: Binding,
    pub method: Method,
    /// Below the interface's path.
    pub path: String,
    pub body: Bytes,
    pub rules: ReadRules,
    pub expect: Value,
}

impl Case {
    pub fn parse(&self) -> Result<Call, Malformed> {
        self.read().map(|reading| reading.call)
    }

    pub fn read(&self) -> Result<Reading, Malformed> {
        let request = Request {
            method: &self.method,
            path: &self.path,
            query: self.query.as_deref(),
            headers: &self.headers,
            body: &self.body,
        };
        a2a::parse(self.binding, &request, &self.rules)
    }
}

/// Every case of every file; names begin with the file's.
pub fn cases() -> Vec<Case> {
    let of = |path: PathBuf| {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let cases = read(&path);
        cases
            .iter()
            .map(|case| load(&file, case))
            .collect::<Vec<_>>()
    };
    files().into_iter().flat_map(of).collect()
}

#[test]
fn every_request_is_one_call_or_refused() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    for path in files() {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut cases = read(&path);
        for case in &mut cases {
            let loaded = load(&file, case);
            let found = check(&loaded);
            if update {
                case["expect"] = found;
            } else if found != loaded.expect {
                wrong.push(format!(
                    "{}: found {found}, expected {}",
                    loaded.name, loaded.expect
                ));
            }
        }
        if update {
            std::fs::write(&path, written(&cases)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_code_is_listed_and_has_a_case() {
    let cases = cases();
    let used: Vec<_> = cases
        .iter()
        .filter_map(|case| case.expect["refused"]["code"].as_str())
        .collect();
    for code in &used {
        assert!(MALFORMED_CODES.contains(code), "{code}");
    }
    // No case can be 4 GiB long, and every binding that has cases is served.
    let rare = ["too_long", "binding_not_served"];
    for code in MALFORMED_CODES.iter().filter(|code| !rare.contains(code)) {
        assert!(used.contains(code), "{code}");
    }
}

#[test]
fn every_spelling_has_a_good_case() {
    let cases = cases();
    let good: Vec<_> = cases.iter().filter_map(|case| case.parse().ok()).collect();
    let json_rpc = a2a::wire::JSON_RPC.map(|spelling| (Binding::JsonRpc, spelling));
    let grpc = a2a::wire::GRPC.map(|spelling| (Binding::Grpc, spelling));
    for (binding, spelling) in json_rpc.into_iter().chain(grpc) {
        let found = |call: &&Call| {
            call.dialect.binding == binding
                && call.operation == spelling.operation
                && call.dialect.version == spelling.version
        };
        assert!(good.iter().any(|call| found(&call)), "{}", spelling.method);
    }
}

/// What a request turns out to be, as its case file says it.
fn check(case: &Case) -> Value {
    match case.read() {
        Ok(reading) if case.binding == Binding::JsonRpc => json!({ "call": shown(&reading.call) }),
        Ok(reading) => json!({
            "call": shown(&reading.call),
            "path": reading.path,
            "a2a_version": reading.a2a_version.map(Version::label),
            "body": reading.body.map(|body| String::from_utf8(body.to_vec()).unwrap()),
        }),
        Err(malformed) => {
            let answer = a2a::render_malformed(&malformed, case.binding);
            let error = match &answer.grpc {
                Some(grpc) => json!(grpc.code),
                None => error_code(&serde_json::from_slice(&answer.body).unwrap()),
            };
            json!({ "refused": {
                "fault": format!("{:?}", malformed.fault),
                "code": malformed.code,
                "operation": malformed.operation.map(a2a::Operation::name),
                "version": malformed.version.map(Version::label),
                "id": malformed.rpc_id,
                "status": answer.status,
                "error": error,
            }})
        }
    }
}

/// The code in an error answer; that of 0.3's REST stands at its top.
pub fn error_code(answer: &Value) -> Value {
    match answer.get("error") {
        Some(error) => error["code"].clone(),
        None => answer["code"].clone(),
    }
}

/// A call without what is empty. Matched in full, so that no field is forgotten.
fn shown(call: &Call) -> Value {
    let Call {
        dialect,
        operation,
        rpc_id,
        tenant,
        message_id,
        task_id,
        context_id,
        push_config_id,
        reference_task_ids,
        inline_push,
        push_urls,
        file_urls,
        extensions,
        skill_mentions,
        list,
        spots: _,
    } = call;
    let mentions: Vec<_> = skill_mentions
        .iter()
        .map(|m| json!([m.selector, format!("{:?}", m.place), m.value]))
        .collect();
    let all = json!({
        "version": dialect.version.label(),
        "operation": operation.name(),
        "rpc_id": rpc_id,
        "tenant": tenant,
        "message_id": message_id,
        "task_id": task_id,
        "context_id": context_id,
        "push_config_id": push_config_id,
        "reference_task_ids": reference_task_ids,
        "inline_push": inline_push.then_some(true),
        "push_urls": push_urls,
        "file_urls": file_urls,
        "extensions": extensions,
        "skill_mentions": mentions,
        "list": list.as_ref().map(|list| json!({
            "page_token": list.page_token,
            "page_size": list.page_size,
            "filters": list.filters,
        })),
    });
    let full =
        |value: &Value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty());
    let members = all
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| full(value));
    Value::Object(
        members
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/wire");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn read(path: &Path) -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// One member a line, so that changes show.
fn written(cases: &[Value]) -> String {
    let case = |case: &Value| {
        let members = case.as_object().unwrap().iter();
        let lines: Vec<_> = members
            .map(|(name, value)| format!("    \"{name}\": {value}"))
            .collect();
        format!("  {{\n{}\n  }}", lines.join(",\n"))
    };
    format!(
        "[\n{}\n]\n",
        cases.iter().map(case).collect::<Vec<_>>().join(",\n")
    )
}

fn load(file: &str, case: &Value) -> Case {
    let mut headers = HeaderMap::new();
    let is_grpc = case.get("binding").is_some_and(|binding| binding == "GRPC");
    let default = match is_grpc {
        true => json!([["content-type", "application/grpc"]]),
        false => json!([["content-type", "application/json"]]),
    };
    for header in case.get("headers").unwrap_or(&default).as_array().unwrap() {
        headers.append(
            HeaderName::try_from(header[0].as_str().unwrap()).unwrap(),
            HeaderValue::from_bytes(header[1].as_str().unwrap().as_bytes()).unwrap(),
        );
    }
    let mut rules = ReadRules::default();
    let default = json!({"versions": ["0.3", "1.0"]});
    let given = case.get("rules").unwrap_or(&default);
    for version in given["versions"].as_array().unwrap() {
        rules.versions.insert(match version.as_str().unwrap() {
            "0.3" => Version::V0_3,
            _ => Version::V1_0,
        });
    }
    let flag = |name| given.get(name).and_then(Value::as_bool).unwrap_or(false);
    rules.stamp = flag("stamp");
    rules.tenants = flag("tenants");
    if let Some(list) = given.get("skill_from") {
        rules.skills = selectors(list);
    }
    Case {
        name: format!("{file}: {}", case["name"].as_str().unwrap()),
        headers,
        query: case
            .get("query")
            .map(|query| query.as_str().unwrap().to_owned()),
        binding: match case.get("binding").and_then(Value::as_str) {
            None | Some("JSONRPC") => Binding::JsonRpc,
            Some("HTTP+JSON") => Binding::Rest,
            Some("GRPC") => Binding::Grpc,
            Some(other) => panic!("{other}"),
        },
        method: match case.get("method").and_then(Value::as_str) {
            None => Method::POST,
            Some(method) => method.parse().unwrap(),
        },
        path: case
            .get("path")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        body: match &case["body"] {
            Value::Null => message(case),
            Value::Array(pieces) => pieces.iter().flat_map(piece).collect(),
            whole => piece(whole),
        }
        .into(),
        rules,
        expect: case.get("expect").cloned().unwrap_or_default(),
    }
}

/// Selectors as a gateway file has them.
fn selectors(list: &Value) -> Option<Arc<SkillRules>> {
    let selector = |entry: &Value| {
        let (kind, value) = entry.as_object().unwrap().iter().next().unwrap();
        let text = value.as_str().unwrap();
        match kind.as_str() {
            "metadata" => Selector::Metadata(text.into()),
            "request_metadata" => Selector::RequestMetadata(text.into()),
            "data" => Selector::Data(DataPath::parse(text).unwrap()),
            "header" => Selector::Header(text.parse().unwrap()),
            other => panic!("{other}"),
        }
    };
    let selectors = list.as_array().unwrap().iter().map(selector).collect();
    Some(Arc::new(SkillRules::new(selectors)))
}

/// The frame of a gRPC case.
fn message(case: &Value) -> Vec<u8> {
    let (package, kind) = match case.get("as") {
        Some(given) => (
            given[0].as_str().unwrap().to_owned(),
            given[1].as_str().unwrap().to_owned(),
        ),
        None => {
            let mut path = case["path"].as_str().unwrap().split('/').skip(1);
            let package = path.next().unwrap().strip_suffix(".A2AService").unwrap();
            let (request, _, _) = proto::method_of(package, path.next().unwrap()).unwrap();
            (package.to_owned(), request)
        }
    };
    proto::framed(&proto::encode(&package, &kind, &case["message"]))
}

fn piece(piece: &Value) -> Vec<u8> {
    if let Some(text) = piece.as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(hex) = piece["hex"].as_str() {
        let digits = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16));
        return digits.collect::<Result<_, _>>().unwrap();
    }
    let text = piece["repeat"].as_str().unwrap();
    let times = piece["times"].as_u64().unwrap();
    (0..times)
        .flat_map(|n| text.replace('#', &n.to_string()).into_bytes())
        .collect()
}
