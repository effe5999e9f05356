//! The current card of each agent: what is kept, what replaces it, when to ask again.
//!
//! One store belongs to one generation. Requests only read it: nothing that a caller does causes
//! a fetch. The last good card stays until a better one comes (I-8).

mod outcome;
mod refresh;
mod signing;
mod slot;
mod state;

/// The HTTP version in which an agent is asked, which is the one of its calls.
pub use crate::config::snapshot::{BackendHttp, Speaks};
pub use outcome::{
    CardTarget, CardTrouble, FetchFacts, FetchFailure, FetchFailureKind, FetchOutcome, Known,
};
pub use refresh::{CardSource, Observe, Observed, RefreshPorts, refresh_once, run_refresh};
pub use signing::NamedKeys;
pub use state::{CardChange, CardNotice, CardNoticeKind, CardState, CardView, Current};

use super::ports::{Random, UnixMillis};
use crate::a2a::card::{CardFault, Interface, named_key_sets};
use crate::a2a::{Binding, Dialect, Operation, Version};
use crate::config::snapshot::{Agent, Backend, BackendIdentity, Snapshot};
use crate::identity::SigningKey;
use bytes::Bytes;
use slot::Slot;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What the gateway proxies, and so may offer in a card; gRPC only where the agent has a place for
/// it.
pub const OFFERED: [Dialect; 6] = [
    Dialect {
        binding: Binding::JsonRpc,
        version: Version::V0_3,
    },
    Dialect {
        binding: Binding::JsonRpc,
        version: Version::V1_0,
    },
    Dialect {
        binding: Binding::Rest,
        version: Version::V0_3,
    },
    Dialect {
        binding: Binding::Rest,
        version: Version::V1_0,
    },
    Dialect {
        binding: Binding::Grpc,
        version: Version::V0_3,
    },
    Dialect {
        binding: Binding::Grpc,
        version: Version::V1_0,
    },
];

/// The operations that a skill is for.
pub(super) const MESSAGES: [Operation; 2] =
    [Operation::SendMessage, Operation::SendStreamingMessage];

/// How often a good card is asked for again.
const REFRESH: Duration = Duration::from_secs(300);
/// The longest wait between attempts while there is no good card.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The cards of one generation's agents.
pub struct CardStore {
    slots: Vec<Slot>,
}

impl CardStore {
    /// The store of a new generation.
    ///
    /// Cards of agents whose backend is the same are carried over from `previous` and rewritten
    /// for the new configuration. Cards name the public URL of the first listener. `key` signs the
    /// cards that are to be signed.
    pub fn for_snapshot(
        snapshot: &Snapshot,
        previous: Option<&CardStore>,
        key: Option<&Arc<SigningKey>>,
        now: UnixMillis,
    ) -> CardStore {
        let slots = snapshot.agents.iter().map(|agent| {
            let slot = Slot::new(agent, &snapshot.policy, key, &snapshot.listeners, now);
            let old = previous.and_then(|store| {
                store.slots.iter().find(|old| {
                    old.agent.name == agent.name && same_source(&old.agent.backend, &agent.backend)
                })
            });
            if let Some(old) = old {
                slot.take_over(old, now);
            }
            slot
        });
        CardStore {
            slots: slots.collect(),
        }
    }

    /// What a card request for the agent gets; `agent` is [`crate::config::snapshot::Agent::index`].
    pub fn card(&self, agent: usize) -> CardView {
        let Some(slot) = self.slots.get(agent) else {
            return CardView::Missing(LONGEST_WAIT.as_secs());
        };
        match &**slot.state.load() {
            CardState::Current(current) => {
                CardView::Ready(Arc::clone(&current.published), current.published_at)
            }
            CardState::Absent { .. } => {
                CardView::Missing(back_off(slot.failures.load(Ordering::Relaxed)).as_secs())
            }
            CardState::Withheld { .. } => CardView::Withheld,
        }
    }

    /// The agent's interfaces: as listed, else as its current card says; empty without a card.
    pub fn interfaces(&self, agent: usize) -> Arc<[Interface]> {
        match self.slots.get(agent) {
            Some(slot) => slot.interfaces(),
            None => Arc::from([]),
        }
    }

    /// The state of the agent's card, for operators.
    pub fn state(&self, agent: usize) -> Option<Arc<CardState>> {
        Some(self.slots.get(agent)?.state.load_full())
    }

    /// Whether a good card is being served.
    pub fn has_card(&self, agent: usize) -> bool {
        matches!(self.card(agent), CardView::Ready(..))
    }

    /// Whether the agent announces an extended card.
    pub fn has_extended(&self, agent: usize) -> bool {
        match self.card(agent) {
            CardView::Ready(published, _) => published.extended,
            CardView::Missing(_) | CardView::Withheld => false,
        }
    }

    /// Whether the agent's card requires an extension that is not among the declared ones.
    pub fn requires_more(&self, agent: usize, declared: &[Box<str>]) -> bool {
        match self.card(agent) {
            CardView::Ready(published, _) => published
                .required_extensions
                .iter()
                .any(|required| !declared.contains(required)),
            CardView::Missing(_) | CardView::Withheld => false,
        }
    }

    /// Whether the agent's card declares that it routes on the stamp or the assertion, and it
    /// gets that.
    pub fn routes_on_what_we_say(&self, agent: &Agent) -> bool {
        let asserted = matches!(agent.identity, BackendIdentity::Assertion);
        match self.card(agent.index) {
            CardView::Ready(published, _) => {
                (agent.stamp && published.routes_on_stamp)
                    || (asserted && published.routes_on_assertion)
            }
            CardView::Missing(_) | CardView::Withheld => false,
        }
    }

    /// The reply to a call for the agent's extended card, rewritten like its public card; `shows`
    /// says which skills this caller sees.
    ///
    /// # Errors
    /// A [`CardFault`]: the reply is withheld.
    pub fn extended(
        &self,
        agent: usize,
        dialect: Dialect,
        reply: &[u8],
        shows: &dyn Fn(Option<&str>) -> bool,
    ) -> Result<Bytes, CardFault> {
        let slot = self.slots.get(agent).ok_or(CardFault::NotACard)?;
        slot.extended(dialect, reply, shows)
    }

    /// Where the agent's card is asked for.
    pub fn target(&self, agent: usize) -> Option<CardTarget> {
        let backend = &self.slots.get(agent)?.agent.backend;
        Some(CardTarget {
            authority: backend.authority.clone(),
            host: backend.host.clone(),
            port: backend.port,
            paths: backend.card_paths.clone(),
            tls: backend.tls.clone(),
            speaks: backend.speaks(),
        })
    }

    /// The path and validator of the last good answer, for a conditional request.
    pub fn known(&self, agent: usize) -> Option<Known> {
        match &**self.slots.get(agent)?.state.load() {
            CardState::Current(current) => Some(Known {
                path: current.path.clone(),
                etag: current.upstream_etag.clone()?,
            }),
            CardState::Absent { .. } | CardState::Withheld { .. } => None,
        }
    }

    /// The key sets that the signatures of a fetched card name and that may be fetched for it.
    pub fn key_sets(&self, agent: usize, outcome: &FetchOutcome) -> Vec<Box<str>> {
        let verify = self.slots.get(agent).and_then(|s| s.agent.verify.as_ref());
        let (Some(verify), FetchOutcome::Fetched { body, .. }) = (verify, outcome) else {
            return Vec::new();
        };
        if verify.key_sets.is_empty() {
            return Vec::new();
        }
        let named = named_key_sets(body);
        let allowed = verify.key_sets.iter();
        allowed.filter(|url| named.contains(url)).cloned().collect()
    }

    /// Takes in what came of a fetch, and the key sets that were fetched for it.
    pub fn apply(
        &self,
        agent: usize,
        outcome: FetchOutcome,
        named: NamedKeys,
        now: UnixMillis,
    ) -> CardChange {
        match self.slots.get(agent) {
            Some(slot) => slot.apply(outcome, named, now),
            None => CardChange::Unchanged,
        }
    }

    /// How long to wait before the next fetch: 5 minutes after a good answer or while a good card
    /// is served, else 1, 2, 4 … 60 seconds; from three quarters to five quarters of that.
    pub fn next_refresh(&self, agent: usize, random: &dyn Random) -> Duration {
        let Some(slot) = self.slots.get(agent) else {
            return REFRESH;
        };
        let wait = match &**slot.state.load() {
            CardState::Current(_) => REFRESH,
            CardState::Absent { .. } | CardState::Withheld { .. } => {
                back_off(slot.failures.load(Ordering::Relaxed))
            }
        };
        let mut byte = [0_u8];
        random.fill(&mut byte);
        wait * (384 + u32::from(byte[0])) / 512
    }

    /// Asks for a fetch now: for operators, never for callers.
    pub fn refresh_now(&self, agent: usize) {
        if let Some(slot) = self.slots.get(agent) {
            slot.refresh.notify_one();
        }
    }

    /// Waits for [`CardStore::refresh_now`].
    pub async fn refresh_requested(&self, agent: usize) {
        match self.slots.get(agent) {
            Some(slot) => slot.refresh.notified().await,
            None => std::future::pending().await,
        }
    }

    /// What operators should hear of one agent's card.
    pub fn notices_of(&self, agent: usize) -> Vec<CardNoticeKind> {
        match self.slots.get(agent) {
            Some(slot) => slot.notices(),
            None => Vec::new(),
        }
    }

    /// Everything about cards that readiness and operators should hear of.
    pub fn notices(&self) -> Vec<CardNotice> {
        let notices = self.slots.iter().flat_map(|slot| {
            slot.notices().into_iter().map(|kind| CardNotice {
                agent: slot.agent.name.clone(),
                kind,
            })
        });
        notices.collect()
    }
}

/// Whether two backends would be asked for the same card.
fn same_source(left: &Backend, right: &Backend) -> bool {
    left.host == right.host
        && left.port == right.port
        && left.base_path == right.base_path
        && left.card_paths == right.card_paths
}

fn back_off(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(6);
    LONGEST_WAIT.min(Duration::from_secs(1 << doublings))
}
