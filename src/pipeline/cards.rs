//! The current card of each agent: what is kept, what replaces it, when to ask again.
//!
//! One store belongs to one generation. Requests only read it: nothing that a caller does causes
//! a fetch. The last good card stays until a better one comes (I-8).

mod outcome;
mod refresh;
mod state;

pub use outcome::{
    CardTarget, CardTrouble, FetchFacts, FetchFailure, FetchFailureKind, FetchOutcome, Known,
};
pub use refresh::{CardSource, Observe, RefreshPorts, run_refresh};
pub use state::{CardChange, CardNotice, CardNoticeKind, CardState, CardView, Current};

use super::ports::{Random, UnixMillis};
use crate::a2a::card::{
    CardFault, Interface, Promises, Publication, Published, SecuritySchemes, rewrite, rewrite_reply,
};
use crate::a2a::{Binding, Dialect, Operation, Version};
use crate::config::snapshot::{Agent, Backend, Interfaces, Snapshot};
use crate::policy::{Asked, AskedSkill, PolicySet, could_allow};
use arc_swap::ArcSwap;
use bytes::Bytes;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::sync::Notify;

/// What the gateway proxies, and so may offer in a card.
pub const OFFERED: [Dialect; 4] = [
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
];

/// The schemes that callers must use.
static SCHEMES: LazyLock<SecuritySchemes> = LazyLock::new(SecuritySchemes::default);

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

struct Slot {
    agent: Arc<Agent>,
    policy: Arc<PolicySet>,
    promises: Promises,
    public_base: Box<str>,
    /// What the operator listed; empty for `interfaces: auto`.
    listed: Arc<[Interface]>,
    state: ArcSwap<CardState>,
    /// Attempts since the last good answer.
    failures: AtomicU32,
    refresh: Notify,
}

impl CardStore {
    /// The store of a new generation.
    ///
    /// Cards of agents whose backend is the same are carried over from `previous` and rewritten
    /// for the new configuration. Cards name the public URL of the first listener.
    pub fn for_snapshot(
        snapshot: &Snapshot,
        previous: Option<&CardStore>,
        now: UnixMillis,
    ) -> CardStore {
        let base = snapshot.listeners.first();
        let base = base.map_or("", |listener| &listener.public_url);
        let slots = snapshot.agents.iter().map(|agent| {
            let slot = Slot::new(agent, &snapshot.policy, base, now);
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

    /// What a card request for the agent gets; `agent` is [`Agent::index`].
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

    /// The reply to a call for the agent's extended card, rewritten like its public card; `shows`
    /// says which skills this caller sees.
    ///
    /// # Errors
    /// A [`CardFault`]: the reply is withheld.
    pub fn extended(
        &self,
        agent: usize,
        binding: Binding,
        reply: &[u8],
        shows: &dyn Fn(Option<&str>) -> bool,
    ) -> Result<Bytes, CardFault> {
        let slot = self.slots.get(agent).ok_or(CardFault::NotACard)?;
        let reachable = slot.interfaces();
        rewrite_reply(binding, reply, &slot.publication(Some(&reachable), shows))
    }

    /// Where the agent's card is asked for.
    pub fn target(&self, agent: usize) -> Option<CardTarget> {
        let backend = &self.slots.get(agent)?.agent.backend;
        Some(CardTarget {
            authority: backend.authority.clone(),
            paths: backend.card_paths.clone(),
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

    /// Takes in what came of a fetch.
    pub fn apply(&self, agent: usize, outcome: FetchOutcome, now: UnixMillis) -> CardChange {
        match self.slots.get(agent) {
            Some(slot) => slot.apply(outcome, now),
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

impl Slot {
    fn new(agent: &Arc<Agent>, policy: &Arc<PolicySet>, base: &str, now: UnixMillis) -> Slot {
        let listed = match &agent.interfaces {
            Interfaces::Auto => Arc::from([]),
            Interfaces::Listed(listed) => Arc::from(listed.as_slice()),
        };
        Slot {
            public_base: format!("{base}{}", agent.route).into_boxed_str(),
            listed,
            state: ArcSwap::from_pointee(CardState::Absent {
                since: now,
                reason: CardTrouble::NotAsked,
            }),
            failures: AtomicU32::new(0),
            refresh: Notify::new(),
            promises: promises(policy, agent),
            policy: Arc::clone(policy),
            agent: Arc::clone(agent),
        }
    }

    /// The card for strangers: skills that nobody could ever be allowed are not shown.
    fn rewrite(&self, upstream: &[u8]) -> Result<Published, CardFault> {
        let shows = |id: Option<&str>| self.could_send(id);
        rewrite(upstream, &self.publication(None, &shows))
    }

    fn could_send(&self, skill: Option<&str>) -> bool {
        let skill = skill.map_or(AskedSkill::Unknown, AskedSkill::Known);
        MESSAGES.into_iter().any(|operation| {
            let asked = Asked::Operation(operation);
            could_allow(&self.policy, self.agent.index, asked, skill)
        })
    }

    fn publication<'a>(
        &'a self,
        reachable: Option<&'a [Interface]>,
        shows: &'a dyn Fn(Option<&str>) -> bool,
    ) -> Publication<'a> {
        let backend = &self.agent.backend;
        let listed = match &self.agent.interfaces {
            Interfaces::Auto => None,
            Interfaces::Listed(listed) => Some(listed.as_slice()),
        };
        Publication {
            public_base: &self.public_base,
            backend_host: &backend.host,
            backend_port: backend.port,
            backend_base_path: &backend.base_path,
            also_origins: &self.agent.also_origins,
            listed,
            schemes: &SCHEMES,
            offered: &OFFERED,
            reachable,
            promises: self.promises,
            shows,
        }
    }

    fn take_over(&self, old: &Slot, now: UnixMillis) {
        let state = old.state.load();
        if let CardState::Current(current) = &**state {
            match self.rewrite(&current.upstream) {
                Ok(published) => {
                    let next = current.with(published, now);
                    self.state.store(Arc::new(CardState::Current(next)));
                }
                // The old form names what the new configuration may not: it is no last good card.
                Err(fault) => self.state.store(Arc::new(CardState::Withheld {
                    since: now,
                    reason: CardTrouble::Fault(fault),
                })),
            }
        } else {
            self.state.store(Arc::clone(&state));
        }
    }

    fn apply(&self, outcome: FetchOutcome, now: UnixMillis) -> CardChange {
        let state = self.state.load_full();
        let (body, etag, path) = match outcome {
            FetchOutcome::Fetched { body, etag, path } => (body, etag, path),
            FetchOutcome::Failed(failure) => {
                return self.fail(&state, CardTrouble::Fetch(failure), now);
            }
            FetchOutcome::NotModified => {
                return match &*state {
                    CardState::Current(current) => {
                        self.failures.store(0, Ordering::Relaxed);
                        self.state.store(Arc::new(CardState::Current(Current {
                            fetched_at: now,
                            kept: None,
                            ..current.clone()
                        })));
                        CardChange::Unchanged
                    }
                    // Nobody was asked conditionally, so 304 is no answer.
                    CardState::Absent { .. } | CardState::Withheld { .. } => {
                        let failure = FetchFailure {
                            path: "".into(),
                            kind: FetchFailureKind::Status(304),
                        };
                        self.fail(&state, CardTrouble::Fetch(failure), now)
                    }
                };
            }
        };
        let published = match self.rewrite(&body) {
            Ok(published) => published,
            Err(fault) => return self.fail(&state, CardTrouble::Fault(fault), now),
        };
        self.failures.store(0, Ordering::Relaxed);
        let (mut next, change) = match &*state {
            CardState::Current(current) => {
                let next = current.with(published, now);
                let change = if Arc::ptr_eq(&next.published, &current.published) {
                    CardChange::Unchanged
                } else {
                    CardChange::Changed {
                        before: Arc::clone(&current.published),
                        after: Arc::clone(&next.published),
                    }
                };
                (next, change)
            }
            CardState::Absent { .. } | CardState::Withheld { .. } => {
                let next = Current::first(published, now);
                let change = CardChange::Installed(Arc::clone(&next.published));
                (next, change)
            }
        };
        next.fetched_at = now;
        next.kept = None;
        next.upstream = body;
        next.upstream_etag = etag;
        next.path = path;
        self.state.store(Arc::new(CardState::Current(next)));
        change
    }

    fn fail(&self, state: &CardState, reason: CardTrouble, now: UnixMillis) -> CardChange {
        let failures = self.failures.load(Ordering::Relaxed);
        self.failures
            .store(failures.saturating_add(1), Ordering::Relaxed);
        match state {
            CardState::Current(current) => {
                let since = current.kept.as_ref().map_or(now, |(since, _)| *since);
                self.state.store(Arc::new(CardState::Current(Current {
                    kept: Some((since, reason.clone())),
                    ..current.clone()
                })));
                CardChange::Kept(reason)
            }
            CardState::Absent { since, .. } | CardState::Withheld { since, .. } => {
                let (since, reason_kept) = (*since, reason.clone());
                if reason.withholds() {
                    self.state.store(Arc::new(CardState::Withheld {
                        since,
                        reason: reason_kept,
                    }));
                    CardChange::Withheld(reason)
                } else {
                    self.state.store(Arc::new(CardState::Absent {
                        since,
                        reason: reason_kept,
                    }));
                    CardChange::Absent(reason)
                }
            }
        }
    }

    fn interfaces(&self) -> Arc<[Interface]> {
        if let Interfaces::Listed(_) = self.agent.interfaces {
            return Arc::clone(&self.listed);
        }
        match &**self.state.load() {
            CardState::Current(current) => Arc::clone(&current.interfaces),
            CardState::Absent { .. } | CardState::Withheld { .. } => Arc::clone(&self.listed),
        }
    }

    fn notices(&self) -> Vec<CardNoticeKind> {
        let state = self.state.load();
        let current = match &**state {
            CardState::Absent { reason, .. } | CardState::Withheld { reason, .. } => {
                return vec![CardNoticeKind::NoCard(reason.clone())];
            }
            CardState::Current(current) => current,
        };
        let kept = current.kept.iter();
        let kept = kept.map(|(since, reason)| CardNoticeKind::LastGood(*since, reason.clone()));
        let (listed, published) = (&self.agent.skills, &current.published.skills);
        let unlisted = published.iter().filter(|skill| !listed.contains(skill));
        let vanished = listed.iter().filter(|skill| !published.contains(skill));
        kept.chain(unlisted.cloned().map(CardNoticeKind::SkillUnlisted))
            .chain(vanished.cloned().map(CardNoticeKind::SkillVanished))
            .collect()
    }
}

/// What the gateway and the policy could let anybody do.
fn promises(policy: &PolicySet, agent: &Agent) -> Promises {
    let could = |operation, skill| {
        let asked = Asked::Operation(operation);
        could_allow(policy, agent.index, asked, skill)
    };
    let mut skills = agent.skills.iter().map(|id| AskedSkill::Known(id));
    let streaming = |skill| could(Operation::SendStreamingMessage, skill);
    Promises {
        streaming: skills.any(streaming) || streaming(AskedSkill::Unknown),
        push: policy.webhooks().any_for(agent.index)
            && could(
                Operation::CreateTaskPushNotificationConfig,
                AskedSkill::NotAMessage,
            ),
        extended: could(Operation::GetExtendedAgentCard, AskedSkill::NotAMessage),
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
