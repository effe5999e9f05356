//! Alice and Bob: a task belongs to whoever started it, to everybody else it does not exist.

use super::{Stand, message};
use crate::support::client::Response;
use crate::support::fake_agent::call;
use serde_json::{Value, json};

/// One version's spellings.
struct Spelling {
    send: &'static str,
    stream: &'static str,
    get: &'static str,
    cancel: &'static str,
    subscribe: &'static str,
}

const BOTH: [Spelling; 2] = [
    Spelling {
        send: "SendMessage",
        stream: "SendStreamingMessage",
        get: "GetTask",
        cancel: "CancelTask",
        subscribe: "SubscribeToTask",
    },
    Spelling {
        send: "message/send",
        stream: "message/stream",
        get: "tasks/get",
        cancel: "tasks/cancel",
        subscribe: "tasks/resubscribe",
    },
];

/// Finds `id` and `contextId` of the task in a reply of either version, unary or streamed.
fn ids(response: &Response) -> (String, String) {
    let text = response.text();
    let data = text
        .lines()
        .find_map(|line| line.strip_prefix("data:"))
        .unwrap_or(&text);
    let json: Value = serde_json::from_str(data).unwrap();
    let result = &json["result"];
    let task = result
        .get("task")
        .or_else(|| result.get("statusUpdate"))
        .unwrap_or(result);
    let id = task
        .get("id")
        .or_else(|| task.get("taskId"))
        .and_then(Value::as_str);
    (
        id.unwrap_or_else(|| panic!("no task in {text}")).to_owned(),
        task["contextId"]
            .as_str()
            .unwrap_or_else(|| panic!("no context in {text}"))
            .to_owned(),
    )
}

fn code(response: &Response) -> i64 {
    response.json()["error"]["code"]
        .as_i64()
        .unwrap_or_default()
}

#[tokio::test]
async fn another_callers_task_does_not_exist() {
    let stand = Stand::new().await;
    let (alice, bob) = (
        stand.token("alice", "reviewer"),
        stand.token("bob", "reviewer"),
    );
    for spelling in BOTH {
        for start in [spelling.send, spelling.stream] {
            let started = stand
                .call(&alice, start, &message(start, "review-diff", "ask me", &[]))
                .await;
            let (task, context) = ids(&started);
            let by_id = |method: &str| call(method, json!({ "id": task }));
            let unknown = |method: &str| call(method, json!({ "id": "no-such-task" }));
            // Bob: the same bytes as for a task that does not exist, and nothing at the agent.
            for method in [spelling.get, spelling.cancel, spelling.subscribe] {
                let before = stand.counted();
                let foreign = stand.call(&bob, method, &by_id(method)).await;
                let absent = stand.call(&bob, method, &unknown(method)).await;
                assert_eq!((foreign.status, code(&foreign)), (200, -32001), "{method}");
                assert_eq!(foreign.body, absent.body, "{method}");
                assert_eq!(stand.counted(), before, "{method}: the agent was touched");
            }
            for (method, ids, expected) in [
                (spelling.send, vec![("taskId", task.as_str())], -32001),
                (spelling.stream, vec![("taskId", task.as_str())], -32001),
                (spelling.send, vec![("contextId", context.as_str())], -32602),
                (
                    spelling.stream,
                    vec![("contextId", context.as_str())],
                    -32602,
                ),
                (
                    spelling.send,
                    vec![("taskId", task.as_str()), ("contextId", context.as_str())],
                    -32001,
                ),
            ] {
                let before = stand.counted();
                let body = message(method, "review-diff", "let me in", &ids);
                let response = stand.call(&bob, method, &body).await;
                assert_eq!(
                    (response.status, code(&response)),
                    (200, expected),
                    "{method} {ids:?}"
                );
                assert_eq!(
                    stand.counted(),
                    before,
                    "{method} {ids:?}: the agent was touched"
                );
            }
            let before = stand.counted();
            let mut body: Value =
                serde_json::from_str(&message(spelling.send, "review-diff", "look", &[])).unwrap();
            body["params"]["message"]["referenceTaskIds"] = json!([task]);
            let response = stand.call(&bob, spelling.send, &body.to_string()).await;
            assert_eq!(
                (code(&response), stand.counted()),
                (-32001, before),
                "{}",
                response.text()
            );
            // Alice: all of it.
            for (method, body) in [
                (spelling.get, by_id(spelling.get)),
                (
                    spelling.send,
                    message(
                        spelling.send,
                        "review-diff",
                        "ask again",
                        &[("taskId", &task), ("contextId", &context)],
                    ),
                ),
                (
                    spelling.send,
                    message(
                        spelling.send,
                        "review-diff",
                        "ask",
                        &[("contextId", &context)],
                    ),
                ),
                (spelling.cancel, by_id(spelling.cancel)),
            ] {
                let before = stand.counted();
                let response = stand.call(&alice, method, &body).await;
                assert_eq!(
                    (response.status, code(&response)),
                    (200, 0),
                    "{method}: {}",
                    response.text()
                );
                assert_eq!(stand.counted().0, before.0 + 1, "{method}");
            }
        }
    }
}

#[tokio::test]
async fn alice_may_follow_her_own_task() {
    let stand = Stand::new().await;
    let alice = stand.reviewer();
    for spelling in BOTH {
        let started = stand
            .call(
                &alice,
                spelling.send,
                &message(spelling.send, "review-diff", "ask me", &[]),
            )
            .await;
        let (task, _) = ids(&started);
        let before = stand.counted();
        let body = call(spelling.subscribe, json!({ "id": task }));
        let mut client = crate::support::client::Client::connect(stand.gateway.address)
            .await
            .unwrap();
        let bearer = format!("Bearer {alice}");
        let mut fields = vec![
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
        ];
        fields.extend_from_slice(crate::support::fake_agent::version_of(spelling.subscribe));
        let head =
            crate::support::client::request_head("POST", super::RPC, &fields, Some(body.len()));
        client
            .send(format!("{head}{body}").as_bytes())
            .await
            .unwrap();
        let mut head = client.head().await.unwrap().unwrap();
        assert_eq!(head.status, 200);
        assert!(
            head.field("content-type")
                .unwrap()
                .starts_with("text/event-stream")
        );
        client.body_until(&mut head, &task).await.unwrap();
        assert_eq!(stand.counted().0, before.0 + 1);
    }
}

/// A context id that nobody has is its first user's; one that was refused is nobody's still.
#[tokio::test]
async fn contexts_are_claimed_by_their_first_user() {
    let stand = Stand::new().await;
    let (alice, bob) = (
        stand.token("alice", "reviewer"),
        stand.token("bob", "reviewer"),
    );
    let body = message("SendMessage", "hello", "hi", &[("contextId", "c-new")]);
    // Refused by policy: the claim is given up.
    let mallory = stand.token("mallory", "author");
    let refused = message(
        "SendMessage",
        "review-diff",
        "hi",
        &[("contextId", "c-new")],
    );
    assert_eq!(
        stand.call(&mallory, "SendMessage", &refused).await.status,
        403
    );
    let first = stand.call(&bob, "SendMessage", &body).await;
    assert_eq!((first.status, code(&first)), (200, 0), "{}", first.text());
    let before = stand.counted();
    let second = stand.call(&alice, "SendMessage", &body).await;
    assert_eq!((code(&second), stand.counted()), (-32602, before));
    let again = stand.call(&bob, "SendMessage", &body).await;
    assert_eq!(code(&again), 0, "{}", again.text());
}

#[tokio::test]
async fn issued_contexts_only_when_configured() {
    let stand = Stand::with(super::POLICY, |yaml| {
        yaml.replace("    limits: {body: 8MiB}\n", "    contexts: issued\n")
    })
    .await;
    let alice = stand.reviewer();
    let body = message("SendMessage", "hello", "hi", &[("contextId", "mine-i-say")]);
    let refused = stand.call(&alice, "SendMessage", &body).await;
    assert_eq!((code(&refused), stand.counted()), (-32602, (0, 0)));
    let started = stand
        .call(
            &alice,
            "SendMessage",
            &message("SendMessage", "hello", "ask", &[]),
        )
        .await;
    let (_, context) = ids(&started);
    let body = message("SendMessage", "hello", "more", &[("contextId", &context)]);
    assert_eq!(code(&stand.call(&alice, "SendMessage", &body).await), 0);
}

/// Push configurations and the extended card are refused with their own errors.
#[tokio::test]
async fn what_is_not_offered_says_so() {
    let stand = Stand::new().await;
    let alice = stand.reviewer();
    let inline = |method: &str, name: &str| {
        let mut body: Value =
            serde_json::from_str(&message(method, "review-diff", "x", &[])).unwrap();
        body["params"]["configuration"] = json!({ name: { "url": "https://hooks.example.com/" } });
        body.to_string()
    };
    let config = json!({ "taskId": "t", "id": "c", "url": "https://hooks.example.com/" });
    for (method, body, expected) in [
        (
            "GetExtendedAgentCard",
            call("GetExtendedAgentCard", json!({})),
            -32007,
        ),
        (
            "agent/getAuthenticatedExtendedCard",
            call("agent/getAuthenticatedExtendedCard", json!({})),
            -32007,
        ),
        (
            "CreateTaskPushNotificationConfig",
            call("CreateTaskPushNotificationConfig", config),
            -32003,
        ),
        (
            "tasks/pushNotificationConfig/list",
            call("tasks/pushNotificationConfig/list", json!({ "id": "t" })),
            -32003,
        ),
        (
            "SendMessage",
            inline("SendMessage", "taskPushNotificationConfig"),
            -32003,
        ),
        (
            "message/send",
            inline("message/send", "pushNotificationConfig"),
            -32003,
        ),
    ] {
        let before = stand.counted();
        let response = stand.call(&alice, method, &body).await;
        assert_eq!(
            (response.status, code(&response)),
            (200, expected),
            "{}",
            response.text()
        );
        assert_eq!(stand.counted(), before, "{method}");
    }
}
