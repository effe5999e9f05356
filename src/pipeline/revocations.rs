//! [`Revocations`]: the denylist in force, from the configured files and from operators.
//!
//! It belongs to the gate and not to a generation: a request that began under an old configuration
//! is judged by what is revoked now. Readers take no lock; writers rebuild the index whole.

pub mod form;

use super::ports::UnixMillis;
use crate::config::snapshot::Snapshot;
use crate::identity::issuer::IssuerConfig;
use crate::identity::{Denial, Denied, Denylist, Finding, Principal, TokenFault};
use arc_swap::ArcSwap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most entries that operators may have added at one time: the list never forgets one to make
/// room, and each change writes all of them.
pub const MAX_ADDED: usize = 50_000;

/// An entry that an operator added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// The entry.
    pub denial: Denial,
    /// The `iss` value of its issuer entry when it was added: an entry that is renamed in the
    /// configuration must not un-revoke anything.
    pub iss: Option<Box<str>>,
    /// When, in seconds since the epoch.
    pub added: i64,
    /// Why, in the operator's words.
    pub note: Option<Box<str>>,
}

impl Added {
    /// Whether it still has an effect at this second since the epoch.
    pub fn holds(&self, now: i64) -> bool {
        self.denial.until.is_none_or(|until| now < until)
    }
}

/// What is revoked.
pub struct Revocations {
    parts: Mutex<Parts>,
    index: ArcSwap<Denylist>,
}

struct Parts {
    /// From the configured files.
    listed: Arc<[Denial]>,
    added: Arc<[Added]>,
    issuers: Vec<Arc<IssuerConfig>>,
}

impl Revocations {
    /// The list of a first generation, with what operators had added before.
    pub fn new(snapshot: &Snapshot, added: Vec<Added>) -> Revocations {
        let parts = Parts {
            listed: Arc::clone(&snapshot.revocation.listed),
            added: added.into(),
            issuers: snapshot.issuers.clone(),
        };
        let index = ArcSwap::from_pointee(parts.index());
        let parts = Mutex::new(parts);
        Revocations { parts, index }
    }

    /// Goes over to the files and issuers of a new generation.
    pub fn follow(&self, snapshot: &Snapshot) {
        let mut parts = self.lock();
        parts.listed = Arc::clone(&snapshot.revocation.listed);
        parts.issuers = snapshot.issuers.clone();
        self.index.store(Arc::new(parts.index()));
    }

    /// Puts other entries in the place of those that operators had added. In force when this
    /// returns, for every request that is judged from then on.
    pub fn replace(&self, added: Vec<Added>) {
        let mut parts = self.lock();
        parts.added = added.into();
        self.index.store(Arc::new(parts.index()));
    }

    /// What operators have added, what has ended too.
    pub fn added(&self) -> Arc<[Added]> {
        Arc::clone(&self.lock().added)
    }

    /// What the configured files say.
    pub fn listed(&self) -> Arc<[Denial]> {
        Arc::clone(&self.lock().listed)
    }

    /// How many entries of each kind are in force at this second since the epoch.
    pub fn counts(&self, now: i64) -> [(&'static str, usize); Denied::KINDS.len()] {
        let (added, listed) = (self.added(), self.listed());
        let all = || added.iter().map(|added| &added.denial).chain(&*listed);
        Denied::KINDS.map(|kind| {
            let of_kind = |denial: &&Denial| {
                denial.denied.kind() == kind && denial.until.is_none_or(|until| now < until)
            };
            (kind, all().filter(of_kind).count())
        })
    }

    /// Judges a verified caller (RV-1, RV-2, CA-2); `now` is in seconds since the epoch.
    ///
    /// # Errors
    /// The kind of entry that revokes its token.
    pub fn judge(&self, principal: &Principal, now: i64) -> Result<(), TokenFault> {
        self.index.load().judge(principal, now)
    }

    /// The same in words for an operator; `None` when nothing revokes the token.
    pub fn explain(&self, principal: &Principal, now: i64) -> Option<Finding> {
        self.index.load().explain(principal, now)
    }

    fn lock(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parts {
    fn index(&self) -> Denylist {
        let added: Vec<Denial> = self.added.iter().map(|a| self.resolved(a)).collect();
        Denylist::new(self.listed.iter().chain(&added))
    }

    /// The entry under the present name of its issuer.
    fn resolved(&self, added: &Added) -> Denial {
        let mut denial = added.denial.clone();
        let now_named = self.issuers.iter().find(|issuer| {
            let iss = added.iss.as_deref();
            iss.is_some_and(|iss| *iss == *issuer.issuer)
        });
        if let Some(present) = now_named {
            match &mut denial.denied {
                Denied::Token { issuer, .. }
                | Denied::Subject { issuer, .. }
                | Denied::Client { issuer, .. }
                | Denied::Session { issuer, .. } => issuer.clone_from(&present.name),
                Denied::Key(_) | Denied::SigningInput(_) => {}
            }
        }
        denial
    }
}

/// When the last token that an entry of this issuer could name has ended, in seconds since the
/// epoch: one that is issued now by a clock that is ahead, with the longest lifetime (CL-6), used
/// at the last moment that leeway gives.
pub fn last_token(issuer: &IssuerConfig, from: i64) -> i64 {
    let seconds = issuer.max_lifetime.saturating_add(2 * issuer.leeway);
    from.saturating_add(i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// Seconds since the epoch.
pub fn seconds(now: UnixMillis) -> i64 {
    i64::try_from(now / 1000).unwrap_or(i64::MAX)
}
