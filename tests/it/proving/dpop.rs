//! DPoP over HTTP/1.1: proofs that are used once, for one request, by who holds the key.

use super::Holder;
use crate::calls::{POLICY, RPC, Stand, message};
use crate::support::client::{Client, Response};
use crate::support::issuer::Grant;
use portcullis::cli::dev_proof::ProofClaims;
use serde_json::json;

const OFFER: &str = r#"DPoP algs="ES256 PS256 RS256 EdDSA Ed25519""#;
const INVALID_PROOF: &str =
    r#"DPoP error="invalid_dpop_proof", algs="ES256 PS256 RS256 EdDSA Ed25519""#;
const USE_NONCE: &str = r#"DPoP error="use_dpop_nonce", algs="ES256 PS256 RS256 EdDSA Ed25519""#;
const INVALID_TOKEN: &str = r#"Bearer realm="portcullis", error="invalid_token""#;

/// A gateway whose issuer says this about DPoP.
async fn stand(policy: &str, dpop: &str) -> Stand {
    let line = format!("    dpop: {dpop}\n    development: true\n");
    Stand::with(policy, |yaml| {
        yaml.replacen("    development: true\n", &line, 1)
    })
    .await
}

fn url(stand: &Stand) -> String {
    format!("http://{}{RPC}", stand.gateway.address)
}

fn token(stand: &Stand, holder: &Holder) -> String {
    stand.issuer.token("alice", Grant::Agent, holder.bound())
}

fn body() -> String {
    message("SendMessage", "hello", "hi", &[])
}

async fn send(stand: &Stand, fields: &[(&str, &str)]) -> Response {
    let mut all = vec![("A2A-Version", "1.0")];
    all.extend_from_slice(fields);
    stand.post(None, &all, &body()).await
}

/// Every `WWW-Authenticate` of a reply.
fn challenges(response: &Response) -> Vec<&str> {
    let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("www-authenticate");
    let fields = response.fields.iter();
    fields.filter(named).map(|(_, v)| v.as_str()).collect()
}

#[tokio::test]
async fn a_proof_is_good_once_whatever_the_connection() {
    let stand = stand(POLICY, "{}").await;
    let holder = Holder::new();
    let token = token(&stand, &holder);
    let authorization = format!("DPoP {token}");
    let proof = holder.proof(&url(&stand), &token);
    let fields = [("Authorization", &*authorization), ("DPoP", &*proof)];
    let mut client = Client::connect(stand.gateway.address).await.unwrap();
    let mut all = vec![("A2A-Version", "1.0")];
    all.extend_from_slice(&fields);
    let first = client.post_json(RPC, None, &all, &body()).await.unwrap();
    assert_eq!(first.status, 200, "{}", first.text());
    let before = stand.counted();
    assert_eq!(before, (1, 1));
    // On the same connection, and on another.
    let again = client.post_json(RPC, None, &all, &body()).await.unwrap();
    stand.assert_refused(before, &again, 401, "the same proof");
    assert_eq!(challenges(&again), [INVALID_PROOF]);
    let refusal = stand.gateway.refusal(1).await;
    assert_eq!(refusal["decision"]["reason"], "proof_replayed");
    let again = send(&stand, &fields).await;
    stand.assert_refused(before, &again, 401, "the same proof elsewhere");
    // The token itself is as good as before.
    let next = holder.proof(&url(&stand), &token);
    let served = send(
        &stand,
        &[("Authorization", &authorization), ("DPoP", &next)],
    )
    .await;
    assert_eq!(served.status, 200);
    let records = stand.gateway.journal.records();
    let intent = records.iter().find(|r| r["kind"] == "intent").unwrap();
    assert_eq!(intent["caller"]["proof"], "dpop");
    for secret in [&token, &proof] {
        assert!(!serde_json::to_string(&records).unwrap().contains(&**secret));
    }
}

#[tokio::test]
async fn of_requests_at_once_with_one_proof_one_is_served() {
    let stand = stand(POLICY, "{}").await;
    let holder = Holder::new();
    let token = token(&stand, &holder);
    let authorization = format!("DPoP {token}");
    let proof = holder.proof(&url(&stand), &token);
    let fields = [("Authorization", &*authorization), ("DPoP", &*proof)];
    let ask = || send(&stand, &fields);
    let (a, b, c, d) = tokio::join!(ask(), ask(), ask(), ask());
    let mut statuses = [a, b, c, d].map(|response| response.status);
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401, 401, 401]);
    assert_eq!(stand.counted(), (1, 1));
}

#[tokio::test]
async fn what_is_not_proved_reaches_nobody() {
    let stand = stand(POLICY, "{}").await;
    let (holder, other) = (Holder::new(), Holder::new());
    let here = url(&stand);
    let token = token(&stand, &holder);
    let plain = stand.reviewer();
    let dpop = format!("DPoP {token}");
    let bearer = format!("Bearer {token}");
    let proof = |claims: ProofClaims<'_>| holder.prove(&claims);
    let usual = || ProofClaims {
        method: "POST",
        url: &here,
        token: Some(&token),
        ..ProofClaims::default()
    };
    let good = || proof(usual());
    let port = stand.gateway.address.port();
    // Callers here say `Host: localhost`, which is taken; what they prove is the public URL.
    let by_host = format!("http://localhost:{port}{RPC}");
    let invalid_token = vec![INVALID_TOKEN, OFFER];
    let invalid_proof = vec![INVALID_PROOF];
    let mut table = vec![
        ("no proof", dpop.clone(), vec![], &invalid_proof),
        ("as bearer", bearer, vec![good()], &invalid_token),
        (
            "another key",
            dpop.clone(),
            vec![other.proof(&here, &token)],
            &invalid_token,
        ),
        ("two", dpop.clone(), vec![good(), good()], &invalid_proof),
        (
            "unbound",
            format!("DPoP {plain}"),
            vec![holder.proof(&here, &plain)],
            &invalid_token,
        ),
    ];
    let wrong = [
        (
            "GET",
            ProofClaims {
                method: "GET",
                ..usual()
            },
        ),
        (
            "a path",
            ProofClaims {
                url: "http://x/",
                ..usual()
            },
        ),
        (
            "by host",
            ProofClaims {
                url: &by_host,
                ..usual()
            },
        ),
        (
            "another token",
            ProofClaims {
                token: Some(&plain),
                ..usual()
            },
        ),
        (
            "no token",
            ProofClaims {
                token: None,
                ..usual()
            },
        ),
    ];
    for (what, claims) in wrong {
        table.push((what, dpop.clone(), vec![proof(claims)], &invalid_proof));
    }
    for (what, authorization, proofs, wanted) in table {
        let mut fields = vec![("Authorization", &*authorization)];
        fields.extend(proofs.iter().map(|proof| ("DPoP", &**proof)));
        let before = stand.counted();
        let response = send(&stand, &fields).await;
        stand.assert_refused(before, &response, 401, what);
        assert_eq!(challenges(&response), *wanted, "{what}");
        assert_eq!(response.field("cache-control"), Some("no-store"), "{what}");
    }
    let fields = [("Authorization", &*dpop), ("DPoP", &*good())];
    assert_eq!(send(&stand, &fields).await.status, 200);
}

#[tokio::test]
async fn dpop_is_offered_where_an_issuer_has_it_and_judged_everywhere() {
    let offering = stand(POLICY, "{nonce: false}").await;
    let silent = Stand::new().await;
    let holder = Holder::new();
    for (stand, more) in [(&offering, vec![OFFER]), (&silent, vec![])] {
        let plain = [vec![r#"Bearer realm="portcullis""#], more.clone()].concat();
        let before = stand.counted();
        let response = send(stand, &[]).await;
        stand.assert_refused(before, &response, 401, "no token");
        assert_eq!(challenges(&response), plain);
        let token = token(stand, &holder);
        let bearer = format!("Bearer {token}");
        let response = send(stand, &[("Authorization", &bearer)]).await;
        stand.assert_refused(before, &response, 401, "bound, as bearer");
        assert_eq!(challenges(&response), [vec![INVALID_TOKEN], more].concat());
        let dpop = format!("DPoP {token}");
        let proof = holder.proof(&url(stand), &token);
        let response = send(stand, &[("Authorization", &dpop), ("DPoP", &proof)]).await;
        assert_eq!(response.status, 200);
    }
}

#[tokio::test]
async fn a_nonce_is_asked_for_where_the_issuer_says_so() {
    let stand = stand(POLICY, "{nonce: true}").await;
    let holder = Holder::new();
    let (here, token) = (url(&stand), token(&stand, &holder));
    let authorization = format!("DPoP {token}");
    let prove = |nonce| {
        holder.prove(&ProofClaims {
            method: "POST",
            url: &here,
            token: Some(&token),
            nonce,
            ..ProofClaims::default()
        })
    };
    let mut nonce = None;
    for wrong in [None, Some("of-another")] {
        let proof = prove(wrong);
        let fields = [("Authorization", &*authorization), ("DPoP", &*proof)];
        let response = send(&stand, &fields).await;
        stand.assert_refused((0, 0), &response, 401, "no nonce of ours");
        assert_eq!(challenges(&response), [USE_NONCE]);
        nonce = response.field("dpop-nonce").map(str::to_owned);
    }
    let proof = prove(nonce.as_deref());
    let fields = [("Authorization", &*authorization), ("DPoP", &*proof)];
    let response = send(&stand, &fields).await;
    assert_eq!(response.status, 200, "{}", response.text());
    // The next one comes with every reply, which no cache may then give out.
    assert!(response.field("dpop-nonce").is_some());
    assert_eq!(response.field("cache-control"), Some("no-store"));
    let again = send(&stand, &fields).await;
    stand.assert_refused((1, 1), &again, 401, "the same proof");
    assert_eq!(challenges(&again), [INVALID_PROOF]);
    // Who does not hold the key gets no nonce.
    let stranger = Holder::new().proof(&here, &token);
    let response = send(
        &stand,
        &[("Authorization", &authorization), ("DPoP", &stranger)],
    )
    .await;
    stand.assert_refused((1, 1), &response, 401, "another key");
    assert_eq!(response.field("dpop-nonce"), None);
    // Tokens that are not bound need none.
    let plain = format!("Bearer {}", stand.reviewer());
    let response = send(&stand, &[("Authorization", &plain)]).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.field("dpop-nonce"), None);
}

/// SC-9, where the grant is enough and the proof is not there.
#[tokio::test]
async fn a_policy_may_demand_proof() {
    let policy = "version: 1
policy: proof
rules:
  - id: proved
    allow: {agents: [pr-agent], operations: [messages], skills: any}
    grant: agent
    require: {proof: {any_of: [dpop, mtls]}}
";
    let stand = stand(policy, "{}").await;
    let plain = format!("Bearer {}", stand.reviewer());
    let response = send(&stand, &[("Authorization", &plain)]).await;
    stand.assert_refused((0, 0), &response, 403, "a plain token");
    assert_eq!(challenges(&response), [""; 0]);
    let refusal = stand.gateway.refusal(1).await;
    assert_eq!(
        refusal["decision"]["near"],
        json!({"rule": "proved", "claim": "proof", "why": "value_differs"})
    );
    assert_eq!(refusal["caller"]["proof"], "none");
    let holder = Holder::new();
    let token = token(&stand, &holder);
    let (dpop, proof) = (format!("DPoP {token}"), holder.proof(&url(&stand), &token));
    let response = send(&stand, &[("Authorization", &dpop), ("DPoP", &proof)]).await;
    assert_eq!(response.status, 200);
}
