//! What a request head must look like before anything routes on it.
//!
//! Pingora is lenient where two parsers could disagree (RFC 9112 sections 2.2, 6.1, 6.3); we are
//! not. Bounds and refusals follow the table on malformed input that was tried out on Pingora.

use crate::a2a::Fault;
use http::header::{CONTENT_LENGTH, EXPECT, HOST, HeaderName, TE, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Version};
use pingora::http::RequestHeader;
use std::time::Duration;

/// Most header lines.
pub const MAX_HEADERS: usize = 100;
/// Largest request head in bytes.
pub const MAX_HEAD_BYTES: usize = 32 * 1024;
/// What a connection of a caller may cost.
#[derive(Debug, Clone, Copy)]
pub struct Connections {
    /// From the connection, or the last answer plus `idle`, to a whole request head.
    pub head: Duration,
    /// How long a kept-alive connection may be idle, in seconds.
    pub idle: u64,
    /// Open connections per listener.
    pub open: usize,
}

impl Connections {
    /// What holds where nothing else is said.
    pub const DEFAULT: Connections = Connections {
        head: Duration::from_secs(15),
        idle: 60,
        open: 20_000,
    };
}

/// How long a write to the caller may be stuck.
pub const STUCK_CALLER: Duration = Duration::from_secs(60);
/// Whole time for a caller to send its body.
pub const BODY_DEADLINE: Duration = Duration::from_secs(60);
/// An unread body up to this declared size is drained after a refusal; above it we close.
pub const DRAIN_AT_MOST: u64 = 4 * 1024 * 1024;
/// How long draining may take.
pub const DRAIN_DEADLINE: Duration = Duration::from_secs(2);

/// Why a head is refused: the fault and a private code.
pub type HeadFault = (Fault, &'static str);

/// Checks a parsed head against its raw bytes.
///
/// `raw` is the head as it came, without the body. Errors name the first thing found.
pub fn check_head(
    method: &Method,
    version: Version,
    headers: &HeaderMap,
    target: &[u8],
    raw: &[u8],
) -> Result<(), HeadFault> {
    if raw.len() > MAX_HEAD_BYTES {
        return Err((Fault::HeadersTooLarge, "head_too_large"));
    }
    if headers.len() > MAX_HEADERS {
        return Err((Fault::HeadersTooLarge, "too_many_headers"));
    }
    if *method == Method::CONNECT {
        return Err((Fault::MethodNotAllowed, "connect_method"));
    }
    let survey = survey(raw);
    if survey.bare_line_feed {
        return Err((Fault::BadRequest, "bare_line_feed"));
    }
    check_framing(version, headers, &survey)?;
    check_host(headers, target)?;
    check_expectation(headers)
}

fn check_expectation(headers: &HeaderMap) -> Result<(), HeadFault> {
    if let Some(expect) = headers.get(EXPECT)
        && !expect.as_bytes().eq_ignore_ascii_case(b"100-continue")
    {
        return Err((Fault::BadRequest, "unknown_expectation"));
    }
    Ok(())
}

/// Checks the head of an HTTP/2 request (RFC 9113 section 8.3). Its size is bounded by what we
/// tell the caller, and how much body there is by the protocol.
pub fn check_h2_head(head: &RequestHeader) -> Result<(), HeadFault> {
    let headers = &head.headers;
    if headers.len() > MAX_HEADERS {
        return Err((Fault::HeadersTooLarge, "too_many_headers"));
    }
    if head.method == Method::CONNECT {
        return Err((Fault::MethodNotAllowed, "connect_method"));
    }
    if OF_A_CONNECTION.iter().any(|n| headers.contains_key(n)) {
        return Err((Fault::BadRequest, "connection_field_in_h2"));
    }
    if headers
        .get_all(TE)
        .iter()
        .any(|te| !te.as_bytes().eq_ignore_ascii_case(b"trailers"))
    {
        return Err((Fault::BadRequest, "te_in_h2"));
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    if let Some(length) = lengths.next()
        && (length.is_empty() || !length.as_bytes().iter().all(u8::is_ascii_digit))
    {
        return Err((Fault::BadRequest, "bad_length"));
    }
    if lengths.next().is_some() {
        return Err((Fault::BadRequest, "two_lengths"));
    }
    let mut hosts = headers.get_all(HOST).iter();
    let (host, another) = (hosts.next(), hosts.next());
    if another.is_some() {
        return Err((Fault::BadRequest, "two_hosts"));
    }
    match (head.uri.authority(), host) {
        (None, None) => return Err((Fault::BadRequest, "no_host")),
        (Some(authority), Some(host))
            if !host
                .as_bytes()
                .eq_ignore_ascii_case(authority.as_str().as_bytes()) =>
        {
            return Err((Fault::BadRequest, "target_and_host_differ"));
        }
        (Some(_), _) | (None, Some(_)) => {}
    }
    check_expectation(headers)
}

/// Fields that belong to one connection of HTTP/1.1 (RFC 9113 section 8.2.2).
const OF_A_CONNECTION: [HeaderName; 4] = [
    http::header::CONNECTION,
    TRANSFER_ENCODING,
    http::header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// To whom a request is addressed: `:authority`, or `Host`.
pub fn host_of(head: &RequestHeader) -> &[u8] {
    let authority = head
        .uri
        .authority()
        .filter(|_| head.version == Version::HTTP_2);
    match authority {
        Some(authority) => authority.as_str().as_bytes(),
        None => head.headers.get(HOST).map_or(&b""[..], |h| h.as_bytes()),
    }
}

/// What only the raw bytes of a head tell.
#[derive(Default)]
struct Survey {
    bare_line_feed: bool,
    /// Lines of `Content-Length`, and of `Transfer-Encoding`.
    lengths: usize,
    codings: usize,
}

/// Looks at every byte once: heads are the larger half of many requests.
fn survey(raw: &[u8]) -> Survey {
    let mut survey = Survey::default();
    let mut first = true;
    for line in raw.split_inclusive(|&b| b == b'\n') {
        survey.bare_line_feed |= line.ends_with(b"\n") && !line.ends_with(b"\r\n");
        if !std::mem::take(&mut first) {
            survey.lengths += usize::from(has_name(line, b"content-length"));
            survey.codings += usize::from(has_name(line, b"transfer-encoding"));
        }
    }
    survey
}

/// Whether a line carries the field `name` (lower case).
fn has_name(line: &[u8], name: &[u8]) -> bool {
    line.get(..name.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(name))
        && line[name.len()..]
            .iter()
            .find(|b| !matches!(b, b' ' | b'\t'))
            == Some(&b':')
}

/// RFC 9112 section 6.3: one framing, stated once. Pingora removes `Content-Length` beside
/// `Transfer-Encoding` and collapses equal lengths, so the raw head is what is looked at.
fn check_framing(version: Version, headers: &HeaderMap, survey: &Survey) -> Result<(), HeadFault> {
    let (lengths, codings) = (survey.lengths, survey.codings);
    if lengths > 1 {
        return Err((Fault::BadRequest, "two_lengths"));
    }
    if lengths == 1 && codings > 0 {
        return Err((Fault::BadRequest, "length_and_transfer_encoding"));
    }
    if let Some(length) = headers.get(CONTENT_LENGTH)
        && (length.is_empty() || !length.as_bytes().iter().all(u8::is_ascii_digit))
    {
        return Err((Fault::BadRequest, "bad_length"));
    }
    if codings > 1 {
        return Err((Fault::BadRequest, "two_transfer_encodings"));
    }
    if let Some(coding) = headers.get(TRANSFER_ENCODING) {
        if version != Version::HTTP_11 {
            return Err((Fault::BadRequest, "transfer_encoding_before_1_1"));
        }
        if !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return Err((Fault::BadRequest, "unknown_transfer_encoding"));
        }
    }
    Ok(())
}

fn check_host(headers: &HeaderMap, target: &[u8]) -> Result<(), HeadFault> {
    let mut hosts = headers.get_all(HOST).iter();
    let Some(host) = hosts.next() else {
        return Err((Fault::BadRequest, "no_host"));
    };
    if hosts.next().is_some() {
        return Err((Fault::BadRequest, "two_hosts"));
    }
    if let Some((authority, _)) = absolute_form(target)
        && !authority.eq_ignore_ascii_case(host.as_bytes())
    {
        return Err((Fault::BadRequest, "target_and_host_differ"));
    }
    Ok(())
}

/// The authority of an absolute-form request target, and what follows it (RFC 9112 section 3.2.2).
/// `None` for every other form, other schemes included.
pub fn absolute_form(target: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = strip_prefix_ignoring_case(target, b"http://")
        .or_else(|| strip_prefix_ignoring_case(target, b"https://"))?;
    let end = rest
        .iter()
        .position(|b| matches!(b, b'/' | b'?' | b'#'))
        .unwrap_or(rest.len());
    Some(rest.split_at(end))
}

fn strip_prefix_ignoring_case<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix)
        .then(|| &text[prefix.len()..])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use http::HeaderValue;

    /// Builds what Pingora would have parsed from `raw`, without its leniency.
    fn check(raw: &str) -> Result<(), HeadFault> {
        let mut lines = raw.split('\n').map(|l| l.trim_end_matches('\r'));
        let mut first = lines.next().unwrap().split(' ');
        let method = Method::from_bytes(first.next().unwrap().as_bytes()).unwrap();
        let target = first.next().unwrap();
        let version = if first.next() == Some("HTTP/1.0") {
            Version::HTTP_10
        } else {
            Version::HTTP_11
        };
        let mut headers = HeaderMap::new();
        for line in lines.filter(|l| !l.is_empty()) {
            let (name, value) = line.split_once(':').unwrap();
            let name = http::HeaderName::from_bytes(name.trim().as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_str(value.trim()).unwrap());
        }
        check_head(
            &method,
            version,
            &headers,
            target.as_bytes(),
            raw.as_bytes(),
        )
    }

    #[test]
    fn heads() {
        let long = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
            "y".repeat(MAX_HEAD_BYTES)
        );
        let many = format!(
            "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
            "X: y\r\n".repeat(MAX_HEADERS)
        );
        let table: &[(&str, Result<(), &str>)] = &[
            (
                "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n",
                Ok(()),
            ),
            (
                "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
                Ok(()),
            ),
            (
                "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n",
                Ok(()),
            ),
            ("GET http://a/x HTTP/1.1\r\nHost: A\r\n\r\n", Ok(())),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n",
                Ok(()),
            ),
            (&long, Err("head_too_large")),
            (&many, Err("too_many_headers")),
            (
                "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
                Err("connect_method"),
            ),
            ("GET / HTTP/1.1\nHost: a\r\n\r\n", Err("bare_line_feed")),
            (
                "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
                Err("bare_line_feed"),
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n",
                Err("two_lengths"),
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2, 2\r\n\r\n",
                Err("bad_length"),
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\n",
                Err("bad_length"),
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n",
                Err("length_and_transfer_encoding"),
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                Err("unknown_transfer_encoding"),
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\ntransfer-encoding : chunked\r\n\r\n",
                Err("two_transfer_encodings"),
            ),
            (
                "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
                Err("transfer_encoding_before_1_1"),
            ),
            ("GET / HTTP/1.1\r\nX: y\r\n\r\n", Err("no_host")),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
                Err("two_hosts"),
            ),
            (
                "GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n",
                Err("target_and_host_differ"),
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n",
                Err("unknown_expectation"),
            ),
        ];
        for (raw, expected) in table {
            let found = check(raw).map_err(|(_, code)| code);
            assert_eq!(&found, expected, "{}", raw.escape_debug());
        }
    }
}
