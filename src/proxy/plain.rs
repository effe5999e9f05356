//! A listener of short plain answers, without the exchange: the admin listener.

use super::limits::{Connections, STUCK_CALLER};
use crate::pipeline::locate::is_loopback_name;
use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN};
use pingora::apps::{HttpServerApp, ReusedHttpStream};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::http::ServerSession;
use pingora::server::ShutdownWatch;
use pingora_timeout::timeout;
use std::pin::pin;
use std::sync::Arc;

/// One answer.
pub struct PlainReply {
    /// HTTP status.
    pub status: u16,
    /// Media type.
    pub content_type: &'static str,
    /// Methods, for a 405.
    pub allow: Option<&'static str>,
    /// Body.
    pub body: String,
}

/// From method and path, without the query, to an answer.
pub type Respond = dyn Fn(&str, &str) -> PlainReply + Send + Sync;

/// Answers every request by one function and closes the connection.
pub struct Plain {
    respond: Arc<Respond>,
    /// It listens on loopback, so that only this machine's programs are to ask.
    loopback: bool,
}

impl Plain {
    /// Answers by `respond`, on a listener that is on loopback or not.
    pub fn new(respond: Arc<Respond>, loopback: bool) -> Plain {
        Plain { respond, loopback }
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
        let head = session.req_header();
        let target = String::from_utf8_lossy(head.raw_path());
        let path = target.split('?').next().unwrap_or_default();
        let reply = if self.is_led_here(head) {
            PlainReply {
                status: 421,
                content_type: "text/plain; charset=utf-8",
                allow: None,
                body: "not for pages of others\n".to_owned(),
            }
        } else {
            (self.respond)(head.method.as_str(), path)
        };
        let head_only = head.method == http::Method::HEAD;
        if write(&mut session, reply, head_only).await.is_ok() {
            let _ = session.finish().await;
        }
        None
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
    if let Some(allow) = reply.allow {
        head.insert_header(ALLOW, allow)?;
    }
    session.write_response_header(Box::new(head)).await?;
    let body = if head_only {
        Bytes::new()
    } else {
        Bytes::from(reply.body)
    };
    session.write_response_body(body, true).await
}
