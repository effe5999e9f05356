//! Opening a journal that a crash, or somebody, left behind.

use super::{append, intent, open, outcome, records, segments, settings};
use portcullis::adapters::journal::OpenError;
use portcullis::pipeline::ports::{Durability, Journal};
use proptest::prelude::*;
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

#[test]
fn intents_that_a_crash_left_open_become_unknown_once() {
    let dir = TempDir::new().unwrap();
    let mut settings = settings(dir.path(), Durability::Write);
    // Small segments: an intent and its outcome may stand in different ones.
    settings.segment_bytes = 400;
    let journal = open(settings.clone()).unwrap();
    let answered = append(&journal, intent("answered")).unwrap();
    let open_one = append(&journal, intent("open")).unwrap();
    journal.queue(outcome(answered));
    journal.close();
    drop(journal);
    assert!(segments(dir.path()).len() > 2);
    drop(open(settings.clone()).unwrap());
    drop(open(settings).unwrap());
    let records = records(dir.path());
    let unknown: Vec<&Value> = records
        .iter()
        .filter(|r| r["delivery"] == "unknown")
        .collect();
    assert_eq!(unknown.len(), 1);
    let record = unknown[0];
    assert_eq!(record["kind"], "outcome");
    assert_eq!(record["intent"], open_one);
    assert_eq!(record["request_id"], "open");
    assert_eq!(record["agent"], "pr \"agent\"");
    assert_eq!(record["operation"], "SendMessage");
    assert_eq!(record["reached"], "maybe");
    assert_eq!(record["ended"], "abandoned");
    assert_eq!(
        (&record["generation"], &record["policy_digest"]),
        (&3.into(), &"d3".into())
    );
    let found: Vec<&Value> = records
        .iter()
        .filter(|r| r["note"] == "opened")
        .map(|r| &r["open_intents"])
        .collect();
    assert_eq!(found, [0, 1, 0]);
}

/// A journal of one segment as a process leaves it that is killed: no closing note.
fn crashed(intents: usize) -> Vec<u8> {
    let dir = TempDir::new().unwrap();
    let journal = open(settings(dir.path(), Durability::Write)).unwrap();
    for n in 0..intents {
        let sequence = append(&journal, intent(&format!("r{n}"))).unwrap();
        if n % 2 == 0 {
            journal.queue(outcome(sequence));
        }
    }
    append(&journal, intent("last")).unwrap();
    fs::read(&segments(dir.path())[0]).unwrap()
}

/// Puts `bytes` as the only segment of a new journal.
fn planted(bytes: &[u8]) -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("journal-00000000000000000001.jsonl"), bytes).unwrap();
    dir
}

#[test]
fn a_journal_cut_at_any_length_goes_on_after_its_last_whole_record() {
    let whole = crashed(3);
    // Each length costs syncs, so all of them around a record's end and some in between.
    let near_an_end =
        |at: usize| whole[at.saturating_sub(1)..(at + 2).min(whole.len())].contains(&b'\n');
    for length in (0..whole.len()).filter(|at| at % 41 == 0 || near_an_end(*at)) {
        let dir = planted(&whole[..length]);
        let good = whole[..length]
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let kept = whole[..good].iter().filter(|b| **b == b'\n').count();
        let journal = open(settings(dir.path(), Durability::Write)).unwrap();
        journal.close();
        let records = records(dir.path());
        let note = records
            .iter()
            .rfind(|record| record["note"] == "opened")
            .unwrap();
        assert_eq!(note["torn_bytes"], length - good, "cut at {length}");
        let open = records[..kept]
            .iter()
            .filter(|r| r["kind"] == "intent")
            .count()
            - records[..kept]
                .iter()
                .filter(|r| r["kind"] == "outcome")
                .count();
        assert_eq!(note["open_intents"], open, "cut at {length}");
        // What was whole is untouched.
        let now = fs::read(&segments(dir.path())[0]).unwrap();
        assert!(now.starts_with(&whole[..good]), "cut at {length}");
    }
}

#[test]
fn zeros_behind_the_last_record_are_a_torn_write() {
    let mut bytes = crashed(2);
    bytes.extend([0; 4096]);
    let dir = planted(&bytes);
    drop(open(settings(dir.path(), Durability::Write)).unwrap());
    let records = records(dir.path());
    let note = records
        .iter()
        .rfind(|record| record["note"] == "opened")
        .unwrap();
    assert_eq!(note["torn_bytes"], 4096);
}

#[test]
fn damage_before_the_end_is_refused_and_nothing_is_changed() {
    let whole = crashed(4);
    let second = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    let third = second + whole[second..].iter().position(|b| *b == b'\n').unwrap() + 1;
    let mut changed = whole.clone();
    changed[third - 10] ^= 1;
    let removed = [&whole[..second], &whole[third..]].concat();
    let garbled = [&whole[..second], b"garbage\n", &whole[second..]].concat();
    for (bytes, message) in [
        (changed, "line 3: its `prev` is not the hash"),
        (removed, "line 2: record 3 stands where record 2 belongs"),
        (garbled, "line 2: not a journal record"),
    ] {
        let dir = planted(&bytes);
        let error = open(settings(dir.path(), Durability::Write))
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(fs::read(&segments(dir.path())[0]).unwrap(), bytes);
    }
}

#[test]
fn a_start_reads_back_to_the_oldest_open_intent_and_no_further() {
    for left_open in [true, false] {
        let dir = TempDir::new().unwrap();
        let mut settings = settings(dir.path(), Durability::Write);
        settings.segment_bytes = 900;
        let journal = open(settings.clone()).unwrap();
        for n in 0..20 {
            let sequence = append(&journal, intent(&n.to_string())).unwrap();
            if n != 10 || !left_open {
                journal.queue(outcome(sequence));
            }
        }
        drop(journal);
        // What is not read cannot be found damaged.
        let all = segments(dir.path());
        let holds = |path: &std::path::PathBuf| {
            fs::read_to_string(path)
                .unwrap()
                .contains(r#""request_id":"10","#)
        };
        let tenth = all.iter().position(holds).unwrap();
        assert!(tenth > 2 && tenth + 2 < all.len());
        let unread = if left_open { tenth } else { all.len() - 2 };
        for path in &all[..unread] {
            fs::write(path, "unreadable\n").unwrap();
        }
        drop(open(settings).unwrap());
        let read = |path| fs::read_to_string(path).unwrap();
        let all: String = segments(dir.path()).iter().map(read).collect();
        let unknown = all.matches(r#""delivery":"unknown""#).count();
        assert_eq!(unknown, usize::from(left_open));
    }
}

#[test]
fn a_missing_segment_is_noticed() {
    let dir = TempDir::new().unwrap();
    let mut settings = settings(dir.path(), Durability::Write);
    settings.segment_bytes = 400;
    let journal = open(settings.clone()).unwrap();
    for n in 0..4 {
        append(&journal, intent(&n.to_string())).unwrap();
    }
    drop(journal);
    let all = segments(dir.path());
    fs::remove_file(&all[2]).unwrap();
    let error = open(settings).err().unwrap().to_string();
    assert!(
        error.contains("does not end where the next segment begins"),
        "{error}"
    );
    assert!(
        error.contains(all[1].file_name().unwrap().to_str().unwrap()),
        "{error}"
    );
}

/// Three segments or more of a journal that was opened twice, as a crash leaves them.
fn segmented() -> (TempDir, Vec<Vec<u8>>) {
    let dir = TempDir::new().unwrap();
    let mut settings = settings(dir.path(), Durability::Write);
    settings.segment_bytes = 1800;
    for _ in 0..2 {
        let journal = open(settings.clone()).unwrap();
        for n in 0..6 {
            append(&journal, intent(&n.to_string())).unwrap();
        }
    }
    let all = segments(dir.path());
    let bytes = all.iter().map(|path| fs::read(path).unwrap()).collect();
    (dir, bytes)
}

#[test]
fn what_a_failed_sync_left_in_two_segments_is_cut_from_the_older_one() {
    let (dir, all) = segmented();
    assert!(all.len() > 4);
    let paths = segments(dir.path());
    // In the last two segments, and in two that were closed before the journal was opened last.
    for older in [all.len() - 2, 0] {
        let next = &all[older + 1];
        let lines = next.split_inclusive(|byte| *byte == b'\n');
        let first = lines.map(<[u8]>::len).next().unwrap();
        let mut lost = next[..first + 40].to_vec();
        lost[first - 90..].fill(0);
        let torn = next[..first + 40].to_vec();
        for behind in [&next[..first], &next[..], &torn, &lost, &[0; 4096]] {
            fs::write(&paths[older], [&all[older][..], behind].concat()).unwrap();
            let unfinished = dir.path().join("carried.tmp");
            fs::write(&unfinished, behind).unwrap();
            drop(open(settings(dir.path(), Durability::Write)).unwrap());
            assert_eq!(fs::read(&paths[older]).unwrap(), all[older]);
            assert!(!unfinished.exists());
            records(dir.path());
        }
    }
}

#[test]
fn other_records_than_those_of_the_next_segment_are_not_cut() {
    let (dir, all) = segmented();
    let older = all.len() - 2;
    let path = &segments(dir.path())[older];
    let mut others = all[older + 1].clone();
    let at = others.windows(3).position(|w| w == b"gw-").unwrap();
    others[at] = b'x';
    let bytes = [&all[older][..], &others].concat();
    fs::write(path, &bytes).unwrap();
    let unfinished = dir.path().join("carried.tmp");
    fs::write(&unfinished, "").unwrap();
    let error = open(settings(dir.path(), Durability::Write)).err().unwrap();
    assert!(matches!(error, OpenError::Gap(_)), "{error}");
    assert_eq!(fs::read(path).unwrap(), bytes);
    assert!(unfinished.exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Stops at any point of any mix of records, over and over; the chain stays whole and every
    /// answered intent stays recorded.
    #[test]
    fn repeated_crashes_lose_nothing_that_was_answered(
        runs in prop::collection::vec((1..6usize, 0..400usize), 1..5),
        segment_bytes in 300..3000u64,
    ) {
        let dir = TempDir::new().unwrap();
        let mut settings = settings(dir.path(), Durability::Write);
        settings.segment_bytes = segment_bytes;
        let mut answered = Vec::new();
        for (run, (intents, tail)) in runs.into_iter().enumerate() {
            let journal = open(settings.clone()).unwrap();
            for n in 0..intents {
                let name = format!("{run}-{n}");
                let sequence = append(&journal, intent(&name)).unwrap();
                answered.push(name);
                if n % 3 == 0 {
                    journal.queue(outcome(sequence));
                }
            }
            // Its end may be torn, but never what was answered: half a record behind it.
            let last = segments(dir.path()).pop().unwrap();
            drop(journal);
            let torn = fs::read(&last).unwrap();
            let half = &torn[..tail.min(torn.len() - 1)];
            if !half.contains(&b'\n') {
                let last = segments(dir.path()).pop().unwrap();
                fs::write(&last, [&fs::read(&last).unwrap(), half].concat()).unwrap();
            }
        }
        drop(open(settings).unwrap());
        let records = records(dir.path());
        let recorded: Vec<&str> = records.iter().filter(|r| r["kind"] == "intent").map(|r| r["request_id"].as_str().unwrap()).collect();
        prop_assert_eq!(recorded, answered);
        let intents = records.iter().filter(|r| r["kind"] == "intent").count();
        let outcomes = records.iter().filter(|r| r["kind"] == "outcome").count();
        prop_assert_eq!(intents, outcomes);
    }
}
