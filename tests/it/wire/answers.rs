//! Our refusals as bytes.

use portcullis::a2a::{Binding, Dialect, Fault, Version, render, render_with_status};
use serde_json::{Value, json};

const V0_3: Option<Dialect> = Some(Dialect {
    binding: Binding::JsonRpc,
    version: Version::V0_3,
});
const V1_0: Option<Dialect> = Some(Dialect {
    binding: Binding::JsonRpc,
    version: Version::V1_0,
});

fn body(fault: Fault, dialect: Option<Dialect>, id: Option<&str>) -> Value {
    serde_json::from_slice(&render(fault, dialect, id).body).unwrap()
}

#[test]
fn statuses_and_codes_follow_the_table() {
    // Fault, HTTP status in JSON-RPC, code in 1.0, code in 0.3, HTTP status without a dialect.
    let table = [
        (Fault::Unauthenticated, 401, -31401, -31401, 401),
        (Fault::InsufficientScope, 403, -31403, -31403, 403),
        (Fault::NotAllowed, 403, -31403, -31403, 403),
        (Fault::TaskNotFound, 200, -32001, -32001, 404),
        (Fault::ContextRefused, 200, -32602, -32602, 400),
        (Fault::ParseError, 200, -32700, -32700, 400),
        (Fault::InvalidRequest, 200, -32600, -32600, 400),
        (Fault::MethodNotFound, 200, -32601, -32601, 404),
        (Fault::InvalidParams, 200, -32602, -32602, 400),
        (Fault::VersionNotSupported, 200, -32009, -32600, 400),
        (
            Fault::PushNotificationNotSupported,
            200,
            -32003,
            -32003,
            400,
        ),
        (Fault::UnsupportedOperation, 200, -32004, -32004, 400),
        (Fault::ExtendedCardNotConfigured, 200, -32007, -32007, 400),
        (Fault::ContentTypeNotSupported, 415, -32005, -32005, 415),
        (Fault::TooLarge, 413, -32600, -32600, 413),
        (Fault::InvalidAgentResponse, 200, -32006, -32006, 500),
        (Fault::BadGateway, 502, -32603, -32603, 502),
        (Fault::Unavailable, 503, -32603, -32603, 503),
        (Fault::GatewayTimeout, 504, -32603, -32603, 504),
    ];
    for (fault, status, code, code_0_3, plain) in table {
        assert_eq!(render(fault, V1_0, None).status, status, "{fault:?}");
        assert_eq!(body(fault, V1_0, None)["error"]["code"], code, "{fault:?}");
        assert_eq!(
            body(fault, V0_3, None)["error"]["code"],
            code_0_3,
            "{fault:?}"
        );
        assert_eq!(render(fault, None, None).status, plain, "{fault:?}");
    }
}

#[test]
fn every_answer_is_whole_in_every_form() {
    for &fault in Fault::ALL {
        let entry = fault.entry();
        let info = json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": entry.reason,
            "domain": entry.domain,
            "metadata": {"code": entry.public_reason},
        });
        let mut details = vec![info];
        details.extend(entry.field.map(|field| {
            json!({
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{"field": field, "description": entry.message}],
            })
        }));
        let expected = json!({"jsonrpc": "2.0", "id": "a", "error": {
            "code": entry.code, "message": entry.message, "data": details,
        }});
        assert_eq!(body(fault, V1_0, Some("\"a\"")), expected);
        let expected = json!({"jsonrpc": "2.0", "id": 7, "error": {
            "code": entry.code_0_3, "message": entry.message,
        }});
        assert_eq!(body(fault, V0_3, Some("7")), expected);
        let expected = json!({"jsonrpc": "2.0", "id": null, "error": {
            "code": entry.code, "status": entry.status, "message": entry.message, "details": details,
        }});
        assert_eq!(
            body(fault, None, Some("7")),
            expected,
            "no id without a dialect"
        );
        assert_eq!(render(fault, V1_0, None).content_type, "application/json");
        let rest = |version| {
            let binding = Binding::Rest;
            let answer = render(fault, Some(Dialect { binding, version }), Some("7"));
            assert_eq!(answer.content_type, "application/json");
            assert_eq!(answer.status, entry.rest_status);
            serde_json::from_slice::<Value>(&answer.body).unwrap()
        };
        let expected = json!({"error": {
            "code": entry.rest_status, "status": entry.status, "message": entry.message,
            "details": details,
        }});
        assert_eq!(rest(Version::V1_0), expected);
        let expected = json!({
            "type": entry.error_type, "code": entry.code_0_3, "message": entry.message,
        });
        assert_eq!(rest(Version::V0_3), expected);
    }
}

/// The Python client of 0.3 raises what `type` names, and falls back on the status otherwise: a
/// name that it knows must be that of the same error.
#[test]
fn error_types_of_rest_0_3_are_those_that_its_clients_know() {
    let known = [
        ("TaskNotFoundError", -32001),
        ("TaskNotCancelableError", -32002),
        ("PushNotificationNotSupportedError", -32003),
        ("UnsupportedOperationError", -32004),
        ("ContentTypeNotSupportedError", -32005),
        ("InvalidAgentResponseError", -32006),
        ("ExtendedAgentCardNotConfiguredError", -32007),
        ("ExtensionSupportRequiredError", -32008),
        ("VersionNotSupportedError", -32009),
        ("InvalidRequestError", -32600),
        ("MethodNotFoundError", -32601),
        ("InvalidParamsError", -32602),
        ("InternalError", -32603),
        ("JSONParseError", -32700),
    ];
    for &fault in Fault::ALL {
        let entry = fault.entry();
        let code = known.iter().find(|(name, _)| *name == entry.error_type);
        if let Some((name, code)) = code {
            assert_eq!(entry.code, *code, "{name}");
        } else {
            // One of ours: the status says it, and no client takes it for an error of the agent.
            assert!(entry.domain == "portcullis", "{}", entry.error_type);
            assert!(entry.rest_status >= 401, "{}", entry.error_type);
        }
    }
    // The Python client asks again by GET only if it does not know the error.
    let entry = Fault::MethodNotAllowed.entry();
    assert!(known.iter().all(|(name, _)| *name != entry.error_type));
}

#[test]
fn an_id_is_echoed_byte_for_byte() {
    for id in [
        "0",
        "-1",
        "\"\\u0061\"",
        "123456789012345678901234567890",
        "\"\"",
    ] {
        let answer = render(Fault::TaskNotFound, V0_3, Some(id));
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        let expected = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32001,\"message\":\"task not found\"}}}}"
        );
        assert_eq!(text, expected);
    }
}

#[test]
fn only_a_refusal_by_policy_takes_the_configured_status() {
    assert_eq!(
        render_with_status(Fault::NotAllowed, V1_0, None, 200).status,
        200
    );
    assert_eq!(
        render_with_status(Fault::NotAllowed, V1_0, None, 403).status,
        403
    );
    assert_eq!(
        render_with_status(Fault::NotAllowed, None, None, 200).status,
        403
    );
    for fault in Fault::ALL
        .iter()
        .filter(|fault| **fault != Fault::NotAllowed)
    {
        assert_eq!(
            render_with_status(*fault, V1_0, None, 299),
            render(*fault, V1_0, None)
        );
    }
}

#[test]
fn reasons_that_are_not_ours_are_a2a_s() {
    let a2a: Vec<_> = Fault::ALL
        .iter()
        .map(|fault| fault.entry())
        .filter(|entry| entry.domain == "a2a-protocol.org")
        .map(|entry| entry.code)
        .collect();
    assert_eq!(
        a2a,
        [
            -32001, -32009, -32008, -32003, -32004, -32007, -32005, -32006
        ]
    );
}
