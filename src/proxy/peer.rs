//! To whom: an agent's addresses, resolved outside Pingora (whose own resolver blocks and panics).

use crate::config::snapshot::{Backend, BackendTls, Speaks};
use arc_swap::ArcSwapOption;
use pingora::upstreams::peer::HttpPeer;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// How long a resolved name is used before it is looked up again.
const RESOLVE_AGAIN: Duration = Duration::from_secs(10);
/// How long a lookup may take.
const RESOLVE_DEADLINE: Duration = Duration::from_secs(3);
/// Calls that share one HTTP/2 connection at most; fewer where the agent says so.
const MAX_STREAMS: usize = 100;

/// The addresses of one backend.
pub struct Peers {
    host: Box<str>,
    port: u16,
    security: Option<Arc<Security>>,
    speaks: Speaks,
    known: ArcSwapOption<Known>,
}

struct Known {
    targets: Vec<Arc<Target>>,
    /// `None` for an address literal, which never changes.
    until: Option<Duration>,
}

/// How the connections of one backend are secured.
pub struct Security {
    /// Offers both versions.
    pub both: TlsConnector,
    /// Offers HTTP/1.1 only.
    pub h1: TlsConnector,
    /// Offers HTTP/2 only.
    pub h2: TlsConnector,
    /// The name that the agent's certificate must be for.
    pub name: Box<str>,
    /// Connections are shared only among backends with the same one.
    key: u64,
}

impl Security {
    fn new(tls: &BackendTls) -> Security {
        let offering = |speaks: Speaks| {
            let mut config = rustls::ClientConfig::clone(&tls.config);
            config.alpn_protocols = speaks.protocols();
            TlsConnector::from(Arc::new(config))
        };
        Security {
            both: offering(Speaks::Agreed),
            h1: offering(Speaks::H1),
            h2: offering(Speaks::H2),
            name: tls.server_name.clone(),
            key: tls.key,
        }
    }
}

/// One address of a backend.
pub struct Target {
    /// The address and the key of its connections; never with TLS, which is ours.
    pub peer: HttpPeer,
    /// How connections to it are secured.
    pub security: Option<Arc<Security>>,
}

/// A name that did not resolve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unresolved;

impl Peers {
    /// For one backend; literals are resolved at once, names at first use.
    pub fn new(backend: &Backend) -> Peers {
        let security = backend.tls.as_ref().map(|tls| Arc::new(Security::new(tls)));
        let literal = backend.host.parse().ok().map(|ip| {
            let target = target(SocketAddr::new(ip, backend.port), &security);
            Arc::new(Known {
                targets: vec![target],
                until: None,
            })
        });
        Peers {
            host: backend.host.clone(),
            port: backend.port,
            security,
            speaks: backend.speaks(),
            known: ArcSwapOption::from(literal),
        }
    }

    /// The HTTP version of calls that need no particular one.
    pub fn speaks(&self) -> Speaks {
        self.speaks
    }

    /// Whether connections are secured.
    pub fn is_secure(&self) -> bool {
        self.security.is_some()
    }

    /// Takes these addresses for what the name resolves to, for good.
    #[cfg(test)]
    pub(super) fn assume(&self, addresses: &[SocketAddr]) {
        let targets = addresses.iter().map(|&a| target(a, &self.security));
        self.known.store(Some(Arc::new(Known {
            targets: targets.collect(),
            until: None,
        })));
    }

    /// The addresses to try, in order. `now` is monotonic.
    ///
    /// A name whose lookup fails keeps its last addresses: a resolver outage must not cut off an
    /// agent that still answers.
    pub async fn resolve(&self, now: Duration) -> Result<Addresses, Unresolved> {
        let known = self.known.load_full();
        if let Some(known) = &known
            && known.until.is_none_or(|until| now < until)
        {
            return Ok(Addresses(known.clone()));
        }
        let lookup = tokio::net::lookup_host((&*self.host, self.port));
        match pingora_timeout::timeout(RESOLVE_DEADLINE, lookup).await {
            Ok(Ok(found)) => {
                let targets: Vec<_> = found.take(8).map(|a| target(a, &self.security)).collect();
                if targets.is_empty() {
                    return known.map(Addresses).ok_or(Unresolved);
                }
                let fresh = Arc::new(Known {
                    targets,
                    until: Some(now + RESOLVE_AGAIN),
                });
                self.known.store(Some(fresh.clone()));
                Ok(Addresses(fresh))
            }
            Ok(Err(_)) | Err(_) => known.map(Addresses).ok_or(Unresolved),
        }
    }
}

fn target(address: SocketAddr, security: &Option<Arc<Security>>) -> Arc<Target> {
    // A socket address needs no lookup, so this constructor cannot block or panic.
    let mut peer = HttpPeer::new(address, false, String::new());
    peer.options.max_h2_streams = MAX_STREAMS;
    peer.group_key = security.as_ref().map_or(0, |security| security.key);
    Arc::new(Target {
        peer,
        security: security.clone(),
    })
}

/// Addresses held for the length of one call.
pub struct Addresses(Arc<Known>);

impl Addresses {
    /// In the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Target>> {
        self.0.targets.iter()
    }
}
