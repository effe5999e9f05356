//! The fetcher against raw servers on loopback.

use crate::support::h2_agent::{H2Agent, H2Answer};
use portcullis::adapters::clock::SystemClock;
use portcullis::adapters::fetch::cards::CardFetcher;
use portcullis::adapters::random::SystemRandom;
use portcullis::config::snapshot::{BackendHttp, Speaks};
use portcullis::pipeline::RequestId;
use portcullis::pipeline::cards::{CardSource, CardTarget, FetchFailureKind, FetchOutcome, Known};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

const NEW: &str = "/.well-known/agent-card.json";
const OLD: &str = "/.well-known/agent.json";

/// A server that answers each connection with the next reply, then closes; and what it was asked.
struct Raw {
    target: CardTarget,
    asked: mpsc::UnboundedReceiver<String>,
}

/// In plaintext and HTTP/1.1.
fn target(address: SocketAddr, paths: &[&str]) -> CardTarget {
    CardTarget {
        authority: address.to_string().into(),
        host: address.ip().to_string().into(),
        port: address.port(),
        paths: paths.iter().map(|path| (*path).into()).collect(),
        tls: None,
        speaks: Speaks::H1,
    }
}

async fn serve(replies: Vec<Vec<u8>>) -> Raw {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = target(listener.local_addr().unwrap(), &[NEW, OLD]);
    let (seen, asked) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for reply in replies {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            seen.send(String::from_utf8(head).unwrap()).unwrap();
            // The client may hang up on a reply that it does not want to read whole.
            let _ = socket.write_all(&reply).await;
            let _ = socket.shutdown().await;
        }
    });
    Raw { target, asked }
}

impl Raw {
    /// The request heads so far.
    fn asked(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.asked.try_recv().ok()).collect()
    }
}

pub fn reply(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut reply = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    )
    .into_bytes();
    reply.extend_from_slice(body);
    reply
}

fn kind(outcome: &FetchOutcome) -> Option<&FetchFailureKind> {
    match outcome {
        FetchOutcome::Failed(failure) => Some(&failure.kind),
        FetchOutcome::Fetched { .. } | FetchOutcome::NotModified => None,
    }
}

pub fn id() -> RequestId {
    RequestId::new(&SystemClock::new(), &SystemRandom)
}

fn paths(asked: &[String]) -> Vec<&str> {
    let paths = asked.iter().map(|head| head.split(' ').nth(1).unwrap());
    paths.collect()
}

#[tokio::test]
async fn a_card_is_asked_for_plainly_and_as_ourselves() {
    let mut raw = serve(vec![reply("200 OK", "ETag: W/\"t\"\r\n", b"{}")]).await;
    let outcome = CardFetcher::default().fetch(&raw.target, None, id()).await;
    let expected = FetchOutcome::Fetched {
        body: b"{}".as_slice().into(),
        etag: Some("W/\"t\"".into()),
        path: NEW.into(),
    };
    assert_eq!(outcome, expected);
    let asked = raw.asked();
    let head = asked[0].to_ascii_lowercase();
    let host = format!("\r\nhost: {}\r\n", raw.target.authority);
    for line in [
        "get /.well-known/agent-card.json http/1.1\r\n",
        "\r\nportcullis-purpose: card\r\n",
        "\r\naccept-encoding: identity\r\n",
        host.as_str(),
    ] {
        assert!(head.contains(line), "{line} in {head}");
    }
    for header in ["authorization", "cookie", "if-none-match", "referer"] {
        assert!(!head.contains(header), "{header} in {head}");
    }
}

#[tokio::test]
async fn fc_06_fc_18_the_next_path_is_tried_on_404_and_405_only() {
    let fetcher = CardFetcher::default();
    for status in ["404 Not Found", "405 Method Not Allowed"] {
        let replies = vec![reply(status, "", b"x"), reply("200 OK", "", b"{}")];
        let mut raw = serve(replies).await;
        let outcome = fetcher.fetch(&raw.target, None, id()).await;
        assert!(
            matches!(&outcome, FetchOutcome::Fetched { path, .. } if **path == *OLD),
            "{outcome:?}"
        );
        assert_eq!(paths(&raw.asked()), [NEW, OLD]);
    }
    for (status, expected) in [
        ("503 Service Unavailable", FetchFailureKind::Status(503)),
        ("401 Unauthorized", FetchFailureKind::Status(401)),
        ("410 Gone", FetchFailureKind::Status(410)),
        ("204 No Content", FetchFailureKind::Status(204)),
        ("304 Not Modified", FetchFailureKind::Status(304)),
    ] {
        let mut raw = serve(vec![reply(status, "", b""), reply("200 OK", "", b"{}")]).await;
        let outcome = fetcher.fetch(&raw.target, None, id()).await;
        assert_eq!(kind(&outcome), Some(&expected));
        assert_eq!(paths(&raw.asked()), [NEW]);
    }
    let replies = vec![
        reply("404 Not Found", "", b""),
        reply("404 Not Found", "", b""),
    ];
    let raw = serve(replies).await;
    let outcome = fetcher.fetch(&raw.target, None, id()).await;
    assert_eq!(kind(&outcome), Some(&FetchFailureKind::NotFound));
}

#[tokio::test]
async fn fc_09_redirects_are_not_followed() {
    let trap = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let location = format!("Location: http://{}/\r\n", trap.local_addr().unwrap());
    for status in ["301 Moved", "302 Found", "307 Temporary Redirect"] {
        let mut raw = serve(vec![reply(status, &location, b"")]).await;
        let outcome = CardFetcher::default().fetch(&raw.target, None, id()).await;
        let code = status[..3].parse().unwrap();
        assert_eq!(kind(&outcome), Some(&FetchFailureKind::Redirected(code)));
        assert_eq!(raw.asked().len(), 1);
    }
    trap.into_std().unwrap().accept().expect_err("nobody came");
}

#[tokio::test]
async fn replies_that_cannot_be_read_whole_are_refused() {
    let large = vec![b' '; 1024 * 1024 + 1];
    let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..17 {
        chunked.extend_from_slice(b"10000\r\n");
        chunked.extend_from_slice(&large[..0x10000]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}".to_vec();
    let cases = [
        (
            reply("200 OK", "Content-Encoding: gzip\r\n", b"\x1f\x8b"),
            FetchFailureKind::Broken,
        ),
        (
            reply("200 OK", "Content-Encoding: gzip\r\n", &gzip(&large)),
            FetchFailureKind::TooLarge,
        ),
        (
            reply("200 OK", "Content-Encoding: br\r\n", b"{}"),
            FetchFailureKind::Encoded,
        ),
        (
            reply(
                "200 OK",
                "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n",
                &gzip(&gzip(b"{}")),
            ),
            FetchFailureKind::Encoded,
        ),
        (
            reply("200 OK", "Content-Encoding: zz\r\n", b"{}"),
            FetchFailureKind::Encoded,
        ),
        (reply("200 OK", "", &large), FetchFailureKind::TooLarge),
        (chunked, FetchFailureKind::TooLarge),
        (cut, FetchFailureKind::Broken),
        (b"SSH-2.0-x\r\n".to_vec(), FetchFailureKind::Broken),
        (Vec::new(), FetchFailureKind::Closed(BackendHttp::H1)),
    ];
    for (number, (bytes, expected)) in cases.into_iter().enumerate() {
        let raw = serve(vec![bytes]).await;
        let outcome = CardFetcher::default().fetch(&raw.target, None, id()).await;
        assert_eq!(kind(&outcome), Some(&expected), "case {number}");
    }
    // The limit itself is allowed, and so is saying `identity`.
    let exact = reply("200 OK", "Content-Encoding: identity\r\n", &large[1..]);
    let raw = serve(vec![exact]).await;
    let outcome = CardFetcher::default().fetch(&raw.target, None, id()).await;
    assert!(matches!(outcome, FetchOutcome::Fetched { body, .. } if body.len() == 1024 * 1024));
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// A server that compresses whatever is asked for.
#[tokio::test]
async fn fc_15_a_compressed_card_is_read() {
    let card = br#"{"name":"w"}"#;
    let raw = serve(vec![reply(
        "200 OK",
        "Content-Encoding: GZip\r\n",
        &gzip(card),
    )])
    .await;
    let outcome = CardFetcher::default().fetch(&raw.target, None, id()).await;
    assert!(
        matches!(&outcome, FetchOutcome::Fetched { body, .. } if body == &card[..]),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn what_is_no_card_is_left_to_the_rewriting() {
    for body in ["<html></html>", "[]", "\"ok\""] {
        let raw = serve(vec![reply(
            "200 OK",
            "Content-Type: text/html\r\n",
            body.as_bytes(),
        )])
        .await;
        let outcome = CardFetcher::default().fetch(&raw.target, None, id()).await;
        assert!(matches!(outcome, FetchOutcome::Fetched { body: b, .. } if b == body));
    }
}

#[tokio::test]
async fn a_known_tag_goes_with_its_own_path_only() {
    let known = |path: &str| Known {
        path: path.into(),
        etag: "\"t\"".into(),
    };
    let fetcher = CardFetcher::default();
    let mut raw = serve(vec![reply("304 Not Modified", "", b"")]).await;
    let outcome = fetcher.fetch(&raw.target, Some(&known(NEW)), id()).await;
    assert_eq!(outcome, FetchOutcome::NotModified);
    assert!(
        raw.asked()[0]
            .to_ascii_lowercase()
            .contains("\r\nif-none-match: \"t\"\r\n")
    );

    let replies = vec![
        reply("404 Not Found", "", b""),
        reply("304 Not Modified", "", b""),
    ];
    let mut raw = serve(replies).await;
    let outcome = fetcher.fetch(&raw.target, Some(&known(OLD)), id()).await;
    assert_eq!(outcome, FetchOutcome::NotModified);
    let asked = raw.asked();
    assert!(!asked[0].to_ascii_lowercase().contains("if-none-match"));
    assert!(asked[1].to_ascii_lowercase().contains("if-none-match"));
}

#[tokio::test]
async fn nobody_there_and_nobody_answering_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = target(listener.local_addr().unwrap(), &[NEW]);
    let short = Duration::from_millis(200);
    let fetcher = CardFetcher::with_timeouts(short, short);
    // Connected by the kernel, never accepted.
    let outcome = fetcher.fetch(&target, None, id()).await;
    assert_eq!(kind(&outcome), Some(&FetchFailureKind::TimedOut));
    drop(listener);
    let outcome = fetcher.fetch(&target, None, id()).await;
    assert_eq!(kind(&outcome), Some(&FetchFailureKind::Unreachable));
}

/// The same manners in HTTP/2.
#[tokio::test]
async fn a_card_over_http2_is_bounded_conditional_and_whole() {
    let agent = H2Agent::start([]).await;
    let target = CardTarget {
        speaks: Speaks::H2,
        ..target(agent.address, &[NEW, OLD])
    };
    let short = Duration::from_millis(500);
    let fetcher = CardFetcher::with_timeouts(short, short);
    let outcome = fetcher.fetch(&target, None, id()).await;
    assert_eq!(kind(&outcome), Some(&FetchFailureKind::NotFound));
    let known = Known {
        path: NEW.into(),
        etag: "\"t\"".into(),
    };
    agent.show(H2Answer::json(304, ""));
    let outcome = fetcher.fetch(&target, Some(&known), id()).await;
    assert_eq!(outcome, FetchOutcome::NotModified);
    let counts = agent.counts();
    let asked: Vec<_> = counts.cards.iter().map(|seen| &*seen.path).collect();
    assert_eq!(asked, [NEW, OLD, NEW]);
    assert_eq!(counts.cards[1].field("if-none-match"), None);
    assert_eq!(counts.cards[2].field("if-none-match"), Some("\"t\""));
    let large = vec![b' '; 1024 * 1024 + 1];
    let coded = |body: Vec<u8>| H2Answer {
        fields: vec![("content-encoding", "gzip".to_owned())],
        body,
        ..H2Answer::json(200, "")
    };
    let plain = |body: &[u8]| H2Answer {
        body: body.to_vec(),
        ..H2Answer::json(200, "")
    };
    let cut = H2Answer {
        fields: vec![("content-length", "10".to_owned())],
        ..plain(b"{}")
    };
    for (answer, expected) in [
        (plain(&large), FetchFailureKind::TooLarge),
        (coded(gzip(&large)), FetchFailureKind::TooLarge),
        (cut, FetchFailureKind::Broken),
        (H2Answer::json(302, ""), FetchFailureKind::Redirected(302)),
        (H2Answer::json(503, ""), FetchFailureKind::Status(503)),
    ] {
        agent.show(answer);
        let outcome = fetcher.fetch(&target, None, id()).await;
        assert_eq!(kind(&outcome), Some(&expected));
    }
    // More than one window of the connection, and a coding.
    for answer in [plain(&large[1..]), coded(gzip(&large[1..]))] {
        agent.show(answer);
        let outcome = fetcher.fetch(&target, None, id()).await;
        assert!(
            matches!(&outcome, FetchOutcome::Fetched { body, .. } if body.len() == 1024 * 1024)
        );
    }
}

/// Taken by the kernel alone, so that neither SETTINGS nor an answer come.
#[tokio::test]
async fn nobody_answering_in_http2_is_told_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = CardTarget {
        speaks: Speaks::H2,
        ..target(listener.local_addr().unwrap(), &[NEW])
    };
    let short = Duration::from_millis(200);
    let fetcher = CardFetcher::with_timeouts(short, short);
    let outcome = fetcher.fetch(&target, None, id()).await;
    assert_eq!(kind(&outcome), Some(&FetchFailureKind::TimedOut));
}
