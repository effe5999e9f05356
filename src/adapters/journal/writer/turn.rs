//! From one segment to the next, and the checkpoints that sign them.

use super::device::{kind_of, number};
use super::{OUTCOME, OWN, RESERVE, Writer};
use crate::adapters::journal::files::Storage;
use crate::pipeline::ports::JournalError;
use std::io;

/// A segment's last checkpoint needs no more bytes.
const SIGNED: u64 = 768;

/// Whether a new segment is to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Renew {
    /// The segment goes on.
    No,
    /// It is large, old or renamed: it gets its last checkpoint and is followed by another. Where
    /// there is no room for another, it goes on.
    Due,
    /// It is removed, or a sync of it failed: nothing more is written to it.
    Lost,
}

impl<S: Storage> Writer<S> {
    /// Sees to it that `needed` bytes can be written, in a new segment where one is due, and with
    /// `awaited` calls among them to what their outcomes will need.
    ///
    /// A device without room for calls is no error here: what was let through before still fits.
    pub(super) fn make_room(&mut self, needed: u64, awaited: u64) -> Result<(), JournalError> {
        self.turn(needed, awaited)
            .map_err(|error| self.fail(&error))?;
        if awaited == 0 {
            return Ok(());
        }
        match self.storage.reserve(needed + self.reserve(awaited)) {
            Ok(()) => self.starved = false,
            Err(error) if kind_of(&error) == JournalError::Full => {
                self.starved = true;
                self.fail(&error);
            }
            Err(error) => return Err(self.fail(&error)),
        }
        Ok(())
    }

    /// What the outcomes of all calls under way, and of so many more, may need.
    pub(super) fn reserve(&self, more: u64) -> u64 {
        let calls = self.open.count() + more;
        OWN + calls.saturating_mul(OUTCOME).min(RESERVE)
    }

    fn turn(&mut self, needed: u64, awaited: u64) -> io::Result<()> {
        if let Some(bytes) = self.cut {
            self.storage.cut(bytes)?;
            self.cut = None;
        }
        let length = self.storage.segment_bytes();
        let age = (self.clock.now() / 1000).saturating_sub(self.segment_since);
        if self.storage.is_removed() {
            self.renew = Renew::Lost;
        } else if length > 0
            && ((needed > 0 && length + needed + SIGNED > self.settings.segment_bytes)
                || age >= self.settings.rotate_every.as_secs())
        {
            self.renew = self.renew.max(Renew::Due);
        }
        if self.renew == Renew::No {
            return Ok(());
        }
        if self.renew == Renew::Due && self.checkpoint != self.chain.sequence() {
            // A segment without a last checkpoint is covered by the first one of the next, so only
            // what it may have left behind counts.
            if let Err(error) = self.write_checkpoint() {
                self.fail(&error);
                if self.cut.is_some() {
                    return Err(error);
                }
            }
        }
        if std::mem::take(&mut self.dirty) && self.renew == Renew::Due {
            self.timed_sync()
                .inspect_err(|_| self.renew = Renew::Lost)?;
        }
        let reserve = needed + self.reserve(awaited);
        match self.storage.begin(self.chain.sequence() + 1, reserve) {
            Ok(()) => {
                self.renew = Renew::No;
                self.segment_since = self.clock.now() / 1000;
                self.metrics.segments.inc();
                Ok(())
            }
            Err(error) if self.renew == Renew::Due && kind_of(&error) == JournalError::Full => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Writes a checkpoint, in a new segment where one is due, and sends copies of it on their way.
    pub(super) fn sign(&mut self) -> Result<(), JournalError> {
        self.make_room(0, 0)?;
        let signed = self.begin_segment().and_then(|()| self.write_checkpoint());
        signed.map_err(|error| self.fail(&error))
    }

    /// Writes the note with which a segment begins, where it is still empty.
    fn begin_segment(&mut self) -> io::Result<()> {
        if self.storage.segment_bytes() > 0 || self.chain.sequence() == 0 {
            return Ok(());
        }
        let mut chain = self.chain;
        let note = self.segment();
        self.buffer.clear();
        chain.seal(&note, &mut self.buffer);
        self.group = false;
        self.put()?;
        self.chain = chain;
        Ok(())
    }

    fn write_checkpoint(&mut self) -> io::Result<()> {
        let result = self.try_checkpoint();
        if result.is_err() {
            self.metrics.checkpoint_errors.inc();
        }
        result
    }

    fn try_checkpoint(&mut self) -> io::Result<()> {
        let mut chain = self.chain;
        let body = self.checkpoint_body();
        self.buffer.clear();
        chain.seal(&body, &mut self.buffer);
        if self.total + self.buffer.len() as u64 > self.settings.max_bytes {
            // No failure of the device, and nothing to be retried at once: what is left of
            // `max_bytes` is for outcomes.
            self.limited = true;
            self.due = self.clock.monotonic() + self.settings.checkpoint_every;
            self.metrics.checkpoint_errors.inc();
            return Ok(());
        }
        self.group = false;
        self.put()?;
        self.chain = chain;
        self.checkpoint = chain.sequence();
        // What is shown outside must not be more than what is here after a power loss.
        self.dirty = false;
        self.timed_sync()
            .inspect_err(|_| self.renew = Renew::Lost)?;
        self.due = self.clock.monotonic() + self.settings.checkpoint_every;
        self.metrics
            .checkpoint_timestamp
            .set(number(self.clock.now() / 1000));
        self.show();
        if let Some(copies) = &self.copies {
            copies.send(&self.buffer);
        }
        Ok(())
    }
}
