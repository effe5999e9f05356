//! Every numbered rule of the token acceptance rules, and what shows that it holds.

use super::world::World;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The rules, by family: how many there are.
const RULES: [(&str, u8); 14] = [
    ("TR", 13),
    ("FM", 7),
    ("HD", 12),
    ("KY", 14),
    ("LC", 17),
    ("IS", 7),
    ("CL", 15),
    ("SC", 10),
    ("RV", 4),
    ("CA", 5),
    ("ER", 7),
    ("LG", 5),
    ("GR", 10),
    ("PR", 8),
];

/// What the rules say about the library (section 14) binds us where we use it.
const LIBRARY: u8 = 13;

/// Rules whose cases are tests of their own, by the names of those.
const TESTS: &[(&str, &[&str])] = &[
    ("TR-9", &["every_wrong_file_has_its_message"]),
    ("TR-11", &["surrounding_space_is_refused"]),
    ("TR-12", &["early_data_is_off"]),
    (
        "LC-3",
        &["lc_1_to_5_every_misbehaviour_has_its_reason_and_gives_no_keys"],
    ),
    (
        "LC-6",
        &["lc_6_refreshes_follow_the_configured_pause_and_max_age_within_its_range"],
    ),
    ("LC-11", &["lc_12_an_empty_set_is_taken_at_its_word"]),
    ("LC-15", &["lc_15_key_files_go_by_the_same_rules"]),
    (
        "LC-17",
        &["lc_13_a_gateway_starts_without_an_issuer_and_recovers"],
    ),
    (
        "IS-2",
        &[
            "a_token_is_never_taken_for_another_issuers",
            "a_good_token_with_anything_of_anothers_is_nobodys",
        ],
    ),
    (
        "IS-3",
        &[
            "shared_keys_are_told",
            "declared_shared_keys_raise_no_alert",
        ],
    ),
    ("IS-5", &["an_owner_is_issuer_and_subject"]),
    ("IS-6", &["an_owner_is_issuer_and_subject"]),
    ("SC-9", &["a_policy_may_demand_proof"]),
    (
        "RV-3",
        &[
            "only_the_boolean_true_about_this_very_token_is_a_yes",
            "a_yes_is_relied_on_for_seconds_and_never_beyond_the_tokens_end",
            "a_signed_answer_is_the_issuers_for_us_and_now",
        ],
    ),
    (
        "RV-4",
        &[
            "a_token_is_good_for_one_call_and_of_its_own_issuer",
            "of_many_calls_at_once_one_reaches_the_agent",
        ],
    ),
    ("CA-1", &["a_hit_is_the_same_caller"]),
    (
        "CA-5",
        &[
            "refusals_take_no_room",
            "failing_verifications_are_bounded_by_address",
        ],
    ),
    (
        "ER-7",
        &[
            "er_7_a_panic_ends_its_request_and_no_other",
            "er_7_a_panic_after_the_intent_is_the_outcome",
        ],
    ),
    ("LG-2", &["a_hit_is_the_same_caller"]),
    ("LG-3", &["every_refusal_is_recorded_once"]),
    ("LG-5", &["every_refusal_is_recorded_once"]),
    (
        "PR-7",
        &["a_glob_is_anchored_and_its_star_stays_in_one_segment"],
    ),
    ("PR-8", &["the_index_decides_as_a_naive_evaluator_does"]),
    ("LB-2", &["whatever_we_accept_the_library_accepts"]),
    ("LB-13", &["whatever_we_accept_the_library_accepts"]),
    (
        "LB-12",
        &["every_case_with_steps_has_its_outcomes_over_http"],
    ),
];

/// Rules about what is not there, and why no test can show them.
const NOT_HERE: [(&str, &str); 3] = [
    (
        "LC-16",
        "no key set is kept on disk, so none is read from there",
    ),
    ("LB-10", "the library is a second opinion in tests alone"),
    ("LB-11", "the library is a second opinion in tests alone"),
];

fn cases() -> BTreeSet<String> {
    let world = World::load();
    let mut rules: BTreeSet<String> = world
        .cases
        .into_iter()
        .flat_map(|case| case.rules)
        .collect();
    let stepped = include_str!("../../cases/tokens/steps.json");
    let document: Value = serde_json::from_str(stepped).unwrap();
    for case in document["cases"].as_array().unwrap() {
        let named = case["rules"].as_array().unwrap().iter();
        rules.extend(named.map(|rule| rule.as_str().unwrap().to_owned()));
    }
    rules
}

/// The names of all test functions.
fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.lines().filter_map(|line| {
                let line = line.trim_start();
                let rest = line
                    .strip_prefix("fn ")
                    .or(line.strip_prefix("async fn "))?;
                rest.split_once('(').map(|(name, _)| name.to_owned())
            });
            found.extend(names);
        }
    }
}

#[test]
fn every_rule_has_a_case() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut named = BTreeSet::new();
    tests(&root.join("src"), &mut named);
    tests(&root.join("tests/it"), &mut named);
    for (rule, names) in TESTS {
        for name in *names {
            assert!(named.contains(*name), "{rule}: there is no test {name}");
        }
    }
    let with_case = cases();
    let families = RULES.into_iter().chain([("LB", LIBRARY)]);
    for (family, many) in families {
        for number in 1..=many {
            let rule = format!("{family}-{number}");
            let shown = TESTS.iter().any(|(name, _)| *name == rule)
                || with_case.contains(&rule)
                || NOT_HERE.iter().any(|(name, _)| *name == rule);
            assert!(shown, "no case for {rule}");
        }
    }
}
