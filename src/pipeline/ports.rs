//! What the pipeline needs from outside: time, randomness, the journal, and who owns what.
//!
//! Adapters implement these; [`crate::cli`] hands them in. Tests have their own.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// What "recorded" means to a [`Journal`]; adapters know it from here.
pub use crate::config::snapshot::{CheckpointCopies, Durability};

pub use super::metrics::JournalMetrics;

/// Milliseconds since the Unix epoch.
pub type UnixMillis = u64;

/// The one source of time.
pub trait Clock: Send + Sync {
    /// Wall clock, for records and token times.
    fn now(&self) -> UnixMillis;
    /// Monotonic time since an arbitrary start, for durations.
    fn monotonic(&self) -> Duration;
}

/// The one source of randomness.
pub trait Random: Send + Sync {
    /// Fills `bytes` from a cryptographic generator.
    fn fill(&self, bytes: &mut [u8]);
}

/// A host name that has no address that we know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unresolved;

/// Looks up the addresses of host names.
#[async_trait::async_trait]
pub trait Resolver: Send + Sync {
    /// Every address of `host`, at least one, within a bounded time.
    ///
    /// # Errors
    /// The name has none, has more than can be looked at, or could not be looked up in time.
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, Unresolved>;
}

/// Proof that a record is in the journal, as durable as configured. Only a [`Receipt`] yields one.
#[derive(Debug)]
pub struct Recorded {
    sequence: u64,
}

impl Recorded {
    /// The record's sequence number.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// Why a record could not be written. Every kind refuses the call (invariant I-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalError {
    /// The device is full.
    Full,
    /// The device did not answer within the bound.
    TimedOut,
    /// Any other failure: permission, I/O error, closed writer.
    Failed,
}

impl JournalError {
    /// For records and metrics.
    pub fn code(self) -> &'static str {
        match self {
            JournalError::Full => "journal_full",
            JournalError::TimedOut => "journal_timed_out",
            JournalError::Failed => "journal_failed",
        }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JournalError::Full => "the journal's device is full",
            JournalError::TimedOut => "the journal's device did not answer in time",
            JournalError::Failed => "the journal cannot be written",
        })
    }
}

/// A promise of [`Recorded`].
pub struct Receipt {
    answer: oneshot::Receiver<Result<u64, JournalError>>,
}

impl Receipt {
    /// A receipt and the sender that the journal answers it with (the sequence number).
    pub fn pair() -> (oneshot::Sender<Result<u64, JournalError>>, Receipt) {
        let (sender, answer) = oneshot::channel();
        (sender, Receipt { answer })
    }

    /// Waits until the record is as durable as configured.
    pub async fn wait(self) -> Result<Recorded, JournalError> {
        match self.answer.await {
            Ok(Ok(sequence)) => Ok(Recorded { sequence }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(JournalError::Failed),
        }
    }
}

/// One serialised record without the members that the writer adds (`v`, `seq`, `prev`): a JSON
/// object's members, from its first member to before its closing brace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordBody(pub Vec<u8>);

/// The append-only record of what happened (`design.md` section 9).
pub trait Journal: Send + Sync {
    /// Queues a record; the receipt resolves when it is as durable as configured, or cannot be.
    fn append(&self, record: RecordBody) -> Receipt;
    /// Queues a record that nobody waits for (outcomes, notes). It is kept in order with the
    /// others and is retried while the device recovers.
    fn queue(&self, record: RecordBody);
    /// `None` when records can be written; otherwise why not, for readiness.
    fn trouble(&self) -> Option<JournalError>;
    /// Whether so little room is left that it is kept for callers: what strangers cause is then
    /// only counted. A journal without a bound is never crowded.
    fn crowded(&self) -> bool {
        false
    }
    /// What it counts about itself, up to date; `None` for a journal that counts nothing.
    fn metrics(&self) -> Option<&JournalMetrics> {
        None
    }
    /// Why the last checkpoint was not copied to where it should be, for readiness.
    fn copies_trouble(&self) -> Option<String> {
        None
    }
    /// Keeps the text of a configuration beside the records that name its digest, durably; blocks
    /// for as long as the device takes. A journal in memory keeps none.
    ///
    /// # Errors
    /// It is not kept; records can still be written.
    fn keep_text(&self, _text: &[u8]) -> Result<(), JournalError> {
        Ok(())
    }
    /// How many intents it closed as `unknown` when it was opened, by the agent's name then.
    fn found_unknown(&self) -> Vec<(Box<str>, u64)> {
        Vec::new()
    }
}

/// Whom a task or context belongs to: issuer entry and subject (`design.md` section 2).
///
/// Owners are compared and nothing else: there is no owner that stands for everybody.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(pub Arc<str>);

impl Owner {
    /// The owner key of a subject of a configured issuer. Names of issuers have no `/`, so two
    /// different pairs never make one key.
    pub fn new(issuer: &str, subject: &str) -> Owner {
        Owner(format!("{issuer}/{subject}").into())
    }
}

/// Which kind of id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdKind {
    /// A task.
    Task,
    /// A context.
    Context,
}

/// What the store knows of an id. Cloning allocates nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// Whose it is.
    pub owner: Owner,
    /// The skill that its task was started with, if one was established.
    pub skill: Option<Arc<str>>,
    /// For a task: its context.
    pub context: Option<Arc<str>>,
}

/// The outcome of claiming or binding an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// It is the owner's now. From [`OwnershipStore::claim`]: not for certain yet, and to be
    /// released if nothing reached the agent.
    New,
    /// It was bound to the owner already.
    Already,
    /// It is somebody else's; nothing was changed.
    Foreign,
}

/// The ownership store did not answer, or has no room. Calls that name ids are refused (I-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreError;

/// Who owns which task and context. Ids of different agents are different ids.
///
/// An id belongs to at most one owner, and is given up in two ways only: its last claim is
/// released before it was bound, or it was neither claimed nor bound for the configured `ttl`.
/// A store that has no room refuses new ids; it never forgets one to make room.
#[async_trait::async_trait]
pub trait OwnershipStore: Send + Sync {
    /// Who owns an id of an agent; `None` when nobody does. Looking prolongs nothing.
    async fn owned(&self, agent: &str, kind: IdKind, id: &str)
    -> Result<Option<Owned>, StoreError>;
    /// Makes an id the owner's unless it is somebody's, atomically, on the caller's word alone.
    ///
    /// Claims are counted: of two calls that claim one id, one may release it while the other
    /// has reached the agent, and the id must not become free.
    async fn claim(
        &self,
        agent: &str,
        kind: IdKind,
        id: &str,
        owner: &Owner,
    ) -> Result<Claimed, StoreError>;
    /// Gives up one claim that was [`Claimed::New`]; with the last one the id is nobody's again,
    /// unless it has been bound since.
    async fn release(
        &self,
        agent: &str,
        kind: IdKind,
        id: &str,
        owner: &Owner,
    ) -> Result<(), StoreError>;
    /// Makes an id the owner's for certain, since the agent named it in a reply to the owner.
    ///
    /// The skill and context that were bound first stay; one that was not known is added.
    async fn bind(
        &self,
        agent: &str,
        kind: IdKind,
        id: &str,
        owned: &Owned,
    ) -> Result<Claimed, StoreError>;
    /// How many tasks of an agent are the owner's, all of them or those of a context. Beyond a few
    /// thousand of them the number may still have some in it that have expired, or that are of
    /// other contexts of the owner's.
    async fn count_tasks(
        &self,
        agent: &str,
        owner: &Owner,
        context: Option<&str>,
    ) -> Result<u64, StoreError>;
    /// `None` when new ids can be bound. Otherwise a call that could start a task is refused
    /// before it reaches the agent, as its task could not be given to anybody.
    fn trouble(&self) -> Option<StoreError>;
}
