//! Instants as RFC 3339 writes them, in seconds since 1970.

/// `YYYY-MM-DDThh:mm:ss` with `Z` or an offset (RFC 3339 section 5.6), without fractions.
pub fn parse_instant(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let digits = text.get(range)?;
        digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| digits.parse().ok())?
    };
    let sign = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|b| wanted.contains(b));
    let marks =
        sign(4, b"-") && sign(7, b"-") && sign(10, b"Tt") && sign(13, b":") && sign(16, b":");
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let offset = match text.get(19..)? {
        "Z" | "z" => 0,
        zone if zone.len() == 6 && sign(19, b"+-") && sign(22, b":") => {
            let (hours, minutes) = (number(20..22)?, number(23..25)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let offset = hours * 3600 + minutes * 60;
            if zone.starts_with('-') {
                -offset
            } else {
                offset
            }
        }
        _ => return None,
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    };
    let good = marks
        && (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !good {
        return None;
    }
    // Days since the epoch in the proleptic Gregorian calendar, years beginning in March so that
    // the leap day is the last of a year.
    let shifted = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

/// The first second after a day, `YYYY-MM-DD`, in UTC.
pub fn end_of_day(text: &str) -> Option<i64> {
    let noon = (text.len() == 10).then(|| parse_instant(&format!("{text}T12:00:00Z")))??;
    Some(noon + 12 * 3600)
}

#[cfg(test)]
mod tests {
    use super::{end_of_day, parse_instant};

    #[test]
    fn instants_are_rfc_3339() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00Z", Some(951_825_600)),
            ("2027-01-31T00:00:00+01:00", Some(1_801_350_000)),
            ("9999-12-31T23:59:59Z", Some(253_402_300_799)),
            ("2001-02-29T00:00:00Z", None),
            ("2027-13-01T00:00:00Z", None),
            ("2027-01-31", None),
            ("2027-01-31T00:00:00", None),
            ("2027-01-31 00:00:00Z", None),
            ("2027-01-31T00:00:00+0100", None),
            ("+027-01-31T00:00:00Z", None),
            ("2027-01-31T24:00:00Z", None),
        ];
        for (text, instant) in cases {
            assert_eq!(parse_instant(text), instant, "{text}");
        }
    }
    #[test]
    fn a_day_ends_with_its_last_second() {
        assert_eq!(end_of_day("1970-01-01"), Some(86_400));
        assert_eq!(
            end_of_day("2000-02-29"),
            parse_instant("2000-03-01T00:00:00Z")
        );
        for text in [
            "2001-02-29",
            "2027-1-31",
            "2027-01-31T00:00:00Z",
            "",
            "tomorrow, ",
        ] {
            assert_eq!(end_of_day(text), None, "{text}");
        }
    }
}
