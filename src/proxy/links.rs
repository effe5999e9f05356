//! Connections to agents: the pools, and each generation's addresses.

use super::peer::Peers;
use crate::pipeline::Live;
use arc_swap::ArcSwap;
use pingora::connectors::http::v2;
use pingora::connectors::{ConnectorOptions, TransportConnector};
use std::sync::Arc;

/// Idle connections kept in all, of each HTTP version.
const POOL_SIZE: usize = 1024;

/// Shared by all listeners.
pub struct Links {
    pools: Arc<Pools>,
    peers: ArcSwap<Known>,
}

/// Connects and pools, for both HTTP versions.
pub struct Pools(v2::Connector);

impl Pools {
    /// TCP, and idle HTTP/1.1 connections.
    pub fn transport(&self) -> &TransportConnector {
        self.0.transport()
    }

    /// HTTP/2 connections, idle and in use.
    pub fn h2(&self) -> &v2::Connector {
        &self.0
    }
}

struct Known {
    generation: u64,
    /// By agent, then by backend of the agent.
    peers: Vec<Vec<Arc<Peers>>>,
}

impl Links {
    /// Empty pools.
    pub fn new() -> Links {
        // Pingora would choose another provider; ours is the one that all our own settings name.
        // A second installation fails, and changes nothing.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let options = ConnectorOptions::new(POOL_SIZE);
        Links {
            pools: Arc::new(Pools(v2::Connector::new(Some(options)))),
            peers: ArcSwap::from_pointee(Known {
                generation: 0,
                peers: Vec::new(),
            }),
        }
    }

    /// Connecting and pools.
    pub fn pools(&self) -> &Arc<Pools> {
        &self.pools
    }

    /// The addresses of one backend of an agent. Made once per generation, by whichever request
    /// comes first; a request that still runs on an older one makes its own.
    pub fn peers(&self, live: &Live, agent: usize, backend: usize) -> Option<Arc<Peers>> {
        let snapshot = &live.snapshot;
        let known = self.peers.load();
        if known.generation == snapshot.generation {
            return known.peers.get(agent)?.get(backend).cloned();
        }
        let peers: Vec<_> = snapshot
            .agents
            .iter()
            .map(|a| {
                a.backends()
                    .map(|b| Arc::new(Peers::new(b)))
                    .collect::<Vec<_>>()
            })
            .collect();
        let found = peers.get(agent).and_then(|of| of.get(backend)).cloned();
        if known.generation < snapshot.generation {
            self.peers.store(Arc::new(Known {
                generation: snapshot.generation,
                peers,
            }));
        }
        found
    }
}

impl Default for Links {
    fn default() -> Links {
        Links::new()
    }
}
