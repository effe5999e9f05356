//! The extended card over REST, in both versions.

use super::{Stand, card};
use crate::support::client::{Client, Response};
use crate::support::raw_agent::{Act, json_answer};
use serde_json::{Value, json};

/// Where each version has it, with the fields that the version needs.
const PLACES: [(&str, &[(&str, &str)]); 2] = [
    ("/extendedAgentCard", &[("A2A-Version", "1.0")]),
    ("/v1/card", &[]),
];

const REST: &str = "/agents/pr-agent/a2a/rest";

/// The same card with its REST interface.
fn both_bindings(port: u16) -> Value {
    let mut card = card(port, true);
    let url = format!("http://127.0.0.1:{port}/a2a/rest");
    card["additionalInterfaces"] = json!([{"url": url, "transport": "HTTP+JSON"}]);
    let supported = card["supportedInterfaces"].as_array_mut().unwrap();
    supported.push(json!({"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}));
    card
}

async fn get(stand: &Stand, role: Option<&str>, place: usize, answer: Option<&str>) -> Response {
    if let Some(answer) = answer {
        let act = Act::Answer(json_answer(200, answer));
        stand.agent.play([act]);
    }
    let (path, fields) = PLACES[place];
    let bearer = role.map(|role| format!("Bearer {}", stand.token(role)));
    let mut all = fields.to_vec();
    all.extend(bearer.iter().map(|bearer| ("Authorization", &**bearer)));
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let path = format!("{REST}{path}");
    client.request("GET", &path, &all, b"").await.unwrap()
}

#[tokio::test]
async fn fc_13_rest_callers_see_the_skills_that_they_may_use() {
    let stand = Stand::of(&both_bindings).await;
    let answer = both_bindings(stand.agent.address.port()).to_string();
    let agent = stand.agent.address.port().to_string();
    let mut asked = 0;
    for place in 0..PLACES.len() {
        for (role, seen) in [
            ("reviewer", &["review-diff", "hello"][..]),
            ("author", &["hello"]),
        ] {
            let response = get(&stand, Some(role), place, Some(&answer)).await;
            asked += 1;
            assert_eq!(response.status, 200, "{}", response.text());
            let body = response.json();
            let skills = body["skills"].as_array().unwrap().iter();
            let skills: Vec<_> = skills.map(|s| s["id"].as_str().unwrap()).collect();
            assert_eq!(skills, seen, "{role} {place}");
            let public = format!("http://{}{REST}", stand.gateway.address);
            assert_eq!(body["supportedInterfaces"][1]["url"], public.as_str());
            assert_eq!(body["signatures"], Value::Null);
            assert!(!response.text().contains(&agent), "{}", response.text());
            assert_eq!(response.field("cache-control"), Some("private, no-store"));
            assert_eq!(stand.calls(), asked);
        }
    }
}

#[tokio::test]
async fn rest_cards_that_cannot_be_read_are_withheld() {
    let stand = Stand::of(&both_bindings).await;
    let answers = [
        "[]",
        r#"{"name":"internal"}"#,
        r#"{"name":"internal","name":"v","url":"http://x/"}"#,
        r#"{"name":"internal","url":"http://other.example.com/"}"#,
    ];
    let mut asked = 0;
    for place in 0..PLACES.len() {
        for answer in answers {
            let withheld = get(&stand, Some("reviewer"), place, Some(answer)).await;
            asked += 1;
            assert_eq!(withheld.status, 500, "{answer}: {}", withheld.text());
            assert!(!withheld.text().contains("internal"), "{}", withheld.text());
            assert_eq!(stand.calls(), asked);
        }
    }
}

#[tokio::test]
async fn fc_13_rest_callers_without_a_token_or_a_rule_get_no_extended_card() {
    let stand = Stand::of(&both_bindings).await;
    for place in 0..PLACES.len() {
        let refused = get(&stand, None, place, None).await;
        assert_eq!(refused.status, 401, "{}", refused.text());
        let refused = get(&stand, Some("guest"), place, None).await;
        assert_eq!(refused.status, 403, "{}", refused.text());
    }
    assert_eq!(stand.calls(), 0);
}

/// HTTP+JSON of 0.3 is the JSON of protobuf messages; its clients read schemes in that form, or in
/// that of JSON-RPC.
#[tokio::test]
async fn rest_0_3_says_schemes_in_both_forms() {
    let stand = Stand::of(&both_bindings).await;
    let mut older = both_bindings(stand.agent.address.port());
    older.as_object_mut().unwrap().remove("supportedInterfaces");
    let response = get(&stand, Some("reviewer"), 1, Some(&older.to_string())).await;
    let body = response.json();
    assert!(body["supportedInterfaces"].is_null(), "{body}");
    let scheme = &body["securitySchemes"]["bearer"];
    assert_eq!(scheme["type"], "http", "{body}");
    assert_eq!(
        scheme["httpAuthSecurityScheme"]["scheme"], "Bearer",
        "{body}"
    );
}
