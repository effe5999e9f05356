//! Paths of requests, made canonical once: the value that decides is the value that is sent.
//!
//! `design.md` section 4. What two honest parsers could read differently is refused (FC-81): dot
//! segments, empty segments, encoded separators, parameters, control characters, and text that
//! would still be encoded after decoding once.

use std::borrow::Cow;
use std::fmt;

/// A path in its one spelling.
///
/// Segments are percent-decoded once and encoded again: only characters that RFC 3986 section 3.3
/// allows in a segment stand as they are, without `;`; everything else is `%` and two upper-case
/// digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalPath<'a> {
    text: Cow<'a, str>,
    trailing_slash: bool,
}

impl CanonicalPath<'_> {
    /// The path without a trailing slash: empty for `/`, else it starts with `/`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether one trailing slash was dropped (FC-08: both forms reach the same place).
    pub fn had_trailing_slash(&self) -> bool {
        self.trailing_slash
    }
}

/// Why a path is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathFault {
    /// It does not start with `/`.
    NotAbsolute,
    /// Two slashes in a row.
    EmptySegment,
    /// A segment `.` or `..`, encoded or not.
    DotSegment,
    /// An encoded `/`, or `\` encoded or not.
    Separator,
    /// A control character, encoded or not.
    Control,
    /// A `;`, encoded or not.
    Parameter,
    /// `%` without two hexadecimal digits.
    BadEscape,
    /// Still percent-encoded after decoding once.
    DoubleEncoded,
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// A character that RFC 3986 does not allow in a path unless it is encoded.
    BadCharacter,
}

impl fmt::Display for PathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PathFault::NotAbsolute => "it does not start with `/`",
            PathFault::EmptySegment => "it has an empty segment (`//`)",
            PathFault::DotSegment => "it has a segment `.` or `..`",
            PathFault::Separator => "it has an encoded `/` or a `\\`",
            PathFault::Control => "it has a control character",
            PathFault::Parameter => "it has a `;`",
            PathFault::BadEscape => "it has a `%` without two hexadecimal digits",
            PathFault::DoubleEncoded => "it is percent-encoded twice",
            PathFault::NotUtf8 => "it is not UTF-8",
            PathFault::BadCharacter => "it has a character that must be percent-encoded",
        })
    }
}

/// Brings a path into its one spelling. A query is not part of it.
///
/// Does not allocate for a path without `%`.
///
/// # Errors
/// Refuses what [`PathFault`] lists.
pub fn canonical(raw: &str) -> Result<CanonicalPath<'_>, PathFault> {
    let Some(inner) = raw.strip_prefix('/') else {
        return Err(PathFault::NotAbsolute);
    };
    if inner.is_empty() {
        return Ok(CanonicalPath {
            text: Cow::Borrowed(""),
            trailing_slash: true,
        });
    }
    let (inner, trailing_slash) = match inner.strip_suffix('/') {
        Some(shorter) => (shorter, true),
        None => (inner, false),
    };
    let mut escaped = false;
    for segment in inner.split('/') {
        escaped |= check(segment)?;
    }
    let text = if escaped {
        Cow::Owned(respell(inner)?)
    } else {
        Cow::Borrowed(raw.get(..=inner.len()).unwrap_or(raw))
    };
    Ok(CanonicalPath {
        text,
        trailing_slash,
    })
}

/// Checks a segment as it was written; says whether it has escapes.
fn check(segment: &str) -> Result<bool, PathFault> {
    match segment {
        "" => return Err(PathFault::EmptySegment),
        "." | ".." => return Err(PathFault::DotSegment),
        _ => {}
    }
    let mut escaped = false;
    for byte in segment.bytes() {
        match byte {
            b'%' => escaped = true,
            b if is_literal(b) => {}
            b => return Err(fault_of(b)),
        }
    }
    Ok(escaped)
}

fn fault_of(byte: u8) -> PathFault {
    match byte {
        b'\\' | b'/' => PathFault::Separator,
        b';' => PathFault::Parameter,
        0..=0x1f | 0x7f => PathFault::Control,
        _ => PathFault::BadCharacter,
    }
}

/// Decodes and encodes each segment.
fn respell(inner: &str) -> Result<String, PathFault> {
    let mut text = String::with_capacity(inner.len() + 1);
    let mut decoded = Vec::with_capacity(inner.len());
    for segment in inner.split('/') {
        decode(segment, &mut decoded)?;
        let meant = std::str::from_utf8(&decoded).map_err(|_| PathFault::NotUtf8)?;
        if meant == "." || meant == ".." {
            return Err(PathFault::DotSegment);
        }
        if meant.chars().any(char::is_control) {
            return Err(PathFault::Control);
        }
        text.push('/');
        for &byte in meant.as_bytes() {
            match byte {
                b'/' | b'\\' => return Err(PathFault::Separator),
                b';' => return Err(PathFault::Parameter),
                b if is_literal(b) => text.push(char::from(b)),
                b => {
                    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                    text.push('%');
                    text.push(char::from(DIGITS[usize::from(b >> 4)]));
                    text.push(char::from(DIGITS[usize::from(b & 15)]));
                }
            }
        }
    }
    Ok(text)
}

fn decode(segment: &str, decoded: &mut Vec<u8>) -> Result<(), PathFault> {
    decoded.clear();
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (Some(high), Some(low)) = (
            bytes.next().and_then(hex_value),
            bytes.next().and_then(hex_value),
        ) else {
            return Err(PathFault::BadEscape);
        };
        decoded.push(high << 4 | low);
    }
    // An agent that decodes twice would see another path than the one that was judged.
    let twice = decoded
        .windows(3)
        .any(|w| w[0] == b'%' && w[1].is_ascii_hexdigit() && w[2].is_ascii_hexdigit());
    if twice {
        return Err(PathFault::DoubleEncoded);
    }
    Ok(())
}

fn hex_value(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|d| u8::try_from(d).ok())
}

/// `pchar` of RFC 3986 section 3.3 without `%` and `;`.
fn is_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b'='
                | b':'
                | b'@'
        )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn path_tricks_are_refused() {
        use PathFault::*;
        let cases = [
            ("/agents/weather/..;/admin", Parameter),
            ("//agents/weather", EmptySegment),
            ("/agents//weather", EmptySegment),
            ("/agents/weather//", EmptySegment),
            ("//", EmptySegment),
            ("/agents/weather/%2e%2e/news", DotSegment),
            ("/agents/weather/.%2E/news", DotSegment),
            ("/agents/weather%2fmessage:send", Separator),
            ("/agents/weather%5Cnews", Separator),
            ("/agents/weather\\news", Separator),
            ("/agents/./weather", DotSegment),
            ("/agents/weather/..", DotSegment),
            ("/agents/weather/../", DotSegment),
            ("/agents/weather;x=1", Parameter),
            ("/agents/weather%3bx", Parameter),
            ("/agents/%00", Control),
            ("/agents/%7f", Control),
            ("/agents/%C2%85", Control),
            ("/agents/a\tb", Control),
            ("/agents/%252e%252e/x", DoubleEncoded),
            ("/agents/%25%32%66x", DoubleEncoded),
            ("/agents/%c0%af", NotUtf8),
            ("/agents/%", BadEscape),
            ("/agents/%4", BadEscape),
            ("/agents/%+4", BadEscape),
            ("/agents/é", BadCharacter),
            ("/agents/a b", BadCharacter),
            ("/agents?x", BadCharacter),
            ("/agents#x", BadCharacter),
            ("agents", NotAbsolute),
            ("", NotAbsolute),
            ("*", NotAbsolute),
            ("http://h/agents", NotAbsolute),
        ];
        for (raw, fault) in cases {
            assert_eq!(canonical(raw), Err(fault), "{raw}");
        }
    }

    #[test]
    fn one_spelling_for_one_path() {
        let cases = [
            ("/", "", true),
            ("/agents/weather", "/agents/weather", false),
            ("/agents/weather/", "/agents/weather", true),
            ("/agents/%77eather", "/agents/weather", false),
            ("/a/message%3Asend", "/a/message:send", false),
            ("/a/%c3%a9", "/a/%C3%A9", false),
            ("/a/50%25", "/a/50%25", false),
            ("/a/x%20y/", "/a/x%20y", true),
            ("/Agents", "/Agents", false),
            ("/a/...", "/a/...", false),
        ];
        for (raw, text, slash) in cases {
            let path = canonical(raw).unwrap();
            assert_eq!(
                (path.as_str(), path.had_trailing_slash()),
                (text, slash),
                "{raw}"
            );
            assert_eq!(matches!(path.text, Cow::Owned(_)), raw.contains('%'));
        }
    }

    proptest! {
        #[test]
        fn the_canonical_spelling_is_stable(raw in "/([a-c./%;\\\\2-5eEfF:é ]{0,12}/?){0,4}") {
            if let Ok(path) = canonical(&raw) {
                let again = canonical(if path.as_str().is_empty() { "/" } else { path.as_str() });
                let again = again.unwrap();
                prop_assert_eq!(again.as_str(), path.as_str());
                prop_assert!(!path.as_str().ends_with('/'));
                prop_assert!(path.as_str().split('/').skip(1).all(|s| !matches!(s, "" | "." | "..")));
            }
        }

        #[test]
        fn any_text_is_judged_without_panic(raw in ".{0,60}") {
            let _ = canonical(&raw);
        }
    }
}
