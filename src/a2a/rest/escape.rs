//! Percent escapes, undone once and made anew.

use std::borrow::Cow;

/// What a text of a path or query stands for; `None` for broken escapes and what is no UTF-8. In a
/// query `+` is a space, as in forms.
pub(super) fn decoded(text: &str, in_query: bool) -> Option<Cow<'_, str>> {
    let space = |byte: u8| in_query && byte == b'+';
    if !text.bytes().any(|byte| byte == b'%' || space(byte)) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => digit(rest.next()?)? << 4 | digit(rest.next()?)?,
            byte if space(byte) => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn digit(byte: u8) -> Option<u8> {
    let value = char::from(byte).to_digit(16)?;
    u8::try_from(value).ok()
}

/// Writes a segment of a path as `config::path` spells it.
pub(super) fn write_segment(text: &str, out: &mut String) {
    write(text, out, |byte| {
        is_unreserved(byte) || b"!$&'()*+,=:@".contains(&byte)
    });
}

/// Writes the value of a query parameter.
pub(super) fn write_value(text: &str, out: &mut String) {
    write(text, out, is_unreserved);
}

fn write(text: &str, out: &mut String, stands: impl Fn(u8) -> bool) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if stands(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}
