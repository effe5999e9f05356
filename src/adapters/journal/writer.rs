//! Turns batches of records into bytes of a segment, and decides what each record may be told.
//!
//! Runs on the journal's own thread. A batch is all or nothing: it is sealed on a copy of the
//! chain, which becomes the chain only when the bytes are where the durability wants them.

mod device;
mod records;
mod turn;

pub(super) use device::kind_of;

use super::Settings;
use super::copies::Copies;
use super::files::Storage;
use super::open_calls::OpenCalls;
use super::recover::{Found, OpenIntent};
use crate::audit::chain::Chain;
use crate::audit::record::{Delivery, NoteTopic};
use crate::pipeline::ports::{Clock, Durability, JournalError, JournalMetrics};
use device::number;
use records::{Force, unawaited};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use turn::Renew;

/// Most records that are kept while nothing can be written; more are counted as lost.
const KEPT: usize = 10_000;
/// Outcomes of calls that were let through must still fit when no new call does. So much of
/// `max_bytes` is kept for them, and at most so much of the device.
const RESERVE: u64 = 16 << 20;
/// What is kept on the device for one outcome, and for what the journal says about itself.
const OUTCOME: u64 = 4 << 10;
const OWN: u64 = 16 << 10;
/// Most bytes that sealing adds to a record.
const ENVELOPE: u64 = 112;

/// So many records since the last checkpoint have the next one signed at the next tick, that what
/// proves one record, the lines from it to the checkpoint behind it, stays small.
const MANY: u64 = 4_096;

/// One record on its way, and who waits for it.
pub(super) struct Entry {
    pub body: Vec<u8>,
    pub answer: Option<oneshot::Sender<Result<u64, JournalError>>>,
}

impl Entry {
    /// Whether it may use what is kept for outcomes.
    fn is_reserved_for(&self) -> bool {
        self.answer.is_none()
            && (self.body.starts_with(br#""kind":"outcome""#)
                || self.body.starts_with(br#""kind":"note""#))
    }
}

/// The one that writes.
pub(super) struct Writer<S> {
    storage: S,
    settings: Settings,
    clock: Arc<dyn Clock>,
    metrics: Arc<JournalMetrics>,
    copies: Option<Arc<Copies>>,
    /// The journal's id.
    journal: Box<str>,
    chain: Chain,
    open: OpenCalls,
    /// What was in force when the last record about it passed.
    force: Force,
    /// Bytes of all segments.
    total: u64,
    buffer: Vec<u8>,
    /// Sequence numbers of the batch, beside its entries; `None` for what was not sealed.
    sealed: Vec<Option<u64>>,
    /// One part of a batch.
    part: Vec<Entry>,
    /// Records that nobody waits for, until they can be written.
    kept: Vec<Entry>,
    lost: u64,
    /// The batch is synced before it is answered.
    group: bool,
    /// Something was written since the last sync.
    dirty: bool,
    /// How much of the segment survives a power loss for sure, and where the chain stood there.
    durable: (u64, Chain),
    /// A failed write may have left bytes behind this length; they go before the next write.
    cut: Option<u64>,
    /// Whether the next write begins a segment.
    renew: Renew,
    /// When the segment began, in seconds since the Unix epoch.
    segment_since: u64,
    /// When the next checkpoint is due, in the clock's monotonic time.
    due: Duration,
    /// The sequence number of the last checkpoint.
    checkpoint: u64,
    /// Why the last write failed.
    failed: Option<JournalError>,
    detail: String,
    /// `max_bytes` is reached.
    limited: bool,
    /// The device has no room for another call and its outcome.
    starved: bool,
}

/// What the writer shows to others.
pub(super) type Handles = (Arc<JournalMetrics>, Option<Arc<Copies>>);

impl<S: Storage> Writer<S> {
    pub(super) fn new(
        storage: S,
        settings: Settings,
        clock: Arc<dyn Clock>,
        chain: Chain,
        journal: Box<str>,
        (metrics, copies): Handles,
    ) -> io::Result<Writer<S>> {
        let mut writer = Writer {
            total: storage.measure()?.bytes,
            durable: (storage.segment_bytes(), chain),
            renew: Renew::No,
            segment_since: clock.now() / 1000,
            due: clock.monotonic(),
            storage,
            settings,
            clock,
            metrics,
            copies,
            journal,
            chain,
            open: OpenCalls::default(),
            force: Force::default(),
            buffer: Vec::with_capacity(64 << 10),
            sealed: Vec::new(),
            part: Vec::new(),
            kept: Vec::new(),
            lost: 0,
            group: false,
            dirty: false,
            cut: None,
            checkpoint: 0,
            failed: None,
            detail: String::new(),
            limited: false,
            starved: false,
        };
        writer.measure();
        Ok(writer)
    }

    /// Says what was found at start, makes that durable, and signs it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn open(&mut self, found: &Found) -> Result<(), JournalError> {
        if found.last.is_none() {
            self.renew = Renew::Lost;
        }
        self.segment_since = found.segment_since.unwrap_or(self.segment_since);
        self.open = OpenCalls::found(found.open.keys().copied());
        let mut bodies: Vec<Vec<u8>> = found
            .open
            .iter()
            .map(|(sequence, intent)| self.conclusion(*sequence, intent, Delivery::Unknown))
            .collect();
        bodies.push(self.opened(found));
        bodies.extend(self.other_key(found.key_id.as_deref()));
        // The limit is for what comes: a journal at its limit must still say how it was found.
        let limit = std::mem::replace(&mut self.settings.max_bytes, u64::MAX);
        let entries: Vec<Entry> = bodies.into_iter().map(unawaited).collect();
        let result = self
            .write(&entries)
            .and_then(|()| self.sync())
            .and_then(|()| self.sign());
        self.settings.max_bytes = limit;
        self.measure();
        result
    }

    /// Writes a batch and answers everybody in it; `entries` is empty afterwards.
    pub(super) fn batch(&mut self, entries: &mut Vec<Entry>) {
        if self.settings.durability != Durability::Each {
            return self.write_part(entries);
        }
        let mut part = std::mem::take(&mut self.part);
        for entry in entries.drain(..) {
            let awaited = entry.answer.is_some();
            part.push(entry);
            if awaited {
                self.write_part(&mut part);
            }
        }
        self.write_part(&mut part);
        self.part = part;
    }

    fn write_part(&mut self, entries: &mut Vec<Entry>) {
        let result = self.write(entries);
        let written = result.is_ok() && !self.buffer.is_empty();
        self.answer(entries, result);
        if written && !self.starved {
            let unclaimed = self.failed.is_none() && !self.kept.is_empty() && !self.limited;
            if self.failed.is_some() || unclaimed {
                self.recover();
            }
        }
    }

    /// What is due about once a second.
    pub(super) fn tick(&mut self) {
        if self.dirty {
            // A failure is remembered in `failed` and begins a new segment.
            let _ = self.sync();
        }
        if self.storage.is_gone() {
            self.renew = self.renew.max(Renew::Due);
        }
        if self.limited {
            self.measure();
        }
        if self.starved {
            self.starved = self.storage.reserve(self.reserve(1)).is_err();
        }
        let waiting = !self.kept.is_empty() || self.lost > 0;
        if !self.starved && (self.failed.is_some() || (waiting && !self.limited)) {
            self.recover();
        }
        let many = self.chain.sequence().saturating_sub(self.checkpoint) >= MANY;
        if (many || self.clock.monotonic() >= self.due) && self.failed.is_none() {
            // A failure is remembered too.
            let _ = self.sign();
            // Segments may have been taken away since.
            self.measure();
        }
    }

    /// Why new calls cannot be recorded.
    pub(super) fn trouble(&self) -> Option<JournalError> {
        let full = self.limited || self.starved;
        self.failed.or(full.then_some(JournalError::Full))
    }

    /// Whether four fifths of `max_bytes` are used.
    pub(super) fn crowded(&self) -> bool {
        self.total / 4 >= self.settings.max_bytes / 5
    }

    /// The operating system's words about the last failure.
    pub(super) fn detail(&self) -> &str {
        &self.detail
    }

    /// What the journal shows to others.
    pub(super) fn handles(&self) -> Handles {
        (self.metrics.clone(), self.copies.clone())
    }

    /// The journal's id.
    pub(super) fn journal(&self) -> &str {
        &self.journal
    }

    /// The journal's directory.
    pub(super) fn dir(&self) -> PathBuf {
        self.settings.dir.clone()
    }

    /// Counts records that could not even be queued.
    pub(super) fn lose(&mut self, records: u64) {
        if records > 0 {
            self.lost += records;
            self.metrics.lost.inc_by(records);
        }
    }

    /// Writes what is left, with a last note and a checkpoint, and syncs.
    pub(super) fn close(&mut self) {
        let mut entries = std::mem::take(&mut self.kept);
        if self.limited || self.starved {
            let all = entries.len();
            entries.retain(Entry::is_reserved_for);
            self.lose((all - entries.len()) as u64);
        }
        entries.push(unawaited(self.note(NoteTopic::Closed)));
        // Nothing is left to be told about a failure.
        if self.write(&entries).is_ok() && self.sync().is_ok() {
            let _ = self.sign();
        }
        self.storage.release();
    }

    fn write(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        self.buffer.clear();
        self.sealed.clear();
        self.sealed.resize(entries.len(), None);
        if entries.is_empty() {
            return Ok(());
        }
        let awaited = entries.iter().filter(|e| e.answer.is_some()).count() as u64;
        let added = |entry: &Entry| entry.body.len() as u64 + ENVELOPE;
        let needed = entries.iter().map(added).sum::<u64>();
        self.make_room(needed, awaited)?;
        let chain = self.seal(entries, self.storage.segment_bytes() == 0);
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.put().map_err(|error| self.fail(&error))?;
        self.chain = chain;
        if !self.dirty {
            self.settle();
        }
        for (entry, sealed) in entries.iter().zip(&self.sealed) {
            if let Some(sequence) = sealed {
                self.open.pass(&entry.body, *sequence);
                self.force.pass(&entry.body);
            }
        }
        self.show();
        // One exceptional batch must not hold its memory for ever.
        self.buffer.shrink_to(1 << 20);
        Ok(())
    }

    /// Fills `buffer` and `sealed`, and returns where the chain will stand. `fresh`: the batch is
    /// the first of its segment.
    fn seal(&mut self, entries: &[Entry], fresh: bool) -> Chain {
        let max = self.settings.max_bytes;
        let max_others = max - RESERVE.min(max / 16);
        let mut chain = self.chain;
        self.buffer.clear();
        if fresh && chain.sequence() > 0 {
            chain.seal(&self.segment(), &mut self.buffer);
        }
        let bare = self.buffer.len();
        for (entry, sealed) in entries.iter().zip(&mut self.sealed) {
            let (before, length) = (chain, self.buffer.len());
            // A caller that gave up was told that nothing was forwarded.
            let abandoned = entry
                .answer
                .as_ref()
                .is_some_and(oneshot::Sender::is_closed);
            let reserved = entry.is_reserved_for();
            if abandoned || (!reserved && (self.limited || self.starved)) {
                continue;
            }
            chain.seal(&entry.body, &mut self.buffer);
            let limit = if reserved { max } else { max_others };
            if self.total + self.buffer.len() as u64 > limit {
                self.buffer.truncate(length);
                chain = before;
                self.limited = true;
            } else {
                *sealed = Some(chain.sequence());
            }
        }
        if self.buffer.len() == bare {
            self.buffer.clear();
            return self.chain;
        }
        let each = entries.iter().zip(&self.sealed);
        let mut awaited = each.filter(|(entry, sealed)| entry.answer.is_some() && sealed.is_some());
        self.group = match self.settings.durability {
            Durability::Write => false,
            Durability::Group | Durability::Each => awaited.next().is_some(),
        };
        chain
    }

    fn answer(&mut self, entries: &mut Vec<Entry>, result: Result<(), JournalError>) {
        let sealed = std::mem::take(&mut self.sealed);
        for (entry, sealed) in entries.drain(..).zip(sealed.iter().copied()) {
            let answer = match (result, sealed) {
                (Err(error), _) => Err(error),
                (Ok(()), None) => Err(JournalError::Full),
                (Ok(()), Some(sequence)) => Ok(sequence),
            };
            match entry.answer {
                // A caller that has just given up got no permit, so nothing will be sent for it.
                Some(sender) => {
                    if let Err(Ok(sequence)) = sender.send(answer)
                        && let Some(intent) = OpenIntent::of(&entry.body)
                    {
                        let body = self.conclusion(sequence, &intent, Delivery::NotAttempted);
                        self.kept.push(unawaited(body));
                    }
                }
                None if answer.is_ok() => {}
                None if self.kept.len() < KEPT => self.kept.push(entry),
                None => self.lose(1),
            }
        }
        // Its memory is for the next batch.
        self.sealed = sealed;
    }

    /// Writes what was kept, with a note about what was lost, and declares the trouble over.
    fn recover(&mut self) {
        let mut entries = std::mem::take(&mut self.kept);
        let noted = self.failed.is_some() || self.lost > 0;
        if noted {
            entries.push(unawaited(self.note(NoteTopic::Recovered)));
        }
        let result = self.write(&entries);
        if noted {
            // The note is made anew each time, so it is not kept.
            let written = self.sealed.pop().flatten().is_some() && result.is_ok();
            entries.pop();
            if written {
                self.lost = 0;
            }
        }
        self.answer(&mut entries, result);
        if result.is_ok() && !self.starved {
            if self.failed.take().is_some() {
                tracing::info!("the journal can be written again");
            }
            self.detail.clear();
        }
    }

    /// Looks whether `max_bytes` leaves room: enough that it does not fill again at once.
    fn measure(&mut self) {
        if let Ok(measured) = self.storage.measure() {
            self.total = measured.bytes;
            self.metrics.segments.set(number(measured.segments));
        }
        let max = self.settings.max_bytes;
        let room = (max - RESERVE.min(max / 16)).saturating_sub(self.total);
        self.limited = room < (max / 64).min(1 << 20);
        self.show();
    }

    fn show(&self) {
        self.metrics.bytes.set(number(self.total));
        self.metrics.sequence.set(number(self.chain.sequence()));
    }
}

#[cfg(test)]
mod tests;
