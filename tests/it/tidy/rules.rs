//! The rules, each from a file's path and text to findings.

use super::code::{code, module_of, named_paths, tails, words};

const CORE: [&str; 5] = ["source", "a2a", "identity", "policy", "audit"];
const MODULES: [&str; 11] = [
    "source", "a2a", "identity", "policy", "audit", "config", "pipeline", "adapters", "proxy",
    "admin", "cli",
];
pub(super) const MAX_LINES: usize = 500;

/// Modules of ours that `module` may name, beside itself.
fn may_import(module: &str) -> &'static [&'static str] {
    match module {
        "source" => &[],
        "a2a" => &CORE[..1],
        "identity" => &CORE[..2],
        "policy" => &CORE[..3],
        "audit" => &CORE[..4],
        "config" => &CORE,
        "pipeline" => &MODULES[..6],
        "adapters" => &["source", "a2a", "identity", "policy", "audit", "pipeline"],
        "proxy" | "admin" => &MODULES[..8],
        "cli" => &MODULES,
        other => panic!("no layer is known for `{other}`: add it to the tables of this file"),
    }
}

pub(super) fn layering(path: &str, text: &str) -> Vec<String> {
    let own = module_of(path);
    if ["lib", "main"].contains(&own[0]) {
        return Vec::new();
    }
    let allowed = may_import(own[0]);
    let mut findings = Vec::new();
    for (line, named) in named_paths(path, &code(path, text)) {
        let Some(top) = named.first().filter(|top| MODULES.contains(&top.as_str())) else {
            continue;
        };
        if top != own[0] && !allowed.contains(&top.as_str()) {
            findings.push(format!("line {line}: `{}` may not import `{top}`", own[0]));
        }
        let sibling = named
            .get(1)
            .filter(|s| s.starts_with(|c: char| c.is_lowercase()));
        if own[0] == "adapters" && top == "adapters" && own.len() > 1 && sibling.is_some() {
            let sibling = named[1].as_str();
            if sibling != own[1] {
                findings.push(format!("line {line}: adapters may not import one another"));
            }
        }
    }
    findings
}

/// Outside things, by what the code would have to write to reach them.
pub(super) fn outside(path: &str, text: &str) -> Vec<String> {
    const NOT_IN_CORE: [&str; 16] = [
        "tokio::",
        "std::fs",
        "std::io::stdin",
        "std::env",
        "std::thread",
        "std::process",
        "SystemTime",
        "Instant",
        "rand::",
        "aws_lc_rs::rand",
        "tracing::",
        "reqwest::",
        "println!",
        "eprintln!",
        "TcpStream",
        "TcpListener",
    ];
    const ADDRESSES: [&str; 6] = [
        "IpAddr",
        "Ipv4Addr",
        "Ipv6Addr",
        "SocketAddr",
        "SocketAddrV4",
        "SocketAddrV6",
    ];
    let own = module_of(path)[0];
    let mut findings = Vec::new();
    for (i, line) in code(path, text).iter().enumerate() {
        let mut find = |what: &str| findings.push(format!("line {}: `{what}`", i + 1));
        // Pingora's types come from many crates whose names begin alike.
        let pingora = line.match_indices("pingora").any(|(at, _)| {
            let rest = line[at..].trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
            rest.starts_with("::") && !line[..at].ends_with(|c: char| c.is_alphanumeric())
        });
        if pingora && !["proxy", "cli"].contains(&own) {
            find("pingora");
        }
        if !CORE.contains(&own) {
            continue;
        }
        for word in NOT_IN_CORE {
            if words(line, word).next().is_some() {
                find(word);
            }
        }
        for at in words(line, "std::net") {
            let mut paths = tails(line[at + 8..].trim_start_matches("::"))
                .into_iter()
                .flatten();
            if !paths.all(|name| ADDRESSES.contains(&name.as_str())) {
                find("std::net beyond addresses");
            }
        }
    }
    findings
}

pub(super) fn length(_: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    let long = lines > MAX_LINES;
    long.then(|| format!("{lines} lines, more than {MAX_LINES}"))
        .into_iter()
        .collect()
}

pub(super) fn name(path: &str, _: &str) -> Vec<String> {
    const FORBIDDEN: [&str; 8] = [
        "util", "utils", "common", "helper", "helpers", "manager", "managers", "misc",
    ];
    let module = module_of(path);
    let bad = module.iter().find(|part| FORBIDDEN.contains(part));
    bad.map(|part| format!("a module may not be called `{part}`"))
        .into_iter()
        .collect()
}

pub(super) fn shortcuts(path: &str, text: &str) -> Vec<String> {
    const FORBIDDEN: [&str; 8] = [
        ".unwrap()",
        "unsafe",
        "todo!",
        "unimplemented!",
        "panic!",
        "unreachable!",
        "dbg!",
        "static mut",
    ];
    let original: Vec<&str> = text.lines().collect();
    let code = code(path, text);
    let mut findings = Vec::new();
    for (i, line) in code.iter().enumerate() {
        for word in FORBIDDEN {
            if words(line, word).next().is_some() {
                findings.push(format!("line {}: `{word}` outside tests", i + 1));
            }
        }
        if line.contains(".expect(\"") && !explained(&original, i) {
            findings.push(format!(
                "line {}: `expect` without its invariant above",
                i + 1
            ));
        }
    }
    findings
}

/// Whether a comment stands above the statement that line `at` belongs to.
pub(super) fn explained(lines: &[&str], at: usize) -> bool {
    for line in lines[..at].iter().rev().take(12) {
        let line = line.trim();
        if line.starts_with("//") {
            return true;
        }
        if line.ends_with([';', '{', '}']) || line.is_empty() {
            return false;
        }
    }
    false
}

pub(super) fn four_facts(path: &str, text: &str) -> Vec<String> {
    // A module of one line has no code yet.
    if !path.ends_with("/mod.rs") || text.lines().count() == 1 {
        return Vec::new();
    }
    let doc: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .collect();
    let doc = doc.concat();
    ["Answers", "May import", "Invariants", "Start reading"]
        .into_iter()
        .filter(|fact| !doc.contains(fact))
        .map(|fact| format!("its head does not say `{fact}`"))
        .collect()
}

/// A binding is an envelope: only `a2a` opens it.
pub(super) fn binding_matches(path: &str, text: &str) -> Vec<String> {
    if module_of(path)[0] == "a2a" {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (i, line) in code(path, text).iter().enumerate() {
        let matched = ["JsonRpc", "Rest", "Grpc"].iter().any(|variant| {
            let pattern = format!("Binding::{variant}");
            words(line, &pattern).any(|at| {
                let rest = line[at + pattern.len()..].trim_start();
                let arm =
                    rest.starts_with("=>") || rest.starts_with('|') || rest.starts_with("if ");
                arm || line.contains("matches!") || line.contains("if let")
            })
        });
        if matched {
            findings.push(format!(
                "line {}: matches on `Binding` outside `a2a`",
                i + 1
            ));
        }
    }
    findings
}

/// Names in Cargo.toml's `[dependencies]`, and in the first column of the README's table.
pub(super) fn dependencies(manifest: &str, readme: &str) -> (Vec<String>, Vec<String>) {
    let section = |text: &str, from: &str, next: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| *line != from).skip(1);
        lines
            .take_while(|line| !line.starts_with(next))
            .map(str::to_owned)
            .collect()
    };
    let declared = section(manifest, "[dependencies]", "[");
    let declared = declared.iter().filter_map(|line| line.split_once(" = "));
    let named = section(readme, "## Dependencies", "## ");
    let named = named
        .iter()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let sorted = |names: Vec<&str>| {
        let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        names.sort();
        names
    };
    (
        sorted(declared.map(|(name, _)| name).collect()),
        sorted(named.map(|(name, _)| name).collect()),
    )
}

/// Words of the place where this was written mean nothing to those who read it.
pub(super) fn workplace(text: &str) -> Vec<String> {
    // Split, so that this file does not hold them.
    const FORBIDDEN: [&str; 5] = [
        concat!("/wo", "rk/"),
        concat!("this ses", "sion"),
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("registry.npm", "js.org"),
    ];
    let mut findings = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let words = FORBIDDEN.iter().filter(|word| line.contains(*word));
        findings.extend(words.map(|word| format!("line {}: `{word}`", i + 1)));
    }
    findings
}
