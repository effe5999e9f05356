//! [`KeyFetcher`]: key sets of issuers over HTTP (LC-1 to LC-5).

use super::exchange::{Document, NoDocument, document, plain_mannered};
use crate::identity::issuer::{KeyLocation, RemoteKeys};
use crate::identity::metadata;
use crate::pipeline::RequestId;
use crate::pipeline::cards::FetchFailureKind;
use crate::pipeline::issuer_keys::{FetchedKeys, IssuerSource, KeyFetchFault};
use crate::pipeline::ports::Resolver;
use crate::policy::public_address::{is_private, is_public};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Url};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Largest document that is read, after it was unpacked (LC-2).
const MAX_DOCUMENT: usize = 256 * 1024;

/// Where an address is really connected to.
pub type Route = Arc<dyn Fn(IpAddr) -> SocketAddr + Send + Sync>;

/// The HTTP client for key sets of issuers.
pub struct KeyFetcher {
    resolver: Arc<dyn Resolver>,
    route: Route,
}

impl KeyFetcher {
    /// A client that follows no redirects, uses no proxy, repeats nothing, and connects only to
    /// addresses that it has judged.
    pub fn new(resolver: Arc<dyn Resolver>) -> KeyFetcher {
        // Port 0 stands for the URL's.
        KeyFetcher::routed(resolver, Arc::new(|address| SocketAddr::new(address, 0)))
    }

    /// The same, with connections to the addresses of names led elsewhere after they were judged.
    pub fn routed(resolver: Arc<dyn Resolver>, route: Route) -> KeyFetcher {
        KeyFetcher { resolver, route }
    }

    /// The client for one request. It is made for each, of which there are few: a machine without
    /// authorities must still start, and one that got some must find them.
    fn client(&self, from: &RemoteKeys, rules: Rules) -> Result<Client, KeyFetchFault> {
        let broken = KeyFetchFault::Reply(FetchFailureKind::Unreachable);
        let tls = match &from.authorities {
            None => None,
            Some(authorities) => {
                let mut roots = RootCertStore::empty();
                for der in authorities {
                    let der = CertificateDer::from(&**der);
                    roots.add(der).map_err(|_| KeyFetchFault::Untrusted)?;
                }
                let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
                let config = ClientConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()
                    .map_err(|_| broken.clone())?
                    .with_root_certificates(roots)
                    .with_no_client_auth();
                Some(config)
            }
        };
        plain_mannered(tls, from.connect, Some(from.total))
            .dns_resolver(Arc::new(Judged {
                resolver: Arc::clone(&self.resolver),
                route: Arc::clone(&self.route),
                rules,
            }))
            .https_only(!rules.plain)
            .build()
            .map_err(|_| broken)
    }

    async fn ask(
        &self,
        from: &RemoteKeys,
        url: &Url,
        request_id: RequestId,
    ) -> Result<Document, KeyFetchFault> {
        let rules = Rules::of(url, from)?;
        let client = self.client(from, rules)?;
        let document = document(&client, url.as_str(), request_id, MAX_DOCUMENT).await;
        document.map_err(|none| fault(&none))
    }

    async fn set(
        &self,
        from: &RemoteKeys,
        url: &Url,
        request_id: RequestId,
    ) -> Result<FetchedKeys, KeyFetchFault> {
        let Document { body, max_age } = self.ask(from, url, request_id).await?;
        Ok(FetchedKeys {
            body,
            max_age,
            url: url.as_str().into(),
        })
    }

    async fn discover(
        &self,
        from: &RemoteKeys,
        issuer: &str,
        places: &[String],
        request_id: RequestId,
    ) -> Result<FetchedKeys, KeyFetchFault> {
        let own = host(&parsed(issuer)?);
        for place in places {
            let found = self.ask(from, &parsed(place)?, request_id).await;
            let found = match found {
                Ok(found) => found,
                Err(KeyFetchFault::Reply(FetchFailureKind::Status(404 | 405))) => continue,
                Err(fault) => return Err(fault),
            };
            let uri = metadata::jwks_uri(&found.body, issuer).map_err(KeyFetchFault::Metadata)?;
            let uri = parsed(&uri)?;
            // The host is that of the very URL that is asked, in the client's own reading.
            metadata::judge_host(&host(&uri), &own, &from.hosts)
                .map_err(KeyFetchFault::Metadata)?;
            return self.set(from, &uri, request_id).await;
        }
        Err(KeyFetchFault::Reply(FetchFailureKind::NotFound))
    }
}

#[async_trait::async_trait]
impl IssuerSource for KeyFetcher {
    async fn fetch(
        &self,
        from: &RemoteKeys,
        request_id: RequestId,
    ) -> Result<FetchedKeys, KeyFetchFault> {
        let fetching = async {
            match &from.location {
                KeyLocation::Url(url) => self.set(from, &parsed(url)?, request_id).await,
                KeyLocation::Discovery { issuer, form } => {
                    let places = metadata::places(issuer, *form);
                    self.discover(from, issuer, &places, request_id).await
                }
            }
        };
        // Over all requests of a discovery together.
        match tokio::time::timeout(from.total, fetching).await {
            Ok(fetched) => fetched,
            Err(_) => Err(KeyFetchFault::Reply(FetchFailureKind::TimedOut)),
        }
    }
}

fn parsed(url: &str) -> Result<Url, KeyFetchFault> {
    Url::parse(url).map_err(|_| KeyFetchFault::Metadata(metadata::MetadataFault::NoKeySet))
}

/// In lower case, an IPv6 literal without brackets; empty where there is none.
fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned()
}

/// Which addresses may be asked.
#[derive(Debug, Clone, Copy)]
struct Rules {
    private: bool,
    loopback: bool,
    /// Over plain `http`, which stays on this machine.
    plain: bool,
}

impl Rules {
    /// Judges what the URL itself says.
    fn of(url: &Url, from: &RemoteKeys) -> Result<Rules, KeyFetchFault> {
        let rules = Rules {
            private: from.private,
            loopback: from.loopback,
            plain: url.scheme() == "http",
        };
        let literal = host(url).parse::<IpAddr>().ok();
        let here = match literal {
            Some(address) => address.is_loopback(),
            None => host(url) == "localhost",
        };
        let scheme = url.scheme() == "https" || rules.plain && rules.loopback && here;
        if !scheme {
            return Err(KeyFetchFault::Plain);
        }
        // A literal never comes to the resolver.
        match literal {
            Some(address) if !rules.allow(address) => Err(KeyFetchFault::Address),
            Some(_) | None => Ok(rules),
        }
    }

    fn allow(&self, address: IpAddr) -> bool {
        if self.plain {
            return self.loopback && address.is_loopback();
        }
        is_public(address)
            || self.private && is_private(address)
            || self.loopback && address.is_loopback()
    }
}

/// Looks names up when a connection is made, so that a name cannot point elsewhere after it was
/// judged (LC-4).
struct Judged {
    resolver: Arc<dyn Resolver>,
    route: Route,
    rules: Rules,
}

/// A name led to an address that nobody may be asked at.
#[derive(Debug)]
struct Forbidden;

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address of this name may not be asked")
    }
}

impl Error for Forbidden {}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let (resolver, route, rules) = (self.resolver.clone(), self.route.clone(), self.rules);
        Box::pin(async move {
            let found = resolver.resolve(name.as_str()).await;
            let found = found.map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
            // One bad address among good ones is no accident.
            if !found.iter().all(|address| rules.allow(*address)) {
                return Err(Forbidden.into());
            }
            let addresses: Vec<SocketAddr> = found.into_iter().map(|a| route(a)).collect();
            let addresses: Addrs = Box::new(addresses.into_iter());
            Ok(addresses)
        })
    }
}

/// What the client's error comes from.
fn fault(none: &NoDocument) -> KeyFetchFault {
    let mut cause = match none {
        NoDocument::Unsent(error) => error.source(),
        NoDocument::Failed(_) => None,
    };
    while let Some(error) = cause {
        if error.is::<Forbidden>() {
            return KeyFetchFault::Address;
        }
        if let Some(rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
            return KeyFetchFault::Untrusted;
        }
        // What an I/O error was made from is not its source, only that one's is.
        let made_from = error.downcast_ref().and_then(io::Error::get_ref);
        cause = match made_from {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    KeyFetchFault::Reply(none.kind())
}
