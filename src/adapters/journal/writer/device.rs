//! Bytes onto the device, and what becomes of those that do not get there.

use super::Writer;
use super::turn::Renew;
use crate::adapters::journal::files::Storage;
use crate::pipeline::ports::JournalError;
use std::io;
use std::time::Duration;

impl<S: Storage> Writer<S> {
    /// Puts `buffer` behind the last good byte, as durably as its records want.
    pub(super) fn put(&mut self) -> io::Result<()> {
        let good = self.storage.segment_bytes();
        let began = self.clock.monotonic();
        if let Err(error) = self.storage.append(&self.buffer) {
            self.undo(good);
            return Err(error);
        }
        self.metrics
            .write_seconds
            .observe(self.since(began).as_secs_f64());
        if self.group {
            if let Err(error) = self.timed_sync() {
                // Whether a failed sync left the pages clean is unknown, so a second one would
                // prove nothing: the records are withdrawn and the next go elsewhere.
                self.undo(good);
                self.dirty = false;
                self.renew = Renew::Unsynced;
                return Err(error);
            }
            self.dirty = false;
        } else {
            self.dirty = true;
        }
        self.total += self.buffer.len() as u64;
        Ok(())
    }

    /// Removes what a failed batch left, now or before the next write.
    fn undo(&mut self, good: u64) {
        if self.storage.cut(good).is_err() {
            self.cut = Some(good);
        }
    }

    pub(super) fn sync(&mut self) -> Result<(), JournalError> {
        if !std::mem::take(&mut self.dirty) {
            return Ok(());
        }
        self.timed_sync().map_err(|error| {
            self.renew = Renew::Unsynced;
            self.fail(&error)
        })?;
        self.settle();
        Ok(())
    }

    /// All that was written is durable.
    pub(super) fn settle(&mut self) {
        self.durable = (self.storage.segment_bytes(), self.chain);
    }

    pub(super) fn timed_sync(&mut self) -> io::Result<()> {
        let began = self.clock.monotonic();
        let result = self.storage.sync();
        let took = self.since(began).as_secs_f64();
        self.metrics.sync_seconds.observe(took);
        result
    }

    fn since(&self, began: Duration) -> Duration {
        self.clock.monotonic().saturating_sub(began)
    }

    pub(super) fn fail(&mut self, error: &io::Error) -> JournalError {
        let kind = kind_of(error);
        if self.failed.is_none() {
            tracing::error!("the journal cannot be written, so calls are refused: {error}");
        }
        self.failed = Some(kind);
        self.detail = error.to_string();
        kind
    }
}

/// What an error means to callers.
pub(in super::super) fn kind_of(error: &io::Error) -> JournalError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            JournalError::Full
        }
        _ => JournalError::Failed,
    }
}

/// A gauge's value.
pub(super) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
