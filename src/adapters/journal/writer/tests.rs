#![allow(clippy::unwrap_used)]

mod limits;
mod unsynced;

use super::*;
use crate::adapters::clock::ManualClock;
use crate::adapters::journal::files::Measured;
use crate::audit::chain::check;
use crate::audit::checkpoint::{Signed, public_keys};
use crate::identity::SigningKey;
use aws_lc_rs::signature::Ed25519KeyPair;
use std::sync::Mutex;

/// A disk in memory that breaks when told.
#[derive(Default)]
struct Disk {
    segments: Vec<(u64, Vec<u8>)>,
    /// How many more bytes fit.
    room: Option<usize>,
    /// How many bytes of the current segment may be reserved.
    space: Option<u64>,
    fail_sync: bool,
    fail_cut: bool,
    /// What was not synced reads as something else.
    stale: bool,
    syncs: usize,
    /// Runs inside the next append.
    meanwhile: Option<Box<dyn FnOnce() + Send>>,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Disk>>);

impl Shared {
    fn set(&self, change: impl FnOnce(&mut Disk)) {
        change(&mut self.0.lock().unwrap());
    }

    fn syncs(&self) -> usize {
        self.0.lock().unwrap().syncs
    }

    /// All whole lines, after checking the chain, its checkpoints, and that each segment is named
    /// by its first.
    fn lines(&self) -> Vec<serde_json::Value> {
        let disk = self.0.lock().unwrap();
        let mut lines = Vec::new();
        for (first, bytes) in &disk.segments {
            let text = std::str::from_utf8(bytes).unwrap();
            assert!(text.is_empty() || text.ends_with('\n'), "torn: {text}");
            assert_eq!(*first, lines.len() as u64 + 1);
            lines.extend(text.lines().map(str::to_owned));
        }
        check(lines.iter().map(String::as_bytes)).unwrap();
        let keys = public_keys(&key()).unwrap();
        for signed in lines.iter().filter_map(|line| Signed::of(line.as_bytes())) {
            assert_eq!((signed.verify(&keys), &*signed.journal), (Ok(()), "J"));
        }
        lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// What stands in the journal, but for checkpoints.
    fn names(&self) -> Vec<String> {
        let all = self.all_names();
        all.into_iter()
            .filter(|name| name != "checkpoint")
            .collect()
    }

    fn all_names(&self) -> Vec<String> {
        let name = |line: &serde_json::Value| {
            let name = line.get("n").or(line.get("note")).or(line.get("kind"));
            name.unwrap().as_str().unwrap().to_owned()
        };
        self.lines().iter().map(name).collect()
    }
}

impl Storage for Shared {
    fn segment_bytes(&self) -> u64 {
        let disk = self.0.lock().unwrap();
        disk.segments
            .last()
            .map_or(0, |(_, bytes)| bytes.len() as u64)
    }
    fn measure(&self) -> io::Result<Measured> {
        let disk = self.0.lock().unwrap();
        let sizes = disk.segments.iter().map(|(_, bytes)| bytes.len() as u64);
        Ok(Measured {
            bytes: sizes.sum(),
            segments: disk.segments.len() as u64,
        })
    }
    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        let space = self.0.lock().unwrap().space;
        if space.is_some_and(|space| self.segment_bytes() + bytes > space) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
    fn release(&mut self) {}
    fn is_removed(&self) -> bool {
        false
    }
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        if let Some(meanwhile) = disk.meanwhile.take() {
            meanwhile();
        }
        let fits = disk.room.unwrap_or(usize::MAX).min(bytes.len());
        disk.room = disk.room.map(|room| room - fits);
        disk.segments.last_mut().unwrap().1.extend(&bytes[..fits]);
        if fits < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        if disk.fail_cut {
            return Err(io::Error::other("cut"));
        }
        disk.segments.last_mut().unwrap().1.truncate(bytes as usize);
        Ok(())
    }
    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        disk.syncs += 1;
        if disk.fail_sync {
            return Err(io::Error::other("sync"));
        }
        Ok(())
    }
    fn begin(&mut self, sequence: u64, reserve: u64) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        if disk.space.is_some_and(|space| reserve > space) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        disk.segments.retain(|(_, bytes)| !bytes.is_empty());
        disk.segments.push((sequence, Vec::new()));
        Ok(())
    }
    fn tail(&self, from: u64) -> io::Result<Vec<u8>> {
        let disk = self.0.lock().unwrap();
        let mut tail = disk.segments.last().unwrap().1[from as usize..].to_vec();
        if disk.stale {
            tail.fill(0);
        }
        Ok(tail)
    }
    fn carry(&mut self, tail: &[u8], from: u64, sequence: u64, _: u64) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        if disk.fail_sync {
            return Err(io::Error::other("carry"));
        }
        let before = &mut disk.segments.last_mut().unwrap().1;
        assert_eq!(before[from as usize..], *tail);
        before.truncate(from as usize);
        disk.segments.retain(|(_, bytes)| !bytes.is_empty());
        disk.segments.push((sequence, tail.to_vec()));
        Ok(())
    }
    fn is_gone(&self) -> bool {
        false
    }
}

fn key() -> SigningKey {
    SigningKey::new(Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap())
}

fn open(durability: Durability, max_bytes: u64) -> (Shared, Writer<Shared>) {
    let (disk, writer, _) = open_at(durability, max_bytes);
    (disk, writer)
}

fn open_at(durability: Durability, max_bytes: u64) -> (Shared, Writer<Shared>, Arc<ManualClock>) {
    let disk = Shared::default();
    let settings = Settings {
        durability,
        max_bytes,
        segment_bytes: 4096,
        ..Settings::new("unused".into(), Arc::new(key()), "t".into())
    };
    let clock = Arc::new(ManualClock::at(0));
    let metrics = Arc::new(JournalMetrics::new(max_bytes).unwrap());
    let handles = (metrics, None);
    let storage = disk.clone();
    let chain = Chain::START;
    let mut writer =
        Writer::new(storage, settings, clock.clone(), chain, "J".into(), handles).unwrap();
    writer.open(&Found::nothing()).unwrap();
    (disk, writer, clock)
}

type Answer = oneshot::Receiver<Result<u64, JournalError>>;

fn awaited(name: &str) -> (Entry, Answer) {
    let (sender, answer) = oneshot::channel();
    let mut entry = outcome(name);
    entry.answer = Some(sender);
    (entry, answer)
}

fn outcome(name: &str) -> Entry {
    unawaited(format!("\"kind\":\"outcome\",\"n\":\"{name}\"").into_bytes())
}

fn refusal(name: &str) -> Entry {
    unawaited(format!("\"kind\":\"refusal\",\"n\":\"{name}\"").into_bytes())
}

/// Writes one awaited record and gives the answer.
fn append(writer: &mut Writer<Shared>, name: &str) -> Result<u64, JournalError> {
    let (entry, mut answer) = awaited(name);
    writer.batch(&mut vec![entry]);
    answer.try_recv().unwrap()
}

#[test]
fn a_failed_batch_leaves_no_trace_and_the_next_one_follows_the_last_good_record() {
    for durability in [Durability::Write, Durability::Group] {
        for cut_works in [true, false] {
            let (disk, mut writer) = open(durability, u64::MAX);
            assert_eq!(append(&mut writer, "a"), Ok(3));
            disk.set(|disk| (disk.room, disk.fail_cut) = (Some(30), !cut_works));
            assert_eq!(append(&mut writer, "b"), Err(JournalError::Full));
            assert_eq!(writer.trouble(), Some(JournalError::Full));
            // A second failure on top must not move the point to cut back to.
            assert!(append(&mut writer, "c").is_err());
            disk.set(|disk| (disk.room, disk.fail_cut) = (None, false));
            assert_eq!(append(&mut writer, "d"), Ok(4));
            assert_eq!(writer.trouble(), None);
            assert_eq!(disk.names(), ["opened", "a", "d", "recovered"]);
        }
    }
}

#[test]
fn outcomes_are_kept_while_the_disk_is_full_and_those_beyond_the_bound_are_counted() {
    let (disk, mut writer) = open(Durability::Write, u64::MAX);
    disk.set(|disk| disk.room = Some(0));
    let mut batch: Vec<Entry> = (0..KEPT + 7).map(|n| outcome(&n.to_string())).collect();
    writer.batch(&mut batch);
    writer.lose(3);
    writer.tick();
    assert_eq!(writer.trouble(), Some(JournalError::Full));
    assert_eq!(disk.names(), ["opened"]);
    disk.set(|disk| disk.room = None);
    writer.tick();
    assert_eq!(writer.trouble(), None);
    let lines = disk.lines();
    // The opening and its checkpoint, the new segment's note, what was kept, a note about the
    // rest, and a checkpoint, since these are many.
    assert_eq!(lines.len(), 3 + KEPT + 2);
    assert_eq!(lines[KEPT + 4]["kind"], "checkpoint");
    assert_eq!(lines[3]["n"], "0");
    assert_eq!(lines[KEPT + 2]["n"], (KEPT - 1).to_string());
    let note = &lines[KEPT + 3];
    assert_eq!(
        (&note["note"], &note["lost"]),
        (&"recovered".into(), &10.into())
    );
    assert_eq!(writer.metrics.lost.get(), 10);
    writer.tick();
    assert_eq!(disk.lines().len(), lines.len());
}

#[test]
fn group_syncs_once_for_all_that_wait_each_for_every_one_and_write_at_the_tick() {
    for (durability, expected) in [
        (Durability::Each, (10, 10, 11)),
        (Durability::Group, (1, 1, 2)),
        (Durability::Write, (0, 0, 1)),
    ] {
        let (disk, mut writer) = open(durability, u64::MAX);
        let before = disk.syncs();
        let (entries, mut answers): (Vec<Entry>, Vec<Answer>) =
            (0..10).map(|n| awaited(&n.to_string())).unzip();
        writer.batch(&mut { entries });
        for (at, answer) in answers.iter_mut().enumerate() {
            assert_eq!(answer.try_recv().unwrap(), Ok(3 + at as u64));
        }
        let after_batch = disk.syncs() - before;
        writer.batch(&mut vec![outcome("o")]);
        let after_outcome = disk.syncs() - before;
        writer.tick();
        writer.tick();
        assert_eq!(
            (after_batch, after_outcome, disk.syncs() - before),
            expected
        );
    }
}

#[test]
fn at_max_bytes_calls_are_refused_while_outcomes_still_fit() {
    let (disk, mut writer) = open(Durability::Write, 6000);
    let mut taken = 0;
    let mut crowded = 0;
    let refused = loop {
        crowded += u32::from(writer.crowded());
        match append(&mut writer, "a") {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 100, "no limit");
    };
    // Strangers were kept out for a while before calls were.
    assert!(crowded > 1 && crowded < taken, "{crowded} of {taken}");
    assert_eq!(refused, JournalError::Full);
    assert_eq!(writer.trouble(), Some(JournalError::Full));
    writer.batch(&mut vec![outcome("o")]);
    assert_eq!(disk.names().last().unwrap(), "o");
    // Even a record that would still fit is refused until there is room again.
    assert_eq!(append(&mut writer, "a"), Err(JournalError::Full));
    // What strangers or refused callers cause waits for room, beside the calls.
    writer.batch(&mut vec![refusal("r")]);
    assert_eq!(disk.names().last().unwrap(), "o");
    writer.settings.max_bytes = 12_000;
    writer.tick();
    assert_eq!(writer.trouble(), None);
    assert!(append(&mut writer, "a").is_ok());
    assert!(
        disk.0
            .lock()
            .unwrap()
            .segments
            .iter()
            .all(|(_, bytes)| bytes.len() <= 4096)
    );
}

#[test]
fn a_call_that_gave_up_waiting_is_not_recorded() {
    let (disk, mut writer) = open(Durability::Write, u64::MAX);
    let (gone, answer) = awaited("gone");
    drop(answer);
    let (here, mut answer) = awaited("here");
    writer.batch(&mut vec![gone, here]);
    assert_eq!(answer.try_recv().unwrap(), Ok(3));
    assert_eq!(disk.names(), ["opened", "here"]);
}

#[test]
fn a_call_that_gives_up_while_it_is_recorded_is_concluded_as_not_attempted() {
    let (disk, mut writer) = open(Durability::Write, u64::MAX);
    let (mut entry, answer) = awaited("");
    entry.body = br#""kind":"intent","n":"i","request_id":"r","agent":"a","generation":2"#.to_vec();
    disk.set(|disk| disk.meanwhile = Some(Box::new(|| drop(answer))));
    writer.batch(&mut vec![entry]);
    let lines = disk.lines();
    assert_eq!(lines.len(), 4);
    let outcome = &lines[3];
    assert_eq!(
        (&outcome["kind"], &outcome["intent"]),
        (&"outcome".into(), &3.into())
    );
    assert_eq!(
        (&outcome["request_id"], &outcome["agent"]),
        (&"r".into(), &"a".into())
    );
    assert_eq!(
        (&outcome["delivery"], &outcome["reached"]),
        (&"not_attempted".into(), &"no".into())
    );
    assert_eq!(writer.open.oldest(), None);
}

#[test]
fn segments_follow_each_other_at_their_size_and_each_ends_with_a_checkpoint() {
    let (disk, mut writer) = open(Durability::Write, u64::MAX);
    for n in 0..100 {
        append(&mut writer, &n.to_string()).unwrap();
    }
    writer.close();
    let lines = disk.lines();
    let disk = disk.0.lock().unwrap();
    assert!(disk.segments.len() > 2);
    // Beside what was asked for: opening and closing, each signed, and two for each turn.
    assert_eq!(lines.len(), 100 + 4 + 2 * (disk.segments.len() - 1));
    for (first, _) in &disk.segments[1..] {
        let first = *first as usize - 1;
        assert_eq!(lines[first]["note"], "segment");
        assert_eq!(lines[first]["journal"], "J");
        assert_eq!(lines[first - 1]["kind"], "checkpoint");
    }
    let closing: Vec<&serde_json::Value> = lines.iter().rev().take(2).collect();
    assert_eq!(closing[0]["kind"], "checkpoint");
    assert_eq!(closing[1]["note"], "closed");
    assert!(disk.segments.iter().all(|(_, bytes)| bytes.len() <= 4096));
}

#[test]
fn a_checkpoint_comes_every_minute_of_the_clock_idle_too_and_a_segment_lasts_a_day() {
    let (disk, mut writer, clock) = open_at(Durability::Write, u64::MAX);
    let count = |disk: &Shared| {
        let names = disk.all_names();
        names.iter().filter(|name| *name == "checkpoint").count()
    };
    assert_eq!(disk.all_names(), ["opened", "checkpoint"]);
    writer.tick();
    clock.advance(Duration::from_millis(59_999));
    writer.tick();
    assert_eq!(count(&disk), 1);
    clock.advance(Duration::from_millis(1));
    for _ in 0..3 {
        writer.tick();
    }
    assert_eq!(count(&disk), 2);
    clock.advance(Duration::from_secs(60));
    writer.tick();
    assert_eq!(count(&disk), 3);
    let lines = disk.lines();
    assert_eq!(lines[3]["size"], 3);
    assert_eq!(lines[3]["chain_head"], lines[3]["prev"]);
    assert_eq!(writer.metrics.checkpoint_timestamp.get(), 120);
    // Of the generation in force, since a record told of it.
    let config = br#""kind":"config","generation":7,"policy_digest":"d7""#;
    writer.batch(&mut vec![unawaited(config.to_vec())]);
    clock.advance(Duration::from_secs(86_400 - 121));
    writer.tick();
    assert_eq!(disk.0.lock().unwrap().segments.len(), 1);
    assert_eq!(disk.lines().last().unwrap()["generation"], 7);
    clock.advance(Duration::from_secs(60));
    writer.tick();
    // The old one is signed, and so is the new one.
    assert_eq!(
        disk.all_names()[5..],
        ["checkpoint", "segment", "checkpoint"]
    );
    assert_eq!(disk.0.lock().unwrap().segments.len(), 2);
}

#[test]
fn a_device_without_room_for_an_outcome_takes_no_call_but_every_outcome() {
    let (disk, mut writer) = open(Durability::Write, u64::MAX);
    let first = append(&mut writer, "a").unwrap();
    assert_eq!(first, 3);
    // Room for some records, and not for all that a call may need.
    disk.set(|disk| disk.space = Some(8000));
    assert_eq!(append(&mut writer, "b"), Err(JournalError::Full));
    assert_eq!(writer.trouble(), Some(JournalError::Full));
    writer.batch(&mut vec![outcome("o"), refusal("r")]);
    writer.tick();
    assert_eq!(disk.names(), ["opened", "a", "o"]);
    disk.set(|disk| disk.space = None);
    writer.tick();
    assert_eq!(writer.trouble(), None);
    assert_eq!(disk.names(), ["opened", "a", "o", "r", "recovered"]);
    assert!(append(&mut writer, "c").is_ok());
}

#[test]
fn a_segment_that_is_due_goes_on_while_there_is_no_room_for_another() {
    let (disk, mut writer, clock) = open_at(Durability::Write, u64::MAX);
    append(&mut writer, "a").unwrap();
    disk.set(|disk| disk.space = Some(4096));
    clock.advance(Duration::from_secs(90_000));
    writer.batch(&mut vec![outcome("o")]);
    writer.batch(&mut vec![outcome("p")]);
    assert_eq!(disk.names(), ["opened", "a", "o", "p"]);
    assert_eq!(disk.0.lock().unwrap().segments.len(), 1);
    disk.set(|disk| disk.space = None);
    writer.batch(&mut vec![outcome("q")]);
    assert_eq!(disk.names(), ["opened", "a", "o", "p", "segment", "q"]);
    assert_eq!(disk.0.lock().unwrap().segments.len(), 2);
}
