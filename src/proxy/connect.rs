//! A way to an agent: one that is open already, or a new one.

use super::link::H2Link;
use super::links::Pools;
use super::peer::Target;
use super::secured::Secured;
use crate::audit::record::AttemptError;
use crate::config::snapshot::Speaks;
use h2::Reason;
use pingora::ErrorType;
use pingora::connectors::http::v2::{H2HandshakeSettings, handshake};
use pingora::protocols::l4::stream::Stream as Tcp;
use pingora::protocols::tls::client;
use pingora::protocols::{ALPN, Stream};
use pingora::upstreams::peer::Peer;
use std::sync::Arc;

/// Bytes that an agent may send ahead of us, for one call and for all of a connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
/// `TCP_ESTABLISHED` of Linux.
const ESTABLISHED: u8 = 1;

/// An open way to an agent, on which nothing of this call has been sent.
pub enum Way {
    /// An HTTP/1.1 connection.
    H1(Stream),
    /// A stream of an HTTP/2 connection.
    H2(Box<H2Link>),
}

/// A way that is open already. Costs nothing of the other version where only one can be.
pub async fn reuse(pools: &Arc<Pools>, target: &Arc<Target>, speaks: Speaks) -> Option<Way> {
    if speaks != Speaks::H1 {
        // A connection on which no stream can be opened any more is as good as none.
        let reused = pools.h2().reused_http_session(&target.peer).await;
        if let Some(session) = reused.ok().flatten() {
            return Some(Way::H2(Box::new(H2Link::new(
                session,
                target.clone(),
                pools.clone(),
            ))));
        }
    }
    if speaks != Speaks::H2
        && let Some(stream) = pools.transport().reused_stream(&target.peer).await
        && is_established(&stream)
    {
        return Some(Way::H1(stream));
    }
    None
}

/// A new way: TCP, then TLS, then the preface of HTTP/2, as far as each is asked for.
pub async fn open(
    pools: &Arc<Pools>,
    target: &Arc<Target>,
    speaks: Speaks,
) -> Result<Way, AttemptError> {
    let stream = pools
        .transport()
        .new_stream(&target.peer)
        .await
        .map_err(|error| unconnected(&error))?;
    let (stream, agreed) = match &target.security {
        None => (stream, None),
        Some(security) => {
            let connector = match speaks {
                Speaks::H1 => &security.h1,
                Speaks::H2 => &security.h2,
                Speaks::Agreed => &security.both,
            };
            let tcp = stream
                .into_any()
                .downcast::<Tcp>()
                .map_err(|_| AttemptError::Other)?;
            let secured = client::handshake(connector, &security.name, *tcp)
                .await
                .map_err(|error| untrusted(&error, speaks))?;
            let secured: Stream = Box::new(Secured::new(secured));
            let agreed = secured.selected_alpn_proto();
            (secured, agreed)
        }
    };
    let h2 = match (speaks, &target.security) {
        (Speaks::H1, _) => false,
        (Speaks::H2, None) => true,
        // An agent that agrees on nothing speaks the version that knows no agreement.
        (Speaks::H2, Some(_)) if agreed != Some(ALPN::H2) => return Err(AttemptError::OtherHttp),
        (Speaks::H2 | Speaks::Agreed, _) => agreed == Some(ALPN::H2),
    };
    if !h2 {
        return Ok(Way::H1(stream));
    }
    let mut settings = H2HandshakeSettings::new();
    settings.max_streams = target.peer.options.max_h2_streams;
    settings.stream_window_size = Some(STREAM_WINDOW);
    settings.connection_window_size = Some(CONNECTION_WINDOW);
    let connection = handshake(stream, settings)
        .await
        .map_err(|_| AttemptError::Protocol)?;
    let session = connection.spawn_stream().await;
    let session = match session {
        Ok(Some(session)) => session,
        Ok(None) => return Err(AttemptError::Protocol),
        Err(error) if is_other_http(&error) => return Err(AttemptError::OtherHttp),
        Err(_) => return Err(AttemptError::Protocol),
    };
    if connection.more_streams_allowed() {
        let key = target.peer.reuse_hash();
        pools.h2().in_use_pool().insert(key, connection);
    }
    Ok(Way::H2(Box::new(H2Link::new(
        session,
        target.clone(),
        pools.clone(),
    ))))
}

fn unconnected(error: &pingora::Error) -> AttemptError {
    match error.etype() {
        ErrorType::ConnectRefused => AttemptError::Refused,
        ErrorType::ConnectTimedout => AttemptError::TimedOut,
        _ => AttemptError::Unreachable,
    }
}

/// Why TLS failed: also because the agent speaks nothing of what we offered (RFC 7301). Pingora
/// keeps the cause as words only.
fn untrusted(error: &pingora::Error, speaks: Speaks) -> AttemptError {
    let words = error.context.as_ref().map_or("", |words| words.as_str());
    match speaks {
        Speaks::H1 | Speaks::H2 if words.contains("NoApplicationProtocol") => {
            AttemptError::OtherHttp
        }
        Speaks::H1 | Speaks::H2 | Speaks::Agreed => AttemptError::Tls,
    }
}

/// Whether an agent that was asked in HTTP/2 speaks HTTP/1.1: read as a frame, text is larger than
/// a frame may be, and no server of HTTP/2 begins with such a one.
pub fn is_http1(error: &h2::Error) -> bool {
    match error.reason() {
        Some(Reason::FRAME_SIZE_ERROR) => error.is_go_away() && error.is_library(),
        Some(Reason::HTTP_1_1_REQUIRED) => true,
        Some(_) | None => false,
    }
}

/// Whether what an agent answered is of the other version of HTTP. In HTTP/1.1, that is the head
/// of a SETTINGS frame, as Pingora quotes it.
pub fn is_other_http(error: &pingora::Error) -> bool {
    if let Some(h2) = error.root_cause().downcast_ref::<h2::Error>() {
        return is_http1(h2);
    }
    let words = error.context.as_ref().map_or("", |words| words.as_str());
    *error.etype() == ErrorType::InvalidHTTPHeader
        && words.starts_with(r"buf: \x00\x00")
        && words.contains(r"\x04\x00\x00\x00\x00\x00")
}

/// Whether the kernel still holds a pooled connection open: other than established means that the
/// agent's close is already here.
fn is_established(stream: &Stream) -> bool {
    stream
        .get_socket_digest()
        .and_then(|digest| digest.tcp_info())
        .is_none_or(|info| info.tcpi_state == ESTABLISHED)
}
