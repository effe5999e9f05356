//! Writing a call to an HTTP/1.1 connection.

use super::{Exchanged, OneCall, SLICE, SendFailure, Target, Wire, Written, facts, gone};
use crate::audit::record::{AttemptError, Stage};
use crate::pipeline::Attempts;
use crate::proxy::link::{H1Link, Link};
use pingora::protocols::http::ServerSession;
use pingora::protocols::{SocketDigest, Stream};
use pingora_timeout::timeout;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// How often a stuck write looks for an early reply.
const STUCK_LOOK: Duration = Duration::from_millis(100);

impl OneCall<'_> {
    pub(super) async fn exchange_h1(
        &mut self,
        mut stream: Stream,
        target: &Arc<Target>,
        caller: &mut ServerSession,
        attempts: &mut Attempts,
    ) -> Exchanged {
        let digest = stream.get_socket_digest();
        self.note(attempts, Stage::Header, None);
        if self.wire().is_none() {
            return Exchanged::Failed(SendFailure::Broken);
        }
        let call = &*self;
        let Some(wire) = &call.wire else {
            return Exchanged::Failed(SendFailure::Broken);
        };
        attempts.head_is(wire.head_len as u64);
        let secured = target.security.is_some();
        let before = secured.then(|| taken(digest.as_deref())).flatten();
        let may_leave = call.path.timing.after_caller_left.is_none();
        let written = {
            let mut writing = pin!(call.write(wire, &mut stream, attempts));
            tokio::select! { biased;
                written = writing.as_mut() => Some(written),
                () = gone(caller), if may_leave => None,
            }
        };
        let link = |stream| {
            let pools = call.path.pools.clone();
            Link::H1(H1Link::new(stream, target.clone(), pools))
        };
        let all_written = match written {
            Some(Written::All) => true,
            Some(Written::EarlyReply) => false,
            Some(Written::Failed(error)) => {
                attempts.enter_error(error, call.path.clock.monotonic());
                attempts.tcp(facts(digest.as_deref()));
                // TLS may have handed over a part of what it says it could not take.
                let all_here = !secured || nothing_left(before, taken(digest.as_deref()));
                match attempts.sent() {
                    0 if all_here => return Exchanged::NothingLeft,
                    0 => attempts.wrote(1),
                    _ => {}
                }
                return call.late_reply(link(stream), error, attempts).await;
            }
            None => {
                attempts.enter_error(AttemptError::CallerLeft, call.path.clock.monotonic());
                return Exchanged::Failed(SendFailure::CallerLeft);
            }
        };
        let digest = digest.as_deref();
        call.wait(link(stream), all_written, digest, caller, attempts)
            .await
    }

    async fn write(&self, wire: &Wire, stream: &mut Stream, attempts: &mut Attempts) -> Written {
        let rest: &[u8] = if wire.together { &[] } else { &self.body };
        for (part, before) in [(&wire.first[..], 0), (rest, wire.first.len())] {
            let mut at = 0;
            while at < part.len() {
                let slice = &part[at..part.len().min(at + SLICE)];
                match self.write_some(stream, slice).await {
                    Ok(written) => at += written,
                    Err(done) => return done,
                }
                attempts.wrote((before + at) as u64);
                if !rest.is_empty() && has_early_reply(stream) {
                    return Written::EarlyReply;
                }
            }
        }
        // A TLS connection may still hold a part of what it took.
        let flushed = {
            let mut flushing = pin!(stream.flush());
            timeout(self.path.timing.send, flushing.as_mut()).await
        };
        match flushed {
            Ok(Ok(())) => Written::All,
            Ok(Err(_)) => Written::Failed(AttemptError::Reset),
            Err(_) => Written::Failed(AttemptError::TimedOut),
        }
    }

    /// One write; while it is stuck, an early reply is looked for.
    ///
    /// A single `write` takes bytes or does not, also over TLS, so giving one up loses nothing.
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
                    if waited >= self.path.timing.send {
                        return Err(Written::Failed(AttemptError::TimedOut));
                    }
                }
            }
        }
    }
}

/// Bytes that the kernel was given for a connection so far, sent or not.
fn taken(digest: Option<&SocketDigest>) -> Option<u64> {
    facts(digest).map(|tcp| tcp.bytes_sent.saturating_add(tcp.notsent))
}

/// Whether the kernel provably was given nothing between two looks.
fn nothing_left(before: Option<u64>, after: Option<u64>) -> bool {
    before.is_some() && before == after
}

/// Looks once, without waiting, whether a byte of a reply is there. The stream puts it back.
fn has_early_reply(stream: &mut Stream) -> bool {
    let mut byte = [0u8; 1];
    let mut peeking = pin!(stream.try_peek(&mut byte));
    let mut context = Context::from_waker(Waker::noop());
    matches!(peeking.as_mut().poll(&mut context), Poll::Ready(Ok(true)))
}

#[cfg(test)]
mod tests {
    use super::nothing_left;

    #[test]
    fn only_what_the_kernel_can_show_is_proof() {
        assert!(nothing_left(Some(700), Some(700)));
        for (before, after) in [(Some(700), Some(701)), (None, Some(700)), (None, None)] {
            assert!(!nothing_left(before, after), "{before:?} {after:?}");
        }
    }
}
