//! Copies of checkpoints outside of the journal: in a file, and on stdout.
//!
//! A thread of their own writes them, so that a pipe that nobody reads keeps nobody waiting. What
//! it cannot take in time is counted as not copied.

use crate::pipeline::ports::{CheckpointCopies, JournalMetrics};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Most checkpoints that wait for a place that does not take them.
const WAITING: usize = 16;
/// How long closing waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// The way to the thread that copies.
pub(super) struct Copies {
    lines: Mutex<Option<SyncSender<Vec<u8>>>>,
    done: Mutex<Receiver<()>>,
    trouble: Arc<Mutex<Option<String>>>,
    metrics: Arc<JournalMetrics>,
}

impl Copies {
    /// Starts the thread; `None` when no place is configured.
    pub(super) fn start(
        places: &CheckpointCopies,
        metrics: &Arc<JournalMetrics>,
    ) -> io::Result<Option<Copies>> {
        if places.file.is_none() && !places.stdout {
            return Ok(None);
        }
        let (lines, taken) = sync_channel::<Vec<u8>>(WAITING);
        let (sender, done) = channel();
        let trouble = Arc::new(Mutex::new(None));
        let mut places = Places {
            file: places.file.clone(),
            stdout: places.stdout,
            torn: false,
        };
        let (told, counted) = (trouble.clone(), metrics.clone());
        thread::Builder::new()
            .name("checkpoints".into())
            .spawn(move || {
                // Dropped last: closing waits for it.
                let _done = sender;
                for line in taken {
                    let failed = places.write(&line).err();
                    if let Some(why) = &failed {
                        counted.checkpoint_errors.inc();
                        tracing::warn!("a checkpoint was not copied: {why}");
                    }
                    *locked(&told) = failed;
                }
            })?;
        Ok(Some(Copies {
            lines: Mutex::new(Some(lines)),
            done: Mutex::new(done),
            trouble,
            metrics: metrics.clone(),
        }))
    }

    /// Sends a checkpoint's line, with its line feed, on its way; never waits.
    pub(super) fn send(&self, line: &[u8]) {
        let lines = locked(&self.lines);
        let Some(lines) = lines.as_ref() else { return };
        if lines.try_send(line.to_vec()).is_err() {
            self.metrics.checkpoint_errors.inc();
            let why = "earlier copies are still on their way; is anybody reading?";
            tracing::warn!("a checkpoint was not copied: {why}");
            *locked(&self.trouble) = Some(why.to_owned());
        }
    }

    /// Why the last copy failed.
    pub(super) fn trouble(&self) -> Option<String> {
        locked(&self.trouble).clone()
    }

    /// Waits a while for what is on its way.
    pub(super) fn close(&self) {
        if locked(&self.lines).take().is_some() {
            // An error is what is waited for: the thread has dropped its end.
            let _ = locked(&self.done).recv_timeout(PATIENCE);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Places {
    file: Option<PathBuf>,
    stdout: bool,
    /// The file may end in half a line.
    torn: bool,
}

impl Places {
    /// Writes to every place, whatever becomes of the others.
    fn write(&mut self, line: &[u8]) -> Result<(), String> {
        let mut failed = Vec::new();
        if let Some(file) = self.file.clone()
            && let Err(error) = self.append(&file, line)
        {
            failed.push(format!("`{}`: {error}", file.display()));
        }
        if self.stdout {
            let mut stdout = io::stdout().lock();
            if let Err(error) = stdout.write_all(line).and_then(|()| stdout.flush()) {
                failed.push(format!("stdout: {error}"));
            }
        }
        match failed.is_empty() {
            true => Ok(()),
            false => Err(failed.join("; ")),
        }
    }

    /// The file is opened each time: whoever takes the copies away may rename or empty it.
    fn append(&mut self, path: &Path, line: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.create(true).append(true).mode(0o600).open(path)?;
        let torn = std::mem::replace(&mut self.torn, true);
        let bytes = match torn {
            true => &[b"\n", line].concat()[..],
            false => line,
        };
        file.write_all(bytes)?;
        self.torn = false;
        match file.sync_data() {
            // A pipe has nothing to sync.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn started(file: PathBuf) -> (Copies, Arc<JournalMetrics>) {
        let metrics = Arc::new(JournalMetrics::new(1).unwrap());
        let places = CheckpointCopies {
            file: Some(file),
            stdout: false,
        };
        let copies = Copies::start(&places, &metrics).unwrap().unwrap();
        (copies, metrics)
    }

    #[test]
    fn copies_are_appended_and_a_place_that_fails_is_told_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("later/checkpoints");
        let (copies, metrics) = started(file.clone());
        copies.send(b"one\n");
        while metrics.checkpoint_errors.get() == 0 {
            thread::yield_now();
        }
        while copies.trouble().is_none() {
            thread::yield_now();
        }
        assert!(copies.trouble().unwrap().contains("later/checkpoints"));
        std::fs::create_dir(dir.path().join("later")).unwrap();
        copies.send(b"two\n");
        copies.send(b"three\n");
        copies.close();
        assert_eq!(copies.trouble(), None);
        assert_eq!(std::fs::read(&file).unwrap(), b"two\nthree\n");
        assert_eq!(metrics.checkpoint_errors.get(), 1);
        // After closing nothing is taken, and nothing waits.
        copies.send(b"four\n");
        copies.close();
    }

    #[test]
    fn half_a_line_does_not_spoil_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("checkpoints");
        std::fs::write(&file, "{\"half").unwrap();
        let mut places = Places {
            file: Some(file.clone()),
            stdout: false,
            torn: true,
        };
        places.write(b"whole\n").unwrap();
        places.write(b"next\n").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"{\"half\nwhole\nnext\n");
    }

    #[test]
    fn a_pipe_that_nobody_reads_keeps_nobody_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        // Opening a pipe for writing waits for a reader, so the thread takes the first line and
        // stays with it.
        let (copies, metrics) = started(pipe.clone());
        while metrics.checkpoint_errors.get() == 0 {
            copies.send(b"line\n");
        }
        assert!(copies.trouble().unwrap().contains("still on their way"));
        // A reader lets the thread go.
        let read = std::fs::read(&pipe).unwrap();
        assert!(read.starts_with(b"line\n"));
        copies.close();
    }
}
