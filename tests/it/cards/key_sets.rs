//! Key sets that a card's signature names, fetched over TLS.

use super::fetching::{id, reply};
use crate::support::loopback;
use crate::support::pki::Authority;
use bytes::Bytes;
use portcullis::adapters::fetch::cards::CardFetcher;
use portcullis::pipeline::cards::{CardSource, FetchFailureKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A server that answers every request alike; its URL, and how many requests came.
async fn serve(certificate_of: &Authority, answer: Vec<u8>) -> (String, Arc<AtomicU64>) {
    let own = certificate_of.pair(&["127.0.0.1"]);
    let acceptor = TlsAcceptor::from(Authority::server(&own, None, &["http/1.1"]));
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let url = format!("https://{}/jwks.json", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicU64::new(0));
    let counted = asked.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(socket).await else {
                continue;
            };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            assert!(head.starts_with("get /jwks.json http/1.1"), "{head}");
            assert!(head.contains("\r\nportcullis-purpose: keys\r\n"), "{head}");
            assert!(!head.contains("authorization"), "{head}");
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    });
    (url, asked)
}

fn fetcher(trusted: &Authority) -> CardFetcher {
    CardFetcher::default().trusting(trusted.client(None))
}

#[tokio::test]
async fn a_key_set_comes_from_whom_we_trust_only() {
    let (ours, other) = (Authority::new(), Authority::new());
    let answer = reply("200 OK", "", br#"{"keys":[]}"#);
    let (url, asked) = serve(&ours, answer).await;
    let fetched = fetcher(&ours).key_set(&url, id()).await;
    assert_eq!(fetched, Ok(Bytes::from_static(br#"{"keys":[]}"#)));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // Another authority's certificate, the machine's authorities, and no TLS at all.
    let plain = url.replace("https://", "http://");
    let refused = [
        fetcher(&other).key_set(&url, id()).await,
        CardFetcher::default().key_set(&url, id()).await,
        fetcher(&ours).key_set(&plain, id()).await,
    ];
    for refused in refused {
        assert!(refused.is_err(), "{refused:?}");
    }
    assert_eq!(
        asked.load(Ordering::SeqCst),
        1,
        "somebody was asked in vain"
    );
}

#[tokio::test]
async fn what_is_no_key_set_within_bounds_is_not_taken() {
    let ours = Authority::new();
    let long = vec![b' '; (1 << 20) + 1];
    for (answer, kind) in [
        (
            reply("302 Found", "Location: https://127.0.0.1/\r\n", b""),
            FetchFailureKind::Redirected(302),
        ),
        (
            reply("404 Not Found", "", b"{}"),
            FetchFailureKind::Status(404),
        ),
        (reply("200 OK", "", &long), FetchFailureKind::TooLarge),
        (
            reply("200 OK", "Content-Encoding: br\r\n", b"x"),
            FetchFailureKind::Encoded,
        ),
    ] {
        let (url, asked) = serve(&ours, answer).await;
        assert_eq!(fetcher(&ours).key_set(&url, id()).await, Err(kind));
        assert_eq!(asked.load(Ordering::SeqCst), 1, "it was asked again");
    }
}
