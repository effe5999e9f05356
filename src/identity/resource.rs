//! Our audiences as OAuth 2.0 protected resources (RFC 9728): where a client without a token
//! learns who gives it one.
//!
//! Made from the configuration alone, once per generation; nothing of a request is in them (ER-2).

use super::dpop::ALGS;
use super::issuer::{Grant, GrantForm, IssuerConfig};
use crate::a2a::card::rewrite::strong_etag;
use crate::a2a::card::serve::Document;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Where the metadata of a resource without a path is; a resource's path follows it (RFC 9728
/// section 3.1).
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What else a listener can say of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The path of the public parts of our own keys, if there are any.
    pub key_set: Option<&'static str>,
    /// Whether callers may prove themselves by a client certificate (RFC 8705).
    pub client_certificates: bool,
}

/// One audience that lies on a listener's own origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The audience's path without a slash at its end, as canonical paths are; empty for the
    /// origin.
    path: Box<str>,
    /// The URL of its metadata.
    pub metadata_url: Box<str>,
    /// Its metadata.
    pub document: Document,
}

/// The audiences of one listener, the longest path first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources(Vec<Resource>);

impl Resources {
    /// The audiences that lie on `origin`, the public URL of a listener. A resource's metadata
    /// counts only where its name leads (RFC 9728 section 3.3), so an audience that is no URL or
    /// is on another origin has none.
    pub fn of(origin: &str, issuers: &[Arc<IssuerConfig>], facts: &Facts) -> Resources {
        let mut resources: Vec<Resource> = Vec::new();
        for audience in issuers.iter().flat_map(|issuer| &issuer.audiences) {
            let Some(suffix) = path_of(origin, audience) else {
                continue;
            };
            let path = suffix.strip_suffix('/').unwrap_or(suffix);
            if resources.iter().any(|known| *known.path == *path) {
                continue;
            }
            let body = Value::from(metadata(origin, audience, issuers, facts)).to_string();
            resources.push(Resource {
                path: path.into(),
                metadata_url: format!("{origin}{WELL_KNOWN}{suffix}").into(),
                document: Document {
                    etag: strong_etag(body.as_bytes()),
                    body: body.into(),
                },
            });
        }
        resources.sort_by_key(|resource| std::cmp::Reverse(resource.path.len()));
        Resources(resources)
    }

    /// The resource whose metadata is at a path.
    pub fn described_at(&self, path: &str) -> Option<&Resource> {
        let path = path.strip_prefix(WELL_KNOWN)?;
        self.0.iter().find(|resource| *resource.path == *path)
    }

    /// The resource that a path belongs to.
    pub fn covering(&self, path: &str) -> Option<&Resource> {
        self.0.iter().find(|resource| {
            path.strip_prefix(&*resource.path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// The path of an audience on `origin`; that of the origin itself is empty.
fn path_of<'a>(origin: &str, audience: &'a str) -> Option<&'a str> {
    let path = audience.strip_prefix(origin)?;
    let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\' | b'?' | b'#');
    let good = path.is_empty() || path.starts_with('/') && path.bytes().all(plain);
    good.then_some(if path == "/" { "" } else { path })
}

/// RFC 9728 section 2.
fn metadata(
    origin: &str,
    audience: &str,
    issuers: &[Arc<IssuerConfig>],
    facts: &Facts,
) -> Map<String, Value> {
    let ours = || {
        issuers
            .iter()
            .filter(|issuer| issuer.audiences.iter().any(|a| **a == *audience))
    };
    let servers: Vec<&str> = ours().map(|issuer| &*issuer.issuer).collect();
    let mut scopes: Vec<&str> = ours()
        .flat_map(|issuer| scopes(issuer).map(|(scope, _)| scope))
        .collect();
    scopes.sort_unstable();
    scopes.dedup();
    let mut document = Map::new();
    document.insert("resource".into(), audience.into());
    document.insert("authorization_servers".into(), servers.into());
    document.insert("bearer_methods_supported".into(), json!(["header"]));
    if !scopes.is_empty() {
        document.insert("scopes_supported".into(), scopes.into());
    }
    if let Some(path) = facts.key_set {
        document.insert("jwks_uri".into(), format!("{origin}{path}").into());
    }
    if facts.client_certificates {
        let name = "tls_client_certificate_bound_access_tokens";
        document.insert(name.into(), true.into());
    }
    if ours().any(|issuer| issuer.dpop.is_some()) {
        let algorithms: Vec<&str> = ALGS.split(' ').collect();
        document.insert(
            "dpop_signing_alg_values_supported".into(),
            algorithms.into(),
        );
    }
    document
}

/// The scopes that an issuer's tokens may have and that are worth a grant: a client can ask for
/// them (RFC 6749 section 3.3). A role or a group is not a scope.
fn scopes(issuer: &IssuerConfig) -> impl Iterator<Item = (&str, Grant)> {
    let of_scopes = issuer.grants.iter().filter(|mark| {
        let path: Vec<&str> = mark.path.iter().map(|name| &**name).collect();
        match mark.form {
            GrantForm::SpaceString | GrantForm::Either => matches!(*path, ["scope" | "scp"]),
            GrantForm::StringArray => matches!(*path, ["scp"]),
        }
    });
    of_scopes
        .flat_map(|mark| &mark.map)
        .map(|(scope, grant)| (&**scope, *grant))
        .filter(|(scope, _)| is_scope(scope))
}

/// The scope by which a client of this issuer gets just this grant, if there is one (ER-3).
pub fn scope_for(issuer: &IssuerConfig, wanted: Grant) -> Option<&str> {
    let found = scopes(issuer).find(|(_, grant)| *grant == wanted);
    found.map(|(scope, _)| scope)
}

/// `scope-token` of RFC 6749 section 3.3: what can stand in a quoted string as it is.
fn is_scope(scope: &str) -> bool {
    let plain = |b: u8| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !scope.is_empty() && scope.bytes().all(plain)
}
