//! Taming untrusted text, and values that must never be printed (token-acceptance LG-1, LG-2, LG-4).

pub mod hidden;

use aws_lc_rs::hmac;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::{self, Write};

/// Longest untrusted text in a record or log line, in characters (LG-4).
pub const TEXT: usize = 64;
/// Longest identifier in a record, in characters.
pub const ID: usize = 256;

/// At most `n` characters of `text`, with an ellipsis where something was cut, and with control,
/// bidirectional and invisible characters written as `\u{…}`. Plain short text is borrowed.
pub fn cut(text: &str, n: usize) -> Cow<'_, str> {
    if text.len() <= n && text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len().min(n * 4) + 3);
    for (index, c) in text.chars().enumerate() {
        if index == n {
            out.push('…');
            break;
        }
        if is_deceptive(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Characters that make a terminal or a page show something else than what stands there.
fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Which token it was, without saying the token: the first eight bytes of HMAC-SHA-256 over its
/// signing input, under a key of the deployment (LG-2). Printed as 16 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 8]);

impl Fingerprint {
    /// The fingerprint of a token's signing input (`header.payload`, as it stood).
    pub fn of(key: &hmac::Key, signing_input: &[u8]) -> Fingerprint {
        let tag = hmac::sign(key, signing_input);
        let mut first = [0; 8];
        for (to, from) in first.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        Fingerprint(first)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; 16];
        f.write_str(hex(&self.0, &mut buffer))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut buffer = [0; 16];
        serializer.serialize_str(hex(&self.0, &mut buffer))
    }
}

impl JsonSchema for Fingerprint {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Fingerprint".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9a-f]{16}$"})
    }
}

/// Writes `bytes` as lower-case hex into `buffer`, which is twice as long, and returns it as text.
/// A shorter buffer gets as much as fits.
pub(crate) fn hex<'b>(bytes: &[u8], buffer: &'b mut [u8]) -> &'b str {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in buffer.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    // Hex digits and the zeros of an unfilled buffer are ASCII.
    std::str::from_utf8(buffer).unwrap_or_default()
}

/// A value that no log, record or error may show: `Debug` and `Display` print a mark, it does not
/// serialise, and reading it is a visible call.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Secret<T> {
        Secret(value)
    }

    /// The value, for the one place that must use it.
    pub fn reveal(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed_and_long_or_deceptive_text_is_tamed() {
        assert!(matches!(
            cut("review-diff", TEXT),
            Cow::Borrowed("review-diff")
        ));
        for (text, n, expected) in [
            ("abcdef", 3, "abc…"),
            ("äöü", 3, "äöü"),
            ("äöüß", 3, "äöü…"),
            ("a\nb", 9, "a\\u{a}b"),
            ("a\u{202e}b", 9, "a\\u{202e}b"),
            ("\u{7f}\u{9b}", 9, "\\u{7f}\\u{9b}"),
            ("", 3, ""),
        ] {
            assert_eq!(cut(text, n), expected, "{text:?}");
        }
    }

    #[test]
    fn a_fingerprint_is_the_head_of_the_hmac_and_depends_on_the_key() {
        // RFC 4231, test case 2.
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
        let print = Fingerprint::of(&key, b"what do ya want for nothing?");
        assert_eq!(print.to_string(), "5bdcc146bf60754e");
        let other = hmac::Key::new(hmac::HMAC_SHA256, b"jefe");
        assert_ne!(
            print,
            Fingerprint::of(&other, b"what do ya want for nothing?")
        );
    }

    #[test]
    fn a_secret_prints_nothing() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "[secret] [secret]");
        assert_eq!(*secret.reveal(), "hunter2");
    }
}
