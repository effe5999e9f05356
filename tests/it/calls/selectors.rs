//! Every place where a call may name its skill (FC-72), and that those which disagree are refused.

use super::{POLICY, RPC, Stand, gateway, yaml};
use crate::support::client::{Client, Response, get};
use crate::support::fake_agent;
use crate::support::gateway::Gateway;
use crate::support::issuer::{DevAlgorithm, Issuer};
use crate::support::loopback;
use portcullis::cli::demo_agent::{DemoAgent, Options};
use serde_json::{Value, json};

/// A stand whose agent has other selectors.
async fn stand(skill_from: &str) -> Stand {
    stand_with(POLICY, skill_from).await
}

async fn stand_with(policy: &str, skill_from: &str) -> Stand {
    Stand::with(policy, |yaml| {
        let with = format!("skill_from: {skill_from}");
        yaml.replace(
            "skill_from: [{metadata: skillId}, {metadata: skill_id}]",
            &with,
        )
    })
    .await
}

/// A request whose parameters are a good message and `extra` beside it.
fn send(message: Value, extra: Value) -> String {
    let body = fake_agent::message("SendMessage", "ask", &[]);
    let mut body: Value = serde_json::from_str(&body).unwrap();
    for (name, value) in message.as_object().unwrap() {
        body["params"]["message"][name] = value.clone();
    }
    for (name, value) in extra.as_object().unwrap() {
        body["params"][name] = value.clone();
    }
    body.to_string()
}

/// What the record of the newest intent says about the skill.
fn recorded(gateway: &Gateway) -> Value {
    let records = gateway.journal.records();
    let newest = records.into_iter().rfind(|r| r["kind"] == "intent");
    newest.unwrap()["skill"].clone()
}

enum Expected {
    /// Executed, with this source in the record.
    Runs(&'static str),
    /// 403.
    Refused,
    /// -32602.
    Malformed,
}
use Expected::{Malformed, Refused, Runs};

/// An author may say hello, and may not review: each call runs or leaves the agent untouched.
async fn check(
    stand: &Stand,
    fields: &[(&str, &str)],
    message: Value,
    extra: Value,
    expected: Expected,
) -> Response {
    let what = format!("{fields:?} {message} {extra}");
    let author = stand.token("alice", "author");
    let before = stand.counted();
    let headers: Vec<_> = [&[("A2A-Version", "1.0")], fields].concat();
    let response = stand
        .post(Some(&author), &headers, &send(message, extra))
        .await;
    match expected {
        Runs(source) => {
            assert_eq!(response.status, 200, "{what}: {}", response.text());
            assert!(response.json()["error"].is_null(), "{what}");
            assert_eq!(stand.counted(), (before.0 + 1, before.1 + 1), "{what}");
            let skill = json!({"id": "hello", "source": source, "assurance": "declared"});
            assert_eq!(recorded(&stand.gateway), skill, "{what}");
        }
        Refused => stand.assert_refused(before, &response, 403, &what),
        Malformed => {
            stand.assert_refused(before, &response, 200, &what);
            assert_eq!(response.json()["error"]["code"], -32602, "{what}");
        }
    }
    response
}

#[tokio::test]
async fn the_requests_metadata_names_a_skill_when_it_is_a_selector() {
    let stand = stand("[{request_metadata: skill_id}]").await;
    for (message, extra, expected) in [
        (
            json!({}),
            json!({"metadata": {"skill_id": "hello"}}),
            Runs("request_metadata"),
        ),
        (
            json!({}),
            json!({"metadata": {"skill_id": "review-diff"}}),
            Refused,
        ),
        (json!({}), json!({"metadata": {"skill_id": 1}}), Refused),
        (json!({}), json!({"metadata": {}}), Refused),
        (
            json!({}),
            json!({"metadata": {"skillId": "hello"}}),
            Malformed,
        ),
        (
            json!({"metadata": {"skill_id": "hello"}}),
            json!({}),
            Refused,
        ),
        (
            json!({"metadata": {"skill_id": "review-diff"}}),
            json!({"metadata": {"skill_id": "hello"}}),
            Refused,
        ),
        (
            json!({"metadata": {"skill_id": "hello"}}),
            json!({"metadata": {"skill_id": "hello"}}),
            Runs("request_metadata"),
        ),
    ] {
        check(&stand, &[], message, extra, expected).await;
    }
}

#[tokio::test]
async fn data_parts_name_a_skill_when_they_are_a_selector() {
    let stand = stand("[{data: $.action.skill}]").await;
    let data = |values: &[Value]| {
        let parts: Vec<_> = values.iter().map(|v| json!({"data": v})).collect();
        json!({ "parts": parts })
    };
    let action = |skill: Value| json!({"action": {"skill": skill}});
    for (parts, expected) in [
        (data(&[action(json!("hello"))]), Runs("data")),
        (
            data(&[json!({"x": 1}), action(json!("hello"))]),
            Runs("data"),
        ),
        (
            data(&[action(json!("hello")), action(json!("hello"))]),
            Runs("data"),
        ),
        (data(&[action(json!("review-diff"))]), Refused),
        (
            data(&[action(json!("hello")), action(json!("review-diff"))]),
            Refused,
        ),
        (data(&[action(json!(["hello"]))]), Refused),
        (data(&[json!({"action": "hello"})]), Refused),
        (data(&[json!({"action": {"Skill": "hello"}})]), Malformed),
        (data(&[json!({"ACTION": {"skill": "hello"}})]), Malformed),
        // Another spelling in the same data counts when it names a skill of the agent.
        (
            data(&[json!({"action": {"skill": "hello"}, "skill": "review-diff"})]),
            Refused,
        ),
        (
            data(&[json!({"action": {"skill": "hello"}, "skill": "cooking"})]),
            Runs("data"),
        ),
    ] {
        check(&stand, &[], parts, json!({}), expected).await;
    }
}

#[tokio::test]
async fn a_header_names_a_skill_when_it_is_a_selector() {
    let stand = stand("[{header: X-Skill}]").await;
    for (fields, expected) in [
        (&[("X-Skill", "hello")][..], Runs("header")),
        (&[("x-skill", "hello")], Runs("header")),
        (&[("X-Skill", "review-diff")], Refused),
        (&[], Refused),
        (&[("X-Skill", "hello"), ("X-Skill", "hello")], Refused),
        (&[("X-Skill", "hello"), ("X-Skill", "review-diff")], Refused),
        (&[("X-Skill", "hello, review-diff")], Refused),
        (&[("X_Skill", "hello")], Malformed),
        (
            &[("X-Skill", "hello"), ("X_Skill", "review-diff")],
            Malformed,
        ),
        (
            &[("X-Skill", "hello"), ("Connection", "keep-alive, x-skill")],
            Malformed,
        ),
    ] {
        check(&stand, fields, json!({}), json!({}), expected).await;
    }
    // It goes to the agent as it came.
    let received = stand.agent.requests();
    for request in received {
        let head = String::from_utf8(request.head).unwrap().to_lowercase();
        assert_eq!(head.matches("\r\nx-skill: hello\r\n").count(), 1, "{head}");
    }
}

/// All that yield a value must agree, whatever their kinds.
#[tokio::test]
async fn selectors_of_several_kinds_agree_or_refuse() {
    let stand = stand("[{header: X-Skill}, {data: $.skill}, {metadata: skillId}]").await;
    let data = |skill: &str| json!([{"data": {"skill": skill}}]);
    let hello = [("X-Skill", "hello")];
    for (fields, message, expected) in [
        (
            &hello[..],
            json!({"parts": data("hello"), "metadata": {"skillId": "hello"}}),
            Runs("header"),
        ),
        (
            &[],
            json!({"parts": data("hello"), "metadata": {"skillId": "hello"}}),
            Runs("data"),
        ),
        (
            &[],
            json!({"metadata": {"skillId": "hello"}}),
            Runs("metadata"),
        ),
        (&hello, json!({"parts": data("review-diff")}), Refused),
        (
            &hello,
            json!({"metadata": {"skillId": "review-diff"}}),
            Refused,
        ),
        (
            &[],
            json!({"parts": data("hello"), "metadata": {"skillId": "review-diff"}}),
            Refused,
        ),
        (&hello, json!({"metadata": {"skillId": null}}), Refused),
    ] {
        check(&stand, fields, message, json!({}), expected).await;
    }
}

/// FC-72: a harmless name where the gateway looks, another where the agent looks.
#[tokio::test]
async fn known_spellings_that_disagree_are_refused() {
    // Whoever may ask for anything is refused too: what would be judged is not what would run.
    let policy = "version: 1
policy: anything
rules:
  - id: anything
    allow: {agents: [pr-agent], operations: [messages], skills: any}
    grant: agent
";
    let stand = stand_with(policy, "[{metadata: skillId}]").await;
    let hello = json!({"skillId": "hello"});
    let other = "review-diff";
    for (message, extra) in [
        (
            json!({"metadata": {"skillId": "hello", "skill": other}}),
            json!({}),
        ),
        (
            json!({"metadata": {"skillId": "hello", "skill": {"id": other}}}),
            json!({}),
        ),
        (
            json!({"metadata": {"skillId": "hello", "skill": null}}),
            json!({}),
        ),
        (
            json!({"metadata": hello}),
            json!({"metadata": {"skillId": other}}),
        ),
        (
            json!({"metadata": hello}),
            json!({"metadata": {"skill": other}}),
        ),
        (
            json!({"metadata": hello}),
            json!({"configuration": {"skillId": other}}),
        ),
        (
            json!({"metadata": hello, "parts": [{"data": {"skill": other, "input": 1}}]}),
            json!({}),
        ),
        // Without the selector itself, too.
        (
            json!({"metadata": {"skill": "hello"}}),
            json!({"metadata": {"skill": other}}),
        ),
        (
            json!({"metadata": {"skillId": "unlisted", "skill": "hello"}}),
            json!({}),
        ),
    ] {
        let refused = check(&stand, &[], message, extra, Refused).await;
        assert_eq!(refused.json()["error"]["code"], -31403);
    }
    let refusals = stand.gateway.journal.records();
    let refusals = refusals.iter().filter(|r| r["kind"] == "refusal");
    for refusal in refusals.clone() {
        assert_eq!(refusal["decision"]["reason"], "skill_spellings_differ");
    }
    assert_eq!(refusals.count(), 9);
    for (message, extra) in [
        (
            json!({"metadata": {"skillId": "hello", "skill": "hello"}}),
            json!({"metadata": {"skillId": "hello"}, "configuration": {"skillId": "hello"}}),
        ),
        (
            json!({"metadata": hello, "parts": [{"data": {"skill": "hello"}}]}),
            json!({}),
        ),
        (
            json!({"metadata": hello, "parts": [{"data": {"skill": "baking"}}]}),
            json!({}),
        ),
    ] {
        check(&stand, &[], message, extra, Runs("metadata")).await;
    }
    // One that nothing contradicts is unknown, and only a rule for any skill lets it pass.
    let before = stand.counted();
    let token = stand.token("alice", "author");
    let lone = send(json!({"metadata": {"skill": "hello"}}), json!({}));
    let response = stand.call(&token, "SendMessage", &lone).await;
    assert_eq!((response.status, stand.counted().1), (200, before.1 + 1));
    assert_eq!(recorded(&stand.gateway), json!({"source": "none"}));
}

/// The default is for those that name none: another spelling is not none.
#[tokio::test]
async fn the_default_is_not_for_unread_spellings() {
    let stand = stand("[{metadata: skillId}]\n    skill_default: hello").await;
    for (message, extra) in [
        (json!({"metadata": {"skill": "review-diff"}}), json!({})),
        (json!({}), json!({"metadata": {"skillId": "review-diff"}})),
        (
            json!({}),
            json!({"configuration": {"skillId": "review-diff"}}),
        ),
        (
            json!({"parts": [{"data": {"skillId": "review-diff"}}]}),
            json!({}),
        ),
    ] {
        check(&stand, &[], message, extra, Refused).await;
    }
}

/// An endpoint per skill: the only form that binds an agent which reads prose.
#[tokio::test]
async fn a_path_stands_for_a_skill() {
    let options = Options {
        more_paths: vec!["/review".to_owned(), "/hello".to_owned()],
        keep_requests: true,
        ..Options::default()
    };
    let agent = DemoAgent::start_with(loopback(), options).await.unwrap();
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let yaml = yaml(&agent.url(), &issuer).replace(
        "    skill_from: [{metadata: skillId}, {metadata: skill_id}]\n",
        "    skill_from: [{path: {review-diff: /review, hello: /hello}}, {metadata: skillId}]
    interfaces:
      - {binding: JSONRPC, version: \"1.0\", backend: /a2a, public_path: /a2a}
      - {binding: JSONRPC, version: \"1.0\", backend: /review, public_path: /review}
      - {binding: JSONRPC, version: \"1.0\", backend: /hello, public_path: /hello}\n",
    );
    let gateway = gateway(&yaml, POLICY, &issuer).await;
    let stand = Stand {
        agent,
        issuer,
        gateway,
    };
    let author = stand.token("alice", "author");
    let at = |path: &'static str, message: Value, token: String| {
        let address = stand.gateway.address;
        async move {
            let mut client = Client::connect(address).await.unwrap();
            let path = format!("{}{path}", RPC.strip_suffix("/a2a").unwrap());
            let fields = [("A2A-Version", "1.0")];
            let body = send(message, json!({}));
            client
                .post_json(&path, Some(&token), &fields, &body)
                .await
                .unwrap()
        }
    };
    for metadata in [json!({}), json!({"skillId": "hello"})] {
        let response = at("/hello", json!({"metadata": metadata}), author.clone()).await;
        assert_eq!(response.status, 200, "{}", response.text());
        let skill = json!({"id": "hello", "source": "path", "assurance": "path"});
        assert_eq!(recorded(&stand.gateway), skill);
    }
    assert_eq!(stand.counted(), (2, 2));
    for request in stand.agent.requests() {
        assert!(request.head.starts_with(b"POST /hello HTTP/1.1\r\n"));
    }
    let before = stand.counted();
    for (path, metadata) in [
        ("/review", json!({})),
        ("/review", json!({"skillId": "hello"})),
        ("/hello", json!({"skillId": "review-diff"})),
        ("/hello", json!({"skillId": 7})),
        ("/a2a", json!({})),
    ] {
        let response = at(path, json!({"metadata": metadata}), author.clone()).await;
        stand.assert_refused(before, &response, 403, path);
    }
    // A task that was started under one path is not continued under another.
    let started = at("/hello", json!({}), author.clone()).await.json();
    let task = json!({"taskId": started["result"]["task"]["id"]});
    let reviewer = stand.token("alice", "reviewer");
    let before = stand.counted();
    let response = at("/review", task.clone(), reviewer.clone()).await;
    stand.assert_refused(before, &response, 403, "another path");
    let response = at("/hello", task, reviewer).await;
    assert_eq!(response.status, 200, "{}", response.text());
    let skill = json!({"id": "hello", "source": "bound_task", "assurance": "path"});
    assert_eq!(recorded(&stand.gateway), skill);
    let metrics = get(stand.gateway.admin, "/metrics", &[])
        .await
        .unwrap()
        .text();
    let counted =
        "portcullis_skills_total{agent=\"pr-agent\",assurance=\"path\",source=\"path\"} 3";
    assert!(metrics.contains(counted), "{metrics}");
}
