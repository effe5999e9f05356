//! When a changed file becomes the next generation, and when not.

use super::{Folder, gateway};
use portcullis::config::{Look, Reloader};
use portcullis::source::{Problems, codes};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

const SETTLE: Duration = Duration::from_secs(4);

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn start(folder: &Folder) -> Reloader {
    let (loaded, reloader) = Reloader::start(folder.path("gateway.yaml"), SETTLE).unwrap();
    assert_eq!(loaded.snapshot.generation, 1);
    reloader
}

/// Looks until changed content has settled; gives the last look.
fn settled(reloader: &mut Reloader, from: u64) -> Look {
    assert!(matches!(reloader.look(at(from)), Look::Settling));
    reloader.look(at(from + 4))
}

#[test]
fn a_broken_file_changes_nothing_and_is_reported_once() {
    let folder = Folder::new();
    let good = gateway("/a", "127.0.0.1:0", "j");
    folder.write("gateway.yaml", &good);
    let mut reloader = start(&folder);
    assert!(matches!(reloader.look(at(0)), Look::Unchanged));

    folder.write("gateway.yaml", "rules: [");
    assert!(matches!(settled(&mut reloader, 1), Look::Broken(_)));
    assert!(matches!(reloader.look(at(6)), Look::StillBroken));
    reloader.trigger();
    assert!(matches!(reloader.look(at(7)), Look::Broken(_)));

    folder.write("gateway.yaml", "rules: [[");
    assert!(matches!(settled(&mut reloader, 8), Look::Broken(_)));

    folder.write("gateway.yaml", &gateway("/b", "127.0.0.1:0", "j"));
    let Look::Loaded(loaded) = settled(&mut reloader, 20) else {
        panic!("the correction was not noticed")
    };
    assert_eq!(loaded.snapshot.generation, 2);
    assert_eq!(&*loaded.snapshot.agents[0].route, "/b");
    assert!(matches!(reloader.look(at(30)), Look::Unchanged));
}

#[test]
fn a_file_in_the_making_is_never_loaded() {
    let folder = Folder::new();
    folder.write("gateway.yaml", &gateway("/a", "127.0.0.1:0", "j"));
    let mut reloader = start(&folder);
    let whole = gateway("/b", "127.0.0.1:0", "j");
    let half = whole.replace("\naudit", "\n#");
    for (second, text) in [
        (1, ""),
        (2, &*half),
        (5, &*half),
        (6, &*whole),
        (9, &*whole),
    ] {
        folder.write("gateway.yaml", text);
        assert!(
            matches!(reloader.look(at(second)), Look::Settling),
            "{second}"
        );
    }
    assert!(matches!(reloader.look(at(10)), Look::Loaded(_)));
}

#[test]
fn an_empty_or_vanished_file_keeps_the_last_good() {
    let folder = Folder::new();
    folder.write("gateway.yaml", &gateway("/a", "127.0.0.1:0", "j"));
    let mut reloader = start(&folder);
    folder.write("gateway.yaml", "");
    let Look::Broken(problems) = settled(&mut reloader, 1) else {
        panic!("an empty file was taken")
    };
    assert_eq!(problems.0[0].code, codes::EMPTY);
    fs::remove_file(folder.path("gateway.yaml")).unwrap();
    let Look::Broken(problems) = settled(&mut reloader, 10) else {
        panic!("a vanished file was taken")
    };
    assert_eq!(problems.0[0].code, codes::UNREADABLE);
}

/// What a running gateway says to another address of its listener.
pub fn changed_address() -> Problems {
    let folder = Folder::new();
    folder.write("gateway.yaml", &gateway("/a", "127.0.0.1:0", "j"));
    let mut reloader = start(&folder);
    folder.write("gateway.yaml", &gateway("/a", "127.0.0.2:0", "j"));
    let Look::Broken(mut problems) = settled(&mut reloader, 10) else {
        panic!("the address changed in a reload")
    };
    for problem in &mut problems.0 {
        problem.file = "gateway.yaml".to_owned();
    }
    problems
}

#[test]
fn what_needs_a_restart_is_refused_with_its_place() {
    let folder = Folder::new();
    folder.write("gateway.yaml", &gateway("/a", "127.0.0.1:0", "j"));
    let mut reloader = start(&folder);
    let changes = [
        (gateway("/a", "127.0.0.2:0", "j"), "listeners"),
        (gateway("/a", "127.0.0.1:0", "k"), "audit.journal"),
        (
            gateway("/a", "127.0.0.1:0", "j") + "admin: {bind: \"127.0.0.1:1\"}\n",
            "admin.bind",
        ),
        (
            gateway("/a", "127.0.0.1:0", "j") + "ownership: {store: {memory: {}}, ttl: 60d}\n",
            "ownership",
        ),
    ];
    for (i, (text, path)) in (1_u64..).zip(changes) {
        folder.write("gateway.yaml", &text);
        let Look::Broken(problems) = settled(&mut reloader, i * 10) else {
            panic!("{path} changed in a reload")
        };
        let found: Vec<_> = problems
            .0
            .iter()
            .filter(|p| p.code == codes::NEEDS_RESTART)
            .map(|p| (p.path.as_str(), p.line > 0))
            .collect();
        assert_eq!(found, [(path, true)]);
    }
}

/// A policy that fits any configuration.
fn policy(name: &str) -> String {
    format!(
        "version: 1\npolicy: {name}\nrules: [{{id: {name}, deny: {{agents: any, operations: any, skills: any}}, always: true}}]\n"
    )
}

/// A prefix of a policy is often valid, with fewer rules. With an end marker none is ever loaded.
#[test]
fn no_part_of_a_policy_is_loaded_for_the_whole() {
    let folder = Folder::new();
    let text = gateway("/a", "127.0.0.1:0", "j")
        + "policies: {files: [policy.yaml], end_marker: required}\n";
    folder.write("gateway.yaml", &text);
    let whole = policy("a") + "...\n";
    folder.write("policy.yaml", &whole);
    let mut reloader = start(&folder);
    let end = whole.trim_end().len();
    for (i, cut) in (1_u64..).zip(0..end) {
        folder.write("policy.yaml", &whole[..cut]);
        match settled(&mut reloader, i * 10) {
            Look::Broken(_) => {}
            other => panic!("{other:?} of `{}`", &whole[..cut]),
        }
    }
    folder.write("policy.yaml", &whole[..end]);
    assert!(matches!(settled(&mut reloader, 100_000), Look::Loaded(_)));
}

#[test]
fn a_swapped_symlink_is_noticed_every_time() {
    let folder = Folder::new();
    let text = gateway("/a", "127.0.0.1:0", "j") + "policies: {files: [p/*.yaml]}\n";
    folder.write("gateway.yaml", &text);
    let version = |n: u32| {
        let data = folder.path(&format!("p/..v{n}"));
        fs::create_dir_all(&data).unwrap();
        fs::write(data.join("policy.yaml"), policy("a") + &format!("# {n}\n")).unwrap();
        let swap = folder.path("p/..data_tmp");
        symlink(format!("..v{n}"), &swap).unwrap();
        fs::rename(swap, folder.path("p/..data")).unwrap();
    };
    version(1);
    symlink("..data/policy.yaml", folder.path("p/policy.yaml")).unwrap();
    let mut reloader = start(&folder);
    for n in 2..=6 {
        version(n);
        fs::remove_dir_all(folder.path(&format!("p/..v{}", n - 1))).unwrap();
        let Look::Loaded(loaded) = settled(&mut reloader, u64::from(n) * 10) else {
            panic!("swap {n} was not noticed")
        };
        let policy = &loaded.snapshot.policies[0].text;
        assert!(policy.contains(&format!("# {n}")), "{policy}");
        assert_eq!(loaded.snapshot.generation, u64::from(n));
    }
}

#[test]
fn a_policy_file_that_comes_or_goes_is_a_change_and_tests_are_not_policies() {
    let folder = Folder::new();
    fs::create_dir(folder.path("p")).unwrap();
    let text = gateway("/a", "127.0.0.1:0", "j") + "policies: {files: [p/*.yaml]}\n";
    folder.write("gateway.yaml", &text);
    folder.write("p/a.yaml", &policy("a"));
    let mut reloader = start(&folder);
    folder.write("p/a_test.yaml", &policy("a"));
    assert!(matches!(reloader.look(at(1)), Look::Unchanged));
    folder.write("p/b.yaml", &policy("b"));
    let Look::Loaded(loaded) = settled(&mut reloader, 2) else {
        panic!("a new policy was not noticed")
    };
    let names: Vec<_> = loaded
        .snapshot
        .policies
        .iter()
        .map(|p| p.path.clone())
        .collect();
    assert_eq!(names, [folder.path("p/a.yaml"), folder.path("p/b.yaml")]);
    fs::remove_file(folder.path("p/a.yaml")).unwrap();
    fs::remove_file(folder.path("p/b.yaml")).unwrap();
    assert!(matches!(settled(&mut reloader, 10), Look::Broken(_)));
}
