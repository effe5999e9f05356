use super::log::{Entry, Format, Line, moment};
use super::*;
use proptest::prelude::*;

const HOUR: u64 = 3_600_000;
const NOW: u64 = 1_798_675_199_007;

fn id(at: u64, n: u128) -> String {
    Ulid::from_parts(at, n).to_string()
}

fn record(kind: &str, id: &str, agent: &str, reached: &str, attempts: usize) -> String {
    let attempts = vec!["{}"; attempts].join(",");
    let name = if kind == "fetch" { "target" } else { "agent" };
    format!(
        r#"{{"v":1,"seq":1,"kind":"{kind}","request_id":"{id}","{name}":"{agent}","reached":"{reached}","attempts":[{attempts}]}}"#
    )
}

fn take(join: &mut Join, line: &str) {
    join.ours(&serde_json::from_str(line).unwrap()).unwrap();
}

#[test]
fn every_id_falls_into_its_place() {
    let mut join = Join::new(Span::ALL, None);
    let call = |n, kind, reached| record(kind, &id(NOW, n), "pr", reached, 1);
    for (n, reached) in [
        (1, "yes"),
        (2, "maybe"),
        (3, "no"),
        (4, "yes"),
        (5, "maybe"),
        (6, "no"),
    ] {
        take(&mut join, &call(n, "intent", ""));
        take(&mut join, &call(n, "outcome", reached));
    }
    take(&mut join, &call(7, "intent", ""));
    take(&mut join, &call(8, "refusal", "no"));
    take(&mut join, &call(9, "refusal", "no"));
    take(&mut join, &record("fetch", &id(NOW, 10), "pr", "", 0));
    take(&mut join, &record("outcome", &id(NOW, 11), "pr", "yes", 2));
    take(&mut join, r#"{"kind":"note"}"#);
    let mut strays = Vec::new();
    for n in [1, 2, 3, 9, 9, 10, 11, 11, 99] {
        strays.extend(join.theirs(Some(&id(NOW, n)), None).unwrap());
    }
    for none in [
        None,
        Some(""),
        Some("-"),
        Some("8ZZZZZZZZZZZZZZZZZZZZZZZZZ"),
        Some("no-ulid"),
    ] {
        strays.extend(join.theirs(none, None).unwrap());
    }
    let report = join.report();
    let counts = report.counts;
    assert_eq!(
        (counts.both.yes, counts.both.maybe, counts.both.no),
        (2, 1, 1)
    );
    let ours = counts.ours_only;
    assert_eq!((ours.yes, ours.maybe, ours.no, ours.open), (1, 1, 1, 1));
    assert_eq!((counts.refused, counts.refused_but_executed), (1, 1));
    assert_eq!((counts.repeated, counts.resent), (2, 1));
    assert_eq!(
        (report.theirs_only.unknown_id, report.theirs_only.without_id),
        (1, 5)
    );
    assert_eq!(strays.len() as u64, report.theirs_only.total());
    assert_eq!(report.fetches, 1);
    assert!(report.is_breached());
    let listed = |kind| {
        let (ids, count) = join.list(kind, 100);
        assert_eq!(ids.len() as u64, count);
        ids.into_iter()
            .map(|listed| listed.request_id)
            .collect::<Vec<_>>()
    };
    let ids = |numbers: &[u128]| numbers.iter().map(|n| id(NOW, *n)).collect::<Vec<_>>();
    assert_eq!(listed(Kind::OursOnly), ids(&[4, 5, 6, 7]));
    assert_eq!(listed(Kind::RefusedButExecuted), ids(&[9]));
    assert_eq!(listed(Kind::TheirsOnly), ids(&[99]));
    assert_eq!(listed(Kind::Repeated), ids(&[9, 11]));
    assert_eq!(listed(Kind::Contradicted), ids(&[3]));
    assert_eq!(join.list(Kind::OursOnly, 2).0.len(), 2);
    assert_eq!(join.list(Kind::OursOnly, 2).1, 4);
}

/// Ten million ids take 16 million places of a hash table, and while it grows half as many again.
#[test]
fn an_id_takes_little_memory() {
    let place = size_of::<([u8; 16], Known)>() + 1;
    assert!(place * (16 + 8) <= 600, "{place} bytes, 24 million of them");
}

#[test]
fn a_quiet_day_is_no_breach() {
    let mut join = Join::new(Span::ALL, None);
    take(&mut join, &record("refusal", &id(NOW, 1), "pr", "no", 0));
    take(&mut join, &record("outcome", &id(NOW, 2), "pr", "yes", 1));
    assert_eq!(join.theirs(Some(&id(NOW, 2)), None), Ok(None));
    assert!(!join.report().is_breached());
}

#[test]
fn an_id_of_another_agent_is_nobodys() {
    let mut join = Join::new(Span::ALL, Some("pr"));
    take(&mut join, &record("outcome", &id(NOW, 1), "ci", "yes", 1));
    take(&mut join, &record("outcome", &id(NOW, 2), "pr", "yes", 1));
    let stray = join.theirs(Some(&id(NOW, 1)), None);
    assert_eq!(stray, Ok(Some(Stray::OtherAgent)));
    let report = join.report();
    assert_eq!(report.theirs_only.other_agent, 1);
    assert_eq!(report.counts.ours_only.yes, 1);
    assert_eq!(report.agents.keys().collect::<Vec<_>>(), ["pr"]);
    assert_eq!(join.list(Kind::TheirsOnly, 9).0[0].agent, "ci");
}

#[test]
fn a_call_belongs_to_the_time_of_its_id_whenever_the_agent_wrote_about_it() {
    let span = Span {
        since: NOW,
        until: NOW + HOUR,
    };
    let mut join = Join::new(span, None);
    for (n, at) in [(1, NOW - 1), (2, NOW), (3, NOW + HOUR - 1), (4, NOW + HOUR)] {
        take(&mut join, &record("outcome", &id(at, n), "pr", "yes", 1));
    }
    // Streams of the hour before, and of this one, that ended an hour later.
    for (n, at) in [(1, NOW - 1), (2, NOW), (3, NOW + HOUR - 1), (4, NOW + HOUR)] {
        assert_eq!(join.theirs(Some(&id(at, n)), Some(at + HOUR)), Ok(None));
    }
    // Strangers by their line's time, or else by that of their id.
    assert_eq!(
        join.theirs(Some(&id(0, 9)), Some(NOW)),
        Ok(Some(Stray::UnknownId))
    );
    assert_eq!(
        join.theirs(Some(&id(NOW, 8)), None),
        Ok(Some(Stray::UnknownId))
    );
    assert_eq!(join.theirs(Some(&id(NOW - 1, 7)), None), Ok(None));
    assert_eq!(join.theirs(None, Some(NOW - 1)), Ok(None));
    assert_eq!(join.theirs(None, None), Ok(Some(Stray::WithoutId)));
    let report = join.report();
    assert_eq!(report.counts.both.yes, 2);
    assert_eq!(report.counts.ours_only.total(), 0);
    assert_eq!(report.outside, 2);
    assert_eq!(report.theirs_only.total(), 3);
}

fn entry(format: &mut Format, line: &str) -> Option<(Option<String>, Option<u64>)> {
    match format.read(line.as_bytes()).unwrap() {
        Line::Entry(Entry { id, at }) => Some((id.map(|id| id.into_owned()), at)),
        Line::Nothing | Line::NotUnderstood => None,
    }
}

#[test]
fn logs_of_many_kinds_say_which_request_it_was() {
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let some = |at| Some((Some(id.to_owned()), at));
    let mut receipts = Format::receipts();
    let line = format!(r#"{{"v":1,"time":"2026-12-30T23:59:59.007Z","request_id":"{id}"}}"#);
    assert_eq!(entry(&mut receipts, &line), some(Some(NOW)));
    let unasserted = r#"{"v":1,"request_id":null,"assertion":"no assertion"}"#;
    assert_eq!(entry(&mut receipts, unasserted), Some((None, None)));
    assert_eq!(receipts.read(b"[1]").unwrap(), Line::NotUnderstood);
    assert_eq!(receipts.read(b" ").unwrap(), Line::Nothing);

    let mut json = Format::json("http.headers.request_id", Some("ts"));
    let line = format!(r#"{{"ts":1798675199.007,"http":{{"headers":{{"request_id":"{id}"}}}}}}"#);
    assert_eq!(entry(&mut json, &line), some(Some(NOW)));

    let mut csv = Format::csv("id", Some("when"));
    assert_eq!(
        csv.read(b"\xef\xbb\xbfwhen,who,id\r").unwrap(),
        Line::Nothing
    );
    let line = format!("2026-12-30 23:59:59.007Z,\"a \"\"b\"\", c\",{id}\r");
    assert_eq!(entry(&mut csv, &line), some(Some(NOW)));
    assert_eq!(entry(&mut csv, "x,y"), Some((None, None)));
    assert_eq!(csv.read(b"a,\"b\"c,d").unwrap(), Line::NotUnderstood);
    assert!(csv.goes_on(b"a,\"b") && !csv.goes_on(b"a,\"b\""));
    assert!(Format::csv("id", None).read(b"a,b").is_err());

    let mut combined = Format::combined().unwrap();
    let line = format!(
        r#"10.0.0.7 - - [30/Dec/2026:15:59:59 -0800] "POST /a2a HTTP/1.1" 200 12 "-" "curl \"8\"" "{id}""#
    );
    assert_eq!(entry(&mut combined, &line), some(Some(NOW - 7)));
    let without = r#"10.0.0.7 - - [30/Dec/2026:15:59:59 -0800] "GET / HTTP/1.1" 200 1 "-" "x" "-""#;
    assert_eq!(entry(&mut combined, without), Some((None, Some(NOW - 7))));
    assert_eq!(combined.read(b"starting up").unwrap(), Line::NotUnderstood);

    let mut envoy = Format::envoy().unwrap();
    let line = format!(r#"[2026-12-30T23:59:59.007Z] "POST /a2a HTTP/2" 200 - "ua" "{id}""#);
    assert_eq!(entry(&mut envoy, &line), some(Some(NOW)));

    assert!(Format::pattern("(?P<name>x)").is_err());
    assert!(Format::pattern("(").is_err());
    assert!(Format::pattern(r"(?P<id>(\w{1000}){1000})").is_err());
}

#[test]
fn times_are_read_as_logs_write_them() {
    for (text, expected) in [
        ("2026-12-30T23:59:59.007Z", Some(NOW)),
        ("2026-12-31T00:59:59.007123+01:00", Some(NOW)),
        ("2026-12-30T23:59:59Z", Some(NOW - 7)),
        ("1798675199", Some(NOW - 7)),
        ("1798675199007", Some(NOW)),
        ("30/Dec/2026:23:59:59 +0000", Some(NOW - 7)),
        ("30/Foo/2026:23:59:59 +0000", None),
        ("yesterday", None),
        ("-5", None),
        ("NaN", None),
    ] {
        assert_eq!(moment(text), expected, "{text}");
    }
}

proptest! {
    /// Whatever stands in a log, reading it does no harm.
    #[test]
    fn no_line_is_too_odd(line in prop::collection::vec(any::<u8>(), 0..200)) {
        for mut format in [
            Format::receipts(),
            Format::csv("a", None),
            Format::combined().unwrap(),
            Format::envoy().unwrap(),
        ] {
            let _ = format.read(&line);
            let _ = format.goes_on(&line);
        }
        let _ = moment(&String::from_utf8_lossy(&line));
    }

    /// Every call and every line is counted once.
    #[test]
    fn nothing_is_counted_twice_or_lost(
        calls in prop::collection::vec((0..40u128, 0..4usize), 0..60),
        lines in prop::collection::vec(0..60u128, 0..80),
    ) {
        let mut join = Join::new(Span::ALL, None);
        let mut states = std::collections::BTreeMap::new();
        for (n, state) in calls {
            states.entry(n).or_insert(state);
        }
        for (n, state) in &states {
            let id = id(NOW, *n);
            if *state == 3 {
                take(&mut join, &record("refusal", &id, "pr", "no", 0));
            } else {
                let reached = ["yes", "no", "maybe"][*state];
                take(&mut join, &record("intent", &id, "pr", "", 0));
                take(&mut join, &record("outcome", &id, "pr", reached, 1));
            }
        }
        let mut strays = 0;
        for n in &lines {
            strays += u64::from(join.theirs(Some(&id(NOW, *n)), None).unwrap().is_some());
        }
        let report = join.report();
        let counts = report.counts;
        let forwarded = states.values().filter(|state| **state < 3).count() as u64;
        prop_assert_eq!(counts.both.total() + counts.ours_only.total(), forwarded);
        prop_assert_eq!(counts.refused + counts.refused_but_executed, states.len() as u64 - forwarded);
        let unknown = lines.iter().filter(|n| !states.contains_key(n)).count() as u64;
        prop_assert_eq!(strays, unknown);
        prop_assert_eq!(report.theirs_only.total(), unknown);
    }
}
