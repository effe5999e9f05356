//! What holds for any bytes: no panic, and no decoder reads another call out of what we accept.
//!
//! The second reader here does what proto3 says and nothing more: the last scalar wins, messages
//! merge, a `oneof` keeps its last member, what is unknown is dropped.

use crate::support::proto::{self, fields_of, framed};
use crate::wire;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use portcullis::a2a::{self, Binding, Call, ReadRules, Request, Versions};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

const BOTH: Versions = Versions {
    v0_3: true,
    v1_0: true,
};

fn read(path: &str, body: Vec<u8>) -> Option<Call> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    let rules = ReadRules {
        versions: BOTH,
        ..ReadRules::default()
    };
    let request = Request {
        method: &Method::POST,
        path,
        query: None,
        headers: &headers,
        body: &Bytes::from(body),
    };
    let reading = a2a::parse(Binding::Grpc, &request, &rules).ok()?;
    assert_eq!(&*reading.path, path, "the path that was judged is sent");
    Some(reading.call)
}

fn paths() -> Vec<&'static str> {
    a2a::wire::GRPC.iter().map(|s| s.method).collect()
}

/// Package and request type of a path.
fn typed(path: &str) -> (&'static str, String) {
    let (service, method) = path[1..].split_once('/').unwrap();
    let package = match service {
        "lf.a2a.v1.A2AService" => "lf.a2a.v1",
        _ => "a2a.v1",
    };
    (package, proto::method_of(package, method).unwrap().0)
}

/// Takes a varint off the front.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in 0..10 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << (7 * shift);
        if *first < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

/// Decodes as proto3 says; `None` for bytes that are no message. `into` has what came before.
fn decode(
    package: &str,
    kind: &str,
    mut bytes: &[u8],
    into: &mut Map<String, Value>,
) -> Option<()> {
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let mut delimited: &[u8] = b"";
        let value = match tag & 7 {
            0 => json!(varint(&mut bytes)?),
            1 => json!(take(&mut bytes, 8)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                delimited = take(&mut bytes, length)?;
                Value::Null
            }
            5 => json!(take(&mut bytes, 4)?),
            _ => return None,
        };
        let known = fields_of(package, kind).iter();
        let Some(field) = known.clone().find(|field| field[0] == tag >> 3) else {
            continue;
        };
        let name = field[1].as_str()?;
        let text = match (field[2].as_str()?, tag & 7) {
            ("string", 2) => json!(std::str::from_utf8(delimited).ok()?),
            ("bytes", 2) => json!(delimited),
            ("bool" | "enum" | "int32" | "int64", 0) | ("double", 1) => value,
            ("string" | "bytes" | "bool" | "enum" | "int32" | "int64" | "double", _) => continue,
            (inner, 2) => {
                let merges = field[3] != "many";
                let mut object = match into.get(name) {
                    Some(Value::Object(known)) if merges => known.clone(),
                    _ => Map::new(),
                };
                decode(package, inner, delimited, &mut object)?;
                Value::Object(object)
            }
            _ => continue,
        };
        if field[3] == "one_of" {
            for other in known.filter(|other| other[3] == "one_of" && other[1] != name) {
                into.remove(other[1].as_str()?);
            }
        }
        match into.get_mut(name) {
            Some(Value::Array(items)) if field[3] == "many" => items.push(text),
            _ if field[3] == "many" => {
                into.insert(name.to_owned(), Value::Array(vec![text]));
            }
            _ => {
                into.insert(name.to_owned(), text);
            }
        }
    }
    Some(())
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

fn texts(values: &Value) -> Vec<&str> {
    let items = values.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

/// What the agent would find at the places that decide must be what the call says.
fn assert_decoder_sees_the_same(path: &str, message: &[u8], call: &Call) {
    let (package, kind) = typed(path);
    let mut seen = Map::new();
    decode(package, &kind, message, &mut seen).expect("we accept what is no message");
    let seen = Value::Object(seen);
    assert_eq!(call.tenant.as_deref(), text(&seen["tenant"]));
    let old = package == "a2a.v1";
    if kind == "SendMessageRequest" {
        let message = &seen[if old { "request" } else { "message" }];
        assert_eq!(call.task_id.as_deref(), text(&message["task_id"]));
        assert_eq!(call.context_id.as_deref(), text(&message["context_id"]));
        assert_eq!(call.message_id.as_deref(), text(&message["message_id"]));
        assert_eq!(owned(&call.extensions), texts(&message["extensions"]));
        let references = texts(&message["reference_task_ids"]);
        assert_eq!(owned(&call.reference_task_ids), references);
        let configuration = &seen["configuration"];
        let push = match old {
            true => &configuration["push_notification"],
            false => &configuration["task_push_notification_config"],
        };
        assert_eq!(call.inline_push, push.is_object());
        let urls: Vec<_> = text(&push["url"]).into_iter().collect();
        assert_eq!(owned(&call.push_urls), urls);
        let parts = message[if old { "content" } else { "parts" }].as_array();
        let files: Vec<_> = parts
            .into_iter()
            .flatten()
            .filter_map(|part| match old {
                true => text(&part["file"]["file_with_uri"]),
                false => text(&part["url"]),
            })
            .collect();
        assert_eq!(owned(&call.file_urls), files);
        return;
    }
    let named = |name: &Value| {
        let name = name.as_str()?;
        let name = name.strip_prefix("tasks/").unwrap_or(name);
        Some(name.split('/').next().unwrap().to_owned())
    };
    let task = match (old, kind.as_str()) {
        (_, "ListTasksRequest") => None,
        (true, _) => named(&seen["name"]).or_else(|| named(&seen["parent"])),
        (false, "GetTaskRequest" | "CancelTaskRequest" | "SubscribeToTaskRequest") => {
            text(&seen["id"]).map(str::to_owned)
        }
        (false, _) => text(&seen["task_id"]).map(str::to_owned),
    };
    assert_eq!(call.task_id.as_deref(), task.as_deref());
    let context = (kind == "ListTasksRequest").then(|| &seen["context_id"]);
    assert_eq!(call.context_id.as_deref(), context.and_then(text));
    let url = match old {
        true => &seen["config"]["push_notification_config"]["url"],
        false => &seen["url"],
    };
    let urls: Vec<_> = text(url).into_iter().collect();
    assert_eq!(owned(&call.push_urls), urls);
}

fn owned(texts: &[Box<str>]) -> Vec<&str> {
    texts.iter().map(AsRef::as_ref).collect()
}

/// Path and message of every accepted case.
fn accepted() -> Vec<(String, Vec<u8>)> {
    wire::cases()
        .into_iter()
        .filter(|case| case.binding == Binding::Grpc && case.read().is_ok())
        .map(|case| (case.path.clone(), case.body[5..].to_vec()))
        .collect()
}

#[test]
fn the_second_reader_agrees_on_every_case() {
    let accepted = accepted();
    assert!(accepted.len() > 25);
    for (path, message) in accepted {
        let call = read(&path, framed(&message)).unwrap();
        assert_decoder_sees_the_same(&path, &message, &call);
    }
}

#[test]
fn the_second_reader_would_notice() {
    // What we refuse is what it reads as something else.
    let mut bytes = Vec::new();
    proto::delimited(2, b"mine", &mut bytes);
    proto::delimited(2, b"theirs", &mut bytes);
    let mut seen = Map::new();
    decode("lf.a2a.v1", "GetTaskRequest", &bytes, &mut seen).unwrap();
    assert_eq!(seen["id"], "theirs");
    let mut bytes = Vec::new();
    for inner in [&b"\x0a\x01m"[..], b"\x1a\x06theirs"] {
        proto::delimited(2, inner, &mut bytes);
    }
    let mut seen = Map::new();
    decode("lf.a2a.v1", "SendMessageRequest", &bytes, &mut seen).unwrap();
    assert_eq!(
        seen["message"],
        json!({"message_id": "m", "task_id": "theirs"})
    );
}

/// One change to a message.
#[derive(Debug, Clone)]
enum Edit {
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    Flip(Index, u8),
}

fn edit() -> impl Strategy<Value = Edit> {
    let index = any::<Index>;
    prop_oneof![
        2 => (index(), prop::collection::vec(any::<u8>(), 1..4)).prop_map(|(at, bytes)| Edit::Insert(at, bytes)),
        1 => (index(), 1_usize..4).prop_map(|(at, length)| Edit::Remove(at, length)),
        2 => (index(), 1_usize..12).prop_map(|(at, length)| Edit::Repeat(at, length)),
        3 => (index(), any::<u8>()).prop_map(|(at, byte)| Edit::Flip(at, byte)),
    ]
}

fn apply(bytes: &mut Vec<u8>, edit: &Edit) {
    let length = bytes.len();
    match edit {
        Edit::Insert(at, inserted) => {
            let at = at.index(length + 1);
            bytes.splice(at..at, inserted.iter().copied());
        }
        Edit::Remove(at, count) if length > 0 => {
            let at = at.index(length);
            bytes.drain(at..length.min(at + count));
        }
        Edit::Repeat(at, count) if length > 0 => {
            let at = at.index(length);
            let copied = bytes[at..length.min(at + count)].to_vec();
            bytes.splice(at..at, copied);
        }
        Edit::Flip(at, byte) if length > 0 => bytes[at.index(length)] = *byte,
        Edit::Remove(..) | Edit::Repeat(..) | Edit::Flip(..) => {}
    }
}

/// A random message of a type, as the encoder takes it; what it says must be read back.
fn message(package: &'static str, kind: String, depth: u32) -> BoxedStrategy<Value> {
    let fields: Vec<Value> = fields_of(package, &kind).clone();
    let one = move |field: Value| -> BoxedStrategy<Vec<Value>> {
        let name = field[1].as_str().unwrap().to_owned();
        let kind = field[2].as_str().unwrap().to_owned();
        let value: BoxedStrategy<Value> = match kind.as_str() {
            "string" if name == "name" || name == "parent" => "[a-z]{1,8}"
                .prop_map(|id| json!(format!("tasks/{id}")))
                .boxed(),
            "string" | "bytes" => "[a-zé]{1,8}".prop_map(Value::from).boxed(),
            "bool" => any::<bool>().prop_map(Value::from).boxed(),
            "enum" | "int32" | "int64" => any::<i32>().prop_map(Value::from).boxed(),
            "double" => any::<f32>()
                .prop_filter("no number of JSON", |number| number.is_finite())
                .prop_map(|number| json!(f64::from(number)))
                .boxed(),
            _ if depth == 0 => Just(json!([])).boxed(),
            inner => message(package, inner.to_owned(), depth - 1),
        };
        let most = match field[3].as_str().unwrap() {
            "many" if kind != "Struct.FieldsEntry" => 3_usize,
            _ => 1,
        };
        prop::collection::vec(value, 0..=most)
            .prop_map(move |values| {
                let pairs = values.into_iter().map(|value| json!([name, value]));
                pairs.collect::<Vec<_>>()
            })
            .boxed()
    };
    let choice: Vec<_> = fields
        .iter()
        .filter(|f| f[3] == "one_of")
        .cloned()
        .collect();
    let others = fields.into_iter().filter(|f| f[3] != "one_of");
    let mut all: Vec<BoxedStrategy<Vec<Value>>> = others.map(one).collect();
    if !choice.is_empty() {
        all.push(select(choice).prop_flat_map(one).boxed());
    }
    all.prop_map(|fields| fields.concat())
        .prop_shuffle()
        .prop_map(Value::Array)
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(
        path in select(paths()),
        body in prop::collection::vec(any::<u8>(), 0..200),
        as_frame in any::<bool>(),
    ) {
        let message = body.clone();
        let body = if as_frame { framed(&body) } else { body };
        if let Some(call) = read(path, body)
            && as_frame
        {
            assert_decoder_sees_the_same(path, &message, &call);
        }
    }

    #[test]
    fn changed_messages_are_refused_or_read_alike(
        which in any::<Index>(),
        edits in prop::collection::vec(edit(), 1..4),
    ) {
        static ACCEPTED: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(accepted);
        let accepted = &*ACCEPTED;
        let (path, mut message) = accepted[which.index(accepted.len())].clone();
        for edit in &edits {
            apply(&mut message, edit);
        }
        if let Some(call) = read(&path, framed(&message)) {
            assert_decoder_sees_the_same(&path, &message, &call);
        }
    }

    #[test]
    fn any_good_message_is_read_as_it_was_written(
        (path, fields) in select(paths()).prop_flat_map(|path| {
            let (package, kind) = typed(path);
            (Just(path), message(package, kind, 5))
        }),
    ) {
        let (package, kind) = typed(path);
        let bytes = proto::encode(package, &kind, &fields);
        let call = read(path, framed(&bytes));
        if let Some(call) = &call {
            assert_decoder_sees_the_same(path, &bytes, call);
        }
        // Of the plain requests nothing but a missing name is refused.
        let plain = ["GetTaskRequest", "ListTasksRequest", "SubscribeToTaskRequest"];
        if plain.contains(&kind.as_str()) {
            let named = fields.as_array().unwrap().iter().any(|f| f[0] == "id" || f[0] == "name");
            prop_assert_eq!(call.is_some(), named || kind == "ListTasksRequest");
        }
    }
}
