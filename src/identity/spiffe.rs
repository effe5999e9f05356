//! SPIFFE IDs (CL-7): `spiffe://TRUST-DOMAIN/PATH`, as the SPIFFE ID standard writes them.

const SCHEME: &str = "spiffe://";
/// Longest trust domain in characters.
const MAX_DOMAIN: usize = 255;

/// Whether it is the name of a trust domain: lower case letters, digits, `.`, `-` and `_`.
pub fn is_trust_domain(text: &str) -> bool {
    let plain = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_');
    (1..=MAX_DOMAIN).contains(&text.len()) && text.bytes().all(plain)
}

/// Whether it names a workload of this trust domain. An id without a path is the domain's own, and
/// no workload has it.
pub(super) fn is_workload_of(id: &str, trust_domain: &str) -> bool {
    let path = id
        .strip_prefix(SCHEME)
        .and_then(|rest| rest.strip_prefix(trust_domain))
        .and_then(|rest| rest.strip_prefix('/'));
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    let segment = |s: &str| !matches!(s, "" | "." | "..") && s.bytes().all(plain);
    is_trust_domain(trust_domain) && path.is_some_and(|path| path.split('/').all(segment))
}

#[cfg(test)]
mod tests {
    use super::{is_trust_domain, is_workload_of};

    #[test]
    fn an_id_is_of_one_domain_and_one_workload() {
        let cases = [
            ("spiffe://example.org/ns/default/sa/agent", true),
            ("spiffe://example.org/a", true),
            ("spiffe://example.org/A.b-c_9", true),
            ("spiffe://example.org", false),
            ("spiffe://example.org/", false),
            ("spiffe://example.org/a/", false),
            ("spiffe://example.org//a", false),
            ("spiffe://example.org/../a", false),
            ("spiffe://example.org/./a", false),
            ("spiffe://example.org/%61", false),
            ("spiffe://example.org/a?b", false),
            ("spiffe://example.org/a#b", false),
            ("spiffe://example.org/\u{e4}", false),
            ("spiffe://example.org.evil/a", false),
            ("spiffe://example.org@evil/a", false),
            ("spiffe://example.org:8443/a", false),
            ("spiffe://user@example.org/a", false),
            ("spiffe://EXAMPLE.org/a", false),
            ("SPIFFE://example.org/a", false),
            ("https://example.org/a", false),
            ("example.org/a", false),
            ("", false),
        ];
        for (id, good) in cases {
            assert_eq!(is_workload_of(id, "example.org"), good, "{id}");
        }
        assert!(!is_workload_of("spiffe:///a", ""));
    }

    #[test]
    fn trust_domains_are_plain() {
        let long = "a".repeat(256);
        for text in ["example.org", "prod_1", "a"] {
            assert!(is_trust_domain(text), "{text}");
        }
        for text in [
            "",
            "Example.org",
            "spiffe://example.org",
            "a/b",
            "a:1",
            &long,
        ] {
            assert!(!is_trust_domain(text), "{text}");
        }
    }
}
