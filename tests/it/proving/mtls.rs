//! Certificate-bound tokens over real TLS, in both versions of HTTP.

use crate::edge::{ANSWER, CALL, Stand, secure_stand};
use crate::support::h2_client::H2Client;
use crate::support::issuer::Grant;
use crate::support::pki::{Authority, Pair};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;

/// SHA-256 of a certificate.
fn print(pair: &Pair) -> Vec<u8> {
    let der = CertificateDer::from_pem_slice(pair.cert.as_bytes()).unwrap();
    digest(&SHA256, &der).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn bound_to(stand: &Stand, pair: &Pair) -> String {
    let cnf = json!({"cnf": {"x5t#S256": URL_SAFE_NO_PAD.encode(print(pair))}});
    stand.issuer.token("alice", Grant::Agent, cnf)
}

const OPTIONAL: &str = ", client_ca: {file: clients.pem, mode: optional}";

#[tokio::test]
async fn a_bound_token_is_good_on_its_certificates_connection_only() {
    let clients = Authority::new();
    let (stand, authority, agent) = secure_stand(OPTIONAL, Some(&clients)).await;
    let address = stand.gateway.address;
    let (alice, bob) = (clients.pair(&["alice"]), clients.pair(&["bob"]));
    let token = bound_to(&stand, &alice);
    let mut served = 0;
    // The first connection makes the token known; each is judged by its own certificate (CA-2).
    for (own, status) in [
        (None, 401),
        (Some(&bob), 401),
        (Some(&alice), 200),
        (Some(&bob), 401),
        (None, 401),
        (Some(&alice), 200),
    ] {
        let config = authority.client(own);
        let connected = H2Client::connect_tls(address, "localhost", config.clone()).await;
        let mut client = connected.unwrap();
        let response = client.post_json("/a", Some(&token), CALL).await.unwrap();
        assert_eq!(response.status, status, "{}", response.text());
        served += usize::from(status == 200);
        assert_eq!(agent.counts().requests(), served);
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(config)
            .resolve("localhost", address)
            .http1_only()
            .build()
            .unwrap();
        let request = client
            .post(format!("https://localhost:{}/a", address.port()))
            .bearer_auth(&token)
            .header("content-type", "application/json")
            .body(CALL);
        let response = request.send().await.unwrap();
        assert_eq!(response.version(), http::Version::HTTP_11);
        assert_eq!(response.status(), status);
        if status == 401 {
            let challenge = response.headers()["www-authenticate"].to_str().unwrap();
            assert!(challenge.ends_with(r#"error="invalid_token""#));
        }
        served += usize::from(status == 200);
        assert_eq!(agent.counts().requests(), served);
    }
    assert_eq!(served, 4);
    let records = stand.gateway.journal.records();
    let intent = records.iter().find(|r| r["kind"] == "intent").unwrap();
    assert_eq!(intent["caller"]["proof"], "mtls");
    assert_eq!(intent["source"]["certificate"], hex(&print(&alice)));
    let reasons: Vec<_> = records
        .iter()
        .filter(|r| r["kind"] == "refusal")
        .map(|r| r["decision"]["reason"].as_str().unwrap())
        .collect();
    assert!(reasons.contains(&"certificate_missing") && reasons.contains(&"certificate_other"));
}

/// SC-8: a header is no certificate, from nobody, and none reaches the agent.
#[tokio::test]
async fn a_certificate_in_a_header_counts_for_nothing() {
    let clients = Authority::new();
    let (stand, authority, agent) = secure_stand(OPTIONAL, Some(&clients)).await;
    let address = stand.gateway.address;
    let (alice, bob) = (clients.pair(&["alice"]), clients.pair(&["bob"]));
    let der = CertificateDer::from_pem_slice(alice.cert.as_bytes()).unwrap();
    let base64 = base64::engine::general_purpose::STANDARD.encode(&der);
    let certificate = [
        ("client-cert", format!(":{base64}:")),
        ("client-cert-chain", format!(":{base64}:")),
        ("x-ssl-client-cert", base64.clone()),
        ("x-client-cert", base64.clone()),
        (
            "x-forwarded-client-cert",
            format!("Hash={}", hex(&print(&alice))),
        ),
    ];
    let config = authority.client(Some(&bob));
    let mut client = H2Client::connect_tls(address, "localhost", config)
        .await
        .unwrap();
    for (token, status) in [
        (bound_to(&stand, &alice), 401),
        (bound_to(&stand, &bob), 200),
    ] {
        let mut list = vec![
            ("content-type", "application/json".to_owned()),
            ("authorization", format!("Bearer {token}")),
        ];
        list.extend(certificate.iter().cloned());
        let response = client
            .request("POST", "/a", &list, CALL.as_bytes())
            .await
            .unwrap();
        assert_eq!(response.status, status);
    }
    let seen = agent.counts().seen;
    assert_eq!(seen.len(), 1);
    for (name, _) in &certificate {
        assert_eq!(seen[0].field(name), None, "{name}");
    }
    assert_eq!(seen[0].field("authorization"), None);
}

/// A connection that is resumed is its certificate's still.
#[tokio::test]
async fn a_resumed_connection_keeps_its_certificate() {
    let clients = Authority::new();
    let (stand, authority, _agent) = secure_stand(OPTIONAL, Some(&clients)).await;
    let alice = clients.pair(&["alice"]);
    let token = bound_to(&stand, &alice);
    let config = authority.client(Some(&alice));
    for _ in 0..3 {
        let connected =
            H2Client::connect_tls(stand.gateway.address, "localhost", config.clone()).await;
        let mut client = connected.unwrap();
        let response = client.post_json("/a", Some(&token), CALL).await.unwrap();
        assert_eq!((response.status, response.text()), (200, ANSWER.to_owned()));
    }
}

/// TR-12: no listener takes early data, which could be sent again by anybody.
#[tokio::test]
async fn early_data_is_off() {
    let clients = Authority::new();
    let (stand, _, _agent) = secure_stand(OPTIONAL, Some(&clients)).await;
    let live = stand.gateway.server.gate.live();
    let tls = live.snapshot.listeners[0].tls.as_ref().unwrap();
    assert_eq!(tls.config.max_early_data_size, 0);
}
