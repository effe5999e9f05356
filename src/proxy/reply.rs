//! Our own answers: the only place that writes a status of ours to a caller.

use super::body::settle_unread;
use super::headers::{DPOP_NONCE, REQUEST_ID};
use super::trailers::{is_bodiless, is_trailers_only, of_status, write_head};
use crate::a2a::grpc::is_grpc;
use crate::a2a::{Dialect, render};
use crate::pipeline::{Guidance, Rejection};
use bytes::Bytes;
use http::{HeaderValue, header};
use pingora::http::ResponseHeader;
use pingora::protocols::http::ServerSession;

/// An answer of ours.
pub struct Answer<'a> {
    /// HTTP status.
    pub status: u16,
    /// `Content-Type`; `None` where there is no body.
    pub content_type: Option<&'static str>,
    /// Further fields.
    pub headers: &'a [(header::HeaderName, HeaderValue)],
    /// The body; not sent for HEAD, whose length it still tells.
    pub body: Bytes,
}

/// Writes an answer and ends the exchange. `Err` means that the connection is of no more use.
pub async fn write(
    session: &mut ServerSession,
    request_id: &str,
    answer: Answer<'_>,
) -> Result<(), Box<pingora::Error>> {
    settle_unread(session);
    let mut head = ResponseHeader::build(answer.status, Some(answer.headers.len() + 6))?;
    for (name, value) in answer.headers {
        head.append_header(name.clone(), value.clone())?;
    }
    if let Some(content_type) = answer.content_type {
        head.insert_header(header::CONTENT_TYPE, content_type)?;
    }
    head.insert_header(REQUEST_ID, request_id)?;
    if answer.status != 304 && answer.status != 204 && !is_trailers_only(&head.headers) {
        head.insert_header(header::CONTENT_LENGTH, answer.body.len())?;
    }
    let head_only = is_bodiless(&session.req_header().method, answer.status);
    let body = if head_only { Bytes::new() } else { answer.body };
    if write_head(session, head, body.is_empty()).await? {
        return Ok(());
    }
    session.write_response_body(body, true).await
}

/// Answers bytes that are no HTTP request; there is no head to look at.
pub async fn reject_unread(
    session: &mut ServerSession,
    request_id: &str,
    rejection: &Rejection,
) -> (u16, Result<(), Box<pingora::Error>>) {
    let rendered = render(rejection.fault, None, None);
    let sent = async {
        let mut head = ResponseHeader::build(rendered.status, Some(5))?;
        head.insert_header(header::CONTENT_TYPE, rendered.content_type)?;
        head.insert_header(header::CONTENT_LENGTH, rendered.body.len())?;
        head.insert_header(header::CACHE_CONTROL, "no-store")?;
        head.insert_header(REQUEST_ID, request_id)?;
        session.write_response_header(Box::new(head)).await?;
        session.write_response_body(rendered.body, true).await
    };
    (rendered.status, sent.await)
}

/// Answers a refusal in the form that its caller expects; the status that was sent.
pub async fn reject(
    session: &mut ServerSession,
    request_id: &str,
    rejection: &Rejection,
    guidance: Guidance<'_>,
) -> (u16, Result<(), Box<pingora::Error>>) {
    // What is refused before it is read has no dialect yet, but a gRPC client reads nothing else.
    let reads_grpc = session.is_http2() && is_grpc(&session.req_header().headers);
    let rendered = rejection.answer(reads_grpc.then_some(Dialect::GRPC));
    let status = rendered.status;
    let mut headers = Vec::with_capacity(6);
    if let Some(grpc) = &rendered.grpc {
        // The protocol's errors are in its trailers, and these are all there is.
        headers.extend(of_status(grpc));
    }
    headers.push((header::CACHE_CONTROL, HeaderValue::from_static("no-store")));
    let challenge = rejection.challenge.value(guidance);
    if let Some(value) = challenge.and_then(|value| HeaderValue::try_from(value).ok()) {
        headers.push((header::WWW_AUTHENTICATE, value));
    }
    let offer = rejection.offer();
    if let Some(offer) = offer.and_then(|value| HeaderValue::try_from(value).ok()) {
        headers.push((header::WWW_AUTHENTICATE, offer));
    }
    if let Some(nonce) = &rejection.dpop_nonce
        && let Ok(nonce) = HeaderValue::from_str(nonce)
    {
        headers.push((DPOP_NONCE, nonce));
    }
    if let Some(methods) = rejection.allow {
        headers.push((header::ALLOW, HeaderValue::from_static(methods)));
    }
    if let Some(seconds) = rejection.retry_after {
        headers.push((header::RETRY_AFTER, HeaderValue::from(seconds)));
    }
    let answer = Answer {
        status,
        content_type: Some(rendered.content_type),
        headers: &headers,
        body: rendered.body,
    };
    (status, write(session, request_id, answer).await)
}
