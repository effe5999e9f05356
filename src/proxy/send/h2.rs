//! Writing a call to a stream of an HTTP/2 connection.
//!
//! "Written" is handed to the connection's task, within the windows that the agent opened.

use super::{Exchanged, OneCall, SLICE, SendFailure, Written, facts, gone, h2_error, read_failure};
use crate::audit::record::{AttemptError, Stage};
use crate::pipeline::Attempts;
use crate::proxy::connect::is_other_http;
use crate::proxy::link::{H2Link, Link};
use pingora::protocols::http::ServerSession;
use pingora_timeout::sleep;
use std::future::poll_fn;
use std::pin::pin;

/// The head counts as one byte: how long it is on the wire, the compression of the connection
/// decides.
const HEAD: u64 = 1;

impl OneCall<'_> {
    pub(super) async fn exchange_h2(
        &mut self,
        mut link: Box<H2Link>,
        caller: &mut ServerSession,
        attempts: &mut Attempts,
    ) -> Exchanged {
        let socket = link.socket();
        self.note(attempts, Stage::Header, None);
        attempts.head_is(HEAD);
        // Writing consumes the head, and it may be needed again.
        let (Some(head), Some(session)) = (self.fields.clone(), link.session_mut()) else {
            return Exchanged::Failed(SendFailure::Broken);
        };
        if let Err(error) = session.write_request_header(head, self.body.is_empty()) {
            let other = is_other_http(&error);
            let error = if other {
                AttemptError::OtherHttp
            } else {
                AttemptError::Closed
            };
            attempts.enter_error(error, self.path.clock.monotonic());
            return Exchanged::NothingLeft;
        }
        attempts.wrote(HEAD);
        let may_leave = self.path.timing.after_caller_left.is_none();
        let written = {
            let mut writing = pin!(self.write_body(&mut link, attempts));
            tokio::select! { biased;
                written = writing.as_mut() => Some(written),
                () = gone(caller), if may_leave => None,
            }
        };
        let all_written = match written {
            Some(Written::All) => true,
            Some(Written::EarlyReply) => false,
            Some(Written::Failed(error)) => {
                attempts.enter_error(error, self.path.clock.monotonic());
                attempts.tcp(facts(socket.as_deref()));
                if error == AttemptError::NotProcessed {
                    return Exchanged::NotProcessed;
                }
                return self.late_reply(Link::H2(link), error, attempts).await;
            }
            None => {
                attempts.enter_error(AttemptError::CallerLeft, self.path.clock.monotonic());
                return Exchanged::Failed(SendFailure::CallerLeft);
            }
        };
        let socket = socket.as_deref();
        self.wait(Link::H2(link), all_written, socket, caller, attempts)
            .await
    }

    async fn write_body(&self, link: &mut H2Link, attempts: &mut Attempts) -> Written {
        if self.body.is_empty() {
            return Written::All;
        }
        let writer = link
            .session_mut()
            .and_then(|session| session.take_request_body_writer());
        let Some(mut writer) = writer else {
            return Written::Failed(AttemptError::Other);
        };
        let mut at = 0;
        while at < self.body.len() {
            writer.reserve_capacity((self.body.len() - at).min(SLICE));
            let capacity = {
                let mut stuck = pin!(sleep(self.path.timing.send));
                let unread = !link.has_head();
                tokio::select! { biased;
                    // A refusal is worth more than what it refuses.
                    read = link.read_head(), if unread => match read {
                        Ok(()) => None,
                        Err(error) => return Written::Failed(read_failure(&error).1),
                    },
                    capacity = poll_fn(|context| writer.poll_capacity(context)) => Some(capacity),
                    () = stuck.as_mut() => return Written::Failed(AttemptError::TimedOut),
                }
            };
            match capacity {
                Some(Some(Ok(many))) => {
                    let end = self.body.len().min(at + many);
                    let last = end == self.body.len();
                    if let Err(error) = writer.send_data(self.body.slice(at..end), last) {
                        return Written::Failed(h2_error(&error));
                    }
                    at = end;
                    attempts.wrote(HEAD + at as u64);
                }
                Some(Some(Err(error))) => return Written::Failed(h2_error(&error)),
                // The agent wants no more of it.
                Some(None) => return Written::Failed(AttemptError::Closed),
                // An agent may begin its answer and still read on; one that refuses does not.
                None if head_is_good(link) => {}
                None => return Written::EarlyReply,
            }
        }
        Written::All
    }
}

fn head_is_good(link: &mut H2Link) -> bool {
    link.session_mut()
        .and_then(|session| session.response_header())
        .is_some_and(|head| head.status.is_success())
}
