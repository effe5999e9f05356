//! The journal in files: [`FileJournal`].
//!
//! One thread owns the files. It takes whatever is queued as one batch, seals it, writes it with
//! one call, syncs where the durability asks for it, and answers. While it does, the next batch
//! gathers, so that batches grow with the load and one sync serves all that wait.

mod files;
pub mod lines;
mod open_calls;
pub mod read;
mod recover;
mod writer;

use crate::audit::chain::Broken;
use crate::pipeline::ports::{Clock, Durability, Journal, JournalError, Receipt, RecordBody};
use files::{Files, Storage};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use writer::{Entry, Writer};

/// How long a record may be under way before readiness says so.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between syncs, and between looks at a device in trouble.
const TICK: Duration = Duration::from_secs(1);
/// How long records that nobody waits for may lie until an awaited one takes them along: waking the
/// thread for each of them would cost as much as writing them.
const LINGER: Duration = Duration::from_millis(10);
/// Most records, and bytes of them, that queue up behind a device that does not answer.
const QUEUE_RECORDS: usize = 50_000;
const QUEUE_BYTES: usize = 128 << 20;

/// What a journal is opened with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory; made (mode 0700) where it is missing.
    pub dir: PathBuf,
    /// When a record counts as recorded.
    pub durability: Durability,
    /// Largest size of all segments together, in bytes. A sixteenth, at most 16 MiB, is kept for
    /// outcomes of calls that were let through.
    pub max_bytes: u64,
    /// A segment that would grow beyond this many bytes is followed by a new one.
    pub segment_bytes: u64,
    /// The name of this gateway process in records.
    pub instance: Box<str>,
}

impl Settings {
    /// The size of a segment where nothing else is wanted.
    pub const SEGMENT_BYTES: u64 = 64 << 20;
}

/// The append-only journal in a directory of JSON Lines segments, chained by SHA-256.
///
/// Opening starts its thread, so a program that forks must fork first.
pub struct FileJournal {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What callers and the thread have in common.
#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Default)]
struct Queue {
    entries: Vec<Entry>,
    bytes: usize,
    /// When the first of `entries` came.
    since: Option<Instant>,
    /// When the first record of the batch that is being written came.
    writing_since: Option<Instant>,
    /// Unawaited records that found the queue full.
    lost: u64,
    trouble: Option<JournalError>,
    /// What is left is kept for callers.
    crowded: bool,
    /// Somebody waits for one of `entries`.
    awaited: bool,
    /// What the thread wants to be woken for.
    wake: Wake,
    /// Nothing more is accepted.
    closed: bool,
}

/// What a sleeping thread is woken for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Wake {
    /// It does not sleep.
    #[default]
    Never,
    /// A record that somebody waits for; it looks for others soon by itself.
    Awaited,
    /// Any record.
    Any,
}

impl FileJournal {
    /// Opens a journal, alone: mends a torn last line, closes the intents that a crash left open
    /// as `unknown`, and notes both, durably, before it returns.
    ///
    /// # Errors
    /// [`OpenError`]; nothing was changed when it is `Locked`, `Damaged` or `Gap`.
    pub fn open(settings: Settings, clock: Arc<dyn Clock>) -> Result<FileJournal, OpenError> {
        let dir = settings.dir.clone();
        let mut files = Files::open(&dir)?;
        let found = recover::read(&files.segments()?)?;
        if let Some((path, bytes)) = &found.last {
            files.resume(path, *bytes)?;
        }
        let mut writer = Writer::new(files, settings, clock, found.chain)
            .map_err(OpenError::io("measure the journal", &dir))?;
        writer
            .open(&found.open, found.torn_bytes, found.last.is_none())
            .map_err(|error| OpenError::Unwritable(dir.clone(), error, writer.detail().into()))?;
        FileJournal::start(writer).map_err(OpenError::io("start the journal's thread", &dir))
    }

    fn start<S: Storage + 'static>(writer: Writer<S>) -> io::Result<FileJournal> {
        let shared = Arc::new(Shared::default());
        shared.lock().trouble = writer.trouble();
        shared.lock().crowded = writer.crowded();
        let thread = thread::Builder::new().name("journal".into()).spawn({
            let shared = Arc::clone(&shared);
            move || run(&shared, writer)
        })?;
        Ok(FileJournal {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Writes what is queued, syncs, and ends the thread; further records are refused. Blocks for
    /// as long as the device takes. Dropping does the same.
    pub fn close(&self) {
        {
            let mut queue = self.shared.lock();
            queue.closed = true;
            self.shared.filled.notify_one();
        }
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A panic of the thread has already refused everything that waited.
            let _ = thread.join();
        }
    }
}

impl Journal for FileJournal {
    fn append(&self, record: RecordBody) -> Receipt {
        let (sender, receipt) = Receipt::pair();
        self.shared.push(Entry {
            body: record.0,
            answer: Some(sender),
        });
        receipt
    }

    fn queue(&self, record: RecordBody) {
        self.shared.push(Entry {
            body: record.0,
            answer: None,
        });
    }

    fn trouble(&self) -> Option<JournalError> {
        self.shared.lock().trouble_at(Instant::now())
    }

    fn crowded(&self) -> bool {
        self.shared.lock().crowded
    }
}

impl Drop for FileJournal {
    fn drop(&mut self) {
        self.close();
    }
}

impl Queue {
    fn trouble_at(&self, now: Instant) -> Option<JournalError> {
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
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is whole between any two of its statements.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(self: &Arc<Self>, entry: Entry) {
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

    /// Swaps the queued records into `batch`, which is empty; waits for some, with `patience` only
    /// so long. `linger`: there were some just now, so more are likely, and the unawaited ones
    /// may lie. Says how many were lost since, and whether the journal is closing.
    fn take(
        &self,
        batch: &mut Vec<Entry>,
        linger: bool,
        patience: Option<Duration>,
    ) -> (u64, bool) {
        let mut queue = self.lock();
        if linger {
            let until = Instant::now() + LINGER;
            while !queue.awaited && !queue.closed {
                match self.sleep(queue, Wake::Awaited, Some(until)) {
                    (woken, true) => queue = woken,
                    (late, false) => {
                        queue = late;
                        break;
                    }
                }
            }
        }
        let until = patience.map(|patience| Instant::now() + patience);
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
        until: Option<Instant>,
    ) -> (MutexGuard<'q, Queue>, bool) {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return (queue, false);
        }
        queue.wake = wake;
        let mut queue = match left {
            Some(left) => {
                self.filled
                    .wait_timeout(queue, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
            None => self
                .filled
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner),
        };
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

/// The journal's thread.
fn run<S: Storage>(shared: &Shared, mut writer: Writer<S>) {
    // Should this thread ever panic, nobody may wait for it.
    let _refuse = RefuseOnExit(shared);
    let mut batch = Vec::new();
    let mut ticked = Instant::now();
    let mut linger = false;
    loop {
        let patience = writer
            .needs_tick()
            .then(|| TICK.saturating_sub(ticked.elapsed()));
        let (lost, closing) = shared.take(&mut batch, linger, patience);
        writer.lose(lost);
        linger = !batch.is_empty();
        let rest = closing && !linger;
        writer.batch(&mut batch);
        if ticked.elapsed() >= TICK {
            writer.tick();
            ticked = Instant::now();
        }
        let mut queue = shared.lock();
        queue.writing_since = None;
        queue.trouble = writer.trouble();
        queue.crowded = writer.crowded();
        drop(queue);
        if rest {
            writer.close();
            return;
        }
    }
}

struct RefuseOnExit<'s>(&'s Shared);

impl Drop for RefuseOnExit<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.closed = true;
        // Dropping the senders resolves their receipts as failed.
        queue.entries.clear();
    }
}

/// Why a journal cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another process writes to it.
    Locked(PathBuf),
    /// A file operation failed.
    Io {
        /// What was being done, as in "cannot …".
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A segment has a record that does not follow from those before it; this is no torn write.
    Damaged(PathBuf, Broken),
    /// A segment does not end where the next one goes on.
    Gap(PathBuf),
    /// The first records of this run could not be written; with the system's reason.
    Unwritable(PathBuf, JournalError, Box<str>),
}

impl OpenError {
    fn io(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> OpenError + use<> {
        let path = path.to_path_buf();
        move |source| OpenError::Io {
            doing,
            path: path.clone(),
            source,
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOVE: &str =
            "keep the directory as evidence and set `audit.journal.dir` to a new one";
        match self {
            OpenError::Locked(dir) => write!(
                f,
                "the journal in `{}` is in use by another process; stop that one, or give each its own `audit.journal.dir`",
                dir.display()
            ),
            OpenError::Io {
                doing,
                path,
                source,
            } => write!(
                f,
                "cannot {doing} `{}`: {source}; it must be readable and writable for this user",
                path.display()
            ),
            OpenError::Damaged(path, broken) => {
                write!(
                    f,
                    "the journal is damaged: `{}`, {broken}; {MOVE}",
                    path.display()
                )
            }
            OpenError::Gap(path) => write!(
                f,
                "the journal is damaged: records are missing after the last one of `{}`; {MOVE}",
                path.display()
            ),
            OpenError::Unwritable(dir, error, detail) => write!(
                f,
                "cannot write to the journal in `{}`: {error} ({detail})",
                dir.display()
            ),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Io { source, .. } => Some(source),
            OpenError::Damaged(_, broken) => Some(broken),
            OpenError::Locked(_) | OpenError::Gap(_) | OpenError::Unwritable(..) => None,
        }
    }
}

#[cfg(test)]
mod tests;
