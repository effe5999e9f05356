#![allow(clippy::unwrap_used)]

mod changes;

use super::join::{End, Verifier};
use super::piece::{At, Looking, Means};
use super::report::Report;
use super::*;
use crate::audit::chain::Chain;
use crate::audit::checkpoint::{Signed, public_keys, sign};
use crate::audit::record::{self, Head, Time};
use crate::audit::redact::hex;
use crate::identity::SigningKey;
use aws_lc_rs::signature::Ed25519KeyPair;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

const JOURNAL: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
static SCHEMA: LazyLock<Value> = LazyLock::new(record::schema);
const START: u64 = 1_798_675_199_000;

fn key(seed: u8) -> SigningKey {
    SigningKey::new(Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap())
}

/// A journal that is written by hand, one line after the other.
struct Written {
    key: SigningKey,
    journal: &'static str,
    chain: Chain,
    lines: Vec<Vec<u8>>,
    /// Which lines begin a segment.
    begins: Vec<usize>,
}

impl Written {
    fn new(seed: u8, journal: &'static str) -> Written {
        Written {
            key: key(seed),
            journal,
            chain: Chain::START,
            lines: Vec::new(),
            begins: vec![0],
        }
    }

    fn time(&self) -> Time {
        Time(START + 1000 * self.chain.sequence())
    }

    /// A record of `kind` with whatever that must have, and `members` in their place.
    fn put(&mut self, kind: &str, members: Value) -> u64 {
        let schema = &*SCHEMA;
        let variants = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
        let variant = variants
            .unwrap()
            .iter()
            .find(|v| v["properties"]["kind"]["const"] == kind)
            .unwrap();
        let mut all = Map::new();
        all.insert("kind".into(), json!(kind));
        all.insert("time".into(), json!(self.time().to_string()));
        for name in variant["required"].as_array().unwrap() {
            let name = name.as_str().unwrap();
            if !all.contains_key(name) {
                let value = match name {
                    "instance" => json!("gw-1"),
                    "policy_digest" => json!("d"),
                    "delivery" => json!("not_attempted"),
                    _ => json!(0),
                };
                all.insert(name.to_owned(), value);
            }
        }
        for (name, value) in members.as_object().unwrap() {
            all.insert(name.clone(), value.clone());
        }
        let text = Value::Object(all).to_string();
        let mut line = Vec::new();
        self.chain
            .seal(&text.as_bytes()[1..text.len() - 1], &mut line);
        line.pop();
        self.lines.push(line);
        self.chain.sequence()
    }

    fn checkpoint(&mut self) {
        let (size, head) = (self.chain.sequence(), self.chain.head());
        let of = Head {
            time: self.time(),
            instance: "gw-1",
            generation: 0,
            policy_digest: "d",
        };
        let signature = sign(&self.key, self.journal, (size, head), of);
        let members = json!({
            "journal": self.journal, "size": size, "chain_head": hex(&head, &mut [0; 64]),
            "key_id": self.key.kid(), "signature": signature,
        });
        self.put("checkpoint", members);
    }

    fn opened(&mut self) {
        let journal = self.journal;
        self.put("note", json!({"note": "opened", "journal": journal}));
        self.checkpoint();
    }

    fn calls(&mut self, count: usize) {
        for _ in 0..count {
            let intent = self.put("intent", json!({}));
            self.put("refusal", json!({}));
            self.put(
                "outcome",
                json!({"intent": intent, "delivery": "responded"}),
            );
        }
    }

    fn rotate(&mut self) {
        self.checkpoint();
        self.begins.push(self.lines.len());
        let journal = self.journal;
        self.put("note", json!({"note": "segment", "journal": journal}));
    }

    fn close(&mut self) {
        self.put("note", json!({"note": "closed"}));
        self.checkpoint();
    }

    /// Two runs of a gateway over three segments: 31 records.
    fn usual() -> Written {
        let mut written = Written::new(7, JOURNAL);
        written.opened();
        written.calls(2);
        written.rotate();
        written.calls(2);
        written.checkpoint();
        written.calls(1);
        written.close();
        written.opened();
        written.rotate();
        written.calls(1);
        written.close();
        written
    }

    /// The bytes of each segment, with the number in its name.
    fn segments(&self) -> Vec<(u64, Vec<u8>)> {
        let mut segments: Vec<(u64, Vec<u8>)> = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            if self.begins.contains(&at) {
                segments.push((at as u64 + 1, Vec::new()));
            }
            let (_, bytes) = segments.last_mut().unwrap();
            bytes.extend(line);
            bytes.push(b'\n');
        }
        segments
    }

    fn last_checkpoint(&self) -> Signed {
        self.lines
            .iter()
            .rev()
            .find_map(|line| Signed::of(line))
            .unwrap()
    }
}

const STOPPED: End = End {
    held: false,
    tail: 0,
};

struct Check<'c> {
    size: usize,
    keys: Option<u8>,
    external: &'c [Signed],
    end: End,
}

const PLAIN: Check<'static> = Check {
    size: 5,
    keys: Some(7),
    external: &[],
    end: STOPPED,
};

fn verify(segments: &[(u64, Vec<u8>)], check: &Check<'_>) -> Report {
    let means = Means {
        required: Required::new(),
        keys: check.keys.map(|seed| public_keys(&key(seed)).unwrap()),
        wanted: Verifier::wanted(check.external),
    };
    let mut verifier = Verifier::new(&means, check.external.to_vec(), Chain::START);
    for (first, bytes) in segments {
        let name = format!("journal-{first:020}.jsonl");
        let mut offset = 0;
        let mut lines: Vec<(u64, &[u8])> = Vec::new();
        for line in bytes.split(|b| *b == b'\n') {
            lines.push((offset, line));
            offset += line.len() as u64 + 1;
        }
        let (torn, rest) = lines.pop().unwrap();
        let mut pieces: Vec<&[(u64, &[u8])]> = lines.chunks(check.size).collect();
        if pieces.is_empty() {
            pieces.push(&[]);
        }
        let many = pieces.len();
        for (nth, piece) in pieces.into_iter().enumerate() {
            let mut looking = Looking::new(&means);
            for (at, (offset, line)) in piece.iter().enumerate() {
                let (line_number, offset) = (at as u64, *offset);
                looking.line(
                    At {
                        line: line_number,
                        offset,
                    },
                    line,
                );
            }
            if nth + 1 == many && !rest.is_empty() {
                looking.torn(At {
                    line: piece.len() as u64,
                    offset: torn,
                });
            }
            verifier.join(&name, *first, looking.done());
        }
    }
    verifier.done(check.end)
}

/// What is first wrong: its label, and the records that it may be about.
fn first(report: &Report) -> Option<(&'static str, Option<(u64, u64)>)> {
    let problem = report.first_broken().or(report.problems.first())?;
    Some((problem.what.label(), problem.records))
}

#[test]
fn a_journal_as_it_was_written_is_intact_in_pieces_of_any_size() {
    let written = Written::usual();
    for size in 1..40 {
        let report = verify(&written.segments(), &Check { size, ..PLAIN });
        assert!(report.intact(), "{:?}", report.problems);
        let counted = (report.records, report.segments, report.last);
        assert_eq!(counted, (written.lines.len() as u64, 3, report.records));
        assert_eq!(
            (report.intents, report.outcomes, report.refusals),
            (6, 6, 6)
        );
        assert_eq!((report.open, report.unsigned, report.unclosed), (0, 0, 0));
        assert_eq!(report.instance_count, 2);
        assert!(report.closed);
        assert_eq!(report.trusted(), Some(report.last - 1));
        assert_eq!(report.journal.as_deref(), Some(JOURNAL));
    }
}

#[test]
fn what_stands_behind_the_last_checkpoint_is_fine_only_as_long_as_allowed() {
    let mut written = Written::usual();
    let last = written.chain.sequence();
    // With a right chain, as anybody can make it.
    written.calls(1);
    let report = verify(&written.segments(), &PLAIN);
    assert_eq!(
        first(&report),
        Some(("unsigned", Some((last + 1, last + 3))))
    );
    assert_eq!(report.trusted(), Some(last - 1));
    for (tail, fine) in [(3_000, true), (1_999, false)] {
        let end = End { held: true, tail };
        let report = verify(&written.segments(), &Check { end, ..PLAIN });
        assert_eq!(report.intact(), fine, "{tail}: {:?}", report.problems);
    }
    let report = verify(
        &written.segments(),
        &Check {
            keys: None,
            ..PLAIN
        },
    );
    assert!(report.intact() && !report.checked);
}

#[test]
fn a_journal_that_was_cut_is_found_by_an_external_checkpoint() {
    let mut written = Written::usual();
    let external = [written.last_checkpoint()];
    let size = external[0].size;
    let check = Check {
        external: &external,
        ..PLAIN
    };
    let report = verify(&written.segments(), &check);
    assert!(report.intact() && report.external.found == 1);
    // Back to the checkpoint of the first run's end, where the chain and signatures are right.
    written.lines.truncate(22);
    written.begins.retain(|begin| *begin < 22);
    let whole = verify(&written.segments(), &PLAIN);
    assert!(whole.intact(), "{:?}", whole.problems);
    let report = verify(&written.segments(), &check);
    assert_eq!(first(&report), Some(("truncated", Some((23, size)))));
}

#[test]
fn another_journal_in_its_place_is_found() {
    let original = Written::usual();
    let external = [original.last_checkpoint()];
    let with = |written: &Written, keys| {
        let check = Check {
            external: &external,
            keys: Some(keys),
            ..PLAIN
        };
        let labels = verify(&written.segments(), &check).problems;
        let labels: Vec<&str> = labels.iter().map(|p| p.what.label()).collect();
        labels
    };
    // With a key of its maker's own.
    let mut forged = Written::new(9, JOURNAL);
    forged.opened();
    forged.calls(12);
    forged.close();
    assert!(with(&forged, 7).contains(&"checkpoint"));
    // Another journal of the same deployment.
    let mut other = Written::new(7, "01BX5ZZKBKACTAV9WEVGEMMVRZ");
    other.opened();
    other.calls(12);
    other.close();
    assert_eq!(with(&other, 7), ["external_other_journal"]);
    // A journal that went another way after the checkpoint was kept: it needs the key.
    let mut again = Written::new(7, JOURNAL);
    again.opened();
    again.calls(12);
    again.close();
    assert_eq!(with(&again, 7), ["replaced"]);
    assert!(with(&original, 9).contains(&"external_checkpoint"));
}

#[test]
fn a_segment_that_was_chained_anew_without_the_key_is_found() {
    let written = Written::usual();
    for begin in written.begins.clone() {
        // All from this segment's second record on, with checkpoints as they were.
        let mut chain = Chain::START;
        let mut forged = Written::usual();
        for (at, line) in written.lines.iter().enumerate() {
            let text = String::from_utf8(line.clone()).unwrap();
            let members = text.split_once(",\"kind\"").unwrap().1;
            let mut members = format!("\"kind\"{}", members.strip_suffix('}').unwrap());
            if at == begin + 1 {
                members += ",\"x\":1";
            }
            let mut out = Vec::new();
            chain.seal(members.as_bytes(), &mut out);
            out.pop();
            forged.lines[at] = out;
        }
        let report = verify(&forged.segments(), &PLAIN);
        let (label, records) = first(&report).unwrap();
        assert_eq!(label, "checkpoint");
        let changed = begin as u64 + 2;
        let (from, to) = records.unwrap();
        assert!((from..=to).contains(&changed), "{changed} in {from}..={to}");
        assert!(report.trusted().unwrap_or(0) < changed);
    }
}

#[test]
fn what_records_say_must_fit_together() {
    let mut written = Written::new(7, JOURNAL);
    written.opened();
    let intent = written.put("intent", json!({}));
    let outcome = json!({"intent": intent, "delivery": "responded"});
    written.put("outcome", outcome.clone());
    written.put("outcome", outcome);
    written.put("outcome", json!({"intent": 1, "delivery": "responded"}));
    written.put("refusal", json!({"delivery": "responded"}));
    let left = written.put("intent", json!({}));
    written.opened();
    written.close();
    let report = verify(&written.segments(), &PLAIN);
    let found: Vec<(&str, Option<(u64, u64)>)> = report
        .problems
        .iter()
        .map(|problem| (problem.what.label(), problem.records))
        .collect();
    let one = |seq| Some((seq, seq));
    assert_eq!(
        found,
        [
            ("second_outcome", one(5)),
            ("no_intent", one(6)),
            ("refused_and_sent", one(7)),
            ("left_open", one(left)),
        ]
    );
    assert!(!report.intact() && !report.broken);
    assert_eq!(report.unclosed, 1);
    let started: Vec<(u64, bool, Option<u64>)> = report
        .instances
        .iter()
        .map(|instance| (instance.opened, instance.before_closed, instance.after))
        .collect();
    assert_eq!(started, [(1, true, None), (left + 1, false, Some(1000))]);
}

#[test]
fn a_torn_last_line_is_fine_while_the_journal_is_held() {
    let mut segments = Written::usual().segments();
    segments.last_mut().unwrap().1.extend(b"{\"v\":1,\"se");
    let report = verify(&segments, &PLAIN);
    assert_eq!(first(&report).unwrap().0, "torn");
    let end = End {
        held: true,
        tail: 0,
    };
    let report = verify(&segments, &Check { end, ..PLAIN });
    assert!(report.intact() && report.being_written);
}

#[test]
fn a_beginning_that_is_gone_and_a_wrong_name_are_found() {
    let written = Written::usual();
    let segments = written.segments();
    let begin = written.begins[1] as u64 + 1;
    let report = verify(&segments[1..], &PLAIN);
    assert_eq!(first(&report), Some(("beginning", Some((begin, begin)))));
    assert_eq!(report.trusted(), None);
    let mut renamed = segments;
    renamed[1].0 += 1;
    let report = verify(&renamed, &PLAIN);
    assert_eq!(first(&report), Some(("misnamed", Some((begin, begin)))));
}
