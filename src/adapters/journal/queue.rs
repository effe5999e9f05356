//! What waits for the journal's thread, and when it is woken.

use super::writer::Entry;
use crate::pipeline::ports::JournalError;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// How long a record may be under way before readiness says so.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// How long records that nobody waits for may lie until an awaited one takes them along: waking the
/// thread for each of them would cost as much as writing them.
pub(super) const LINGER: Duration = Duration::from_millis(10);
/// Most records, and bytes of them, that queue up behind a device that does not answer.
pub(super) const QUEUE_RECORDS: usize = 50_000;
pub(super) const QUEUE_BYTES: usize = 128 << 20;

/// What callers and the thread have in common.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) queue: Mutex<Queue>,
    pub(super) filled: Condvar,
}

#[derive(Default)]
pub(super) struct Queue {
    pub(super) entries: Vec<Entry>,
    pub(super) bytes: usize,
    /// When the first of `entries` came.
    pub(super) since: Option<Instant>,
    /// When the first record of the batch that is being written came.
    pub(super) writing_since: Option<Instant>,
    /// Unawaited records that found the queue full.
    pub(super) lost: u64,
    pub(super) trouble: Option<JournalError>,
    /// What is left is kept for callers.
    pub(super) crowded: bool,
    /// Somebody waits for one of `entries`.
    pub(super) awaited: bool,
    /// What the thread wants to be woken for.
    pub(super) wake: Wake,
    /// Nothing more is accepted.
    pub(super) closed: bool,
}

/// What a sleeping thread is woken for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Wake {
    /// It does not sleep.
    #[default]
    Never,
    /// A record that somebody waits for; it looks for others soon by itself.
    Awaited,
    /// Any record.
    Any,
}

impl Queue {
    pub(super) fn trouble_at(&self, now: Instant) -> Option<JournalError> {
        if self.closed {
            return Some(JournalError::Failed);
        }
        let oldest = self.writing_since.or(self.since);
        if oldest.is_some_and(|since| now.saturating_duration_since(since) > PATIENCE) {
            return Some(JournalError::TimedOut);
        }
        self.trouble
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is whole between any two of its statements.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(self: &Arc<Self>, entry: Entry) {
        let mut queue = self.lock();
        let refused = if queue.closed {
            Some(JournalError::Failed)
        } else if queue.entries.len() >= QUEUE_RECORDS || queue.bytes >= QUEUE_BYTES {
            Some(JournalError::TimedOut)
        } else {
            None
        };
        if let Some(error) = refused {
            match entry.answer {
                // The receipt is still in our hands, so it cannot be gone.
                Some(sender) => drop(sender.send(Err(error))),
                None => queue.lost += 1,
            }
            return;
        }
        if queue.entries.is_empty() {
            queue.since = Some(Instant::now());
        }
        let awaited = entry.answer.is_some();
        queue.awaited |= awaited;
        queue.bytes += entry.body.len();
        queue.entries.push(entry);
        let wake = match queue.wake {
            Wake::Never => false,
            Wake::Awaited => awaited,
            Wake::Any => true,
        };
        if wake {
            queue.wake = Wake::Never;
        }
        drop(queue);
        if wake {
            self.wake_soon();
        }
    }

    /// Wakes the thread when the other requests that are ready have queued their records too: one
    /// batch for all of them costs one wake, one write and one answer's wake instead of one each.
    fn wake_soon(self: &Arc<Self>) {
        let waking = Waking(Arc::clone(self));
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let _waking = waking;
            // The first resumes behind what was ready when the record came, the second behind what
            // became ready meanwhile; neither waits for anything.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        });
    }

    /// Swaps the queued records into `batch`, which is empty; waits for some, but only so long. `linger`: there were some just now, so more are likely, and the unawaited ones
    /// may lie. Says how many were lost since, and whether the journal is closing.
    pub(super) fn take(
        &self,
        batch: &mut Vec<Entry>,
        linger: bool,
        patience: Duration,
    ) -> (u64, bool) {
        let mut queue = self.lock();
        if linger {
            let until = Instant::now() + LINGER;
            while !queue.awaited && !queue.closed {
                match self.sleep(queue, Wake::Awaited, until) {
                    (woken, true) => queue = woken,
                    (late, false) => {
                        queue = late;
                        break;
                    }
                }
            }
        }
        let until = Instant::now() + patience;
        while queue.entries.is_empty() && !queue.closed {
            match self.sleep(queue, Wake::Any, until) {
                (woken, true) => queue = woken,
                (late, false) => {
                    queue = late;
                    break;
                }
            }
        }
        queue.awaited = false;
        std::mem::swap(&mut queue.entries, batch);
        queue.bytes = 0;
        queue.writing_since = queue.since.take();
        (std::mem::take(&mut queue.lost), queue.closed)
    }

    /// Sleeps until woken (true) or, without sleeping any more, `until` has passed (false).
    fn sleep<'q>(
        &'q self,
        mut queue: MutexGuard<'q, Queue>,
        wake: Wake,
        until: Instant,
    ) -> (MutexGuard<'q, Queue>, bool) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (queue, false);
        }
        queue.wake = wake;
        let waited = self.filled.wait_timeout(queue, left);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.wake = Wake::Never;
        (queue, true)
    }
}

/// Wakes the thread when it is dropped, however that comes about: a runtime that shuts down drops
/// its tasks without running them.
struct Waking(Arc<Shared>);

impl Drop for Waking {
    fn drop(&mut self) {
        self.0.filled.notify_one();
    }
}
