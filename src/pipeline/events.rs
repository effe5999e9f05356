//! Records that are about the gateway itself: its configuration, and what it fetches.

use super::cards::{CardChange, FetchFacts};
use super::ports::RecordBody;
use super::{Gate, Live};
use crate::audit::record::{
    CardChanged, ConfigChange, ConfigResult, Fetch, Head, Id, Millis, Purpose, Record, Sha256, Time,
};
use aws_lc_rs::digest::{SHA256, digest};

impl Gate {
    /// Records that a configuration is in force, or was refused.
    pub fn record_config(&self, loaded: bool, trigger: &'static str, problems: u64) {
        let live = self.live();
        let result = if loaded {
            ConfigResult::Loaded
        } else {
            ConfigResult::Rejected
        };
        self.note(Record::Config(ConfigChange {
            head: self.head(&live),
            result,
            trigger,
            problems,
        }));
    }

    /// Records a fetch of an agent's card and, if the card changed, that.
    pub fn record_card(&self, live: &Live, agent: usize, change: &CardChange, fetch: &FetchFacts) {
        let Some(agent) = live.snapshot.agents.get(agent) else {
            return;
        };
        let trouble = match change {
            CardChange::Kept(trouble)
            | CardChange::Absent(trouble)
            | CardChange::Withheld(trouble) => Some(trouble),
            CardChange::Installed(_) | CardChange::Changed { .. } | CardChange::Unchanged => None,
        };
        let error = trouble.map(|trouble| trouble.label());
        match trouble {
            Some(trouble) => tracing::warn!(agent = &*agent.name, "agent card: {trouble}"),
            None => tracing::debug!(agent = &*agent.name, "agent card fetched"),
        }
        self.note(Record::Fetch(Fetch {
            head: self.head(live),
            request_id: fetch.request_id.as_str(),
            purpose: Purpose::Card,
            target: &agent.name,
            path: Some(Id(&fetch.path)),
            http_status: fetch.http_status,
            bytes: fetch.bytes,
            ms: Millis(fetch.took),
            error,
        }));
        let (before, after) = match change {
            CardChange::Installed(after) => (None, Some(after)),
            CardChange::Changed { before, after } => (Some(before), Some(after)),
            CardChange::Withheld(_) => (None, None),
            CardChange::Unchanged | CardChange::Kept(_) | CardChange::Absent(_) => return,
        };
        self.note(Record::CardChanged(CardChanged {
            head: self.head(live),
            agent: &agent.name,
            before: before.map(|card| sha256(&card.body)),
            after: after.map(|card| sha256(&card.body)),
            error,
        }));
    }

    pub(super) fn head<'a>(&'a self, live: &'a Live) -> Head<'a> {
        Head {
            time: Time(self.clock.now()),
            instance: &self.instance,
            generation: live.snapshot.generation,
            policy_digest: &live.snapshot.digest,
        }
    }

    fn note(&self, record: Record<'_>) {
        self.journal.queue(RecordBody(record.members()));
    }
}

fn sha256(bytes: &[u8]) -> Sha256 {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    Sha256(hash)
}
