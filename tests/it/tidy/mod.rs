//! The rules that the compiler cannot enforce in one crate: layers, file sizes, words, documents.
//!
//! Every rule is a function from a file's text to findings, and is shown a bad text of its own.

mod code;
mod rules;

use rules::*;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file of the project below `folder`, as a relative path with `/`.
fn files(folder: &str) -> Vec<String> {
    const SKIP: [&str; 8] = [
        "target",
        ".git",
        ".venv",
        ".venv03",
        ".venv12",
        "__pycache__",
        "node_modules",
        "state",
    ];
    let mut open: Vec<PathBuf> = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if SKIP.iter().any(|skip| entry.file_name() == *skip) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
            } else {
                let relative = path.strip_prefix(root()).unwrap();
                found.push(relative.to_str().unwrap().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

/// Runs a rule over every Rust file below `folder`.
fn hold(folder: &str, rule: impl Fn(&str, &str) -> Vec<String>) {
    let mut findings = Vec::new();
    let mut looked_at = 0;
    for path in files(folder).iter().filter(|path| path.ends_with(".rs")) {
        looked_at += 1;
        let text = fs::read_to_string(root().join(path)).unwrap();
        findings.extend(
            rule(path, &text)
                .into_iter()
                .map(|f| format!("{path}: {f}")),
        );
    }
    assert!(looked_at > 3, "nothing to look at below {folder}");
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}

#[test]
fn layers_hold() {
    hold("src", layering);
}

#[test]
fn the_core_touches_nothing_outside_and_pingora_stays_in_its_place() {
    hold("src", outside);
}

#[test]
fn files_are_short_and_well_named() {
    for folder in ["src", "tests"] {
        hold(folder, length);
        hold(folder, name);
    }
}

#[test]
fn no_shortcuts_outside_tests() {
    hold("src", shortcuts);
}

#[test]
fn every_module_says_its_four_facts() {
    hold("src", four_facts);
}

#[test]
fn only_the_protocol_module_matches_on_bindings() {
    hold("src", binding_matches);
}

#[test]
fn the_readme_gives_a_reason_for_every_dependency() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let (declared, named) = dependencies(&read("Cargo.toml"), &read("README.md"));
    assert!(declared.len() > 10);
    assert_eq!(
        declared, named,
        "left: Cargo.toml, right: the table in README.md"
    );
}

#[test]
fn nothing_speaks_of_the_workplace() {
    let mut findings = Vec::new();
    for path in files(".") {
        // A lock file names the registry that its packages come from.
        let lock = path.ends_with(".lock") || path.ends_with("-lock.json");
        if let (false, Ok(text)) = (lock, fs::read_to_string(root().join(&path))) {
            findings.extend(workplace(&text).into_iter().map(|f| format!("{path}: {f}")));
        }
    }
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}

/// A rule of this file.
type Rule = fn(&str, &str) -> Vec<String>;

#[test]
fn every_rule_finds_what_it_is_for_and_nothing_else() {
    let cases: &[(Rule, &str, &str, usize)] = &[
        (
            layering,
            "src/a2a/call.rs",
            "use crate::policy::Decision;",
            1,
        ),
        (
            layering,
            "src/a2a/call.rs",
            "use crate::source::Problem;\nuse super::fault::Fault;",
            0,
        ),
        (layering, "src/a2a/mod.rs", "use super::proxy::x;", 1),
        (
            layering,
            "src/a2a/card/sign.rs",
            "fn f(x: super::super::super::config::S) {}",
            1,
        ),
        (
            layering,
            "src/policy/decide.rs",
            "use crate::{a2a::Call, pipeline::{self, ports}};",
            1,
        ),
        (
            layering,
            "src/policy/decide.rs",
            "// crate::proxy\n#[cfg(test)]\nmod tests {\nuse crate::proxy;\n}",
            0,
        ),
        (
            layering,
            "src/config/watch.rs",
            "use crate::pipeline::ports;",
            1,
        ),
        (
            layering,
            "src/adapters/journal.rs",
            "use super::clock::Clock;",
            1,
        ),
        (
            layering,
            "src/adapters/journal.rs",
            "use crate::pipeline::ports::Clock;",
            0,
        ),
        (
            layering,
            "src/adapters/journal/writer.rs",
            "use super::segment::S;",
            0,
        ),
        (
            layering,
            "src/adapters/journal.rs",
            "use crate::config::Audit;",
            1,
        ),
        (layering, "src/admin/health.rs", "use crate::proxy::app;", 1),
        (
            outside,
            "src/identity/keys.rs",
            "use std::time::SystemTime;",
            1,
        ),
        (
            outside,
            "src/identity/keys.rs",
            "let x = std::fs::read(p);",
            1,
        ),
        (
            outside,
            "src/audit/chain.rs",
            "use std::net::{IpAddr, SocketAddr};",
            0,
        ),
        (
            outside,
            "src/audit/chain.rs",
            "use std::net::{IpAddr, UdpSocket};",
            1,
        ),
        (
            outside,
            "src/policy/decide.rs",
            "tracing::warn!(\"x\"); // tokio::spawn",
            1,
        ),
        (
            outside,
            "src/pipeline/admit.rs",
            "use pingora_core::Result;",
            1,
        ),
        (
            outside,
            "src/pipeline/admit.rs",
            "let s = \"pingora\"; tokio::spawn(x);",
            0,
        ),
        (
            outside,
            "src/proxy/app.rs",
            "use pingora::apps::HttpServerApp;",
            0,
        ),
        (name, "src/proxy/utils.rs", "", 1),
        (name, "tests/it/common/mod.rs", "", 1),
        (name, "src/proxy/headers.rs", "", 0),
        (
            shortcuts,
            "src/proxy/app.rs",
            "x.unwrap();\ny.unwrap_or(1);\n\"// x\".todo!()",
            2,
        ),
        (
            shortcuts,
            "src/proxy/app.rs",
            "let a = 1;\nb.expect(\"why\");",
            1,
        ),
        (
            shortcuts,
            "src/proxy/app.rs",
            "// Never empty.\nlet a = b\n    .expect(\"why\");",
            0,
        ),
        (shortcuts, "src/proxy/tests.rs", "x.unwrap();", 0),
        (
            four_facts,
            "src/proxy/mod.rs",
            "//! Answers: x. May import: y.\n//! Invariants: z.",
            1,
        ),
        (
            four_facts,
            "src/proxy/mod.rs",
            "//! Answers May import Invariants Start\n//! reading",
            0,
        ),
        (
            binding_matches,
            "src/proxy/serve.rs",
            "Binding::Rest | Binding::Grpc => 1,",
            2 - 1,
        ),
        (
            binding_matches,
            "src/proxy/serve.rs",
            "let b = Binding::Rest;",
            0,
        ),
        (binding_matches, "src/a2a/mod.rs", "Binding::Rest => 1,", 0),
    ];
    for (rule, path, text, count) in cases {
        let findings = rule(path, text);
        assert_eq!(findings.len(), *count, "{path}: {text}\n{findings:?}");
    }
    assert_eq!(length("", &"x\n".repeat(MAX_LINES + 1)).len(), 1);
    assert!(length("", &"x\n".repeat(MAX_LINES)).is_empty());
    assert_eq!(
        workplace(concat!("see /wo", "rk/x\nin this ses", "sion")).len(),
        2
    );
    let (declared, named) = dependencies(
        "[dependencies]\nb = \"1\"\na = {x}\n[dev-dependencies]\nc = 1",
        "## Dependencies\n| `a` | why |\n## Else\n| `b` | why |",
    );
    assert_eq!(
        (declared, named),
        (vec!["a".into(), "b".into()], vec!["a".to_owned()])
    );
}
