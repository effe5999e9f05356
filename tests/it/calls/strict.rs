//! Every refused request of the case files, against a live gateway: the agent saw nothing.

use super::{POLICY, RPC, Stand, message};
use crate::support::client::Client;
use crate::wire::cases;

#[tokio::test]
async fn refused_cases_reach_nothing() {
    let stand = Stand::with_policy(&POLICY.replace("[review-diff]", "any")).await;
    let token = stand.reviewer();
    let bearer = format!("Bearer {token}");
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let mut refused = 0;
    for case in cases() {
        let expect = &case.expect;
        let Some(fault) = expect["malformed"]["fault"].as_str().or(expect["fault"].as_str()) else {
            continue;
        };
        // The agent offers both versions; a case about an agent that does not is no case here.
        if !(case.rules.versions.v0_3 && case.rules.versions.v1_0) || case.query.is_some() {
            continue;
        }
        let mut fields = vec![("Authorization", bearer.as_str())];
        let headers: Vec<(String, Vec<u8>)> = case
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
            .collect();
        let text: Vec<(String, String)> = headers
            .into_iter()
            .filter_map(|(name, value)| Some((name, String::from_utf8(value).ok()?)))
            .collect();
        fields.extend(text.iter().map(|(n, v)| (n.as_str(), v.as_str())));
        let before = stand.counted();
        let response = match client.request("POST", RPC, &fields, &case.body).await {
            Ok(response) => response,
            Err(error) => panic!("{}: {error}", case.name),
        };
        assert_eq!(stand.counted(), before, "{}: the agent was touched", case.name);
        assert!(
            matches!(response.status, 200 | 400 | 415),
            "{} ({fault}): {} {}",
            case.name,
            response.status,
            response.text()
        );
        if !response.body.is_empty() {
            assert!(response.json()["error"]["code"].is_i64(), "{}: {}", case.name, response.text());
        }
        if response.field("connection") == Some("close") {
            client = Client::connect(stand.gateway.address).await.unwrap();
        }
        refused += 1;
    }
    assert!(refused > 150, "only {refused} cases were refused");
    let good = stand.call(&token, "SendMessage", &message("SendMessage", "hello", "hi", &[])).await;
    assert_eq!((good.status, stand.counted()), (200, (1, 1)));
}
