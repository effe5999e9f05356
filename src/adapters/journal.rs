//! The journal in files: [`FileJournal`].
//!
//! One thread owns the files. It takes whatever is queued as one batch, seals it, writes it with
//! one call, syncs where the durability asks for it, and answers. While it does, the next batch
//! gathers, so that batches grow with the load and one sync serves all that wait.

pub mod bundle;
mod copies;
mod error;
mod files;
pub mod follow;
pub mod hiding;
pub mod lines;
mod open_calls;
pub mod prune;
mod queue;
pub mod read;
mod recover;
pub mod scan;
pub mod search;
mod texts;
pub mod verify;
mod writer;

pub use error::{Holder, OpenError};

use crate::identity::SigningKey;
use crate::pipeline::RequestId;
use crate::pipeline::ports::{
    CheckpointCopies, Clock, Durability, Journal, JournalError, JournalMetrics, Random, Receipt,
    RecordBody,
};
use copies::Copies;
use files::{Files, Storage};
use queue::Shared;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use writer::{Entry, Writer};

/// Between syncs, and between looks at a device in trouble.
const TICK: Duration = Duration::from_secs(1);
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
    /// A segment whose first record is as old as this is followed by a new one.
    pub rotate_every: Duration,
    /// The longest time between two checkpoints, idle too.
    pub checkpoint_every: Duration,
    /// Where checkpoints go besides the journal.
    pub copies: CheckpointCopies,
    /// Signs checkpoints.
    pub key: Arc<SigningKey>,
    /// The name of this gateway process in records.
    pub instance: Box<str>,
}

impl Settings {
    /// The size of a segment where nothing else is wanted.
    pub const SEGMENT_BYTES: u64 = 64 << 20;

    /// A journal that is configured by nothing but its directory: durability `write`, 20 GiB,
    /// segments of 64 MiB or a day, a checkpoint a minute, no copies of them.
    pub fn new(dir: PathBuf, key: Arc<SigningKey>, instance: Box<str>) -> Settings {
        Settings {
            dir,
            durability: Durability::Write,
            max_bytes: 20 << 30,
            segment_bytes: Settings::SEGMENT_BYTES,
            rotate_every: Duration::from_secs(86_400),
            checkpoint_every: Duration::from_secs(60),
            copies: CheckpointCopies::default(),
            key,
            instance,
        }
    }
}

/// The append-only journal in a directory of JSON Lines segments, chained by SHA-256.
///
/// Opening starts its thread, so a program that forks must fork first.
pub struct FileJournal {
    shared: Arc<Shared>,
    metrics: Arc<JournalMetrics>,
    copies: Option<Arc<Copies>>,
    dir: PathBuf,
    found: Opening,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What a journal was found with when it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opening {
    /// The journal's id.
    pub journal: Box<str>,
    /// Bytes of a torn end that were cut off.
    pub torn_bytes: u64,
    /// How many intents were closed as `unknown`, by agent.
    pub unknown: BTreeMap<Box<str>, u64>,
}

impl FileJournal {
    /// Opens a journal, alone: mends a torn end, closes the intents that a crash left open as
    /// `unknown`, and notes both, durably and with a checkpoint, before it returns.
    ///
    /// # Errors
    /// [`OpenError`]; nothing was changed when it is `Locked`, `Damaged` or `Gap`.
    pub fn open(
        settings: Settings,
        clock: Arc<dyn Clock>,
        random: &dyn Random,
    ) -> Result<FileJournal, OpenError> {
        let dir = settings.dir.clone();
        let mut files = Files::open(&dir, settings.segment_bytes, &settings.instance)?;
        let found = recover::read(&files.segments()?)?;
        files.remove_unfinished();
        for (path, bytes) in &found.doubled {
            files.trim(path, *bytes)?;
        }
        if let Some((path, bytes)) = &found.last {
            files.resume(path, *bytes)?;
        }
        let made = || RequestId::new(&*clock, random).as_str().into();
        let journal = found.journal.clone().unwrap_or_else(made);
        let metrics = JournalMetrics::new(settings.max_bytes);
        let metrics = metrics.map_err(|error| OpenError::Metrics(error.to_string()))?;
        let metrics = Arc::new(metrics);
        let copies = Copies::start(&settings.copies, &metrics)
            .map_err(OpenError::io(
                "start the thread for copies of checkpoints of",
                &dir,
            ))?
            .map(Arc::new);
        let handles = (metrics.clone(), copies.clone());
        let mut writer = Writer::new(files, settings, clock, found.chain, journal, handles)
            .map_err(OpenError::io("measure the journal", &dir))?;
        writer
            .open(&found)
            .map_err(|error| OpenError::Unwritable(dir.clone(), error, writer.detail().into()))?;
        let mut journal = FileJournal::start(writer)
            .map_err(OpenError::io("start the journal's thread", &dir))?;
        journal.found.torn_bytes = found.torn_bytes;
        for intent in found.open.into_values() {
            *journal
                .found
                .unknown
                .entry(intent.agent.into())
                .or_default() += 1;
        }
        Ok(journal)
    }

    fn start<S: Storage + 'static>(writer: Writer<S>) -> io::Result<FileJournal> {
        let shared = Arc::new(Shared::default());
        shared.lock().trouble = writer.trouble();
        shared.lock().crowded = writer.crowded();
        let (metrics, copies) = writer.handles();
        let dir = writer.dir();
        let found = Opening {
            journal: writer.journal().into(),
            ..Opening::default()
        };
        let thread = thread::Builder::new().name("journal".into()).spawn({
            let shared = Arc::clone(&shared);
            move || run(&shared, writer)
        })?;
        Ok(FileJournal {
            shared,
            metrics,
            copies,
            dir,
            found,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// What was found when it was opened.
    pub fn found(&self) -> &Opening {
        &self.found
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
            if let Some(copies) = &self.copies {
                copies.close();
            }
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

    fn metrics(&self) -> Option<&JournalMetrics> {
        let queued = self.shared.lock().entries.len();
        self.metrics
            .queue_records
            .set(i64::try_from(queued).unwrap_or(i64::MAX));
        Some(&self.metrics)
    }

    fn copies_trouble(&self) -> Option<String> {
        self.copies.as_ref()?.trouble()
    }

    fn keep_text(&self, text: &[u8]) -> Result<(), JournalError> {
        texts::keep(&self.dir, text).map_err(|error| {
            tracing::error!("a configuration's text cannot be kept beside the journal: {error}");
            writer::kind_of(&error)
        })
    }

    fn found_unknown(&self) -> Vec<(Box<str>, u64)> {
        let found = self.found.unknown.iter();
        found
            .map(|(agent, count)| (agent.clone(), *count))
            .collect()
    }
}

impl Drop for FileJournal {
    fn drop(&mut self) {
        self.close();
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
        let patience = TICK.saturating_sub(ticked.elapsed());
        let (lost, closing) = shared.take(&mut batch, linger, patience);
        writer.lose(lost);
        linger = !batch.is_empty();
        let rest = closing && !linger;
        // Before the batch, so that after a pause it does not go into a segment that is no more.
        if ticked.elapsed() >= TICK {
            writer.tick();
            ticked = Instant::now();
        }
        writer.batch(&mut batch);
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

#[cfg(test)]
mod tests;
