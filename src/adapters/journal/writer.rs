//! Turns batches of records into bytes of a segment, and decides what each record may be told.
//!
//! Runs on the journal's own thread. A batch is all or nothing: it is sealed on a copy of the
//! chain, which becomes the chain only when the bytes are where the durability wants them.

use super::Settings;
use super::files::Storage;
use super::open_calls::OpenCalls;
use super::recover::OpenIntent;
use crate::a2a::Operation;
use crate::audit::chain::Chain;
use crate::audit::record::{
    Artifacts, Delivery, Ended, Head, Millis, Note, NoteTopic, Outcome, Record, Text, Time, Timing,
};
use crate::pipeline::ports::{Clock, Durability, JournalError};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Most records that are kept while nothing can be written; more are counted as lost.
const KEPT: usize = 10_000;
/// Outcomes of calls that were let through must still fit when no new call does.
const RESERVE: u64 = 16 << 20;

/// Most bytes that sealing adds to a record.
const ENVELOPE: u64 = 112;

/// One record on its way, and who waits for it.
pub(super) struct Entry {
    pub body: Vec<u8>,
    pub answer: Option<oneshot::Sender<Result<u64, JournalError>>>,
}

/// The one that writes.
pub(super) struct Writer<S> {
    storage: S,
    settings: Settings,
    clock: Arc<dyn Clock>,
    chain: Chain,
    open: OpenCalls,
    /// Bytes of all segments.
    total: u64,
    buffer: Vec<u8>,
    /// Sequence numbers of the batch, beside its entries; `None` for what was not sealed.
    sealed: Vec<Option<u64>>,
    /// Records that nobody waits for, until they can be written.
    kept: Vec<Entry>,
    lost: u64,
    /// The batch is synced before it is answered.
    group: bool,
    /// Something was written since the last sync.
    dirty: bool,
    /// A failed write may have left bytes behind this length; they go before the next write.
    cut: Option<u64>,
    /// The next write begins a segment.
    renew: bool,
    /// Why the last write failed.
    failed: Option<JournalError>,
    detail: String,
    /// `max_bytes` is reached.
    limited: bool,
}

impl<S: Storage> Writer<S> {
    pub(super) fn new(
        storage: S,
        settings: Settings,
        clock: Arc<dyn Clock>,
        chain: Chain,
    ) -> io::Result<Writer<S>> {
        Ok(Writer {
            total: storage.measure()?,
            renew: false,
            storage,
            settings,
            clock,
            chain,
            open: OpenCalls::default(),
            buffer: Vec::with_capacity(64 << 10),
            sealed: Vec::new(),
            kept: Vec::new(),
            lost: 0,
            group: false,
            dirty: false,
            cut: None,
            failed: None,
            detail: String::new(),
            limited: false,
        })
    }

    /// Says what was found at start, and makes that durable.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn open(
        &mut self,
        open: &BTreeMap<u64, OpenIntent>,
        torn_bytes: u64,
        no_segment: bool,
    ) -> Result<(), JournalError> {
        self.renew = no_segment;
        self.open = OpenCalls::found(open.keys().copied());
        let mut bodies: Vec<Vec<u8>> = open
            .iter()
            .map(|(sequence, intent)| self.conclusion(*sequence, intent, Delivery::Unknown))
            .collect();
        bodies.push(self.note(NoteTopic::Opened, torn_bytes, open.len() as u64));
        // The limit is for what comes: a journal at its limit must still say how it was found.
        let limit = std::mem::replace(&mut self.settings.max_bytes, u64::MAX);
        let entries: Vec<Entry> = bodies.into_iter().map(unawaited).collect();
        let result = self.write(&entries).and_then(|()| self.sync());
        self.settings.max_bytes = limit;
        self.measure();
        result
    }

    /// Writes a batch and answers everybody in it; `entries` is empty afterwards.
    pub(super) fn batch(&mut self, entries: &mut Vec<Entry>) {
        let result = self.write(entries);
        self.answer(entries, result);
        let better = self.failed.is_some() && !self.buffer.is_empty();
        let unclaimed = self.failed.is_none() && !self.kept.is_empty() && !self.limited;
        if result.is_ok() && (better || unclaimed) {
            self.recover();
        }
    }

    /// What is due about once a second.
    pub(super) fn tick(&mut self) {
        if self.dirty {
            // A failure is remembered in `failed` and begins a new segment.
            let _ = self.sync();
        }
        if self.storage.is_gone() {
            self.renew = true;
        }
        if self.limited {
            self.measure();
        }
        let waiting = !self.kept.is_empty() || self.lost > 0;
        if self.failed.is_some() || (waiting && !self.limited) {
            self.recover();
        }
    }

    /// Whether [`Writer::tick`] has anything to do while no records come.
    pub(super) fn needs_tick(&self) -> bool {
        self.dirty
            || self.limited
            || self.failed.is_some()
            || !self.kept.is_empty()
            || self.lost > 0
    }

    /// Why new calls cannot be recorded.
    pub(super) fn trouble(&self) -> Option<JournalError> {
        self.failed.or(self.limited.then_some(JournalError::Full))
    }

    /// Whether four fifths of `max_bytes` are used.
    pub(super) fn crowded(&self) -> bool {
        self.total / 4 >= self.settings.max_bytes / 5
    }

    /// The operating system's words about the last failure.
    pub(super) fn detail(&self) -> &str {
        &self.detail
    }

    /// Counts records that could not even be queued.
    pub(super) fn lose(&mut self, records: u64) {
        self.lost += records;
    }

    /// Writes what is left, with a last note, and syncs.
    pub(super) fn close(&mut self) {
        let mut entries = std::mem::take(&mut self.kept);
        entries.push(unawaited(self.note(NoteTopic::Closed, 0, 0)));
        if self.write(&entries).is_ok() {
            // Nothing is left to be told about a failure.
            let _ = self.sync();
        }
    }

    fn write(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        let length = self.cut.unwrap_or(self.storage.segment_bytes());
        let added = |entry: &Entry| entry.body.len() as u64 + ENVELOPE;
        let crowded = length + entries.iter().map(added).sum::<u64>() > self.settings.segment_bytes;
        self.renew |= crowded && length > 0 && !entries.is_empty();
        let chain = self.seal(entries, self.renew || length == 0);
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.store() {
            return Err(self.fail(&error));
        }
        self.total += self.buffer.len() as u64;
        self.chain = chain;
        for (entry, sealed) in entries.iter().zip(&self.sealed) {
            if let Some(sequence) = sealed {
                self.open.pass(&entry.body, *sequence);
            }
        }
        // One exceptional batch must not hold its memory for ever.
        self.buffer.shrink_to(1 << 20);
        Ok(())
    }

    /// Fills `buffer` and `sealed`, and returns where the chain will stand. `fresh`: the batch is
    /// the first of its segment.
    fn seal(&mut self, entries: &[Entry], fresh: bool) -> Chain {
        let max = self.settings.max_bytes;
        let max_awaited = max - RESERVE.min(max / 16);
        let mut chain = self.chain;
        self.buffer.clear();
        self.sealed.clear();
        if fresh && chain.sequence() > 0 {
            chain.seal(&self.note(NoteTopic::Segment, 0, 0), &mut self.buffer);
        }
        let bare = self.buffer.len();
        for entry in entries {
            let (before, length) = (chain, self.buffer.len());
            let awaited = entry.answer.is_some();
            // A caller that gave up was told that nothing was forwarded.
            let abandoned = entry
                .answer
                .as_ref()
                .is_some_and(oneshot::Sender::is_closed);
            if abandoned || (awaited && self.limited) {
                self.sealed.push(None);
                continue;
            }
            chain.seal(&entry.body, &mut self.buffer);
            let limit = if awaited { max_awaited } else { max };
            if self.total + self.buffer.len() as u64 > limit {
                self.buffer.truncate(length);
                chain = before;
                self.limited = true;
                self.sealed.push(None);
            } else {
                self.sealed.push(Some(chain.sequence()));
            }
        }
        if self.buffer.len() == bare {
            self.buffer.clear();
            return self.chain;
        }
        let awaited = |entry: &Entry| entry.answer.is_some();
        self.group = self.settings.durability == Durability::Group && entries.iter().any(awaited);
        chain
    }

    /// Puts `buffer` behind the last good byte, as durably as its records want.
    fn store(&mut self) -> io::Result<()> {
        if let Some(bytes) = self.cut {
            self.storage.cut(bytes)?;
            self.cut = None;
        }
        if self.renew {
            if std::mem::take(&mut self.dirty) {
                self.storage.sync()?;
            }
            self.storage.begin(self.chain.sequence() + 1)?;
            self.renew = false;
        }
        let good = self.storage.segment_bytes();
        if let Err(error) = self.storage.append(&self.buffer) {
            self.undo(good);
            return Err(error);
        }
        if self.group {
            if let Err(error) = self.storage.sync() {
                // Whether a failed sync left the pages clean is unknown, so a second one would
                // prove nothing: the records are withdrawn and the next go elsewhere.
                self.undo(good);
                self.dirty = false;
                self.renew = true;
                return Err(error);
            }
            self.dirty = false;
        } else {
            self.dirty = true;
        }
        Ok(())
    }

    /// Removes what a failed batch left, now or before the next write.
    fn undo(&mut self, good: u64) {
        if self.storage.cut(good).is_err() {
            self.cut = Some(good);
        }
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        if !self.dirty {
            return Ok(());
        }
        self.dirty = false;
        self.storage.sync().map_err(|error| {
            self.renew = true;
            self.fail(&error)
        })
    }

    fn fail(&mut self, error: &io::Error) -> JournalError {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => JournalError::Full,
            _ => JournalError::Failed,
        };
        self.failed = Some(kind);
        self.detail = error.to_string();
        kind
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
                None => self.lost += 1,
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
            entries.push(unawaited(self.note(NoteTopic::Recovered, 0, 0)));
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
        if result.is_ok() {
            self.failed = None;
            self.detail.clear();
        }
    }

    /// Looks whether `max_bytes` leaves room: enough that it does not fill again at once.
    fn measure(&mut self) {
        if let Ok(total) = self.storage.measure() {
            self.total = total;
        }
        let max = self.settings.max_bytes;
        let room = (max - RESERVE.min(max / 16)).saturating_sub(self.total);
        self.limited = room < (max / 64).min(1 << 20);
    }

    fn head<'h>(&'h self, generation: u64, policy_digest: &'h str) -> Head<'h> {
        Head {
            time: Time(self.clock.now()),
            instance: &self.settings.instance,
            generation,
            policy_digest,
        }
    }

    fn note(&self, note: NoteTopic, torn_bytes: u64, open_intents: u64) -> Vec<u8> {
        Record::Note(Note {
            head: self.head(0, ""),
            note,
            torn_bytes,
            open_intents,
            lost: self.lost,
            oldest_open: (note == NoteTopic::Segment)
                .then(|| self.open.oldest())
                .flatten(),
            detail: (!self.detail.is_empty()).then_some(Text(&self.detail)),
        })
        .members()
    }

    /// The outcome of an intent that nobody else will conclude.
    fn conclusion(&self, sequence: u64, intent: &OpenIntent, delivery: Delivery) -> Vec<u8> {
        let operation = intent.operation.as_deref();
        Record::Outcome(Outcome {
            head: self.head(intent.generation, &intent.policy_digest),
            request_id: &intent.request_id,
            intent: sequence,
            agent: &intent.agent,
            operation: Operation::ALL
                .into_iter()
                .find(|known| Some(known.name()) == operation),
            reach: delivery.into(),
            attempts: &[],
            response: None,
            task_id: None,
            context_id: None,
            artifacts: Artifacts(&[]),
            ended: Ended::Abandoned,
            ms: Timing {
                total: Millis(Duration::ZERO),
                to_response: None,
                overhead: None,
            },
        })
        .members()
    }
}

fn unawaited(body: Vec<u8>) -> Entry {
    Entry { body, answer: None }
}

#[cfg(test)]
mod tests;
