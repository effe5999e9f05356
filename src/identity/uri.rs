//! URIs of `http` and `https` in one spelling, so that equal ones are equal bytes (RFC 3986
//! sections 6.2.2 and 6.2.3). Query and fragment are left out.

/// The one spelling; `None` for what is no such URI.
pub(super) fn normalized(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let (scheme, own_port) = match scheme {
        s if s.eq_ignore_ascii_case("https") => ("https", 443),
        s if s.eq_ignore_ascii_case("http") => ("http", 80),
        _ => return None,
    };
    // What is left out must be URI text as well.
    if !text.bytes().all(|b| b.is_ascii_graphic()) {
        return None;
    }
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let rest = &rest[..end];
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = split_port(authority)?;
    let mut out = format!("{scheme}://{}", normalized_host(host)?);
    if let Some(port) = port.filter(|port| *port != own_port) {
        out.push(':');
        out.push_str(&port.to_string());
    }
    push_path(
        &mut out,
        &decoded(path, |b| matches!(b, b'/' | b':' | b'@'))?,
    );
    Some(out)
}

/// Host and port; an empty port is none.
fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let host_end = match authority.strip_prefix('[') {
        Some(literal) => literal.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(host_end);
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        Some("") => None,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => Some(digits.parse().ok()?),
        Some(_) | None => return None,
    };
    (!host.is_empty()).then_some((host, port))
}

fn normalized_host(host: &str) -> Option<String> {
    let host = match host.strip_prefix('[') {
        // An IP literal has no escapes.
        Some(literal) => {
            let plain = |b: u8| b.is_ascii_hexdigit() || matches!(b, b':' | b'.');
            literal
                .strip_suffix(']')?
                .bytes()
                .all(plain)
                .then(|| host.to_owned())?
        }
        None => decoded(host, |_| false)?,
    };
    Some(host.to_ascii_lowercase())
}

/// Percent-encoding in one spelling: unreserved characters as they are, all others in upper case.
/// `also` are delimiters that may stand here beside the unreserved and sub-delims.
fn decoded(text: &str, also: impl Fn(u8) -> bool) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            (is_unreserved(byte) || is_sub_delimiter(byte) || also(byte)).then_some(())?;
            out.push(char::from(byte));
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        // Two hex digits fit a byte.
        let code = u8::try_from(digit()? * 16 + digit()?).ok()?;
        match is_unreserved(code) {
            true => out.push(char::from(code)),
            false => out.push_str(&format!("%{code:02X}")),
        }
    }
    Some(out)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn is_sub_delimiter(byte: u8) -> bool {
    b"!$&'()*+,;=".contains(&byte)
}

/// RFC 3986 section 5.2.4; an empty path is `/`.
fn push_path(out: &mut String, path: &str) {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => {
                kept.pop();
            }
            other => {
                kept.push(other);
                continue;
            }
        }
        if last {
            kept.push("");
        }
    }
    if kept.is_empty() {
        kept.push("");
    }
    for segment in kept {
        out.push('/');
        out.push_str(segment);
    }
}

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn equal_uris_have_one_spelling() {
        let one = "https://agents.example.com/a/b";
        for text in [
            one,
            "HTTPS://agents.example.com/a/b",
            "https://AGENTS.example.COM/a/b",
            "https://agents.example.com:443/a/b",
            "https://agents.example.com:/a/b",
            "https://agents.example.com:0443/a/b",
            "https://%61gents.example.com/a/b",
            "https://agents.example.com/%61/%62",
            "https://agents.example.com/./a/c/../b",
            "https://agents.example.com/../a/b",
            "https://agents.example.com/a/%2e/b",
            "https://agents.example.com/a/b?x=1",
            "https://agents.example.com/a/b#f",
            "https://agents.example.com/a/b?x#f/..",
        ] {
            assert_eq!(normalized(text).as_deref(), Some(one), "{text}");
        }
        for (text, wanted) in [
            ("http://h", "http://h/"),
            ("http://h:80", "http://h/"),
            ("http://h?x", "http://h/"),
            ("http://h:443/", "http://h:443/"),
            ("http://h/a/..", "http://h/"),
            ("http://h/a/.", "http://h/a/"),
            ("http://h/a/", "http://h/a/"),
            ("http://h//a", "http://h//a"),
            ("http://h/a%2fb%3A", "http://h/a%2Fb%3A"),
            ("http://h/%c3%A9", "http://h/%C3%A9"),
            ("http://[::1]:8080/a", "http://[::1]:8080/a"),
            ("http://[FE80::A]/a", "http://[fe80::a]/a"),
            ("http://h/~!$&'()*+,;=:@", "http://h/~!$&'()*+,;=:@"),
        ] {
            assert_eq!(normalized(text).as_deref(), Some(wanted), "{text}");
            assert_eq!(normalized(wanted).as_deref(), Some(wanted), "{wanted}");
        }
    }

    #[test]
    fn other_uris_differ() {
        let all = [
            "https://h/a",
            "http://h/a",
            "https://h./a",
            "https://h/A",
            "https://h/a/",
            "https://h:8443/a",
            "https://h//a",
            "https://h/a%2F",
            "https://other/a",
        ];
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                assert_ne!(normalized(one), normalized(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn what_is_no_uri_is_none() {
        for text in [
            "",
            "h/a",
            "/a",
            "ftp://h/a",
            "https:/h/a",
            "https:///a",
            "https://:443/a",
            "https://user@h/a",
            "https://h:x/a",
            "https://h:+443/a",
            "https://h:65536/a",
            "https://h:1:2/a",
            "https://[::1/a",
            "https://[::1]x/a",
            "https://[%61]/a",
            "https://h/a b",
            "https://h/a\\b",
            "https://h/%4",
            "https://h/%zz",
            "https://h/%+1",
            "https://h/é",
            "https://h/a?é",
            "https://h%/a",
            "https://h<>/a",
            " https://h/a",
        ] {
            assert_eq!(normalized(text), None, "{text}");
        }
    }
}
