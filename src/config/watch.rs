//! Reloading: when does a changed file become the next generation.
//!
//! A look reads everything and compares content, so it does not matter how a file was replaced
//! (FC-78). Changed content must stay the same for a while before it is compiled, since a prefix
//! of YAML is often valid YAML with fewer rules (FC-79). What is broken changes nothing (I-8) and
//! is reported once for each distinct content (FC-77).

use super::capture::{Capture, ContentHash};
use super::check::{Loaded, Running, compile};
use super::snapshot::Snapshot;
use crate::source::Problems;
use std::path::PathBuf;
use std::time::Duration;

/// How often files are looked at.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// How long changed content must stay the same. Longer than an editor or script pauses between
/// two writes, short enough to be "a few seconds late".
pub const SETTLE: Duration = Duration::from_secs(4);

/// Looks for the next generation of one gateway file.
#[derive(Debug)]
pub struct Reloader {
    file: PathBuf,
    settle: Duration,
    running: Running,
    /// Of the last good configuration.
    generation: u64,
    /// Content of the last good configuration.
    good: ContentHash,
    /// Changed content, and when it was first seen.
    pending: Option<(ContentHash, Duration)>,
    /// Broken content that was reported.
    reported: Option<ContentHash>,
}

/// What a look found.
#[derive(Debug)]
pub enum Look {
    /// The content of the last good configuration.
    Unchanged,
    /// Changed content that may still be in the making.
    Settling,
    /// The next generation.
    Loaded(Box<Loaded>),
    /// Content with errors, seen for the first time; the last good configuration stays.
    Broken(Problems),
    /// Broken content that was reported before.
    StillBroken,
}

impl Reloader {
    /// Loads the first generation and starts from there.
    ///
    /// # Errors
    /// Every problem of the files; there is no last good configuration yet.
    pub fn start(file: PathBuf, settle: Duration) -> Result<(Loaded, Reloader), Problems> {
        let capture = Capture::take(&file);
        let loaded = compile(&capture, 1, None)?;
        let reloader = Reloader {
            file,
            settle,
            running: Running::from(&loaded.snapshot),
            generation: loaded.snapshot.generation,
            good: capture.hash,
            pending: None,
            reported: None,
        };
        Ok((loaded, reloader))
    }

    /// How often to look: [`INTERVAL`], and at least once while changed content settles.
    pub fn interval(&self) -> Duration {
        INTERVAL.min(self.settle)
    }

    /// Looks at the files. `now` is monotonic time since any fixed moment.
    pub fn look(&mut self, now: Duration) -> Look {
        let capture = Capture::take(&self.file);
        if capture.hash == self.good {
            self.pending = None;
            // The same mistake after a good state is a new event.
            self.reported = None;
            return Look::Unchanged;
        }
        let since = match self.pending {
            Some((hash, since)) if hash == capture.hash => since,
            Some(_) | None => {
                self.pending = Some((capture.hash, now));
                return Look::Settling;
            }
        };
        if now.saturating_sub(since) < self.settle {
            return Look::Settling;
        }
        if self.reported == Some(capture.hash) {
            return Look::StillBroken;
        }
        match compile(&capture, self.generation + 1, Some(&self.running)) {
            Ok(loaded) => {
                self.accept(&loaded.snapshot, capture.hash);
                Look::Loaded(Box::new(loaded))
            }
            Err(problems) => {
                self.reported = Some(capture.hash);
                Look::Broken(problems)
            }
        }
    }

    /// Makes the next look report broken content again, as an operator who asks for a reload
    /// expects.
    pub fn trigger(&mut self) {
        self.reported = None;
    }

    fn accept(&mut self, snapshot: &Snapshot, hash: ContentHash) {
        self.generation = snapshot.generation;
        self.good = hash;
        self.pending = None;
        self.reported = None;
    }
}
