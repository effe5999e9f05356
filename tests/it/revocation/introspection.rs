//! Tokens that their issuer is asked about (RV-3): what does not get a yes from it, over TLS and
//! for us, reaches no agent.

use super::endpoint::{Answer, CLIENT, Endpoint, JSON, SIGNED, YES, said, yes};
use super::{Stand, empty, token};
use crate::support::client::get;
use crate::support::issuer::Issuer;
use crate::support::pki::Authority;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portcullis::adapters::clock::{ManualClock, SystemClock};
use portcullis::pipeline::ports::Clock;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// 503, and nothing at the agent.
async fn assert_unavailable(stand: &Stand, token: &str, what: &str) {
    let before = stand.counted();
    let refusals = stand.gateway.count("refusal");
    let response = stand.call(token).await;
    assert_eq!(response.status, 503, "{what}: {}", response.text());
    assert!(response.field("retry-after").is_some(), "{what}");
    assert_eq!(stand.counted(), before, "{what}: the agent was touched");
    let record = stand.gateway.refusal(refusals + 1).await;
    assert_eq!(
        record["decision"]["reason"], "introspection_failed",
        "{what}"
    );
}

#[tokio::test]
async fn the_issuer_is_asked_in_the_standards_form_and_others_are_not() {
    let endpoint = Endpoint::start().await;
    let stand = endpoint.stand(None, "").await;
    let mine = token(&stand.corp, "alice", empty());
    stand.assert_passes(&mine, "a yes").await;
    let theirs = token(&stand.partner, "alice", empty());
    stand
        .assert_passes(&theirs, "an issuer that is not asked")
        .await;
    let asked = endpoint.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1);
    let (head, body) = asked[0].split_once("\r\n\r\n").unwrap();
    let lower = head.to_ascii_lowercase();
    assert!(head.starts_with("POST /introspect HTTP/1.1"), "{head}");
    let pair = STANDARD.encode("gate+way:s3cret%3A+of+the+gateway");
    assert!(head.contains(&format!("Basic {pair}")), "{head}");
    assert!(lower.contains("accept: application/json"), "{head}");
    assert!(
        lower.contains("portcullis-purpose: introspection"),
        "{head}"
    );
    assert_eq!(body, format!("token={mine}&token_type_hint=access_token"));
}

#[tokio::test]
async fn only_the_boolean_true_about_this_very_token_is_a_yes() {
    let endpoint = Endpoint::start().await;
    let stand = endpoint.stand(None, "").await;
    let now = SystemClock::new().now() / 1000;
    for (answer, code) in [
        (json!({"active": false}), "token_inactive"),
        (json!({"active": "true"}), "token_inactive"),
        (json!({"active": 1}), "token_inactive"),
        (json!({"active": null}), "token_inactive"),
        (json!({"Active": true}), "token_inactive"),
        (json!({}), "token_inactive"),
        (json!({"active": true, "exp": now - 1}), "token_inactive"),
        (
            json!({"active": true, "sub": "mallory"}),
            "introspection_differs",
        ),
        (
            json!({"active": true, "sub": null}),
            "introspection_differs",
        ),
        (
            json!({"active": true, "iss": "https://partner.example.test"}),
            "introspection_differs",
        ),
        (
            json!({"active": true, "client_id": "other"}),
            "introspection_differs",
        ),
        (
            json!({"active": true, "jti": "other"}),
            "introspection_differs",
        ),
    ] {
        endpoint.says(said(answer));
        stand
            .assert_revoked(&token(&stand.corp, "alice", empty()), code)
            .await;
    }
    // The local checks still run, and first: nobody is asked about a bad token.
    endpoint.says(yes());
    let before = endpoint.count();
    let bad = stand
        .corp
        .bad_token("alice", crate::support::issuer::Wrong::Expired);
    stand.assert_revoked(&bad, "expired").await;
    assert_eq!(endpoint.count(), before);
}

#[tokio::test]
async fn what_is_no_answer_is_unavailable_and_never_a_yes() {
    let endpoint = Endpoint::start().await;
    let stand = endpoint.stand(None, "").await;
    let alice = token(&stand.corp, "alice", empty());
    let answer = |body: &str| Answer(200, "", JSON, body.to_owned());
    for (what, told) in [
        ("500", Answer(500, "", JSON, YES.to_owned())),
        ("401", Answer(401, "", JSON, YES.to_owned())),
        (
            "redirect",
            Answer(302, "Location: /elsewhere\r\n", JSON, YES.to_owned()),
        ),
        (
            "HTML",
            Answer(200, "", "text/html", "<html>active</html>".to_owned()),
        ),
        ("HTML as JSON", answer("<html>active</html>")),
        ("doubled", answer(r#"{"active":false,"active":true}"#)),
        ("array", answer("[true]")),
        ("trailing", answer(r#"{"active":true} {}"#)),
        ("bad date", answer(r#"{"active":true,"exp":"soon"}"#)),
        ("empty", answer("")),
        ("large", answer(&format!("{YES}{}", " ".repeat(70_000)))),
        (
            "encoded",
            Answer(200, "Content-Encoding: gzip\r\n", JSON, YES.to_owned()),
        ),
        (
            "signed unasked",
            Answer(200, "", SIGNED, signed(&stand.corp, &json!({}), &json!({}))),
        ),
    ] {
        endpoint.says(told);
        assert_unavailable(&stand, &alice, what).await;
    }
    endpoint.says(yes());
    stand
        .assert_passes(&alice, "the endpoint is well again")
        .await;
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_is_unavailable() {
    let endpoint = Endpoint::start().await;
    let stand = endpoint.stand(None, "").await;
    let alice = token(&stand.corp, "alice", empty());
    endpoint.held.send_replace(true);
    assert_unavailable(&stand, &alice, "silence").await;
    assert_eq!(endpoint.count(), 1);
    endpoint.held.send_replace(false);
    stand.assert_passes(&alice, "it speaks again").await;
}

/// RFC 8705 section 2: the certificate says who we are, and the form which client that is.
#[tokio::test]
async fn a_certificate_may_stand_for_a_secret() {
    let clients = Authority::new();
    let endpoint = Endpoint::start_for(Some(&clients)).await;
    let stand = endpoint.stand_with(&clients.pair(&["gateway"])).await;
    let alice = token(&stand.corp, "alice", empty());
    stand.assert_passes(&alice, "with our certificate").await;
    let asked = endpoint.asked.lock().unwrap().join("");
    assert!(asked.ends_with("&client_id=gate+way"), "no client");
    assert!(!asked.to_lowercase().contains("authorization"), "a secret");

    let stranger = Authority::new().pair(&["gateway"]);
    let stand = endpoint.stand_with(&stranger).await;
    let alice = token(&stand.corp, "alice", empty());
    assert_unavailable(&stand, &alice, "another's certificate").await;
    assert_eq!(endpoint.count(), 1);
}

#[tokio::test]
async fn an_endpoint_that_is_not_whom_we_trust_is_not_told_the_token() {
    let endpoint = Endpoint::start().await;
    let other = Endpoint {
        ca: Authority::new().pem,
        url: endpoint.url.clone(),
        answer: endpoint.answer.clone(),
        asked: endpoint.asked.clone(),
        connections: endpoint.connections.clone(),
        held: endpoint.held.clone(),
    };
    let stand = other.stand(None, "").await;
    assert_unavailable(
        &stand,
        &token(&stand.corp, "alice", empty()),
        "other authority",
    )
    .await;
    assert_eq!(endpoint.count(), 0);
}

/// The gateway's clock is moved by the test; the answer is relied on for the time that was set.
#[tokio::test]
async fn a_yes_is_relied_on_for_seconds_and_never_beyond_the_tokens_end() {
    let clock = Arc::new(ManualClock::at(SystemClock::new().now()));
    let endpoint = Endpoint::start().await;
    let stand = endpoint
        .stand(Some(clock.clone()), "      cache: 20s\n")
        .await;
    let alice = token(&stand.corp, "alice", empty());
    for _ in 0..3 {
        stand.assert_passes(&alice, "remembered").await;
    }
    assert_eq!(endpoint.count(), 1);
    clock.advance(Duration::from_secs(19));
    stand.assert_passes(&alice, "remembered").await;
    assert_eq!(endpoint.count(), 1);
    clock.advance(Duration::from_secs(1));
    endpoint.says(said(json!({"active": false})));
    stand.assert_revoked(&alice, "token_inactive").await;
    assert_eq!(endpoint.count(), 2);
    // Five seconds before its end an answer holds for five seconds.
    let now = clock.now() / 1000;
    let ending = token(
        &stand.corp,
        "bob",
        json!({"iat": now - 100, "exp": now + 5}),
    );
    endpoint.says(yes());
    stand.assert_passes(&ending, "near its end").await;
    let asked = endpoint.count();
    clock.advance(Duration::from_secs(5));
    stand.assert_passes(&ending, "by leeway").await;
    assert_eq!(endpoint.count(), asked + 1);
    // An outage is not remembered, and does not forget who the token's holder is.
    endpoint.says(Answer(500, "", JSON, String::new()));
    assert_unavailable(&stand, &ending, "an outage").await;
}

#[tokio::test]
async fn many_requests_with_one_token_are_one_question() {
    let endpoint = Endpoint::start().await;
    let stand = Arc::new(endpoint.stand(None, "").await);
    for (answer, status) in [(yes(), 200), (Answer(500, "", JSON, String::new()), 503)] {
        endpoint.says(answer);
        endpoint.held.send_replace(true);
        let before = endpoint.count();
        let alice = token(&stand.corp, "alice", json!({"more": status}));
        let calls: Vec<_> = (0..8)
            .map(|_| {
                let (stand, alice) = (stand.clone(), alice.clone());
                tokio::spawn(async move { stand.call(&alice).await.status })
            })
            .collect();
        crate::support::within("the question", async {
            while endpoint.count() == before {
                tokio::task::yield_now().await;
            }
        })
        .await;
        endpoint.held.send_replace(false);
        for call in calls {
            assert_eq!(call.await.unwrap(), status);
        }
        // Those that came after the answer may have asked again, where nothing is remembered.
        let asked = endpoint.count() - before;
        assert!(asked == 1 || status == 503, "{asked} for {status}");
    }
}

/// A signed answer (RFC 9701): header and payload with these members laid over the good ones.
fn signed(issuer: &Issuer, header: &Value, payload: &Value) -> String {
    let now = SystemClock::new().now() / 1000;
    let mut head =
        json!({"alg": "ES256", "typ": "token-introspection+jwt", "kid": issuer.key().kid()});
    let mut body = json!({
        "iss": issuer.iss(), "aud": CLIENT, "iat": now,
        "token_introspection": {"active": true},
    });
    for (base, over) in [(&mut head, header), (&mut body, payload)] {
        for (name, value) in over.as_object().unwrap() {
            base[name] = value.clone();
        }
    }
    let sign = issuer
        .key()
        .sign(head.to_string().as_bytes(), body.to_string().as_bytes());
    sign.unwrap()
}

#[tokio::test]
async fn a_signed_answer_is_the_issuers_for_us_and_now() {
    let endpoint = Endpoint::start().await;
    let stand = endpoint.stand(None, "      signed: true\n").await;
    let now = SystemClock::new().now() / 1000;
    let alice = token(&stand.corp, "alice", empty());
    let mine = |header: Value, payload: Value| signed(&stand.corp, &header, &payload);
    let good = mine(json!({}), json!({}));
    let bent = crate::support::issuer::flip_signature_bit(&good);
    let theirs = json!({"kid": stand.corp.key().kid()});
    let of = json!({"iss": stand.corp.iss()});
    for (what, jwt) in [
        ("typ", mine(json!({"typ": "at+jwt"}), json!({}))),
        ("no typ", mine(json!({"typ": null}), json!({}))),
        ("alg", mine(json!({"alg": "none"}), json!({}))),
        ("kid", mine(json!({"kid": "nobody"}), json!({}))),
        ("aud", mine(json!({}), json!({"aud": "somebody else"}))),
        ("no aud", mine(json!({}), json!({"aud": null}))),
        (
            "iss",
            mine(json!({}), json!({"iss": "https://partner.example.test"})),
        ),
        ("old", mine(json!({}), json!({"iat": now - 3600}))),
        ("ahead", mine(json!({}), json!({"iat": now + 3600}))),
        ("no iat", mine(json!({}), json!({"iat": null}))),
        ("over", mine(json!({}), json!({"exp": now - 1}))),
        (
            "nothing",
            mine(json!({}), json!({"token_introspection": null})),
        ),
        ("bent", bent),
        ("another issuer's", signed(&stand.partner, &theirs, &of)),
        ("the token itself", alice.clone()),
    ] {
        endpoint.says(Answer(200, "", SIGNED, jwt));
        assert_unavailable(&stand, &alice, what).await;
    }
    endpoint.says(yes());
    assert_unavailable(&stand, &alice, "unsigned").await;
    let no = mine(
        json!({}),
        json!({"token_introspection": {"active": "true"}}),
    );
    endpoint.says(Answer(200, "", SIGNED, no));
    stand.assert_revoked(&alice, "token_inactive").await;
    endpoint.says(Answer(200, "", SIGNED, good));
    stand.assert_passes(&alice, "signed").await;
    let asked = endpoint
        .asked
        .lock()
        .unwrap()
        .last()
        .unwrap()
        .to_ascii_lowercase();
    assert!(
        asked.contains("accept: application/token-introspection+jwt"),
        "{asked}"
    );
}

/// A bound token is judged by who sends it before anybody is asked about it.
#[tokio::test]
async fn a_token_that_its_sender_cannot_prove_causes_no_question() {
    let endpoint = Endpoint::start().await;
    let stand = endpoint.stand(None, "").await;
    let bound = json!({"cnf": {"jkt": "A".repeat(43)}});
    let stolen = token(&stand.corp, "alice", bound);
    let before = stand.counted();
    for _ in 0..2 {
        let response = stand.call(&stolen).await;
        assert_eq!(response.status, 401, "{}", response.text());
    }
    assert_eq!(stand.counted(), before);
    let record = stand.gateway.refusal(1).await;
    assert_eq!(record["decision"]["reason"], "dpop_token_as_bearer");
    assert_eq!(endpoint.count(), 0);
}

#[tokio::test]
async fn the_questions_of_a_generation_share_connections() {
    let endpoint = Endpoint::start().await;
    let stand = endpoint.stand(None, "").await;
    for caller in 0..8 {
        let token = token(&stand.corp, &format!("caller-{caller}"), empty());
        stand.assert_passes(&token, "a question of its own").await;
    }
    assert_eq!(endpoint.count(), 8);
    let connections = endpoint.connections.load(Ordering::SeqCst);
    assert!(connections < 4, "{connections} connections");
}

/// Calls are what makes the gateway ask again, so readiness must not send them elsewhere.
#[tokio::test]
async fn an_endpoint_that_fails_shows_in_readiness_and_keeps_nobody_else_out() {
    let endpoint = Endpoint::start().await;
    let stand = endpoint.stand(None, "").await;
    let alice = token(&stand.corp, "alice", empty());
    let admin = stand.gateway.admin;
    let ready = async || {
        let response = get(admin, "/readyz", &[]).await.unwrap();
        assert_eq!(response.status, 200, "{}", response.text());
        let mut reasons = response.json()["reasons"].take();
        let reasons = reasons.as_array_mut().unwrap();
        reasons.retain(|reason| reason["what"] == "introspection");
        Value::from(std::mem::take(reasons))
    };
    assert_eq!(ready().await, json!([]));
    endpoint.says(Answer(500, "", JSON, YES.to_owned()));
    assert_unavailable(&stand, &alice, "500").await;
    let why = "introspection failed, so its tokens get 503: the endpoint answered 500";
    let reason = json!({"what": "introspection", "name": "corp", "why": why});
    assert_eq!(ready().await, json!([reason]));
    endpoint.says(said(json!({"active": true, "exp": "soon"})));
    assert_unavailable(&stand, &alice, "no answer").await;
    let reasons = ready().await;
    let why = reasons[0]["why"].as_str().unwrap();
    assert!(why.ends_with("not that of an introspection"), "{why}");
    let theirs = token(&stand.partner, "alice", empty());
    stand.assert_passes(&theirs, "another issuer").await;

    // A no is an answer.
    endpoint.says(said(json!({"active": false})));
    stand.assert_revoked(&alice, "token_inactive").await;
    assert_eq!(ready().await, json!([]));
}
