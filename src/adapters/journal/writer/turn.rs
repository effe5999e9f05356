//! From one segment to the next, and the checkpoints that sign them.

use super::device::{kind_of, number};
use super::{OUTCOME, OWN, RESERVE, Writer};
use crate::adapters::journal::files::Storage;
use crate::audit::chain::Checker;
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
    /// A sync of it failed: nothing more is written to it. What was not synced may be gone from the
    /// device, whatever later syncs say, so the next segment begins with it.
    Unsynced,
    /// What was not synced cannot even be read any more. Only a restart helps, which keeps what is
    /// whole.
    Stuck,
    /// It is removed, or there is none.
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
                .inspect_err(|_| self.renew = Renew::Unsynced)?;
            self.settle();
        }
        let reserve = needed + self.reserve(awaited);
        let begun = match self.renew {
            Renew::Unsynced if self.durable.0 < self.storage.segment_bytes() => self.carry(reserve),
            Renew::Stuck => Err(unreadable()),
            _ => self.storage.begin(self.chain.sequence() + 1, reserve),
        };
        match begun {
            Ok(()) => {
                self.renew = Renew::No;
                self.segment_since = self.clock.now() / 1000;
                self.metrics.segments.inc();
                self.settle();
                Ok(())
            }
            Err(error) if self.renew == Renew::Due && kind_of(&error) == JournalError::Full => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Takes what was not synced along into a new segment.
    fn carry(&mut self, reserve: u64) -> io::Result<()> {
        let (from, chain) = self.durable;
        let tail = self.storage.tail(from)?;
        let mut checker = Checker::after(chain);
        let mut lines = tail.split_inclusive(|byte| *byte == b'\n');
        let whole = lines.all(|line| {
            let line = line.strip_suffix(b"\n");
            line.is_some_and(|line| checker.take(line).is_ok())
        });
        if !whole || checker.chain() != self.chain {
            self.renew = Renew::Stuck;
            return Err(unreadable());
        }
        self.storage
            .carry(&tail, from, chain.sequence() + 1, reserve)?;
        if from == 0 {
            // It took the place of the one before.
            self.metrics.segments.dec();
        }
        Ok(())
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
            .inspect_err(|_| self.renew = Renew::Unsynced)?;
        self.settle();
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

fn unreadable() -> io::Error {
    io::Error::other(
        "records that could not be synced cannot be read back; restart the gateway, which keeps what is whole",
    )
}
