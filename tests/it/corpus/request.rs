//! Requests of the corpus as bytes, over HTTP/1.1 and HTTP/2 in TLS.

use super::stand::HOST;
use super::{Expect, Request};
use crate::support::h2_client::H2Client;
use crate::support::http1;
use http::{HeaderMap, HeaderName, HeaderValue};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

/// How a request gets to the gateway.
#[derive(Clone)]
pub struct Way {
    pub public: SocketAddr,
    pub admin: SocketAddr,
    pub tls: ClientConfig,
    /// The caller's own address.
    pub source: [u8; 4],
}

impl Way {
    async fn connect(&self, to: SocketAddr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((self.source, 0).into()).unwrap();
        socket.connect(to).await.unwrap()
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The `error` of its challenge.
    pub fn error(&self) -> Option<&str> {
        let challenges = self.fields.iter().filter(|(n, _)| n == "www-authenticate");
        let mut errors = challenges.filter_map(|(_, value)| {
            let (_, rest) = value.split_once("error=\"")?;
            rest.split_once('"').map(|(error, _)| error)
        });
        errors.next()
    }

    /// Without what differs from one request to the next.
    pub fn without_ids(&self) -> Reply {
        let mut reply = self.clone();
        let differs = |name: &str| ["date", "portcullis-request-id"].contains(&name);
        reply.fields.retain(|(name, _)| !differs(name));
        reply
    }

    /// Whether a text stands anywhere in it.
    pub fn shows(&self, text: &str) -> bool {
        self.fields.iter().any(|(_, value)| value.contains(text))
            || String::from_utf8_lossy(&self.body).contains(text)
    }
}

impl Request {
    /// Whether it has a field.
    fn has(&self, field: &str) -> bool {
        let mut names = self.headers.iter().map(|(name, _)| name);
        names.any(|name| name.eq_ignore_ascii_case(field))
    }

    /// Whether its token comes under the scheme of bound tokens.
    pub fn is_bound(&self) -> bool {
        let mut values = self.headers.iter().map(|(_, value)| value);
        values.any(|value| value.starts_with("DPoP "))
    }

    fn is_read(&self) -> bool {
        self.method.as_deref() == Some("GET")
    }

    fn is_admin(&self) -> bool {
        self.surface == "admin"
    }

    /// The body: a message, if the method has one.
    fn body(&self) -> String {
        if self.is_read() {
            return String::new();
        }
        let mut message =
            json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}]});
        if let Some(skill) = &self.skill {
            message["metadata"] = json!({"skillId": skill});
        }
        let params = json!({"message": message});
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}).to_string()
    }

    /// Whether HTTP/2 can carry it: there, fields of a connection do not exist.
    pub fn fits_h2(&self) -> bool {
        let plain = |(name, value): &(String, String)| {
            !name.eq_ignore_ascii_case("connection")
                && HeaderValue::from_bytes(value.as_bytes()).is_ok()
                && value.trim() == value
        };
        !self.is_admin() && self.http.as_deref() != Some("h1") && self.headers.iter().all(plain)
    }

    fn holds_nul(&self) -> bool {
        self.headers.iter().any(|(_, value)| value.contains('\0'))
    }

    /// Over HTTP/1.1.
    pub async fn send(&self, way: &Way) -> Reply {
        if self.is_admin() {
            // The admin surface has a listener and paths of its own.
            let path = "/admin/v1/issuers";
            let stream = way.connect(way.admin).await;
            return exchange(stream, &self.bytes(&way.admin.to_string(), path)).await;
        }
        let mut config = way.tls.clone();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let stream = way.connect(way.public).await;
        let name = ServerName::try_from(HOST).unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream);
        exchange(stream.await.unwrap(), &self.bytes(HOST, &self.path)).await
    }

    fn bytes(&self, host: &str, path: &str) -> Vec<u8> {
        let body = self.body();
        let method = self.method.as_deref().unwrap_or("POST");
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n");
        if !self.is_read() {
            let length = body.len();
            head += "Content-Type: application/json\r\nA2A-Version: 1.0\r\n";
            head += &format!("Content-Length: {length}\r\n");
        }
        if !self.has("connection") {
            head += "Connection: close\r\n";
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        format!("{head}\r\n{body}").into_bytes()
    }

    /// Over HTTP/2.
    pub async fn send_h2(&self, way: &Way) -> Reply {
        let stream = way.connect(way.public).await;
        let secured = H2Client::secured(stream, HOST, way.tls.clone());
        let mut client = secured.await.unwrap();
        let mut fields = HeaderMap::new();
        if !self.is_read() {
            fields.insert("content-type", HeaderValue::from_static("application/json"));
            fields.insert("a2a-version", HeaderValue::from_static("1.0"));
        }
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            fields.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let method = self.method.as_deref().unwrap_or("POST");
        let body = self.body();
        let began = client.begin_with(method, &self.path, fields, body.as_bytes());
        let reply = began.await.unwrap().rest().await.unwrap();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Reply {
            status: reply.status,
            fields: reply
                .fields
                .iter()
                .map(|(n, v)| (n.as_str().to_owned(), text(v)))
                .collect(),
            body: reply.body.to_vec(),
        }
    }
}

/// Writes a request and reads its reply to the end of the connection.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &[u8]) -> Reply {
    stream.write_all(request).await.unwrap();
    let mut reader = http1::Reader::new(stream);
    let head = reader.head().await.unwrap().unwrap();
    let (line, fields) = http1::parse_head(&head);
    let status: u16 = line.split(' ').nth(1).unwrap().parse().unwrap();
    let mut framing = http1::framing(&fields, http1::Framing::UntilClose);
    let mut body = Vec::new();
    while let Ok(Some(piece)) = reader.piece(&mut framing).await {
        body.extend(piece);
    }
    Reply {
        status,
        fields,
        body,
    }
}

/// What is wrong with a reply, if something is.
pub fn fault(request: &Request, expect: &Expect, reply: &Reply, executed: u64) -> Option<String> {
    let accepted = expect.outcome == "accept";
    let cached = reply.field("cache-control") != Some("no-store");
    // What HTTP itself does not take has no challenge (tr-026).
    let unread = reply.status == 400 && reply.field("www-authenticate").is_none();
    let wrong = reply.status != expect.status
        || reply.error() != expect.error.as_deref() && !(unread && request.holds_nul())
        || executed != u64::from(accepted && !request.is_admin())
        || matches!(reply.status, 400 | 401 | 403) && cached;
    wrong.then(|| {
        let (status, error) = (reply.status, reply.error());
        format!("{status} {error:?}, {executed} executed; wanted {expect:?}")
    })
}
