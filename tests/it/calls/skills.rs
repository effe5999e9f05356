//! Which skill a message asks for, and that the unknown never widens.

use super::{POLICY, Stand};
use crate::support::fake_agent;
use serde_json::{Value, json};

fn with_metadata(method: &str, metadata: Value, ids: &[(&str, &str)]) -> String {
    let mut body: Value = serde_json::from_str(&fake_agent::message(method, "ask", ids)).unwrap();
    body["params"]["message"]["metadata"] = metadata;
    body.to_string()
}

#[tokio::test]
async fn selectors_decide_and_unclear_ones_refuse() {
    let stand = Stand::new().await;
    let author = stand.token("alice", "author");
    // An author may say hello, and may not review.
    let table = [
        (json!({"skillId": "hello"}), 200, ""),
        (json!({"skill_id": "hello"}), 200, ""),
        (json!({"skillId": "hello", "skill_id": "hello"}), 200, ""),
        (json!({"skillId": "review-diff"}), 403, "review"),
        (
            json!({"skillId": "hello", "skill_id": "review-diff"}),
            403,
            "conflict",
        ),
        (json!({"skillId": "nope"}), 403, "unlisted"),
        (json!({"skillId": "Hello"}), 403, "case"),
        (json!({"skillId": 5}), 403, "number"),
        (json!({"skillId": ["hello"]}), 403, "array"),
        (json!({"skillId": null}), 403, "null"),
        (json!({}), 403, "absent"),
        // A key that folds to a selector without being one is no clear call.
        (json!({"SkillId": "hello"}), 200, "-32602"),
    ];
    for (metadata, status, why) in table {
        let before = stand.counted();
        let response = stand
            .call(
                &author,
                "SendMessage",
                &with_metadata("SendMessage", metadata.clone(), &[]),
            )
            .await;
        assert_eq!(
            response.status,
            status,
            "{metadata} {why}: {}",
            response.text()
        );
        let passed = status == 200 && why.is_empty();
        let expected = if passed {
            (before.0 + 1, before.1 + 1)
        } else {
            before
        };
        assert_eq!(stand.counted(), expected, "{metadata} {why}");
        if why.starts_with('-') {
            assert_eq!(response.json()["error"]["code"].to_string(), why);
        }
    }
}

/// A message that continues a task has the skill that the task was started with.
#[tokio::test]
async fn a_continued_task_keeps_its_skill() {
    let stand = Stand::new().await;
    let alice = stand.token("alice", "reviewer");
    for method in ["SendMessage", "message/send"] {
        let start = with_metadata(method, json!({"skillId": "hello"}), &[]);
        let started = stand.call(&alice, method, &start).await.json();
        let result = &started["result"];
        let task = result.get("task").unwrap_or(result)["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let ids = [("taskId", task.as_str())];
        let before = stand.counted();
        let other = with_metadata(method, json!({"skillId": "review-diff"}), &ids);
        let response = stand.call(&alice, method, &other).await;
        stand.assert_refused(before, &response, 403, "another skill");
        for metadata in [json!({}), json!({"skillId": "hello"})] {
            let same = with_metadata(method, metadata.clone(), &ids);
            let response = stand.call(&alice, method, &same).await;
            assert_eq!(response.status, 200, "{metadata}: {}", response.text());
            assert!(response.json()["error"].is_null(), "{}", response.text());
        }
    }
}

#[tokio::test]
async fn the_default_skill_is_for_those_that_name_none() {
    let stand = Stand::with(POLICY, |yaml| {
        yaml.replace(
            "    backend_paths:\n",
            "    skill_default: hello\n    backend_paths:\n",
        )
    })
    .await;
    let author = stand.token("alice", "author");
    let passed = stand
        .call(
            &author,
            "SendMessage",
            &with_metadata("SendMessage", json!({}), &[]),
        )
        .await;
    assert_eq!(
        (passed.status, stand.counted()),
        (200, (1, 1)),
        "{}",
        passed.text()
    );
    let intent = stand
        .gateway
        .journal
        .records()
        .into_iter()
        .find(|r| r["kind"] == "intent")
        .unwrap();
    assert_eq!(
        intent["skill"],
        json!({"id": "hello", "source": "default", "assurance": "defaulted"})
    );
    let unclear = with_metadata("SendMessage", json!({"skillId": 7}), &[]);
    assert_eq!(
        stand.call(&author, "SendMessage", &unclear).await.status,
        403
    );
}
