//! `portcullis audit export` as an operator runs it, again and again.

use super::{Book, text};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;

fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn journal(book: &Book) -> Vec<String> {
    let mut files: Vec<_> = fs::read_dir(book.dir())
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    files.iter().flat_map(|file| lines(file)).collect()
}

/// Runs an export into `out` with a position, and returns the exit code and what it said.
fn export(book: &Book, format: &str, more: &[&str]) -> (Option<i32>, String) {
    let (out, position) = (book.path("out"), book.path("position.json"));
    let mut arguments = vec!["--format", format, "--out", out.to_str().unwrap()];
    arguments.extend(["--position", position.to_str().unwrap()]);
    arguments.extend(more);
    let output = book.run("export", &arguments);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), text(&said).to_owned())
}

#[test]
fn each_run_adds_what_is_new_and_says_how_much() {
    let mut book = Book::new();
    book.call(1, "responded", "yes");
    assert_eq!(
        export(&book, "jsonl", &[]),
        (Some(0), "exported 3 records, from record 1 to 3\n".into())
    );
    assert_eq!(lines(&book.path("out")), journal(&book));
    assert_eq!(
        export(&book, "jsonl", &[]),
        (Some(0), "exported 0 records\n".into())
    );
    book.rotate();
    book.refusal(2);
    let (code, said) = export(&book, "jsonl", &["--json"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (code, &said["written"], &said["first"]),
        (Some(0), &2.into(), &4.into())
    );
    assert_eq!(lines(&book.path("out")), journal(&book));
}

/// As after a kill: the output is ahead of the position, and its last line is torn.
#[test]
fn an_interrupted_export_loses_nothing() {
    let mut book = Book::new();
    book.call(1, "responded", "yes");
    export(&book, "jsonl", &[]);
    let position = fs::read(book.path("position.json")).unwrap();
    book.refusal(2);
    book.refusal(3);
    export(&book, "jsonl", &[]);
    let mut out = fs::OpenOptions::new()
        .append(true)
        .open(book.path("out"))
        .unwrap();
    out.write_all(b"{\"v\":1,\"seq\"").unwrap();
    fs::write(book.path("position.json"), position).unwrap();
    assert_eq!(export(&book, "jsonl", &[]).0, Some(0));
    let all = journal(&book);
    let expected = [&all[..], &all[3..]].concat();
    assert_eq!(lines(&book.path("out")), expected);
}

#[test]
fn another_journal_another_form_and_a_file_in_the_way_are_refused() {
    let mut book = Book::new();
    book.refusal(1);
    export(&book, "jsonl", &[]);
    let (code, said) = export(&book, "csv", &[]);
    assert_eq!(code, Some(2), "{said}");
    let out = book.path("out");
    let output = book.run("export", &["--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let before = lines(&out);

    let mut other = Book::new();
    other.refusal(2);
    for file in fs::read_dir(other.dir())
        .unwrap()
        .map(|e| e.unwrap().path())
    {
        fs::copy(&file, book.dir().join(file.file_name().unwrap())).unwrap();
    }
    let (code, said) = export(&book, "jsonl", &[]);
    assert_eq!(code, Some(3));
    assert!(said.contains("not the journal of the position"), "{said}");
    assert_eq!(lines(&out), before);
}

#[test]
fn what_vanished_before_it_was_exported_is_counted() {
    let mut book = Book::new();
    book.refusal(1);
    export(&book, "jsonl", &[]);
    book.refusal(2);
    book.rotate();
    book.refusal(3);
    fs::remove_file(book.dir().join("journal-00000000000000000001.jsonl")).unwrap();
    let (code, said) = export(&book, "jsonl", &[]);
    assert_eq!(code, Some(5));
    assert!(
        said.contains("1 records vanished before they were exported"),
        "{said}"
    );
    assert!(
        said.contains("exported 2 records, from record 4 to 5"),
        "{said}"
    );
}

#[test]
fn a_table_has_one_line_of_names_however_often_it_is_added_to() {
    let mut book = Book::new();
    book.call(1, "responded", "yes");
    export(&book, "csv", &[]);
    book.refusal(2);
    export(&book, "csv", &["--since", "2026-12-31"]);
    let rows = lines(&book.path("out"));
    assert_eq!(rows.len(), 5);
    assert!(rows[0].starts_with("seq,time,kind,"), "{}", rows[0]);
    assert!(
        rows[4].starts_with("4,2026-12-31T00:00:01.007Z,refusal,"),
        "{}",
        rows[4]
    );
    assert_eq!(rows.iter().filter(|row| row.starts_with("seq,")).count(), 1);
}

#[test]
fn conditions_look_at_records_and_in_events_at_calls() {
    let mut book = Book::new();
    book.call(1, "responded", "yes");
    book.refusal(2);
    let run = |conditions: &[&str]| {
        let output = book.run("export", conditions);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).lines().count()
    };
    assert_eq!(run(&["subject=alice"]), 2);
    assert_eq!(run(&["kind=outcome"]), 1);
    assert_eq!(
        run(&["subject=alice", "--until", "2026-12-31T00:00:01Z"]),
        1
    );
    assert_eq!(run(&["--format", "ocsf", "subject=alice"]), 2);
    assert_eq!(
        run(&["--format", "ocsf", "subject=alice", "delivery=responded"]),
        1
    );
    assert_eq!(run(&["--format", "ocsf", "subject=bob"]), 0);
    assert_eq!(run(&["claims.role!=reviewer"]), 0);
    let wrong = book.run("export", &["subjekt=alice"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
}

/// A call that was under way at the end of one run is an event of the next, with all that its
/// intent said.
#[test]
fn calls_are_joined_across_runs_and_segments() {
    let mut book = Book::new();
    let intent = book.write(&format!(r#""kind":"intent",{}"#, super::asked(1, "allow")));
    book.refusal(2);
    let (code, said) = export(&book, "ocsf", &[]);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "exported 1 events, from record 3 to 3\n")
    );
    book.rotate();
    book.write(&format!(
        r#""kind":"outcome",{},"request_id":"{}","intent":{intent},"agent":"pr-agent","operation":"SendMessage","delivery":"responded","reached":"yes","attempts":[],"response":{{"http_status":200}},"ended":"complete","ms":{{"total":4.5}}"#,
        super::head(3),
        super::request_id(1)
    ));
    assert_eq!(export(&book, "ocsf", &[]).0, Some(0));
    assert_eq!(export(&book, "ocsf", &[]).1, "exported 0 events\n");
    let events = lines(&book.path("out"));
    let events: Vec<Value> = events
        .iter()
        .map(|e| serde_json::from_str(e).unwrap())
        .collect();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["action"], "Denied");
    assert_eq!(events[1]["actor"]["user"]["uid"], "alice");
    assert_eq!(events[1]["duration"], 2000);
}
