//! Writing a call to an HTTP/1.1 connection.

use super::{Exchanged, OneCall, SLICE, SendFailure, Target, Wire, Written, facts, gone};
use crate::audit::record::{AttemptError, Stage};
use crate::pipeline::Attempts;
use crate::proxy::link::{H1Link, Link};
use pingora::protocols::Stream;
use pingora::protocols::http::ServerSession;
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
                if attempts.sent() == 0 {
                    return Exchanged::NothingLeft;
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

/// Looks once, without waiting, whether a byte of a reply is there. The stream puts it back.
fn has_early_reply(stream: &mut Stream) -> bool {
    let mut byte = [0u8; 1];
    let mut peeking = pin!(stream.try_peek(&mut byte));
    let mut context = Context::from_waker(Waker::noop());
    matches!(peeking.as_mut().poll(&mut context), Poll::Ready(Ok(true)))
}
