//! Connections to agents: one pool, and each generation's addresses.

use super::peer::Peers;
use crate::pipeline::Live;
use arc_swap::ArcSwap;
use pingora::connectors::{ConnectorOptions, TransportConnector};
use std::sync::Arc;

/// Idle connections kept in all.
const POOL_SIZE: usize = 1024;

/// Shared by all listeners.
pub struct Links {
    /// Connects and pools.
    pub transport: TransportConnector,
    peers: ArcSwap<Known>,
}

struct Known {
    generation: u64,
    /// By agent, then by backend of the agent.
    peers: Vec<Vec<Arc<Peers>>>,
}

impl Links {
    /// An empty pool.
    pub fn new() -> Links {
        Links {
            transport: TransportConnector::new(Some(ConnectorOptions::new(POOL_SIZE))),
            peers: ArcSwap::from_pointee(Known {
                generation: 0,
                peers: Vec::new(),
            }),
        }
    }

    /// The addresses of one backend of an agent of a generation. Made once per generation, by whichever request
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
