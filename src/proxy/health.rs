//! The health service of an agent's gRPC interface: answered by us, without a token and without
//! contacting the agent (`design.md` section 4).

use super::app::{App, Failure};
use super::body::{self, BodyFault};
use super::headers::REQUEST_ID;
use super::trailers::write_head;
use crate::a2a::grpc::health::{MAX_REQUEST, answer};
use crate::a2a::{Binding, GRPC, Request, Versions};
use crate::config::snapshot::Agent;
use crate::pipeline::{Recorder, Rejection};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use pingora::http::ResponseHeader;
use pingora::protocols::http::ServerSession;

/// Answers `Check`.
pub async fn serve(
    app: &App,
    session: &mut ServerSession,
    recorder: &mut Recorder,
    agent: &Agent,
) -> Result<(), Failure> {
    let body = body::read(session, MAX_REQUEST)
        .await
        .map_err(|fault| match fault {
            BodyFault::Refuse(fault, code) => Failure::Rejected(Rejection::plain(fault, code)),
            BodyFault::CallerLeft => Failure::CallerLeft,
        })?;
    let mut offered = Versions::default();
    let interfaces = recorder.live.cards.interfaces(agent.index);
    for interface in interfaces.iter().filter(|i| i.binding == Binding::Grpc) {
        offered.v0_3 |= interface.versions.v0_3;
        offered.v1_0 |= interface.versions.v1_0;
    }
    let head = session.req_header();
    let request = Request {
        method: &head.method,
        path: "",
        query: None,
        headers: &head.headers,
        body: &body,
    };
    let frame = answer(&request, offered, (app.ready)()).map_err(|malformed| {
        Failure::Rejected(Rejection::plain(malformed.fault, malformed.code))
    })?;
    recorder.card_served("health");
    let id = recorder.request_id;
    let sent = write(session, id.as_str(), frame).await;
    sent.map_err(|_| Failure::CallerLeft)
}

/// A message, and trailers that say that all is well.
async fn write(
    session: &mut ServerSession,
    request_id: &str,
    frame: &'static [u8],
) -> Result<(), Box<pingora::Error>> {
    let mut head = ResponseHeader::build(200, Some(4))?;
    head.insert_header(header::CONTENT_TYPE, GRPC)?;
    head.insert_header(header::CACHE_CONTROL, "no-store")?;
    head.insert_header(REQUEST_ID, request_id)?;
    write_head(session, head, false).await?;
    session
        .write_response_body(Bytes::from_static(frame), false)
        .await?;
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    session.write_response_trailers(trailers).await
}
