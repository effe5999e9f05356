//! An introspection endpoint over TLS, which answers as it is told.

use super::{NOTHING, Stand};
use crate::support::issuer::note_secret;
use crate::support::loopback;
use crate::support::pki::{Authority, Pair};
use portcullis::pipeline::ports::Clock;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub const SECRET: &str = "s3cret: of the gateway";
pub const CLIENT: &str = "gate way";
pub const YES: &str = r#"{"active":true}"#;
pub const JSON: &str = "application/json";
pub const SIGNED: &str = "application/token-introspection+jwt";

/// What the endpoint answers: status, further fields with their line ends, media type, body.
#[derive(Clone)]
pub struct Answer(pub u16, pub &'static str, pub &'static str, pub String);

pub fn yes() -> Answer {
    Answer(200, "", JSON, YES.to_owned())
}

pub fn said(json: Value) -> Answer {
    Answer(200, "", JSON, json.to_string())
}

/// An introspection endpoint that answers as it is told.
pub struct Endpoint {
    pub url: String,
    pub ca: String,
    pub answer: Arc<Mutex<Answer>>,
    /// Requests, whole.
    pub asked: Arc<Mutex<Vec<String>>>,
    pub connections: Arc<AtomicUsize>,
    /// Answers wait while this is true.
    pub held: watch::Sender<bool>,
}

impl Endpoint {
    pub async fn start() -> Endpoint {
        Endpoint::start_for(None).await
    }

    /// For clients with a certificate of this authority alone.
    pub async fn start_for(clients: Option<&Authority>) -> Endpoint {
        let authority = Authority::new();
        let own = authority.pair(&["127.0.0.1"]);
        let acceptor = TlsAcceptor::from(Authority::server(&own, clients, &["http/1.1"]));
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let url = format!("https://{}/introspect", listener.local_addr().unwrap());
        let answer = Arc::new(Mutex::new(yes()));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let counting = connections.clone();
        let held = watch::Sender::new(false);
        let (answering, asking, holding) = (answer.clone(), asked.clone(), held.subscribe());
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, answering) = (acceptor.clone(), answering.clone());
                let (asking, mut holding) = (asking.clone(), holding.clone());
                let counting = counting.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(socket).await else {
                        return;
                    };
                    counting.fetch_add(1, Ordering::SeqCst);
                    while let Some(request) = read(&mut stream).await {
                        asking.lock().unwrap().push(request);
                        let _ = holding.wait_for(|held| !*held).await;
                        let Answer(status, fields, media, body) = answering.lock().unwrap().clone();
                        let head = format!(
                            "HTTP/1.1 {status} Said\r\nContent-Type: {media}\r\n{fields}\
                             Content-Length: {}\r\n\r\n",
                            body.len()
                        );
                        let answer = format!("{head}{body}");
                        if stream.write_all(answer.as_bytes()).await.is_err()
                            || stream.flush().await.is_err()
                        {
                            return;
                        }
                    }
                });
            }
        });
        Endpoint {
            url,
            ca: authority.pem,
            answer,
            asked,
            connections,
            held,
        }
    }

    pub fn says(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    pub fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// A stand whose issuer `corp` is asked here.
    pub async fn stand(&self, clock: Option<Arc<dyn Clock>>, more: &str) -> Stand {
        note_secret(SECRET);
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
        let secret = format!("      client_secret: {{file: {}}}\n", secret.display());
        self.stand_as(clock, &secret, "", more).await
    }

    /// The same with a certificate for what the gateway is to the endpoint.
    pub async fn stand_with(&self, own: &Pair) -> Stand {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = (folder.path().join("us.pem"), folder.path().join("us.key"));
        std::fs::write(&cert, &own.cert).unwrap();
        std::fs::write(&key, &own.key).unwrap();
        let (cert, key) = (cert.display(), key.display());
        let client = format!(", client: {{cert: {cert}, key: {key}}}");
        self.stand_as(None, "", &client, "").await
    }

    pub async fn stand_as(
        &self,
        clock: Option<Arc<dyn Clock>>,
        secret: &str,
        client: &str,
        more: &str,
    ) -> Stand {
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, &self.ca).unwrap();
        let settings = format!(
            "    introspection:\n      url: {}\n      client_id: {CLIENT}\n{secret}      \
             tls: {{ca: {}{client}}}\n{more}",
            self.url,
            ca.display()
        );
        Stand::with(NOTHING, clock, |yaml| {
            yaml.replacen(
                "    development: true\n",
                &format!("    development: true\n{settings}"),
                1,
            )
        })
        .await
    }
}

/// The next request of a connection; `None` at its end.
async fn read(stream: &mut TlsStream<TcpStream>) -> Option<String> {
    let mut request = Vec::new();
    while !is_whole(&request) {
        request.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(request).unwrap())
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length: ")?
            .parse()
            .ok()
    });
    body.len() >= length.unwrap_or(0)
}
