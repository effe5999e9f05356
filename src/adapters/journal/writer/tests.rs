#![allow(clippy::unwrap_used)]

use super::*;
use crate::adapters::clock::ManualClock;
use crate::audit::chain::check;
use std::sync::Mutex;

/// A disk in memory that breaks when told.
#[derive(Default)]
struct Disk {
    segments: Vec<(u64, Vec<u8>)>,
    /// How many more bytes fit.
    room: Option<usize>,
    fail_sync: bool,
    fail_cut: bool,
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

    /// All whole lines, after checking the chain and that each segment is named by its first.
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
        lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn names(&self) -> Vec<String> {
        let name = |line: &serde_json::Value| {
            let name = line.get("n").or(line.get("note")).unwrap();
            name.as_str().unwrap().to_owned()
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
    fn measure(&self) -> io::Result<u64> {
        let disk = self.0.lock().unwrap();
        Ok(disk
            .segments
            .iter()
            .map(|(_, bytes)| bytes.len() as u64)
            .sum())
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
    fn begin(&mut self, sequence: u64) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        disk.segments.retain(|(_, bytes)| !bytes.is_empty());
        disk.segments.push((sequence, Vec::new()));
        Ok(())
    }
    fn is_gone(&self) -> bool {
        false
    }
}

fn open(durability: Durability, max_bytes: u64) -> (Shared, Writer<Shared>) {
    let disk = Shared::default();
    let settings = Settings {
        dir: "unused".into(),
        durability,
        max_bytes,
        segment_bytes: 4096,
        instance: "t".into(),
    };
    let clock = Arc::new(ManualClock::at(0));
    let mut writer = Writer::new(disk.clone(), settings, clock, Chain::START).unwrap();
    writer.open(&BTreeMap::new(), 0, true).unwrap();
    (disk, writer)
}

type Answer = oneshot::Receiver<Result<u64, JournalError>>;

fn awaited(name: &str) -> (Entry, Answer) {
    let (sender, answer) = oneshot::channel();
    let mut entry = outcome(name);
    entry.answer = Some(sender);
    (entry, answer)
}

fn outcome(name: &str) -> Entry {
    unawaited(format!("\"n\":\"{name}\"").into_bytes())
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
            assert_eq!(append(&mut writer, "a"), Ok(2));
            disk.set(|disk| (disk.room, disk.fail_cut) = (Some(30), !cut_works));
            assert_eq!(append(&mut writer, "b"), Err(JournalError::Full));
            assert_eq!(writer.trouble(), Some(JournalError::Full));
            // A second failure on top must not move the point to cut back to.
            assert!(append(&mut writer, "c").is_err());
            disk.set(|disk| (disk.room, disk.fail_cut) = (None, false));
            assert_eq!(append(&mut writer, "d"), Ok(3));
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
    assert!(writer.needs_tick());
    writer.tick();
    assert_eq!(writer.trouble(), Some(JournalError::Full));
    assert_eq!(disk.names(), ["opened"]);
    disk.set(|disk| disk.room = None);
    writer.tick();
    assert_eq!(writer.trouble(), None);
    let lines = disk.lines();
    // The opening, the new segment's note, what was kept, and a note about the rest.
    assert_eq!(lines.len(), 2 + KEPT + 1);
    assert_eq!(lines[2]["n"], "0");
    assert_eq!(lines[KEPT + 1]["n"], (KEPT - 1).to_string());
    let note = &lines[KEPT + 2];
    assert_eq!(
        (&note["note"], &note["lost"]),
        (&"recovered".into(), &10.into())
    );
    writer.tick();
    assert!(!writer.needs_tick());
    assert_eq!(disk.lines().len(), lines.len());
}

#[test]
fn after_a_failed_sync_the_records_are_withdrawn_and_a_new_segment_begins() {
    let (disk, mut writer) = open(Durability::Group, u64::MAX);
    assert_eq!(append(&mut writer, "a"), Ok(2));
    disk.set(|disk| disk.fail_sync = true);
    assert_eq!(append(&mut writer, "b"), Err(JournalError::Failed));
    disk.set(|disk| disk.fail_sync = false);
    assert_eq!(append(&mut writer, "c"), Ok(4));
    assert_eq!(disk.names(), ["opened", "a", "segment", "c", "recovered"]);
    assert_eq!(disk.0.lock().unwrap().segments.len(), 2);
}

#[test]
fn a_failed_background_sync_begins_a_new_segment_and_is_noted() {
    let (disk, mut writer) = open(Durability::Write, u64::MAX);
    assert_eq!(append(&mut writer, "a"), Ok(2));
    disk.set(|disk| disk.fail_sync = true);
    writer.tick();
    disk.set(|disk| disk.fail_sync = false);
    assert_eq!(append(&mut writer, "b"), Ok(5));
    let lines = disk.lines();
    assert_eq!(
        (&lines[3]["note"], &lines[3]["detail"]),
        (&"recovered".into(), &"sync".into())
    );
    assert_eq!(disk.0.lock().unwrap().segments[1].0, 3);
}

#[test]
fn group_syncs_once_for_all_that_wait_and_not_for_outcomes_and_write_syncs_at_the_tick() {
    for (durability, expected) in [
        (Durability::Group, (1, 1, 2)),
        (Durability::Write, (0, 0, 1)),
    ] {
        let (disk, mut writer) = open(durability, u64::MAX);
        let before = disk.syncs();
        let (entries, mut answers): (Vec<Entry>, Vec<Answer>) =
            (0..10).map(|n| awaited(&n.to_string())).unzip();
        writer.batch(&mut { entries });
        for (at, answer) in answers.iter_mut().enumerate() {
            assert_eq!(answer.try_recv().unwrap(), Ok(2 + at as u64));
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
    let (disk, mut writer) = open(Durability::Write, 4000);
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
    writer.settings.max_bytes = 8000;
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
    assert_eq!(answer.try_recv().unwrap(), Ok(2));
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
    assert_eq!(lines.len(), 3);
    let outcome = &lines[2];
    assert_eq!(
        (&outcome["kind"], &outcome["intent"]),
        (&"outcome".into(), &2.into())
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
fn segments_follow_each_other_at_their_size_and_closing_leaves_a_note() {
    let (disk, mut writer) = open(Durability::Write, u64::MAX);
    for n in 0..100 {
        append(&mut writer, &n.to_string()).unwrap();
    }
    writer.close();
    assert_eq!(disk.names().last().unwrap(), "closed");
    let lines = disk.lines();
    let disk = disk.0.lock().unwrap();
    assert!(disk.segments.len() > 2);
    assert_eq!(lines.len(), 102 + disk.segments.len() - 1);
    for (first, _) in &disk.segments[1..] {
        assert_eq!(lines[*first as usize - 1]["note"], "segment");
    }
    assert!(disk.segments.iter().all(|(_, bytes)| bytes.len() <= 4096));
}
