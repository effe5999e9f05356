//! [`MemoryStore`]: who owns what, in this process; a restart forgets it all.

use crate::pipeline::ports::{Claimed, Clock, IdKind, Owned, Owner, OwnershipStore, StoreError};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Most ids that are kept by default; about 300 bytes each.
pub const MAX_ENTRIES: usize = 1_000_000;
/// Tasks of one owner that are looked at when they are counted.
const COUNTED: usize = 4096;
/// Parts with a lock of their own. A power of two.
const SHARDS: usize = 64;
/// How often at most a full store looks through one shard for expired ids.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Bindings in memory, bounded in number and time.
///
/// An operation takes one lock, for a few hash lookups; looking allocates nothing. Time is
/// monotonic, so that a clock that is set forward frees nobody's ids. Expired ids are unknown at
/// once, but their memory is taken back only when room is needed.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    ttl: Duration,
    max: usize,
    /// Entries in all shards, expired ones too.
    count: AtomicUsize,
    /// The shard that is looked through next when the store is full.
    next_sweep: AtomicUsize,
    /// Keyed, as callers choose ids.
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
    /// The tasks of each owner. Its locks are taken while a shard's is held, never before.
    owners: Box<[Mutex<Owners>]>,
}

/// By owner and agent: ids of tasks, expired ones too.
type Owners = HashMap<Owner, HashMap<Box<str>, HashSet<Arc<str>>>>;

#[derive(Default)]
struct Shard {
    agents: HashMap<Box<str>, Ids>,
    swept_at: Option<Duration>,
}

#[derive(Default)]
struct Ids {
    tasks: HashMap<Arc<str>, Entry>,
    contexts: HashMap<Arc<str>, Entry>,
}

struct Entry {
    owned: Owned,
    /// Monotonic; from then on the id is nobody's.
    expires: Duration,
    /// Claims that have not been released.
    claims: u32,
    bound: bool,
}

impl Ids {
    fn of(&self, kind: IdKind) -> &HashMap<Arc<str>, Entry> {
        match kind {
            IdKind::Task => &self.tasks,
            IdKind::Context => &self.contexts,
        }
    }

    fn of_mut(&mut self, kind: IdKind) -> &mut HashMap<Arc<str>, Entry> {
        match kind {
            IdKind::Task => &mut self.tasks,
            IdKind::Context => &mut self.contexts,
        }
    }
}

impl Shard {
    fn get_mut(&mut self, agent: &str, kind: IdKind, id: &str) -> Option<&mut Entry> {
        self.agents.get_mut(agent)?.of_mut(kind).get_mut(id)
    }

    /// Forgets what has expired; gives each task to `forgotten`, with its agent and owner.
    fn forget_expired(
        &mut self,
        now: Duration,
        mut forgotten: impl FnMut(&str, &Owner, &str),
    ) -> usize {
        let mut gone = 0;
        for (agent, ids) in &mut self.agents {
            let before = ids.tasks.len() + ids.contexts.len();
            ids.tasks.retain(|id, entry| {
                let stays = now < entry.expires;
                if !stays {
                    forgotten(agent, &entry.owned.owner, id);
                }
                stays
            });
            ids.contexts.retain(|_, entry| now < entry.expires);
            gone += before - ids.tasks.len() - ids.contexts.len();
        }
        gone
    }

    fn insert(&mut self, agent: &str, kind: IdKind, id: Arc<str>, entry: Entry) {
        if !self.agents.contains_key(agent) {
            self.agents.insert(agent.into(), Ids::default());
        }
        if let Some(ids) = self.agents.get_mut(agent) {
            ids.of_mut(kind).insert(id, entry);
        }
    }
}

impl MemoryStore {
    /// An empty store for at most `max` ids, each kept until `ttl` after its last use.
    pub fn new(clock: Arc<dyn Clock>, ttl: Duration, max: usize) -> MemoryStore {
        MemoryStore {
            clock,
            ttl,
            max,
            count: AtomicUsize::new(0),
            next_sweep: AtomicUsize::new(0),
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            owners: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    fn shard(
        &self,
        agent: &str,
        kind: IdKind,
        id: &str,
    ) -> Result<MutexGuard<'_, Shard>, StoreError> {
        let hash = self.hasher.hash_one((agent, kind, id));
        let index = usize::try_from(hash % SHARDS as u64).unwrap_or_default();
        self.lock(index)
    }

    /// A lock that a panic has poisoned protects what cannot be trusted: the store fails closed.
    fn lock(&self, index: usize) -> Result<MutexGuard<'_, Shard>, StoreError> {
        let shard = self.shards.get(index).ok_or(StoreError)?;
        shard.lock().map_err(|_| StoreError)
    }

    fn owners(&self, owner: &Owner) -> Result<MutexGuard<'_, Owners>, StoreError> {
        let hash = self.hasher.hash_one(owner);
        let index = usize::try_from(hash % SHARDS as u64).unwrap_or_default();
        let owners = self.owners.get(index).ok_or(StoreError)?;
        owners.lock().map_err(|_| StoreError)
    }

    /// Notes a task as its owner's.
    fn own(
        &self,
        agent: &str,
        kind: IdKind,
        id: &Arc<str>,
        owner: &Owner,
    ) -> Result<(), StoreError> {
        if kind == IdKind::Task {
            let mut owners = self.owners(owner)?;
            let agents = owners.entry(owner.clone()).or_default();
            if !agents.contains_key(agent) {
                agents.insert(agent.into(), HashSet::new());
            }
            if let Some(tasks) = agents.get_mut(agent) {
                tasks.insert(id.clone());
            }
        }
        Ok(())
    }

    /// Notes a task as its owner's no more.
    fn disown(&self, agent: &str, id: &str, owner: &Owner) -> Result<(), StoreError> {
        let mut owners = self.owners(owner)?;
        let Some(agents) = owners.get_mut(owner) else {
            return Ok(());
        };
        if let Some(tasks) = agents.get_mut(agent) {
            tasks.remove(id);
            if tasks.is_empty() {
                agents.remove(agent);
            }
        }
        if agents.is_empty() {
            owners.remove(owner);
        }
        Ok(())
    }

    /// Takes the room of one more entry.
    fn reserve(&self) -> Result<(), StoreError> {
        let more = |count: usize| (count < self.max).then_some(count + 1);
        let taken = self
            .count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(drop).map_err(|_| StoreError)
    }

    /// Takes back the memory of expired ids, until there is some room. A shard is looked through
    /// no oftener than [`SWEEP_EVERY`], so that a full store does not get slow as well.
    fn sweep(&self, now: Duration) -> Result<(), StoreError> {
        for _ in 0..SHARDS {
            let index = self.next_sweep.fetch_add(1, Ordering::Relaxed) % SHARDS;
            let mut shard = self.lock(index)?;
            if shard.swept_at.is_some_and(|at| now < at + SWEEP_EVERY) {
                continue;
            }
            shard.swept_at = Some(now);
            let mut disowned = Ok(());
            let gone = shard.forget_expired(now, |agent, owner, id| {
                disowned = disowned.and(self.disown(agent, id, owner));
            });
            disowned?;
            if gone > 0 {
                self.count.fetch_sub(gone, Ordering::Relaxed);
                break;
            }
        }
        Ok(())
    }

    /// Applies `change` to an id's live entry, or stores what `new` makes.
    fn change(
        &self,
        agent: &str,
        kind: IdKind,
        id: &str,
        change: impl Fn(&mut Entry) -> Claimed,
        new: impl Fn() -> Entry,
    ) -> Result<Claimed, StoreError> {
        let now = self.clock.monotonic();
        let expires = now + self.ttl;
        for swept in [false, true] {
            let mut shard = self.shard(agent, kind, id)?;
            if let Some(entry) = shard.get_mut(agent, kind, id) {
                if now >= entry.expires {
                    let before = std::mem::replace(entry, Entry { expires, ..new() });
                    let owner = entry.owned.owner.clone();
                    if kind == IdKind::Task {
                        self.disown(agent, id, &before.owned.owner)?;
                    }
                    self.own(agent, kind, &id.into(), &owner)?;
                    return Ok(Claimed::New);
                }
                let claimed = change(entry);
                if claimed != Claimed::Foreign {
                    entry.expires = expires;
                }
                return Ok(claimed);
            }
            if self.reserve().is_ok() {
                let entry = Entry { expires, ..new() };
                let id: Arc<str> = id.into();
                self.own(agent, kind, &id, &entry.owned.owner)?;
                shard.insert(agent, kind, id, entry);
                return Ok(Claimed::New);
            }
            drop(shard);
            if !swept {
                self.sweep(now)?;
            }
        }
        Err(StoreError)
    }
}

#[async_trait::async_trait]
impl OwnershipStore for MemoryStore {
    async fn owned(
        &self,
        agent: &str,
        kind: IdKind,
        id: &str,
    ) -> Result<Option<Owned>, StoreError> {
        let now = self.clock.monotonic();
        let shard = self.shard(agent, kind, id)?;
        let entry = shard.agents.get(agent).and_then(|i| i.of(kind).get(id));
        Ok(entry
            .filter(|entry| now < entry.expires)
            .map(|entry| entry.owned.clone()))
    }

    async fn claim(
        &self,
        agent: &str,
        kind: IdKind,
        id: &str,
        owner: &Owner,
    ) -> Result<Claimed, StoreError> {
        self.change(
            agent,
            kind,
            id,
            |entry| {
                if entry.owned.owner != *owner {
                    Claimed::Foreign
                } else if entry.bound {
                    Claimed::Already
                } else {
                    entry.claims = entry.claims.saturating_add(1);
                    Claimed::New
                }
            },
            || Entry {
                owned: Owned {
                    owner: owner.clone(),
                    skill: None,
                    context: None,
                },
                expires: Duration::ZERO,
                claims: 1,
                bound: false,
            },
        )
    }

    async fn release(
        &self,
        agent: &str,
        kind: IdKind,
        id: &str,
        owner: &Owner,
    ) -> Result<(), StoreError> {
        let mut shard = self.shard(agent, kind, id)?;
        let Some(entry) = shard.get_mut(agent, kind, id) else {
            return Ok(());
        };
        if entry.bound || entry.owned.owner != *owner {
            return Ok(());
        }
        entry.claims = entry.claims.saturating_sub(1);
        if entry.claims == 0
            && let Some(ids) = shard.agents.get_mut(agent)
            && ids.of_mut(kind).remove(id).is_some()
        {
            self.count.fetch_sub(1, Ordering::Relaxed);
            if kind == IdKind::Task {
                self.disown(agent, id, owner)?;
            }
        }
        Ok(())
    }

    async fn bind(
        &self,
        agent: &str,
        kind: IdKind,
        id: &str,
        owned: &Owned,
    ) -> Result<Claimed, StoreError> {
        self.change(
            agent,
            kind,
            id,
            |entry| {
                if entry.owned.owner != owned.owner {
                    return Claimed::Foreign;
                }
                let known = &mut entry.owned;
                known.skill = known.skill.take().or_else(|| owned.skill.clone());
                known.context = known.context.take().or_else(|| owned.context.clone());
                if std::mem::replace(&mut entry.bound, true) {
                    Claimed::Already
                } else {
                    Claimed::New
                }
            },
            || Entry {
                owned: owned.clone(),
                expires: Duration::ZERO,
                claims: 0,
                bound: true,
            },
        )
    }

    async fn count_tasks(
        &self,
        agent: &str,
        owner: &Owner,
        context: Option<&str>,
    ) -> Result<u64, StoreError> {
        // Copied, as a shard's lock comes before an owner's.
        let (ids, all): (Vec<Arc<str>>, usize) = {
            let owners = self.owners(owner)?;
            let tasks = owners.get(owner).and_then(|agents| agents.get(agent));
            let Some(tasks) = tasks else { return Ok(0) };
            (tasks.iter().take(COUNTED).cloned().collect(), tasks.len())
        };
        let now = self.clock.monotonic();
        let mut count = all - ids.len();
        for id in &ids {
            let shard = self.shard(agent, IdKind::Task, id)?;
            let entry = shard.agents.get(agent).and_then(|ids| ids.tasks.get(id));
            count += usize::from(entry.is_some_and(|entry| {
                now < entry.expires
                    && entry.owned.owner == *owner
                    && context.is_none_or(|c| entry.owned.context.as_deref() == Some(c))
            }));
        }
        Ok(count as u64)
    }

    fn trouble(&self) -> Option<StoreError> {
        if self.count.load(Ordering::Relaxed) < self.max {
            return None;
        }
        // Nothing else would look for expired ids while every new task is refused.
        if self.sweep(self.clock.monotonic()).is_err() {
            return Some(StoreError);
        }
        (self.count.load(Ordering::Relaxed) >= self.max).then_some(StoreError)
    }
}
