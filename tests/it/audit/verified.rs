//! `portcullis audit verify`.

use super::made::{Made, Said};
use std::fs;
use std::path::Path;

fn verify(made: &Made, more: &[&str]) -> Said {
    let keys = made.keys();
    let all = [&["verify", "--keys", keys.to_str().unwrap()], more].concat();
    made.audit(&all)
}

fn change(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from));
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn a_journal_as_it_was_written_is_intact() {
    let made = Made::usual();
    let said = verify(&made, &[]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.ends_with("\nintact\n"), "{}", said.out);
    let json = verify(&made, &["--json"]).json();
    assert_eq!(json["intact"], true);
    let journal = &json["journals"][0];
    assert_eq!(
        (journal["segments"].as_u64(), journal["open"].as_u64()),
        (Some(3), Some(0))
    );
    assert_eq!(journal["trusted"], journal["last"].as_u64().unwrap() - 1);
    let said = made.audit(&["verify", "--no-keys"]);
    assert_eq!(said.code, 0);
    assert!(said.out.ends_with("the chain is whole\n"), "{}", said.out);
}

#[test]
fn the_first_broken_record_is_named_and_what_can_be_trusted() {
    let made = Made::usual();
    change(&made.segment(8), "\"intent\":4", "\"intent\":6");
    let said = verify(&made, &[]);
    assert_eq!(said.code, 5);
    let expected = "broken: record 9 (journal-00000000000000000008.jsonl, line 2, byte ";
    assert!(said.out.contains(expected), "{}", said.out);
    assert!(
        said.out.contains("a checkpoint vouches for that one"),
        "{}",
        said.out
    );
    assert!(
        said.out
            .contains("trusted: records 1 to 6, which a checkpoint signs"),
        "{}",
        said.out
    );
    assert!(said.out.contains("consistent: records 10 to 17 follow from each other, and a checkpoint signs them up to 16"), "{}", said.out);
    let json = verify(&made, &["--json"]).json();
    let first = &json["journals"][0]["first_broken"];
    assert_eq!(
        (&first["what"], &first["records"][0]),
        (&"changed".into(), &9.into())
    );
    assert_eq!(made.audit(&["verify", "--no-keys"]).code, 5);
}

#[test]
fn a_journal_that_was_cut_is_shown_by_a_checkpoint_that_was_kept() {
    let made = Made::usual();
    let last = made.segment(14);
    let text = fs::read_to_string(&last).unwrap();
    let kept = made.file("kept.log");
    fs::write(&kept, format!("started\n{text}and more\n")).unwrap();
    let external = ["--external", kept.to_str().unwrap()];
    let whole = verify(&made, &external);
    assert_eq!(whole.code, 0, "{}{}", whole.out, whole.err);
    assert!(
        whole
            .out
            .contains("external     1 found; the last covers record 16"),
        "{}",
        whole.out
    );
    fs::remove_file(&last).unwrap();
    assert_eq!(verify(&made, &[]).code, 0);
    let cut = verify(&made, &external);
    assert_eq!(cut.code, 5);
    assert!(
        cut.out.contains("records 14 to 16: they are missing"),
        "{}",
        cut.out
    );
    let nothing = made.audit(&[
        "verify",
        "--no-keys",
        "--external",
        made.keys().to_str().unwrap(),
    ]);
    assert_eq!(nothing.code, 3);
    assert!(
        nothing.err.contains("holds no checkpoint"),
        "{}",
        nothing.err
    );
}

#[test]
fn what_nobody_signed_is_fine_only_for_as_long_as_it_is_said() {
    let mut made = Made::usual();
    made.refusal("eve", &serde_json::json!({}));
    let said = verify(&made, &[]);
    assert_eq!(said.code, 5);
    assert!(
        said.out
            .contains("record 18: they stand behind the last checkpoint"),
        "{}",
        said.out
    );
    assert_eq!(verify(&made, &["--tail", "1m"]).code, 0);
}

#[test]
fn keys_must_be_said() {
    let made = Made::usual();
    let none = made.file("none.yaml");
    let said = made.audit(&["verify", "--config", none.to_str().unwrap()]);
    assert_eq!(said.code, 3);
    assert!(said.err.contains("--no-keys"), "{}", said.err);
}
