//! `ownership`: for how long whose task is whose.

use super::document;
use super::snapshot::{Agent, Ownership};
use crate::source::Value;
use crate::source::codes;
use crate::source::quantity::show_duration;
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// The longest `max_stream` that agents may have is no longer, so that the default suits all.
const TTL: Duration = Duration::from_secs(30 * 86_400);

/// Reads `ownership`; what is absent has its default.
pub(super) fn read(value: Option<&Value<'_, '_>>, agents: &[Arc<Agent>]) -> Ownership {
    let fields = value.and_then(|v| v.fields(&document::OWNERSHIP));
    if let Some(store) = fields.as_ref().and_then(|f| f.get("store"))
        && let Some(kinds) = store.fields(&document::STORE)
        && let Some(memory) = kinds.get("memory")
    {
        memory.fields(&document::MEMORY);
    }
    let place = fields.as_ref().and_then(|f| f.get("ttl"));
    let ttl = place.as_ref().and_then(|v| v.duration(DAY..=3650 * DAY));
    if let (Some(place), Some(ttl)) = (place, ttl)
        && let Some(agent) = agents.iter().find(|agent| agent.limits.max_stream > ttl)
    {
        // A stream binds its ids once, at its beginning.
        place.error(
            codes::OUT_OF_RANGE,
            format!(
                "a stream of agent `{}` may outlive the ids that it names",
                agent.name
            ),
            format!(
                "give at least its `max_stream`, {}",
                show_duration(agent.limits.max_stream)
            ),
        );
    }
    Ownership {
        ttl: ttl.unwrap_or(TTL),
    }
}
