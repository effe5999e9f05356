#![allow(clippy::unwrap_used)]

mod power_loss;
mod unsynced;

use super::files::Measured;
use super::queue::{PATIENCE, QUEUE_RECORDS};
use super::recover::Found;
use super::*;
use crate::adapters::clock::ManualClock;
use crate::audit::chain::Chain;
use aws_lc_rs::signature::Ed25519KeyPair;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use tempfile::TempDir;

/// A device whose every write waits for a word; when nobody is left to give it, it panics.
struct Slow {
    started: Sender<()>,
    go: Receiver<()>,
    bytes: u64,
}

impl Storage for Slow {
    fn segment_bytes(&self) -> u64 {
        self.bytes
    }
    fn measure(&self) -> io::Result<Measured> {
        Ok(Measured {
            bytes: self.bytes,
            segments: 1,
        })
    }
    fn reserve(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn tail(&self, _: u64) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn carry(&mut self, _: &[u8], _: u64, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn release(&mut self) {}
    fn is_removed(&self) -> bool {
        false
    }
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.started.send(()).unwrap();
        self.go.recv().unwrap();
        self.bytes += bytes.len() as u64;
        Ok(())
    }
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes = bytes;
        Ok(())
    }
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn begin(&mut self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn is_gone(&self) -> bool {
        false
    }
}

pub(super) fn settings(dir: &Path) -> Settings {
    Settings {
        max_bytes: u64::MAX,
        ..Settings::new(dir.to_path_buf(), Arc::new(key()), "t".into())
    }
}

pub(super) fn key() -> SigningKey {
    SigningKey::new(Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap())
}

fn writer<S: Storage>(storage: S, dir: &Path) -> Writer<S> {
    let clock = Arc::new(ManualClock::at(0));
    let handles = (Arc::new(JournalMetrics::new(1).unwrap()), None);
    let (settings, chain) = (settings(dir), Chain::START);
    Writer::new(storage, settings, clock, chain, "J".into(), handles).unwrap()
}

fn slow() -> (FileJournal, Receiver<()>, Sender<()>) {
    let (started, starts) = channel();
    let (goes, go) = channel();
    let bytes = 0;
    let writer = writer(Slow { started, go, bytes }, Path::new("unused"));
    (FileJournal::start(writer).unwrap(), starts, goes)
}

fn record() -> RecordBody {
    RecordBody(b"\"kind\":\"note\"".to_vec())
}

fn wait(receipt: Receipt) -> Result<u64, JournalError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async { receipt.wait().await.map(|recorded| recorded.sequence()) })
}

#[test]
fn a_device_that_does_not_answer_shows_as_trouble_and_what_gathers_is_one_batch() {
    let (journal, starts, goes) = slow();
    let later = || Instant::now() + PATIENCE + Duration::from_millis(1);
    let trouble = || journal.shared.lock().trouble_at(later());
    assert_eq!(trouble(), None);
    let first = journal.append(record());
    starts.recv().unwrap();
    // Now the thread is inside the write.
    let gathered: Vec<Receipt> = (0..100).map(|_| journal.append(record())).collect();
    assert_eq!(journal.trouble(), None);
    assert_eq!(trouble(), Some(JournalError::TimedOut));
    goes.send(()).unwrap();
    assert_eq!(wait(first), Ok(1));
    starts.recv().unwrap();
    goes.send(()).unwrap();
    for (at, receipt) in gathered.into_iter().enumerate() {
        assert_eq!(wait(receipt), Ok(2 + at as u64));
    }
    // The closing note and its checkpoint; all else needed two writes.
    goes.send(()).unwrap();
    goes.send(()).unwrap();
    journal.close();
    assert_eq!(starts.try_iter().count(), 2);
}

#[test]
fn a_queue_behind_a_device_that_does_not_answer_is_bounded() {
    let (journal, starts, goes) = slow();
    let first = journal.append(record());
    starts.recv().unwrap();
    let mut receipts: Vec<Receipt> = (0..QUEUE_RECORDS)
        .map(|_| journal.append(record()))
        .collect();
    assert_eq!(wait(journal.append(record())), Err(JournalError::TimedOut));
    journal.queue(record());
    assert_eq!(journal.shared.lock().lost, 1);
    for _ in 0..5 {
        goes.send(()).unwrap();
    }
    assert_eq!(wait(first), Ok(1));
    assert_eq!(wait(receipts.pop().unwrap()), Ok(1 + QUEUE_RECORDS as u64));
    journal.close();
}

#[test]
fn a_thread_that_dies_refuses_everything() {
    let (journal, starts, goes) = slow();
    let under_way = journal.append(record());
    starts.recv().unwrap();
    let queued = journal.append(record());
    drop(goes);
    assert_eq!(wait(under_way), Err(JournalError::Failed));
    assert_eq!(wait(queued), Err(JournalError::Failed));
    assert_eq!(wait(journal.append(record())), Err(JournalError::Failed));
    assert_eq!(journal.trouble(), Some(JournalError::Failed));
    journal.close();
}

#[test]
fn a_segment_that_was_renamed_or_removed_is_left_for_a_new_one() {
    let dir = TempDir::new().unwrap();
    let files = Files::open(dir.path(), 1 << 20, "t").unwrap();
    let mut writer = writer(files, dir.path());
    writer.open(&Found::nothing()).unwrap();
    let write = |writer: &mut Writer<Files>| {
        let entry = Entry {
            body: record().0,
            answer: None,
        };
        writer.batch(&mut vec![entry]);
    };
    let first = dir.path().join("journal-00000000000000000001.jsonl");
    fs::rename(&first, dir.path().join("old")).unwrap();
    write(&mut writer);
    writer.tick();
    write(&mut writer);
    let lines = |name: &str| {
        fs::read_to_string(dir.path().join(name))
            .unwrap()
            .lines()
            .count()
    };
    // The second record went into the renamed file, which was signed at its end; none is in both
    // or torn; new ones open with a note.
    assert_eq!(lines("old"), 4);
    assert_eq!(lines("journal-00000000000000000005.jsonl"), 2);
    fs::remove_dir_all(dir.path()).unwrap();
    // Noticed by the next record itself: nothing is written where nobody can read it.
    write(&mut writer);
    assert_eq!(lines("journal-00000000000000000007.jsonl"), 2);
    assert_eq!(writer.trouble(), None);
    // The lock is there again, and held.
    assert!(matches!(
        Files::open(dir.path(), 1 << 20, "other"),
        Err(OpenError::Locked(_, Some(Holder { pid, .. }))) if pid == std::process::id()
    ));
}

#[test]
fn space_is_reserved_ahead_without_lengthening_the_segment_and_given_back() {
    use std::os::unix::fs::MetadataExt;
    let dir = TempDir::new().unwrap();
    let mut files = Files::open(dir.path(), 64 << 20, "t").unwrap();
    files.begin(1, 1 << 20).unwrap();
    files.append(b"record\n").unwrap();
    let path = dir.path().join("journal-00000000000000000001.jsonl");
    let reserved = || {
        let metadata = fs::metadata(&path).unwrap();
        (metadata.len(), metadata.blocks() * 512 >= 4 << 20)
    };
    assert_eq!(reserved(), (7, true));
    files.begin(2, 0).unwrap();
    assert_eq!(reserved(), (7, false));
}
