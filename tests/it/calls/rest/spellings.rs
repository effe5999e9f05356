//! Paths, versions and names of the REST binding on their way to the agent.

use super::{REST, Stand, send, task, versions};
use crate::calls::message;
use crate::support::client::Client;
use crate::support::issuer::Grant;
use crate::support::raw_agent::{Act, json_answer};
use serde_json::json;

/// FC-43: the layouts of both versions lead to the operation, and go out as they are. FC-41: what
/// is declared arrives as exactly one header; with a path of 1.0 it is always declared.
#[tokio::test]
async fn fc_41_fc_43_both_layouts_reach_the_agent_with_one_version() {
    let stand = Stand::new().await;
    // Path and query, header, name of the parts; what the agent saw of path and version.
    let table = [
        (
            "/message:send",
            Some("1.0"),
            "parts",
            "/message:send",
            Some("1.0"),
        ),
        ("/message:send", None, "parts", "/message:send", Some("1.0")),
        (
            "/message:send?A2A-Version=1.0",
            None,
            "parts",
            "/message:send",
            Some("1.0"),
        ),
        (
            "/message%3Asend",
            None,
            "parts",
            "/message:send",
            Some("1.0"),
        ),
        (
            "/message:send/",
            None,
            "parts",
            "/message:send",
            Some("1.0"),
        ),
        (
            "/v1/message:send",
            Some("0.3"),
            "content",
            "/v1/message:send",
            Some("0.3"),
        ),
        (
            "/v1/message:send",
            None,
            "content",
            "/v1/message:send",
            None,
        ),
        (
            "/v1/message:send?A2A-Version=0.3",
            None,
            "content",
            "/v1/message:send",
            Some("0.3"),
        ),
    ];
    for (below, stated, parts, path, version) in table {
        let fields: Vec<_> = stated
            .iter()
            .map(|stated| ("A2A-Version", *stated))
            .collect();
        let reply = json!({"task": task()}).to_string();
        stand.agent.play([Act::Answer(json_answer(200, &reply))]);
        let body = send(parts);
        let response = stand.ask("POST", below, &fields, &body).await;
        assert_eq!(
            (response.status, &*response.text()),
            (200, &*reply),
            "{below}"
        );
        let seen = stand.last();
        let (line, _) = seen.fields();
        assert_eq!(line, format!("POST /a2a/rest{path} HTTP/1.1"), "{below}");
        let expected: Vec<_> = version.into_iter().collect();
        assert_eq!(versions(&seen), expected, "{below}");
        assert_eq!(seen.body, body.as_bytes(), "{below}: byte for byte");
    }
    let records = stand.gateway.journal.records();
    let intents: Vec<_> = records.iter().filter(|r| r["kind"] == "intent").collect();
    assert_eq!(intents.len(), table.len());
    assert!(intents.iter().all(|r| r["operation"] == "SendMessage"));
    assert!(intents.iter().all(|r| r["binding"] == "rest"));
}

/// FC-43: what is no path of an operation leads nowhere, and says so as REST does.
#[tokio::test]
async fn fc_43_unknown_paths_are_refused_in_the_form_of_rest() {
    let stand = Stand::new().await;
    let older = ["/v1", "/v1/tasks", "/v1/nope"];
    let newer = [
        "/v2/message:send",
        "/acme/message:send",
        "/message/send",
        "/nope",
        "",
    ];
    for below in older.into_iter().chain(newer) {
        let response = stand.ask("POST", below, &[], &send("parts")).await;
        assert_eq!(response.status, 404, "{below}");
        let answer = response.json();
        match older.contains(&below) {
            true => assert_eq!(
                answer,
                json!({"type": "MethodNotFoundError", "code": -32601, "message": "nothing is here"})
            ),
            false => {
                assert_eq!(answer["error"]["code"], 404, "{below}");
                assert_eq!(answer["error"]["status"], "NOT_FOUND", "{below}");
            }
        }
        // Without a token nobody learns whether it exists.
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        let path = format!("{REST}{below}");
        let stranger = client.request("POST", &path, &[], b"").await.unwrap();
        let elsewhere = client.request("POST", "/nowhere", &[], b"").await.unwrap();
        assert_eq!((stranger.status, stranger.body), (401, elsewhere.body));
    }
    assert_eq!(stand.seen(), []);
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let stand = Stand::new().await;
    for (method, below, allow) in [
        ("DELETE", "/tasks/t-1", "GET"),
        ("PUT", "/tasks/t-1:subscribe", "GET, POST"),
        ("GET", "/v1/tasks/t-1:cancel", "POST"),
        ("GET", "/message:send", "POST"),
    ] {
        let response = stand.ask(method, below, &[], "").await;
        assert_eq!(response.status, 405, "{method} {below}");
        assert_eq!(response.field("allow"), Some(allow), "{method} {below}");
    }
    assert_eq!(stand.seen(), []);
}

/// FC-81: no spelling of a path leads past the rule that its plain spelling meets.
#[tokio::test]
async fn fc_81_path_tricks_reach_nothing() {
    let stand = Stand::new().await;
    let full = format!("Bearer {}", stand.token(Grant::Full));
    for path in [
        "/agents/pr-agent/a2a/rest/..;/admin",
        "//agents/pr-agent/a2a/rest/message:send",
        "/agents/pr-agent/a2a/rest//message:send",
        "/agents/pr-agent/a2a/rest/%2e%2e/message:send",
        "/agents/pr-agent/a2a/rest%2fmessage:send",
        "/agents/pr-agent/a2a/rest/./message:send",
        "/agents/pr-agent/a2a/rest/tasks/a%2Fb:cancel",
        "/agents/pr-agent/a2a/rest/tasks/t-1;x:cancel",
        "/agents/pr-agent/a2a/rest/tasks/t-1%00:cancel",
        "/agents/pr-agent/a2a/rest/tasks/t%253Acancel",
        "/agents/pr-agent/a2a/rest/Message:Send",
        "/agents/pr-agent/a2a/rest/TASKS/t-1",
        "/agents/pr-agent/a2a/rest/tasks/x:y:cancel",
    ] {
        let mut client = Client::connect(stand.gateway.address).await.unwrap();
        let fields = [
            ("Authorization", &*full),
            ("Content-Type", "application/json"),
        ];
        let body = send("parts");
        let response = client.request("POST", path, &fields, body.as_bytes()).await;
        let status = response.unwrap().status;
        assert!([400, 404].contains(&status), "{path}: {status}");
    }
    assert_eq!(stand.seen(), []);
}

/// The Python client of 1.x writes 0.3 in the proto's own names. Agents are told the JSON names,
/// which every one of them reads.
#[tokio::test]
async fn the_proto_s_names_are_respelled_on_the_way() {
    let stand = Stand::new().await;
    let reply = json!({"task": task()}).to_string();
    stand.agent.play([Act::Answer(json_answer(200, &reply))]);
    let body = r#" {"request" : {"message_id":"m-1","role":"ROLE_USER","content":[{"text":"request"}],
        "metadata":{"skillId":"hello","task_id":"x"}}, "configuration":{"accepted_output_modes":[]}}"#;
    let respelled = r#" {"message" : {"messageId":"m-1","role":"ROLE_USER","content":[{"text":"request"}],
        "metadata":{"skillId":"hello","task_id":"x"}}, "configuration":{"acceptedOutputModes":[]}}"#;
    let response = stand.ask("POST", "/v1/message:send", &[], body).await;
    assert_eq!(response.status, 200, "{}", response.text());
    let seen = stand.last();
    assert_eq!(String::from_utf8(seen.body.clone()).unwrap(), respelled);
    let length = respelled.len().to_string();
    assert_eq!(seen.field("content-length"), Some(length));
}

/// FC-42: a rule speaks of operations, so it meets every spelling in every binding.
#[tokio::test]
async fn fc_42_a_rule_meets_every_spelling() {
    let stand =
        Stand::with(|yaml| yaml.replace("    publish:", "    deny_status: 200\n    publish:"))
            .await;
    let guest = json!({"role": "guest"});
    let guest = stand.issuer.token("mallory", Grant::Agent, guest);
    let review = |text: &str| text.replace("\"hello\"", "\"review-diff\"");
    let rpc = |method| review(&message(method, "hello", "hi", &[]));
    let rest = |parts| review(&send(parts));
    let spellings = [
        ("/a2a", rpc("SendMessage"), 200, "SendMessage"),
        ("/a2a", rpc("message/send"), 200, "SendMessage"),
        (
            "/a2a",
            rpc("SendStreamingMessage"),
            200,
            "SendStreamingMessage",
        ),
        ("/a2a", rpc("message/stream"), 200, "SendStreamingMessage"),
        ("/a2a/rest/message:send", rest("parts"), 403, "SendMessage"),
        (
            "/a2a/rest/v1/message:send",
            rest("content"),
            403,
            "SendMessage",
        ),
        (
            "/a2a/rest/message:stream",
            rest("parts"),
            403,
            "SendStreamingMessage",
        ),
        (
            "/a2a/rest/v1/message:stream",
            rest("content"),
            403,
            "SendStreamingMessage",
        ),
    ];
    for (number, (path, body, status, operation)) in spellings.iter().enumerate() {
        let path = format!("/agents/pr-agent{path}");
        let response = stand.send(&guest, &path, body).await;
        // A denial keeps its status in REST, where 200 would say that the call succeeded.
        assert_eq!(response.status, *status, "{path}: {}", response.text());
        let answer = response.json();
        match path.contains("/rest/") {
            true if path.contains("/v1/") => assert_eq!(answer["type"], "PermissionDeniedError"),
            true => assert_eq!(answer["error"]["status"], "PERMISSION_DENIED"),
            false => assert_eq!(answer["error"]["code"], -31403),
        }
        let record = stand.gateway.refusal(number + 1).await;
        assert_eq!(record["operation"], *operation, "{path}");
    }
    assert_eq!(stand.seen(), []);
}
