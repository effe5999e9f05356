//! Shipping a journal to collectors that work, refuse, hang and die.

use super::super::support::gates::{backend_at, gate_of, snapshot_for};
use super::super::support::loopback;
use super::super::support::memory_journal::MemoryJournal;
use super::super::support::process::eventually;
use super::Book;
use super::collector::{Collector, Mood};
use portcullis::audit::redact::Secret;
use portcullis::cli::shipping::{POSITION, Pace, Shipping};
use portcullis::config::snapshot::{Limits, Snapshot};
use portcullis::pipeline::Gate;
use portcullis::pipeline::shipping::Endpoint;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const PACE: Pace = Pace {
    idle: Duration::from_millis(5),
    pause: Duration::from_millis(5),
    timeout: Duration::from_millis(300),
};
const LONG: Duration = Duration::from_secs(20);

/// A gateway whose journal is this book's, which ships to this address.
struct Stand {
    gate: Arc<Gate>,
    journal: Arc<MemoryJournal>,
    shipping: Shipping,
}

fn snapshot(book: &Book, collector: Option<SocketAddr>) -> Snapshot {
    let moment = Duration::from_secs(1);
    let limits = Limits {
        body: 1,
        idle_stream: moment,
        max_stream: moment,
        unary_timeout: moment,
        connect_timeout: moment,
        send_timeout: moment,
    };
    let mut snapshot = snapshot_for(backend_at(loopback()), limits);
    snapshot.audit.dir = book.dir();
    snapshot.telemetry.otlp = collector.map(|address| {
        let mut key = http::HeaderValue::from_static("k1");
        key.set_sensitive(true);
        Endpoint {
            url: format!("http://{address}/v1/logs").into(),
            headers: vec![(http::HeaderName::from_static("x-api-key"), Secret::new(key))],
        }
    });
    snapshot
}

impl Stand {
    fn start(book: &Book, collector: SocketAddr) -> Stand {
        let journal = Arc::<MemoryJournal>::default();
        let gate = gate_of(snapshot(book, Some(collector)), journal.clone());
        Stand {
            shipping: Shipping::start(gate.clone(), PACE),
            gate,
            journal,
        }
    }

    fn metric(&self, name: &str) -> u64 {
        let text = self.gate.metrics.render();
        let start = format!("portcullis_export_{name}{{sink=\"otlp\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.map_or(0, |value| value.parse().unwrap())
    }

    /// What the journal was told about shipping.
    fn notes(&self) -> Vec<String> {
        let records = self.journal.records();
        let notes = records.iter().filter(|record| record["note"] == "export");
        notes
            .map(|note| note["detail"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn written(book: &Book) -> Vec<String> {
    let mut segments: Vec<_> = fs::read_dir(book.dir())
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    segments.retain(|path| path.extension().is_some_and(|e| e == "jsonl"));
    segments.sort();
    let text: String = segments
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    text.lines().map(str::to_owned).collect()
}

async fn arrives(collector: &Collector, lines: &[String]) {
    eventually("the collector to have every record", async || {
        (collector.lines().len() >= lines.len()).then_some(())
    })
    .await;
    assert_eq!(collector.lines(), lines);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_record_arrives_once_with_the_headers_and_what_comes_later_follows() {
    let mut book = Book::new();
    book.call(1, "responded", "yes");
    book.rotate();
    book.refusal(2);
    let collector = Collector::start(Mood::Takes).await;
    let stand = Stand::start(&book, collector.address);
    arrives(&collector, &written(&book)).await;
    book.rotate();
    book.call(3, "responded", "yes");
    arrives(&collector, &written(&book)).await;
    let (_, head) = collector.requests();
    assert!(head.starts_with("POST /v1/logs HTTP/1.1\r\n"), "{head}");
    for field in ["x-api-key: k1", "content-type: application/json"] {
        assert!(
            head.lines().any(|line| line.eq_ignore_ascii_case(field)),
            "{head}"
        );
    }
    let all = written(&book).len() as u64;
    eventually("no lag", async || {
        (stand.metric("lag_records") == 0).then_some(())
    })
    .await;
    assert_eq!(
        (stand.metric("records_total"), stand.metric("dropped_total")),
        (all, 0)
    );
    assert_eq!(stand.notes(), [""; 0]);
}

/// Also when it ends between sending and keeping the position: then some are sent twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_on_where_the_last_run_ended() {
    let mut book = Book::new();
    book.refusal(1);
    let collector = Collector::start(Mood::Takes).await;
    let stand = Stand::start(&book, collector.address);
    arrives(&collector, &written(&book)).await;
    stand.shipping.finish(LONG).await;
    let before = fs::read(book.dir().join(POSITION)).unwrap();
    book.refusal(2);
    let stand = Stand::start(&book, collector.address);
    arrives(&collector, &written(&book)).await;
    stand.shipping.finish(LONG).await;
    fs::write(book.dir().join(POSITION), before).unwrap();
    book.refusal(3);
    Stand::start(&book, collector.address)
        .shipping
        .finish(LONG)
        .await;
    let all = written(&book);
    assert_eq!(collector.lines(), [&all[..3], &all[2..]].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_does_not_take_them_now_gets_them_later() {
    let moods = [
        Mood::Answers(429, "retry-after: 0\r\n"),
        Mood::Answers(503, ""),
        Mood::Answers(401, ""),
        Mood::Answers(307, "location: http://localhost/\r\n"),
        Mood::Breaks,
        Mood::Hangs,
    ];
    for mood in moods {
        let mut book = Book::new();
        book.refusal(1);
        let collector = Collector::start(mood).await;
        let stand = Stand::start(&book, collector.address);
        eventually("attempts that fail", async || {
            (stand.metric("failures_total") >= 2).then_some(())
        })
        .await;
        assert_eq!(stand.metric("lag_records"), 2);
        book.refusal(1);
        eventually("lag that grows", async || {
            (stand.metric("lag_records") > 2).then_some(())
        })
        .await;
        assert_eq!(collector.lines(), [""; 0]);
        collector.becomes(Mood::Takes);
        arrives(&collector, &written(&book)).await;
        assert_eq!(stand.metric("dropped_total"), 0);
        assert_eq!(stand.notes(), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_dies_and_comes_back_misses_nothing() {
    let mut book = Book::new();
    book.refusal(1);
    let first = Collector::start(Mood::Takes).await;
    let stand = Stand::start(&book, first.address);
    arrives(&first, &written(&book)).await;
    let (address, had) = (first.address, first.lines());
    drop(first);
    book.refusal(2);
    let second = eventually("the address to be free", async || {
        let free = tokio::net::TcpListener::bind(address).await.is_ok();
        free.then_some(())
    });
    second.await;
    let second = Collector::start_at(address, Mood::Takes).await;
    arrives(&second, &written(&book)[had.len()..]).await;
    drop(stand);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_collector_refuses_for_good_is_counted_and_told_once() {
    let mut book = Book::new();
    book.refusal(1);
    let collector = Collector::start(Mood::Answers(400, "")).await;
    let stand = Stand::start(&book, collector.address);
    eventually("the batch to be dropped", async || {
        (stand.metric("dropped_total") == 2).then_some(())
    })
    .await;
    book.refusal(2);
    eventually("the next to be dropped", async || {
        (stand.metric("dropped_total") == 3).then_some(())
    })
    .await;
    collector.becomes(Mood::Takes);
    book.refusal(3);
    eventually("the last", async || {
        (collector.lines().len() == 1).then_some(())
    })
    .await;
    assert_eq!(collector.lines(), written(&book)[3..]);
    eventually("what was told", async || {
        (stand.notes().len() == 2).then_some(())
    })
    .await;
    assert_eq!(
        stand.notes(),
        [
            "otlp: 2 records: HTTP 400 from the collector",
            "otlp: works again; 3 records were dropped"
        ]
    );
    assert_eq!(stand.metric("records_total"), 1);

    collector.becomes(Mood::Refuses(1));
    book.refusal(4);
    eventually("a refused record", async || {
        (stand.metric("dropped_total") == 4).then_some(())
    })
    .await;
    assert_eq!(stand.metric("records_total"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_bounded_and_shrink_for_a_collector_that_takes_less() {
    let mut book = Book::new();
    for n in 1..=700 {
        book.refusal(n);
    }
    let collector = Collector::start(Mood::Takes).await;
    let stand = Stand::start(&book, collector.address);
    arrives(&collector, &written(&book)).await;
    assert!(collector.largest() <= 512, "{}", collector.largest());
    stand.shipping.finish(LONG).await;
    fs::remove_file(book.dir().join(POSITION)).unwrap();
    let small = Collector::start(Mood::Small(100)).await;
    let stand = Stand::start(&book, small.address);
    arrives(&small, &written(&book)).await;
    assert_eq!(stand.metric("dropped_total"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn segments_that_vanish_before_they_are_shipped_are_counted() {
    let mut book = Book::new();
    book.refusal(1);
    let collector = Collector::start(Mood::Takes).await;
    let stand = Stand::start(&book, collector.address);
    arrives(&collector, &written(&book)).await;
    stand.shipping.finish(LONG).await;
    book.refusal(2);
    book.rotate();
    book.refusal(3);
    fs::remove_file(book.dir().join("journal-00000000000000000001.jsonl")).unwrap();
    let stand = Stand::start(&book, collector.address);
    eventually("the rest", async || {
        (collector.lines().len() == 4).then_some(())
    })
    .await;
    assert_eq!(collector.lines()[2..], written(&book));
    assert_eq!(stand.metric("dropped_total"), 1);
    assert_eq!(
        stand.notes()[0],
        "otlp: 1 records: gone before they were shipped"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_configuration_is_followed_and_another_journal_begins_anew() {
    let mut book = Book::new();
    book.refusal(1);
    let (first, second) = (
        Collector::start(Mood::Hangs).await,
        Collector::start(Mood::Takes).await,
    );
    let stand = Stand::start(&book, first.address);
    eventually("a request", async || (first.requests().0 > 0).then_some(())).await;
    stand.gate.install(snapshot(&book, Some(second.address)));
    arrives(&second, &written(&book)).await;
    stand.gate.install(snapshot(&book, None));
    stand.shipping.finish(LONG).await;

    let mut other = Book::new();
    other.refusal(2);
    fs::copy(book.dir().join(POSITION), other.dir().join(POSITION)).unwrap();
    let third = Collector::start(Mood::Takes).await;
    let stand = Stand::start(&other, third.address);
    arrives(&third, &written(&other)).await;
    drop(stand);
}

/// A request as it is sent, for parsers of the protocol's own: `tests/interop/otlp.py` reads it.
#[test]
fn the_request_in_the_cases_is_the_one_that_is_made() {
    let mut book = Book::new();
    book.call(1, "sent_no_response", "maybe");
    book.refusal(2);
    let mut request = portcullis::audit::otlp::Request::new("gw-test");
    for line in written(&book) {
        request.add(&line, &serde_json::from_str(&line).unwrap(), super::TIME);
    }
    let made = request.finish() + "\n";
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/otlp/request.json");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    // The version of the program is not part of it.
    let version = env!("CARGO_PKG_VERSION");
    assert!(made.contains(&format!(r#""stringValue":"{version}""#)));
    assert_eq!(
        kept, made,
        "run with UPDATE_EXPECT=1 and review the difference"
    );
}
