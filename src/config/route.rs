//! Which agent a path leads to.

use super::path::CanonicalPath;
use super::snapshot::Agent;
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
}
