//! Our audiences as OAuth 2.0 protected resources (RFC 9728): where a client without a token
//! learns who gives it one.
//!
//! Their metadata, the challenges and the security schemes of cards are made from the same values,
//! so that they agree. Made from the configuration alone, once per generation; nothing of a request is in them (ER-2).

use super::dpop::ALGS;
use super::issuer::{DiscoveryForm, Grant, GrantForm, IssuerConfig, KeyLocation};
use super::metadata::openid_configuration;
use crate::a2a::card::rewrite::strong_etag;
use crate::a2a::card::serve::Document;
use crate::a2a::card::{Scheme, SchemeKind, SecuritySchemes};
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
    /// Positions of the issuers that give tokens for it.
    servers: Vec<usize>,
    /// The URL of its metadata.
    pub metadata_url: Box<str>,
    /// Its metadata.
    pub document: Document,
}

/// The audiences of one listener.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    /// The longest path first.
    resources: Vec<Resource>,
    /// Every issuer, in the order of the configuration.
    servers: Vec<AuthorizationServer>,
}

/// An issuer as callers are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AuthorizationServer {
    name: Box<str>,
    issuer: Box<str>,
    /// Where its OpenID Connect metadata is, if its keys are found by that.
    openid: Option<Box<str>>,
    /// The scopes that its tokens may have and that are worth a grant.
    scopes: Vec<(Box<str>, Grant)>,
    /// Whether it binds tokens to keys.
    dpop: bool,
}

impl AuthorizationServer {
    fn new(issuer: &IssuerConfig) -> AuthorizationServer {
        let location = issuer.keys.remote().map(|remote| &remote.location);
        AuthorizationServer {
            name: issuer.name.clone(),
            issuer: issuer.issuer.clone(),
            openid: match location {
                Some(KeyLocation::Discovery {
                    issuer,
                    form: DiscoveryForm::OpenId | DiscoveryForm::Either,
                }) => Some(openid_configuration(issuer).into()),
                Some(KeyLocation::Discovery {
                    form: DiscoveryForm::OAuth,
                    ..
                })
                | Some(KeyLocation::Url(_))
                | None => None,
            },
            scopes: scopes(issuer),
            dpop: issuer.dpop.is_some(),
        }
    }

    /// The scope by which its clients get just this grant, if there is one (ER-3).
    fn scope_for(&self, wanted: Grant) -> Option<&str> {
        let found = self.scopes.iter().find(|(_, grant)| *grant == wanted);
        found.map(|(scope, _)| &**scope)
    }
}

impl Resources {
    /// The audiences that lie on `origin`, the public URL of a listener. A resource's metadata
    /// counts only where its name leads (RFC 9728 section 3.3), so an audience that is no URL or
    /// is on another origin has none.
    pub fn of(origin: &str, issuers: &[Arc<IssuerConfig>], facts: &Facts) -> Resources {
        let mut resources: Vec<Resource> = Vec::new();
        let servers = issuers
            .iter()
            .map(|issuer| AuthorizationServer::new(issuer));
        let servers: Vec<AuthorizationServer> = servers.collect();
        for audience in issuers.iter().flat_map(|issuer| &issuer.audiences) {
            let Some(suffix) = path_of(origin, audience) else {
                continue;
            };
            let path = suffix.strip_suffix('/').unwrap_or(suffix);
            if resources.iter().any(|known| *known.path == *path) {
                continue;
            }
            let ours: Vec<(usize, &AuthorizationServer)> = issuers
                .iter()
                .zip(&servers)
                .enumerate()
                .filter(|(_, (issuer, _))| issuer.audiences.contains(audience))
                .map(|(position, (_, server))| (position, server))
                .collect();
            let body = Value::from(metadata(origin, audience, &ours, facts)).to_string();
            resources.push(Resource {
                path: path.into(),
                servers: ours.iter().map(|(position, _)| *position).collect(),
                metadata_url: format!("{origin}{WELL_KNOWN}{suffix}").into(),
                document: Document {
                    etag: strong_etag(body.as_bytes()),
                    body: body.into(),
                },
            });
        }
        resources.sort_by_key(|resource| std::cmp::Reverse(resource.path.len()));
        Resources { resources, servers }
    }

    /// The resource whose metadata is at a path.
    pub fn described_at(&self, path: &str) -> Option<&Resource> {
        let path = path.strip_prefix(WELL_KNOWN)?;
        self.resources
            .iter()
            .find(|resource| *resource.path == *path)
    }

    /// The resource that a path belongs to.
    pub fn covering(&self, path: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| {
            path.strip_prefix(&*resource.path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// The scope by which a client of the issuer at this position gets just this grant, if there
    /// is one (ER-3).
    pub fn scope_for(&self, issuer: usize, wanted: Grant) -> Option<&str> {
        self.servers.get(issuer)?.scope_for(wanted)
    }

    /// The schemes of a card for what is at a path, for callers with tokens of the issuers whose
    /// positions are `usable`.
    ///
    /// Anybody reads a card, so it tells no more of issuers than the metadata of its resource: the
    /// others are covered by the bearer scheme, which names nobody. That scheme is always there,
    /// as not every client knows what to do with the other kind. Its one scope is what all usable
    /// issuers have in common.
    pub fn schemes(&self, path: &str, usable: &dyn Fn(usize) -> bool) -> SecuritySchemes {
        let told = self.covering(path).map_or(&[][..], |r| &r.servers);
        let servers = self.servers.iter().enumerate();
        let servers: Vec<Option<&AuthorizationServer>> = servers
            .filter(|(position, _)| usable(*position))
            .map(|(position, server)| told.contains(&position).then_some(server))
            .collect();
        let scope = |server: &AuthorizationServer| -> Option<Box<str>> {
            server.scope_for(Grant::Agent).map(Box::from)
        };
        let named = servers.iter().copied().flatten().filter_map(|server| {
            Some(Scheme {
                name: scheme_name(&server.name),
                kind: SchemeKind::OpenIdConnect(server.openid.clone()?),
                scopes: scope(server).into_iter().collect(),
            })
        });
        let mut scopes = servers.iter().map(|server| server.and_then(scope));
        let first = scopes.next().flatten();
        let common = first.filter(|first| scopes.all(|scope| scope.as_ref() == Some(first)));
        let bearer = Scheme::bearer(common.into_iter().collect());
        SecuritySchemes::of(&named.chain([bearer]).collect::<Vec<_>>())
    }
}

/// The name of an issuer entry's own scheme: the entry's, unless the bearer scheme has that. No
/// entry's name starts with `_`.
fn scheme_name(entry: &str) -> Box<str> {
    match entry {
        "bearer" => "_bearer".into(),
        entry => entry.into(),
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
    servers: &[(usize, &AuthorizationServer)],
    facts: &Facts,
) -> Map<String, Value> {
    let ours = || servers.iter().map(|(_, server)| *server);
    let servers: Vec<&str> = ours().map(|server| &*server.issuer).collect();
    let mut scopes: Vec<&str> = ours()
        .flat_map(|server| server.scopes.iter().map(|(scope, _)| &**scope))
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
    if ours().any(|server| server.dpop) {
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
fn scopes(issuer: &IssuerConfig) -> Vec<(Box<str>, Grant)> {
    let of_scopes = issuer.grants.iter().filter(|mark| {
        let path: Vec<&str> = mark.path.iter().map(|name| &**name).collect();
        match mark.form {
            GrantForm::SpaceString | GrantForm::Either => matches!(*path, ["scope" | "scp"]),
            GrantForm::StringArray => matches!(*path, ["scp"]),
        }
    });
    of_scopes
        .flat_map(|mark| &mark.map)
        .filter(|(scope, _)| is_scope(scope))
        .cloned()
        .collect()
}

/// `scope-token` of RFC 6749 section 3.3: what can stand in a quoted string as it is.
fn is_scope(scope: &str) -> bool {
    let plain = |b: u8| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !scope.is_empty() && scope.bytes().all(plain)
}
