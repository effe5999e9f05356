//! The inside of JSON strings: finding their end, unescaping.

use super::JsonFault;
use std::borrow::Cow;
use std::ops::Range;

/// A checked string within the input, without its quotes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text {
    start: u32,
    end: u32,
    escaped: bool,
}

impl Text {
    /// Positions fit because a cursor refuses longer input; should one not, the text reads as empty.
    pub(super) fn new(start: usize, end: usize, escaped: bool) -> Text {
        Text {
            start: u32::try_from(start).unwrap_or(0),
            end: u32::try_from(end).unwrap_or(0),
            escaped,
        }
    }

    /// Whether it holds escapes.
    pub(super) fn is_escaped(&self) -> bool {
        self.escaped
    }

    /// Where it stands.
    pub(super) fn place(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Its text as it stood.
    pub(super) fn raw<'a>(&self, input: &'a str) -> &'a str {
        input
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }

    /// The string it stands for.
    pub(super) fn decode<'a>(&self, input: &'a str) -> Cow<'a, str> {
        if self.escaped {
            Cow::Owned(self.characters(input).collect())
        } else {
            Cow::Borrowed(self.raw(input))
        }
    }

    /// Its characters, unescaped.
    pub(super) fn characters<'a>(&self, input: &'a str) -> impl Iterator<Item = char> + use<'a> {
        Characters {
            rest: self.raw(input),
        }
    }
}

/// The characters of a checked string, unescaped.
struct Characters<'a> {
    rest: &'a str,
}

impl Iterator for Characters<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let first = self.rest.chars().next()?;
        let (found, length) = match first {
            '\\' => unescape(self.rest.as_bytes()).unwrap_or((char::REPLACEMENT_CHARACTER, 1)),
            other => (other, other.len_utf8()),
        };
        self.rest = self.rest.get(length..).unwrap_or_default();
        Some(found)
    }
}

/// How many bytes pass before a quote, a backslash, a control character or the end.
///
/// Eight bytes at a time: parts with base64 content make strings of megabytes.
pub(super) fn plain_prefix(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut passed = 0;
    for chunk in bytes.chunks_exact(8) {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        // A borrow can mark bytes above the first hit, never below it.
        let hits = (word.wrapping_sub(ONES * 0x20) & !word
            | quote.wrapping_sub(ONES) & !quote
            | backslash.wrapping_sub(ONES) & !backslash)
            & HIGH;
        if hits != 0 {
            return passed + (hits.trailing_zeros() / 8) as usize;
        }
        passed += 8;
    }
    passed
        + bytes[passed..]
            .iter()
            .take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20))
            .count()
}

/// The character that the escape at the start of `bytes` stands for, and the escape's length.
pub(super) fn unescape(bytes: &[u8]) -> Result<(char, usize), JsonFault> {
    let simple = match bytes.get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unescape_unicode(bytes),
        Some(_) => return Err(JsonFault::Syntax),
        None => return Err(JsonFault::Truncated),
    };
    Ok((simple, 2))
}

fn unescape_unicode(bytes: &[u8]) -> Result<(char, usize), JsonFault> {
    let unit = hex4(&bytes[2..])?;
    if let Some(found) = char::from_u32(unit) {
        return Ok((found, 6));
    }
    let rest = &bytes[6..];
    if unit >= 0xdc00 || !rest.starts_with(b"\\u") {
        return Err(JsonFault::LoneSurrogate);
    }
    let low = hex4(&rest[2..])?;
    if !(0xdc00..0xe000).contains(&low) {
        return Err(JsonFault::LoneSurrogate);
    }
    char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
        .map(|found| (found, 12))
        .ok_or(JsonFault::LoneSurrogate)
}

fn hex4(bytes: &[u8]) -> Result<u32, JsonFault> {
    let digits = bytes.get(..4).ok_or(JsonFault::Truncated)?;
    digits.iter().try_fold(0, |value, &digit| {
        char::from(digit)
            .to_digit(16)
            .map(|digit| value * 16 + digit)
            .ok_or(JsonFault::Syntax)
    })
}
