//! `diff`, `replay` and `suggest` as a user runs them. `tests/cases/cli/changes/*.txt` are
//! transcripts in the format of `token_cli`, run in a folder with a copy of its `files`.

use super::policy_cli::{fixture_of, transcripts};
use super::token_cli::Fixture;
use serde_json::Value;
use std::fs;

const CASES: &str = "tests/cases/cli/changes";

fn fixture() -> Fixture {
    fixture_of(CASES)
}

#[test]
fn every_transcript_about_changes_comes_out_as_written() {
    assert_eq!(transcripts(CASES), 3);
}

fn json(fixture: &Fixture, arguments: &[&str]) -> (Option<i32>, Value) {
    let arguments: Vec<String> = arguments
        .iter()
        .map(|argument| match argument.strip_prefix('@') {
            Some(name) => fixture.path(name).display().to_string(),
            None => (*argument).to_owned(),
        })
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = fixture.run(&arguments, "");
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), serde_json::from_str(&text).unwrap())
}

/// What was reviewed passes, and passes nothing else.
#[test]
fn an_acknowledgement_is_good_for_what_was_reviewed_alone() {
    let fixture = fixture();
    let diff = [
        "diff",
        "@old.yaml",
        "@new.yaml",
        "--config",
        "@gate.yaml",
        "--json",
    ];
    let (code, found) = json(&fixture, &diff);
    assert_eq!(code, Some(1));
    let ids: Vec<&str> = found["changes"]
        .as_array()
        .unwrap()
        .iter()
        .chain(found["webhooks"].as_array().unwrap())
        .filter(|change| change["becomes"] == "allowed")
        .map(|change| change["id"].as_str().unwrap())
        .collect();
    assert!(ids.len() > 1, "{found}");
    let seen = |ids: &[&str]| {
        fs::write(fixture.path("seen.txt"), ids.join("  # looked at\n") + "\n").unwrap();
        let with = [&diff[..], &["--acknowledge", "@seen.txt"]].concat();
        json(&fixture, &with)
    };
    let (code, found) = seen(&ids);
    assert_eq!((code, &found["good"]), (Some(0), &Value::Bool(true)));
    assert_eq!(seen(&ids[1..]).0, Some(1));
    // The same rule, made wider once more.
    let wider = fs::read_to_string(fixture.path("new.yaml")).unwrap();
    fs::write(fixture.path("new.yaml"), wider.replace("guest", "anybody")).unwrap();
    assert_eq!(seen(&ids).0, Some(1));
}

/// A rule that is suggested is loaded by `check` and refuses nothing of the journal.
#[test]
fn a_suggested_policy_replays_without_a_newly_refused_call() {
    let fixture = fixture();
    let (code, found) = json(&fixture, &["suggest", "--config", "@gate.yaml", "--json"]);
    assert_eq!(code, Some(0), "{found}");
    let suggestions = found["suggestions"].as_array().unwrap();
    assert!(!suggestions.is_empty());
    let rules: String = suggestions
        .iter()
        .filter_map(|s| s["yaml"].as_str())
        .collect();
    let named: Vec<&str> = suggestions
        .iter()
        .map(|s| s["rule"].as_str().unwrap())
        .collect();
    // What is not suggested otherwise stays as it is.
    let old = fs::read_to_string(fixture.path("old.yaml")).unwrap();
    let (head, list) = old.split_once("rules:\n").unwrap();
    let (list, webhooks) = list.split_once("webhooks:").unwrap();
    let kept: String = list
        .split("  - id: ")
        .skip(1)
        .filter(|rule| {
            !named
                .iter()
                .any(|name| rule.starts_with(&format!("{name}\n")))
        })
        .map(|rule| format!("  - id: {rule}"))
        .collect();
    let text = format!("{head}rules:\n{kept}{rules}webhooks:{webhooks}");
    fs::write(fixture.path("suggested.yaml"), text).unwrap();
    let (code, found) = json(
        &fixture,
        &[
            "replay",
            "--config",
            "@gate.yaml",
            "--policy",
            "@suggested.yaml",
            "--json",
        ],
    );
    assert_eq!(
        (code, &found["counts"]["newly_refused"]),
        (Some(0), &0.into()),
        "{found}"
    );
    let (code, found) = json(
        &fixture,
        &[
            "diff",
            "@old.yaml",
            "@suggested.yaml",
            "--config",
            "@gate.yaml",
            "--json",
        ],
    );
    assert_eq!(code, Some(0), "a suggestion allows something: {found}");
    assert!(!found["changes"].as_array().unwrap().is_empty());
}
