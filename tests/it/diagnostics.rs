//! The page of all diagnostics: made from the codes, with examples from the golden cases.

use crate::config::{changed_address, expect_file, wrong_files};
use crate::policy::{expired_shadow, two_policies_of_one_name, wrong_policies};
use portcullis::source::codes::{self, Code};
use portcullis::source::{Problem, Problems, Severity};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The shortest message of each code among everything that the cases report.
fn examples() -> BTreeMap<&'static str, String> {
    let mut shortest: BTreeMap<&'static str, String> = BTreeMap::new();
    for problem in reported() {
        let shown = problem.to_string().replace("tests/cases/config/", "");
        let known = shortest
            .entry(problem.code)
            .or_insert_with(|| shown.clone());
        if shown.len() < known.len() {
            *known = shown;
        }
    }
    // What only `check` looks for.
    let (_, _, said) = run(&["check", "--config", "tests/cases/cli/untested/gateway.yaml"]);
    let untested = said
        .split("\n\n")
        .find(|problem| problem.contains("[PC237]"));
    let untested = untested.unwrap_or_else(|| panic!("{said}"));
    let untested = untested.trim().replace("tests/cases/cli/untested/", "");
    shortest.insert(codes::UNTESTED, untested + "\n");
    shortest
}

fn reported() -> Vec<Problem> {
    let cases = wrong_files().into_iter().chain(wrong_policies());
    let mut all: Vec<Problem> = cases.flat_map(|(_, Problems(found))| found).collect();
    // What takes a running gateway, two files, or a clock.
    all.extend(changed_address().0);
    all.extend(two_policies_of_one_name().0);
    all.push(expired_shadow());
    all
}

fn section(code: &Code, example: &str) -> String {
    let kind = if code.is_warning() {
        "warning"
    } else {
        "error"
    };
    format!(
        "## {}: {}\n\n{} ({kind})\n\n```text\n{example}```\n",
        code.code,
        code.title(),
        code.meaning()
    )
}

#[test]
fn every_code_has_an_example_on_the_page() {
    let examples = examples();
    let mut page = String::from(
        "# Diagnostics\n\nEverything that `portcullis check` can say about a gateway file, a policy file or what they \
         name,\nwith a file that causes it. An error keeps the files from being used; a warning does not. Codes\n\
         are never reused. `portcullis check --explain CODE` prints one of these sections.\n",
    );
    for code in codes::ALL {
        let example = examples.get(code.code);
        let example = example.unwrap_or_else(|| panic!("no case has {}", code.code));
        write!(page, "\n{}", section(code, example)).unwrap();
    }
    expect_file(Path::new("config/diagnostics.md"), &page);
}

#[test]
fn codes_are_in_order_and_each_means_one_thing() {
    let all: Vec<&str> = codes::ALL.iter().map(|code| code.code).collect();
    let sorted: BTreeSet<&str> = all.iter().copied().collect();
    assert_eq!(all, sorted.into_iter().collect::<Vec<_>>());
    for code in codes::ALL {
        assert!(code.meaning().ends_with('.'), "{}", code.code);
    }
}

/// What the page calls a warning never is an error.
#[test]
fn a_warning_is_always_one() {
    for problem in reported() {
        let code = codes::ALL.iter().find(|code| code.code == problem.code);
        if code.unwrap().is_warning() {
            assert_eq!(problem.severity, Severity::Warning, "{problem}");
        }
    }
}

#[test]
fn there_are_enough_golden_diagnostics() {
    let distinct: BTreeSet<(&str, String)> = reported()
        .into_iter()
        .map(|problem| (problem.code, problem.message))
        .collect();
    assert!(distinct.len() >= 200, "{}", distinct.len());
}

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

#[test]
fn check_prints_the_section_of_a_code() {
    let page = fs::read_to_string("config/diagnostics.md").unwrap();
    for code in codes::ALL {
        let (exit, shown, _) = run(&["check", "--explain", code.code]);
        assert_eq!(exit, 0, "{}", code.code);
        assert!(shown.starts_with(code.code) && page.contains(shown.trim_end()));
    }
    assert_eq!(run(&["check", "--explain", "pc202"]).0, 0);
    let (exit, shown, error) = run(&["check", "--explain", "PC999"]);
    assert_eq!((exit, shown.as_str()), (2, ""));
    assert!(error.contains("there is no code `PC999`"), "{error}");
}

#[test]
fn check_prints_sarif() {
    let wrong = "tests/cases/config/names.yaml";
    let (exit, shown, _) = run(&["check", "--sarif", "--config", wrong]);
    assert_eq!(exit, 3);
    let log: Value = serde_json::from_str(&shown).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let (_, Problems(expected)) = wrong_files()
        .into_iter()
        .find(|(case, _)| case == Path::new(wrong))
        .unwrap();
    let found = results.iter().map(|result| {
        let place = &result["locations"][0]["physicalLocation"];
        let region = &place["region"];
        let at = (region["startLine"].as_u64(), region["startColumn"].as_u64());
        (result["ruleId"].as_str().unwrap().to_owned(), at)
    });
    let expected = expected.into_iter().map(|problem| {
        let number = |n: usize| u64::try_from(n).ok();
        let at = (number(problem.line), number(problem.column));
        (problem.code.to_owned(), at)
    });
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let (exit, shown, _) = run(&["check", "--sarif", "--config", "config/gateway.yaml"]);
    assert_eq!(exit, 0);
    let log: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(log["runs"][0]["results"], json!([]));
}

/// Allows in force that decide no test, and no other rules; a test beside the policy counts.
#[test]
fn check_names_allows_without_a_test() {
    let folder = tempfile::tempdir().unwrap();
    let from = Path::new("tests/cases/cli/untested");
    for file in ["gateway.yaml", "policy.yaml"] {
        let text = fs::read_to_string(from.join(file)).unwrap();
        let keys = fs::canonicalize("config/jwks.json").unwrap();
        let text = text.replace("../../../../config/jwks.json", keys.to_str().unwrap());
        fs::write(folder.path().join(file), text).unwrap();
    }
    let gateway = folder.path().join("gateway.yaml");
    let check = || run(&["check", "--json", "--config", gateway.to_str().unwrap()]);
    let untested = |shown: &str| -> Vec<String> {
        let report: Value = serde_json::from_str(shown).unwrap();
        let problems = report["problems"].as_array().unwrap().clone();
        let untested = problems.iter().filter(|p| p["code"] == codes::UNTESTED);
        untested
            .map(|p| p["message"].as_str().unwrap().to_owned())
            .collect()
    };
    let (exit, shown, _) = check();
    assert_eq!(exit, 0);
    assert_eq!(untested(&shown), ["no test shows what `followed` allows"]);
    let tests = "version: 1\npolicy: half-tested\ntests:\n  - name: a task\n    as: {grant: agent, claims: {}}\n    call: {agent: weather, operation: GetTask}\n    expect: {effect: allow}\n";
    fs::write(folder.path().join("more_test.yaml"), tests).unwrap();
    let (exit, shown, _) = check();
    assert_eq!((exit, untested(&shown)), (0, Vec::new()));
    // What is wrong with a test beside it shows here, too.
    let wrong = tests.replace("GetTask", "GetTsak");
    fs::write(folder.path().join("more_test.yaml"), wrong).unwrap();
    assert_eq!(check().0, 3);
}
