//! What holds for every request, not only for those in the case files.

use super::{Case, cases, selectors, shown};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use portcullis::a2a::{
    self, Binding, Call, Operation, OperationGroup, ReadRules, Request, Version, Versions,
};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

const BOTH: Versions = Versions {
    v0_3: true,
    v1_0: true,
};

/// Members that change who or what a call is about, in good and bad spellings.
const MEMBERS: [&str; 16] = [
    "\"taskId\":\"other\"",
    "\"task_id\":\"other\"",
    "\"t\\u0061skId\":\"other\"",
    "\"TaskId\":\"other\"",
    "\"taskId\":null",
    "\"contextId\":\"other\"",
    "\"contextId\":7",
    "\"id\":\"other\"",
    "\"id\":8",
    "\"Id\":\"other\"",
    "\"tenant\":\"other\"",
    "\"url\":\"https://other.example\"",
    "\"method\":\"tasks/get\"",
    "\"message\":{\"taskId\":\"other\"}",
    "\"referenceTaskIds\":[\"other\"]",
    "\"note\":{\"taskId\":\"other\"}",
];

fn rules() -> ReadRules {
    ReadRules {
        versions: BOTH,
        tenants: false,
        skills: selectors(&json!([{"metadata": "skillId"}, {"metadata": "skill_id"}])),
        ..ReadRules::default()
    }
}

fn parse(body: &[u8]) -> Result<Call, a2a::Malformed> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    let request = Request {
        method: &Method::POST,
        path: "",
        query: None,
        headers: &headers,
        body: &Bytes::copy_from_slice(body),
    };
    a2a::parse(Binding::JsonRpc, &request, &rules()).map(|reading| reading.call)
}

fn accepted() -> Vec<Case> {
    cases()
        .into_iter()
        .filter(|case| parse(&case.body).is_ok())
        .collect()
}

/// One change to a body.
#[derive(Debug, Clone)]
enum Edit {
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    Member(Index, &'static str),
}

fn edit() -> impl Strategy<Value = Edit> {
    let index = any::<Index>;
    prop_oneof![
        1 => (index(), prop::collection::vec(any::<u8>(), 1..3)).prop_map(|(at, bytes)| Edit::Insert(at, bytes)),
        1 => (index(), 1_usize..4).prop_map(|(at, length)| Edit::Remove(at, length)),
        1 => (index(), 1_usize..12).prop_map(|(at, length)| Edit::Repeat(at, length)),
        6 => (index(), prop::sample::select(MEMBERS.to_vec())).prop_map(|(at, text)| Edit::Member(at, text)),
    ]
}

fn apply(body: &mut Vec<u8>, edit: &Edit) {
    let length = body.len();
    match edit {
        Edit::Insert(at, bytes) => {
            let at = at.index(length + 1);
            body.splice(at..at, bytes.iter().copied());
        }
        Edit::Remove(at, count) if length > 0 => {
            let at = at.index(length);
            body.drain(at..length.min(at + count));
        }
        Edit::Repeat(at, count) if length > 0 => {
            let at = at.index(length);
            let copied = body[at..length.min(at + count)].to_vec();
            body.splice(at..at, copied);
        }
        Edit::Member(at, member) => {
            let opens: Vec<_> = (0..length).filter(|&i| body[i] == b'{').collect();
            if opens.is_empty() {
                return;
            }
            let at = opens[at.index(opens.len())] + 1;
            let comma = if body.get(at) == Some(&b'}') { "" } else { "," };
            body.splice(at..at, format!("{member}{comma}").into_bytes());
        }
        Edit::Remove(..) | Edit::Repeat(..) => {}
    }
}

/// What another parser finds at the places that decide must be what the call says.
fn assert_serde_json_sees_the_same(body: &[u8], call: &Call) {
    let seen: Value = serde_json::from_slice(body).unwrap();
    let id: Value = serde_json::from_str(call.rpc_id.as_deref().unwrap()).unwrap();
    assert_eq!(id, seen["id"]);
    let params = &seen["params"];
    // Elsewhere `message` is a member that nobody knows.
    let is_send = call.operation.group() == OperationGroup::Messages;
    let message = if is_send {
        &params["message"]
    } else {
        &Value::Null
    };
    let texts = |value: &Value| -> Vec<Box<str>> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| item.as_str().unwrap().into())
            .collect()
    };
    let (task, context) = match (call.operation, call.dialect.version) {
        (Operation::SendMessage | Operation::SendStreamingMessage, _) => {
            (&message["taskId"], &message["contextId"])
        }
        (Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask, _) => {
            (&params["id"], &Value::Null)
        }
        (Operation::ListTasks, _) => (&Value::Null, &params["contextId"]),
        (Operation::CreateTaskPushNotificationConfig, _) => (&params["taskId"], &Value::Null),
        (Operation::GetExtendedAgentCard, _) => (&Value::Null, &Value::Null),
        (_, Version::V1_0) => (&params["taskId"], &Value::Null),
        (_, Version::V0_3) => (&params["id"], &Value::Null),
    };
    assert_eq!(call.task_id.as_deref(), task.as_str());
    assert_eq!(call.context_id.as_deref(), context.as_str());
    assert_eq!(call.reference_task_ids, texts(&message["referenceTaskIds"]));
    assert_eq!(call.extensions, texts(&message["extensions"]));
    assert_eq!(call.message_id.as_deref(), message["messageId"].as_str());
    if call.dialect.version == Version::V1_0 {
        assert_eq!(
            call.tenant.as_deref().unwrap_or_default(),
            params["tenant"].as_str().unwrap_or_default()
        );
        let inline = &params["configuration"]["taskPushNotificationConfig"];
        assert_eq!(call.inline_push, is_send && !inline.is_null());
        let parts = message["parts"].as_array().into_iter().flatten();
        let urls = parts
            .filter_map(|part| part["url"].as_str())
            .filter(|url| !url.is_empty());
        assert!(call.file_urls.iter().map(|url| &**url).eq(urls));
    }
    let spelled = seen["method"].as_str().unwrap();
    assert_eq!(
        a2a::wire::json_rpc(spelled).unwrap().operation,
        call.operation
    );
}

/// Numbers that `serde_json` respells: it reads them as doubles.
fn is_respelled(case: &Case) -> bool {
    case.name.contains("beyond 64 bits")
}

/// The same value with keys in another order and other white space.
pub(super) fn rewritten(value: &Value, turn: usize, out: &mut String) {
    let space = [" ", "", "\n", "\t\r\n", ""][turn % 5];
    out.push_str(space);
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            let middle = turn % members.len().max(1);
            members.rotate_left(middle);
            if turn % 2 == 1 {
                members.reverse();
            }
            out.push('{');
            for (index, (key, member)) in members.into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(&format!("{}{space}:", Value::from(key.as_str())));
                rewritten(member, turn / 2 + index, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                rewritten(item, turn / 3 + index, out);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
    out.push_str(space);
}

#[test]
fn the_case_files_hold_plenty_of_good_calls() {
    assert!(accepted().len() > 60);
}

#[test]
fn no_order_of_keys_and_no_white_space_changes_a_call() {
    for case in accepted().into_iter().filter(|case| !is_respelled(case)) {
        let value: Value = serde_json::from_slice(&case.body).unwrap();
        let call = parse(&case.body).unwrap();
        for turn in 0..24 {
            let mut text = String::new();
            rewritten(&value, turn, &mut text);
            let again = parse(text.as_bytes()).unwrap();
            // An id with escapes is respelled, so ids are not compared.
            let again = Call {
                rpc_id: call.rpc_id.clone(),
                ..again
            };
            assert_eq!(shown(&again), shown(&call), "{}: {text}", case.name);
        }
    }
}

#[test]
fn no_order_of_keys_changes_a_refusal() {
    for case in cases().into_iter().filter(|case| !is_respelled(case)) {
        let (Ok(value), Err(refused)) = (
            serde_json::from_slice::<Value>(&case.body),
            parse(&case.body),
        ) else {
            continue;
        };
        // serde_json keeps one of two alike names, and its own numbers.
        if ["duplicate_key", "rpc_id_fraction"].contains(&refused.code) {
            continue;
        }
        for turn in 0..12 {
            let mut text = String::new();
            rewritten(&value, turn, &mut text);
            let again = parse(text.as_bytes()).map_err(|again| (again.fault, again.code));
            assert_eq!(
                again.unwrap_err(),
                (refused.fault, refused.code),
                "{}: {text}",
                case.name
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn edited_requests_are_refused_or_read_alike(
        seed in any::<Index>(),
        edits in prop::collection::vec(edit(), 1..4),
    ) {
        thread_local! {
            static BODIES: Vec<Vec<u8>> = accepted().into_iter().map(|case| case.body.to_vec()).collect();
        }
        let mut body = BODIES.with(|bodies| bodies[seed.index(bodies.len())].clone());
        for edit in &edits {
            apply(&mut body, edit);
        }
        if let Ok(call) = parse(&body) {
            assert_serde_json_sees_the_same(&body, &call);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(parse(&bytes).is_err());
    }
}
