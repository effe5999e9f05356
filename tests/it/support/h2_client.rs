//! A caller that speaks HTTP/2, over plaintext or TLS.

use super::h2_agent::fields;
use super::within;
use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request};
use rustls::pki_types::ServerName;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

/// A connection.
pub struct H2Client {
    sender: SendRequest<Bytes>,
    authority: String,
    scheme: &'static str,
    task: JoinHandle<()>,
}

/// A reply as far as it came.
#[derive(Debug, Clone)]
pub struct H2Response {
    pub status: u16,
    pub fields: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: Option<HeaderMap>,
}

impl H2Response {
    /// The first field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(|v| v.to_str().ok())
    }

    /// The same among the trailers.
    pub fn trailer(&self, name: &str) -> Option<&str> {
        let trailers = self.trailers.as_ref()?;
        trailers.get(name).and_then(|v| v.to_str().ok())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A reply that is still coming.
pub struct H2Reply {
    pub status: u16,
    pub fields: HeaderMap,
    body: RecvStream,
    writer: SendStream<Bytes>,
}

impl H2Reply {
    /// More of the body; `None` at its end.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, h2::Error> {
        let chunk = within("a piece", self.body.data()).await.transpose()?;
        if let Some(chunk) = &chunk {
            let _ = self.body.flow_control().release_capacity(chunk.len());
        }
        Ok(chunk)
    }

    /// What follows the body.
    pub async fn trailers(&mut self) -> Result<Option<HeaderMap>, h2::Error> {
        within("trailers", self.body.trailers()).await
    }

    /// Everything else.
    pub async fn rest(mut self) -> Result<H2Response, h2::Error> {
        let mut body = Vec::new();
        while let Some(chunk) = self.piece().await? {
            body.extend_from_slice(&chunk);
        }
        let trailers = self.trailers().await?;
        Ok(H2Response {
            status: self.status,
            fields: self.fields,
            body,
            trailers,
        })
    }

    /// Leaves.
    pub fn leave(mut self) {
        self.writer.send_reset(Reason::CANCEL);
    }
}

impl H2Client {
    /// In plaintext, by prior knowledge.
    pub async fn connect(address: SocketAddr) -> H2Client {
        let stream = TcpStream::connect(address).await.unwrap();
        H2Client::over(stream, "http", &address.to_string()).await
    }

    /// Over TLS; `Err` when the handshake fails.
    pub async fn connect_tls(
        address: SocketAddr,
        name: &str,
        config: rustls::ClientConfig,
    ) -> std::io::Result<H2Client> {
        let stream = TcpStream::connect(address).await?;
        H2Client::secured(stream, name, config).await
    }

    /// The same on a connection that is there.
    pub async fn secured(
        stream: TcpStream,
        name: &str,
        mut config: rustls::ClientConfig,
    ) -> std::io::Result<H2Client> {
        config.alpn_protocols = vec![b"h2".to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        let server = ServerName::try_from(name.to_owned()).unwrap();
        let stream = connector.connect(server, stream).await?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        Ok(H2Client::over(stream, "https", name).await)
    }

    async fn over<S>(stream: S, scheme: &'static str, authority: &str) -> H2Client
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = h2::client::Builder::new()
            .initial_window_size(1 << 20)
            .initial_connection_window_size(1 << 22)
            .handshake(stream)
            .await
            .unwrap();
        H2Client {
            sender,
            authority: authority.to_owned(),
            scheme,
            task: tokio::spawn(async move {
                let _ = connection.await;
            }),
        }
    }

    /// Says this authority from now on.
    pub fn call_it(&mut self, authority: &str) {
        self.authority = authority.to_owned();
    }

    /// Sends a request and waits for the header of its reply.
    pub async fn begin(
        &mut self,
        method: &str,
        path: &str,
        list: &[(&'static str, String)],
        body: &[u8],
    ) -> Result<H2Reply, h2::Error> {
        self.begin_with(method, path, fields(list), body).await
    }

    /// The same with fields as they are.
    pub async fn begin_with(
        &mut self,
        method: &str,
        path: &str,
        fields: HeaderMap,
        body: &[u8],
    ) -> Result<H2Reply, h2::Error> {
        let uri = format!("{}://{}{path}", self.scheme, self.authority);
        let mut request = Request::builder().method(method).uri(uri).body(()).unwrap();
        *request.headers_mut() = fields;
        let mut sender = within("a place", self.sender.clone().ready()).await?;
        let (reply, mut writer) = sender.send_request(request, body.is_empty())?;
        let mut left = Bytes::copy_from_slice(body);
        // The reply may come before all of it is taken.
        let mut reply = std::pin::pin!(reply);
        let mut early = None;
        while !left.is_empty() && early.is_none() {
            writer.reserve_capacity(left.len());
            tokio::select! {
                capacity = poll_fn(|c| writer.poll_capacity(c)) => match capacity {
                    Some(Ok(many)) => {
                        let part = left.split_to(many.min(left.len()));
                        writer.send_data(part, left.is_empty())?;
                    }
                    Some(Err(_)) | None => break,
                },
                head = reply.as_mut() => early = Some(head?),
            }
        }
        let response = match early {
            Some(response) => response,
            None => within("a reply", reply).await?,
        };
        let (head, body) = response.into_parts();
        Ok(H2Reply {
            status: head.status.as_u16(),
            fields: head.headers,
            body,
            writer,
        })
    }

    /// Sends a request and reads its reply.
    pub async fn request(
        &mut self,
        method: &str,
        path: &str,
        list: &[(&'static str, String)],
        body: &[u8],
    ) -> Result<H2Response, h2::Error> {
        self.begin(method, path, list, body).await?.rest().await
    }

    /// Posts JSON.
    pub async fn post_json(
        &mut self,
        path: &str,
        token: Option<&str>,
        body: &str,
    ) -> Result<H2Response, h2::Error> {
        let mut list = vec![("content-type", "application/json".to_owned())];
        list.extend(token.map(|token| ("authorization", format!("Bearer {token}"))));
        self.request("POST", path, &list, body.as_bytes()).await
    }

    /// Whether the other side closes the connection, within the patience of tests.
    pub async fn until_closed(mut self) {
        within("the end of the connection", &mut self.task)
            .await
            .unwrap();
    }
}

impl Drop for H2Client {
    fn drop(&mut self) {
        self.task.abort();
    }
}
