//! `portcullis audit bundle`: evidence that is verified by itself.

use super::made::{Made, POLICY, Said, command_on, request, sha256};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Calls of three intervals between checkpoints; the request ids of the first and the third.
fn made() -> (Made, [String; 2]) {
    let mut made = Made::new();
    made.open();
    made.config("d1d1", POLICY);
    let first = made.intent("alice", &json!({}));
    made.outcome(first, "responded");
    made.checkpoint();
    let second = made.intent("bob", &json!({}));
    made.outcome(second, "responded");
    made.rotate();
    made.refusal("carol", &json!({}));
    made.checkpoint();
    made.refusal("carol", &json!({}));
    let third = made.intent("alice", &json!({}));
    made.rotate();
    made.outcome(third, "responded");
    made.close();
    (made, [request(first), request(third)])
}

fn verify(made: &Made, dir: &Path, more: &[&str]) -> Said {
    let keys = made.keys();
    let arguments = [&["verify", "--keys", keys.to_str().unwrap()], more].concat();
    let output = command_on(&arguments, "--bundle", dir)
        .stdin(Stdio::null())
        .output();
    Said::of(output.unwrap())
}

fn bundle(made: &Made, more: &[&str]) -> (Said, PathBuf) {
    let out = made.file("bundle");
    let arguments = [&["bundle", "--out", out.to_str().unwrap()], more].concat();
    (made.audit(&arguments), out)
}

fn spans(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut spans: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    spans.sort();
    spans
}

#[test]
fn a_bundle_proves_its_calls_and_holds_what_decided_them() {
    let (made, [first, third]) = made();
    let (said, out) = bundle(&made, &["--request", &first, "--request", &third]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    // The configuration with the first call, the third call, and its outcome; nothing of bob's.
    let texts: Vec<String> = spans(&out)
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    assert_eq!(texts.len(), 3);
    assert!(texts.iter().all(|text| !text.contains("bob")));
    let manifest: Value =
        serde_json::from_slice(&fs::read(out.join("bundle.json")).unwrap()).unwrap();
    assert_eq!(manifest["calls"], 2);
    assert_eq!(manifest["policies"], json!(["d1d1"]));
    let text = fs::read(out.join("texts").join(sha256(POLICY.as_bytes()))).unwrap();
    assert_eq!(text, POLICY.as_bytes());
    let found = verify(&made, &out, &[]);
    assert_eq!(found.code, 0, "{}{}", found.out, found.err);
    let output = command_on(&["show", &third, "--json"], "--bundle", &out)
        .output()
        .unwrap();
    let shown = Said::of(output);
    assert_eq!(shown.code, 0, "{}{}", shown.out, shown.err);
    assert!(shown.out.contains("responded"), "{}", shown.out);
    // A folder that is there is never written into.
    assert_eq!(bundle(&made, &["--request", &first]).0.code, 3);
}

#[test]
fn whatever_is_changed_in_a_bundle_is_found() {
    let (made, [first, third]) = made();
    let (said, out) = bundle(&made, &["--request", &first, "--request", &third]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let is_found = |what: &str| {
        let found = verify(&made, &out, &[]);
        assert_eq!(found.code, 5, "{what}: {}{}", found.out, found.err);
    };
    for path in spans(&out) {
        let good = fs::read(&path).unwrap();
        for at in (0..good.len()).step_by(good.len() / 5) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, bad).unwrap();
            is_found("a byte");
        }
        // Its checkpoint, which is its last line.
        let end = good[..good.len() - 1]
            .iter()
            .rposition(|b| *b == b'\n')
            .unwrap();
        fs::write(&path, &good[..=end]).unwrap();
        is_found("the checkpoint");
        fs::remove_file(&path).unwrap();
        is_found("a span");
        fs::write(&path, good).unwrap();
    }
    let text = out.join("texts").join(sha256(POLICY.as_bytes()));
    fs::write(&text, POLICY.replace("reviewer", "anybody")).unwrap();
    is_found("the policy");
    fs::write(&text, POLICY).unwrap();
    assert_eq!(verify(&made, &out, &[]).code, 0);
}

#[test]
fn conditions_choose_calls_and_what_no_checkpoint_covers_is_not_called_proven() {
    let (mut made, _) = made();
    let (said, out) = bundle(&made, &["subject=carol", "--json"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(said.json()["calls"], 2);
    assert_eq!(verify(&made, &out, &[]).code, 0);
    fs::remove_dir_all(&out).unwrap();
    let (said, out) = bundle(&made, &["subject=nobody"]);
    assert_eq!((said.code, out.exists()), (1, false), "{}", said.err);
    let late = made.intent("dave", &json!({}));
    let (said, out) = bundle(&made, &["subject=dave"]);
    assert_eq!((said.code, out.exists()), (1, false), "{}", said.err);
    assert!(said.err.contains(&format!("record {late}")), "{}", said.err);
}

#[test]
fn a_span_of_time_alone_chooses_calls() {
    let (made, _) = made();
    let (said, out) = bundle(&made, &["--since", "2026-11-30", "--until", "2026-12-01"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(verify(&made, &out, &[]).code, 0);
    let manifest = fs::read_to_string(out.join("bundle.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["calls"], 5);
    fs::remove_dir_all(&out).unwrap();
    assert_eq!(bundle(&made, &["--until", "2026-11-30"]).0.code, 1);
}

/// Whoever can take a segment away can also put a file there that calls the rest a bundle.
#[test]
fn a_journal_is_no_bundle_whatever_lies_in_it() {
    let (made, [_, third]) = made();
    let dir = made.dir();
    let all = spans(&dir);
    fs::remove_file(&all[1]).unwrap();
    let rest = [&all[0], &all[2]].map(|path| {
        let text = fs::read_to_string(path).unwrap();
        let seq = |line: &str| serde_json::from_str::<Value>(line).unwrap()["seq"].clone();
        let lines: Vec<&str> = text.lines().collect();
        json!({"file": path.file_name().unwrap().to_str(), "records": lines.len(),
            "first_seq": seq(lines[0]), "last_seq": seq(lines[lines.len() - 1])})
    });
    let manifest = json!({"v": 1, "calls": 9, "spans": rest, "texts": []});
    fs::write(dir.join("bundle.json"), manifest.to_string()).unwrap();
    let keys = made.keys();
    for arguments in [
        &["verify", "--keys", keys.to_str().unwrap()][..],
        &["query", "subject=alice"],
        &["show", "--json", &third],
    ] {
        let said = made.audit(arguments);
        assert_eq!(said.code, 5, "{arguments:?}: {}{}", said.out, said.err);
    }
    // Named as a bundle it is one, and says that it is no more than that.
    let said = verify(&made, &dir, &[]);
    assert!(said.out.contains("evidence about 9 calls"), "{}", said.out);
}

#[test]
fn a_manifest_that_is_none_proves_nothing() {
    let (made, [first, _]) = made();
    let (said, out) = bundle(&made, &["--request", &first]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let file = out.join("bundle.json");
    let good = fs::read_to_string(&file).unwrap();
    let doubled = good.replacen("\"calls\":", "\"calls\": 7, \"calls\":", 1);
    let mistyped = good.replacen("\"first_seq\": ", "\"first_seq\": \"1\", \"x\": ", 1);
    let outside = good.replacen(&sha256(POLICY.as_bytes()), "../../key", 2);
    let oversized = format!("{good}{}", " ".repeat(65 << 20));
    for bad in ["", "[]", "{}", &doubled, &mistyped, &outside, &oversized] {
        assert_ne!(bad, good);
        fs::write(&file, bad).unwrap();
        let said = verify(&made, &out, &[]);
        let shown = &bad[..bad.len().min(400)];
        assert_eq!(said.code, 5, "{shown}: {}", said.out);
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(verify(&made, &out, &[]).code, 5);
}
