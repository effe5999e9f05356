//! Versions and extensions on their way to the agent: each said once, in one way (FC-41, FC-44).

use super::{RPC, Stand, message};
use crate::support::client::{Client, Response};
use serde_json::json;

async fn post(stand: &Stand, query: &str, fields: &[(&str, &str)], method: &str) -> Response {
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let body = message(method, "hello", "hi", &[]);
    let path = format!("{RPC}{query}");
    let token = stand.reviewer();
    client
        .post_json(&path, Some(&token), fields, &body)
        .await
        .unwrap()
}

/// The target of the newest request, and the fields of these names that came with it.
fn received(stand: &Stand, names: &[&str]) -> (String, Vec<String>) {
    let requests = stand.agent.requests();
    let head = String::from_utf8(requests.last().unwrap().head.clone()).unwrap();
    let mut lines = head.lines();
    let target = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
    let fields = lines.map(str::to_lowercase).filter(|line| {
        let name = line.split(':').next().unwrap();
        names.contains(&name)
    });
    (target, fields.collect())
}

#[tokio::test]
async fn the_agent_gets_one_version_and_no_query() {
    let stand = Stand::new().await;
    for (query, fields, method, expected) in [
        ("", &[][..], "SendMessage", &["a2a-version: 1.0"][..]),
        (
            "",
            &[("A2A-Version", "1.0")],
            "SendMessage",
            &["a2a-version: 1.0"],
        ),
        (
            "",
            &[("A2A-Version", "")],
            "SendMessage",
            &["a2a-version: 1.0"],
        ),
        (
            "?A2A-Version=1.0",
            &[],
            "SendMessage",
            &["a2a-version: 1.0"],
        ),
        (
            "?x=y&A2A-Version=1%2E0",
            &[],
            "SendMessage",
            &["a2a-version: 1.0"],
        ),
        (
            "?A2A-Version=1.0",
            &[("a2a-version", " 1.0 ")],
            "SendMessage",
            &["a2a-version: 1.0"],
        ),
        ("", &[], "message/send", &[]),
        (
            "",
            &[("A2A-Version", "0.3")],
            "message/send",
            &["a2a-version: 0.3"],
        ),
        (
            "?A2A-Version=0.3",
            &[],
            "message/send",
            &["a2a-version: 0.3"],
        ),
    ] {
        let response = post(&stand, query, fields, method).await;
        assert_eq!(
            response.status,
            200,
            "{query} {fields:?}: {}",
            response.text()
        );
        let (target, versions) = received(&stand, &["a2a-version"]);
        assert_eq!(target, "/a2a", "{query}");
        assert_eq!(versions, expected, "{query} {fields:?} {method}");
    }
    for (query, fields, method) in [
        ("", &[("A2A-Version", "1")][..], "SendMessage"),
        ("", &[("A2A-Version", "1.0.1")], "SendMessage"),
        ("", &[("A2A-Version", "1.1")], "SendMessage"),
        ("", &[("A2A-Version", "v1.0")], "SendMessage"),
        ("", &[("A2A-Version", "2.0")], "SendMessage"),
        ("", &[("A2A-Version", "abc")], "SendMessage"),
        ("", &[("A2A-Version", "0.9")], "message/send"),
        ("", &[("A2A-Version", "1.0, 0.3")], "SendMessage"),
        (
            "",
            &[("A2A-Version", "1.0"), ("A2A-Version", "1.0")],
            "SendMessage",
        ),
        ("", &[("A2A-Version", "0.3")], "SendMessage"),
        ("", &[("A2A-Version", "1.0")], "message/send"),
        ("?A2A-Version=0.3", &[("A2A-Version", "1.0")], "SendMessage"),
        ("?A2A-Version=1.0&A2A-Version=1.0", &[], "SendMessage"),
        ("?a2a-version=1.0", &[], "SendMessage"),
    ] {
        let before = stand.counted();
        let response = post(&stand, query, fields, method).await;
        let code = response.json()["error"]["code"].clone();
        let expected = match method.contains('/') && !code.is_null() && code != -32009 {
            true => -32600,
            false => -32009,
        };
        assert_eq!(response.status, 200, "{query} {fields:?}");
        assert_eq!(code, expected, "{query} {fields:?}: {}", response.text());
        assert_eq!(
            stand.counted(),
            before,
            "{query} {fields:?}: the agent was touched"
        );
    }
}

/// FC-44: servers of each version read their own name, so the agent gets that one, once.
#[tokio::test]
async fn extensions_reach_the_agent_under_its_versions_name() {
    let stand = Stand::new().await;
    let names = ["a2a-extensions", "x-a2a-extensions", "a2a_extensions"];
    let (e1, e2) = ("https://example.com/e1", "urn:e2");
    let both = format!("{e1}, {e2}");
    for (fields, expected) in [
        (vec![("A2A-Extensions", e1)], e1.to_owned()),
        (vec![("X-A2A-Extensions", e1)], e1.to_owned()),
        (
            vec![("A2A-Extensions", e1), ("A2A-Extensions", e2)],
            both.clone(),
        ),
        (
            vec![("A2A-Extensions", e1), ("X-A2A-Extensions", e2)],
            both.clone(),
        ),
        (
            vec![("X-A2A-Extensions", e1), ("A2A-Extensions", both.as_str())],
            both.clone(),
        ),
        (vec![("A2A-Extensions", " , ")], String::new()),
        (vec![("a2a_extensions", e1)], String::new()),
    ] {
        for (method, name) in [("SendMessage", names[0]), ("message/send", names[1])] {
            let response = post(&stand, "", &fields, method).await;
            assert_eq!(response.status, 200, "{fields:?}: {}", response.text());
            let (_, found) = received(&stand, &names);
            let expected: Vec<String> = match expected.as_str() {
                "" => Vec::new(),
                list => vec![format!("{name}: {list}")],
            };
            assert_eq!(found, expected, "{fields:?} {method}");
        }
    }
    let records = stand.gateway.journal.records();
    let mut intents = records.iter().filter(|r| r["kind"] == "intent");
    assert_eq!(intents.next().unwrap()["declared_extensions"], json!([e1]));
    for fields in [
        [("A2A-Extensions", "e1")],
        [("X-A2A-Extensions", "https://a b")],
    ] {
        let before = stand.counted();
        let response = post(&stand, "", &fields, "SendMessage").await;
        assert_eq!(response.json()["error"]["code"], -32600, "{fields:?}");
        assert_eq!(stand.counted(), before, "{fields:?}: the agent was touched");
    }
}
