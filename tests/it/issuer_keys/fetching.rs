//! One fetch by its rules (LC-1 to LC-5): what comes, and what is refused and why.

use crate::support::issuer_stub::{IssuerStub, Mode};
use portcullis::adapters::clock::SystemClock;
use portcullis::adapters::fetch::keys::KeyFetcher;
use portcullis::adapters::random::SystemRandom;
use portcullis::adapters::resolver::SystemResolver;
use portcullis::identity::issuer::{DiscoveryForm, KeyLocation, RemoteKeys};
use portcullis::pipeline::RequestId;
use portcullis::pipeline::issuer_keys::{FetchedKeys, IssuerSource, KeyFetchFault};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ISSUER: &str = "https://issuer.example.test";
const SET: &str = r#"{"keys":[]}"#;

fn discovery(stub: &IssuerStub, form: DiscoveryForm) -> RemoteKeys {
    let issuer = ISSUER.into();
    remote(stub, KeyLocation::Discovery { issuer, form })
}

fn at(stub: &IssuerStub, url: &str) -> RemoteKeys {
    remote(stub, KeyLocation::Url(url.into()))
}

fn remote(stub: &IssuerStub, location: KeyLocation) -> RemoteKeys {
    let ca = CertificateDer::from_pem_slice(stub.ca.as_bytes()).unwrap();
    RemoteKeys {
        location,
        hosts: Vec::new(),
        private: false,
        loopback: false,
        authorities: Some(vec![Box::from(&*ca)]),
        refresh: Duration::from_secs(300),
        may_wait: true,
        stale: Duration::from_secs(3600),
        connect: Duration::from_secs(3),
        // Nobody waits for it but those who are kept waiting on purpose.
        total: Duration::from_secs(30),
    }
}

async fn fetch(stub: &IssuerStub, from: &RemoteKeys) -> Result<FetchedKeys, KeyFetchFault> {
    let id = RequestId::new(&SystemClock::new(), &SystemRandom);
    stub.source().fetch(from, id).await
}

/// The code of a fault, or `ok`.
async fn code(stub: &IssuerStub, from: &RemoteKeys) -> &'static str {
    match fetch(stub, from).await {
        Ok(_) => "ok",
        Err(fault) => fault.label(),
    }
}

#[tokio::test]
async fn lc_5_a_set_comes_from_where_the_issuers_metadata_says() {
    let stub = IssuerStub::start(ISSUER, SET).await;
    stub.max_age(77);
    let fetched = fetch(&stub, &discovery(&stub, DiscoveryForm::Either))
        .await
        .unwrap();
    assert_eq!(&fetched.body[..], SET.as_bytes());
    assert_eq!(&*fetched.url, "https://issuer.example.test/jwks.json");
    assert_eq!(fetched.max_age, Some(Duration::from_secs(77)));
    // Only with nothing at the first place is the second one asked.
    stub.set(Mode::OnlyOAuth, SET);
    for (form, found) in [
        (DiscoveryForm::Either, "ok"),
        (DiscoveryForm::OAuth, "ok"),
        (DiscoveryForm::OpenId, "not_found"),
    ] {
        assert_eq!(
            code(&stub, &discovery(&stub, form)).await,
            found,
            "{form:?}"
        );
    }
}

#[tokio::test]
async fn lc_1_to_5_every_misbehaviour_has_its_reason_and_gives_no_keys() {
    let stub = IssuerStub::start(ISSUER, SET).await;
    let discovered = discovery(&stub, DiscoveryForm::Either);
    let direct = at(&stub, "https://issuer.example.test/jwks.json");
    for (mode, reason) in [
        (Mode::Http500, "status"),
        (Mode::Redirect, "redirected"),
        (Mode::Oversize, "too_large"),
        (Mode::GzipBomb, "too_large"),
        (Mode::Refused, "unreachable"),
        (Mode::Untrusted, "untrusted"),
        (Mode::DiscoveryIssuerMismatch, "metadata_of_another_issuer"),
        (Mode::DiscoveryHttpJwks, "plain_http"),
        (Mode::DiscoveryMetadataIp, "jwks_uri_elsewhere"),
        (Mode::Html, "metadata_malformed"),
    ] {
        stub.set(mode, SET);
        assert_eq!(code(&stub, &discovered).await, reason, "{mode:?}");
        let directly = match mode {
            // What is in it is judged by who takes it in.
            Mode::Html
            | Mode::DiscoveryIssuerMismatch
            | Mode::DiscoveryHttpJwks
            | Mode::DiscoveryMetadataIp => "ok",
            _ => reason,
        };
        assert_eq!(code(&stub, &direct).await, directly, "{mode:?}");
    }
}

#[tokio::test]
async fn lc_2_silence_and_dripping_end_with_the_whole_exchange() {
    let long = format!("{SET}{}", " ".repeat(100));
    let stub = IssuerStub::start(ISSUER, &long).await;
    for mode in [Mode::Timeout, Mode::Drip] {
        stub.set(mode, &long);
        let began = Instant::now();
        let direct = RemoteKeys {
            total: Duration::from_millis(1500),
            ..at(&stub, "https://issuer.example.test/jwks.json")
        };
        assert_eq!(code(&stub, &direct).await, "timed_out", "{mode:?}");
        assert!(began.elapsed() < Duration::from_secs(8), "{mode:?}");
    }
}

#[tokio::test]
async fn lc_4_addresses_are_judged_where_names_lead_and_where_literals_stand() {
    let stub = IssuerStub::start(ISSUER, SET).await;
    let open = |url: &str, private, loopback| RemoteKeys {
        private,
        loopback,
        ..at(&stub, url)
    };
    let before = stub.fetches();
    for (url, private, loopback) in [
        ("https://private.example.test/k", false, true),
        ("https://metadata.example.test/k", true, true),
        ("https://mixed.example.test/k", true, false),
        ("https://localhost/k", true, false),
        ("https://127.0.0.1/k", true, false),
        ("https://0x7f.1/k", true, false),
        ("https://[::1]/k", true, false),
        ("https://[::ffff:127.0.0.1]/k", true, true),
        ("https://169.254.169.254/k", true, true),
        ("https://10.0.0.5/k", false, true),
        ("https://0.0.0.0/k", true, true),
        ("https://224.0.0.1/k", true, true),
    ] {
        assert_eq!(
            code(&stub, &open(url, private, loopback)).await,
            "address",
            "{url}"
        );
    }
    for url in [
        "http://issuer.example.test/k",
        "http://10.0.0.5/k",
        "ftp://localhost/k",
    ] {
        assert_eq!(
            code(&stub, &open(url, true, true)).await,
            "plain_http",
            "{url}"
        );
    }
    assert_eq!(
        code(&stub, &open("http://localhost/k", true, false)).await,
        "plain_http"
    );
    assert_eq!(stub.fetches(), before, "somebody was asked");
    // What is allowed is asked: a private address as the issuer's own, and this machine.
    assert_ne!(
        code(&stub, &open("https://private.example.test/k", true, false)).await,
        "address"
    );
    let here = format!("https://127.0.0.1:{}/k", stub.address().port());
    assert_eq!(code(&stub, &open(&here, false, true)).await, "ok");
    assert_eq!(
        code(&stub, &open("https://nowhere.example.test/k", true, true)).await,
        "unreachable"
    );
}

#[tokio::test]
async fn lc_4_a_listed_host_may_have_the_set_but_no_address_that_others_may_not_have() {
    let stub = IssuerStub::start(ISSUER, SET).await;
    stub.set(Mode::DiscoveryMetadataIp, SET);
    let listed = RemoteKeys {
        hosts: vec!["169.254.169.254".into()],
        ..discovery(&stub, DiscoveryForm::Either)
    };
    assert_eq!(code(&stub, &listed).await, "address");
}

/// Without a list of authorities of its own, an entry trusts the machine's.
#[tokio::test]
async fn lc_1_the_machines_authorities_do_not_include_ours() {
    let stub = IssuerStub::start(ISSUER, SET).await;
    let from = RemoteKeys {
        authorities: None,
        loopback: true,
        ..at(
            &stub,
            &format!("https://127.0.0.1:{}/k", stub.address().port()),
        )
    };
    let id = RequestId::new(&SystemClock::new(), &SystemRandom);
    let fetched = KeyFetcher::new(Arc::new(SystemResolver))
        .fetch(&from, id)
        .await;
    assert!(fetched.is_err(), "{fetched:?}");
    assert_eq!(stub.fetches(), 0);
}
