//! Times in words, in UTC.

use crate::audit::record::Time;
use crate::source::instant::parse_instant;
use crate::source::quantity::parse_duration;

/// What is understood, for help and errors.
pub const FORMS: &str =
    "2026-05-31, 2026-05-31T14:00, now, now-2h, 7d (that long ago), today or yesterday; in UTC";
const DAY: u64 = 86_400_000;

/// Reads a time as it is meant at `now`. A day is its beginning.
///
/// # Errors
/// What would be understood.
pub fn parse(text: &str, now: Time) -> Result<Time, String> {
    let today = now.0 - now.0 % DAY;
    let ago = |text: &str| {
        let length = parse_duration(text)?;
        let millis = u64::try_from(length.as_millis()).ok()?;
        Some(Time(now.0.saturating_sub(millis)))
    };
    let found = match text {
        "now" => Some(now),
        "today" => Some(Time(today)),
        "yesterday" => Some(Time(today.saturating_sub(DAY))),
        text => ago(text.strip_prefix("now-").unwrap_or(text)).or_else(|| written(text)),
    };
    found.ok_or_else(|| format!("write a time as {FORMS}"))
}

fn written(text: &str) -> Option<Time> {
    if let Some(time) = Time::parse(text) {
        return Some(time);
    }
    let whole = match text.len() {
        10 => format!("{text}T00:00:00Z"),
        16 => format!("{text}:00Z"),
        17 if text.ends_with('Z') => format!("{}:00Z", text.trim_end_matches('Z')),
        19 => format!("{text}Z"),
        _ => text.to_owned(),
    };
    let seconds = u64::try_from(parse_instant(&whole)?).ok()?;
    Some(Time(seconds.checked_mul(1000)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_meant_now() {
        let now = Time::parse("2026-12-01T09:30:00.500Z").unwrap_or(Time(0));
        for (text, expected) in [
            ("now", "2026-12-01T09:30:00.500Z"),
            ("today", "2026-12-01T00:00:00.000Z"),
            ("yesterday", "2026-11-30T00:00:00.000Z"),
            ("7d", "2026-11-24T09:30:00.500Z"),
            ("now-2h", "2026-12-01T07:30:00.500Z"),
            ("2026-11-30", "2026-11-30T00:00:00.000Z"),
            ("2026-11-30T14:00", "2026-11-30T14:00:00.000Z"),
            ("2026-11-30T14:00Z", "2026-11-30T14:00:00.000Z"),
            ("2026-11-30T14:00:01", "2026-11-30T14:00:01.000Z"),
            ("2026-11-30T14:00:01Z", "2026-11-30T14:00:01.000Z"),
            ("2026-11-30T14:00:01.007Z", "2026-11-30T14:00:01.007Z"),
            ("2026-11-30T14:00:00+02:00", "2026-11-30T12:00:00.000Z"),
        ] {
            let found = parse(text, now).map(|time| time.to_string());
            assert_eq!(found.as_deref(), Ok(expected), "{text}");
        }
        for wrong in [
            "",
            "soon",
            "2026-13-01",
            "2026-11-30 14:00",
            "-1h",
            "now+1h",
            "7w",
        ] {
            assert!(parse(wrong, now).is_err(), "{wrong}");
        }
    }
}
