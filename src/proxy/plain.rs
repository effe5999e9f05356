//! A listener of short plain answers, without the exchange: the admin listener.

use super::body::{self, BodyFault};
use super::limits::{Connections, STUCK_CALLER};
use crate::a2a::Fault;
use crate::pipeline::locate::is_loopback_name;
use async_trait::async_trait;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN,
};
use pingora::apps::{HttpServerApp, ReusedHttpStream};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::http::ServerSession;
use pingora::server::ShutdownWatch;
use pingora_timeout::timeout;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;

/// One answer.
pub struct PlainReply {
    /// HTTP status.
    pub status: u16,
    /// Media type.
    pub content_type: &'static str,
    /// Further fields.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Body.
    pub body: String,
}

/// One request, its body read.
pub struct PlainRequest {
    /// Method, target and header fields.
    pub head: RequestHeader,
    /// The body.
    pub body: Bytes,
    /// The address of the other end; `None` for a Unix socket.
    pub peer: Option<IpAddr>,
}

/// From a request to an answer.
pub type Respond =
    dyn Fn(PlainRequest) -> Pin<Box<dyn Future<Output = PlainReply> + Send>> + Send + Sync;

/// Answers every request by one function and closes the connection.
pub struct Plain {
    respond: Arc<Respond>,
    /// Largest body.
    max_body: usize,
    /// It listens on loopback, so that only this machine's programs are to ask.
    loopback: bool,
}

impl Plain {
    /// Answers by `respond`, on a listener that is on loopback (a Unix socket is too) or not.
    pub fn new(respond: Arc<Respond>, max_body: usize, loopback: bool) -> Plain {
        Plain {
            respond,
            max_body,
            loopback,
        }
    }

    /// `None` when the caller has left.
    async fn answer(&self, session: &mut ServerSession) -> Option<PlainReply> {
        let head = session.req_header();
        if self.is_led_here(head) {
            return Some(plain(421, "not for pages of others\n"));
        }
        let head = head.clone();
        let peer = session.client_addr().and_then(|a| a.as_inet().copied());
        let body = match body::read(session, self.max_body).await {
            Ok(body) => body,
            Err(BodyFault::Refuse(Fault::TooLarge, _)) => {
                return Some(plain(413, "the body is too large\n"));
            }
            Err(BodyFault::Refuse(..)) => return Some(plain(400, "the body cannot be read\n")),
            Err(BodyFault::CallerLeft) => return None,
        };
        let request = PlainRequest {
            head,
            body,
            peer: peer.map(|address| address.ip()),
        };
        Some((self.respond)(request).await)
    }

    /// Whether a browser asks for a page of somebody else's: one that says so, or one that was
    /// led here by a name that is made to resolve to loopback.
    fn is_led_here(&self, head: &RequestHeader) -> bool {
        let ours = |host: &http::HeaderValue| is_loopback_name(host.as_bytes());
        let host = head.headers.get(HOST);
        head.headers.contains_key(ORIGIN) || self.loopback && !host.is_some_and(ours)
    }
}

#[async_trait]
impl HttpServerApp for Plain {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        _: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        let read = {
            let mut reading = pin!(timeout(Connections::DEFAULT.head, session.read_request()));
            reading.as_mut().await
        };
        if !matches!(read, Ok(Ok(true))) {
            return None;
        }
        session.set_keepalive(None);
        session.set_write_timeout(Some(STUCK_CALLER));
        let head_only = session.req_header().method == http::Method::HEAD;
        let reply = match self.answer(&mut session).await {
            Some(reply) => reply,
            None => return None,
        };
        if write(&mut session, reply, head_only).await.is_ok() {
            if !session.is_body_done() {
                body::linger(&mut session).await;
            }
            let _ = session.finish().await;
        }
        None
    }
}

fn plain(status: u16, body: &str) -> PlainReply {
    PlainReply {
        status,
        content_type: "text/plain; charset=utf-8",
        headers: Vec::new(),
        body: body.to_owned(),
    }
}

async fn write(
    session: &mut ServerSession,
    reply: PlainReply,
    head_only: bool,
) -> Result<(), Box<pingora::Error>> {
    let mut head = ResponseHeader::build(reply.status, Some(4))?;
    head.insert_header(CONTENT_TYPE, reply.content_type)?;
    head.insert_header(CONTENT_LENGTH, reply.body.len())?;
    head.insert_header(CACHE_CONTROL, "no-store")?;
    for (name, value) in reply.headers {
        head.insert_header(name, value)?;
    }
    session.write_response_header(Box::new(head)).await?;
    let body = if head_only {
        Bytes::new()
    } else {
        Bytes::from(reply.body)
    };
    session.write_response_body(body, true).await
}
