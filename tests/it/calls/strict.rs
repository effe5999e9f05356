//! Every refused request of the case files, against a live gateway: the agent saw nothing.

use super::{POLICY, RPC, Stand, message};
use crate::support::client::Client;
use crate::wire::cases;
use portcullis::a2a::Binding;

#[tokio::test]
async fn refused_cases_reach_nothing() {
    let stand = Stand::with_policy(&POLICY.replace("[review-diff]", "any")).await;
    let token = stand.reviewer();
    let bearer = format!("Bearer {token}");
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let mut refused = 0;
    let live = stand.gateway.server.gate.live();
    let selectors = &live.snapshot.agents[0].skill_rules;
    for case in cases() {
        let refusal = &case.expect["refused"];
        // The agent here offers both versions and has these selectors; cases about others are
        // judged without a gateway.
        if refusal.is_null()
            || case.binding != Binding::JsonRpc
            || !(case.rules.versions.v0_3 && case.rules.versions.v1_0)
            || (case.rules.skills.is_some() && case.rules.skills != *selectors)
        {
            continue;
        }
        let query = case
            .query
            .as_deref()
            .map_or(String::new(), |query| format!("?{query}"));
        let path = format!("{RPC}{query}");
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
        let response = match client
            .request(case.method.as_str(), &path, &fields, &case.body)
            .await
        {
            Ok(response) => response,
            Err(error) => panic!("{}: {error}", case.name),
        };
        assert_eq!(
            stand.counted(),
            before,
            "{}: the agent was touched",
            case.name
        );
        let found = (
            response.status.into(),
            response.json()["error"]["code"].clone(),
        );
        let expected = (refusal["status"].clone(), refusal["error"].clone());
        assert_eq!(found, expected, "{}: {}", case.name, response.text());
        if response.field("connection") == Some("close") {
            client = Client::connect(stand.gateway.address).await.unwrap();
        }
        refused += 1;
    }
    assert!(refused > 150, "only {refused} cases were refused");
    let good = stand
        .call(
            &token,
            "SendMessage",
            &message("SendMessage", "hello", "hi", &[]),
        )
        .await;
    assert_eq!((good.status, stand.counted()), (200, (1, 1)));
}
