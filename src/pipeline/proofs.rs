//! [`SeenProofs`]: which proofs of possession were used a moment ago (SC-4; RFC 9449 section 11.1).
//!
//! A proof is good for a minute, and once. What was seen is kept as long as it could be good again,
//! in bounded room: nothing is forgotten early to make room for another, so where there is none a
//! proof is refused. Each process remembers for itself.

use super::ports::Random;
use crate::identity::dpop::{AHEAD, PAST, Proof};
use aws_lc_rs::digest::{Context, SHA256};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

/// Locks; a power of two.
const SHARDS: usize = 64;
/// Most proofs of one shard: what a table of 16,384 places holds before it grows. In all 917,504,
/// which is 14,000 proofs a second without an end, in 27 MB.
const SHARD_PROOFS: usize = 14_336;

/// Whether a proof may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It may, and is now used up.
    New,
    /// It was used before.
    Before,
    /// Nobody can tell soon: there is no room to remember it.
    Full,
}

/// Names a proof: a salted hash over issuer entry, key and `jti`. Two proofs that share one are
/// one proof to us, so a clash refuses and never admits.
type Name = [u8; 16];

#[derive(Default)]
struct Shard {
    /// Until which second of the wall clock a proof is good.
    proofs: HashMap<Name, i64, BuildHasherDefault<Hashed>>,
    /// The second in which it was last looked through for what is over.
    swept: i64,
}

/// Proofs that were used.
pub struct SeenProofs {
    salt: [u8; 32],
    shards: Box<[Mutex<Shard>]>,
    room: usize,
}

impl SeenProofs {
    /// None yet, with room for as many as the bound says.
    pub fn new(random: &dyn Random) -> SeenProofs {
        SeenProofs::with_room(random, SHARDS, SHARD_PROOFS)
    }

    /// None yet, with room for `proofs` in each of `shards`.
    pub fn with_room(random: &dyn Random, shards: usize, proofs: usize) -> SeenProofs {
        let mut salt = [0; 32];
        random.fill(&mut salt);
        SeenProofs {
            salt,
            shards: (0..shards.max(1)).map(|_| Mutex::default()).collect(),
            room: proofs,
        }
    }

    /// Uses a proof up, atomically: of two requests with one proof exactly one gets
    /// [`Seen::New`]. `issuer` is the entry's name, `key` the thumbprint of the proof's key, `now`
    /// in seconds since the epoch.
    pub fn take(&self, issuer: &str, key: &[u8; 32], proof: &Proof, now: i64) -> Seen {
        let name = self.name(issuer, key, &proof.id);
        let shard = usize::from(name[15]) % self.shards.len();
        let mut shard = self.shards[shard]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // No room is a question only for what is not there yet.
        if shard.proofs.len() >= self.room && !shard.proofs.contains_key(&name) {
            // Once a second: looking through a table that stays full costs more than a proof.
            if shard.swept != now {
                shard.swept = now;
                // A clock that was set back must not make a proof good again at once.
                shard
                    .proofs
                    .retain(|_, until| now <= until.saturating_add(AHEAD));
            }
            if shard.proofs.len() >= self.room {
                return Seen::Full;
            }
        }
        match shard.proofs.entry(name) {
            Entry::Occupied(_) => Seen::Before,
            Entry::Vacant(place) => {
                // Never longer than a proof can be good, whatever it says.
                place.insert(proof.until.min(now.saturating_add(PAST + AHEAD)));
                Seen::New
            }
        }
    }

    /// How many are kept, those that are over too.
    pub fn len(&self) -> usize {
        let lock = |shard: &Mutex<Shard>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.proofs.len()
        };
        self.shards.iter().map(lock).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn name(&self, issuer: &str, key: &[u8; 32], id: &str) -> Name {
        let mut hash = Context::new(&SHA256);
        hash.update(&self.salt);
        hash.update(issuer.as_bytes());
        // Names are plain, so this ends one.
        hash.update(&[0]);
        hash.update(key);
        hash.update(id.as_bytes());
        let mut name = [0; 16];
        for (to, from) in name.iter_mut().zip(hash.finish().as_ref()) {
            *to = *from;
        }
        name
    }
}

/// A salted hash is its own.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().take(8) {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }
    fn write_usize(&mut self, _: usize) {}
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Zeros;

    impl Random for Zeros {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(0);
        }
    }

    fn proof(id: &str, until: i64) -> Proof {
        Proof {
            id: id.into(),
            until,
        }
    }

    #[test]
    fn a_proof_is_new_once_for_its_issuer_and_key() {
        let seen = SeenProofs::new(&Zeros);
        let (one, other) = ([1; 32], [2; 32]);
        let take = |issuer, key, id| seen.take(issuer, key, &proof(id, 1060), 1000);
        assert_eq!(take("a", &one, "x"), Seen::New);
        assert_eq!(take("a", &one, "x"), Seen::Before);
        assert_eq!(take("b", &one, "x"), Seen::New);
        assert_eq!(take("a", &other, "x"), Seen::New);
        assert_eq!(take("a", &one, "y"), Seen::New);
        assert_eq!(seen.len(), 4);
    }

    #[test]
    fn a_full_store_refuses_until_proofs_are_over() {
        let seen = SeenProofs::with_room(&Zeros, 1, 3);
        let key = [1; 32];
        let take = |id: &str, now| seen.take("a", &key, &proof(id, now + 60), now);
        for id in ["x", "y", "z"] {
            assert_eq!(take(id, 1000), Seen::New);
        }
        assert_eq!(take("v", 1000), Seen::Full);
        // What is known is told all the same, and nothing is forgotten early.
        assert_eq!(take("x", 1030), Seen::Before);
        assert_eq!(take("v", 1065), Seen::Full);
        assert_eq!(take("x", 1065), Seen::Before);
        assert_eq!(take("v", 1066), Seen::New);
        assert_eq!(seen.len(), 1);
    }

    #[test]
    fn of_many_at_once_one_is_new() {
        let seen = SeenProofs::new(&Zeros);
        let key = [1; 32];
        let new: usize = std::thread::scope(|scope| {
            let taking: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        (0..500)
                            .filter(|id| {
                                let proof = proof(&id.to_string(), 1060);
                                seen.take("a", &key, &proof, 1000) == Seen::New
                            })
                            .count()
                    })
                })
                .collect();
            taking.into_iter().filter_map(|t| t.join().ok()).sum()
        });
        assert_eq!((new, seen.len()), (500, 500));
    }

    #[test]
    fn its_bound_is_what_it_says() {
        assert!(SHARDS.is_power_of_two());
        assert_eq!(SHARD_PROOFS, 16_384 / 8 * 7);
        // Name, second and one byte of the table for each place.
        let bytes = SHARDS * 16_384 * (size_of::<(Name, i64)>() + 1);
        assert!(bytes < 27_000_000, "{bytes}");
    }
}
