//! `grpc.health.v1.Health/Check`: answered by us, for an agent, without asking the agent.
//!
//! gRPC health checking protocol. `Watch` and `List` stay UNIMPLEMENTED, which that protocol
//! provides for; clients then go without.

use super::super::call::Malformed;
use super::super::fault::Fault;
use super::super::operation::Versions;
use super::super::request::Request;
use super::super::strict_proto::Kind::Text;
use super::super::strict_proto::table::{closed, once};
use super::super::strict_proto::{Cursor, Message, Unknown};
use super::{frame, media_type};

/// The path of the one method that is answered.
pub const CHECK: &str = "/grpc.health.v1.Health/Check";

/// Longest request, in bytes: it has one name.
pub const MAX_REQUEST: usize = 1024;

/// `grpc.health.v1.HealthCheckRequest`.
pub static HEALTH_CHECK_REQUEST: Message =
    closed("HealthCheckRequest", &[once(1, "service", Text)]);

/// A frame with `HealthCheckResponse { status: SERVING }`, and with `NOT_SERVING`.
const SERVING: &[u8] = &[0, 0, 0, 0, 2, 0x08, 1];
const NOT_SERVING: &[u8] = &[0, 0, 0, 0, 2, 0x08, 2];

/// The frame that answers a request. `offered` are the versions of the agent's gRPC interfaces;
/// without one there is nothing to serve.
///
/// # Errors
/// [`Malformed`]: no clear request, or [`Fault::NoSuchService`] for a service that is not here.
pub fn answer(
    request: &Request<'_>,
    offered: Versions,
    ready: bool,
) -> Result<&'static [u8], Malformed> {
    if *request.method != http::Method::POST {
        return Err(Malformed::before_body(
            Fault::MethodNotAllowed,
            "not_a_post",
        ));
    }
    media_type(request.headers).map_err(|(fault, code)| Malformed::before_body(fault, code))?;
    let unclear = |code| Malformed::before_body(Fault::InvalidRequest, code);
    let message = frame::single(request.body).map_err(|fault| unclear(fault.code()))?;
    let mut cursor = Cursor::new(message, &HEALTH_CHECK_REQUEST, Unknown::Refused);
    let mut service = "";
    while let Some(item) = cursor.next().map_err(|fault| unclear(fault.code()))? {
        service = item.text();
    }
    let here = match service {
        "" => offered.v0_3 || offered.v1_0,
        "lf.a2a.v1.A2AService" => offered.v1_0,
        "a2a.v1.A2AService" => offered.v0_3,
        _ => {
            return Err(Malformed::before_body(
                Fault::NoSuchService,
                "unknown_service",
            ));
        }
    };
    Ok(match ready && here {
        true => SERVING,
        false => NOT_SERVING,
    })
}
