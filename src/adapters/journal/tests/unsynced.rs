//! Real files whose sync fails.

use super::{key, settings};
use crate::adapters::clock::ManualClock;
use crate::adapters::journal::files::Measured;
use crate::adapters::journal::recover::{Found, read};
use crate::adapters::journal::*;
use crate::audit::chain::{Chain, check};
use crate::audit::checkpoint::{Signed, public_keys};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// Files whose sync fails when told.
struct Flaky(Files, Arc<AtomicBool>);

impl Storage for Flaky {
    fn segment_bytes(&self) -> u64 {
        self.0.segment_bytes()
    }
    fn measure(&self) -> io::Result<Measured> {
        self.0.measure()
    }
    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        self.0.reserve(bytes)
    }
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.append(bytes)
    }
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.0.cut(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        match self.1.swap(false, Ordering::Relaxed) {
            true => Err(io::Error::other("sync")),
            false => self.0.sync(),
        }
    }
    fn begin(&mut self, sequence: u64, reserve: u64) -> io::Result<()> {
        self.0.begin(sequence, reserve)
    }
    fn tail(&self, from: u64) -> io::Result<Vec<u8>> {
        self.0.tail(from)
    }
    fn carry(&mut self, tail: &[u8], from: u64, sequence: u64, reserve: u64) -> io::Result<()> {
        self.0.carry(tail, from, sequence, reserve)
    }
    fn release(&mut self) {
        self.0.release();
    }
    fn is_gone(&self) -> bool {
        self.0.is_gone()
    }
    fn is_removed(&self) -> bool {
        self.0.is_removed()
    }
}

fn writer(dir: &Path, fail: &Arc<AtomicBool>) -> Writer<Flaky> {
    let settings = Settings {
        durability: Durability::Write,
        ..settings(dir)
    };
    let files = Files::open(dir, settings.segment_bytes, "t").unwrap();
    let (storage, clock) = (Flaky(files, fail.clone()), Arc::new(ManualClock::at(0)));
    let handles = (Arc::new(JournalMetrics::new(1).unwrap()), None);
    let made = Writer::new(storage, settings, clock, Chain::START, "J".into(), handles);
    let mut writer = made.unwrap();
    writer.open(&Found::nothing()).unwrap();
    writer
}

fn write(writer: &mut Writer<Flaky>, names: &[&str]) {
    let entry = |name: &&str| Entry {
        body: format!("\"kind\":\"outcome\",\"n\":\"{name}\"").into_bytes(),
        answer: None,
    };
    writer.batch(&mut names.iter().map(entry).collect());
}

/// The journal's records by segment, each called by what it is; after checking everything.
fn found(dir: &Path) -> Vec<(String, Vec<String>)> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "lock")
        .collect();
    names.sort();
    let texts = names.iter().map(|name| fs::read_to_string(dir.join(name)));
    let texts: Vec<String> = texts.map(Result::unwrap).collect();
    let all = texts.concat();
    check(all.lines().map(str::as_bytes)).unwrap();
    let keys = public_keys(&key()).unwrap();
    for signed in all.lines().filter_map(|line| Signed::of(line.as_bytes())) {
        assert_eq!(signed.verify(&keys), Ok(()));
    }
    let paths: Vec<PathBuf> = names.iter().map(|name| dir.join(name)).collect();
    assert!(read(&paths).unwrap().doubled.is_empty());
    let called = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let name = line.get("n").or(line.get("note")).or(line.get("kind"));
        name.unwrap().as_str().unwrap().to_owned()
    };
    let records = texts.iter().map(|text| text.lines().map(called).collect());
    names.into_iter().zip(records).collect()
}

#[test]
fn what_was_not_synced_stands_in_the_next_segment_and_only_there() {
    let dir = TempDir::new().unwrap();
    let fail = Arc::new(AtomicBool::new(false));
    let mut writer = writer(dir.path(), &fail);
    write(&mut writer, &["a"]);
    writer.tick();
    write(&mut writer, &["b", "c"]);
    // What an earlier attempt left behind is in nobody's way.
    fs::write(dir.path().join("carried.tmp"), "half").unwrap();
    fail.store(true, Ordering::Relaxed);
    writer.tick();
    assert_eq!(writer.trouble(), None);
    write(&mut writer, &["d"]);
    writer.close();
    let name = |first: u64| format!("journal-{first:020}.jsonl");
    let list = |names: &[&str]| {
        names
            .iter()
            .map(|n| (*n).to_owned())
            .collect::<Vec<String>>()
    };
    let expected = [
        (name(1), list(&["opened", "checkpoint", "a"])),
        (
            name(4),
            list(&["b", "c", "recovered", "d", "closed", "checkpoint"]),
        ),
    ];
    assert_eq!(found(dir.path()), expected);
    assert_eq!(writer.handles().0.segments.get(), 2);
}

#[test]
fn a_segment_of_which_nothing_was_synced_is_replaced() {
    let dir = TempDir::new().unwrap();
    let fail = Arc::new(AtomicBool::new(false));
    let mut writer = writer(dir.path(), &fail);
    write(&mut writer, &["a"]);
    // A new segment, whose first sync is the one that fails.
    fs::rename(
        dir.path().join("journal-00000000000000000001.jsonl"),
        dir.path().join("moved"),
    )
    .unwrap();
    writer.tick();
    write(&mut writer, &["b"]);
    fail.store(true, Ordering::Relaxed);
    writer.tick();
    assert_eq!(writer.trouble(), None);
    writer.close();
    fs::rename(
        dir.path().join("moved"),
        dir.path().join("journal-00000000000000000001.jsonl"),
    )
    .unwrap();
    let records = found(dir.path());
    assert_eq!(records.len(), 2, "{records:?}");
    assert_eq!(
        records[1].1,
        ["segment", "b", "recovered", "closed", "checkpoint"]
    );
}
