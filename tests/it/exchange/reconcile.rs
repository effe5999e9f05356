//! `portcullis audit reconcile` as an auditor runs it.

use super::{Book, head, moment, request_id, text, time};
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;

/// Calls 1 (yes), 2 (maybe), 3 (no), 4 (refused), 5 (yes), and a fetch of the card.
fn book() -> Book {
    let mut book = Book::new();
    book.call(1, "responded", "yes");
    book.call(2, "sent_no_response", "maybe");
    book.rotate();
    book.call(3, "connect_failed", "no");
    book.refusal(4);
    book.call(5, "responded", "yes");
    let fetch = request_id(6);
    book.write(&format!(
        r#""kind":"fetch",{},"request_id":"{fetch}","purpose":"card","target":"pr-agent","bytes":9,"ms":1"#,
        head(6)
    ));
    book
}

fn receipt(n: u64) -> String {
    format!(
        "{{\"v\":1,\"time\":{},\"request_id\":\"{}\",\"assertion\":\"valid\"}}\n",
        time(n),
        request_id(n)
    )
}

fn compared(book: &Book, arguments: &[&str]) -> (Option<i32>, Value) {
    let mut all = vec!["--json"];
    all.extend(arguments);
    let output = book.run("reconcile", &all);
    let report = serde_json::from_slice(&output.stdout);
    let errors = text(&output.stderr);
    (
        output.status.code(),
        report.unwrap_or_else(|_| panic!("{errors}")),
    )
}

#[test]
fn receipts_that_agree_are_a_yes_and_the_four_numbers_are_told() {
    let book = book();
    let log = book.put("receipts.jsonl", &[1, 5].map(receipt).concat());
    let output = book.run("reconcile", &["--backend-log", &log]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        text(&output.stdout),
        "both                          2  reached yes 2, maybe 0, no 0, open 0
ours only                     2  reached yes 0, maybe 1, no 1, open 0
theirs only                   0  without our id 0, not in the journal 0, another agent's 0
refused but executed          0  of 1 refused
"
    );
    let (code, report) = compared(&book, &["--backend-log", &log, "--list", "ours-only"]);
    assert_eq!(code, Some(0));
    let ids = [(2, "maybe"), (3, "no")].map(|(n, reached)| {
        json!({"request_id": request_id(n), "agent": "pr-agent", "journal": reached, "seen": 0})
    });
    assert_eq!(report["ids"], json!(ids));
}

#[test]
fn who_walked_around_us_is_found_with_the_line() {
    let book = book();
    let mut log = [1, 5, 4, 1, 6, 99].map(receipt).concat();
    log += "{\"v\":1,\"request_id\":null,\"assertion\":\"no assertion\"}\nnoise\n";
    let log = book.put("receipts.jsonl", &log);
    let output = book.run(
        "reconcile",
        &["--backend-log", &log, "--list", "theirs-only"],
    );
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stdout);
    let (stranger, mut lines) = (request_id(99), told.lines().rev());
    assert!(
        lines.next().unwrap().ends_with("line 7: -: without our id"),
        "{told}"
    );
    let wanted = format!("line 6: {stranger}: an id that is not in the journal");
    assert!(lines.next().unwrap().ends_with(&wanted), "{told}");
    let warned = text(&output.stderr);
    assert!(warned.contains("line 8: not in this format"), "{warned}");
    let (code, report) = compared(
        &book,
        &["--backend-log", &log, "--list", "refused-but-executed"],
    );
    assert_eq!(code, Some(1));
    assert_eq!(report["refused_but_executed"], 1);
    assert_eq!(report["ids"][0]["request_id"], request_id(4));
    assert_eq!(
        report["theirs_only"],
        json!({"without_id": 1, "unknown_id": 1, "other_agent": 0})
    );
    assert_eq!(report["repeated"], 1);
    assert_eq!(report["fetches"], 1);
    assert_eq!(report["not_understood"], 1);
    assert_eq!(report["agents"]["pr-agent"]["both"]["yes"], 2);
}

#[test]
fn a_journal_that_the_agent_contradicts_is_a_no() {
    let book = book();
    let log = book.put("receipts.jsonl", &receipt(3));
    let (code, report) = compared(&book, &["--backend-log", &log, "--list", "contradicted"]);
    assert_eq!((code, &report["both"]["no"]), (Some(1), &json!(1)));
    assert_eq!(report["ids"][0]["request_id"], request_id(3));
}

#[test]
fn access_logs_columns_and_compressed_logs_are_read() {
    let book = book();
    let access: String = [1, 5]
        .map(|n| {
            let id = request_id(n);
            format!("10.0.0.1 - - [30/Dec/2026:23:59:59 +0000] \"POST /a2a HTTP/1.1\" 200 9 \"-\" \"x\" \"{id}\"\n")
        })
        .concat();
    let health = "10.0.0.2 - - [30/Dec/2026:23:59:59 +0000] \"GET /healthz HTTP/1.1\" 200 9 \"-\" \"kube\" \"-\"\n";
    let plain = book.put("access.log", &(access.clone() + health));
    let all = ["--backend-log", &plain, "--format", "nginx"];
    assert_eq!(compared(&book, &all).1["theirs_only"]["without_id"], 1);
    let ignoring = [&all[..], &["--ignore", "GET /healthz "]].concat();
    let (code, report) = compared(&book, &ignoring);
    assert_eq!((code, &report["ignored"]), (Some(0), &json!(1)));

    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(access.as_bytes()).unwrap();
    let file = book.path("access.log.1.gz");
    std::fs::write(&file, packed.finish().unwrap()).unwrap();
    let file = file.to_str().unwrap();
    let pattern = r#"\[(?P<time>.+?)\].*"(?P<id>[0-9A-Z]{26})"$"#;
    for format in [["--format", "combined"], ["--pattern", pattern]] {
        let (code, report) = compared(&book, &[&["--backend-log", file], &format[..]].concat());
        assert_eq!(
            (code, &report["both"]["yes"]),
            (Some(0), &json!(2)),
            "{format:?}"
        );
    }

    let (one, five) = (request_id(1), request_id(5));
    let table = format!("note,id,at\n\"two\nlines, \"\"x\"\"\",{one},1798675200\n,{five},\n");
    let table = book.put("table.csv", &table);
    let csv = ["--backend-log", &table, "--column", "id", "--time", "at"];
    assert_eq!(compared(&book, &csv).1["both"]["yes"], 2);
    let missing = book.run(
        "reconcile",
        &["--backend-log", &table, "--column", "request"],
    );
    assert_eq!(missing.status.code(), Some(3));
    let told = text(&missing.stderr);
    assert!(told.contains("no column `request`"), "{told}");

    let nested = format!("{{\"h\":{{\"id\":\"{one}\"}},\"t\":{}}}\n", moment(1));
    let nested = book.put("nested.jsonl", &nested);
    let json = ["--backend-log", &nested, "--field", "h.id", "--time", "t"];
    assert_eq!(compared(&book, &json).1["both"]["yes"], 1);
    let wrong = book.run(
        "reconcile",
        &["--backend-log", &nested, "--format", "nginx"],
    );
    assert_eq!(wrong.status.code(), Some(3), "{}", text(&wrong.stderr));
}

#[test]
fn a_span_of_time_and_an_agent_narrow_both_sides() {
    let book = book();
    let log = book.put("receipts.jsonl", &[1, 2, 5, 99].map(receipt).concat());
    let since = "2026-12-31T00:00:02Z";
    let until = "2026-12-31T00:00:10Z";
    let (code, report) = compared(
        &book,
        &["--backend-log", &log, "--since", since, "--until", until],
    );
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!(
        report["both"],
        json!({"yes": 1, "maybe": 0, "no": 0, "open": 0})
    );
    assert_eq!(report["ours_only"]["no"], 1);
    assert_eq!(report["outside"], 1);
    let (code, report) = compared(&book, &["--backend-log", &log, "--agent", "other"]);
    assert_eq!(code, Some(1));
    assert_eq!(report["theirs_only"]["other_agent"], 3);
    let twice = book.dir();
    let (code, report) = compared(
        &book,
        &["--backend-log", &log, "--journal", twice.to_str().unwrap()],
    );
    assert_eq!(
        (code, &report["both"]["yes"]),
        (Some(1), &json!(2)),
        "one journal given twice"
    );
}

#[test]
fn the_numbers_are_there_for_prometheus_whole_or_not_at_all() {
    let book = book();
    let log = book.put("receipts.jsonl", &[1, 4, 99].map(receipt).concat());
    let file = book.path("portcullis.prom");
    let path = file.to_str().unwrap();
    let output = book.run("reconcile", &["--backend-log", &log, "--prometheus", path]);
    assert_eq!(output.status.code(), Some(1));
    let written = std::fs::read_to_string(&file).unwrap();
    for wanted in [
        "portcullis_reconcile_records{agent=\"pr-agent\",kind=\"both\"} 1\n",
        "portcullis_reconcile_records{agent=\"pr-agent\",kind=\"ours_only_yes\"} 1\n",
        "portcullis_reconcile_records{agent=\"pr-agent\",kind=\"theirs_only\"} 1\n",
        "portcullis_reconcile_records{agent=\"pr-agent\",kind=\"refused_but_executed\"} 1\n",
        "# TYPE portcullis_reconcile_timestamp_seconds gauge\n",
    ] {
        assert!(written.contains(wanted), "{wanted}{written}");
    }
    let left: Vec<_> = std::fs::read_dir(book.path("")).unwrap().collect();
    assert_eq!(left.len(), 3, "{left:?}");
    let nowhere = book.path("none/x.prom");
    let nowhere = nowhere.to_str().unwrap();
    let output = book.run(
        "reconcile",
        &["--backend-log", &log, "--prometheus", nowhere],
    );
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn what_is_no_record_of_the_journal_is_told() {
    let mut book = book();
    book.file.write_all(b"garbage\n").unwrap();
    book.refusal(7);
    let log = book.put("receipts.jsonl", &[1, 5].map(receipt).concat());
    let (code, report) = compared(&book, &["--backend-log", &log]);
    assert_eq!((code, &report["faults"]), (Some(5), &json!(1)));
    assert_eq!(report["refused"], 2);
}
