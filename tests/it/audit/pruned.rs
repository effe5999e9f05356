//! `portcullis audit prune`: what goes, what stays, and that the rest is verified across the hole.

use super::made::{JOURNAL, Made, Said, command, sha256};
use crate::support::issuer::{DevAlgorithm, Issuer};
use crate::support::process::{Files, Plan};
use portcullis::adapters::clock::ManualClock;
use portcullis::adapters::journal::{FileJournal, Settings};
use portcullis::adapters::random::SystemRandom;
use portcullis::audit::pruned::Pruned;
use portcullis::identity::SigningKey;
use portcullis::identity::issuer::Algorithm;
use portcullis::identity::keys::KeySet;
use serde_json::json;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

/// A journal of three segments and the gateway file that it belongs to.
struct Stand {
    made: Made,
    files: Files,
    segments: Vec<PathBuf>,
}

impl Stand {
    fn new(min_age: &str) -> Stand {
        Stand::with(min_age, json!({}))
    }

    /// `newest`: members of the record that begins the newest segment.
    fn with(min_age: &str, newest: serde_json::Value) -> Stand {
        let mut made = Made::new();
        let mut segments = vec![made.segment(1)];
        made.open();
        made.config("d1d1", super::made::POLICY);
        for newest in [json!({}), newest] {
            let call = made.intent("alice", &json!({}));
            made.outcome(call, "responded");
            made.rotate_with(newest);
            segments.push(made.segment(made.next() - 1));
        }
        let call = made.intent("bob", &json!({}));
        made.outcome(call, "responded");
        made.close();
        let dir = made.dir();
        let plan = Plan {
            journal: Some(&dir),
            ..Plan::for_agent("http://127.0.0.1:9999")
        };
        let files = Files::write(&Issuer::new(DevAlgorithm::Es256), &plan);
        files.put("key.pem", &made.pem());
        let yaml = files.text("gateway.yaml");
        let durability = "durability: write";
        let yaml = yaml.replace(durability, &format!("{durability}, min_age: {min_age}"));
        files.put(
            "gateway.yaml",
            &format!("{yaml}keys: {{checkpoint: {{file: key.pem}}}}\n"),
        );
        Stand {
            made,
            files,
            segments,
        }
    }

    fn prune(&self, more: &[&str]) -> Said {
        let config = self.files.path("gateway.yaml");
        let arguments = [&["prune", "--config", config.to_str().unwrap()], more].concat();
        let output = command(&arguments, &self.made.dir())
            .stdin(Stdio::null())
            .output();
        Said::of(output.unwrap())
    }

    fn verify(&self, more: &[&str]) -> Said {
        let keys = self.made.keys();
        let all = [&["verify", "--keys", keys.to_str().unwrap()], more].concat();
        self.made.audit(&all)
    }

    fn there(&self) -> Vec<bool> {
        self.segments.iter().map(|path| path.exists()).collect()
    }

    fn lines(&self) -> Vec<Pruned> {
        let text = fs::read_to_string(self.made.dir().join("pruned.jsonl")).unwrap_or_default();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

#[test]
fn what_is_old_goes_for_signed_lines_and_the_rest_is_intact() {
    let stand = Stand::new("0s");
    let digests: Vec<String> = stand.segments[..2]
        .iter()
        .map(|path| sha256(&fs::read(path).unwrap()))
        .collect();
    let said = stand.prune(&["--dry-run"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("would remove 2 segments"), "{}", said.out);
    assert_eq!(stand.there(), [true, true, true]);
    assert!(stand.lines().is_empty());

    let said = stand.prune(&[]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("it is the newest"), "{}", said.out);
    assert_eq!(stand.there(), [false, false, true]);
    let keys = fs::read(stand.made.keys()).unwrap();
    let (keys, _) = KeySet::parse(&keys, Algorithm::EdDsa).unwrap();
    let lines = stand.lines();
    let found: Vec<String> = lines.iter().map(|line| line.sha256.clone()).collect();
    assert_eq!(found, digests);
    assert!(
        lines
            .iter()
            .all(|line| line.is_signed_by(&keys) && line.journal == JOURNAL)
    );
    assert!(lines[0].leads_to(&lines[1]));

    let said = stand.verify(&[]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let json = stand.verify(&["--json"]).json();
    assert_eq!(json["journals"][0]["pruned"]["records"], lines[1].last_seq);
    let again = stand.prune(&["--json"]).json();
    assert_eq!(again["segments"], json!([]));
}

#[test]
fn a_hole_that_nobody_signed_is_found() {
    let stand = Stand::new("0s");
    assert_eq!(stand.prune(&[]).code, 0);
    let file = stand.made.dir().join("pruned.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    // Without its line, with a changed one, with the line of another piece.
    for wrong in [
        String::new(),
        text.replace("\"why\":\"age\"", "\"why\":\"exported\""),
        text.lines().next().unwrap().to_owned() + "\n",
    ] {
        fs::write(&file, wrong).unwrap();
        let said = stand.verify(&[]);
        assert_eq!(said.code, 5, "{}{}", said.out, said.err);
        assert!(
            said.out.contains("nothing that is signed says"),
            "{}",
            said.out
        );
    }
}

#[test]
fn what_is_young_stays_unless_it_was_exported_whole() {
    let stand = Stand::new("36500d");
    let said = stand.prune(&[]);
    assert!(said.out.contains("younger than `min_age`"), "{}", said.out);
    assert_eq!(stand.there(), [true, true, true]);
    // Up to the last record of the first segment.
    let bytes = fs::read(&stand.segments[0]).unwrap();
    let lines: Vec<&[u8]> = bytes[..bytes.len() - 1].split(|b| *b == b'\n').collect();
    let position = |seq: usize, sha256: &str| {
        let position = json!({
            "journal": JOURNAL, "segment": "journal-00000000000000000001.jsonl", "offset": 0,
            "seq": seq, "sha256": sha256,
        });
        stand.files.put("position.json", &position.to_string());
        let path = stand.files.path("position.json");
        stand.prune(&["--exported", path.to_str().unwrap()])
    };
    let last = lines.len();
    let said = position(last, &sha256(lines[last - 2]));
    assert_eq!(said.code, 3, "{}{}", said.out, said.err);
    assert!(said.err.contains("another journal"), "{}", said.err);
    let said = position(last - 1, &sha256(lines[last - 2]));
    assert_eq!((said.code, stand.there()), (0, vec![true, true, true]));
    let said = position(last, &sha256(lines[last - 1]));
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(stand.there(), [false, true, true]);
    assert_eq!(stand.verify(&[]).code, 0);
}

#[test]
fn what_recovery_may_need_and_what_is_asked_to_stay_stays() {
    let stand = Stand::with("0s", json!({"oldest_open": 4}));
    let said = stand.prune(&[]);
    assert!(said.out.contains("intent 4 has no outcome"), "{}", said.out);
    assert_eq!(stand.there(), [true, true, true]);
    let stand = Stand::new("0s");
    let said = stand.prune(&["--older-than", "36500d"]);
    assert!(said.out.contains("--older-than"), "{}", said.out);
    assert_eq!(stand.there(), [true, true, true]);
    let said = stand.prune(&["--down-to", "1GiB"]);
    assert!(said.out.contains("small enough"), "{}", said.out);
    assert_eq!(stand.there(), [true, true, true]);
}

#[test]
fn nothing_that_is_broken_is_removed() {
    let stand = Stand::new("0s");
    let text = fs::read_to_string(&stand.segments[0]).unwrap();
    fs::write(&stand.segments[0], text.replacen("alice", "mallo", 1)).unwrap();
    let said = stand.prune(&[]);
    assert_eq!(said.code, 5, "{}{}", said.out, said.err);
    assert!(said.err.contains("prev"), "{}", said.err);
    assert_eq!(stand.there(), [true, true, true]);
    // Whole, and not signed by the key that is configured.
    fs::write(&stand.segments[0], text).unwrap();
    let other = Made::with_key(8);
    stand.files.put("key.pem", &other.pem());
    let said = stand.prune(&[]);
    assert_eq!(said.code, 5, "{}{}", said.out, said.err);
    assert!(said.err.contains("key_id"), "{}", said.err);
    assert_eq!(stand.there(), [true, true, true]);
    assert!(stand.lines().is_empty());
}

#[test]
fn a_crash_between_the_line_and_the_removal_is_made_good() {
    let stand = Stand::new("0s");
    let first = fs::read(&stand.segments[0]).unwrap();
    assert_eq!(stand.prune(&[]).code, 0);
    let lines = stand.lines();
    fs::write(&stand.segments[1], b"").unwrap();
    fs::remove_file(&stand.segments[1]).unwrap();
    // As if the first had not been removed yet; what follows it went by its own line.
    let text = serde_json::to_string(&lines[0]).unwrap() + "\n";
    fs::write(stand.made.dir().join("pruned.jsonl"), text).unwrap();
    fs::write(&stand.segments[0], first).unwrap();
    let second = Stand::new("0s");
    fs::copy(&second.segments[1], &stand.segments[1]).unwrap();
    assert_eq!(stand.verify(&[]).code, 0);
    let said = stand.prune(&[]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(stand.there(), [false, false, true]);
    assert_eq!(stand.lines().len(), 2);
    assert_eq!(stand.verify(&[]).code, 0);
}

#[test]
fn a_position_that_is_none_is_refused_and_nothing_goes() {
    let stand = Stand::new("36500d");
    let good = json!({"journal": JOURNAL, "segment": "s", "offset": 0, "seq": 3,
        "sha256": "ab".repeat(32)});
    let text = good.to_string();
    let long = format!("{{\"x\":\"{}\",{}", "x".repeat(70_000), &text[1..]);
    let cases = [
        String::new(),
        "[]".to_owned(),
        text.replace("\"seq\":3,", ""),
        text.replace("\"seq\":3", "\"seq\":\"3\""),
        text.replace("\"seq\":3", "\"seq\":-3"),
        text.replace("\"seq\":3", "\"seq\":3,\"seq\":99"),
        text.replace("\"seq\":3", "\"seq\":99999"),
        long,
    ];
    let path = stand.files.path("position.json");
    for case in cases {
        stand.files.put("position.json", &case);
        let said = stand.prune(&["--exported", path.to_str().unwrap()]);
        let shown = &case[..case.len().min(200)];
        assert_eq!(said.code, 3, "{shown}: {}{}", said.out, said.err);
        assert_eq!(stand.there(), [true, true, true]);
    }
    fs::remove_file(&path).unwrap();
    let said = stand.prune(&["--exported", path.to_str().unwrap()]);
    assert_eq!(said.code, 3, "{}", said.err);
}

#[test]
fn lines_of_removed_segments_that_are_none_prove_nothing() {
    let stand = Stand::new("0s");
    assert_eq!(stand.prune(&[]).code, 0);
    let file = stand.made.dir().join("pruned.jsonl");
    let good = fs::read_to_string(&file).unwrap();
    for bad in [
        good.replacen("\"v\":1", "\"v\":2", 1),
        good.replacen("\"v\":1,", "", 1),
        good.replacen("\"first_seq\":1", "\"first_seq\":\"1\"", 1),
        good.replacen("\"v\":1", "\"v\":1,\"v\":1", 1),
        good.replacen("\"v\":1", "\"v\":1,\"x\":1", 1),
        format!("{}\n{good}", "x".repeat(1 << 20)),
    ] {
        assert_ne!(bad, good);
        fs::write(&file, &bad).unwrap();
        let said = stand.verify(&[]);
        assert_eq!(said.code, 5, "{}: {}", &bad[..200], said.out);
    }
    fs::write(&file, good).unwrap();
    assert_eq!(stand.verify(&[]).code, 0);
}

/// A gateway may be in the middle of a line, and another pruner at work.
#[test]
fn it_works_beside_a_gateway_and_not_beside_another_pruner() {
    let stand = Stand::new("0s");
    let newest = &stand.segments[2];
    let good = fs::read(newest).unwrap();
    let other = File::create(stand.made.dir().join("prune.lock")).unwrap();
    other.lock().unwrap();
    let said = stand.prune(&[]);
    assert_eq!(
        (said.code, stand.there()),
        (3, vec![true; 3]),
        "{}",
        said.err
    );
    assert!(said.err.contains("at work"), "{}", said.err);
    drop(other);
    // Nothing but the beginning of its first line: the one before it may still be needed.
    fs::write(newest, &good[..20]).unwrap();
    let said = stand.prune(&[]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(stand.there(), [false, true, true]);
    let mut torn = good.clone();
    torn.extend(b"{\"v\":1,\"seq\":99");
    fs::write(newest, torn).unwrap();
    let said = stand.prune(&[]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(stand.there(), [false, false, true]);
    fs::write(newest, good).unwrap();
    assert_eq!(stand.verify(&[]).code, 0);
}

#[test]
fn a_gateway_goes_on_behind_what_was_removed() {
    let stand = Stand::new("0s");
    assert_eq!(stand.prune(&[]).code, 0);
    let key = SigningKey::from_pem(&stand.made.pem()).unwrap();
    let settings = Settings::new(stand.made.dir(), Arc::new(key), "gw-2".into());
    let clock = Arc::new(ManualClock::at(super::made::START + 86_400_000));
    let journal = FileJournal::open(settings, clock, &SystemRandom).unwrap();
    journal.close();
    let said = stand.verify(&[]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(
        said.out.contains("2 segments, by signed lines"),
        "{}",
        said.out
    );
}
