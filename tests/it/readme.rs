//! README.md is true: what it says to run runs, what it shows is what comes out, what it names is there.
//!
//! Marks in the info strings of its blocks: `sh run` is executed (`sh run jq` where `jq` is there),
//! all of them in order in one shell and an empty folder; `text output` holds lines that the block
//! before it must print, `…` standing for anything; `yaml NAME.yaml` is a file of that folder;
//! `yaml policy` must load as a policy beside it, and `yaml part` as a part of it; `text demo` is the table of `portcullis demo --once`.

mod running;

use std::fs;
use std::path::Path;

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
struct Block<'a> {
    info: &'a str,
    text: &'a str,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("\n```") {
        let (info, after) = after.split_once('\n').unwrap();
        let end = after.find("```").expect("a fence is not closed");
        found.push(Block {
            info,
            text: &after[..end],
        });
        rest = &after[end + 3..];
    }
    found
}

/// The text outside of blocks.
fn prose(text: &str) -> String {
    text.split("\n```")
        .step_by(2)
        .collect::<Vec<_>>()
        .join("\n")
}

/// What stands between backticks in prose.
fn spans(prose: &str) -> Vec<&str> {
    prose.split('`').skip(1).step_by(2).collect()
}

/// Every Rust file below `folder`, as one text.
fn sources(folder: &str) -> String {
    let mut open = vec![root().join(folder)];
    let mut all = String::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                all.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    all
}

#[test]
fn every_path_that_it_names_is_there() {
    let text = readme();
    let prose = prose(&text);
    let links = prose
        .split("](")
        .skip(1)
        .filter_map(|s| s.split(')').next());
    let folders = ["config/", "policies/", "deploy/", "tests/", "src/"];
    let named = spans(&prose).into_iter().filter_map(|span| {
        let path = span.split(' ').next().unwrap_or(span);
        folders.iter().any(|f| path.starts_with(f)).then_some(path)
    });
    let mut looked_at = 0;
    for target in links.chain(named) {
        if target.starts_with("https://") {
            continue;
        }
        looked_at += 1;
        if let Some(heading) = target.strip_prefix('#') {
            let found = text
                .lines()
                .filter_map(|l| l.strip_prefix("## "))
                .any(|l| l.to_lowercase().replace(' ', "-") == heading);
            assert!(found, "no heading for `#{heading}`");
            continue;
        }
        assert!(root().join(target).exists(), "`{target}` is not there");
    }
    assert!(looked_at > 10, "{looked_at}");
}

#[test]
fn every_invariant_has_a_test_that_is_there() {
    let text = readme();
    let tests = sources("tests/it");
    let rows: Vec<&str> = text.lines().filter(|l| l.starts_with("| I-")).collect();
    for (i, row) in rows.iter().enumerate() {
        assert!(row.starts_with(&format!("| I-{} ", i + 1)), "{row}");
        let names = spans(row);
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            assert!(tests.contains(&format!("fn {name}(")), "no test `{name}`");
        }
    }
    assert_eq!(rows.len(), 9);
}

#[test]
fn every_code_and_metric_and_reason_is_the_programs() {
    let text = readme();
    let codes = fs::read_to_string(root().join("src/source/codes.rs")).unwrap();
    let mut found = 0;
    for (at, _) in text.match_indices("PC") {
        let code: String = text[at..].chars().take(5).collect();
        if code[2..].bytes().all(|b| b.is_ascii_digit()) {
            found += 1;
            assert!(codes.contains(&format!("\"{code}\"")), "`{code}`");
        }
    }
    assert!(found > 1);
    let metrics = sources("src/pipeline") + &sources("src/cli/audit");
    let named: Vec<&str> = spans(&text)
        .into_iter()
        .filter_map(|s| s.strip_prefix("portcullis_"))
        .collect();
    assert!(named.len() > 12, "{named:?}");
    for name in named {
        assert!(metrics.contains(&format!("\"{name}\"")), "`{name}`");
    }
    let sources = sources("src");
    for delivery in portcullis::audit::record::Delivery::ALL {
        let row = format!("| `{delivery}` | {} |", delivery.reached());
        assert!(text.contains(&row), "{row}");
    }
    assert!(sources.contains("\"foreign_id\""));
    let schema = fs::read_to_string(root().join("config/record.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let mut kinds = Vec::new();
    find_kinds(&schema, &mut kinds);
    assert!(kinds.len() >= 9, "{kinds:?}");
    let audit = text.split("\n## Audit\n").nth(1).unwrap();
    for kind in kinds {
        assert!(audit.contains(&format!("`{kind}`")), "`{kind}`");
    }
}

/// The kinds of records in their schema.
fn find_kinds(schema: &serde_json::Value, kinds: &mut Vec<String>) {
    if let Some(kind) = schema["properties"]["kind"]["const"].as_str() {
        kinds.push(kind.to_owned());
    }
    match schema {
        serde_json::Value::Object(members) => members.values().for_each(|v| find_kinds(v, kinds)),
        serde_json::Value::Array(items) => items.iter().for_each(|v| find_kinds(v, kinds)),
        _ => {}
    }
}

#[test]
fn blocks_and_prose_are_told_apart() {
    let text = "a `b`\n```sh run\nc `d`\n```\ne\n```text output\n```\n`f`\n";
    let expected = [
        Block {
            info: "sh run",
            text: "c `d`\n",
        },
        Block {
            info: "text output",
            text: "",
        },
    ];
    assert_eq!(blocks(text), expected);
    assert_eq!(spans(&prose(text)), ["b", "f"]);
}
