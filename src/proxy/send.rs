//! Connecting and sending, with every step written down: what was sent is what we wrote.
//!
//! A message is never sent twice. A call goes out again only when provably nothing of it left us
//! (the connection could not be made, or the very first write of a reused one failed), or when the
//! agent's HTTP/2 said that it did not process it. A read changes nothing, so it may go out once more
//! where the agent closed a reused connection while it was under way.

mod h1;
mod h2;

use super::connect::{Way, is_http1, is_other_http, open, reuse};
use super::fields::wire_of;
use super::link::{Link, is_not_processed};
use super::links::Pools;
use super::peer::{Addresses, Target};
use crate::audit::record::{AttemptError, Stage, Tcp};
use crate::config::snapshot::Speaks;
use crate::pipeline::{Attempts, Permit, Sizes, ports::Clock};
use bytes::{Bytes, BytesMut};
use pingora::http::RequestHeader;
use pingora::protocols::SocketDigest;
use pingora::protocols::http::ServerSession;
use pingora::upstreams::peer::Peer;
use pingora_timeout::timeout;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// A head and body up to this size go out in one write.
const ONE_WRITE: usize = 16 * 1024;
/// Larger bodies go out in slices; between two the agent's early reply is looked for.
const SLICE: usize = 64 * 1024;
/// How long after a failed write a reply may still be waiting for us.
const LATE_REPLY: Duration = Duration::from_millis(100);
/// Interim replies that are swallowed before the agent is taken for broken.
const MAX_INTERIM: usize = 16;

/// What is sent: the head, and the caller's bytes.
pub struct Outbound {
    /// In the form of the version that it goes out in.
    pub head: OutboundHead,
    /// The body, byte for byte as it was judged.
    pub body: Bytes,
}

/// A request head in the form of its HTTP version.
pub enum OutboundHead {
    /// HTTP/1.1, as it goes on the wire, with the empty line.
    Wire(BytesMut),
    /// HTTP/2, or whatever is agreed on.
    Fields(Box<RequestHeader>),
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
    pub link: Link,
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
    /// Connections and their pools.
    pub pools: &'a Arc<Pools>,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Where to.
    pub addresses: &'a Addresses,
    /// In which version.
    pub speaks: Speaks,
    /// Whether the call only reads, so that doing it twice does no more than doing it once.
    pub reads: bool,
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
    let Outbound { head, body } = outbound;
    let (fields, wire) = match head {
        OutboundHead::Wire(head) => (None, Some(Wire::new(head, &body))),
        OutboundHead::Fields(fields) => (Some(fields), None),
    };
    let mut call = OneCall {
        path,
        body,
        fields,
        wire,
    };
    let (mut may_reuse, mut resent) = (true, false);
    'targets: for target in path.addresses.iter() {
        loop {
            let found = call.connect(caller, target, may_reuse, attempts).await?;
            let Some((way, reused)) = found else {
                continue 'targets;
            };
            let exchanged = match way {
                Way::H1(stream) => call.exchange_h1(stream, target, caller, attempts).await,
                Way::H2(link) => call.exchange_h2(link, caller, attempts).await,
            };
            match exchanged {
                Exchanged::Answered(upstream) => return Ok(*upstream),
                // Nothing left us: a new connection is no second delivery.
                Exchanged::NothingLeft if reused => may_reuse = false,
                // Nor is it after the agent's own word that it did nothing; once is enough.
                Exchanged::NotProcessed if !resent => (may_reuse, resent) = (false, true),
                Exchanged::Failed(SendFailure::Broken) if reused && path.reads && !resent => {
                    (may_reuse, resent) = (false, true);
                }
                Exchanged::NothingLeft | Exchanged::NotProcessed => {
                    return Err(SendFailure::Broken);
                }
                Exchanged::Failed(failure) => return Err(failure),
            }
        }
    }
    Err(SendFailure::Connect)
}

enum Exchanged {
    Answered(Box<Upstream>),
    NothingLeft,
    NotProcessed,
    Failed(SendFailure),
}

struct OneCall<'a> {
    path: &'a Path<'a>,
    body: Bytes,
    fields: Option<Box<RequestHeader>>,
    /// Made when it is first needed.
    wire: Option<Wire>,
}

/// A request as HTTP/1.1 writes it.
struct Wire {
    /// The head, with the body behind it where both are small.
    first: BytesMut,
    head_len: usize,
    together: bool,
}

impl Wire {
    fn new(mut head: BytesMut, body: &[u8]) -> Wire {
        let head_len = head.len();
        let together = head_len + body.len() <= ONE_WRITE;
        if together {
            head.extend_from_slice(body);
        }
        Wire {
            first: head,
            head_len,
            together,
        }
    }
}

impl OneCall<'_> {
    fn begin(&self, attempts: &mut Attempts, target: &Target, reused: bool) {
        let now = self.path.clock.monotonic();
        let sizes = Sizes {
            head: self.wire.as_ref().map_or(0, |wire| wire.head_len as u64),
            body: self.body.len() as u64,
        };
        let since_start = now.saturating_sub(self.path.timing.started);
        let peer = target.peer.address().to_string();
        attempts.begin(peer, reused, now, since_start, sizes);
    }

    /// A way that is still open, or a new one; `None` when this address cannot be reached and the
    /// next may be tried.
    async fn connect(
        &self,
        caller: &mut ServerSession,
        target: &Arc<Target>,
        may_reuse: bool,
        attempts: &mut Attempts,
    ) -> Result<Option<(Way, bool)>, SendFailure> {
        let Path { pools, speaks, .. } = *self.path;
        if may_reuse && let Some(way) = reuse(pools, target, speaks).await {
            self.begin(attempts, target, true);
            return Ok(Some((way, true)));
        }
        self.begin(attempts, target, false);
        // Boxed: connecting is rare and its future is large.
        let bound = self.path.timing.connect;
        let mut connecting = Box::pin(timeout(bound, open(pools, target, speaks)));
        let connected = tokio::select! { biased;
            connected = connecting.as_mut() => connected,
            () = gone(caller) => {
                self.note(attempts, Stage::Connect, Some(AttemptError::CallerLeft));
                return Err(SendFailure::CallerLeft);
            }
        };
        let error = match connected {
            Ok(Ok(way)) => return Ok(Some((way, false))),
            Ok(Err(error)) => error,
            Err(_) => AttemptError::TimedOut,
        };
        self.note(attempts, Stage::Connect, Some(error));
        Ok(None)
    }

    /// The call as HTTP/1.1 writes it.
    fn wire(&mut self) -> Option<&Wire> {
        if self.wire.is_none() {
            let head = wire_of(self.fields.as_ref()?, self.body.len().min(ONE_WRITE))?;
            self.wire = Some(Wire::new(head, &self.body));
        }
        self.wire.as_ref()
    }

    /// Everything is written, or the reply is here already: waits for its header.
    async fn wait(
        &self,
        mut link: Link,
        written: bool,
        digest: Option<&SocketDigest>,
        caller: &mut ServerSession,
        attempts: &mut Attempts,
    ) -> Exchanged {
        self.note(attempts, Stage::Wait, None);
        match self.await_reply(&mut link, caller).await {
            Ok(caller_left) => {
                self.note(attempts, Stage::Response, None);
                Exchanged::Answered(Box::new(Upstream {
                    link,
                    all_written: written,
                    caller_left,
                }))
            }
            Err((failure, error)) => {
                self.note(attempts, Stage::Wait, Some(error));
                // While the link still holds the socket: its number may be another's after that.
                attempts.tcp(facts(digest));
                match error {
                    AttemptError::NotProcessed => Exchanged::NotProcessed,
                    _ => Exchanged::Failed(failure),
                }
            }
        }
    }

    /// Reads until a final status, watching the caller; says whether it has left.
    async fn await_reply(
        &self,
        link: &mut Link,
        caller: &mut ServerSession,
    ) -> Result<bool, (SendFailure, AttemptError)> {
        let mut caller_left = false;
        let mut bound = self.path.timing.first_byte;
        for _ in 0..=MAX_INTERIM {
            loop {
                let read = {
                    let mut reading = pin!(timeout(bound, link.read_head()));
                    tokio::select! { biased;
                        read = reading.as_mut() => Some(read),
                        () = gone(caller), if !caller_left => None,
                    }
                };
                match (read, self.path.timing.after_caller_left) {
                    (Some(Ok(Ok(()))), _) => break,
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
            match link.status() {
                Some(status) if status.as_u16() == 101 => {
                    return Err((SendFailure::BadReply, AttemptError::Protocol));
                }
                Some(status) if status.is_informational() => {}
                Some(_) => return Ok(caller_left),
                None => return Err((SendFailure::BadReply, AttemptError::Protocol)),
            }
        }
        Err((SendFailure::BadReply, AttemptError::Protocol))
    }

    /// An agent may answer and close without reading on: after a failed write its reply is worth a
    /// look.
    async fn late_reply(
        &self,
        mut link: Link,
        error: AttemptError,
        attempts: &mut Attempts,
    ) -> Exchanged {
        let read = timeout(LATE_REPLY, link.read_head()).await;
        let is_final = link.status().is_some_and(|s| !s.is_informational());
        if matches!(read, Ok(Ok(()))) && is_final {
            self.note(attempts, Stage::Response, Some(error));
            return Exchanged::Answered(Box::new(Upstream {
                link,
                all_written: false,
                caller_left: false,
            }));
        }
        match error {
            AttemptError::TimedOut => Exchanged::Failed(SendFailure::TooSlow),
            _ => Exchanged::Failed(SendFailure::Broken),
        }
    }

    fn note(&self, attempts: &mut Attempts, stage: Stage, error: Option<AttemptError>) {
        attempts.enter(stage, error, self.path.clock.monotonic());
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

/// Of a connection on which no head of a reply was read.
fn read_failure(error: &pingora::Error) -> (SendFailure, AttemptError) {
    use pingora::ErrorType;
    if is_other_http(error) {
        return (SendFailure::BadReply, AttemptError::OtherHttp);
    }
    if let Some(h2) = error.root_cause().downcast_ref::<::h2::Error>() {
        return match h2_error(h2) {
            AttemptError::Protocol => (SendFailure::BadReply, AttemptError::Protocol),
            error => (SendFailure::Broken, error),
        };
    }
    match error.etype() {
        ErrorType::ConnectionClosed => (SendFailure::Broken, AttemptError::Closed),
        ErrorType::ReadError => (SendFailure::Broken, AttemptError::Reset),
        ErrorType::ReadTimedout => (SendFailure::TooSlow, AttemptError::TimedOut),
        _ => (SendFailure::BadReply, AttemptError::Protocol),
    }
}

fn h2_error(error: &::h2::Error) -> AttemptError {
    if is_not_processed(error) {
        AttemptError::NotProcessed
    } else if is_http1(error) {
        AttemptError::OtherHttp
    } else if error.is_io() {
        AttemptError::Closed
    } else if error.is_remote() {
        AttemptError::Reset
    } else {
        AttemptError::Protocol
    }
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
