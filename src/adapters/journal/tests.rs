#![allow(clippy::unwrap_used)]

use super::*;
use crate::adapters::clock::ManualClock;
use crate::audit::chain::Chain;
use std::collections::BTreeMap;
use std::fs;
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
    fn measure(&self) -> io::Result<u64> {
        Ok(self.bytes)
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
    fn begin(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn is_gone(&self) -> bool {
        false
    }
}

fn settings(dir: &Path) -> Settings {
    Settings {
        dir: dir.to_path_buf(),
        durability: Durability::Write,
        max_bytes: u64::MAX,
        segment_bytes: Settings::SEGMENT_BYTES,
        instance: "t".into(),
    }
}

fn slow() -> (FileJournal, Receiver<()>, Sender<()>) {
    let (started, starts) = channel();
    let (goes, go) = channel();
    let bytes = 0;
    let clock = Arc::new(ManualClock::at(0));
    let storage = Slow { started, go, bytes };
    let writer = Writer::new(storage, settings(Path::new("unused")), clock, Chain::START).unwrap();
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
    // The closing note; all else needed two writes.
    goes.send(()).unwrap();
    journal.close();
    assert_eq!(starts.try_iter().count(), 1);
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
    let files = Files::open(dir.path()).unwrap();
    let clock = Arc::new(ManualClock::at(0));
    let mut writer = Writer::new(files, settings(dir.path()), clock, Chain::START).unwrap();
    writer.open(&BTreeMap::new(), 0, true).unwrap();
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
    // The second record went into the renamed file, none is in both or torn; new ones open with a note.
    let lines = |name: &str| {
        fs::read_to_string(dir.path().join(name))
            .unwrap()
            .lines()
            .count()
    };
    assert_eq!(lines("old"), 2);
    assert_eq!(lines("journal-00000000000000000003.jsonl"), 2);
    fs::remove_dir_all(dir.path()).unwrap();
    writer.tick();
    write(&mut writer);
    assert_eq!(lines("journal-00000000000000000005.jsonl"), 2);
    assert_eq!(writer.trouble(), None);
}
