//! Which agent a path leads to.

use super::address::{own_port, split_host};
use super::path::CanonicalPath;
use super::snapshot::{Agent, GrpcDoor, Listener};
use std::collections::HashMap;
use std::sync::Arc;

/// The agents by their routes.
///
/// Routes do not overlap (that is a configuration error), so at most one of a path's prefixes is
/// in the table. A lookup costs as much as the longest route, however many agents there are and
/// however long the path is.
#[derive(Debug, Default)]
pub struct Routes {
    agents: HashMap<Box<str>, Arc<Agent>>,
    grpc_hosts: HashMap<Box<str>, Arc<Agent>>,
    grpc_listeners: HashMap<Box<str>, Arc<Agent>>,
    /// Most segments of any route.
    segments: usize,
    /// Bytes of the longest route.
    longest: usize,
}

impl Routes {
    /// Routes to these agents; of two with one route the later wins, which the check excludes.
    pub fn new(agents: &[Arc<Agent>]) -> Routes {
        let mut routes = Routes::default();
        for agent in agents {
            routes.segments = routes.segments.max(agent.route.matches('/').count());
            routes.longest = routes.longest.max(agent.route.len());
            routes.agents.insert(agent.route.clone(), Arc::clone(agent));
            match agent.grpc.as_ref().map(|grpc| &grpc.door) {
                Some(GrpcDoor::Host(host)) => {
                    routes.grpc_hosts.insert(host.clone(), agent.clone());
                }
                Some(GrpcDoor::Listener(name)) => {
                    routes.grpc_listeners.insert(name.clone(), agent.clone());
                }
                None => {}
            }
        }
        routes
    }

    /// The agent whose route is the longest segment prefix of `path`, and the rest of the path
    /// below it: empty, or starting with `/`.
    pub fn match_agent<'r, 'p>(
        &'r self,
        path: &'p CanonicalPath<'_>,
    ) -> Option<(&'r Arc<Agent>, &'p str)> {
        let path = path.as_str();
        let mut found = self.agents.get("").map(|agent| (agent, path));
        // A segment ends before each later slash and at the end of the path.
        let ends = path
            .bytes()
            .enumerate()
            .skip(1)
            .take(self.longest)
            .filter(|(_, byte)| *byte == b'/')
            .map(|(i, _)| i)
            .chain((path.len() <= self.longest).then_some(path.len()));
        for end in ends.take(self.segments) {
            let (prefix, rest) = path.split_at(end);
            if let Some(agent) = self.agents.get(prefix) {
                found = Some((agent, rest));
            }
        }
        found
    }

    /// The agent of which a `Host` value is the gRPC host.
    pub fn grpc_host(&self, listener: &Listener, host: &str) -> Option<&Arc<Agent>> {
        if self.grpc_hosts.is_empty() {
            return None;
        }
        let host = host.to_ascii_lowercase();
        let own = own_port(listener.public_url.starts_with("https://"));
        let bare = match split_host(&host) {
            Ok((_, Some(port))) if port == own => host.rsplit_once(':').map(|(bare, _)| bare),
            Ok(_) | Err(_) => None,
        };
        let known = |host: &str| self.grpc_hosts.get(host);
        known(&host).or_else(|| known(bare?))
    }

    /// The agent whose gRPC interface a listener has.
    pub fn grpc_listener(&self, listener: &str) -> Option<&Arc<Agent>> {
        self.grpc_listeners.get(listener)
    }
}
