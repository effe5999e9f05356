//! Segments that are turned over, renamed or taken away while records come (FC-90).

use super::{append, intent, open, outcome, segments, settings};
use portcullis::adapters::clock::SystemClock;
use portcullis::adapters::journal::FileJournal;
use portcullis::adapters::random::SystemRandom;
use portcullis::audit::chain::check;
use portcullis::pipeline::ports::{Durability, Journal, JournalError};
use serde_json::Value;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Asks again and again, for as long as a tick of the journal can take on a busy machine.
fn until(what: &str, mut ask: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !ask() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        thread::yield_now();
    }
}

#[test]
fn a_segment_that_is_renamed_under_load_splits_no_record_and_loses_none() {
    for durability in [Durability::Write, Durability::Group] {
        let dir = TempDir::new().unwrap();
        let journal = Arc::new(open(settings(dir.path(), durability)).unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let writer = thread::spawn({
            let (journal, stop) = (Arc::clone(&journal), Arc::clone(&stop));
            move || {
                let mut names = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let name = format!("r{}", names.len());
                    let sequence = append(&journal, intent(&name)).unwrap();
                    journal.queue(outcome(sequence));
                    names.push(name);
                }
                names
            }
        });
        let first = segments(dir.path()).remove(0);
        let renamed = dir.path().join("old.1");
        fs::rename(&first, &renamed).unwrap();
        until("a new segment", || segments(dir.path()).len() == 1);
        let next = segments(dir.path()).remove(0);
        until("records in it", || {
            fs::read_to_string(&next)
                .unwrap()
                .contains(r#""kind":"intent""#)
        });
        stop.store(true, Ordering::Relaxed);
        let names = writer.join().unwrap();
        journal.close();
        let whole = [fs::read(&renamed).unwrap(), fs::read(&next).unwrap()].concat();
        let text = String::from_utf8(whole).unwrap();
        check(text.lines().map(str::as_bytes)).unwrap();
        let recorded: Vec<String> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|record| record["kind"] == "intent")
            .map(|record| record["request_id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(recorded, names);
        // The renamed one ends with a checkpoint over all of it.
        let last = fs::read_to_string(&renamed).unwrap();
        assert!(
            last.lines()
                .last()
                .unwrap()
                .contains(r#""kind":"checkpoint""#)
        );
    }
}

#[test]
fn a_removed_folder_is_made_again_before_anything_is_let_through() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("state/journal");
    let journal = open(settings(&path, Durability::Write)).unwrap();
    append(&journal, intent("before")).unwrap();
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    // The very next record does not go where nobody can read it.
    append(&journal, intent("after")).unwrap();
    let text = fs::read_to_string(&segments(&path)[0]).unwrap();
    assert!(text.contains(r#""request_id":"after""#), "{text}");
    // What takes its place cannot be made a folder: refused, and over as soon as it can.
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    fs::write(dir.path().join("state"), "").unwrap();
    assert_eq!(
        append(&journal, intent("during")),
        Err(JournalError::Failed)
    );
    until("the trouble", || {
        journal.trouble() == Some(JournalError::Failed)
    });
    fs::remove_file(dir.path().join("state")).unwrap();
    append(&journal, intent("again")).unwrap();
    until("the end of the trouble", || journal.trouble().is_none());
    let text = fs::read_to_string(&segments(&path)[0]).unwrap();
    assert!(!text.contains(r#""request_id":"during""#), "{text}");
}

#[test]
fn an_idle_journal_is_signed_again_by_the_real_clock() {
    let dir = TempDir::new().unwrap();
    let mut settings = settings(dir.path(), Durability::Write);
    settings.checkpoint_every = Duration::from_millis(1);
    let clock = Arc::new(SystemClock::new());
    let journal = FileJournal::open(settings, clock, &SystemRandom).unwrap();
    let count = || {
        let text = fs::read_to_string(&segments(dir.path())[0]).unwrap();
        text.matches(r#""kind":"checkpoint""#).count()
    };
    until("a second checkpoint", || count() >= 2);
    drop(journal);
}

#[test]
fn segments_that_are_taken_away_make_room_while_the_journal_is_open() {
    let dir = TempDir::new().unwrap();
    let mut settings = settings(dir.path(), Durability::Write);
    settings.max_bytes = 100_000;
    settings.segment_bytes = 10_000;
    settings.checkpoint_every = Duration::from_millis(1);
    let clock = Arc::new(SystemClock::new());
    let journal = FileJournal::open(settings, clock, &SystemRandom).unwrap();
    while !journal.crowded() {
        append(&journal, intent("r")).unwrap();
    }
    let shown = || {
        let metrics = journal.metrics().unwrap();
        (metrics.segments.get(), metrics.bytes.get())
    };
    assert!(shown().0 > 5 && shown().1 >= 80_000, "{:?}", shown());
    let all = segments(dir.path());
    for path in &all[..all.len() - 1] {
        fs::remove_file(path).unwrap();
    }
    until("room", || !journal.crowded());
    let (left, bytes) = shown();
    assert!((1..=2).contains(&left) && bytes < 30_000, "{left}, {bytes}");
}
