//! The answer to a card request: our own validators, 304, HEAD (A2A 1.0 section 8.6).
//!
//! There is no compression: cards are small, and one representation needs no `Vary`.

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderName, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

/// How long a client may use a card without asking: as long as we do ourselves.
const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// A body with its strong entity tag, quotes included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// JSON.
    pub body: Bytes,
    /// Over the body.
    pub etag: Box<str>,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardReply {
    /// 200, 304, or 405 for other methods than GET and HEAD.
    pub status: StatusCode,
    /// Every header that describes the body, `Content-Length` included where there is one.
    pub headers: HeaderMap,
    /// Empty for HEAD, 304 and 405.
    pub body: Bytes,
}

/// Answers a request for a card, or for our own key set, from memory.
///
/// `last_modified` is when this body was first published, in seconds since the Unix epoch.
/// `If-None-Match` takes lists, `*` and weak tags (RFC 9110 section 13.1.2); without it,
/// `If-Modified-Since` counts when it repeats our own date exactly.
pub fn respond(
    method: &Method,
    headers: &HeaderMap,
    published: &Document,
    last_modified: u64,
) -> CardReply {
    let mut reply = HeaderMap::with_capacity(5);
    if method != Method::GET && method != Method::HEAD {
        reply.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        reply.insert(CONTENT_LENGTH, HeaderValue::from(0_u64));
        return CardReply {
            status: StatusCode::METHOD_NOT_ALLOWED,
            headers: reply,
            body: Bytes::new(),
        };
    }
    let date = http_date(last_modified);
    insert(&mut reply, ETAG, &published.etag);
    insert(&mut reply, LAST_MODIFIED, &date);
    reply.insert(CACHE_CONTROL, CACHE);
    if is_unchanged(headers, &published.etag, &date) {
        return CardReply {
            status: StatusCode::NOT_MODIFIED,
            headers: reply,
            body: Bytes::new(),
        };
    }
    reply.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply.insert(CONTENT_LENGTH, HeaderValue::from(published.body.len()));
    let body = match *method {
        Method::HEAD => Bytes::new(),
        _ => published.body.clone(),
    };
    CardReply {
        status: StatusCode::OK,
        headers: reply,
        body,
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn is_unchanged(headers: &HeaderMap, etag: &str, date: &str) -> bool {
    let mut asked = headers.get_all(IF_NONE_MATCH).iter().peekable();
    if asked.peek().is_some() {
        return asked.any(|value| names_tag(value.as_bytes(), etag.as_bytes()));
    }
    headers
        .get(IF_MODIFIED_SINCE)
        .is_some_and(|since| since.as_bytes() == date.as_bytes())
}

/// Whether a list of entity tags has `etag`. Tags may contain commas, so they are walked by their
/// quotes; comparison is weak.
fn names_tag(list: &[u8], etag: &[u8]) -> bool {
    if list.trim_ascii() == b"*" {
        return true;
    }
    let mut rest = list;
    loop {
        rest = rest.trim_ascii_start();
        if let Some(after) = rest.strip_prefix(b",") {
            rest = after;
            continue;
        }
        let tag = rest.strip_prefix(b"W/").unwrap_or(rest);
        let Some(close) = tag.iter().skip(1).position(|byte| *byte == b'"') else {
            return false;
        };
        let (one, after) = tag.split_at(close + 2);
        if !one.starts_with(b"\"") {
            return false;
        }
        if one == etag {
            return true;
        }
        rest = after;
    }
}

/// IMF-fixdate (RFC 9110 section 5.6.7) of seconds since the Unix epoch.
fn http_date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    // Year 9999 is the last that four digits can say.
    let seconds = seconds.min(253_402_300_799);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 1 March 0000, so that the leap day ends a year.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(month < 2);
    let weekday = DAYS.get((days % 7) as usize).copied().unwrap_or("Thu");
    let month = MONTHS.get(month as usize).copied().unwrap_or("Jan");
    format!(
        "{weekday}, {day:02} {month} {year:04} {:02}:{:02}:{:02} GMT",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn published() -> Document {
        Document {
            body: Bytes::from_static(b"{\"name\":\"w\"}"),
            etag: "\"ab12\"".into(),
        }
    }

    fn ask(method: Method, name: HeaderName, value: &'static str) -> CardReply {
        let mut headers = HeaderMap::new();
        headers.append(name, HeaderValue::from_static(value));
        respond(&method, &headers, &published(), 1_700_000_000)
    }

    #[test]
    fn dates_are_written_as_http_wants_them() {
        let cases = [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_164_799, "Wed, 28 Feb 2024 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (u64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(http_date(seconds), expected);
        }
    }

    #[test]
    fn validators_are_compared_weakly_and_in_lists() {
        let cases = [
            ("\"ab12\"", true),
            ("W/\"ab12\"", true),
            ("\"x\", W/\"ab12\"", true),
            ("\"a,b\" , \"ab12\"", true),
            (" * ", true),
            ("\"x,\"ab12\"", false),
            ("\"x\"", false),
            ("ab12", false),
            ("W/", false),
            ("", false),
            ("\"", false),
        ];
        for (value, unchanged) in cases {
            let reply = ask(Method::GET, IF_NONE_MATCH, value);
            let expected = if unchanged { 304 } else { 200 };
            assert_eq!(reply.status, expected, "{value}");
            assert_eq!(reply.body.is_empty(), unchanged, "{value}");
            assert_eq!(reply.headers[ETAG], "\"ab12\"");
        }
    }

    #[test]
    fn a_changed_tag_beats_an_unchanged_date() {
        let date = "Tue, 14 Nov 2023 22:13:20 GMT";
        assert_eq!(ask(Method::GET, IF_MODIFIED_SINCE, date).status, 304);
        let mut headers = HeaderMap::new();
        headers.insert(IF_MODIFIED_SINCE, HeaderValue::from_static(date));
        headers.insert(IF_NONE_MATCH, HeaderValue::from_static("\"old\""));
        let reply = respond(&Method::GET, &headers, &published(), 1_700_000_000);
        assert_eq!(reply.status, 200);
    }

    #[test]
    fn head_says_the_length_and_sends_nothing() {
        let get = respond(&Method::GET, &HeaderMap::new(), &published(), 5);
        let head = respond(&Method::HEAD, &HeaderMap::new(), &published(), 5);
        assert_eq!(head.headers, get.headers);
        assert_eq!(head.headers[CONTENT_LENGTH], "12");
        assert_eq!((get.body.len(), head.body.len()), (12, 0));
        let post = respond(&Method::POST, &HeaderMap::new(), &published(), 5);
        assert_eq!((post.status.as_u16(), post.body.len()), (405, 0));
    }
}
