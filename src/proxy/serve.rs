//! One request as a straight line.

use super::app::{App, Failure, check};
use super::body::{self, BodyFault};
use super::cors;
use super::forward::{Order, forward};
use super::headers::check_connection;
use super::health;
use super::limits::{absolute_form, host_of};
use super::proof;
use super::reply::{self, Answer};
use crate::a2a::Fault;
use crate::a2a::card;
use crate::config::snapshot::{Agent, Listener};
use crate::pipeline::admit::{Admission, Asking, admit, admit_backend, body_hash, enter};
use crate::pipeline::authenticate::{Presentation, SeenAs, authenticate, current_nonce};
use crate::pipeline::cards::CardView;
use crate::pipeline::locate::{Knock, Place, is_our_host, locate};
use crate::pipeline::metrics::Phase;
use crate::pipeline::relate::release;
use crate::pipeline::tenant::scoped;
use crate::pipeline::{Challenge, Recorder, Rejection};
use bytes::Bytes;
use http::Method;
use http::header::{CACHE_CONTROL, HeaderValue};
use pingora::protocols::http::ServerSession;
use std::sync::Arc;
use std::time::Duration;

/// Carries one request from its header to the reply's last byte.
pub async fn serve(
    app: &App,
    session: &mut ServerSession,
    recorder: &mut Recorder,
) -> Result<(), Failure> {
    check(session).map_err(Failure::Rejected)?;
    let live = recorder.live.clone();
    let listener = app.listener(&live);
    if is_health(session, listener) {
        return serve_health(app, session, recorder).await;
    }
    let host = host_of(session.req_header());
    if !is_our_host(&live, listener, host) {
        return Err(refuse(Fault::Misdirected, "unknown_host"));
    }
    cors::note(session, listener);
    if cors::is_preflight(session.req_header()) {
        recorder.card_served("preflight");
        let id = recorder.request_id;
        let sent = cors::answer(session, id.as_str()).await;
        return sent.map_err(|_| Failure::CallerLeft);
    }
    let head = session.req_header();
    let host = host_of(head);
    check_connection(&head.headers).map_err(|(fault, code)| {
        // What it would take away may be the credential (TR-8).
        Failure::Rejected(Rejection {
            challenge: Challenge::InvalidRequest,
            ..Rejection::plain(fault, code)
        })
    })?;
    let target = path_of(head.raw_path());
    let knock = Knock {
        listener,
        host,
        method: &head.method,
        target,
    };
    let located = locate(&recorder.live, &knock).map_err(Failure::Rejected)?;
    recorder.phase(Phase::Locate, Duration::ZERO);
    recorder.surface = located.place.surface();
    if let Some(agent) = located.place.agent() {
        recorder.agent = Some(agent.clone());
        recorder.path = Some(located.path);
    }
    match located.place {
        Place::Card(agent) => serve_card(session, recorder, &agent).await,
        Place::Health(agent) => health::serve(app, session, recorder, &agent).await,
        Place::KeySet => serve_key_set(app, session, recorder).await,
        Place::ResourceMetadata(document) => {
            recorder.card_served("resource_metadata");
            serve_document(session, recorder, &document, app.gate.started / 1000).await
        }
        Place::NoCard => Err(refuse(Fault::NoSuchPath, "no_such_card")),
        place => serve_caller(app, session, recorder, place).await,
    }
}

/// Whether a load balancer asks. It may do so by address, so any `Host` will do.
fn is_health(session: &ServerSession, listener: &Listener) -> bool {
    let head = session.req_header();
    let reads = head.method == Method::GET || head.method == Method::HEAD;
    let path = listener.health_path.as_deref();
    reads && path.is_some_and(|path| path_of(head.raw_path()) == path.as_bytes())
}

/// Says whether we are ready, and nothing else.
async fn serve_health(
    app: &App,
    session: &mut ServerSession,
    recorder: &mut Recorder,
) -> Result<(), Failure> {
    let (status, body) = match (app.ready)() {
        true => (200, "ok\n"),
        false => (503, "unavailable\n"),
    };
    recorder.card_served("health");
    let no_store = (CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let answer = Answer {
        status,
        content_type: Some("text/plain; charset=utf-8"),
        headers: &[no_store],
        body: Bytes::from_static(body.as_bytes()),
    };
    let id = recorder.request_id;
    let sent = reply::write(session, id.as_str(), answer).await;
    sent.map_err(|_| Failure::CallerLeft)
}

/// Everything that needs a token: who, whether they may be here at all, what, may they, go.
async fn serve_caller(
    app: &App,
    session: &mut ServerSession,
    recorder: &mut Recorder,
    place: Place,
) -> Result<(), Failure> {
    let began = recorder.elapsed();
    let head = session.req_header();
    let query = query_of(head.raw_path()).map_err(Failure::Rejected)?;
    let presentation = Presentation {
        headers: &head.headers,
        query,
        peer: recorder.peer(),
        certificate: recorder.certificate,
        method: head.method.as_str(),
        seen_as: SeenAs::Public(Knock {
            listener: app.listener(&recorder.live),
            host: host_of(head),
            method: &head.method,
            target: path_of(head.raw_path()),
        }),
    };
    let verified = authenticate(&app.gate, &recorder.live, &presentation)
        .await
        .map_err(Failure::Rejected)?;
    if recorder.live.asks_nonce(&verified.principal) {
        proof::note(session, &current_nonce(&app.gate));
    }
    recorder.phase(Phase::Authenticate, began);
    recorder.verified = Some(verified.clone());
    enter(recorder, &verified, &place).map_err(Failure::Rejected)?;
    match place {
        Place::Interface { interface, .. }
            if interface.binding.needs_http2() && !session.is_http2() =>
        {
            Err(refuse(Fault::BadRequest, "grpc_needs_http2"))
        }
        Place::Interface {
            agent,
            interface,
            path,
            ..
        } => {
            let verified = scoped(&agent, verified);
            recorder.verified = Some(verified.clone());
            let body = read_body(session, recorder, &agent).await?;
            let head = session.req_header();
            let asking = Asking {
                agent: &agent,
                interface: &interface,
                path: &path,
                verified: &verified,
                method: &head.method,
                headers: &head.headers,
                query: query_of(head.raw_path()).map_err(Failure::Rejected)?,
                body: &body,
            };
            let mut admission = admit(recorder, asking).await.map_err(Failure::Rejected)?;
            let body = admission.body.take().unwrap_or(body);
            let target = Target {
                backend: interface.backend,
                path: joined(interface.backend_path, &admission.path),
            };
            go(app, session, recorder, agent, target, body, admission).await
        }
        Place::Backend { agent, path } => {
            let body = read_body(session, recorder, &agent).await?;
            let admission = admit_backend(recorder, &agent, &verified)
                .await
                .map_err(Failure::Rejected)?;
            // Nothing of this surface is parsed, so its query travels as it came.
            let target = match query_of(session.req_header().raw_path()) {
                Ok(Some(query)) => format!("{path}?{query}").into(),
                Ok(None) | Err(_) => path,
            };
            let target = Target {
                backend: 0,
                path: target,
            };
            go(app, session, recorder, agent, target, body, admission).await
        }
        Place::Card(_)
        | Place::KeySet
        | Place::ResourceMetadata(_)
        | Place::NoCard
        | Place::Health(_)
        | Place::NotReady(_)
        | Place::Unserved { .. }
        | Place::Nowhere => Err(refuse(Fault::NoSuchPath, "no_such_path")),
    }
}

/// Reads the body whole, before any connection to the agent.
async fn read_body(
    session: &mut ServerSession,
    recorder: &mut Recorder,
    agent: &Agent,
) -> Result<Bytes, Failure> {
    let body = body::read(session, agent.limits.body)
        .await
        .map_err(|fault| match fault {
            BodyFault::Refuse(fault, code) => refuse(fault, code),
            BodyFault::CallerLeft => Failure::CallerLeft,
        })?;
    recorder.body_bytes = body.len() as u64;
    recorder.body_sha256 = Some(body_hash(&body));
    Ok(body)
}

/// Where a call goes.
struct Target {
    backend: usize,
    /// Path and query.
    path: Box<str>,
}

/// The path of an interface on its backend, and what is below it.
fn joined(base: Box<str>, below: &str) -> Box<str> {
    match below {
        "" => base,
        below => [base.strip_suffix('/').unwrap_or(&base), below]
            .concat()
            .into(),
    }
}

/// Forwards an admitted call; a context that was claimed for it is given up if nothing reached.
async fn go(
    app: &App,
    session: &mut ServerSession,
    recorder: &mut Recorder,
    agent: Arc<Agent>,
    target: Target,
    body: Bytes,
    admission: Admission,
) -> Result<(), Failure> {
    let Admission {
        permit,
        a2a_version,
        extensions,
        related,
        rework,
        ..
    } = admission;
    let order = Order {
        permit,
        agent: agent.clone(),
        backend: target.backend,
        target: target.path,
        body,
        a2a_version,
        extensions,
        rework,
        asked: 0,
    };
    let forwarded = forward(app, session, recorder, order, related.as_ref()).await;
    if recorder.untouched()
        && let (Some(related), Some(verified)) = (&related, &recorder.verified)
    {
        release(&*app.gate.ownership, &agent, &verified.owner, related).await;
    }
    forwarded
}

fn refuse(fault: Fault, code: &'static str) -> Failure {
    Failure::Rejected(Rejection::plain(fault, code))
}

/// The path of a request target in origin or absolute form, without its query. What has neither
/// form is no path, and is refused as one.
pub(super) fn path_of(target: &[u8]) -> &[u8] {
    let (path, absolute) = match absolute_form(target) {
        Some((_, rest)) => (rest, true),
        None => (target, false),
    };
    let end = path.iter().position(|&b| b == b'?').unwrap_or(path.len());
    match &path[..end] {
        b"" if absolute => b"/",
        path => path,
    }
}

/// The query of a request target, without its question mark.
fn query_of(target: &[u8]) -> Result<Option<&str>, Rejection> {
    let Some(at) = target.iter().position(|&b| b == b'?') else {
        return Ok(None);
    };
    match std::str::from_utf8(&target[at + 1..]) {
        Ok(query) => Ok(Some(query)),
        Err(_) => Err(Rejection::plain(Fault::BadRequest, "query_not_utf8")),
    }
}

/// Answers a card request from memory: it never reaches the agent.
async fn serve_card(
    session: &mut ServerSession,
    recorder: &mut Recorder,
    agent: &Agent,
) -> Result<(), Failure> {
    let (published, since) = match recorder.live.cards.card(agent.index) {
        CardView::Ready(published, since) => (published, since),
        CardView::Missing(retry) => {
            let retry = u32::try_from(retry).unwrap_or(u32::MAX);
            return Err(Failure::Rejected(Rejection::unavailable(
                "card_not_fetched",
                retry,
            )));
        }
        CardView::Withheld => return Err(refuse(Fault::BadGateway, "card_withheld")),
    };
    recorder.card_served("card");
    serve_document(session, recorder, &published.document, since / 1000).await
}

/// Answers a request for our own public keys.
async fn serve_key_set(
    app: &App,
    session: &mut ServerSession,
    recorder: &mut Recorder,
) -> Result<(), Failure> {
    let Some(keys) = &app.gate.keys else {
        return Err(refuse(Fault::NoSuchPath, "no_such_card"));
    };
    recorder.card_served("key_set");
    serve_document(session, recorder, &keys.document, app.gate.started / 1000).await
}

/// Answers with a document from memory; `since` is when its bytes were first served.
async fn serve_document(
    session: &mut ServerSession,
    recorder: &Recorder,
    document: &card::serve::Document,
    since: u64,
) -> Result<(), Failure> {
    let head = session.req_header();
    let answer = card::respond(&head.method, &head.headers, document, since);
    let headers: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| *name != http::header::CONTENT_LENGTH)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    // The writer leaves the body out for HEAD and tells its length all the same.
    let whole = answer.status == http::StatusCode::OK;
    let answer = Answer {
        status: answer.status.as_u16(),
        content_type: None,
        headers: &headers,
        body: if whole {
            document.body.clone()
        } else {
            answer.body
        },
    };
    let id = recorder.request_id;
    reply::write(session, id.as_str(), answer)
        .await
        .map_err(|_| Failure::CallerLeft)
}

#[cfg(test)]
mod tests {
    use super::path_of;

    #[test]
    fn paths_of_targets() {
        for (target, path) in [
            ("/a/b?c=d", "/a/b"),
            ("/", "/"),
            ("/a://b", "/a://b"),
            ("http://h/a?b", "/a"),
            ("http://h", "/"),
            ("HTTPS://h", "/"),
            ("http://h?x=/y", "/"),
            ("http://h#/y", "#/y"),
            ("ftp://h/a", "ftp://h/a"),
            ("h/a", "h/a"),
            ("*", "*"),
        ] {
            assert_eq!(path_of(target.as_bytes()), path.as_bytes(), "{target}");
        }
    }
}
