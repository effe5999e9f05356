//! An issuer's web server over TLS, which can be told to misbehave, and the way to it.
//!
//! Names lead to a public address for whoever judges them; the connection then comes here.

use super::loopback;
use super::pki::Authority;
use flate2::Compression;
use flate2::write::GzEncoder;
use portcullis::adapters::fetch::keys::KeyFetcher;
use portcullis::pipeline::ports::{Resolver, Unresolved};
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// What the issuer does when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Ok,
    Http500,
    /// Takes the request and never answers.
    Timeout,
    /// One byte of the body at a time, for ever.
    Drip,
    Redirect,
    /// More than 256 KiB.
    Oversize,
    /// More than 256 KiB once it is unpacked.
    GzipBomb,
    Html,
    /// Nobody listens.
    Refused,
    /// The certificate is another authority's.
    Untrusted,
    DiscoveryIssuerMismatch,
    DiscoveryHttpJwks,
    DiscoveryMetadataIp,
    /// The metadata is where RFC 8414 puts it, and only there.
    OnlyOAuth,
    /// Answers when [`IssuerStub::release`] is called.
    Held,
}

/// The server.
pub struct IssuerStub {
    /// The authority that its certificates come from, in PEM.
    pub ca: String,
    state: Arc<State>,
    /// A port at which nobody listens.
    closed: SocketAddr,
    address: SocketAddr,
}

struct State {
    issuer: String,
    behaviour: Mutex<(Mode, String, Option<u64>)>,
    /// Instead of the plainest metadata.
    document: Mutex<Option<String>>,
    metadata: AtomicUsize,
    sets: AtomicUsize,
    release: Notify,
}

impl IssuerStub {
    /// Serves the metadata and keys of an issuer such as `https://issuer.example.test`; `SELF` in it
    /// stands for the server's own address.
    pub async fn start(issuer: &str, jwks: &str) -> IssuerStub {
        let (authority, other) = (Authority::new(), Authority::new());
        let host = issuer.strip_prefix("https://").unwrap();
        let host = host.split('/').next().unwrap();
        let names = [host, "127.0.0.1", "localhost"];
        let good = authority.pair(&names);
        let acceptor = |pair| TlsAcceptor::from(Authority::server(pair, None, &["http/1.1"]));
        let (good, bad) = (acceptor(&good), acceptor(&other.pair(&names)));
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let nobody = TcpListener::bind(loopback()).await.unwrap();
        let closed = nobody.local_addr().unwrap();
        drop(nobody);
        let state = Arc::new(State {
            issuer: issuer.replace("SELF", &address.to_string()),
            behaviour: Mutex::new((Mode::Ok, jwks.to_owned(), None)),
            document: Mutex::new(None),
            metadata: AtomicUsize::new(0),
            sets: AtomicUsize::new(0),
            release: Notify::new(),
        });
        let serving = state.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let state = serving.clone();
                let acceptor = match state.mode() {
                    Mode::Untrusted => bad.clone(),
                    _ => good.clone(),
                };
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(socket).await {
                        let _ = answer(&state, stream).await;
                    }
                });
            }
        });
        IssuerStub {
            ca: authority.pem,
            state,
            closed,
            address,
        }
    }

    /// From now on.
    pub fn set(&self, mode: Mode, jwks: &str) {
        let mut behaviour = self.state.behaviour.lock().unwrap();
        behaviour.0 = mode;
        jwks.clone_into(&mut behaviour.1);
    }

    /// Its metadata from now on; `SELF` stands for the server's own address.
    pub fn publish(&self, metadata: &str) {
        let metadata = metadata.replace("SELF", &self.address.to_string());
        *self.state.document.lock().unwrap() = Some(metadata);
    }

    /// What `Cache-Control` says from now on.
    pub fn max_age(&self, seconds: u64) {
        self.state.behaviour.lock().unwrap().2 = Some(seconds);
    }

    /// How many fetches there were: of metadata, or of the set alone where it was asked for alone.
    pub fn fetches(&self) -> usize {
        let metadata = self.state.metadata.load(Ordering::SeqCst);
        match metadata {
            0 => self.state.sets.load(Ordering::SeqCst),
            fetches => fetches,
        }
    }

    /// Lets one held answer go.
    pub fn release(&self) {
        self.state.release.notify_one();
    }

    /// The issuer that it serves.
    pub fn issuer(&self) -> &str {
        &self.state.issuer
    }

    /// Where it really listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The gateway's own client, led here.
    pub fn source(&self) -> Arc<KeyFetcher> {
        let (state, open, closed) = (self.state.clone(), self.address, self.closed);
        let route = move |_: IpAddr| match state.mode() {
            Mode::Refused => closed,
            _ => open,
        };
        Arc::new(KeyFetcher::routed(Arc::new(Names), Arc::new(route)))
    }
}

/// Every name has a public address, but for some that say what they have.
struct Names;

#[async_trait::async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, Unresolved> {
        let addresses: &[&str] = match host {
            "private.example.test" => &["10.0.0.5"],
            "metadata.example.test" => &["169.254.169.254"],
            "mixed.example.test" => &["1.1.1.1", "127.0.0.1"],
            "localhost" => &["127.0.0.1"],
            "nowhere.example.test" => return Err(Unresolved),
            _ => &["1.1.1.1"],
        };
        Ok(addresses.iter().map(|a| a.parse().unwrap()).collect())
    }
}

impl State {
    fn mode(&self) -> Mode {
        self.behaviour.lock().unwrap().0
    }
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    state: &State,
    mut stream: S,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(
        !head.to_ascii_lowercase().contains("\r\nauthorization:"),
        "{head}"
    );
    assert!(
        head.to_ascii_lowercase()
            .contains("portcullis-purpose: keys"),
        "{head}"
    );
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let (mode, jwks, max_age) = state.behaviour.lock().unwrap().clone();
    let oauth = path.contains("oauth-authorization-server");
    let metadata = oauth || path.contains("openid-configuration");
    if metadata && oauth != (mode == Mode::OnlyOAuth) {
        return reply(&mut stream, "404 Not Found", "", b"").await;
    }
    let counter = if metadata {
        &state.metadata
    } else {
        &state.sets
    };
    counter.fetch_add(1, Ordering::SeqCst);
    let issuer = &state.issuer;
    let uri = match mode {
        Mode::DiscoveryHttpJwks => format!("{issuer}/jwks.json").replace("https://", "http://"),
        Mode::DiscoveryMetadataIp => "https://169.254.169.254/jwks.json".to_owned(),
        _ => format!("{issuer}/jwks.json"),
    };
    let named = match mode {
        Mode::DiscoveryIssuerMismatch => "https://other.example.test",
        _ => issuer,
    };
    let document = state.document.lock().unwrap().clone();
    let plainest = || serde_json::json!({"issuer": named, "jwks_uri": uri}).to_string();
    let body = match metadata {
        true => document.unwrap_or_else(plainest),
        false => jwks,
    };
    match mode {
        Mode::Ok
        | Mode::Refused
        | Mode::Untrusted
        | Mode::DiscoveryIssuerMismatch
        | Mode::DiscoveryHttpJwks
        | Mode::DiscoveryMetadataIp
        | Mode::OnlyOAuth => {
            let age = max_age.map(|age| format!("Cache-Control: public, max-age={age}\r\n"));
            reply(
                &mut stream,
                "200 OK",
                &age.unwrap_or_default(),
                body.as_bytes(),
            )
            .await
        }
        Mode::Held => {
            state.release.notified().await;
            reply(&mut stream, "200 OK", "", body.as_bytes()).await
        }
        Mode::Http500 => reply(&mut stream, "500 Oops", "", body.as_bytes()).await,
        Mode::Timeout => std::future::pending().await,
        Mode::Drip => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).await?;
            for byte in body.as_bytes() {
                stream.write_all(&[*byte]).await?;
                stream.flush().await?;
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            Ok(())
        }
        Mode::Redirect => {
            let to = format!("Location: {issuer}/jwks.json\r\n");
            reply(&mut stream, "302 Found", &to, b"").await
        }
        Mode::Oversize => {
            let long = format!("{}{body}", " ".repeat(256 * 1024));
            reply(&mut stream, "200 OK", "", long.as_bytes()).await
        }
        Mode::GzipBomb => {
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(&vec![b' '; 64 << 20]).unwrap();
            packed.write_all(body.as_bytes()).unwrap();
            let packed = packed.finish().unwrap();
            assert!(packed.len() < 256 * 1024);
            reply(&mut stream, "200 OK", "Content-Encoding: gzip\r\n", &packed).await
        }
        Mode::Html => {
            let page = b"<!doctype html><title>Sign in</title>";
            reply(&mut stream, "200 OK", "Content-Type: text/html\r\n", page).await
        }
    }
}

async fn reply<S: AsyncWrite + Unpin>(
    stream: &mut S,
    status: &str,
    fields: &str,
    body: &[u8],
) -> std::io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.shutdown().await
}
