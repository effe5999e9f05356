//! [`TokenCache`]: tokens that were verified a moment ago (CA-1 to CA-3).
//!
//! It remembers who, never may (CA-2): what changes with time is judged again at every hit. Only
//! successes are kept, so a flood of bad tokens takes no room (CA-5).

use super::authenticate::Verified;
use aws_lc_rs::digest;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Locks; a power of two.
const SHARDS: usize = 16;
/// Most entries of one shard; 10,000 in all.
const SHARD_ENTRIES: usize = 625;
/// Longest stay of an entry.
const STAY: Duration = Duration::from_secs(300);

/// SHA-256 over the exact bytes of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenKey([u8; 32]);

impl TokenKey {
    /// The key of a token.
    pub fn of(token: &str) -> TokenKey {
        let mut key = [0; 32];
        let digest = digest::digest(&digest::SHA256, token.as_bytes());
        for (to, from) in key.iter_mut().zip(digest.as_ref()) {
            *to = *from;
        }
        TokenKey(key)
    }
}

impl std::hash::Hash for TokenKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        state.write_u64(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
    }
}

/// A digest is its own hash.
#[derive(Default)]
struct Digested(u64);

impl Hasher for Digested {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

struct Entry {
    verified: Arc<Verified>,
    /// Monotonic time at which it is forgotten.
    until: Duration,
}

type Shard = HashMap<TokenKey, Entry, BuildHasherDefault<Digested>>;

/// Verified tokens of one generation.
pub struct TokenCache {
    shards: [Mutex<Shard>; SHARDS],
}

impl Default for TokenCache {
    fn default() -> TokenCache {
        TokenCache::new()
    }
}

impl TokenCache {
    /// An empty cache.
    pub fn new() -> TokenCache {
        TokenCache {
            shards: std::array::from_fn(|_| Mutex::new(Shard::default())),
        }
    }

    /// What a token was verified to be; `now` is monotonic. The times in it must be judged again.
    pub fn get(&self, key: &TokenKey, now: Duration) -> Option<Arc<Verified>> {
        let shard = self
            .shard(key)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let entry = shard.get(key)?;
        (now < entry.until).then(|| Arc::clone(&entry.verified))
    }

    /// Remembers a success. A full shard gives up what is stale, or else what is oldest.
    pub fn insert(&self, key: TokenKey, verified: Arc<Verified>, now: Duration) {
        let mut shard = self
            .shard(&key)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if shard.len() >= SHARD_ENTRIES && !shard.contains_key(&key) {
            shard.retain(|_, entry| now < entry.until);
            if shard.len() >= SHARD_ENTRIES
                && let Some(oldest) = shard.iter().min_by_key(|(_, e)| e.until).map(|(k, _)| *k)
            {
                shard.remove(&oldest);
            }
        }
        let until = now.saturating_add(STAY);
        shard.insert(key, Entry { verified, until });
    }

    /// Forgets a token that is not good any more.
    pub fn remove(&self, key: &TokenKey) {
        self.shard(key)
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
    }

    /// How many there are, stale ones too.
    pub fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|s| s.lock().unwrap_or_else(PoisonError::into_inner).len())
            .sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, key: &TokenKey) -> &Mutex<Shard> {
        // The last byte: the table itself uses the first ones.
        &self.shards[usize::from(key.0[31]) % SHARDS]
    }
}
