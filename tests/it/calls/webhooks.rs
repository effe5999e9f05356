//! Push notifications through the whole gateway: who may set them, to where, on whose tasks.
//!
//! FC-57, FC-58: whichever way a webhook is said, one guard looks at it, and a refused one never
//! reaches the agent.

use super::{POLICY, Stand, message};
use crate::support::client::Response;
use crate::support::fake_agent::call;
use serde_json::{Value, json};

const GOOD: &str = "https://hooks.example.com/a2a?key=k-secret";

/// The walkthrough's rules; reviewers may set push notifications.
fn policy() -> String {
    format!(
        "{POLICY}  - id: reviewers-are-told
    allow: {{agents: [pr-agent], operations: [push]}}
    grant: agent
    require: {{role: {{equals: reviewer}}}}
webhooks:
  allow:
    - {{agents: [pr-agent], host: hooks.example.com}}
    - {{agents: [pr-agent], host: private.example.com}}
    - {{agents: [hidden], host: other.hooks.example.com}}
"
    )
}

fn code(response: &Response) -> i64 {
    response.json()["error"]["code"]
        .as_i64()
        .unwrap_or_default()
}

/// A message with a webhook beside it, in the shape of the method's version.
fn inline(method: &str, url: Value) -> String {
    let mut body: Value = serde_json::from_str(&message(method, "hello", "ask", &[])).unwrap();
    let config = json!({"url": url, "token": "t-secret"});
    let name = match method.contains('/') {
        true => "pushNotificationConfig",
        false => "taskPushNotificationConfig",
    };
    body["params"]["configuration"] = json!({ name: config });
    body.to_string()
}

/// The same webhook by the operation of its own.
fn create(method: &str, task: &str, url: Value) -> String {
    let config = json!({"id": "c1", "url": url, "token": "t-secret", "authentication":
        if method.contains('/') { json!({"schemes": ["Bearer"], "credentials": "a-secret"}) }
        else { json!({"scheme": "Bearer", "credentials": "a-secret"}) }});
    let params = match method.contains('/') {
        true => json!({"taskId": task, "pushNotificationConfig": config}),
        false => {
            let mut config = config;
            config["taskId"] = task.into();
            config
        }
    };
    call(method, params)
}

const DOORS: [&str; 6] = [
    "SendMessage",
    "SendStreamingMessage",
    "message/send",
    "message/stream",
    "CreateTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/set",
];

fn through(door: &str, task: &str, url: Value) -> String {
    match door.contains("ush") {
        true => create(door, task, url),
        false => inline(door, url),
    }
}

/// A task of the token's subject.
async fn task_of(stand: &Stand, token: &str) -> String {
    let body = message("SendMessage", "hello", "ask", &[]);
    let response = stand.call(token, "SendMessage", &body).await;
    let id = response.json()["result"]["task"]["id"].clone();
    id.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_webhook_is_looked_at_at_every_door() {
    let stand = Stand::with_policy(&policy()).await;
    let alice = stand.reviewer();
    let task = task_of(&stand, &alice).await;
    for door in DOORS {
        for (url, reason) in [
            (json!("http://169.254.169.254/latest/"), "webhook_scheme"),
            (json!("https://127.0.0.1:8443/x"), "webhook_not_listed"),
            (json!("https://10.0.0.5/"), "webhook_not_listed"),
            (json!("https://localhost/"), "webhook_not_listed"),
            (json!("ftp://hooks.example.com/"), "webhook_scheme"),
            (
                json!("https://user:p-secret@hooks.example.com/"),
                "webhook_userinfo",
            ),
            (
                json!("https://other.hooks.example.com/"),
                "webhook_not_listed",
            ),
            (json!("https://private.example.com/"), "webhook_not_public"),
            (json!(""), "webhook_missing"),
            (json!(null), "webhook_missing"),
        ] {
            let before = stand.counted();
            let many = stand.gateway.count("refusal") + 1;
            let response = stand
                .call(&alice, door, &through(door, &task, url.clone()))
                .await;
            assert_eq!(
                (response.status, code(&response)),
                (200, -32602),
                "{door} {url}: {}",
                response.text()
            );
            assert_eq!(
                stand.counted(),
                before,
                "{door} {url}: the agent was touched"
            );
            let record = stand.gateway.refusal(many).await;
            assert_eq!(record["decision"]["reason"], reason, "{door} {url}");
            assert_eq!(record["decision"]["effect"], "deny", "{door} {url}");
            assert!(!record.to_string().contains("secret"), "{record}");
        }
        let before = stand.counted();
        let response = stand
            .call(&alice, door, &through(door, &task, json!(GOOD)))
            .await;
        assert_eq!(response.status, 200, "{door}: {}", response.text());
        assert!(
            !response.text().contains("\"error\""),
            "{door}: {}",
            response.text()
        );
        assert_eq!(stand.counted().0, before.0 + 1, "{door}");
    }
    // The reason says which member it is about, where the version has a place for it.
    let body = create(
        "CreateTaskPushNotificationConfig",
        &task,
        json!("https://10.0.0.5/"),
    );
    let response = stand
        .call(&alice, "CreateTaskPushNotificationConfig", &body)
        .await;
    let data = &response.json()["error"]["data"];
    assert_eq!(data[0]["reason"], "WEBHOOK_REFUSED");
    assert_eq!(data[1]["fieldViolations"][0]["field"], "url");
}

/// The record of a webhook is its host: no path, token or credential.
#[tokio::test]
async fn records_know_the_host_and_no_secret() {
    let stand = Stand::with_policy(&policy()).await;
    let alice = stand.reviewer();
    let task = task_of(&stand, &alice).await;
    let method = "CreateTaskPushNotificationConfig";
    let response = stand
        .call(&alice, method, &create(method, &task, json!(GOOD)))
        .await;
    assert_eq!(code(&response), 0, "{}", response.text());
    let records = stand
        .gateway
        .journal
        .until("two outcomes", |records| {
            records.iter().filter(|r| r["kind"] == "outcome").count() == 2
        })
        .await;
    let intent = records
        .iter()
        .find(|r| r["kind"] == "intent" && r["operation"] == method)
        .unwrap();
    assert_eq!(intent["webhook_hosts"], json!(["hooks.example.com"]));
    assert_eq!(intent["push_config_id"], "c1");
    assert_eq!(intent["task_id"], task.as_str());
    for record in records {
        assert!(!record.to_string().contains("secret"), "{record}");
    }
}

/// What a caller may not do by its own operation it may not do beside a message.
#[tokio::test]
async fn a_message_carries_a_webhook_only_for_those_who_may_set_one() {
    let stand = Stand::with_policy(&policy()).await;
    let author = stand.token("carol", "author");
    let task = task_of(&stand, &author).await;
    for door in DOORS {
        let before = stand.counted();
        let many = stand.gateway.count("refusal") + 1;
        let body = through(door, &task, json!(GOOD));
        let response = stand.call(&author, door, &body).await;
        stand.assert_refused(before, &response, 403, door);
        let record = stand.gateway.refusal(many).await;
        let reason = match door.contains("ush") {
            true => "no_rule",
            false => "push_not_allowed",
        };
        assert_eq!(record["decision"]["reason"], reason, "{door}");
        assert_eq!(record["decision"]["near"]["rule"], "reviewers-are-told");
    }
    let body = message("SendMessage", "hello", "ask", &[]);
    assert_eq!(code(&stand.call(&author, "SendMessage", &body).await), 0);
}

/// One version's spellings of the four operations.
const OPERATIONS: [[&str; 4]; 2] = [
    [
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
    ],
    [
        "tasks/pushNotificationConfig/set",
        "tasks/pushNotificationConfig/get",
        "tasks/pushNotificationConfig/list",
        "tasks/pushNotificationConfig/delete",
    ],
];

/// Alice sets, reads, lists and deletes; to Bob, who may do all that with tasks of his own, her
/// task is none. The agent itself would let him.
#[tokio::test]
async fn push_configurations_belong_to_the_tasks_owner() {
    let stand = Stand::with_policy(&policy()).await;
    let (alice, bob) = (stand.reviewer(), stand.token("bob", "reviewer"));
    for [set, get, list, delete] in OPERATIONS {
        let task = task_of(&stand, &alice).await;
        let old = set.contains('/');
        let named = |task: &str| match old {
            true => json!({"id": task, "pushNotificationConfigId": "c1"}),
            false => json!({"taskId": task, "id": "c1"}),
        };
        let all = |task: &str| match old {
            true => json!({"id": task}),
            false => json!({"taskId": task}),
        };
        let body = |method: &str, task: &str| match method {
            m if m == set => create(set, task, json!(GOOD)),
            m if m == list => call(list, all(task)),
            m => call(m, named(task)),
        };
        for (method, shown) in [
            (set, "hooks.example.com"),
            (get, "hooks.example.com"),
            (list, "hooks.example.com"),
            (delete, "null"),
        ] {
            let before = stand.counted();
            let foreign = stand.call(&bob, method, &body(method, &task)).await;
            let absent = stand
                .call(&bob, method, &body(method, "no-such-task"))
                .await;
            assert_eq!((foreign.status, code(&foreign)), (200, -32001), "{method}");
            assert_eq!(foreign.body, absent.body, "{method}");
            assert_eq!(stand.counted(), before, "{method}: the agent was touched");
            let own = stand.call(&alice, method, &body(method, &task)).await;
            assert_eq!(
                (own.status, code(&own)),
                (200, 0),
                "{method}: {}",
                own.text()
            );
            assert!(
                own.json()["result"].to_string().contains(shown),
                "{}",
                own.text()
            );
            assert_eq!(stand.counted().0, before.0 + 1, "{method}");
        }
        let listed = stand.call(&alice, list, &body(list, &task)).await;
        assert!(
            !listed.text().contains("hooks.example.com"),
            "{}",
            listed.text()
        );
    }
}

/// The card promises push notifications where somebody could be allowed to set one, and nowhere
/// else.
#[tokio::test]
async fn the_card_promises_what_can_be_kept() {
    let promised = async |policy: &str| {
        let stand = Stand::with_policy(policy).await;
        let path = "/agents/pr-agent/.well-known/agent-card.json";
        let card = crate::support::client::get(stand.gateway.address, path, &[]).await;
        card.unwrap().json()["capabilities"]["pushNotifications"].clone()
    };
    let whole = policy();
    assert_eq!(promised(&whole).await, true);
    let no_hosts = whole.split("webhooks:").next().unwrap();
    assert_eq!(promised(no_hosts).await, false);
    let no_rule = whole.replace("operations: [push]", "operations: [list]");
    assert_eq!(promised(&no_rule).await, false);
    let others = whole.replace("{agents: [pr-agent], host", "{agents: [hidden], host");
    assert_eq!(promised(&others).await, false);
}
