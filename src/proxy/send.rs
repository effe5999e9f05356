//! Connecting and sending, with every step written down: what was sent is what we wrote.
//!
//! A message is never sent twice. A call goes out again only when provably nothing of it left us:
//! the connection could not be made, or the very first write of a reused connection failed.

use super::peer::Addresses;
use crate::audit::record::{AttemptError, Stage, Tcp};
use crate::pipeline::{Attempts, Permit, Sizes, ports::Clock};
use bytes::{Bytes, BytesMut};
use pingora::connectors::TransportConnector;
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::v1::client::HttpSession;
use pingora::protocols::{SocketDigest, Stream};
use pingora::upstreams::peer::{HttpPeer, Peer};
use pingora_timeout::timeout;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// A head and body up to this size go out in one write.
const ONE_WRITE: usize = 16 * 1024;
/// Larger bodies go out in slices; between two the agent's early reply is looked for.
const SLICE: usize = 64 * 1024;
/// How often a stuck write looks for an early reply.
const STUCK_LOOK: Duration = Duration::from_millis(100);
/// How long after a failed write a reply may still be waiting for us.
const LATE_REPLY: Duration = Duration::from_millis(100);
/// Interim replies that are swallowed before the agent is taken for broken.
const MAX_INTERIM: usize = 16;
/// `TCP_ESTABLISHED` of Linux.
const ESTABLISHED: u8 = 1;

/// What is sent: the head as it goes on the wire, and the caller's bytes.
pub struct Outbound {
    /// Request line and fields, with the empty line.
    pub head: BytesMut,
    /// The body, byte for byte as it was judged.
    pub body: Bytes,
}

/// Separate bounds for each step.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// The request's start, monotonic.
    pub started: Duration,
    /// For each connection.
    pub connect: Duration,
    /// For the whole of a write that does not move.
    pub send: Duration,
    /// For the reply's first byte.
    pub first_byte: Duration,
    /// How long we read on after the caller left, to learn what became of the call.
    pub after_caller_left: Option<Duration>,
}

/// An agent that answers.
pub struct Upstream {
    /// The connection, its reply header read.
    pub link: HttpSession,
    /// The peer's key in the pool.
    pub pool_key: u64,
    /// Whether all of the request was written: only then the connection may be used again.
    pub all_written: bool,
    /// The caller left before the reply began, and we read on without it.
    pub caller_left: bool,
}

/// Why there is no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendFailure {
    /// No connection.
    Connect,
    /// The connection broke or closed before a reply header.
    Broken,
    /// The agent took too long to take the request or to answer it.
    TooSlow,
    /// What came is not an HTTP reply that we can pass on.
    BadReply,
    /// The caller left first.
    CallerLeft,
}

/// What sending needs beside the call.
pub struct Path<'a> {
    /// Connections and their pool.
    pub transport: &'a TransportConnector,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Where to.
    pub addresses: &'a Addresses,
    /// Bounds.
    pub timing: Timing,
}

/// Sends one permitted call and waits for the header of its reply.
///
/// `attempts` is filled as things happen, so that it is right even when this future is dropped.
pub async fn send(
    path: &Path<'_>,
    caller: &mut ServerSession,
    _permit: &Permit,
    outbound: Outbound,
    attempts: &mut Attempts,
) -> Result<Upstream, SendFailure> {
    let Path {
        transport,
        clock,
        addresses,
        timing,
    } = *path;
    let Outbound { mut head, body } = outbound;
    let together = head.len() + body.len() <= ONE_WRITE;
    if together {
        head.extend_from_slice(&body);
    }
    let rest: &[u8] = if together { &[] } else { &body };
    let call = OneCall {
        clock,
        started: timing.started,
        first: &head,
        rest,
        body_len: body.len(),
        timing,
    };
    let mut reuse = true;
    'peers: for peer in addresses.iter() {
        loop {
            let Some((stream, reused)) = call
                .connect(transport, caller, peer, reuse, attempts)
                .await?
            else {
                continue 'peers;
            };
            match call.exchange(stream, peer, caller, attempts).await {
                Exchanged::Answered(upstream) => return Ok(*upstream),
                // Nothing left us: a new connection is no second delivery.
                Exchanged::NothingLeft if reused => reuse = false,
                Exchanged::NothingLeft => return Err(SendFailure::Broken),
                Exchanged::Failed(failure) => return Err(failure),
            }
        }
    }
    Err(SendFailure::Connect)
}

enum Exchanged {
    Answered(Box<Upstream>),
    NothingLeft,
    Failed(SendFailure),
}

struct OneCall<'a> {
    clock: &'a dyn Clock,
    started: Duration,
    first: &'a [u8],
    rest: &'a [u8],
    body_len: usize,
    timing: Timing,
}

impl OneCall<'_> {
    fn begin(&self, attempts: &mut Attempts, peer: &HttpPeer, reused: bool) {
        let now = self.clock.monotonic();
        let sizes = Sizes {
            head: (self.first.len() + self.rest.len() - self.body_len) as u64,
            body: self.body_len as u64,
        };
        let since_start = now.saturating_sub(self.started);
        attempts.begin(peer.address().to_string(), reused, now, since_start, sizes);
    }

    /// A pooled connection that is still open, or a new one; `None` when this peer cannot be
    /// reached and the next may be tried.
    async fn connect(
        &self,
        transport: &TransportConnector,
        caller: &mut ServerSession,
        peer: &HttpPeer,
        reuse: bool,
        attempts: &mut Attempts,
    ) -> Result<Option<(Stream, bool)>, SendFailure> {
        if reuse
            && let Some(stream) = transport.reused_stream(peer).await
            && is_established(&stream)
        {
            self.begin(attempts, peer, true);
            return Ok(Some((stream, true)));
        }
        self.begin(attempts, peer, false);
        // Boxed: connecting is rare and its future is large.
        let mut connecting = Box::pin(timeout(self.timing.connect, transport.new_stream(peer)));
        let connected = tokio::select! { biased;
            connected = connecting.as_mut() => connected,
            () = gone(caller) => {
                self.note(attempts, Stage::Connect, Some(AttemptError::CallerLeft));
                return Err(SendFailure::CallerLeft);
            }
        };
        match connected {
            Ok(Ok(stream)) => Ok(Some((stream, false))),
            Ok(Err(error)) => {
                let error = match error.etype() {
                    pingora::ErrorType::ConnectRefused => AttemptError::Refused,
                    pingora::ErrorType::ConnectTimedout => AttemptError::TimedOut,
                    _ => AttemptError::Unreachable,
                };
                self.note(attempts, Stage::Connect, Some(error));
                Ok(None)
            }
            Err(_) => {
                self.note(attempts, Stage::Connect, Some(AttemptError::TimedOut));
                Ok(None)
            }
        }
    }

    async fn exchange(
        &self,
        mut stream: Stream,
        peer: &HttpPeer,
        caller: &mut ServerSession,
        attempts: &mut Attempts,
    ) -> Exchanged {
        let digest = stream.get_socket_digest();
        self.note(attempts, Stage::Header, None);
        let written = {
            let mut writing = pin!(self.write(&mut stream, attempts));
            tokio::select! { biased;
                written = writing.as_mut() => Some(written),
                () = gone(caller), if self.timing.after_caller_left.is_none() => None,
            }
        };
        let all_written = match written {
            Some(Written::All) => true,
            Some(Written::EarlyReply) => false,
            Some(Written::Failed(error)) => {
                attempts.enter_error(error, self.clock.monotonic());
                attempts.tcp(facts(digest.as_deref()));
                if attempts.sent() == 0 {
                    return Exchanged::NothingLeft;
                }
                // An agent may answer and close without reading on: its reply is worth a look.
                return match self.late_reply(stream, peer).await {
                    Some(upstream) => {
                        self.note(attempts, Stage::Response, Some(error));
                        Exchanged::Answered(Box::new(upstream))
                    }
                    None if error == AttemptError::TimedOut => {
                        Exchanged::Failed(SendFailure::TooSlow)
                    }
                    None => Exchanged::Failed(SendFailure::Broken),
                };
            }
            None => {
                attempts.enter_error(AttemptError::CallerLeft, self.clock.monotonic());
                return Exchanged::Failed(SendFailure::CallerLeft);
            }
        };
        self.note(attempts, Stage::Wait, None);
        let link = HttpSession::new(stream);
        match self.await_reply(link, caller).await {
            Ok((link, caller_left)) => {
                self.note(attempts, Stage::Response, None);
                Exchanged::Answered(Box::new(Upstream {
                    link,
                    pool_key: peer.reuse_hash(),
                    all_written,
                    caller_left,
                }))
            }
            Err((failure, error)) => {
                self.note(attempts, Stage::Wait, Some(error));
                attempts.tcp(facts(digest.as_deref()));
                Exchanged::Failed(failure)
            }
        }
    }

    async fn write(&self, stream: &mut Stream, attempts: &mut Attempts) -> Written {
        for (part, before) in [(self.first, 0), (self.rest, self.first.len())] {
            let mut at = 0;
            while at < part.len() {
                let slice = &part[at..part.len().min(at + SLICE)];
                match self.write_some(stream, slice).await {
                    Ok(written) => at += written,
                    Err(done) => return done,
                }
                attempts.wrote((before + at) as u64);
                if !self.rest.is_empty() && has_early_reply(stream) {
                    return Written::EarlyReply;
                }
            }
        }
        match stream.flush().await {
            Ok(()) => Written::All,
            Err(_) => Written::Failed(AttemptError::Reset),
        }
    }

    /// One write; while it is stuck, an early reply is looked for.
    ///
    /// A single `write` on a plain socket takes bytes or does not, so giving one up loses nothing.
    async fn write_some(&self, stream: &mut Stream, slice: &[u8]) -> Result<usize, Written> {
        let mut waited = Duration::ZERO;
        loop {
            let result = {
                let mut writing = pin!(stream.write(slice));
                timeout(STUCK_LOOK, writing.as_mut()).await
            };
            match result {
                Ok(Ok(0)) => return Err(Written::Failed(AttemptError::Closed)),
                Ok(Ok(written)) => return Ok(written),
                Ok(Err(_)) => return Err(Written::Failed(AttemptError::Reset)),
                Err(_) => {
                    waited += STUCK_LOOK;
                    if has_early_reply(stream) {
                        return Err(Written::EarlyReply);
                    }
                    if waited >= self.timing.send {
                        return Err(Written::Failed(AttemptError::TimedOut));
                    }
                }
            }
        }
    }

    async fn late_reply(&self, stream: Stream, peer: &HttpPeer) -> Option<Upstream> {
        let mut link = HttpSession::new(stream);
        let read = timeout(LATE_REPLY, link.read_response()).await;
        let final_status = link.get_status().is_some_and(|s| !s.is_informational());
        (matches!(read, Ok(Ok(_))) && final_status).then(|| Upstream {
            link,
            pool_key: peer.reuse_hash(),
            all_written: false,
            caller_left: false,
        })
    }

    /// Reads until a final status, watching the caller.
    async fn await_reply(
        &self,
        mut link: HttpSession,
        caller: &mut ServerSession,
    ) -> Result<(HttpSession, bool), (SendFailure, AttemptError)> {
        let mut caller_left = false;
        let mut bound = self.timing.first_byte;
        for _ in 0..=MAX_INTERIM {
            loop {
                let read = {
                    let mut reading = pin!(timeout(bound, link.read_response()));
                    tokio::select! { biased;
                        read = reading.as_mut() => Some(read),
                        () = gone(caller), if !caller_left => None,
                    }
                };
                match (read, self.timing.after_caller_left) {
                    (Some(Ok(Ok(_))), _) => break,
                    (Some(Ok(Err(error))), _) => return Err(read_failure(&error)),
                    (Some(Err(_)), _) if caller_left => {
                        return Err((SendFailure::CallerLeft, AttemptError::TimedOut));
                    }
                    (Some(Err(_)), _) => {
                        return Err((SendFailure::TooSlow, AttemptError::TimedOut));
                    }
                    (None, Some(on)) => {
                        caller_left = true;
                        bound = on;
                    }
                    (None, None) => {
                        return Err((SendFailure::CallerLeft, AttemptError::CallerLeft));
                    }
                }
            }
            match link.get_status() {
                Some(status) if status.as_u16() == 101 => {
                    return Err((SendFailure::BadReply, AttemptError::Protocol));
                }
                Some(status) if status.is_informational() => {}
                Some(_) => return Ok((link, caller_left)),
                None => return Err((SendFailure::BadReply, AttemptError::Protocol)),
            }
        }
        Err((SendFailure::BadReply, AttemptError::Protocol))
    }

    fn note(&self, attempts: &mut Attempts, stage: Stage, error: Option<AttemptError>) {
        attempts.enter(stage, error, self.clock.monotonic());
    }
}

/// What the kernel knows of a failed connection: evidence for the record, no reason to resend.
fn facts(digest: Option<&SocketDigest>) -> Option<Tcp> {
    digest.and_then(SocketDigest::tcp_info).map(|info| Tcp {
        state: info.tcpi_state,
        bytes_sent: info.tcpi_bytes_sent,
        bytes_acked: info.tcpi_bytes_acked,
        notsent: u64::from(info.tcpi_notsent_bytes),
    })
}

enum Written {
    All,
    /// The agent answers before it has read everything.
    EarlyReply,
    Failed(AttemptError),
}

fn read_failure(error: &pingora::Error) -> (SendFailure, AttemptError) {
    use pingora::ErrorType;
    match error.etype() {
        ErrorType::ConnectionClosed => (SendFailure::Broken, AttemptError::Closed),
        ErrorType::ReadError => (SendFailure::Broken, AttemptError::Reset),
        ErrorType::ReadTimedout => (SendFailure::TooSlow, AttemptError::TimedOut),
        _ => (SendFailure::BadReply, AttemptError::Protocol),
    }
}

/// Looks once, without waiting, whether a byte of a reply is there. Pingora puts it back.
fn has_early_reply(stream: &mut Stream) -> bool {
    let mut byte = [0u8; 1];
    let mut peeking = pin!(stream.try_peek(&mut byte));
    let mut context = Context::from_waker(Waker::noop());
    matches!(peeking.as_mut().poll(&mut context), Poll::Ready(Ok(true)))
}

/// Whether the kernel still holds a pooled connection open: other than established means that the
/// agent's close is already here.
fn is_established(stream: &Stream) -> bool {
    stream
        .get_socket_digest()
        .and_then(|digest| digest.tcp_info())
        .is_none_or(|info| info.tcpi_state == ESTABLISHED)
}

/// Resolves when the caller has left, and never otherwise.
///
/// Always asked with `false`: with `true`, Pingora eats a byte of an unread body.
pub async fn gone(caller: &mut ServerSession) {
    loop {
        match caller.read_body_or_idle(false).await {
            Ok(Some(_)) => {}
            Ok(None) => {}
            Err(_) => return,
        }
    }
}
