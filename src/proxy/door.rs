//! The door of a listener: a cap on connections, TLS, which HTTP version, and a bound on how long a
//! stranger may be silent.

use super::app::App;
use super::limits::{Connections, MAX_HEAD_BYTES};
use super::stopping::UnderWay;
use crate::config::snapshot::Listener;
use async_trait::async_trait;
use bytes::Bytes;
use h2::server::Connection;
use pingora::apps::{HttpServerApp, ServerApp};
use pingora::listeners::tls::Acceptor;
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::v2::server::{
    H2Accept, H2Options, HttpSession, default_h2_options, handshake,
};
use pingora::protocols::l4::stream::Stream as Tcp;
use pingora::protocols::{ALPN, Digest, Stream};
use pingora::server::ShutdownWatch;
use pingora_timeout::{sleep, timeout};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// With what a client that speaks HTTP/2 begins (RFC 9113 section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes that a caller may send ahead of us, on one stream and on all of a connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Requests at once on one connection.
const MAX_STREAMS: u32 = 100;
/// Malformed streams after which a connection is given up.
const MAX_MALFORMED: usize = 32;
/// How long a caller has to close, after it was told that we do.
const GOODBYE: Duration = Duration::from_secs(1);

/// In front of an [`App`].
pub struct Door {
    app: Arc<App>,
    places: Arc<Semaphore>,
}

impl Door {
    /// In front of `app`.
    pub fn new(app: App) -> Door {
        Door {
            places: Arc::new(Semaphore::new(app.connections.open)),
            app: Arc::new(app),
        }
    }
}

#[async_trait]
impl ServerApp for Door {
    async fn process_new(self: &Arc<Self>, stream: Stream, stop: &ShutdownWatch) -> Option<Stream> {
        // Over the cap the connection is closed at once: waiting would hold its socket.
        let _place = self.places.clone().try_acquire_owned().ok()?;
        // Certificates may have been renewed since the start.
        let listener = self.app.listener(&self.app.gate.live()).clone();
        let Connections { head, idle, .. } = self.app.connections;
        let opened = match listener.tls.is_some() || listener.h2c {
            // Boxed: it is over soon, and the connection lives long.
            true => Box::pin(timeout(head, open(stream, &listener)))
                .await
                .ok()??,
            false => Opened::H1(stream),
        };
        drop(listener);
        match opened {
            Opened::H1(stream) => return self.app.process_new(stream, stop).await,
            Opened::H2(connection, digest) => {
                let idle = Duration::from_secs(idle);
                serve_h2(self.app.clone(), *connection, digest, stop, [head, idle]).await;
            }
        }
        None
    }
}

enum Opened {
    H1(Stream),
    H2(Box<Connection<Stream, Bytes>>, Arc<Digest>),
}

/// TLS and the preface, as far as the listener has them. `None` closes the connection.
async fn open(stream: Stream, listener: &Listener) -> Option<Opened> {
    let (mut stream, secure) = match &listener.tls {
        None => (stream, false),
        Some(tls) => {
            let tcp = stream.into_any().downcast::<Tcp>().ok()?;
            let acceptor = Acceptor::from_server_config(tls.config.clone());
            let secured: Stream = Box::new(acceptor.tls_handshake(*tcp).await.ok()?);
            (secured, true)
        }
    };
    let h2 = match secure {
        true => stream.selected_alpn_proto() == Some(ALPN::H2),
        false => {
            // Shorter than this is no request that we would take either.
            let mut first = [0; PREFACE.len()];
            stream.try_peek(&mut first).await.ok()? && first == *PREFACE
        }
    };
    if !h2 {
        return Some(Opened::H1(stream));
    }
    let digest = Arc::new(Digest {
        ssl_digest: stream.get_ssl_digest(),
        timing_digest: stream.get_timing_digest(),
        proxy_digest: stream.get_proxy_digest(),
        socket_digest: stream.get_socket_digest(),
    });
    let connection = handshake(stream, Some(h2_options())).await.ok()?;
    Some(Opened::H2(Box::new(connection), digest))
}

fn h2_options() -> H2Options {
    let mut options = default_h2_options();
    options
        .max_header_list_size(MAX_HEAD_BYTES as u32)
        .max_concurrent_streams(MAX_STREAMS)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    options
}

/// The requests of one HTTP/2 connection, each in a task of its own. `silences` are how long it
/// may be without one: before the first, and later.
async fn serve_h2(
    app: Arc<App>,
    mut connection: Connection<Stream, Bytes>,
    digest: Arc<Digest>,
    stop: &ShutdownWatch,
    silences: [Duration; 2],
) {
    let streams = Arc::<UnderWay>::default();
    let [mut silence, idle] = silences;
    let (mut leaving, mut malformed) = (false, 0);
    loop {
        let accepted = {
            let patience = if leaving { GOODBYE } else { silence };
            let mut silent = pin!(async {
                streams.drained().await;
                sleep(patience).await;
            });
            let mut ordered = pin!(app.stopping.wait());
            tokio::select! { biased;
                accepted = HttpSession::from_h2_conn(&mut connection, digest.clone()) => accepted,
                () = ordered.as_mut(), if !leaving => {
                    leaving = true;
                    connection.graceful_shutdown();
                    continue;
                }
                () = silent.as_mut() => {
                    if leaving {
                        return;
                    }
                    leaving = true;
                    connection.graceful_shutdown();
                    continue;
                }
            }
        };
        silence = idle;
        match accepted {
            Ok(Some(H2Accept::Session(session))) => {
                let (app, stop, ticket) = (app.clone(), stop.clone(), streams.enter());
                tokio::spawn(async move {
                    let _ticket = ticket;
                    let session = ServerSession::new_http2(session);
                    app.process_new_http(session, &stop).await;
                });
            }
            // Answered or reset already.
            Ok(Some(H2Accept::Rejected)) => {
                malformed += 1;
                if malformed >= MAX_MALFORMED {
                    return;
                }
            }
            Ok(None) | Err(_) => return,
        }
    }
}
