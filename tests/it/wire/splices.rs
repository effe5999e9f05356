//! What is put into a request: that nothing else changes, and that it reads as it should.

use super::{Case, cases, selectors};
use bytes::Bytes;
use portcullis::a2a::splice::{Insertions, STAMP, Stamp, splice};
use portcullis::a2a::{self, Binding, Call, OperationGroup, ReadRules, Request, Version};
use serde_json::{Value, json};

const TENANT: &str = "t-\"é\\1";

fn insertions() -> Insertions<'static> {
    Insertions {
        tenant: Some(TENANT),
        stamp: Some(Stamp {
            skill: Some("he\"llo"),
            request_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        }),
    }
}

fn stamped() -> Value {
    json!({"skill": "he\"llo", "requestId": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})
}

fn read(case: &Case, body: &Bytes) -> Option<Call> {
    let rules = ReadRules {
        stamp: true,
        tenants: true,
        ..case.rules.clone()
    };
    let request = Request {
        method: &case.method,
        path: &case.path,
        query: case.query.as_deref(),
        headers: &case.headers,
        body,
    };
    let reading = a2a::parse(case.binding, &request, &rules).ok()?;
    Some(reading.call)
}

/// The pieces of `original` that are left, in order, in `changed`: what was put in taken out again.
fn kept(original: &[u8], changed: &[u8]) -> (usize, usize) {
    let from_start = original
        .iter()
        .zip(changed)
        .take_while(|(a, b)| a == b)
        .count();
    let (original, changed) = (&original[from_start..], &changed[from_start..]);
    let back = original.iter().rev().zip(changed.iter().rev());
    (from_start, back.take_while(|(a, b)| a == b).count())
}

/// Every good request of the case files: the spliced one is the same call, for our tenant and with
/// our stamp, and as a tree it differs in these alone.
#[test]
fn a_spliced_request_is_the_same_call_with_what_was_put_in() {
    let mut spliced = 0;
    for case in cases().iter().filter(|c| c.binding == Binding::JsonRpc) {
        let Some(call) = read(case, &case.body) else {
            continue;
        };
        let before: Value = serde_json::from_slice(&case.body).unwrap();
        let changed = splice(&call, &case.body, insertions()).unwrap();
        let is_message = call.operation.group() == OperationGroup::Messages;
        let gets_tenant = call.dialect.version == Version::V1_0 && call.tenant.is_none();
        let Some(changed) = changed else {
            assert!(!is_message && !gets_tenant, "{}", case.name);
            continue;
        };
        spliced += 1;
        let sent = read(case, &changed).unwrap_or_else(|| panic!("{}", case.name));
        let judged = Call {
            tenant: match gets_tenant {
                true => Some(TENANT.into()),
                false => call.tenant.clone(),
            },
            spots: None,
            ..call
        };
        let sent = Call {
            // Without parameters no part of a list was asked for, and none is now.
            list: judged.list.as_ref().and(sent.list),
            spots: None,
            ..sent
        };
        assert_eq!(sent, judged, "{}", case.name);
        let mut expected = before;
        if gets_tenant {
            if expected["params"].is_null() {
                expected["params"] = json!({});
            }
            expected["params"]["tenant"] = TENANT.into();
        }
        if is_message {
            let message = &mut expected["params"]["message"];
            if message["metadata"].is_null() {
                message["metadata"] = json!({});
            }
            message["metadata"][STAMP] = stamped();
        }
        let after: Value = serde_json::from_slice(&changed).unwrap();
        assert_eq!(after, expected, "{}", case.name);
    }
    assert!(spliced > 80, "only {spliced}");
}

fn case(body: &str) -> Case {
    let mut case = cases()
        .into_iter()
        .find(|case| case.name == "send-message: 1.0 least")
        .unwrap();
    case.body = Bytes::copy_from_slice(body.as_bytes());
    case.rules.skills = selectors(&json!([{"metadata": "skillId"}]));
    case
}

/// One insertion, byte for byte: what was there stays, white space and all.
#[test]
fn insertions_touch_nothing_else() {
    let stamp = format!("\"{STAMP}\":{{\"skill\":\"hello\",\"requestId\":\"r\"}}");
    let send = |params: &str| {
        format!(r#" {{"jsonrpc":"2.0", "id" : 1,"method":"SendMessage" ,"params" : {params} }} "#)
    };
    let early = |params: &str| {
        format!(r#"{{ "params": {params},"method":"SendMessage","jsonrpc":"2.0","id":1}}"#)
    };
    let stamped = |metadata: &str| metadata.replace("STAMP", &stamp);
    for (before, after) in [
        (r#"{"message":{}}"#, r#"{"message":{"metadata":{STAMP}}}"#),
        (
            r#"{"message": { } }"#,
            r#"{"message": {"metadata":{STAMP} } }"#,
        ),
        (
            r#"{ "message": { "messageId" : "m" } }"#,
            r#"{ "message": {"metadata":{STAMP}, "messageId" : "m" } }"#,
        ),
        (
            r#"{"message":{"messageId":"m","metadata": null }}"#,
            r#"{"message":{"messageId":"m","metadata": {STAMP} }}"#,
        ),
        (
            r#"{"message":{"metadata":{ }}}"#,
            r#"{"message":{"metadata":{STAMP }}}"#,
        ),
        (
            r#"{"message":{"metadata":{"a":1.0e0}},"metadata":{"a":2}}"#,
            r#"{"message":{"metadata":{STAMP,"a":1.0e0}},"metadata":{"a":2}}"#,
        ),
        // A stamp of the caller's, in every position, and by any spelling of the same name.
        (
            r#"{"message":{"metadata":{"x":1, "FORGED" : {"skill":"review-diff"} ,"y":2}}}"#,
            r#"{"message":{"metadata":{"x":1, "FORGED" : VALUE ,"y":2}}}"#,
        ),
        (
            r#"{"message":{"metadata":{"\u0075rn:portcullis:stamp:1":7}}}"#,
            r#"{"message":{"metadata":{"\u0075rn:portcullis:stamp:1":VALUE}}}"#,
        ),
        (
            r#"{"message":{},"metadata":{"FORGED":{"a":[1]}}}"#,
            r#"{"message":{"metadata":{STAMP}},"metadata":{}}"#,
        ),
        (
            r#"{"message":{},"metadata":{ "FORGED":{"a":[1]} , "b":2}}"#,
            r#"{"message":{"metadata":{STAMP}},"metadata":{ "b":2}}"#,
        ),
        (
            r#"{"message":{},"metadata":{"a":1 , "FORGED":1 , "b":2}}"#,
            r#"{"message":{"metadata":{STAMP}},"metadata":{"a":1 , "b":2}}"#,
        ),
        (
            r#"{"message":{},"metadata":{"a":1 , "FORGED":1 }}"#,
            r#"{"message":{"metadata":{STAMP}},"metadata":{"a":1 }}"#,
        ),
    ] {
        let value = stamp.split_once("1\":").unwrap().1;
        let filled = |text: &str| {
            stamped(text)
                .replace("FORGED", STAMP)
                .replace("VALUE", value)
        };
        for shape in [&send as &dyn Fn(&str) -> String, &early] {
            let case = case(&shape(&filled(before)));
            let call = read(&case, &case.body).unwrap_or_else(|| panic!("{before}"));
            let with = Insertions {
                tenant: None,
                stamp: Some(Stamp {
                    skill: Some("hello"),
                    request_id: "r",
                }),
            };
            let spliced = splice(&call, &case.body, with).unwrap().unwrap();
            assert_eq!(spliced, shape(&filled(after)).as_bytes(), "{before}");
            let (start, end) = kept(&case.body, &spliced);
            assert!(start > 0 && end > 0);
        }
    }
    for (before, after) in [
        (r#"{"message":{}}"#, r#"{"tenant":"t1","message":{}}"#),
        (r#"{ "message":{}}"#, r#"{"tenant":"t1", "message":{}}"#),
        (
            r#"{"message":{},"tenant": null }"#,
            r#"{"message":{},"tenant": "t1" }"#,
        ),
        (
            r#"{"message":{},"tenant":""}"#,
            r#"{"message":{},"tenant":"t1"}"#,
        ),
    ] {
        for shape in [&send as &dyn Fn(&str) -> String, &early] {
            let case = case(&shape(before));
            let call = read(&case, &case.body).unwrap();
            let with = Insertions {
                tenant: Some("t1"),
                stamp: None,
            };
            let spliced = splice(&call, &case.body, with).unwrap().unwrap();
            assert_eq!(spliced, shape(after).as_bytes(), "{before}");
        }
    }
    // Parameters that are not there.
    for (before, after) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard"}"#,
            r#"{"params":{"tenant":"t1"},"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard"}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard","params": null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard","params": {"tenant":"t1"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard","params":{"tenant":"t1"}}"#,
        ),
    ] {
        let case = case(before);
        let call = read(&case, &case.body).unwrap();
        let with = Insertions {
            tenant: Some("t1"),
            stamp: None,
        };
        let spliced = splice(&call, &case.body, with).unwrap().unwrap();
        assert_eq!(spliced, after.as_bytes(), "{before}");
    }
}

/// The same over protobuf: every good gRPC request of the case files.
#[test]
fn a_spliced_grpc_request_is_the_same_call_with_what_was_put_in() {
    let mut spliced = 0;
    for case in cases().iter().filter(|c| c.binding == Binding::Grpc) {
        let Some(call) = read(case, &case.body) else {
            continue;
        };
        let Some(changed) = splice(&call, &case.body, insertions()).unwrap() else {
            continue;
        };
        spliced += 1;
        let sent = read(case, &changed).unwrap_or_else(|| panic!("{}", case.name));
        let gets_tenant = call.dialect.version == Version::V1_0 && call.tenant.is_none();
        let is_message = call.operation.group() == OperationGroup::Messages;
        let judged = Call {
            tenant: match gets_tenant {
                true => Some(TENANT.into()),
                false => call.tenant.clone(),
            },
            ..call.clone()
        };
        assert_eq!(sent, judged, "{}", case.name);
        let times = |bytes: &[u8], text: &str| {
            let windows = bytes.windows(text.len());
            windows.filter(|w| *w == text.as_bytes()).count()
        };
        assert_eq!(
            times(&changed, STAMP),
            usize::from(is_message),
            "{}",
            case.name
        );
        // Put in once more, a forged stamp: it is taken out, and the bytes are the same again.
        if is_message {
            let forged = Insertions {
                stamp: Some(Stamp {
                    skill: Some("review-diff"),
                    request_id: "mine",
                }),
                tenant: None,
            };
            let forged = splice(&call, &case.body, forged).unwrap().unwrap();
            assert_eq!(times(&forged, "mine"), 1);
            let call = read(case, &forged).unwrap();
            let ours = splice(&call, &forged, insertions()).unwrap().unwrap();
            assert_eq!(ours, changed, "{}", case.name);
        }
    }
    assert!(spliced > 10, "only {spliced}");
}

/// Names that some parser takes for the stamp's.
#[test]
fn a_stamp_in_another_spelling_is_refused() {
    for name in [
        "URN:portcullis:stamp:1",
        "urn:portcullis:Stamp:1",
        "urn:portcullis:stamp:_1",
        "urn:portcullis:\u{17f}tamp:1",
    ] {
        for place in ["message", "request"] {
            let forged = json!({ name: {"skill": "review-diff"} });
            let params = match place {
                "message" => json!({"message": {"metadata": forged}}),
                _ => json!({"message": {}, "metadata": forged}),
            };
            let body =
                json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
            let case = case(&body.to_string());
            assert!(read(&case, &case.body).is_none(), "{name} {place}");
        }
    }
}
