//! What a connection and a reply have to do with proofs of possession: the client's certificate, and
//! the next nonce.

use super::headers::DPOP_NONCE;
use http::HeaderValue;
use http::header::CACHE_CONTROL;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::http::ServerSession;

/// SHA-256 of the DER of the client's own certificate, whose key it proved to have when this
/// connection was made (RFC 8705 section 3). Nothing in a header stands in for it (SC-8).
pub fn certificate(session: &ServerSession) -> Option<[u8; 32]> {
    let digest = session.digest()?.ssl_digest.as_ref()?;
    digest.cert_digest.as_slice().try_into().ok()
}

/// The nonce for the caller's next proof, kept with its request.
#[derive(Clone)]
struct Next(HeaderValue);

/// Notes that the reply, whatever it is, tells the caller this nonce (RFC 9449 section 8.2).
pub fn note(session: &mut ServerSession, nonce: &str) {
    if let Ok(nonce) = HeaderValue::from_str(nonce) {
        let head = session.req_header_mut();
        head.extensions_mut().insert(Next(nonce));
    }
}

/// Tells it. Such a reply must not come from a cache.
pub fn add(request: &RequestHeader, reply: &mut ResponseHeader) -> Result<(), Box<pingora::Error>> {
    if let Some(Next(nonce)) = request.extensions.get::<Next>() {
        reply.insert_header(DPOP_NONCE, nonce.clone())?;
        reply.insert_header(CACHE_CONTROL, "no-store")?;
    }
    Ok(())
}
