//! What holds for any bytes. The first bytes of an input choose what the rest is.
//!
//! The main package's tests run these over the seeds, so that they cannot rot.

use super::a2a::card::{Promises, Publication, SecuritySchemes, rewrite};
use super::a2a::skill_rules::{Selector, SkillRules};
use super::a2a::{
    Binding, Call, Dialect, Expectation, Malformed, Operation, Piece, ReadRules, Reader, Reading,
    Request, Version, Versions, parse, render_malformed,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::sync::Arc;

fn rules() -> ReadRules {
    ReadRules {
        versions: Versions {
            v0_3: true,
            v1_0: true,
        },
        tenants: true,
        stamp: true,
        skills: Some(Arc::new(SkillRules::new(vec![
            Selector::Metadata("skillId".into()),
            Selector::RequestMetadata("skill_id".into()),
        ]))),
    }
}

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    headers
}

/// Reads a request, whose refusal must have an answer.
fn read(
    binding: Binding,
    method: &Method,
    target: (&str, Option<&str>),
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Reading, Malformed> {
    let request = Request {
        method,
        path: target.0,
        query: target.1,
        headers,
        body,
    };
    let read = parse(binding, &request, &rules());
    match &read {
        Ok(reading) => assert_eq!(reading.call.dialect.binding, binding),
        Err(malformed) => {
            let answer = render_malformed(malformed, binding);
            if binding != Binding::Grpc {
                serde_json::from_slice::<serde_json::Value>(&answer.body)
                    .expect("an answer is JSON");
            }
        }
    }
    read
}

/// One byte of choices, then the body. What is accepted means the same to another JSON parser.
pub fn jsonrpc_request(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else {
        return;
    };
    let version = ["1.0", "0.3", "", "2.0"][usize::from(choice & 3)];
    let mut fields = vec![("content-type", "application/json")];
    if choice & 4 == 0 {
        fields.push(("a2a-version", version));
    }
    let headers = headers(&fields);
    let body = Bytes::copy_from_slice(body);
    let target = ("", None);
    let Ok(reading) = read(Binding::JsonRpc, &Method::POST, target, &headers, &body) else {
        return;
    };
    assert!(reading.path.is_empty());
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(&body) else {
        return;
    };
    value["id"] = 1.into();
    if !is_exact(&value) {
        return;
    }
    let again = Bytes::from(value.to_string());
    let again = read(Binding::JsonRpc, &Method::POST, target, &headers, &again);
    // The id is echoed as its bytes stood, which another writer may spell otherwise.
    assert_eq!(
        without_id(reading.call),
        without_id(again.expect("refused when rewritten").call)
    );
}

/// Whether another writer spells its numbers as they stood.
fn is_exact(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Number(number) => !number.is_f64(),
        serde_json::Value::Array(items) => items.iter().all(is_exact),
        serde_json::Value::Object(members) => members.values().all(is_exact),
        _ => true,
    }
}

fn without_id(call: Call) -> Call {
    Call {
        rpc_id: None,
        // Places are positions in one text.
        spots: None,
        ..call
    }
}

/// One byte of choices, a line with the path, one with the query, then the body. What goes to the
/// agent reads as what was judged.
pub fn rest_request(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let mut lines = rest.splitn(3, |&byte| byte == b'\n');
    let mut line = || std::str::from_utf8(lines.next().unwrap_or_default());
    let (Ok(path), Ok(query)) = (line(), line()) else {
        return;
    };
    let body = Bytes::copy_from_slice(lines.next().unwrap_or_default());
    let method =
        [Method::GET, Method::POST, Method::DELETE, Method::PUT][usize::from(choice & 3)].clone();
    let mut fields = Vec::new();
    if !body.is_empty() {
        fields.push(("content-type", "application/json"));
    }
    match choice >> 2 & 3 {
        0 => fields.push(("a2a-version", "1.0")),
        1 => fields.push(("a2a-version", "0.3")),
        _ => {}
    }
    let query = (choice & 16 != 0).then_some(query);
    let first = headers(&fields);
    let Ok(reading) = read(Binding::Rest, &method, (path, query), &first, &body) else {
        return;
    };
    let (path, query) = match reading.path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (&*reading.path, None),
    };
    fields.retain(|(name, _)| *name != "a2a-version");
    if let Some(version) = reading.a2a_version {
        fields.push(("a2a-version", version.label()));
    }
    let again = read(
        Binding::Rest,
        &method,
        (path, query),
        &headers(&fields),
        &body,
    );
    let again = again.expect("refused when rebuilt");
    assert_eq!(without_id(reading.call), without_id(again.call));
    assert_eq!(reading.path, again.path);
}

/// What the first byte of a gRPC request chooses.
pub const GRPC_METHODS: [&str; 14] = [
    "/lf.a2a.v1.A2AService/SendMessage",
    "/lf.a2a.v1.A2AService/GetTask",
    "/lf.a2a.v1.A2AService/ListTasks",
    "/lf.a2a.v1.A2AService/CancelTask",
    "/lf.a2a.v1.A2AService/SubscribeToTask",
    "/lf.a2a.v1.A2AService/CreateTaskPushNotificationConfig",
    "/lf.a2a.v1.A2AService/ListTaskPushNotificationConfigs",
    "/lf.a2a.v1.A2AService/DeleteTaskPushNotificationConfig",
    "/lf.a2a.v1.A2AService/GetExtendedAgentCard",
    "/a2a.v1.A2AService/SendMessage",
    "/a2a.v1.A2AService/GetTask",
    "/a2a.v1.A2AService/TaskSubscription",
    "/a2a.v1.A2AService/CreateTaskPushNotificationConfig",
    "/a2a.v1.A2AService/ListTaskPushNotificationConfig",
];

/// One byte of choices, then the body.
pub fn grpc_request(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else {
        return;
    };
    let path = GRPC_METHODS[usize::from(*choice) % GRPC_METHODS.len()];
    let headers = headers(&[("content-type", "application/grpc"), ("te", "trailers")]);
    let body = Bytes::copy_from_slice(body);
    let target = (path, None);
    if let Ok(reading) = read(Binding::Grpc, &Method::POST, target, &headers, &body) {
        assert_eq!(&*reading.path, path);
        let again = read(Binding::Grpc, &Method::POST, target, &headers, &body);
        assert_eq!(reading, again.expect("read once and not again"));
    }
}

/// Four bytes of choices, then the body. However it is cut, it comes to the same.
pub fn reply(data: &[u8]) {
    let Some((&[kind, operation, status, seed], body)) = data.split_first_chunk::<4>() else {
        return;
    };
    let binding = [Binding::JsonRpc, Binding::Rest, Binding::Grpc][usize::from(kind & 3) % 3];
    let event_stream = kind & 4 != 0 && binding != Binding::Grpc;
    let limit = if kind & 8 == 0 {
        1 << 20
    } else {
        usize::from(seed)
    };
    let expectation = Expectation {
        dialect: Dialect {
            binding,
            version: if kind & 16 == 0 {
                Version::V1_0
            } else {
                Version::V0_3
            },
        },
        http_status: [200, 204, 404, 500][usize::from(status & 3)],
        operation: Operation::ALL[usize::from(operation) % Operation::ALL.len()],
        rpc_id: (binding == Binding::JsonRpc).then(|| "1".into()),
        event_stream,
        max_held: limit,
        max_event: limit,
        guard: kind & 32 == 0,
    };
    let trailers = match status >> 2 & 3 {
        0 => headers(&[("grpc-status", "0")]),
        1 => headers(&[
            ("grpc-status", "5"),
            ("grpc-message", "TaskNotFoundError: no"),
        ]),
        2 => headers(&[("grpc-status", "x")]),
        _ => HeaderMap::new(),
    };
    let whole = judged(&expectation, [body], &trailers);
    let length = 1 + usize::from(seed % 31);
    assert_eq!(whole, judged(&expectation, body.chunks(length), &trailers));
    assert_eq!(whole, judged(&expectation, body.chunks(1), &trailers));
}

/// What a reply came to: the steps without their bytes, and the first flaw.
fn judged<'a>(
    expectation: &Expectation,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    trailers: &HeaderMap,
) -> (Vec<Piece>, Option<&'static str>) {
    let mut reader = Reader::new(expectation.clone());
    let mut pieces = Vec::new();
    let mut input = Vec::new();
    for chunk in chunks {
        input.extend_from_slice(chunk);
        reader.push(Bytes::copy_from_slice(chunk), &mut pieces);
    }
    reader.finish(&mut pieces);
    reader.trailers(trailers, &mut pieces);
    let mut output = Vec::new();
    let mut steps = Vec::new();
    let mut ended = false;
    for piece in pieces {
        assert!(!ended, "something comes after a malformed piece");
        match piece {
            Piece::Pass(bytes) | Piece::Part(bytes) => output.extend_from_slice(&bytes),
            Piece::Event(bytes, event) => {
                output.extend_from_slice(&bytes);
                steps.push(Piece::Event(Bytes::new(), event));
            }
            Piece::Unjudged(bytes, event) => {
                output.extend_from_slice(&bytes);
                steps.push(Piece::Unjudged(Bytes::new(), event));
            }
            Piece::Malformed(code) => {
                ended = true;
                steps.push(Piece::Malformed(code));
            }
        }
    }
    match ended {
        true => assert!(expectation.guard && input.starts_with(&output)),
        false => assert_eq!(input, output, "other bytes came out"),
    }
    (steps, reader.malformed())
}

/// An agent's card. Every address of the published one is ours.
pub fn card(data: &[u8]) {
    let schemes = SecuritySchemes::default();
    let offered = [Binding::JsonRpc, Binding::Rest]
        .map(|binding| [Version::V0_3, Version::V1_0].map(|version| Dialect { binding, version }));
    let offered = offered.concat();
    let publication = Publication {
        public_base: "https://gw.example.com/agents/w",
        backend_host: "b.example.com",
        backend_port: 9000,
        backend_base_path: "/a2a",
        also_origins: &[],
        listed: None,
        schemes: &schemes,
        both_forms: false,
        offered: &offered,
        reachable: None,
        promises: Promises {
            streaming: true,
            push: true,
            extended: true,
        },
        grpc_authority: None,
        covered_only: false,
        signer: None,
        shows: &|_| true,
    };
    let Ok(published) = rewrite(data, &publication) else {
        return;
    };
    let mut card: serde_json::Value =
        serde_json::from_slice(&published.document.body).expect("a published card is JSON");
    let lists = ["additionalInterfaces", "supportedInterfaces"];
    let listed = lists
        .iter()
        .flat_map(|list| card[list].as_array().into_iter().flatten())
        .map(|interface| &interface["url"]);
    for address in listed.chain(card.get("url")) {
        let address = address.as_str().expect("an address is text");
        assert!(
            address.starts_with("https://gw.example.com/agents/w"),
            "{address}"
        );
    }
    // The path of an address of ours may read like anything.
    if let Some(members) = card.as_object_mut() {
        for name in ["url", "additionalInterfaces", "supportedInterfaces"] {
            members.remove(name);
        }
    }
    assert!(
        !published.leaks.is_empty() || !mentions(&card, "b.example.com"),
        "{card}"
    );
}

/// Whether a text says `host`. The serialised form would not do: `\b` is an escape there.
fn mentions(value: &serde_json::Value, host: &str) -> bool {
    let says = |text: &str| text.to_lowercase().contains(host);
    match value {
        serde_json::Value::String(text) => says(text),
        serde_json::Value::Array(items) => items.iter().any(|item| mentions(item, host)),
        serde_json::Value::Object(members) => members
            .iter()
            .any(|(name, member)| says(name) || mentions(member, host)),
        _ => false,
    }
}
