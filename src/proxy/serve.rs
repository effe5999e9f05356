//! One request as a straight line.

use super::app::{App, Failure, check};
use super::headers::check_connection;
use super::reply::{self, Answer};
use crate::a2a::Fault;
use crate::a2a::card;
use crate::config::snapshot::Agent;
use crate::pipeline::cards::CardView;
use crate::pipeline::locate::{Place, is_our_host, locate};
use crate::pipeline::{Recorder, Rejection};
use http::header::HOST;
use pingora::protocols::http::ServerSession;

/// Carries one request from its header to the reply's last byte.
pub async fn serve(
    app: &App,
    session: &mut ServerSession,
    recorder: &mut Recorder,
) -> Result<(), Failure> {
    check(session).map_err(Failure::Rejected)?;
    let head = session.req_header();
    let host = head.headers.get(HOST).map_or(&b""[..], |h| h.as_bytes());
    if !is_our_host(&app.listener, host) {
        return Err(refuse(Fault::Misdirected, "unknown_host"));
    }
    check_connection(&head.headers).map_err(|(fault, code)| refuse(fault, code))?;
    let target = path_of(head.raw_path());
    let located = locate(&recorder.live, &head.method, target).map_err(Failure::Rejected)?;
    recorder.surface = located.place.surface();
    if let Some(agent) = located.place.agent() {
        recorder.agent = Some(agent.clone());
        recorder.path = Some(located.path);
    }
    match located.place {
        Place::Card(agent) => serve_card(session, recorder, &agent).await,
        Place::NoCard => Err(refuse(Fault::NoSuchPath, "no_such_card")),
        Place::Interface { .. } | Place::Backend { .. } | Place::NotReady(_) | Place::Nowhere => {
            Err(Failure::Rejected(Rejection::unauthenticated(
                "no_credential",
            )))
        }
    }
}

fn refuse(fault: Fault, code: &'static str) -> Failure {
    Failure::Rejected(Rejection::plain(fault, code))
}

/// The path of a request target in origin or absolute form, without its query.
fn path_of(target: &[u8]) -> &[u8] {
    let path = match target.windows(3).position(|w| w == b"://") {
        Some(at) if !target.starts_with(b"/") => {
            let rest = &target[at + 3..];
            let slash = rest.iter().position(|&b| b == b'/');
            slash.map_or(&b"/"[..], |at| &rest[at..])
        }
        _ => target,
    };
    let end = path.iter().position(|&b| b == b'?').unwrap_or(path.len());
    &path[..end]
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
    let head = session.req_header();
    let answer = card::respond(&head.method, &head.headers, &published, since / 1000);
    let headers: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| *name != http::header::CONTENT_LENGTH)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    recorder.card_served("card");
    // The writer leaves the body out for HEAD and tells its length all the same.
    let whole = answer.status == http::StatusCode::OK;
    let answer = Answer {
        status: answer.status.as_u16(),
        content_type: None,
        headers: &headers,
        body: if whole {
            published.body.clone()
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
            ("*", "*"),
        ] {
            assert_eq!(path_of(target.as_bytes()), path.as_bytes(), "{target}");
        }
    }
}
