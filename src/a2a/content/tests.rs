use super::*;
use crate::a2a::operation::Dialect;
use serde_json::json;

fn call(binding: Binding, version: Version) -> Call {
    Call::bare(Dialect { binding, version }, Operation::SendMessage)
}

fn content(binding: Binding, version: Version, body: &Value) -> Result<Value, Unreadable> {
    let body = body.to_string();
    let call = call(binding, version);
    let content = Content::of(&call, body.as_bytes());
    assert!(!content.is_made());
    content.value().cloned()
}

fn in_envelope(params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": params})
}

/// One message, in every JSON form, is one content.
#[test]
fn all_json_forms_of_a_message_are_the_same_content() {
    let data = json!({"repo": "sandbox/a", "n": [1, {"deep": null}]});
    let new = json!({
        "message": {
            "messageId": "m", "contextId": "c", "role": "ROLE_USER", "metadata": {"k": true},
            "parts": [
                {"text": "hi"}, {"data": data},
                {"url": "https://x/f", "filename": "f", "mediaType": "text/plain"},
                {"raw": "aGk="},
            ],
        },
        "configuration": {
            "acceptedOutputModes": ["text/plain"], "historyLength": 3, "returnImmediately": true,
            "taskPushNotificationConfig": {"url": "https://h"},
        },
        "metadata": {"skillId": "s"},
    });
    let old = json!({
        "message": {
            "messageId": "m", "contextId": "c", "role": "user", "kind": "message",
            "metadata": {"k": true},
            "parts": [
                {"kind": "text", "text": "hi"}, {"kind": "data", "data": data},
                {"kind": "file", "file": {"uri": "https://x/f", "name": "f", "mimeType": "text/plain"}},
                {"kind": "file", "file": {"bytes": "aGk="}},
            ],
        },
        "configuration": {
            "acceptedOutputModes": ["text/plain"], "historyLength": 3, "blocking": false,
            "pushNotificationConfig": {"url": "https://h"},
        },
        "metadata": {"skillId": "s"},
    });
    let proto_json = json!({
        "request": {
            "message_id": "m", "contextId": "c", "role": "ROLE_USER", "metadata": {"k": true},
            "content": [
                {"text": "hi"}, {"data": {"data": data}},
                {"file": {"file_with_uri": "https://x/f", "name": "f", "mime_type": "text/plain"}},
                {"file": {"fileWithBytes": "aGk="}},
            ],
        },
        "configuration": {
            "accepted_output_modes": ["text/plain"], "history_length": 3, "blocking": false,
            "push_notification": {"url": "https://h"},
        },
        "metadata": {"skillId": "s"},
    });
    let of = |binding, version, body: &Value| content(binding, version, body).unwrap();
    assert_eq!(of(Binding::JsonRpc, Version::V1_0, &in_envelope(&new)), new);
    assert_eq!(of(Binding::Rest, Version::V1_0, &new), new);
    assert_eq!(of(Binding::JsonRpc, Version::V0_3, &in_envelope(&old)), new);
    assert_eq!(of(Binding::Rest, Version::V0_3, &proto_json), new);
}

/// A part that two agents could take for two things is no content.
#[test]
fn what_can_be_read_in_two_ways_is_ambiguous() {
    let with = |part: Value| json!({"message": {"parts": [part]}});
    let old = [
        json!({"kind": "text", "text": "hi", "data": {"repo": "sandbox/a"}}),
        json!({"kind": "text", "data": {"repo": "sandbox/a"}}),
        json!({"kind": "data", "text": "hi"}),
        json!({"kind": 1, "text": "hi"}),
        json!({"data": {"data": {"repo": "sandbox/a"}}}),
        json!({"kind": "file", "file": {"bytes": "aGk=", "uri": "https://x"}}),
        json!({"kind": "file", "file": "x"}),
    ];
    for part in old {
        let body = in_envelope(&with(part.clone()));
        let found = content(Binding::JsonRpc, Version::V0_3, &body);
        assert_eq!(found, Err(Unreadable::Ambiguous), "{part}");
    }
    for part in [
        json!({"kind": "text", "data": {"repo": "sandbox/a"}}),
        json!({"kind": "data", "url": "https://x"}),
    ] {
        let body = in_envelope(&with(part.clone()));
        let found = content(Binding::JsonRpc, Version::V1_0, &body);
        assert_eq!(found, Err(Unreadable::Ambiguous), "{part}");
    }
    let hybrid = in_envelope(&with(json!({"kind": "data", "data": 1})));
    let found = content(Binding::JsonRpc, Version::V1_0, &hybrid).unwrap();
    assert_eq!(found, with(json!({"data": 1})));
    let kind = json!({"message": {"kind": "task", "parts": []}});
    let found = content(Binding::JsonRpc, Version::V0_3, &in_envelope(&kind));
    assert_eq!(found, Err(Unreadable::Ambiguous));
    let two = json!({"request": {"content": [{"data": {"data": {}, "more": 1}}]}});
    let found = content(Binding::Rest, Version::V0_3, &two);
    assert_eq!(found, Err(Unreadable::Ambiguous));
}

#[test]
fn content_is_bounded_in_bytes_values_and_work() {
    let long = json!({"message": {"x": "y".repeat(MAX_BYTES)}});
    let found = content(Binding::Rest, Version::V1_0, &long);
    assert_eq!(found, Err(Unreadable::Oversize));
    let wide = json!({"message": {"x": vec![0; MAX_NODES]}});
    let found = content(Binding::Rest, Version::V1_0, &wide);
    assert_eq!(found, Err(Unreadable::Oversize));
    let good = json!({"message": {"x": vec![0; MAX_NODES - 3]}});
    assert!(content(Binding::Rest, Version::V1_0, &good).is_ok());
    let spent = Content::given(json!({}));
    assert!((0..MAX_WORK).all(|_| spent.step()));
    assert!(!spent.step());
}

#[test]
fn calls_without_a_message_have_nothing_and_the_tenant_of_a_path_is_in_it() {
    let mut get = call(Binding::JsonRpc, Version::V1_0);
    get.operation = Operation::GetTask;
    let content = Content::of(&get, b"{\"params\": {\"id\": \"t\"}}");
    assert_eq!(content.value(), Ok(&json!({})));
    let mut send = call(Binding::Rest, Version::V1_0);
    send.tenant = Some("t1".into());
    let content = Content::of(&send, b"{\"message\": {}}");
    assert_eq!(content.value(), Ok(&json!({"message": {}, "tenant": "t1"})));
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
    out.extend_from_slice(bytes);
    out
}

/// `{"repo": "a", "n": 1.5, "yes": true, "no": null, "all": ["x"]}` as a `Struct`.
fn structure() -> Vec<u8> {
    let mut half = vec![0x11];
    half.extend(1.5_f64.to_le_bytes());
    let list = field(6, &field(1, &field(3, b"x")));
    let values = [
        ("repo", field(3, b"a")),
        ("n", half),
        ("yes", vec![0x20, 1]),
        ("no", vec![0x08, 0]),
        ("all", list),
    ];
    let entry = |(key, value): &(&str, Vec<u8>)| {
        field(1, &[field(1, key.as_bytes()), field(2, value)].concat())
    };
    values.iter().flat_map(entry).collect()
}

/// gRPC messages of both packages have the content of their JSON forms.
#[test]
fn grpc_has_the_same_content() {
    let data = json!({"repo": "a", "n": 1.5, "yes": true, "no": null, "all": ["x"]});
    let expected = json!({
        "message": {
            "messageId": "m", "role": "ROLE_USER",
            "parts": [{"text": "hi"}, {"data": data}], "metadata": {},
        },
        "configuration": {"historyLength": 3, "returnImmediately": true},
    });
    let framed = |message: Vec<u8>| {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[0][..], &length, &message].concat()
    };
    let message = |text: Vec<u8>, data: Vec<u8>| {
        let head = [field(1, b"m"), vec![0x20, 1]].concat();
        [head, field(5, &text), field(5, &data), field(6, b"")].concat()
    };
    let of = |version, body: &[u8]| {
        let call = call(Binding::Grpc, version);
        Content::of(&call, body).value().cloned()
    };
    let new = message(field(1, b"hi"), field(4, &field(5, &structure())));
    let new = [field(2, &new), field(3, &[0x18, 3, 0x20, 1])].concat();
    assert_eq!(of(Version::V1_0, &framed(new)), Ok(expected.clone()));
    let old = message(field(1, b"hi"), field(3, &field(1, &structure())));
    let old = [field(1, &old), field(2, &[0x18, 3, 0x20, 0])].concat();
    assert_eq!(of(Version::V0_3, &framed(old)), Ok(expected));
    assert_eq!(of(Version::V1_0, b"xx"), Err(Unreadable::Ambiguous));
}
