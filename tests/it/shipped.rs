//! The policies that ship: each is tested, no mutant of its tests survives, and `check` has nothing
//! to say about it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &str, config: &Path) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .arg(command)
        .arg("--config")
        .arg(config)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(said).unwrap(),
    )
}

fn names(folder: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    files.map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn every_policy_that_ships_is_tested_and_leaves_no_mutant() {
    let examples = names("config/examples");
    let mut policies = names("policies");
    let mut configs: Vec<PathBuf> = examples
        .iter()
        .map(|name| Path::new("config/examples").join(name))
        .collect();
    configs.push("config/gateway.yaml".into());
    policies.remove("pr-platform.yaml");
    assert_eq!(policies, examples, "each policy has a gateway file");
    for config in configs {
        let (exit, said) = run("check", &config);
        assert_eq!(exit, 0, "{said}");
        assert!(!said.contains("warning"), "{said}");
        for command in ["test", "mutate"] {
            let (exit, said) = run(command, &config);
            assert_eq!(exit, 0, "{command} {}\n{said}", config.display());
        }
    }
}
