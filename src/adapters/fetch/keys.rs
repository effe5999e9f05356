//! [`KeyFetcher`]: key sets of issuers over HTTP (LC-1 to LC-5).

use super::exchange::{Document, NoDocument, document, plain_mannered};
use crate::identity::issuer::{KeyLocation, RemoteKeys};
use crate::identity::metadata;
use crate::pipeline::RequestId;
use crate::pipeline::cards::FetchFailureKind;
use crate::pipeline::issuer_keys::{FetchedKeys, IssuerSource, KeyFetchFault};
use crate::pipeline::ports::Resolver;
use crate::policy::public_address::{is_private, is_public};
use bytes::Bytes;
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

    /// The issuer's metadata, from the first of the places that has any.
    async fn metadata(
        &self,
        from: &RemoteKeys,
        places: &[String],
        request_id: RequestId,
    ) -> Result<Bytes, KeyFetchFault> {
        for place in places {
            match self.ask(from, &parsed(place)?, request_id).await {
                Ok(found) => return Ok(found.body),
                Err(KeyFetchFault::Reply(FetchFailureKind::Status(404 | 405))) => {}
                Err(fault) => return Err(fault),
            }
        }
        Err(KeyFetchFault::Reply(FetchFailureKind::NotFound))
    }

    /// The set that the metadata names.
    async fn named(
        &self,
        from: &RemoteKeys,
        issuer: &str,
        metadata: &[u8],
        request_id: RequestId,
    ) -> Result<FetchedKeys, KeyFetchFault> {
        let uri = metadata::jwks_uri(metadata, issuer).map_err(KeyFetchFault::Metadata)?;
        let uri = parsed(&uri)?;
        // The host is that of the very URL that is asked, in the client's own reading.
        let own = host(&parsed(issuer)?);
        metadata::judge_host(&host(&uri), &own, &from.hosts).map_err(KeyFetchFault::Metadata)?;
        self.set(from, &uri, request_id).await
    }

    /// Fetches once, and keeps the metadata that led to the set, or did not.
    pub async fn look(&self, from: &RemoteKeys, request_id: RequestId) -> Look {
        let mut metadata = None;
        let looking = async {
            let (issuer, form) = match &from.location {
                KeyLocation::Url(url) => return self.set(from, &parsed(url)?, request_id).await,
                KeyLocation::Discovery { issuer, form } => (issuer, *form),
            };
            let places = metadata::places(issuer, form);
            let found = self.metadata(from, &places, request_id).await?;
            let found: &Bytes = metadata.insert(found);
            self.named(from, issuer, found, request_id).await
        };
        // Over all requests of a discovery together.
        let looked = tokio::time::timeout(from.total, looking).await;
        let timed_out = Err(KeyFetchFault::Reply(FetchFailureKind::TimedOut));
        Look {
            keys: looked.unwrap_or(timed_out),
            metadata,
        }
    }
}

/// What an issuer shows.
pub struct Look {
    /// Its key set.
    pub keys: Result<FetchedKeys, KeyFetchFault>,
    /// Its metadata as it came, in order or not; `None` where none was asked for or none came.
    pub metadata: Option<Bytes>,
}

#[async_trait::async_trait]
impl IssuerSource for KeyFetcher {
    async fn fetch(
        &self,
        from: &RemoteKeys,
        request_id: RequestId,
    ) -> Result<FetchedKeys, KeyFetchFault> {
        self.look(from, request_id).await.keys
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
