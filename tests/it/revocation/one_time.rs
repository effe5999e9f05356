//! Tokens that are good for one call (RV-4).

use super::{NOTHING, Stand, empty};
use crate::support::gateway::Gateway;
use crate::support::issuer::{Grant, Issuer};
use portcullis::adapters::clock::{ManualClock, SystemClock};
use portcullis::pipeline::ports::{Clock, JournalError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A stand whose agent takes each token once, a minute after its start.
async fn stand() -> Stand {
    let clock = Arc::new(ManualClock::at(SystemClock::new().now() - 60_000));
    let stand = Stand::with(NOTHING, Some(clock.clone()), |yaml| {
        yaml.replace(
            "    publish: true\n",
            "    publish: true\n    one_time: true\n",
        )
    })
    .await;
    clock.advance(Duration::from_secs(60));
    stand
}

fn token(issuer: &Issuer, extra: Value) -> String {
    issuer.token("alice", Grant::Agent, extra)
}

async fn backend(gateway: &Gateway, token: &str) -> u16 {
    let fields = [("Authorization", format!("Bearer {token}"))];
    let fields: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
    crate::support::client::get(gateway.address, "/agents/pr-agent/config", &fields)
        .await
        .unwrap()
        .status
}

#[tokio::test]
async fn a_token_is_good_for_one_call_and_of_its_own_issuer() {
    let stand = stand().await;
    let once = token(&stand.corp, json!({"jti": "t-1"}));
    stand.assert_passes(&once, "first use").await;
    stand.assert_revoked(&once, "token_used").await;
    // Another token with the same name, and the same name at another issuer.
    let again = token(&stand.corp, json!({"jti": "t-1", "more": 1}));
    stand.assert_revoked(&again, "token_used").await;
    let theirs = token(&stand.partner, json!({"jti": "t-1"}));
    stand.assert_passes(&theirs, "another issuer").await;
    let full = stand.corp.token("root", Grant::Full, empty());
    assert_eq!(backend(&stand.gateway, &full).await, 200);
    assert_eq!(backend(&stand.gateway, &full).await, 401);
}

#[tokio::test]
async fn a_refused_call_uses_nothing() {
    let stand = stand().await;
    let once = token(&stand.corp, empty());
    let before = stand.counted();
    let refused = crate::calls::message("SendMessage", "review-diff", "hi", &[]);
    assert_eq!(stand.post(&once, &refused).await.status, 403);
    assert!(stand.post(&once, "{").await.text().contains("-32700"));
    stand.gateway.journal.refuse(Some(JournalError::Full));
    let good = crate::calls::message("SendMessage", "hello", "hi", &[]);
    assert_eq!(stand.post(&once, &good).await.status, 503);
    assert_eq!(stand.counted(), before);
    stand.gateway.journal.refuse(None);
    stand.assert_passes(&once, "unused so far").await;
    stand.assert_revoked(&once, "token_used").await;
}

#[tokio::test]
async fn of_many_calls_at_once_one_reaches_the_agent() {
    let stand = Arc::new(stand().await);
    let once = token(&stand.corp, empty());
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let (stand, once) = (stand.clone(), once.clone());
            tokio::spawn(async move { stand.call(&once).await.status })
        })
        .collect();
    let mut statuses = Vec::new();
    for call in calls {
        statuses.push(call.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401, 401, 401, 401, 401, 401, 401]);
    assert_eq!(stand.counted().1, 1);
}

/// Nobody knows what was used before the start.
#[tokio::test]
async fn a_token_from_before_the_start_is_refused() {
    let stand = stand().await;
    let started = stand.gateway.server.gate.started / 1000;
    for (issued, code) in [
        (started, Some("issued_before_start")),
        (started + 30, Some("issued_before_start")),
        (started + 31, None),
    ] {
        let token = token(&stand.corp, json!({"iat": issued, "exp": started + 600}));
        match code {
            Some(code) => stand.assert_revoked(&token, code).await,
            None => stand.assert_passes(&token, "issued after the start").await,
        }
    }
}
