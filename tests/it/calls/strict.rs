//! Every refused request of the case files, against a live gateway: the agent saw nothing.

use super::{POLICY, RPC, Stand, message, rest};
use crate::support::client::Client;
use crate::support::gateway::Gateway;
use crate::support::issuer::Grant;
use crate::wire::{Case, cases, error_code};
use portcullis::a2a::Binding;
use portcullis::config::path::canonical;
use serde_json::Value;
use std::net::SocketAddr;

/// The refused cases of a binding that can be sent to an agent which offers both versions, knows
/// no tenants and has the gateway's selectors; cases about others are judged without a gateway.
fn refused(binding: Binding, gateway: &Gateway) -> impl Iterator<Item = Case> {
    let live = gateway.server.gate.live();
    let selectors = live.snapshot.agents[0].skill_rules.clone();
    cases().into_iter().filter(move |case| {
        let rules = &case.rules;
        !case.expect["refused"].is_null()
            && case.binding == binding
            && (rules.versions.v0_3 && rules.versions.v1_0 && !rules.tenants && !rules.stamp)
            && (rules.skills.is_none() || rules.skills == selectors)
    })
}

/// Whether a client can send the case as it stands: framing is the client's own, and a path that
/// is not canonical never gets to the reader.
fn can_be_sent(case: &Case) -> bool {
    let framed = ["content-length", "transfer-encoding"]
        .iter()
        .any(|name| case.headers.contains_key(*name));
    let plain = case.path.is_empty()
        || canonical(&case.path).is_ok_and(|canonical| canonical.as_str() == case.path);
    let method = case.method.as_str();
    let answered = method != "HEAD" && method.bytes().all(|byte| byte.is_ascii_uppercase());
    !framed && plain && answered
}

/// Sends a case below a path, and compares status and code of the answer.
async fn compare(client: &mut Client, address: SocketAddr, base: &str, bearer: &str, case: &Case) {
    let refusal = &case.expect["refused"];
    let query = case.query.as_deref();
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    let path = format!("{base}{}{query}", case.path);
    let mut fields = vec![("Authorization", bearer)];
    let text: Vec<(String, String)> = case
        .headers
        .iter()
        .filter_map(|(name, value)| {
            let value = String::from_utf8(value.as_bytes().to_vec()).ok()?;
            Some((name.to_string(), value))
        })
        .collect();
    fields.extend(text.iter().map(|(n, v)| (n.as_str(), v.as_str())));
    let method = case.method.as_str();
    let response = match client.request(method, &path, &fields, &case.body).await {
        Ok(response) => response,
        Err(error) => panic!("{}: {error}", case.name),
    };
    let found: (Value, Value) = (response.status.into(), error_code(&response.json()));
    let expected = (refusal["status"].clone(), refusal["error"].clone());
    assert_eq!(found, expected, "{}: {}", case.name, response.text());
    if response.field("connection") == Some("close") {
        *client = Client::connect(address).await.unwrap();
    }
}

#[tokio::test]
async fn refused_cases_reach_nothing() {
    let stand = Stand::with_policy(&POLICY.replace("[review-diff]", "any")).await;
    let token = stand.reviewer();
    let bearer = format!("Bearer {token}");
    let address = stand.gateway.address;
    let mut client = Client::connect(address).await.unwrap();
    let mut count = 0;
    for case in refused(Binding::JsonRpc, &stand.gateway) {
        let before = stand.counted();
        compare(&mut client, address, RPC, &bearer, &case).await;
        assert_eq!(stand.counted(), before, "{}", case.name);
        count += 1;
    }
    assert!(count > 150, "only {count} cases were refused");
    let good = stand
        .call(
            &token,
            "SendMessage",
            &message("SendMessage", "hello", "hi", &[]),
        )
        .await;
    assert_eq!((good.status, stand.counted()), (200, (1, 1)));
}

#[tokio::test]
async fn refused_cases_of_rest_reach_nothing() {
    let stand = rest::Stand::new().await;
    let bearer = format!("Bearer {}", stand.token(Grant::Agent));
    let address = stand.gateway.address;
    let mut client = Client::connect(address).await.unwrap();
    let mut count = 0;
    for case in refused(Binding::Rest, &stand.gateway).filter(can_be_sent) {
        compare(&mut client, address, rest::REST, &bearer, &case).await;
        assert_eq!(stand.seen(), [], "{}", case.name);
        count += 1;
    }
    assert!(count > 180, "only {count} cases were refused");
}
