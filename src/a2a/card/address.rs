//! Addresses as cards write them, and whether they are the backend's.

use super::rewrite::Publication;
use std::net::IpAddr;

/// An address in a card: a URL, or `host:port` as gRPC interfaces are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address<'a> {
    /// Empty for `host:port`.
    pub(super) scheme: &'a str,
    /// Without brackets.
    pub(super) host: &'a str,
    /// Only where it was written.
    pub(super) port: Option<u16>,
    /// Empty or with a leading slash, as it was written.
    pub(super) path: &'a str,
    /// Whether user information, a query or a fragment was written.
    pub(super) extras: bool,
}

impl<'a> Address<'a> {
    /// Reads an address; `None` when `text` as a whole is none.
    pub(super) fn parse(text: &'a str) -> Option<Address<'a>> {
        if text
            .bytes()
            .any(|byte| byte <= b' ' || byte == 0x7f || byte == b'\\')
        {
            return None;
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (scheme, rest),
            None => ("", text),
        };
        let scheme_is_good = scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
        let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(authority_end);
        let path_end = tail.find(['?', '#']).unwrap_or(tail.len());
        let (user, authority) = match authority.rsplit_once('@') {
            Some((_, authority)) => (true, authority),
            None => (false, authority),
        };
        let (host, port) = split_authority(authority)?;
        let bare = text.len() == rest.len();
        if !scheme_is_good || (bare && port.is_none()) || (!bare && scheme.is_empty()) {
            return None;
        }
        Some(Address {
            scheme,
            host,
            port,
            path: &tail[..path_end],
            extras: user || path_end < tail.len(),
        })
    }

    /// Whether a call to this address is one to the agent's own backend.
    ///
    /// It is when the host is the configured one and the port is the configured one or was left
    /// out (FC-10); when the host is a wildcard or loopback, whatever the port, since an agent in
    /// a container describes itself so (FC-07); or when the operator declared the origin. Calls
    /// go to the configured address in any case: this only decides whether a path is offered.
    pub(super) fn is_own(&self, publication: &Publication<'_>) -> bool {
        if !self.scheme.eq_ignore_ascii_case("http") && !self.scheme.eq_ignore_ascii_case("https") {
            return false;
        }
        let configured = same_host(self.host, publication.backend_host)
            && self
                .port
                .is_none_or(|port| port == publication.backend_port);
        configured || is_everywhere(self.host) || self.is_declared(publication)
    }

    /// Whether this is the backend itself, as gRPC addresses are written: with no scheme, or with
    /// one that clients take for gRPC, and always with the backend's own port.
    pub(super) fn is_own_port(&self, publication: &Publication<'_>) -> bool {
        let known = ["", "http", "https", "grpc", "grpcs"];
        let port = self.port_or_default() == Some(publication.backend_port);
        known
            .iter()
            .any(|scheme| self.scheme.eq_ignore_ascii_case(scheme))
            && port
            && (same_host(self.host, publication.backend_host) || is_everywhere(self.host))
    }

    /// Whether this address gives the backend away: its host on any port, or a host that only
    /// makes sense next to the agent.
    fn names_backend(&self, publication: &Publication<'_>) -> bool {
        same_host(self.host, publication.backend_host)
            || is_everywhere(self.host)
            || self.is_declared(publication)
    }

    fn is_declared(&self, publication: &Publication<'_>) -> bool {
        publication.also_origins.iter().any(|origin| {
            Address::parse(origin).is_some_and(|origin| {
                origin.scheme.eq_ignore_ascii_case(self.scheme)
                    && same_host(origin.host, self.host)
                    && origin.port_or_default() == self.port_or_default()
            })
        })
    }

    fn port_or_default(&self) -> Option<u16> {
        self.port.or_else(|| match self.scheme {
            scheme if scheme.eq_ignore_ascii_case("http") => Some(80),
            scheme if scheme.eq_ignore_ascii_case("https") => Some(443),
            _ => None,
        })
    }
}

/// Whether `text` as a whole is an address that gives the backend away.
pub(super) fn names_backend(text: &str, publication: &Publication<'_>) -> bool {
    Address::parse(text).is_some_and(|address| address.names_backend(publication))
}

/// Host without brackets, and the port where one is written.
fn split_authority(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return None,
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        // An empty port is the scheme's own (RFC 3986 section 3.2.3).
        None | Some("") => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok()?)
        }
        Some(_) => return None,
    };
    (!host.is_empty()).then_some((host, port))
}

fn same_host(left: &str, right: &str) -> bool {
    let (left, right) = (left.trim_end_matches('.'), right.trim_end_matches('.'));
    match (left.parse::<IpAddr>(), right.parse::<IpAddr>()) {
        (Ok(left), Ok(right)) => left.to_canonical() == right.to_canonical(),
        (Err(_), Err(_)) => left.eq_ignore_ascii_case(right),
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}

/// Whether a host means "here" wherever it is read.
fn is_everywhere(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    match host.parse::<IpAddr>() {
        Ok(address) => {
            let address = address.to_canonical();
            address.is_unspecified() || address.is_loopback()
        }
        Err(_) => {
            let host = host.to_ascii_lowercase();
            host == "localhost" || host.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_are_split_as_clients_split_them() {
        let cases = [
            (
                "http://[::]:7070/run",
                Some(("http", "::", Some(7070), "/run", false)),
            ),
            (
                "h.example.com:50051",
                Some(("", "h.example.com", Some(50051), "", false)),
            ),
            ("https://h", Some(("https", "h", None, "", false))),
            ("https://h:/", Some(("https", "h", None, "/", false))),
            (
                "http://u:p@h:1/a?b#c",
                Some(("http", "h", Some(1), "/a", true)),
            ),
            ("just words", None),
            ("word", None),
            ("urn:example", None),
            ("http://h:99999/", None),
            ("http://h:+80/", None),
            ("http:///x", None),
            ("http://[::1/x", None),
            ("http://h\\@x/", None),
        ];
        for (text, expected) in cases {
            let parsed = Address::parse(text).map(|a| (a.scheme, a.host, a.port, a.path, a.extras));
            assert_eq!(parsed, expected, "{text}");
        }
    }

    #[test]
    fn hosts_are_compared_by_meaning() {
        assert!(same_host("Agent.Example.com.", "agent.example.com"));
        assert!(same_host("::ffff:10.0.0.1", "10.0.0.1"));
        assert!(!same_host("agent.example.com", "example.com"));
        assert!(is_everywhere("0.0.0.0") && is_everywhere("::") && is_everywhere("LOCALHOST"));
        assert!(!is_everywhere("10.0.0.1") && !is_everywhere("localhost.example.com"));
    }
}
