//! From header fields and query to the one presented token (TR-1 to TR-8, TR-11, TR-13).

use super::fault::{self, TokenFault};
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONNECTION};

/// Prefix of the header fields that this gateway sets itself.
const OUR_PREFIX: &[u8] = b"portcullis-";

/// A token as it was presented; its text has the b64token grammar and is otherwise unread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Presented<'a> {
    /// Under the scheme `Bearer`.
    Bearer(&'a str),
    /// Under the scheme `DPoP`: bound to a key of the caller (RFC 9449 section 7.1).
    Dpop(&'a str),
}

// A derived `Debug` would print the token (LG-1).
impl std::fmt::Debug for Presented<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Presented::Bearer(_) => "Bearer [secret]",
            Presented::Dpop(_) => "DPoP [secret]",
        })
    }
}

/// Finds the token of a request in `Authorization` and nowhere else (RFC 6750 section 2.1).
///
/// # Errors
/// No usable credential (TR-4), or a request that is malformed about it (TR-2, 3, 5, 7, 8, 11).
pub fn presented<'a>(
    headers: &'a HeaderMap,
    query: Option<&str>,
) -> Result<Presented<'a>, TokenFault> {
    if query.is_some_and(names_access_token) {
        return Err(fault::TOKEN_IN_QUERY);
    }
    if headers
        .get_all(CONNECTION)
        .iter()
        .any(|v| drops_ours(v.as_bytes()))
    {
        return Err(fault::CONNECTION_NAMES_IT);
    }
    let mut fields = headers.get_all(AUTHORIZATION).iter();
    let field = fields.next().ok_or(fault::NO_CREDENTIAL)?;
    if fields.next().is_some() {
        return Err(fault::MANY_FIELDS);
    }
    let field = field.as_bytes();
    // A tab is named by the grammar (TR-3); other control bytes by TR-7. Both get the same answer.
    // A fold without an early end is checked many bytes at a time.
    let printable = field
        .iter()
        .fold(true, |all, b| all & (0x20..=0x7e).contains(b));
    if !printable {
        return Err(fault::NOT_PRINTABLE);
    }
    // What was printable ASCII is text.
    let field = std::str::from_utf8(field).map_err(|_| fault::NOT_PRINTABLE)?;
    credential(field)
}

fn credential(field: &str) -> Result<Presented<'_>, TokenFault> {
    if field.bytes().all(|b| b == b' ') {
        return Err(fault::NO_CREDENTIAL);
    }
    // HTTP/1.1 parsers drop surrounding space; in HTTP/2 it makes the request malformed.
    if field.starts_with(' ') || field.ends_with(' ') {
        return Err(fault::SURROUNDING_SPACE);
    }
    let (scheme, rest) = match field.split_once(' ') {
        Some((scheme, rest)) => (scheme, rest.trim_start_matches(' ')),
        None => (field, ""),
    };
    let bearer = scheme.eq_ignore_ascii_case("bearer");
    if !bearer && !scheme.eq_ignore_ascii_case("dpop") {
        return Err(fault::OTHER_SCHEME);
    }
    if !is_b64token(rest) {
        return Err(fault::NOT_B64TOKEN);
    }
    Ok(if bearer {
        Presented::Bearer(rest)
    } else {
        Presented::Dpop(rest)
    })
}

/// RFC 6750 section 2.1: `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="`.
fn is_b64token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty()
        && body
            .bytes()
            .fold(true, |all, b| all & B64TOKEN[usize::from(b)])
}

/// Which bytes may stand in a token, so that each costs one look.
const B64TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        let special = matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/');
        table[byte as usize] = byte.is_ascii_alphanumeric() || special;
        byte += 1;
    }
    table
};

/// Whether `Connection` asks to drop the credential or a field of ours on the way (TR-8).
fn drops_ours(connection: &[u8]) -> bool {
    connection.split(|b| *b == b',').any(|option| {
        let option = option.trim_ascii();
        let like = |name: &[u8]| {
            option.len() >= name.len()
                && option.iter().zip(name).all(|(b, n)| {
                    // Behind us `_` may be read as `-`.
                    b.eq_ignore_ascii_case(n) || *b == b'_' && *n == b'-'
                })
        };
        option.eq_ignore_ascii_case(b"authorization")
            || option.eq_ignore_ascii_case(b"dpop")
            || like(OUR_PREFIX)
    })
}

/// Whether a parameter's decoded name is `access_token` (TR-5): it would land in logs. Both
/// separators that servers use are read.
fn names_access_token(query: &str) -> bool {
    query.split(['&', ';']).any(|parameter| {
        let name = parameter.split('=').next().unwrap_or_default();
        decoded(name).eq(b"access_token".iter().copied())
    })
}

/// The bytes of a form-encoded name; a broken escape stands for itself.
fn decoded(name: &str) -> impl Iterator<Item = u8> + '_ {
    let mut rest = name.as_bytes();
    std::iter::from_fn(move || {
        let (byte, after) = match rest {
            [b'%', high, low, after @ ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, after),
                _ => (b'%', &rest[1..]),
            },
            [b'+', after @ ..] => (b' ', after),
            [byte, after @ ..] => (*byte, after),
            [] => return None,
        };
        rest = after;
        Some(byte)
    })
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
