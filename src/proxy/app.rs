//! One connection's requests: deadlines, panics, keep-alive, stopping.

use super::limits::{Connections, MAX_HEAD_BYTES, STUCK_CALLER, check_h2_head, check_head};
use super::links::Links;
use super::serve::{path_of, serve};
use super::{Stopping, body, proof, reply};
use crate::a2a::Fault;
use crate::audit::record::Ended;
use crate::config::snapshot::Listener;
use crate::pipeline::recorder::Arrival;
use crate::pipeline::trace::Parent;
use crate::pipeline::{Challenge, Gate, Guidance, Live, Recorder, Rejection};
use async_trait::async_trait;
use http::Method;
use http::header::TRANSFER_ENCODING;
use pingora::apps::{HttpPersistentSettings, HttpServerApp, ReusedHttpStream};
use pingora::protocols::http::ServerSession;
use pingora::server::ShutdownWatch;
use pingora_timeout::timeout;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// What serves one public listener.
pub struct App {
    /// The listener's configuration at start.
    pub listener: Arc<Listener>,
    /// Its position among the listeners, which only a restart changes.
    pub index: usize,
    /// Whether the gateway is ready.
    pub ready: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The pipeline.
    pub gate: Arc<Gate>,
    /// Connections to agents.
    pub links: Arc<Links>,
    /// What a connection may cost.
    pub connections: Connections,
    /// The order to stop, and how many requests are under way.
    pub stopping: Stopping,
}

/// How serving one request went wrong.
pub enum Failure {
    /// Refused: to be answered, if nothing has been sent.
    Rejected(Rejection),
    /// Forwarded, then ended like this; a fault is to be answered, if nothing has been sent.
    Ended {
        /// In one word.
        ended: Ended,
        /// Whether the agent's reply ended properly.
        whole: bool,
        /// What to tell the caller.
        answer: Option<Rejection>,
    },
    /// The caller is no longer there.
    CallerLeft,
}

#[async_trait]
impl HttpServerApp for App {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        _: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        session.set_pipelining_enabled(true);
        let again = session.take_connection_user_context().is_some();
        if !self.read_head(&mut session, again).await? {
            return None;
        }
        // Reading the head resets these, so they are set each time.
        let keep = (!self.stopping.ordered()).then_some(self.connections.idle);
        if session.get_keepalive().is_some() || keep.is_none() {
            session.set_keepalive(keep);
        }
        session.set_write_timeout(Some(STUCK_CALLER));
        let _ticket = self.stopping.enter();
        let mut recorder = Recorder::begin(&self.gate, self.arrival(&session));
        let served = {
            let mut serving = pin!(serve(self, &mut session, &mut recorder));
            let mut serving = pin!(std::future::poll_fn(|context| {
                // What a panic leaves behind is only asked for a conclusion, never gone on with.
                match catch_unwind(AssertUnwindSafe(|| serving.as_mut().poll(context))) {
                    Ok(poll) => poll.map(Ok),
                    Err(panic) => Poll::Ready(Err(panic)),
                }
            }));
            let mut cut = pin!(self.stopping.cut());
            tokio::select! { biased;
                served = serving.as_mut() => Some(served),
                () = cut.as_mut() => None,
            }
        };
        let reusable = match served {
            Some(Ok(Ok(()))) => true,
            Some(Ok(Err(failure))) => self.rescue(&mut session, &mut recorder, failure).await,
            Some(Err(_)) => self.panicked(&mut session, &mut recorder).await,
            None => {
                recorder.ended(Ended::Shutdown, false);
                false
            }
        };
        drop(recorder);
        if !reusable {
            session.shutdown().await;
            return None;
        }
        let mut settings = HttpPersistentSettings::for_session(&session);
        settings.set_user_context(Box::new(()));
        let chunked = is_chunked(&session);
        let connection = session.finish().await.ok().flatten()?;
        if !chunked {
            return Some(ReusedHttpStream::from_reusable_stream(connection, settings));
        }
        // Pingora is lenient about where chunks end (it takes an empty line for the last one), so
        // what came together with such a body is not taken for a request.
        let (stream, behind) = connection.into_parts();
        let alone = behind.is_none_or(|bytes| bytes.is_empty());
        alone.then(|| ReusedHttpStream::new(stream, Some(settings)))
    }
}

fn is_chunked(session: &ServerSession) -> bool {
    session.req_header().headers.contains_key(TRANSFER_ENCODING)
}

impl App {
    /// The listener as it is configured now.
    pub fn listener<'l>(&'l self, live: &'l Live) -> &'l Arc<Listener> {
        let listeners = &live.snapshot.listeners;
        listeners.get(self.index).unwrap_or(&self.listener)
    }

    /// Reads a request head; `None` or `false` when the connection is done with.
    async fn read_head(&self, session: &mut ServerSession, again: bool) -> Option<bool> {
        let idle = if again {
            Duration::from_secs(self.connections.idle)
        } else {
            Duration::ZERO
        };
        let read = {
            let mut reading = pin!(timeout(
                self.connections.head + idle,
                session.read_request()
            ));
            let mut ordered = pin!(self.stopping.wait());
            // A request whose head is here is served even while we stop.
            tokio::select! { biased;
                read = reading.as_mut() => read,
                () = ordered.as_mut() => return None,
            }
        };
        match read {
            Ok(Ok(true)) => Some(true),
            Ok(Ok(false)) | Err(_) => None,
            Ok(Err(error)) => {
                self.malformed(session, &error).await;
                Some(false)
            }
        }
    }

    /// What Pingora itself does not take for HTTP.
    async fn malformed(&self, session: &mut ServerSession, error: &pingora::Error) {
        if *error.etype() != pingora::ErrorType::InvalidHTTPHeader {
            return;
        }
        let fault = match error
            .context
            .as_ref()
            .is_some_and(|c| c.as_str().starts_with("Request header larger"))
        {
            true => Fault::HeadersTooLarge,
            false => Fault::BadRequest,
        };
        let mut recorder = Recorder::begin(&self.gate, self.unread_arrival(session));
        let rejection = Rejection::plain(fault, "bad_http");
        session.set_keepalive(None);
        let (status, _) =
            reply::reject_unread(session, recorder.request_id.as_str(), &rejection).await;
        recorder.refused(&rejection, status);
        session.shutdown().await;
    }

    fn arrival(&self, session: &ServerSession) -> Arrival {
        Arrival {
            method: session.req_header().method.clone(),
            certificate: proof::certificate(session),
            parent: Parent::of(&session.req_header().headers),
            ..self.unread_arrival(session)
        }
    }

    fn unread_arrival(&self, session: &ServerSession) -> Arrival {
        let source = session.client_addr().and_then(|a| a.as_inet().copied());
        Arrival {
            listener: self.listener.clone(),
            source: source.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0))),
            method: Method::default(),
            certificate: None,
            parent: None,
        }
    }

    /// The only place that answers a failure. Whether the connection may be used again.
    pub(super) async fn rescue(
        &self,
        session: &mut ServerSession,
        recorder: &mut Recorder,
        failure: Failure,
    ) -> bool {
        match failure {
            Failure::Rejected(rejection) => {
                if is_chunked(session) {
                    // Where a refused body ends is not worth a doubt.
                    session.set_keepalive(None);
                }
                let (status, sent) = self.reject(session, recorder, &rejection).await;
                recorder.refused(&rejection, status);
                let lingers = !session.is_http2() && session.get_keepalive().is_none();
                if sent.is_ok() && lingers && !session.is_body_done() {
                    body::linger(session).await;
                    return false;
                }
                sent.is_ok()
            }
            Failure::Ended {
                ended,
                whole,
                answer: Some(rejection),
            } => {
                recorder.ended(ended, whole);
                self.reject(session, recorder, &rejection).await.1.is_ok()
            }
            Failure::Ended {
                ended,
                whole,
                answer: None,
            } => {
                recorder.ended(ended, whole);
                false
            }
            Failure::CallerLeft => {
                recorder.ended(Ended::CallerLeft, false);
                false
            }
        }
    }

    /// Answers a refusal, and says to callers without a good token where they get one.
    async fn reject(
        &self,
        session: &mut ServerSession,
        recorder: &Recorder,
        rejection: &Rejection,
    ) -> (u16, Result<(), Box<pingora::Error>>) {
        let live = &recorder.live;
        let path = std::str::from_utf8(path_of(session.req_header().raw_path()));
        let issuer = recorder.verified.as_ref();
        let issuer = issuer.map(|verified| verified.principal.issuer_index);
        let resources = &self.listener(live).resources;
        let guidance = Guidance {
            resource: resources.covering(path.unwrap_or_default()),
            scope: match rejection.challenge {
                Challenge::InsufficientScope(grant) => {
                    issuer.and_then(|issuer| resources.scope_for(issuer, grant))
                }
                Challenge::None
                | Challenge::Bearer
                | Challenge::InvalidRequest
                | Challenge::InvalidToken
                | Challenge::InvalidProof
                | Challenge::UseNonce => None,
            },
        };
        let id = recorder.request_id;
        reply::reject(session, id.as_str(), rejection, guidance).await
    }

    async fn panicked(&self, session: &mut ServerSession, recorder: &mut Recorder) -> bool {
        tracing::error!(
            request_id = recorder.request_id.as_str(),
            trace_id = recorder.trace.id(),
            "a request panicked"
        );
        session.set_keepalive(None);
        let rejection = Rejection::plain(Fault::Internal, Ended::Panic.label());
        let written = session
            .response_written()
            .map(|reply| reply.status.as_u16());
        let status = match written {
            Some(status) => status,
            None => self.reject(session, recorder, &rejection).await.0,
        };
        recorder.refused(&rejection, status);
        // After an intent that was not its conclusion.
        recorder.ended(Ended::Panic, false);
        false
    }
}

/// Checks the head that Pingora has parsed, on its raw bytes where they tell more.
pub fn check(session: &ServerSession) -> Result<(), Rejection> {
    let head = session.req_header();
    if session.is_http2() {
        return check_h2_head(head).map_err(|(fault, code)| Rejection::plain(fault, code));
    }
    let raw = session
        .as_http1()
        .map(|h1| h1.get_headers_raw_bytes())
        .unwrap_or_default();
    check_head(
        &head.method,
        head.version,
        &head.headers,
        head.raw_path(),
        &raw,
    )
    .map_err(|(fault, code)| Rejection::plain(fault, code))
}

const _: () = assert!(
    MAX_HEAD_BYTES < 1024 * 1024,
    "Pingora's own bound must be the larger"
);
