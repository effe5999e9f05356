//! Reading the caller's body whole and bounded, before any connection to an agent exists.

use super::limits::{BODY_DEADLINE, DRAIN_AT_MOST, DRAIN_DEADLINE};
use crate::a2a::Fault;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, EXPECT};
use pingora::protocols::http::ServerSession;
use pingora_timeout::timeout;
use std::pin::pin;

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFault {
    /// Answer with this fault; the code is private.
    Refuse(Fault, &'static str),
    /// The caller has left; nobody is there to answer.
    CallerLeft,
}

/// Reads the whole body, at most `limit` bytes.
///
/// A declared length over the limit is refused before a byte is read; a chunked body as soon as
/// it passes the limit. `Expect: 100-continue` is answered here.
pub async fn read(session: &mut ServerSession, limit: usize) -> Result<Bytes, BodyFault> {
    let declared = declared_length(session);
    if declared.is_some_and(|length| length > limit as u64) {
        return Err(BodyFault::Refuse(Fault::TooLarge, "declared_too_large"));
    }
    if session.is_body_empty() {
        return Ok(Bytes::new());
    }
    if session.req_header().headers.contains_key(EXPECT) {
        // Without this call an answer of 100 would turn keep-alive off.
        session.set_close_on_response_before_downstream_finish(false);
        if session.write_continue_response().await.is_err() {
            return Err(BodyFault::CallerLeft);
        }
    }
    let mut reading = pin!(read_chunks(session, limit, declared));
    match timeout(BODY_DEADLINE, reading.as_mut()).await {
        Ok(result) => result,
        Err(_) => Err(BodyFault::Refuse(Fault::RequestTimeout, "body_too_slow")),
    }
}

async fn read_chunks(
    session: &mut ServerSession,
    limit: usize,
    declared: Option<u64>,
) -> Result<Bytes, BodyFault> {
    let mut first: Option<Bytes> = None;
    let mut whole: Option<BytesMut> = None;
    let mut total = 0usize;
    loop {
        let chunk = match session.read_request_body().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => return Err(read_fault(&error)),
        };
        total = total.saturating_add(chunk.len());
        if total > limit {
            return Err(BodyFault::Refuse(Fault::TooLarge, "too_large"));
        }
        // Most calls come in one chunk, which is then forwarded without a copy.
        match (&mut whole, first.take()) {
            (Some(buffer), _) => buffer.extend_from_slice(&chunk),
            (None, None) => first = Some(chunk),
            (None, Some(begin)) => {
                let expected = declared
                    .map_or(total * 2, |length| length as usize)
                    .min(limit);
                let mut buffer = BytesMut::with_capacity(expected.max(total));
                buffer.extend_from_slice(&begin);
                buffer.extend_from_slice(&chunk);
                whole = Some(buffer);
            }
        }
    }
    Ok(match (whole, first) {
        (Some(buffer), _) => buffer.freeze(),
        (None, Some(only)) => only,
        (None, None) => Bytes::new(),
    })
}

fn read_fault(error: &pingora::Error) -> BodyFault {
    use pingora::ErrorType;
    match error.etype() {
        ErrorType::ConnectionClosed | ErrorType::ReadError => BodyFault::CallerLeft,
        ErrorType::ReadTimedout => BodyFault::Refuse(Fault::RequestTimeout, "body_too_slow"),
        _ => BodyFault::Refuse(Fault::BadRequest, "bad_body_framing"),
    }
}

fn declared_length(session: &ServerSession) -> Option<u64> {
    let value = session.req_header().headers.get(CONTENT_LENGTH)?;
    value.to_str().ok()?.parse().ok()
}

/// Prepares an answer that is sent before the body was read: a small rest is drained so that the
/// connection lives on, a large or endless one closes it.
pub fn settle_unread(session: &mut ServerSession) {
    if session.is_body_done() {
        return;
    }
    session.set_close_on_response_before_downstream_finish(false);
    session.set_total_drain_timeout(Some(DRAIN_DEADLINE));
    // A caller that waits to be told to go on need not send its body now (RFC 9110 section
    // 10.1.1), and what it sends next is not to be taken for that body.
    let may_not_come = session.req_header().headers.contains_key(EXPECT);
    // The drain has no byte cap of its own, so an undeclared length closes as well.
    let too_long = declared_length(session).is_none_or(|length| length > DRAIN_AT_MOST);
    if may_not_come || too_long {
        session.set_keepalive(None);
    }
}

/// Reads on for a moment what the caller is still sending after it was refused, and throws it away.
///
/// Closing with unread data resets the connection, and a reset may overtake the refusal.
pub async fn linger(session: &mut ServerSession) {
    let mut reading = pin!(async {
        let mut left = LINGER_AT_MOST;
        while let Ok(Some(chunk)) = session.read_request_body().await {
            left = match left.checked_sub(chunk.len()) {
                Some(left) => left,
                None => return,
            };
        }
    });
    // Either way the connection is closed next.
    let _ = timeout(DRAIN_DEADLINE, reading.as_mut()).await;
}

/// Bytes that a caller may still send into the void.
const LINGER_AT_MOST: usize = 64 * 1024 * 1024;
