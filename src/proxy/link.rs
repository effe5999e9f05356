//! A connection to an agent while it carries one call, in either HTTP version.

use super::links::Pools;
use super::peer::Target;
use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, StatusCode};
use pingora::http::ResponseHeader;
use pingora::protocols::http::v1::client::HttpSession;
use pingora::protocols::http::v2::client::Http2Session;
use pingora::protocols::{SocketDigest, Stream};
use pingora::upstreams::peer::Peer;
use std::sync::Arc;
use std::time::Duration;

/// Pooled connections are given up before the usual agents' servers close theirs (5 s).
const IDLE_H1: Duration = Duration::from_secs(4);
/// An HTTP/2 server says when it closes, so nothing is lost by staying.
const IDLE_H2: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<pingora::Error>>;

/// The agent's side of an exchange.
// It travels in a box of its own, and HTTP/1.1 is the usual case.
#[expect(clippy::large_enum_variant)]
pub enum Link {
    /// All of an HTTP/1.1 connection.
    H1(H1Link),
    /// One stream of an HTTP/2 connection.
    H2(Box<H2Link>),
}

impl Link {
    /// Reads the next reply header, an interim one included. Never again after a final one.
    pub async fn read_head(&mut self) -> Outcome<()> {
        match self {
            Link::H1(link) => link.session.read_response().await.map(|_| ()),
            Link::H2(link) => link.read_head().await,
        }
    }

    /// The reply header that was read last.
    pub fn head(&self) -> Option<&ResponseHeader> {
        match self {
            Link::H1(link) => link.session.resp_header(),
            Link::H2(link) => link.session().and_then(Http2Session::response_header),
        }
    }

    /// Its status.
    pub fn status(&self) -> Option<StatusCode> {
        self.head().map(|head| head.status)
    }

    /// More of the body; `None` at its end.
    pub async fn read_body(&mut self) -> Outcome<Option<Bytes>> {
        match self {
            Link::H1(link) => link.session.read_body_bytes().await,
            Link::H2(link) => match link.session.as_mut() {
                Some(session) => session.read_response_body().await,
                None => Ok(None),
            },
        }
    }

    /// Whether the reply has ended properly, with nothing left to read: neither body nor trailers.
    pub fn is_done(&mut self) -> bool {
        match self {
            Link::H1(link) => link.session.is_body_done(),
            // A stream that was reset looks ended too, so it is asked about errors.
            Link::H2(link) => link
                .session
                .as_mut()
                .is_some_and(|s| matches!(s.check_response_end_or_error(), Ok(true))),
        }
    }

    /// The trailers behind the body. HTTP/1.1 trailers are not read.
    pub async fn read_trailers(&mut self) -> Outcome<Option<HeaderMap>> {
        match self {
            Link::H1(_) => Ok(None),
            Link::H2(link) => match link.session.as_mut() {
                Some(session) => session.read_trailers().await,
                None => Ok(None),
            },
        }
    }

    /// Whether it is HTTP/2.
    pub fn is_h2(&self) -> bool {
        matches!(self, Link::H2(_))
    }

    /// Gives the connection back. One that is not `clean` carries the rest of this exchange, and
    /// in HTTP/1.1 is closed.
    pub async fn release(self, clean: bool) {
        match self {
            Link::H1(link) if clean => link.release().await,
            // Dropping a stream gives its connection back, and resets what was not finished.
            Link::H1(_) | Link::H2(_) => {}
        }
    }
}

/// An HTTP/1.1 connection that carries one call.
pub struct H1Link {
    session: HttpSession,
    target: Arc<Target>,
    pools: Arc<Pools>,
}

impl H1Link {
    /// The request has been written to `stream`.
    pub fn new(stream: Stream, target: Arc<Target>, pools: Arc<Pools>) -> H1Link {
        H1Link {
            session: HttpSession::new(stream),
            target,
            pools,
        }
    }

    async fn release(self) {
        let H1Link {
            mut session,
            target,
            pools,
        } = self;
        session.respect_keepalive();
        if let Some(stream) = session.reuse().await {
            let key = target.peer.reuse_hash();
            pools.transport().release_stream(stream, key, Some(IDLE_H1));
        }
    }
}

/// One stream of an HTTP/2 connection. However it ends, the connection is given back: otherwise
/// it would leave the pool's account of what is idle.
pub struct H2Link {
    /// `None` only while it is dropped.
    session: Option<Http2Session>,
    head_read: bool,
    target: Arc<Target>,
    pools: Arc<Pools>,
}

impl H2Link {
    /// A stream on which nothing has been sent.
    pub fn new(session: Http2Session, target: Arc<Target>, pools: Arc<Pools>) -> H2Link {
        H2Link {
            session: Some(session),
            head_read: false,
            target,
            pools,
        }
    }

    /// The stream.
    pub fn session_mut(&mut self) -> Option<&mut Http2Session> {
        self.session.as_mut()
    }

    fn session(&self) -> Option<&Http2Session> {
        self.session.as_ref()
    }

    /// Reads the header of the reply; once it is there this does nothing. May be given up and
    /// asked again.
    pub async fn read_head(&mut self) -> Outcome<()> {
        // Pingora panics when it is asked twice.
        if !self.head_read
            && let Some(session) = self.session.as_mut()
        {
            let read = session.read_response_header().await;
            self.head_read = true;
            read?;
        }
        Ok(())
    }

    /// Whether the header of the reply is there, or can never be.
    pub fn has_head(&self) -> bool {
        self.head_read
    }

    /// The socket below.
    pub fn socket(&self) -> Option<Arc<SocketDigest>> {
        let digest = self.session.as_ref()?.digest()?;
        digest.socket_digest.clone()
    }
}

impl Drop for H2Link {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.pools
                .h2()
                .release_http_session(session, &self.target.peer, Some(IDLE_H2));
        }
    }
}

/// Whether an HTTP/2 error says that the agent did not process the call, so that it may be sent
/// again: `REFUSED_STREAM`, or a `GOAWAY` below our stream (RFC 9113 sections 6.8 and 8.7). A
/// stream that a `GOAWAY` covers fails otherwise.
pub fn is_not_processed(error: &h2::Error) -> bool {
    let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    error.is_remote() && (refused || error.is_go_away())
}
