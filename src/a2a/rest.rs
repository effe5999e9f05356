//! The HTTP+JSON binding, in and out.

use super::call::{Malformed, ReadRules};
use super::fault::{Entry, Fault};
use super::operation::Version;
use super::request::{Reading, Request};
use bytes::Bytes;

/// Whether the path is one of an operation.
pub(super) fn is_served(_: &str) -> bool {
    false
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

/// The body of an error answer.
pub(super) fn render(entry: &Entry, _: Version) -> Bytes {
    Bytes::from_static(entry.plain.as_bytes())
}
