//! Hosts to which webhooks become allowed or refused.

use super::Side;
use super::report::{Difference, Direction, id};
use std::collections::BTreeSet;

/// A host to which an agent's webhooks become allowed, or refused.
#[derive(Debug, Clone)]
pub struct HostChange {
    /// As for a change.
    pub id: Box<str>,
    /// Which way.
    pub direction: Direction,
    /// The agent.
    pub agent: Box<str>,
    /// The host and its port.
    pub host: Box<str>,
}

pub(super) fn compare(old: &Side<'_>, new: &Side<'_>, difference: &mut Difference) {
    let (before, after) = (listed(old), listed(new));
    let ways = [
        (Direction::Allowed, after.difference(&before)),
        (Direction::Refused, before.difference(&after)),
    ];
    for (direction, found) in ways {
        difference
            .hosts
            .extend(found.map(|(agent, host)| HostChange {
                id: id(&("webhook", direction, agent, host)),
                direction,
                agent: (*agent).into(),
                host: host.as_str().into(),
            }));
    }
}

/// Agents and hosts, each entry for any agent written out.
fn listed<'a>(side: &Side<'a>) -> BTreeSet<(&'a str, String)> {
    let mut all = BTreeSet::new();
    for (at, agent) in side.world.agents.iter().enumerate() {
        all.extend(
            side.policies
                .webhooks()
                .listed(at)
                .map(|host| (agent.name, host)),
        );
    }
    all
}
