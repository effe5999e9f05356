//! The journal: its record schema, its chain, and its writer when things break.
#![allow(clippy::unwrap_used)]

use aws_lc_rs::signature::Ed25519KeyPair;
use portcullis::adapters::clock::ManualClock;
use portcullis::adapters::journal::{FileJournal, OpenError, Settings};
use portcullis::adapters::random::SystemRandom;
use portcullis::audit::chain::check;
use portcullis::audit::checkpoint::{Signed, public_keys};
use portcullis::audit::record;
use portcullis::identity::SigningKey;
use portcullis::pipeline::ports::{Durability, Journal, JournalError, RecordBody};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

mod permission;
mod recovery;
mod rotation;

#[test]
fn the_record_schema_in_config_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/record.schema.json");
    let mut generated = serde_json::to_string_pretty(&record::schema()).unwrap();
    generated.push('\n');
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        stored, generated,
        "run with UPDATE_EXPECT=1 and review the difference"
    );
}

fn settings(dir: &Path, durability: Durability) -> Settings {
    Settings {
        durability,
        max_bytes: 1 << 30,
        ..Settings::new(dir.to_path_buf(), key(7), "gw-test".into())
    }
}

fn key(seed: u8) -> Arc<SigningKey> {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
    Arc::new(SigningKey::new(pair))
}

fn open(settings: Settings) -> Result<FileJournal, OpenError> {
    let clock = Arc::new(ManualClock::at(1_798_675_199_007));
    FileJournal::open(settings, clock, &SystemRandom)
}

fn intent(request: &str) -> RecordBody {
    RecordBody(
        format!(
            r#""kind":"intent","time":"2026-12-30T23:59:59.007Z","instance":"gw-test","generation":3,"policy_digest":"d3","request_id":"{request}","agent":"pr \"agent\"","operation":"SendMessage","claims":{{"note":"opened"}}"#
        )
        .into_bytes(),
    )
}

fn outcome(intent: u64) -> RecordBody {
    RecordBody(
        format!(r#""kind":"outcome","time":"2026-12-30T23:59:59.008Z","instance":"gw-test","generation":3,"policy_digest":"d3","request_id":"r","intent":{intent},"delivery":"responded","reached":"yes""#)
            .into_bytes(),
    )
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap()
}

/// Appends one record and waits for it.
fn append(journal: &FileJournal, record: RecordBody) -> Result<u64, JournalError> {
    let receipt = journal.append(record);
    runtime().block_on(async { receipt.wait().await.map(|recorded| recorded.sequence()) })
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect();
    paths.sort();
    paths
}

/// Every record of a journal, after checking the chain over all its segments and its checkpoints,
/// which all name one journal.
fn records(dir: &Path) -> Vec<Value> {
    let bytes: Vec<u8> = segments(dir)
        .iter()
        .flat_map(|path| fs::read(path).unwrap())
        .collect();
    assert_eq!(bytes.last(), Some(&b'\n'));
    let lines: Vec<&[u8]> = bytes[..bytes.len() - 1].split(|b| *b == b'\n').collect();
    let end = check(lines.iter().copied()).unwrap();
    assert_eq!(end.sequence(), lines.len() as u64);
    let keys = public_keys(&key(7)).unwrap();
    let signed: Vec<Signed> = lines.iter().filter_map(|line| Signed::of(line)).collect();
    for checkpoint in &signed {
        assert_eq!(checkpoint.verify(&keys), Ok(()));
        assert_eq!(checkpoint.journal, signed[0].journal);
    }
    lines
        .iter()
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

fn kinds(records: &[Value]) -> Vec<&str> {
    records
        .iter()
        .map(|record| record["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn what_was_answered_is_in_the_file_and_a_restart_goes_on_with_the_chain() {
    for durability in [Durability::Write, Durability::Group, Durability::Each] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("state/journal");
        let journal = open(settings(&path, durability)).unwrap();
        assert_eq!(journal.trouble(), None);
        let sequence = append(&journal, intent("r1")).unwrap();
        assert_eq!(sequence, 3);
        // In the file now, not only after closing.
        assert_eq!(kinds(&records(&path)), ["note", "checkpoint", "intent"]);
        journal.queue(outcome(sequence));
        journal.close();
        assert_eq!(append(&journal, intent("late")), Err(JournalError::Failed));
        drop(journal);
        drop(open(settings(&path, durability)).unwrap());
        let records = records(&path);
        assert_eq!(
            kinds(&records),
            [
                "note",
                "checkpoint",
                "intent",
                "outcome",
                "note",
                "checkpoint",
                "note",
                "checkpoint",
                "note",
                "checkpoint"
            ]
        );
        let topics: Vec<&Value> = records
            .iter()
            .filter_map(|record| record.get("note"))
            .collect();
        assert_eq!(topics, ["opened", "closed", "opened", "closed"]);
        assert_eq!(records[6]["open_intents"], 0);
        // It was closed in order, so nobody is named who did not.
        assert_eq!(records[6].get("unclosed"), None);
        assert_eq!(records[6]["journal"], records[0]["journal"]);
        assert_eq!(records[0]["journal"].as_str().unwrap().len(), 26);
        assert_eq!(segments(&path).len(), 1);
    }
}

#[test]
fn the_directory_and_its_files_are_for_their_owner_only() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("journal");
    let _journal = open(settings(&path, Durability::Write)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    assert_eq!(
        segments(&path)[0].file_name().unwrap(),
        "journal-00000000000000000001.jsonl"
    );
    for entry in fs::read_dir(&path).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn thousands_of_concurrent_appends_keep_the_chain_whole_across_segments() {
    for durability in [Durability::Write, Durability::Group] {
        let dir = TempDir::new().unwrap();
        let mut settings = settings(dir.path(), durability);
        settings.segment_bytes = 200_000;
        let journal = Arc::new(open(settings).unwrap());
        let mut sequences = runtime().block_on(async {
            let tasks: Vec<_> = (0..100)
                .map(|task| {
                    let journal = Arc::clone(&journal);
                    tokio::spawn(async move {
                        let mut sequences = Vec::new();
                        for n in 0..40 {
                            let receipt = journal.append(intent(&format!("{task}-{n}")));
                            let sequence = receipt.wait().await.unwrap().sequence();
                            journal.queue(outcome(sequence));
                            sequences.push(sequence);
                        }
                        sequences
                    })
                })
                .collect();
            let mut all = Vec::new();
            for task in tasks {
                let own = task.await.unwrap();
                assert!(own.is_sorted());
                all.extend(own);
            }
            all
        });
        journal.close();
        let records = records(dir.path());
        sequences.sort_unstable();
        let intents: Vec<u64> = records
            .iter()
            .filter(|record| record["kind"] == "intent")
            .map(|record| record["seq"].as_u64().unwrap())
            .collect();
        assert_eq!(intents, sequences);
        let segments = segments(dir.path()).len();
        assert!(segments > 3);
        // Besides: the opening and the closing, each signed, and at each turn the last checkpoint
        // of the old segment and the note of the new one.
        assert_eq!(records.len(), 2 * 4000 + 4 + 2 * (segments - 1));
    }
}

#[test]
fn a_second_process_is_refused_and_told_why() {
    let dir = TempDir::new().unwrap();
    let first = open(settings(dir.path(), Durability::Write)).unwrap();
    let error = open(settings(dir.path(), Durability::Write)).err().unwrap();
    let named = format!(
        "is in use by another process, {} (instance `gw-test`); stop that one",
        std::process::id()
    );
    assert!(matches!(error, OpenError::Locked(..)), "{error}");
    assert!(error.to_string().contains(&named), "{error}");
    drop(first);
    assert!(open(settings(dir.path(), Durability::Write)).is_ok());
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    // Below a file there is no directory for anybody, root included.
    let error = open(settings(&file.join("journal"), Durability::Write))
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("cannot make the journal's directory `"),
        "{error}"
    );
    assert!(error.contains("file/journal"), "{error}");
}

#[test]
fn at_max_bytes_calls_are_refused_and_readiness_says_so() {
    let dir = TempDir::new().unwrap();
    let mut settings = settings(dir.path(), Durability::Write);
    settings.max_bytes = 8000;
    let journal = open(settings.clone()).unwrap();
    let mut taken = 0;
    while append(&journal, intent("r")).is_ok() {
        taken += 1;
        assert!(taken < 100, "no limit");
    }
    assert_eq!(append(&journal, intent("r")), Err(JournalError::Full));
    assert_eq!(journal.trouble(), Some(JournalError::Full));
    journal.close();
    let size: u64 = segments(dir.path())
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert!(size <= 8000, "{size}");
    drop(journal);
    // It starts at its limit, says what it found, and is not ready.
    let journal = open(settings).unwrap();
    assert_eq!(journal.trouble(), Some(JournalError::Full));
    drop(journal);
    let records = records(dir.path());
    let unknown = records
        .iter()
        .filter(|record| record["delivery"] == "unknown")
        .count();
    assert_eq!(unknown, taken);
}

#[test]
fn a_full_device_refuses_and_recovers() {
    // Needs a file system of its own; the writer's own tests cover the same without one.
    let dir = TempDir::new().unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(dir.path())
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        eprintln!("skipped: a_full_device_refuses_and_recovers needs the right to mount a tmpfs");
        return;
    }
    let run = std::panic::catch_unwind(|| {
        let ballast = dir.path().join("ballast");
        let path = dir.path().join("journal");
        let journal = open(settings(&path, Durability::Write)).unwrap();
        let first = append(&journal, intent("before")).unwrap();
        // Fills the device to its last page.
        let _ = fs::write(&ballast, vec![0; 128 << 10]);
        let mut refused = 0;
        for _ in 0..200 {
            match append(&journal, intent("during")) {
                Ok(_) => assert_eq!(refused, 0),
                Err(error) => {
                    assert_eq!(error, JournalError::Full);
                    refused += 1;
                }
            }
        }
        assert!(refused > 100);
        assert_eq!(journal.trouble(), Some(JournalError::Full));
        journal.queue(outcome(first));
        fs::remove_file(&ballast).unwrap();
        append(&journal, intent("after")).unwrap();
        journal.close();
        let records = records(&path);
        let position = |wanted: &dyn Fn(&Value) -> bool| records.iter().position(wanted).unwrap();
        position(&|record| record["intent"] == first);
        position(&|record| record["request_id"] == "after");
        let note = position(&|record| record["note"] == "recovered");
        assert_eq!(records[note]["lost"], 0);
        assert_eq!(records[records.len() - 2]["note"], "closed");
    });
    let _ = std::process::Command::new("umount")
        .arg(dir.path())
        .output();
    assert!(run.is_ok());
}
