//! Instants: RFC 3339, or seconds since the epoch.

use crate::source::instant::parse_instant;
use crate::source::{Kind, Value, codes};

/// Largest NumericDate (CL-14): the last second of the year 9999.
const LAST_INSTANT: i64 = 253_402_300_799;

/// RFC 3339, or seconds since the epoch.
pub(in crate::config) fn instant(value: &Value<'_, '_>) -> Option<i64> {
    if matches!(value.node.kind, Kind::Int(_)) {
        return value.integer(0..=LAST_INSTANT);
    }
    let text = value.text()?;
    let instant = parse_instant(text);
    if instant.is_none() {
        value.error(
            codes::BAD_INSTANT,
            "not an instant",
            "write RFC 3339, `2027-01-31T00:00:00Z`, or whole seconds since 1970",
        );
    }
    instant
}
