#![allow(clippy::unwrap_used)]
use super::*;
use crate::audit::chain::Chain;
use std::io::Write as _;

struct Journal {
    dir: tempfile::TempDir,
    chain: Chain,
    file: File,
}

impl Journal {
    fn new() -> Journal {
        let dir = tempfile::tempdir().unwrap();
        let file = segment(dir.path(), 1);
        Journal {
            dir,
            chain: Chain::START,
            file,
        }
    }

    fn write(&mut self, count: u64) {
        for _ in 0..count {
            let second = self.chain.sequence();
            let body = format!(
                r#""kind":"note","time":"2026-12-30T23:59:{second:02}.000Z","journal":"J1""#
            );
            let mut line = Vec::new();
            self.chain.seal(body.as_bytes(), &mut line);
            self.file.write_all(&line).unwrap();
        }
    }

    fn rotate(&mut self) {
        self.file = segment(self.dir.path(), self.chain.sequence() + 1);
    }

    fn remove(&self, first: u64) {
        fs::remove_file(self.dir.path().join(name(first))).unwrap();
    }
}

fn name(first: u64) -> String {
    format!("journal-{first:020}.jsonl")
}

fn segment(dir: &Path, first: u64) -> File {
    File::create_new(dir.join(name(first))).unwrap()
}

fn rest(lines: &mut Lines) -> Vec<String> {
    let mut found = Vec::new();
    let mut line = Vec::new();
    loop {
        match lines.next(&mut line).unwrap() {
            Next::Record(seq) => found.push(seq.to_string()),
            Next::Fault(fault) => found.push(fault.to_string()),
            Next::End => return found,
        }
    }
}

#[test]
fn lines_are_followed_through_rotations_and_half_written_ones_are_waited_for() {
    let mut journal = Journal::new();
    journal.write(2);
    let mut lines = Lines::open(journal.dir.path()).unwrap();
    assert_eq!(rest(&mut lines), ["1", "2"]);
    let mut third = Vec::new();
    journal.chain.seal(br#""kind":"note""#, &mut third);
    journal.file.write_all(&third[..20]).unwrap();
    assert_eq!(rest(&mut lines), [""; 0]);
    journal.file.write_all(&third[20..]).unwrap();
    journal.write(1);
    journal.rotate();
    assert_eq!(rest(&mut lines), ["3", "4"]);
    journal.write(1);
    journal.rotate();
    journal.write(1);
    assert_eq!(newest(journal.dir.path()).unwrap(), Some(6));
    journal.file.write_all(b"{\"v\":1,\"seq\":7").unwrap();
    assert_eq!(newest(journal.dir.path()).unwrap(), Some(6));
    assert_eq!(rest(&mut lines), ["5", "6"]);
}

#[test]
fn a_kept_position_goes_on_behind_its_record_and_knows_another_journal() {
    let mut journal = Journal::new();
    journal.write(3);
    let dir = journal.dir.path().to_path_buf();
    let mut lines = Lines::open(&dir).unwrap();
    let mut line = Vec::new();
    lines.next(&mut line).unwrap();
    assert_eq!(lines.next(&mut line).unwrap(), Next::Record(2));
    let id = journal_id(&dir).unwrap();
    assert_eq!(id.as_deref(), Some("J1"));
    let position = lines.position(&line, id.as_deref()).unwrap();
    journal.rotate();
    journal.write(1);
    let resumed = |position: &Position| Lines::resume(&dir, position);
    assert_eq!(rest(&mut resumed(&position).unwrap()), ["3", "4"]);
    for wrong in [
        Position {
            seq: 1,
            ..position.clone()
        },
        Position {
            offset: 1,
            ..position.clone()
        },
        Position {
            sha256: "00".into(),
            ..position.clone()
        },
        Position {
            journal: Some("J2".into()),
            ..position.clone()
        },
        Position {
            segment: name(9).into(),
            ..position.clone()
        },
    ] {
        assert!(
            matches!(resumed(&wrong), Err(ResumeError::Another(_))),
            "{wrong:?}"
        );
    }
    journal.remove(1);
    let missing = "record 4 stands where record 3 belongs";
    assert_eq!(rest(&mut resumed(&position).unwrap()), [missing, "4"]);
}

#[test]
fn records_that_the_next_segment_has_too_come_once_and_a_position_follows_them() {
    let mut journal = Journal::new();
    journal.write(2);
    let dir = journal.dir.path().to_path_buf();
    let (durable, chain) = (fs::read(dir.join(name(1))).unwrap(), journal.chain);
    journal.write(2);
    let mut lines = Lines::open(&dir).unwrap();
    let mut line = Vec::new();
    for seq in 1..=4 {
        assert_eq!(lines.next(&mut line).unwrap(), Next::Record(seq));
    }
    let position = lines.position(&line, None).unwrap();
    // They stand in both for a moment, then only in the next.
    journal.chain = chain;
    journal.rotate();
    journal.write(3);
    assert_eq!(
        rest(&mut Lines::open(&dir).unwrap()),
        ["1", "2", "3", "4", "5"]
    );
    fs::write(dir.join(name(1)), durable).unwrap();
    assert_eq!(rest(&mut lines), ["5"]);
    assert_eq!(
        rest(&mut Lines::open(&dir).unwrap()),
        ["1", "2", "3", "4", "5"]
    );
    assert_eq!(rest(&mut Lines::resume(&dir, &position).unwrap()), ["5"]);
    let other = Position {
        sha256: "00".into(),
        ..position
    };
    assert!(matches!(
        Lines::resume(&dir, &other),
        Err(ResumeError::Another(_))
    ));
    // Only at the beginning: elsewhere a record that comes twice is told.
    journal.chain = chain;
    journal.write(1);
    let told = "record 3 stands where record 6 belongs";
    assert_eq!(rest(&mut lines), [told, "3"]);
}

#[test]
fn what_is_torn_or_no_record_is_told_and_the_next_is_read() {
    let mut journal = Journal::new();
    journal.write(1);
    journal.file.write_all(b"garbage\n").unwrap();
    journal.write(1);
    journal.file.write_all(b"{\"v\":1,").unwrap();
    journal.rotate();
    journal.write(1);
    let mut lines = Lines::open(journal.dir.path()).unwrap();
    assert_eq!(
        rest(&mut lines),
        ["1", "not a record", "2", "not a record", "3"]
    );
}

#[test]
fn segments_before_a_time_are_passed_over() {
    let mut journal = Journal::new();
    for _ in 0..3 {
        journal.write(2);
        journal.rotate();
    }
    journal.write(1);
    let from = |text: &str| {
        let since = moment(text).unwrap();
        rest(&mut Lines::since(journal.dir.path(), since).unwrap()).remove(0)
    };
    assert_eq!(from("2026-12-30T23:59:00Z"), "1");
    assert_eq!(from("2026-12-30T23:59:01Z"), "1");
    assert_eq!(from("2026-12-30T23:59:03Z"), "3");
    assert_eq!(from("2026-12-30T23:59:05Z"), "5");
    assert_eq!(from("2027-12-30T23:59:05Z"), "7");
}
