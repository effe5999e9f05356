//! `grpc-timeout`: how long a caller is willing to wait (gRPC over HTTP/2, "Timeout").

use http::HeaderMap;
use std::time::Duration;

/// Name of the header field.
pub const TIMEOUT: &str = "grpc-timeout";

/// A `grpc-timeout` that is none: there are two, or it is not one to eight digits and a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadTimeout;

/// The deadline that the caller declared, counted from the request's arrival; `None` for none.
///
/// # Errors
/// [`BadTimeout`].
pub fn declared(headers: &HeaderMap) -> Result<Option<Duration>, BadTimeout> {
    let mut values = headers.get_all(TIMEOUT).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => parse(value.as_bytes()).map(Some),
        (Some(_), Some(_)) => Err(BadTimeout),
    }
}

/// Reads one value: at most eight digits, then `H`, `M`, `S`, `m`, `u` or `n`.
///
/// # Errors
/// [`BadTimeout`].
pub fn parse(value: &[u8]) -> Result<Duration, BadTimeout> {
    let (unit, digits) = value.split_last().ok_or(BadTimeout)?;
    if digits.is_empty() || digits.len() > 8 {
        return Err(BadTimeout);
    }
    let mut amount = 0_u64;
    for digit in digits {
        let digit = char::from(*digit).to_digit(10).ok_or(BadTimeout)?;
        amount = amount * 10 + u64::from(digit);
    }
    match unit {
        b'H' => Ok(Duration::from_secs(amount * 3600)),
        b'M' => Ok(Duration::from_secs(amount * 60)),
        b'S' => Ok(Duration::from_secs(amount)),
        b'm' => Ok(Duration::from_millis(amount)),
        b'u' => Ok(Duration::from_micros(amount)),
        b'n' => Ok(Duration::from_nanos(amount)),
        _ => Err(BadTimeout),
    }
}
