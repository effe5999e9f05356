//! Task lists through the whole gateway, in front of an agent that shows everybody everything.

use super::{POLICY, Stand, message};
use crate::support::client::{Client, Response};
use crate::support::fake_agent::call;
use serde_json::{Value, json};

fn policy() -> String {
    format!(
        "{POLICY}  - id: own-lists
    allow: {{agents: [pr-agent], operations: [list]}}
    grant: agent
    require: {{role: {{equals: reviewer}}}}
"
    )
}

fn code(response: &Response) -> i64 {
    response.json()["error"]["code"]
        .as_i64()
        .unwrap_or_default()
}

/// Starts a task; its id and context.
async fn started(stand: &Stand, token: &str) -> (String, String) {
    let body = message("SendMessage", "hello", "ask", &[]);
    let response = stand.call(token, "SendMessage", &body).await;
    let task = response.json()["result"]["task"].clone();
    let text = |name: &str| task[name].as_str().unwrap().to_owned();
    (text("id"), text("contextId"))
}

async fn list(stand: &Stand, token: &str, params: Value) -> Response {
    stand
        .call(token, "ListTasks", &call("ListTasks", params))
        .await
}

/// Ids, whether there is more, page size and total of a list.
fn shown(response: &Response) -> (Vec<String>, String, u64, u64) {
    let json = response.json();
    let result = &json["result"];
    let ids = result["tasks"]
        .as_array()
        .unwrap_or_else(|| panic!("{json}"));
    (
        ids.iter()
            .map(|task| task["id"].as_str().unwrap().to_owned())
            .collect(),
        result["nextPageToken"].as_str().unwrap().to_owned(),
        result["pageSize"].as_u64().unwrap(),
        result["totalSize"].as_u64().unwrap(),
    )
}

/// FC-53, FC-54: Alice has two tasks, Bob three, and one came past the gateway and is nobody's.
#[tokio::test]
async fn a_list_has_the_callers_own_tasks() {
    let stand = Stand::with_policy(&policy()).await;
    let (alice, bob) = (stand.reviewer(), stand.token("bob", "reviewer"));
    let (mut alices, mut bobs) = (Vec::new(), Vec::new());
    for turn in 0..5 {
        if turn % 2 == 1 {
            alices.push(started(&stand, &alice).await);
        } else {
            bobs.push(started(&stand, &bob).await);
        }
    }
    let mut past = Client::connect(stand.agent.address()).await.unwrap();
    let body = message("SendMessage", "hello", "ask", &[]);
    let version = [("A2A-Version", "1.0")];
    let ownerless = past.post_json("/a2a", None, &version, &body).await.unwrap();
    assert_eq!(ownerless.json()["result"]["task"]["id"], "task-6");
    // The agent would show all of them to anybody.
    let all = past
        .post_json("/a2a", None, &version, &call("ListTasks", json!({})))
        .await
        .unwrap();
    assert_eq!(shown(&all).0.len(), 6);

    for (token, own) in [(&alice, &alices), (&bob, &bobs)] {
        let newest: Vec<String> = own.iter().rev().map(|(id, _)| id.clone()).collect();
        let before = stand.counted();
        let response = list(&stand, token, json!({})).await;
        let expected = (newest.clone(), String::new(), 50, own.len() as u64);
        assert_eq!(shown(&response), expected);
        assert_eq!(stand.counted().0, before.0 + 1);
        assert_eq!(response.field("cache-control"), Some("private, no-store"));
        // One by one: each page is filled from as many of the agent's as it takes.
        let mut found = Vec::new();
        let mut next = String::new();
        for _ in 0..own.len() {
            let params = json!({"pageSize": 1, "pageToken": next});
            let (ids, token, size, total) = shown(&list(&stand, token, params).await);
            assert_eq!((ids.len(), size, total), (1, 1, own.len() as u64));
            found.extend(ids);
            next = token;
        }
        assert_eq!(found, newest);
        // By context: own ones only.
        let (id, context) = &own[0];
        let response = list(&stand, token, json!({"contextId": context})).await;
        assert_eq!(shown(&response), (vec![id.clone()], String::new(), 50, 1));
    }
    for (token, theirs) in [(&alice, &bobs), (&bob, &alices)] {
        let before = stand.counted();
        let foreign = list(&stand, token, json!({"contextId": theirs[0].1})).await;
        let unknown = list(&stand, token, json!({"contextId": "no-such-context"})).await;
        assert_eq!((foreign.status, code(&foreign)), (200, -32602));
        assert_eq!(foreign.body, unknown.body);
        assert_eq!(stand.counted(), before, "the agent was touched");
    }
    // Somebody without a task has an empty list, and no hint of the others'.
    let carol = stand.token("carol", "reviewer");
    let response = list(&stand, &carol, json!({"pageSize": 100})).await;
    assert_eq!(shown(&response), (Vec::new(), String::new(), 100, 0));
}

/// A page token is good for the caller who was given it, for that list, and whole.
#[tokio::test]
async fn a_page_token_is_its_callers() {
    let stand = Stand::with_policy(&policy()).await;
    let (alice, bob) = (stand.reviewer(), stand.token("bob", "reviewer"));
    for _ in 0..2 {
        started(&stand, &alice).await;
        started(&stand, &bob).await;
    }
    let first = list(&stand, &alice, json!({"pageSize": 1})).await;
    let (_, token, ..) = shown(&first);
    assert!(token.len() > 16 && token != "1", "{token}");
    let garbled = format!("{}A", &token[..token.len() - 1]);
    let garbled = if garbled == token {
        format!("{}B", &token[..token.len() - 1])
    } else {
        garbled
    };
    for (who, params) in [
        (&bob, json!({"pageSize": 1, "pageToken": token})),
        (&alice, json!({"pageSize": 2, "pageToken": token})),
        (&alice, json!({"pageToken": token})),
        (
            &alice,
            json!({"pageSize": 1, "pageToken": token, "status": "TASK_STATE_WORKING"}),
        ),
        (&alice, json!({"pageSize": 1, "pageToken": garbled})),
        (&alice, json!({"pageSize": 1, "pageToken": "1"})),
        (
            &alice,
            json!({"pageSize": 1, "pageToken": format!("{token}A")}),
        ),
        (&alice, json!({"pageSize": 1, "pageToken": &token[1..]})),
    ] {
        let before = stand.counted();
        let many = stand.gateway.count("refusal") + 1;
        let response = list(&stand, who, params.clone()).await;
        assert_eq!(
            (response.status, code(&response)),
            (200, -32602),
            "{params}"
        );
        assert_eq!(stand.counted(), before, "{params}: the agent was touched");
        let record = stand.gateway.refusal(many).await;
        assert_eq!(record["decision"]["reason"], "foreign_page_token");
        assert!(!record.to_string().contains(&token));
    }
    let second = list(&stand, &alice, json!({"pageSize": 1, "pageToken": token})).await;
    assert_eq!(shown(&second).0, ["task-1"]);
    // What was asked of the agent is in the record, each attempt of it.
    let records = stand.gateway.journal.records();
    let outcome = records
        .iter()
        .rfind(|r| r["kind"] == "outcome" && r["operation"] == "ListTasks")
        .unwrap();
    assert_eq!(outcome["delivery"], "responded");
    assert_eq!(
        outcome["attempts"].as_array().unwrap().len(),
        2,
        "{outcome}"
    );
}

#[tokio::test]
async fn lists_are_for_those_whom_a_rule_allows_them() {
    let stand = Stand::with_policy(&policy()).await;
    let author = stand.token("carol", "author");
    started(&stand, &author).await;
    let before = stand.counted();
    let response = list(&stand, &author, json!({})).await;
    stand.assert_refused(before, &response, 403, "no rule");
    // 0.3 has no such method.
    let alice = stand.reviewer();
    let response = stand
        .call(&alice, "tasks/list", &call("tasks/list", json!({})))
        .await;
    assert_eq!((code(&response), stand.counted()), (-32601, before));
}
