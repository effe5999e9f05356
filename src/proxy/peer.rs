//! To whom: an agent's addresses, resolved outside Pingora (whose own resolver blocks and panics).

use crate::config::snapshot::Backend;
use arc_swap::ArcSwapOption;
use pingora::upstreams::peer::HttpPeer;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a resolved name is used before it is looked up again.
const RESOLVE_AGAIN: Duration = Duration::from_secs(10);
/// How long a lookup may take.
const RESOLVE_DEADLINE: Duration = Duration::from_secs(3);

/// The addresses of one backend.
pub struct Peers {
    host: Box<str>,
    port: u16,
    known: ArcSwapOption<Known>,
}

struct Known {
    peers: Vec<HttpPeer>,
    /// `None` for an address literal, which never changes.
    until: Option<Duration>,
}

/// A name that did not resolve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unresolved;

impl Peers {
    /// For one backend; literals are resolved at once, names at first use.
    pub fn new(backend: &Backend) -> Peers {
        let literal = backend.host.parse().ok().map(|ip| {
            let peer = peer(SocketAddr::new(ip, backend.port));
            Arc::new(Known {
                peers: vec![peer],
                until: None,
            })
        });
        Peers {
            host: backend.host.clone(),
            port: backend.port,
            known: ArcSwapOption::from(literal),
        }
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
                let peers: Vec<_> = found.take(8).map(peer).collect();
                if peers.is_empty() {
                    return known.map(Addresses).ok_or(Unresolved);
                }
                let fresh = Arc::new(Known {
                    peers,
                    until: Some(now + RESOLVE_AGAIN),
                });
                self.known.store(Some(fresh.clone()));
                Ok(Addresses(fresh))
            }
            Ok(Err(_)) | Err(_) => known.map(Addresses).ok_or(Unresolved),
        }
    }
}

fn peer(address: SocketAddr) -> HttpPeer {
    // A socket address needs no lookup, so this constructor cannot block or panic.
    HttpPeer::new(address, false, String::new())
}

/// Addresses held for the length of one call.
pub struct Addresses(Arc<Known>);

impl Addresses {
    /// In the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = &HttpPeer> {
        self.0.peers.iter()
    }
}
