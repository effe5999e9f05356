//! What is put into a call arrives in every binding, and nobody else can say it.

use super::client::Said;
use super::proto::{find, frames};
use super::requests::{Spoken, in_grpc};
use super::{BINDINGS, Situation, Stand};
use crate::support::proto::{encode, struct_of};
use portcullis::a2a::{Binding, Dialect, Version};
use serde_json::{Value, json};

const STAMP: &str = "urn:portcullis:stamp:1";

/// SendMessage in 1.0 with this metadata, for this tenant.
fn saying(binding: Binding, metadata: &Value, tenant: Option<&str>) -> Spoken {
    let mut params = json!({"message": {"messageId": "m-1", "role": "ROLE_USER",
        "parts": [{"text": "hello"}], "metadata": metadata}});
    let json = |path: String, body: Value| Spoken {
        method: "POST",
        path,
        content_type: Some("application/json"),
        body: body.to_string().into(),
    };
    match binding {
        Binding::JsonRpc => {
            if let Some(tenant) = tenant {
                params["tenant"] = tenant.into();
            }
            let body =
                json!({"jsonrpc": "2.0", "id": "q", "method": "SendMessage", "params": params});
            json(String::new(), body)
        }
        Binding::Rest => {
            let tenant = tenant.map_or(String::new(), |tenant| format!("/{tenant}"));
            json(format!("{tenant}/message:send"), params)
        }
        Binding::Grpc => {
            let message = json!([["message_id", "m-1"], ["role", 1], ["parts", [["text", "hello"]]],
                ["metadata", {"struct": metadata}]]);
            let mut fields = json!([["message", message]]);
            if let Some(tenant) = tenant {
                fields
                    .as_array_mut()
                    .unwrap()
                    .push(json!(["tenant", tenant]));
            }
            let package = "lf.a2a.v1";
            let request = encode(package, "SendMessageRequest", &fields);
            in_grpc(package, "SendMessage", &request)
        }
    }
}

/// Asserts which tenant and which metadata the agent was told.
fn assert_told(stand: &Stand, binding: Binding, tenant: &str, metadata: &Value) {
    let (path, body) = stand.agent.last();
    if binding == Binding::Grpc {
        let request = frames(&body)[0];
        assert_eq!(find(request, 1), Some(tenant.as_bytes()));
        let told = find(request, 2).and_then(|message| find(message, 6));
        assert_eq!(told, Some(&*struct_of(metadata)), "{metadata}");
        return;
    }
    let body: Value = serde_json::from_slice(&body).unwrap();
    let params = match binding {
        Binding::Rest => {
            assert_eq!(path, format!("/rest/{tenant}/message:send"));
            &body
        }
        Binding::JsonRpc | Binding::Grpc => {
            assert_eq!(body["params"]["tenant"], tenant);
            &body["params"]
        }
    };
    assert_eq!(params["message"]["metadata"], *metadata);
}

#[tokio::test]
async fn stamp_and_tenant_arrive_in_every_binding() {
    let stand = Stand::with(|yaml| {
        yaml.replace("['0.3', '1.0']", "'1.0'").replace(
            "    skills: [hello]\n",
            "    skills: [hello, other]\n    skill_from: [{metadata: skillId}]\n    \
             stamp: on\n    tenant: {fixed: t1}\n",
        )
    })
    .await;
    let token = stand.token(Situation::Allowed);
    let forged = json!({"skill": "other", "requestId": "mine"});
    for binding in BINDINGS {
        let dialect = Dialect {
            binding,
            version: Version::V1_0,
        };
        let ask = async |metadata: &Value, tenant: Option<&str>| {
            let before = stand.agent.executed();
            let request = saying(binding, metadata, tenant);
            let (said, records) = stand.asked(dialect, &request, token.as_deref()).await;
            (said, records, stand.agent.executed() - before)
        };
        for (metadata, tenant) in [
            (json!({"skillId": "hello"}), None),
            (json!({"skillId": "hello"}), Some("t1")),
            (json!({"skillId": "hello", STAMP: forged}), Some("t1")),
        ] {
            let (said, records, executed) = ask(&metadata, tenant).await;
            assert!(matches!(said, Said::Good(_)), "{binding:?}: {said:?}");
            assert_eq!(executed, 1, "{binding:?}");
            let intent = &records[0];
            assert_eq!(intent["tenant"], "t1", "{intent}");
            let skill = json!({"id": "hello", "source": "metadata", "assurance": "bound"});
            assert_eq!(intent["skill"], skill, "{binding:?}");
            let stamp = json!({"skill": "hello", "requestId": intent["request_id"]});
            let told = json!({"skillId": "hello", STAMP: stamp});
            assert_told(&stand, binding, "t1", &told);
            let (_, body) = stand.agent.last();
            let forwarded = &intent["request"]["forwarded"];
            assert_eq!(forwarded["bytes"], body.len(), "{binding:?}: {intent}");
        }
        for (what, metadata, tenant) in [
            ("another tenant", json!({"skillId": "hello"}), Some("t2")),
            (
                "a skill that no rule allows",
                json!({"skillId": "other"}),
                None,
            ),
            ("no skill", json!({}), None),
            ("a skill of another type", json!({"skillId": 5}), None),
            (
                "the stamp in another spelling",
                json!({"skillId": "hello", "URN:portcullis:stamp:1": forged}),
                None,
            ),
        ] {
            let (said, _, executed) = ask(&metadata, tenant).await;
            assert!(
                matches!(said, Said::Bad { .. }),
                "{binding:?}, {what}: {said:?}"
            );
            assert_eq!(executed, 0, "{binding:?}, {what}: the agent executed it");
        }
    }
}

/// An agent that declares that it routes on the assertion is held to its skill, once it gets one.
#[tokio::test]
async fn an_assertion_gives_the_assurance_that_a_stamp_gives() {
    for (identity, assurance) in [("", "declared"), ("identity: assertion, ", "bound")] {
        let stand = Stand::with(|yaml| {
            let yaml = yaml
                .replace("['0.3', '1.0']", "'1.0'")
                .replace("backend: {url", &format!("backend: {{{identity}url"))
                .replace(
                    "    skills: [hello]\n",
                    "    skills: [hello, other]\n    skill_from: [{metadata: skillId}]\n",
                );
            format!("{yaml}keys: {{dir: keys}}\n")
        })
        .await;
        let token = stand.token(Situation::Allowed);
        for binding in BINDINGS {
            let dialect = Dialect {
                binding,
                version: Version::V1_0,
            };
            let request = saying(binding, &json!({"skillId": "hello"}), None);
            let (said, records) = stand.asked(dialect, &request, token.as_deref()).await;
            assert!(matches!(said, Said::Good(_)), "{binding:?}: {said:?}");
            let skill = json!({"id": "hello", "source": "metadata", "assurance": assurance});
            assert_eq!(records[0]["skill"], skill, "{binding:?}");
        }
    }
}
