//! Hosts and `http` URLs as they may stand in the gateway file.

use std::fmt;
use std::net::Ipv6Addr;

/// A URL taken apart; nothing in it was decoded or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpUrl<'a> {
    /// Whether the scheme is `https`.
    pub https: bool,
    /// Host name or IP literal, without brackets.
    pub host: &'a str,
    /// The port, the scheme's own when none was written.
    pub port: u16,
    /// From the first slash on; may be empty.
    pub path: &'a str,
}

/// Why a text is no URL that we can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlFault {
    /// Neither `http://` nor `https://`, in lower case.
    Scheme,
    /// A user name before the host.
    UserInfo,
    /// No host, or not a host name or IP literal.
    Host,
    /// Not a number from 1 to 65535.
    Port,
    /// A `?`.
    Query,
    /// A `#`.
    Fragment,
    /// A character in the path that must be percent-encoded, or a backslash.
    Path,
}

impl fmt::Display for UrlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UrlFault::Scheme => "it does not start with `http://` or `https://`",
            UrlFault::UserInfo => "it has a user name",
            UrlFault::Host => "it has no usable host",
            UrlFault::Port => "its port is not a number from 1 to 65535",
            UrlFault::Query => "it has a query",
            UrlFault::Fragment => "it has a fragment",
            UrlFault::Path => "its path has a character that must be percent-encoded",
        })
    }
}

impl HttpUrl<'_> {
    /// `host:port` in lower case, bracketed for IPv6, the port left out when it is the scheme's.
    pub fn authority(&self) -> String {
        let host = self.host.to_ascii_lowercase();
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host
        };
        if self.port == own_port(self.https) {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }

    /// Scheme and authority.
    pub fn origin(&self) -> String {
        let scheme = if self.https { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }
}

/// The port of `http` or `https`.
pub(super) fn own_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

/// Takes a URL apart.
///
/// # Errors
/// What [`UrlFault`] lists: userinfo, queries and fragments are never accepted.
pub fn parse_url(text: &str) -> Result<HttpUrl<'_>, UrlFault> {
    let (https, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => return Err(UrlFault::Scheme),
    };
    if rest.contains('#') {
        return Err(UrlFault::Fragment);
    }
    if rest.contains('?') {
        return Err(UrlFault::Query);
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err(UrlFault::UserInfo);
    }
    let (host, port) = split_host(authority)?;
    if !path.bytes().all(|b| {
        b.is_ascii_graphic()
            && !matches!(
                b,
                b'\\' | b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | b'|' | b'^'
            )
    }) {
        return Err(UrlFault::Path);
    }
    Ok(HttpUrl {
        https,
        host,
        port: port.unwrap_or(own_port(https)),
        path,
    })
}

/// Splits `host`, `host:port`, `[v6]` or `[v6]:port`; the host comes without brackets.
///
/// # Errors
/// [`UrlFault::Host`] or [`UrlFault::Port`].
pub fn split_host(authority: &str) -> Result<(&str, Option<u16>), UrlFault> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or(UrlFault::Host)?;
        host.parse::<Ipv6Addr>().map_err(|_| UrlFault::Host)?;
        match after.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if after.is_empty() => (host, None),
            None => return Err(UrlFault::Host),
        }
    } else {
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        if !is_host_name(host) {
            return Err(UrlFault::Host);
        }
        (host, port)
    };
    let port = match port {
        None => None,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            let port: u16 = digits.parse().map_err(|_| UrlFault::Port)?;
            Some(port)
                .filter(|p| *p != 0)
                .ok_or(UrlFault::Port)
                .map(Some)?
        }
        Some(_) => return Err(UrlFault::Port),
    };
    Ok((host, port))
}

/// Labels of letters, digits, `-` and `_`, separated by dots; an IPv4 address is one too.
fn is_host_name(host: &str) -> bool {
    !host.is_empty()
        && host.len() <= 253
        && host.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_base_path_stays_as_it_was_written() {
        let url =
            parse_url("http://Run.Example.com:8080/runtimes/arn%3Ax%2Fz/invocations/").unwrap();
        assert_eq!(url.path, "/runtimes/arn%3Ax%2Fz/invocations/");
        assert_eq!(url.origin(), "http://run.example.com:8080");
    }

    #[test]
    fn the_schemes_own_port_is_left_out() {
        let cases = [
            ("http://a:80", "http://a"),
            ("https://a:443/", "https://a"),
            ("https://a:80", "https://a:80"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ];
        for (text, origin) in cases {
            assert_eq!(parse_url(text).unwrap().origin(), origin, "{text}");
        }
    }

    #[test]
    fn unusable_urls_are_refused() {
        let cases = [
            ("ftp://a", UrlFault::Scheme),
            ("HTTP://a", UrlFault::Scheme),
            ("a:80", UrlFault::Scheme),
            ("http://u:p@a", UrlFault::UserInfo),
            ("http://", UrlFault::Host),
            ("http:///x", UrlFault::Host),
            ("http://a..b", UrlFault::Host),
            ("http://a b", UrlFault::Host),
            ("http://[::1", UrlFault::Host),
            ("http://[x]", UrlFault::Host),
            ("http://a:0", UrlFault::Port),
            ("http://a:", UrlFault::Port),
            ("http://a:65536", UrlFault::Port),
            ("http://a:+80", UrlFault::Port),
            ("http://a/x?y", UrlFault::Query),
            ("http://a/#y", UrlFault::Fragment),
            ("http://a/é", UrlFault::Path),
            ("http://a/\\x", UrlFault::Path),
        ];
        for (text, fault) in cases {
            assert_eq!(parse_url(text), Err(fault), "{text}");
        }
    }
}
