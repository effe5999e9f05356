//! The gRPC binding, in and out.

pub mod frame;

use super::call::{Malformed, ReadRules};
use super::fault::{Entry, Fault};
use super::operation::Version;
use super::request::{Reading, Request};
use super::wire;
use std::borrow::Cow;

/// The status of a gRPC answer, as its trailers say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcStatus {
    /// `grpc-status`.
    pub code: u8,
    /// `grpc-message`, percent-encoded.
    pub message: Cow<'static, str>,
    /// `grpc-status-details-bin`: a `google.rpc.Status` in base64; empty for none.
    pub details: Cow<'static, str>,
}

/// Whether the path is one of an operation.
pub(super) fn is_served(below: &str) -> bool {
    wire::grpc(below).is_some()
}

/// Reads one request.
///
/// # Errors
/// [`Malformed`]: it is not one clear call.
pub(super) fn read(_: &Request<'_>, _: &ReadRules) -> Result<Reading, Malformed> {
    Err(Malformed::before_body(
        Fault::UnsupportedOperation,
        "binding_not_served",
    ))
}

/// The status of an error answer.
pub(super) fn render(entry: &Entry, _: Version) -> GrpcStatus {
    GrpcStatus {
        code: entry.grpc_status,
        message: Cow::Borrowed(entry.message),
        details: Cow::Borrowed(""),
    }
}
