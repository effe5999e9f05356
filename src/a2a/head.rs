//! What a request's headers and query say about its body: media type, version, extensions.
//!
//! `a2a-protocol.md` d, field case FC-28. Everything unclear is refused: a server that reads the
//! first of two headers and one that reads the last must not be told different things.

use super::call::Malformed;
use super::fault::Fault;
use super::operation::{Version, Versions};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use std::borrow::Cow;

/// Name of the version header and of the query parameter that stands for it (A2A 1.0 section 3.6).
const VERSION: &str = "a2a-version";
const VERSION_QUERY: &str = "A2A-Version";

/// Names of the extension header, 1.0's and 0.3's.
const EXTENSIONS: [&str; 2] = ["a2a-extensions", "x-a2a-extensions"];

/// A call asks for no more extensions than this.
const MAX_EXTENSIONS: usize = 32;
/// No extension's URI is longer.
const MAX_EXTENSION_CHARS: usize = 256;

/// The name of the extension header in a version: servers of each read their own (FC-44).
pub fn extensions_header(version: Version) -> &'static str {
    match version {
        Version::V0_3 => "x-a2a-extensions",
        Version::V1_0 => "a2a-extensions",
    }
}

/// What the head of a request says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The version that the caller declared, in `A2A-Version` or in the query; `None` when neither
    /// says one, and then the spelling decides.
    pub version: Option<Version>,
    /// Extensions that the caller asks for under either header name, each once: at most 32 URIs of
    /// 256 characters.
    pub extensions: Vec<Box<str>>,
}

/// Reads the head of a JSON-RPC request. `query` is the raw query without `?`.
///
/// # Errors
/// [`Fault::ContentTypeNotSupported`] unless there is exactly one `Content-Type`, it is
/// `application/json` with no parameter but `charset=utf-8`, and no `Content-Encoding` but
/// `identity`; [`Fault::VersionNotSupported`] when the version is stated twice in one place,
/// differently in two, or is none that we know; [`Fault::InvalidRequest`] when an extension is no
/// URI, or there are too many.
pub fn read(headers: &HeaderMap, query: Option<&str>) -> Result<Head, Malformed> {
    read_of(headers, query, &[crate::a2a::JSON])
}

/// Reads the head of a request whose body has one of `media_types`; none for one without a body,
/// whose media type and encoding say nothing.
///
/// # Errors
/// As [`read`].
pub(super) fn read_of(
    headers: &HeaderMap,
    query: Option<&str>,
    media_types: &[&str],
) -> Result<Head, Malformed> {
    if !media_types.is_empty() {
        content_type(headers, media_types)?;
        content_encoding(headers)?;
    }
    Ok(Head {
        version: version(headers, query)?,
        extensions: extensions(headers)?,
    })
}

impl Head {
    /// Checks that the call's spelling, which is of `spelled`, is what the caller declared and what
    /// the interface offers.
    ///
    /// # Errors
    /// A code, for [`Fault::VersionNotSupported`].
    pub(super) fn agrees(&self, spelled: Version, offered: Versions) -> Result<(), &'static str> {
        if self.version.is_some_and(|stated| stated != spelled) {
            return Err("version_mismatch");
        }
        match offered.contains(spelled) {
            true => Ok(()),
            false => Err("version_not_offered"),
        }
    }
}

fn unsupported(code: &'static str) -> Malformed {
    Malformed::before_body(Fault::ContentTypeNotSupported, code)
}

fn content_type(headers: &HeaderMap, media_types: &[&str]) -> Result<(), Malformed> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let value = values
        .next()
        .ok_or_else(|| unsupported("content_type_missing"))?;
    if values.next().is_some() {
        return Err(unsupported("content_type_twice"));
    }
    let value = value
        .to_str()
        .map_err(|_| unsupported("content_type_bytes"))?;
    let mut pieces = value
        .split(';')
        .map(|piece| piece.trim_matches([' ', '\t']));
    let media_type = pieces.next().unwrap_or_default();
    if !media_types
        .iter()
        .any(|ours| media_type.eq_ignore_ascii_case(ours))
    {
        return Err(unsupported("content_type_other"));
    }
    let mut charset = false;
    for parameter in pieces.filter(|piece| !piece.is_empty()) {
        let utf_8 = parameter.split_once('=').is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case("charset")
                && (value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("\"utf-8\""))
        });
        if !utf_8 || charset {
            return Err(unsupported("content_type_parameter"));
        }
        charset = true;
    }
    Ok(())
}

fn content_encoding(headers: &HeaderMap) -> Result<(), Malformed> {
    let mut values = headers.get_all(CONTENT_ENCODING).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(()),
        (Some(value), None) if value.as_bytes().eq_ignore_ascii_case(b"identity") => Ok(()),
        _ => Err(unsupported("content_encoding")),
    }
}

fn version(headers: &HeaderMap, query: Option<&str>) -> Result<Option<Version>, Malformed> {
    let unclear = |code| Malformed::before_body(Fault::VersionNotSupported, code);
    let mut values = headers.get_all(VERSION).iter();
    let in_header = match (values.next(), values.next()) {
        (None, _) => None,
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| unclear("version_unknown"))?;
            known_version(text.trim_matches([' ', '\t']))?
        }
        _ => return Err(unclear("version_twice")),
    };
    let mut in_query = None;
    for pair in query.unwrap_or_default().split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = percent_decoded(name);
        if !name.eq_ignore_ascii_case(VERSION_QUERY) {
            continue;
        }
        // A server may look parameters up in any case; which of them counts must not matter.
        if name != VERSION_QUERY || in_query.is_some() {
            return Err(unclear("version_twice"));
        }
        in_query = Some(known_version(&percent_decoded(value))?);
    }
    match (in_header, in_query.flatten()) {
        (Some(header), Some(query)) if header != query => Err(unclear("version_differs")),
        (header, query) => Ok(header.or(query)),
    }
}

/// `None` for the empty string, which states nothing.
fn known_version(text: &str) -> Result<Option<Version>, Malformed> {
    match text {
        "" => Ok(None),
        "0.3" => Ok(Some(Version::V0_3)),
        "1.0" => Ok(Some(Version::V1_0)),
        _ => Err(Malformed::before_body(
            Fault::VersionNotSupported,
            "version_unknown",
        )),
    }
}

/// Percent escapes undone once; what is no escape stays, and what is no UTF-8 matches nothing.
pub(super) fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escape = (first == b'%')
            .then(|| after.get(..2))
            .flatten()
            .and_then(|digits| {
                let high = char::from(digits[0]).to_digit(16)?;
                let low = char::from(digits[1]).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()
            });
        match escape {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    Cow::Owned(String::from_utf8(bytes).unwrap_or_else(|_| "\u{fffd}".to_owned()))
}

/// Whether a field has either name of the extension header, or one that servers of the CGI kind
/// read as one.
pub fn declares_extensions(name: &str) -> bool {
    let alike = |(byte, want): (u8, u8)| byte == want || (byte == b'_' && want == b'-');
    EXTENSIONS
        .iter()
        .any(|known| name.len() == known.len() && name.bytes().zip(known.bytes()).all(alike))
}

/// The extensions that a reply's header names as active, under either name: for the record only,
/// so what is unclear or too much is left out.
pub fn active_extensions(headers: &HeaderMap) -> Vec<Box<str>> {
    let values = EXTENSIONS.iter().flat_map(|name| headers.get_all(*name));
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|uri| uri.trim_matches([' ', '\t']))
        .filter(|uri| is_extension(uri))
        .take(MAX_EXTENSIONS)
        .map(Box::from)
        .collect()
}

fn extensions(headers: &HeaderMap) -> Result<Vec<Box<str>>, Malformed> {
    let refused = |code| Malformed::before_body(Fault::InvalidRequest, code);
    let mut found: Vec<Box<str>> = Vec::new();
    let values = EXTENSIONS.iter().flat_map(|name| headers.get_all(*name));
    for value in values {
        let text = value.to_str().map_err(|_| refused("extension_uri"))?;
        for uri in text.split(',').map(|uri| uri.trim_matches([' ', '\t'])) {
            if uri.is_empty() || found.iter().any(|known| **known == *uri) {
                continue;
            }
            if !is_extension(uri) {
                return Err(refused("extension_uri"));
            }
            if found.len() == MAX_EXTENSIONS {
                return Err(refused("too_many_extensions"));
            }
            found.push(uri.into());
        }
    }
    Ok(found)
}

/// Whether a text is a URI with a scheme, as far as its characters tell (RFC 3986 section 2).
fn is_extension(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    text.len() <= MAX_EXTENSION_CHARS
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        && !rest.is_empty()
        && rest.bytes().all(|b| {
            b.is_ascii_graphic()
                && !matches!(
                    b,
                    b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}'
                )
        })
}
