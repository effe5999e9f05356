//! [`KeySlot`]: the keys of one issuer entry, which may outlive a configuration.

use super::fetching::{KeyChange, KeyFetchFault, NewKeys};
use super::lifecycle::{Budget, Lifecycle, Rhythm, Unknown};
use crate::identity::KeySource;
use crate::identity::issuer::{IssuerConfig, KeyOrigin, RemoteKeys};
use crate::identity::keys::{EntryNote, KeySet, Unusable};
use crate::pipeline::ports::Clock;
use arc_swap::ArcSwapOption;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long the keys of a file that became bad go on serving (LC-15).
pub const FILE_STALE: Duration = Duration::from_secs(3600);

/// The keys of one issuer entry.
pub struct KeySlot {
    /// The entry as it was when the slot was made.
    pub(super) config: Arc<IssuerConfig>,
    clock: Arc<dyn Clock>,
    /// Read by every request, without a lock.
    held: ArcSwapOption<Held>,
    state: Mutex<State>,
    /// Counts fetches that ended.
    ended: watch::Sender<u64>,
}

/// A set in use.
struct Held {
    set: Arc<KeySet>,
    unusable: Vec<EntryNote>,
    /// When it was asked for, or its file was last found good.
    since: Duration,
    /// Monotonic time at which it is too old; `None` for a file that is good.
    until: Option<Duration>,
}

struct State {
    lifecycle: Lifecycle,
    /// Why the last fetch or look brought nothing.
    trouble: Option<KeyFetchFault>,
}

impl KeySource for KeySlot {
    fn current(&self) -> Option<Arc<KeySet>> {
        let held = self.held.load();
        let held = held.as_ref()?;
        let serves = held
            .until
            .is_none_or(|until| self.clock.monotonic() < until);
        serves.then(|| Arc::clone(&held.set))
    }
}

impl KeySlot {
    /// `before` is a slot with the same source, whose keys go on under the times of this one.
    pub(super) fn new(
        config: &Arc<IssuerConfig>,
        clock: &Arc<dyn Clock>,
        before: Option<&KeySlot>,
    ) -> KeySlot {
        let now = clock.monotonic();
        let (rhythm, held) = match &config.keys {
            KeyOrigin::Remote(remote) => {
                let rhythm = Rhythm {
                    refresh: remote.refresh,
                    may_wait: remote.may_wait,
                    stale: remote.stale,
                };
                let before = before.and_then(|slot| slot.held.load_full());
                let held = before.map(|held| Held {
                    set: Arc::clone(&held.set),
                    unusable: held.unusable.clone(),
                    since: held.since,
                    until: Some(held.since + remote.stale),
                });
                (rhythm, held)
            }
            KeyOrigin::File(file) => {
                let rhythm = Rhythm {
                    refresh: FILE_STALE,
                    may_wait: false,
                    stale: FILE_STALE,
                };
                // What is wrong with the file was told when the configuration was checked.
                let set = KeySet::parse(&file.content, config.rsa_alg).ok();
                let held = set.map(|(set, unusable)| Held {
                    set: Arc::new(set),
                    unusable,
                    since: now,
                    until: None,
                });
                (rhythm, held)
            }
        };
        KeySlot {
            config: Arc::clone(config),
            clock: Arc::clone(clock),
            held: ArcSwapOption::from_pointee(held),
            state: Mutex::new(State {
                lifecycle: Lifecycle::new(rhythm, now),
                trouble: None,
            }),
            ended: watch::Sender::new(0),
        }
    }

    /// The issuer's configured name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Whether its keys come over the network.
    pub fn is_remote(&self) -> bool {
        self.remote().is_some()
    }

    /// The place on the network that its keys come from.
    pub(super) fn remote(&self) -> Option<&RemoteKeys> {
        self.config.keys.remote()
    }

    /// Whether it would hold the same keys for this entry. A file is read with its configuration.
    pub(super) fn serves(&self, config: &IssuerConfig) -> bool {
        self.remote().is_some()
            && self.config.name == config.name
            && self.config.issuer == config.issuer
            && self.config.rsa_alg == config.rsa_alg
            && self.config.keys == config.keys
            && self.config.shared_keys == config.shared_keys
    }

    /// Whether its keys would be this entry's as well, apart from when they are fetched and for how
    /// long they serve.
    pub(super) fn has_source_of(&self, config: &IssuerConfig) -> bool {
        let (Some(own), Some(other)) = (self.remote(), config.keys.remote()) else {
            return false;
        };
        self.config.name == config.name
            && self.config.issuer == config.issuer
            && self.config.rsa_alg == config.rsa_alg
            && own.same_source(other)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self) -> bool {
        self.state().lifecycle.begin(self.clock.monotonic())
    }

    pub(super) fn begin_due(&self) -> bool {
        self.remote().is_some() && self.state().lifecycle.begin_due(self.clock.monotonic())
    }

    pub(super) fn unknown(&self, kid: &str, budget: &mut Budget) -> Unknown {
        // Keys of a file change with the file, not because somebody asks.
        if self.remote().is_none() {
            return Unknown::TooSoon;
        }
        let now = self.clock.monotonic();
        self.state().lifecycle.unknown(kid, now, budget)
    }

    pub(super) fn missed(&self, kid: &str) {
        let found = self.current().is_some_and(|set| set.named(kid).is_some());
        if !found {
            self.state().lifecycle.missed(kid);
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.state().lifecycle.is_running()
    }

    /// Told each time a fetch ends.
    pub(super) fn ended(&self) -> watch::Receiver<u64> {
        self.ended.subscribe()
    }

    /// Takes in what a fetch brought, whole or not at all (LC-12, LC-14).
    pub(super) fn finish(
        &self,
        fetched: Result<(KeySet, Vec<EntryNote>, Option<Duration>), KeyFetchFault>,
        chance: u32,
    ) -> Result<NewKeys, KeyFetchFault> {
        let now = self.clock.monotonic();
        let mut state = self.state();
        let result = match fetched {
            Ok((set, unusable, max_age)) => {
                let until = state.lifecycle.succeeded(now, max_age, chance);
                let before = self.held.load();
                let changed = before.as_ref().is_none_or(|held| !held.set.same_as(&set));
                let earlier = before.as_ref().map(|held| &*held.set);
                let new = NewKeys {
                    changed,
                    change: KeyChange::between(earlier, &set),
                    usable: set.keys().len(),
                    unusable: unusable.clone(),
                    shared: Vec::new(),
                };
                self.held.store(Some(Arc::new(Held {
                    set: Arc::new(set),
                    unusable,
                    since: state.lifecycle.success().unwrap_or(now),
                    until: Some(until),
                })));
                state.trouble = None;
                Ok(new)
            }
            Err(fault) => {
                state.lifecycle.failed(now, chance);
                state.trouble = Some(fault.clone());
                Err(fault)
            }
        };
        drop(state);
        self.ended.send_modify(|ended| *ended += 1);
        result
    }

    /// What a look at the key file found while the configuration as a whole is not good: the same
    /// rules as for fetches (LC-15). Returns whether anything changed.
    pub(super) fn look(&self, content: Result<&[u8], KeyFetchFault>) -> bool {
        let now = self.clock.monotonic();
        let parsed = content.and_then(|bytes| {
            KeySet::parse(bytes, self.config.rsa_alg).map_err(KeyFetchFault::KeySet)
        });
        let mut state = self.state();
        let before = self.held.load_full();
        let next = match (parsed, before) {
            (Ok((set, unusable)), before) => {
                state.trouble = None;
                let same = before.as_ref().is_some_and(|b| b.set.same_as(&set));
                let changed = !same || before.is_some_and(|b| b.until.is_some());
                let (since, until) = (now, None);
                let set = Arc::new(set);
                changed.then_some(Held {
                    set,
                    unusable,
                    since,
                    until,
                })
            }
            (Err(fault), Some(before)) if before.until.is_none() => {
                state.trouble = Some(fault);
                Some(Held {
                    set: Arc::clone(&before.set),
                    unusable: before.unusable.clone(),
                    since: now,
                    until: Some(now + FILE_STALE),
                })
            }
            (Err(fault), Some(_) | None) => {
                state.trouble = Some(fault);
                None
            }
        };
        let changed = next.is_some();
        if let Some(next) = next {
            self.held.store(Some(Arc::new(next)));
        }
        changed
    }

    /// How old the set is, if there is one; `None` for a file that is good.
    pub fn age(&self) -> Option<Duration> {
        let held = self.held.load();
        let held = held.as_ref().filter(|held| held.until.is_some())?;
        Some(self.clock.monotonic().saturating_sub(held.since))
    }

    /// Whether it ever had a set.
    pub fn had_keys(&self) -> bool {
        self.held.load().is_some()
    }

    /// How many keys of the document are not used, by reason.
    pub fn unusable(&self) -> Vec<(Unusable, usize)> {
        let held = self.held.load();
        let notes = held.iter().flat_map(|held| &held.unusable);
        let mut counts: Vec<(Unusable, usize)> = Unusable::ALL.map(|why| (why, 0)).to_vec();
        for note in notes {
            for (why, count) in &mut counts {
                *count += usize::from(*why == note.why);
            }
        }
        counts
    }

    /// Seconds until a refused caller may find it better: the next attempt, at most a minute.
    pub fn retry_after(&self) -> u32 {
        let state = self.state();
        let wait = state.lifecycle.due().saturating_sub(self.clock.monotonic());
        u32::try_from(wait.as_secs()).unwrap_or(60).clamp(1, 60)
    }

    /// What an operator should know about the keys now, in words.
    pub fn notice(&self) -> Option<String> {
        let current = self.current();
        let trouble = self.state().trouble.clone();
        match (current, trouble) {
            (Some(set), _) if set.keys().is_empty() => {
                Some("no usable key: its tokens are refused".to_owned())
            }
            (Some(_), None) => None,
            (Some(_), Some(fault)) => {
                let age = self.age().unwrap_or_default().as_secs();
                Some(format!("keys that are {age} s old serve on: {fault}"))
            }
            (None, None) if self.had_keys() => Some("its keys are too old to be used".to_owned()),
            (None, None) => Some("its keys are not there yet".to_owned()),
            (None, Some(fault)) if self.had_keys() => {
                Some(format!("its keys are too old to be used: {fault}"))
            }
            (None, Some(fault)) => Some(format!("its keys are not there: {fault}")),
        }
    }
}
