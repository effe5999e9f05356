//! A client that sends exactly the bytes it is given.

use super::http1::{self, Fields, Framing, Reader};
use super::within;
use std::io;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// One connection. Dropping it closes it.
pub struct Client {
    reader: Reader<TcpStream>,
}

/// Status and fields of an answer whose body is still to come.
#[derive(Debug, Clone)]
pub struct Head {
    pub status: u16,
    pub fields: Fields,
    /// The block as it came.
    pub raw: Vec<u8>,
    framing: Framing,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub fields: Fields,
    pub body: Vec<u8>,
}

impl Response {
    pub fn field(&self, name: &str) -> Option<&str> {
        http1::field(&self.fields, name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; fails the test with the body when it is none.
    pub fn json(&self) -> serde_json::Value {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => panic!("{error} in `{}`", self.text()),
        }
    }
}

impl Head {
    pub fn field(&self, name: &str) -> Option<&str> {
        http1::field(&self.fields, name)
    }
}

impl Client {
    pub async fn connect(address: SocketAddr) -> io::Result<Client> {
        let stream = within("a connection", TcpStream::connect(address)).await?;
        stream.set_nodelay(true)?;
        Ok(Client {
            reader: Reader::new(stream),
        })
    }

    /// Sends bytes as they are.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = self.reader.inner_mut();
        within("a write", stream.write_all(bytes)).await
    }

    /// Says that nothing more will be sent, and can still read.
    pub async fn half_close(&mut self) -> io::Result<()> {
        self.reader.inner_mut().shutdown().await
    }

    /// The next final header block; interim answers (1xx) are skipped. `None` when the server
    /// closed without a byte.
    pub async fn head(&mut self) -> io::Result<Option<Head>> {
        within("a response header", async {
            loop {
                let Some(raw) = self.reader.head().await? else {
                    return Ok(None);
                };
                let (line, fields) = http1::parse_head(&raw);
                let status = line.split(' ').nth(1).and_then(|s| s.parse().ok());
                let status: u16 =
                    status.ok_or_else(|| io::Error::other(format!("status line `{line}`")))?;
                if (100..200).contains(&status) && status != 101 {
                    continue;
                }
                let framing = match status {
                    204 | 304 => Framing::Length(0),
                    _ => http1::framing(&fields, Framing::UntilClose),
                };
                return Ok(Some(Head {
                    status,
                    fields,
                    raw,
                    framing,
                }));
            }
        })
        .await
    }

    /// The next piece of the body that belongs to `head`; `None` at its proper end, an error when
    /// the connection ended before.
    pub async fn piece(&mut self, head: &mut Head) -> io::Result<Option<Vec<u8>>> {
        within("a piece of a body", self.reader.piece(&mut head.framing)).await
    }

    /// Reads the body until it contains `text`, and returns what was read of it.
    pub async fn body_until(&mut self, head: &mut Head, text: &str) -> io::Result<String> {
        let mut read = Vec::new();
        loop {
            let so_far = String::from_utf8_lossy(&read);
            if so_far.contains(text) {
                return Ok(so_far.into_owned());
            }
            match self.piece(head).await? {
                Some(piece) => read.extend_from_slice(&piece),
                None => return Err(io::Error::other(format!("`{text}` not in `{so_far}`"))),
            }
        }
    }

    /// A whole answer to a request that was not HEAD.
    pub async fn response(&mut self) -> io::Result<Response> {
        let Some(mut head) = self.head().await? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let mut body = Vec::new();
        while let Some(piece) = self.piece(&mut head).await? {
            body.extend_from_slice(&piece);
        }
        Ok(Response {
            status: head.status,
            fields: head.fields,
            body,
        })
    }

    /// Whether the server closed, without another byte.
    pub async fn is_closed(&mut self) -> bool {
        within("the server to close", async {
            matches!(self.reader.head().await, Ok(None) | Err(_))
        })
        .await
    }

    /// Sends a request with these fields (`Host` is added unless given) and a `Content-Length`.
    pub async fn request(
        &mut self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response> {
        let head = request_head(method, path, fields, Some(body.len()));
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        self.send(&bytes).await?;
        self.response().await
    }

    /// Posts JSON with a bearer token on this connection.
    pub async fn post_json(
        &mut self,
        path: &str,
        token: Option<&str>,
        fields: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Response> {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let mut all = vec![("Content-Type", "application/json")];
        all.extend(bearer.iter().map(|b| ("Authorization", b.as_str())));
        all.extend_from_slice(fields);
        self.request("POST", path, &all, body.as_bytes()).await
    }
}

/// A request's header block. Without a `length` there is no `Content-Length`.
pub fn request_head(
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
    length: Option<usize>,
) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !fields.iter().any(|(n, _)| n.eq_ignore_ascii_case("host")) {
        head.push_str("Host: localhost\r\n");
    }
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(length) = length {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    head + "\r\n"
}

/// Posts JSON on a connection of its own. A 1.0 method needs `("A2A-Version", "1.0")`.
pub async fn post_json(
    address: SocketAddr,
    path: &str,
    token: Option<&str>,
    fields: &[(&str, &str)],
    body: &str,
) -> io::Result<Response> {
    let mut client = Client::connect(address).await?;
    client.post_json(path, token, fields, body).await
}

/// Gets `path` on a connection of its own.
pub async fn get(address: SocketAddr, path: &str, fields: &[(&str, &str)]) -> io::Result<Response> {
    let mut client = Client::connect(address).await?;
    client
        .send(request_head("GET", path, fields, None).as_bytes())
        .await?;
    client.response().await
}
