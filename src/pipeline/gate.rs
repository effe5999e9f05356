//! [`Gate`]: everything that lives as long as the process, and the configuration in force.

use super::cards::CardStore;
use super::failures::Failures;
use super::introspection::{ActiveTokens, Introspector};
use super::issuer_keys::{IssuerSource, KeySlot, KeyStore};
use super::metrics::{AgentMetrics, Metrics, RuleMetrics};
use super::nonces::Nonces;
use super::one_time::UsedTokens;
use super::own_keys::OwnKeys;
use super::page_token::PageTokens;
use super::ports::{Clock, Journal, OwnershipStore, Random, Resolver, UnixMillis};
use super::proofs::SeenProofs;
use super::revocations::{Added, Revocations};
use super::strangers::Strangers;
use super::token_cache::TokenCache;
use crate::audit::record::Trigger;
use crate::audit::redact::hidden::HidingKey;
use crate::config::snapshot::Snapshot;
use crate::identity::{Issuers, KeySource, Principal};
use crate::source::Problem;
use arc_swap::ArcSwap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One generation in force: the compiled configuration and what is kept beside it.
pub struct Live {
    /// The compiled configuration.
    pub snapshot: Arc<Snapshot>,
    /// Agents' cards.
    pub cards: Arc<CardStore>,
    /// Metric handles by [`crate::config::snapshot::Agent::index`].
    pub agents: Vec<Arc<AgentMetrics>>,
    /// Metric handles of its rules.
    pub rules: RuleMetrics,
    /// The trusted issuers and their keys.
    pub issuers: Issuers,
    /// The keys of its issuers, in their order.
    pub issuer_keys: Vec<Arc<KeySlot>>,
    /// Whether there are keys of ours to be told of.
    pub key_set: bool,
    /// Tokens that were verified under this generation; a new one begins empty (CA-3).
    pub tokens: TokenCache,
    /// Tokens that their issuers called active under this generation.
    pub active: ActiveTokens,
}

impl Live {
    fn new(
        snapshot: Snapshot,
        cards: Option<&CardStore>,
        keys: Option<&OwnKeys>,
        (metrics, issuer_keys, introspector): (&Metrics, &KeyStore, &dyn Introspector),
        now: UnixMillis,
    ) -> Live {
        let snapshot = Arc::new(snapshot);
        let issuer_keys = issuer_keys.follow(&snapshot.issuers);
        let sources = issuer_keys
            .iter()
            .map(|slot| slot.clone() as Arc<dyn KeySource>);
        let key = keys.and_then(|keys| keys.card.as_ref());
        Live {
            cards: Arc::new(CardStore::for_snapshot(&snapshot, cards, key, now)),
            agents: snapshot
                .agents
                .iter()
                .map(|agent| metrics.agent(&agent.name))
                .collect(),
            rules: metrics.rules(&snapshot.policy),
            issuers: Issuers::with_keys(&snapshot.issuers, sources),
            issuer_keys,
            key_set: keys.is_some(),
            tokens: TokenCache::new(),
            active: ActiveTokens::new(&snapshot.introspection, introspector),
            snapshot,
        }
    }

    /// What is wrong with its rules in shadow mode whose time is over at `now`.
    pub fn expired_shadows(&self, now: UnixMillis) -> impl Iterator<Item = &Problem> {
        let now = i64::try_from(now / 1000).unwrap_or(i64::MAX);
        let shadows = self.snapshot.policy.shadows().iter();
        shadows.filter_map(move |shadow| shadow.expired(now))
    }

    /// Whether 401s offer DPoP: some issuer binds tokens to keys.
    pub fn offers_dpop(&self) -> bool {
        self.snapshot.issuers.iter().any(|i| i.dpop.is_some())
    }

    /// Whether a proof for this caller's token must have a nonce of ours.
    pub fn asks_nonce(&self, principal: &Principal) -> bool {
        let issuer = self.snapshot.issuers.get(principal.issuer_index);
        principal.confirmation.key.is_some()
            && issuer.is_some_and(|i| i.dpop.is_some_and(|dpop| dpop.nonce))
    }
}

/// Shared by all requests.
pub struct Gate {
    live: ArcSwap<Live>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// The journal.
    pub journal: Arc<dyn Journal>,
    /// Whose tasks and contexts are whose.
    pub ownership: Arc<dyn OwnershipStore>,
    /// Addresses of host names.
    pub resolver: Arc<dyn Resolver>,
    /// Asks issuers about tokens.
    pub introspector: Arc<dyn Introspector>,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Our own keys, if any are configured.
    pub keys: Option<OwnKeys>,
    /// The keys of issuers.
    pub issuer_keys: Arc<KeyStore>,
    /// When this gate was made.
    pub started: UnixMillis,
    /// This process in records.
    pub instance: Box<str>,
    /// The key of token fingerprints (LG-2), and of what records hide.
    pub fingerprints: HidingKey,
    /// Seals the page tokens of lists; of this process, so they are lost with it.
    pub page_tokens: PageTokens,
    /// Who had tokens verified that were not accepted.
    pub failures: Failures,
    /// Proofs of possession that were used (SC-4).
    pub seen_proofs: SeenProofs,
    /// Nonces for proofs of possession.
    pub proof_nonces: Nonces,
    /// Bounds what callers without a good token write into the journal.
    pub strangers: Strangers,
    /// Tokens that may be used once, and were (RV-4).
    pub used_tokens: UsedTokens,
    /// What is revoked before it expires.
    pub revocations: Revocations,
    reload: Mutex<Option<Trigger>>,
    /// When the files in force were last found unchanged or taken, in monotonic milliseconds.
    confirmed: AtomicU64,
}

/// What a gate is made of.
pub struct Ports {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// The journal.
    pub journal: Arc<dyn Journal>,
    /// Whose tasks and contexts are whose.
    pub ownership: Arc<dyn OwnershipStore>,
    /// Addresses of host names.
    pub resolver: Arc<dyn Resolver>,
    /// Asks issuers about tokens.
    pub introspector: Arc<dyn Introspector>,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Our own keys, if any are configured.
    pub keys: Option<OwnKeys>,
    /// Where the keys of issuers come from.
    pub issuer_source: Arc<dyn IssuerSource>,
    /// What operators have revoked in earlier runs.
    pub revoked: Vec<Added>,
    /// This process in records.
    pub instance: Box<str>,
}

impl Gate {
    /// A gate with its first generation in force.
    pub fn new(ports: Ports, snapshot: Snapshot) -> Gate {
        let Ports {
            clock,
            random,
            journal,
            ownership,
            resolver,
            introspector,
            metrics,
            keys,
            issuer_source,
            revoked,
            instance,
        } = ports;
        let revocations = Revocations::new(&snapshot, revoked);
        metrics.set_generation(snapshot.generation);
        metrics.set_policy_digest(&snapshot.digest);
        let issuer_keys = Arc::new(KeyStore::new(
            issuer_source,
            clock.clone(),
            random.clone(),
            metrics.clone(),
        ));
        let beside = (&*metrics, &*issuer_keys, &*introspector);
        let live = Live::new(snapshot, None, keys.as_ref(), beside, clock.now());
        let confirmed = millis(clock.monotonic());
        let fingerprints = keys.as_ref().and_then(|keys| keys.fingerprints.clone());
        let fingerprints = fingerprints.unwrap_or_else(|| {
            let mut secret = [0; 32];
            random.fill(&mut secret);
            HidingKey::new(&secret)
        });
        Gate {
            page_tokens: PageTokens::new(&*random),
            seen_proofs: SeenProofs::new(&*random),
            proof_nonces: Nonces::new(&*random),
            fingerprints,
            live: ArcSwap::from_pointee(live),
            started: clock.now(),
            clock,
            random,
            journal,
            ownership,
            resolver,
            introspector,
            metrics,
            keys,
            issuer_keys,
            instance,
            failures: Failures::default(),
            strangers: Strangers::default(),
            used_tokens: UsedTokens::default(),
            revocations,
            reload: Mutex::default(),
            confirmed: AtomicU64::new(confirmed),
        }
    }

    /// Puts a new generation in force; requests under way keep theirs.
    pub fn install(&self, snapshot: Snapshot) -> Arc<Live> {
        self.revocations.follow(&snapshot);
        let before = self.live();
        let live = Live::new(
            snapshot,
            Some(&before.cards),
            self.keys.as_ref(),
            (&self.metrics, &self.issuer_keys, &*self.introspector),
            self.clock.now(),
        );
        // Before the first request of the new generation, which may then wait for what has begun.
        self.issuer_keys.tick();
        let live = Arc::new(live);
        self.metrics.reloaded(live.snapshot.generation);
        self.metrics.set_policy_digest(&live.snapshot.digest);
        self.live.store(live.clone());
        live
    }

    /// Counts the calls that a crash left open and the journal closed when it was opened; those of
    /// agents that are not configured any more are another's.
    pub fn count_unknown(&self) {
        let live = self.live();
        for (name, many) in self.journal.found_unknown() {
            let known = live.snapshot.agents.iter().any(|agent| agent.name == name);
            let name = if known { &*name } else { "other" };
            self.metrics.agent(name).unknown_deliveries(many);
        }
    }

    /// Asks for a look at the configuration files, as an operator does; `by` is for its record.
    pub fn request_reload(&self, by: Trigger) {
        *self.reload.lock().unwrap_or_else(PoisonError::into_inner) = Some(by);
    }

    /// What asked for a look since the last call.
    pub fn take_reload_request(&self) -> Option<Trigger> {
        self.reload
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// The files in force were looked at and are still what they were.
    pub fn confirm_files(&self) {
        self.confirmed
            .store(millis(self.clock.monotonic()), Ordering::Relaxed);
    }

    /// How long ago that was: the age of key sets that are read from files.
    pub fn files_age(&self) -> Duration {
        let now = millis(self.clock.monotonic());
        Duration::from_millis(now.saturating_sub(self.confirmed.load(Ordering::Relaxed)))
    }

    /// The generation in force. A request takes it once, at its start.
    pub fn live(&self) -> Arc<Live> {
        self.live.load_full()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
