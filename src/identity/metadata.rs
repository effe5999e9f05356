//! An issuer's metadata (RFC 8414, OpenID Connect Discovery): where its key set is (LC-5).

use super::issuer::DiscoveryForm;
use crate::a2a::strict_json::{Value, parse_value};
use std::fmt;

/// Deepest nesting of a document (FM-3).
const MAX_DEPTH: usize = 16;
const OPENID: &str = "/.well-known/openid-configuration";
const OAUTH: &str = "/.well-known/oauth-authorization-server";

/// Why metadata cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataFault {
    /// Not a strict JSON object.
    Form,
    /// It is another issuer's.
    OtherIssuer,
    /// It names no key set.
    NoKeySet,
    /// Its key set is at a host that is neither the issuer's nor listed (LC-4).
    OtherHost,
}

impl MetadataFault {
    /// For records and metrics.
    pub fn label(self) -> &'static str {
        match self {
            MetadataFault::Form => "metadata_malformed",
            MetadataFault::OtherIssuer => "metadata_of_another_issuer",
            MetadataFault::NoKeySet => "metadata_without_keys",
            MetadataFault::OtherHost => "jwks_uri_elsewhere",
        }
    }
}

impl fmt::Display for MetadataFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MetadataFault::Form => "its metadata is no strict JSON object",
            MetadataFault::OtherIssuer => {
                "its metadata has another `issuer` than the configured one, byte for byte"
            }
            MetadataFault::NoKeySet => "its metadata has no `jwks_uri`",
            MetadataFault::OtherHost => {
                "its metadata names a key set at another host, which is not listed in `hosts`"
            }
        })
    }
}

/// Where the metadata of `issuer` is looked for, in order; the next place counts only when there
/// is nothing at all in the one before.
pub fn places(issuer: &str, form: DiscoveryForm) -> Vec<String> {
    let openid = || openid_configuration(issuer);
    match form {
        DiscoveryForm::OpenId => vec![openid()],
        DiscoveryForm::OAuth => vec![inserted(issuer)],
        DiscoveryForm::Either => vec![openid(), inserted(issuer)],
    }
}

/// Where OpenID Connect Discovery has the metadata of `issuer`: below it.
pub fn openid_configuration(issuer: &str) -> String {
    format!("{}{OPENID}", issuer.trim_end_matches('/'))
}

/// RFC 8414 section 3.1: between host and path.
fn inserted(issuer: &str) -> String {
    let host = issuer.find("://").map_or(0, |at| at + 3);
    let path = issuer[host..]
        .find('/')
        .map_or(issuer.len(), |at| host + at);
    let (origin, path) = issuer.split_at(path);
    format!("{origin}{OAUTH}{}", path.trim_end_matches('/'))
}

/// The `jwks_uri` of a document that is this issuer's.
///
/// # Errors
/// Why it does not count.
pub fn jwks_uri(document: &[u8], issuer: &str) -> Result<Box<str>, MetadataFault> {
    let document = parse_value(document, MAX_DEPTH).map_err(|_| MetadataFault::Form)?;
    if document.as_object().is_none() {
        return Err(MetadataFault::Form);
    }
    if document.get("issuer").and_then(Value::as_str) != Some(issuer) {
        return Err(MetadataFault::OtherIssuer);
    }
    let uri = document.get("jwks_uri").and_then(Value::as_str);
    uri.map(Box::from).ok_or(MetadataFault::NoKeySet)
}

/// LC-4: whether a key set at `host` may be this issuer's. Both in lower case.
///
/// # Errors
/// When it may not.
pub fn judge_host(host: &str, own: &str, listed: &[Box<str>]) -> Result<(), MetadataFault> {
    let known = host == own || listed.iter().any(|listed| **listed == *host);
    known.then_some(()).ok_or(MetadataFault::OtherHost)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_where_the_standards_put_it() {
        let cases = [
            (
                "https://a.example",
                "https://a.example/.well-known/openid-configuration",
                "https://a.example/.well-known/oauth-authorization-server",
            ),
            (
                "https://a.example/",
                "https://a.example/.well-known/openid-configuration",
                "https://a.example/.well-known/oauth-authorization-server",
            ),
            (
                "https://a.example:8443/realms/r",
                "https://a.example:8443/realms/r/.well-known/openid-configuration",
                "https://a.example:8443/.well-known/oauth-authorization-server/realms/r",
            ),
        ];
        for (issuer, openid, oauth) in cases {
            assert_eq!(places(issuer, DiscoveryForm::Either), [openid, oauth]);
            assert_eq!(places(issuer, DiscoveryForm::OpenId), [openid]);
            assert_eq!(places(issuer, DiscoveryForm::OAuth), [oauth]);
        }
    }

    #[test]
    fn only_the_issuers_own_metadata_counts() {
        let read = |text: &str| jwks_uri(text.as_bytes(), "https://a.example");
        let good = r#"{"issuer": "https://a.example", "jwks_uri": "https://a.example/k"}"#;
        assert_eq!(read(good).as_deref(), Ok("https://a.example/k"));
        let cases = [
            (
                good.replace("a.example\",", "a.example/\","),
                MetadataFault::OtherIssuer,
            ),
            (
                good.replace("\"issuer\"", "\"iss\""),
                MetadataFault::OtherIssuer,
            ),
            (good.replace("jwks_uri", "jwks"), MetadataFault::NoKeySet),
            (
                good.replace('{', "[{").replace('}', "}]"),
                MetadataFault::Form,
            ),
            (
                good.replace('{', r#"{"issuer": "https://b.example", "#),
                MetadataFault::Form,
            ),
            ("<html>".to_owned(), MetadataFault::Form),
        ];
        for (text, fault) in cases {
            assert_eq!(read(&text), Err(fault), "{text}");
        }
    }

    #[test]
    fn a_key_set_is_at_the_issuers_host_or_a_listed_one() {
        let listed = ["keys.example".into()];
        assert!(judge_host("a.example", "a.example", &[]).is_ok());
        assert!(judge_host("keys.example", "a.example", &listed).is_ok());
        for host in ["x.a.example", "a.example.x", "169.254.169.254", ""] {
            assert_eq!(
                judge_host(host, "a.example", &listed),
                Err(MetadataFault::OtherHost)
            );
        }
    }
}
