//! Power loss, tried out: a disk that remembers what was synced, and forgets of the rest whatever
//! it likes, page by page.

use super::{key, settings};
use crate::adapters::clock::ManualClock;
use crate::adapters::journal::files::Measured;
use crate::adapters::journal::recover::Found;
use crate::adapters::journal::*;
use crate::adapters::random::SystemRandom;
use crate::audit::chain::{Chain, check};
use crate::audit::checkpoint::{Signed, public_keys};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use tokio::sync::oneshot;

const PAGE: usize = 4096;

/// One segment: what was written, and how much of it is on the platters for sure.
#[derive(Clone)]
struct Segment {
    first: u64,
    bytes: Vec<u8>,
    synced: usize,
    /// What stood there before it was cut, which is not durable by itself.
    uncut: Option<Vec<u8>>,
    /// A sync failed: no later one makes durable what was written before.
    failed: bool,
}

impl Segment {
    fn new(first: u64, bytes: Vec<u8>) -> Segment {
        Segment {
            first,
            synced: bytes.len(),
            bytes,
            uncut: None,
            failed: false,
        }
    }
}

/// A disk whose names are durable as soon as they are made, as the contract of [`Storage::begin`]
/// says, and whose bytes are when they are synced.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<Vec<Segment>>>, Arc<AtomicUsize>);

impl Disk {
    fn last<T>(&self, with: impl FnOnce(&mut Segment) -> T) -> T {
        with(self.0.lock().unwrap().last_mut().unwrap())
    }

    /// So many syncs will fail.
    fn fail(&self, syncs: usize) {
        self.1.store(syncs, Ordering::Relaxed);
    }

    fn sound(&self) -> io::Result<()> {
        let left = self.1.load(Ordering::Relaxed);
        self.fail(left.saturating_sub(1));
        match left {
            0 => Ok(()),
            _ => Err(io::Error::other("sync")),
        }
    }

    /// What is there after the power came back. `luck` decides for each page that was not synced
    /// whether it had reached the disk, and `reach` how long the file says that it is.
    fn lose(&self, luck: &[bool], reach: usize, dir: &Path) {
        let mut luck = luck.iter().cycle();
        for segment in self.0.lock().unwrap().iter() {
            let Segment { first, synced, .. } = segment;
            let uncut = segment.uncut.as_ref().filter(|_| *luck.next().unwrap());
            let bytes = uncut.unwrap_or(&segment.bytes);
            let open = bytes.len() - synced;
            let length = synced + reach.min(open);
            let mut found = bytes[..length].to_vec();
            for start in (synced / PAGE * PAGE..length).step_by(PAGE) {
                if !*luck.next().unwrap() {
                    let end = (start + PAGE).min(length);
                    found[start.max(*synced)..end].fill(0);
                }
            }
            fs::write(dir.join(format!("journal-{first:020}.jsonl")), found).unwrap();
        }
    }
}

impl Storage for Disk {
    fn segment_bytes(&self) -> u64 {
        let segments = self.0.lock().unwrap();
        segments.last().map_or(0, |s| s.bytes.len() as u64)
    }
    fn measure(&self) -> io::Result<Measured> {
        let segments = self.0.lock().unwrap();
        Ok(Measured {
            bytes: segments.iter().map(|s| s.bytes.len() as u64).sum(),
            segments: segments.len() as u64,
        })
    }
    fn reserve(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.last(|segment| segment.bytes.extend(bytes));
        Ok(())
    }
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.last(|segment| segment.bytes.truncate(bytes as usize));
        Ok(())
    }
    fn sync(&mut self) -> io::Result<()> {
        let sound = self.sound();
        self.last(|segment| {
            segment.failed |= sound.is_err();
            if !segment.failed {
                segment.synced = segment.bytes.len();
            }
        });
        sound
    }
    fn begin(&mut self, first: u64, _: u64) -> io::Result<()> {
        let mut segments = self.0.lock().unwrap();
        segments.push(Segment::new(first, Vec::new()));
        Ok(())
    }
    fn tail(&self, from: u64) -> io::Result<Vec<u8>> {
        Ok(self.last(|segment| segment.bytes[from as usize..].to_vec()))
    }
    fn carry(&mut self, tail: &[u8], from: u64, first: u64, _: u64) -> io::Result<()> {
        self.sound()?;
        self.last(|segment| {
            segment.uncut = Some(segment.bytes.clone());
            segment.bytes.truncate(from as usize);
        });
        let mut segments = self.0.lock().unwrap();
        segments.retain(|segment| segment.first != first);
        segments.push(Segment::new(first, tail.to_vec()));
        Ok(())
    }
    fn release(&mut self) {}
    fn is_gone(&self) -> bool {
        false
    }
    fn is_removed(&self) -> bool {
        false
    }
}

/// What happens to the journal before the power goes.
#[derive(Debug, Clone)]
enum Step {
    /// A batch of calls, and of outcomes of earlier ones, with so many bytes of claims each.
    Batch(usize, usize, usize),
    /// A second passes, and so many more.
    Tick(u64),
    /// The next syncs fail, so many.
    Fail(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..5usize, 0..5usize, prop_oneof![Just(10usize), Just(900), Just(5000)])
            .prop_map(|(calls, outcomes, size)| Step::Batch(calls, outcomes, size)),
        2 => (1..90u64).prop_map(Step::Tick),
        1 => (1..4usize).prop_map(Step::Fail),
    ]
}

/// Carries a journal through `steps`; the names of the calls that were answered, and how many of
/// them were answered before the last sync.
fn run_through(durability: Durability, steps: &[Step], disk: &Disk) -> (Vec<String>, usize) {
    let clock = Arc::new(ManualClock::at(1_798_675_199_000));
    let settings = Settings {
        durability,
        segment_bytes: 20_000,
        ..settings(Path::new("unused"))
    };
    let handles = (Arc::new(JournalMetrics::new(1).unwrap()), None);
    let (storage, chain) = (disk.clone(), Chain::START);
    let made = Writer::new(storage, settings, clock.clone(), chain, "J".into(), handles);
    let mut writer = made.unwrap();
    writer.open(&Found::nothing()).unwrap();
    let (mut answered, mut open, mut safe, mut named) = (Vec::new(), Vec::new(), 0, 0);
    for step in steps {
        match step {
            Step::Batch(calls, outcomes, size) => {
                let mut batch = Vec::new();
                for intent in open.drain(..open.len().min(*outcomes)) {
                    let filler = "y".repeat(*size);
                    let body = format!(r#""kind":"outcome","intent":{intent},"y":"{filler}""#);
                    batch.push(Entry {
                        body: body.into_bytes(),
                        answer: None,
                    });
                }
                let mut answers = Vec::new();
                for _ in 0..*calls {
                    let name = format!("r{named}");
                    named += 1;
                    let filler = "x".repeat(*size);
                    let body = format!(
                        r#""kind":"intent","request_id":"{name}","agent":"a","x":"{filler}""#
                    );
                    let (sender, answer) = oneshot::channel();
                    batch.push(Entry {
                        body: body.into_bytes(),
                        answer: Some(sender),
                    });
                    answers.push((name, answer));
                }
                writer.batch(&mut batch);
                for (name, mut answer) in answers {
                    if let Ok(intent) = answer.try_recv().unwrap() {
                        open.push(intent);
                        answered.push(name);
                    }
                }
            }
            Step::Tick(seconds) => {
                clock.advance(Duration::from_secs(*seconds));
                writer.tick();
                if writer.trouble().is_none() {
                    safe = answered.len();
                }
            }
            Step::Fail(syncs) => disk.fail(*syncs),
        }
    }
    (answered, safe)
}

/// What an auditor finds, after checking chain and checkpoints.
fn read(dir: &Path) -> Vec<serde_json::Value> {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    paths.sort();
    let bytes: Vec<u8> = paths
        .iter()
        .flat_map(|path| fs::read(path).unwrap())
        .collect();
    let lines: Vec<&[u8]> = bytes[..bytes.len() - 1].split(|b| *b == b'\n').collect();
    check(lines.iter().copied()).unwrap();
    let keys = public_keys(&key()).unwrap();
    for signed in lines.iter().filter_map(|line| Signed::of(line)) {
        assert_eq!(signed.verify(&keys), Ok(()));
    }
    let parse = |line: &&[u8]| serde_json::from_slice(line).unwrap();
    lines.iter().map(parse).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_was_answered_as_durable_is_there_after_a_power_loss_and_the_rest_is_clean(
        durability in prop_oneof![
            Just(Durability::Write), Just(Durability::Group), Just(Durability::Each)
        ],
        steps in prop::collection::vec(step(), 1..14),
        luck in prop::collection::vec(any::<bool>(), 1..12),
        reach in prop_oneof![Just(0usize), Just(usize::MAX), 0..30_000usize],
    ) {
        let disk = Disk::default();
        let (answered, safe) = run_through(durability, &steps, &disk);
        let dir = TempDir::new().unwrap();
        disk.lose(&luck, reach, dir.path());
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(1_798_675_299_000));
        for _ in 0..2 {
            let opened = FileJournal::open(settings(dir.path()), clock.clone(), &SystemRandom);
            opened.unwrap().close();
        }
        let records = read(dir.path());
        let recorded: Vec<&str> = records
            .iter()
            .filter(|record| record["kind"] == "intent")
            .map(|record| record["request_id"].as_str().unwrap())
            .collect();
        // Nothing is missing in between, whatever was lost.
        prop_assert!(answered.iter().map(String::as_str).collect::<Vec<_>>().starts_with(&recorded));
        let promised = match durability {
            Durability::Write => safe,
            Durability::Group | Durability::Each => answered.len(),
        };
        prop_assert!(recorded.len() >= promised, "{} of {promised}", recorded.len());
        // Every intent has exactly one outcome, and the journal kept its name.
        let mut intents: Vec<&serde_json::Value> = Vec::new();
        for record in &records {
            if record["kind"] == "intent" {
                intents.push(&record["seq"]);
            } else if record["kind"] == "outcome" {
                let found = intents.iter().position(|seq| **seq == record["intent"]);
                prop_assert!(found.is_some(), "two outcomes, or none to have one: {record}");
                intents.swap_remove(found.unwrap());
            }
        }
        prop_assert!(intents.is_empty());
        prop_assert!(records.iter().all(|r| r.get("journal").is_none_or(|j| j == "J")));
    }
}
