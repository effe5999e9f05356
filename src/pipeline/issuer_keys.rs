//! [`KeyStore`]: the keys of all issuers, kept fresh for as long as the process lives
//! (LC-6 to LC-15).
//!
//! Keys belong to an entry and its source, not to a generation: a reload that leaves both alone
//! keeps them. A request whose key is known reads them without a lock and never waits.

mod fetching;
pub mod lifecycle;
mod slot;

pub use fetching::{
    FetchedKeys, IssuerSource, KeyChange, KeyFetch, KeyFetchFault, NewKeys, Nowhere,
};
pub use slot::KeySlot;

use super::RequestId;
use super::metrics::Metrics;
use super::ports::{Clock, Random};
use crate::identity::issuer::IssuerConfig;
use crate::identity::issuer::KeyLocation;
use crate::identity::keys::KeySet;
use crate::identity::{KeySource, Seeks};
use lifecycle::{Budget, Unknown};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long a request waits for a fetch (LC-8).
const WAIT: Duration = Duration::from_secs(1);

/// Told of every fetch, after it has taken effect.
pub type ObserveKeys = Arc<dyn Fn(&KeyFetch<'_>) + Send + Sync>;

/// What a forced refresh came to (LC-11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refreshed {
    /// A set is in use that was fetched after the call.
    Done,
    /// Nothing new: why.
    Failed(KeyFetchFault),
    /// The keys are in a file, which is looked at every second.
    File,
    /// No entry has this name.
    NoIssuer,
}

/// The keys of all issuers.
pub struct KeyStore {
    source: Arc<dyn IssuerSource>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
    /// Of the newest generation, in the order of its entries.
    slots: Mutex<Vec<Arc<KeySlot>>>,
    /// Pairs of issuers with a key in common (IS-3), compared when keys change and not when asked.
    shared: Mutex<Vec<(Box<str>, Box<str>)>>,
    budget: Mutex<Budget>,
    observe: OnceLock<ObserveKeys>,
}

impl KeyStore {
    /// Without any issuer.
    pub fn new(
        source: Arc<dyn IssuerSource>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        metrics: Arc<Metrics>,
    ) -> KeyStore {
        KeyStore {
            source,
            clock,
            random,
            metrics,
            slots: Mutex::default(),
            shared: Mutex::default(),
            budget: Mutex::default(),
            observe: OnceLock::new(),
        }
    }

    /// Who is told of fetches; the first call counts.
    pub fn observe(&self, observe: ObserveKeys) {
        let _ = self.observe.set(observe);
    }

    /// Goes over to the entries of a generation; a slot for each, in their order. Those whose
    /// source is unchanged keep their keys, whatever becomes of their times.
    pub fn follow(&self, configs: &[Arc<IssuerConfig>]) -> Vec<Arc<KeySlot>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let next: Vec<_> = configs
            .iter()
            .map(|config| {
                let kept = slots.iter().find(|slot| slot.serves(config));
                kept.cloned().unwrap_or_else(|| {
                    let from = slots.iter().find(|slot| slot.has_source_of(config));
                    Arc::new(KeySlot::new(config, &self.clock, from.map(|slot| &**slot)))
                })
            })
            .collect();
        for gone in slots.iter() {
            if !configs.iter().any(|config| *config.name == *gone.name()) {
                self.metrics.forget_issuer(gone.name());
            }
        }
        slots.clone_from(&next);
        drop(slots);
        self.compare();
        next
    }

    /// The slots of the newest generation.
    pub fn slots(&self) -> Vec<Arc<KeySlot>> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.clone()
    }

    /// Begins every refresh that is due; to be called again and again.
    pub fn tick(self: &Arc<Self>) {
        for slot in self.slots() {
            if slot.begin_due() {
                self.spawn(slot);
            }
        }
    }

    /// Fetches an issuer's keys now, whatever their age (LC-11); a fetch that runs already is
    /// waited for first, since it may have asked too early.
    pub async fn refresh(self: &Arc<Self>, issuer: &str) -> Refreshed {
        let Some(slot) = self.slots().into_iter().find(|slot| slot.name() == issuer) else {
            return Refreshed::NoIssuer;
        };
        if slot.remote().is_none() {
            return Refreshed::File;
        }
        let mut ended = slot.ended();
        while !slot.begin() {
            if ended.changed().await.is_err() {
                return Refreshed::Failed(KeyFetchFault::Abandoned);
            }
        }
        match self.fetch(slot).await {
            Ok(_) => Refreshed::Done,
            Err(fault) => Refreshed::Failed(fault),
        }
    }

    /// Whether it is worth judging a refused token once more: its key was missing, and another
    /// set has come (LC-7 to LC-9).
    pub async fn seek(self: &Arc<Self>, slot: &Arc<KeySlot>, seeks: &Seeks) -> bool {
        // Before anything is decided, so that an end in between is not missed.
        let ended = slot.ended();
        let current = slot.current();
        let Some(kid) = &seeks.kid else {
            return current.is_some() || slot.is_running() && until(ended).await;
        };
        if current.is_some_and(|set| set.named(kid).is_some()) {
            return true;
        }
        let unknown = {
            let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
            slot.unknown(kid, &mut budget)
        };
        self.metrics.unknown_kid(slot.name(), unknown.label());
        match unknown {
            Unknown::Fetch => self.spawn(Arc::clone(slot)),
            Unknown::Wait => {}
            Unknown::Remembered | Unknown::TooSoon | Unknown::Spent => return false,
        }
        let came = until(ended).await;
        if came {
            slot.missed(kid);
        }
        came
    }

    /// Apart from whoever asked, who may leave.
    fn spawn(self: &Arc<Self>, slot: Arc<KeySlot>) {
        let store = Arc::clone(self);
        tokio::spawn(async move {
            let _ = store.fetch(slot).await;
        });
    }

    /// The one fetch of a slot that has begun.
    async fn fetch(self: &Arc<Self>, slot: Arc<KeySlot>) -> Result<NewKeys, KeyFetchFault> {
        let store = Arc::clone(self);
        // A task of its own, so that a caller who is dropped, or a panic, leaves no slot for ever
        // in the middle of a fetch.
        let task = tokio::spawn(async move {
            let mut running = Running {
                store: &store,
                slot: &slot,
                ended: false,
            };
            let request_id = RequestId::new(&*store.clock, &*store.random);
            let began = store.clock.monotonic();
            let fetched = match slot.remote() {
                Some(remote) => store.source.fetch(remote, request_id).await,
                None => Err(KeyFetchFault::Abandoned),
            };
            let took = store.clock.monotonic().saturating_sub(began);
            let result = store.take(&slot, fetched, request_id, took);
            running.ended = true;
            result
        });
        task.await.unwrap_or(Err(KeyFetchFault::Abandoned))
    }

    fn take(
        &self,
        slot: &KeySlot,
        fetched: Result<FetchedKeys, KeyFetchFault>,
        request_id: RequestId,
        took: Duration,
    ) -> Result<NewKeys, KeyFetchFault> {
        let (body, url) = match &fetched {
            Ok(fetched) => (Some(fetched.body.clone()), fetched.url.clone()),
            Err(_) => (None, place(slot)),
        };
        let read = fetched.and_then(|fetched| {
            let parsed = KeySet::parse(&fetched.body, slot.config.rsa_alg);
            let (set, unusable) = parsed.map_err(KeyFetchFault::KeySet)?;
            Ok((set, unusable, fetched.max_age))
        });
        let mut result = slot.finish(read, self.chance());
        if let Ok(new) = &mut result {
            if new.changed {
                self.compare();
            }
            new.shared = self.sharing(slot.name());
        }
        let label = match &result {
            Ok(_) => "ok",
            Err(fault) => fault.label(),
        };
        self.metrics.issuer_keys_fetched(slot.name(), label);
        if let Some(observe) = self.observe.get() {
            observe(&KeyFetch {
                issuer: slot.name(),
                request_id,
                url: &url,
                body: body.as_ref(),
                took,
                result: result.as_ref(),
            });
        }
        result
    }

    fn chance(&self) -> u32 {
        let mut bytes = [0; 4];
        self.random.fill(&mut bytes);
        u32::from_be_bytes(bytes)
    }

    /// Names of other issuers that have a key of this one's (IS-3).
    pub fn sharing(&self, issuer: &str) -> Vec<Box<str>> {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let other = |(one, two): &(Box<str>, Box<str>)| match (&**one, &**two) {
            (own, other) | (other, own) if own == issuer => Some(other.into()),
            _ => None,
        };
        shared.iter().filter_map(other).collect()
    }

    fn compare(&self) {
        let slots = self.slots();
        let sets: Vec<(&KeySlot, Arc<KeySet>)> = slots
            .iter()
            .filter_map(|slot| Some((&**slot, slot.current()?)))
            .collect();
        let mut pairs: Vec<(Box<str>, Box<str>)> = Vec::new();
        for (position, (one, keys)) in sets.iter().enumerate() {
            for (other, theirs) in sets.iter().skip(position + 1) {
                let declared = one.config.shares_keys_with(&other.config);
                if !declared && keys.shares_with(theirs) {
                    pairs.push((one.name().into(), other.name().into()));
                }
            }
        }
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = pairs;
    }

    /// Takes in how the key files look while the configuration that names them is not good
    /// (LC-15); `read` reads one. Says which issuers' keys changed, and how.
    pub fn look_at_files(
        &self,
        read: &dyn Fn(&std::path::Path) -> Option<Vec<u8>>,
    ) -> Vec<(Box<str>, KeyChange)> {
        let mut changes = Vec::new();
        for slot in self.slots() {
            let Some(file) = slot.config.keys.file() else {
                continue;
            };
            let content = read(&file.path);
            let unreadable = KeyFetchFault::Reply(super::cards::FetchFailureKind::NotFound);
            let content = content.as_deref().ok_or(unreadable);
            let before = slot.current();
            if slot.look(content) {
                self.compare();
                if let Some(after) = slot.current() {
                    let change = KeyChange::between(before.as_deref(), &after);
                    changes.push((slot.name().into(), change));
                }
                tracing::warn!(
                    issuer = slot.name(),
                    "the key file changed while the configuration is refused: {}",
                    slot.notice().as_deref().unwrap_or("its keys are in use")
                );
            }
        }
        changes
    }
}

/// Where the keys were to be asked for.
fn place(slot: &KeySlot) -> Box<str> {
    match slot.remote().map(|remote| &remote.location) {
        Some(KeyLocation::Url(url)) => url.clone(),
        Some(KeyLocation::Discovery { issuer, .. }) => issuer.clone(),
        None => "".into(),
    }
}

/// Whether the running fetch ended in time.
async fn until(mut ended: watch::Receiver<u64>) -> bool {
    let waited = tokio::time::timeout(WAIT, ended.changed()).await;
    waited.is_ok_and(|changed| changed.is_ok())
}

/// Ends a fetch that did not end by itself.
struct Running<'a> {
    store: &'a KeyStore,
    slot: &'a KeySlot,
    ended: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self
                .slot
                .finish(Err(KeyFetchFault::Abandoned), self.store.chance());
        }
    }
}
