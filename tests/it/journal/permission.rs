//! Directories that may not be written. Root may write anywhere, so for root these run themselves
//! again as somebody else.

use super::{append, intent, open, records, settings};
use portcullis::pipeline::ports::{Durability, Journal, JournalError};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Whether permissions mean something to this user; if not, the test of this name was run as one
/// to whom they do, or skipped.
fn applies(test: &str) -> bool {
    let dir = TempDir::new().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(dir.path().join("probe"), "").is_err() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let ran = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program)
        .args(["--exact", &format!("journal::permission::{test}")])
        .current_dir("/")
        .env_remove("TMPDIR")
        .output();
    match ran {
        Ok(ran) if ran.status.success() => {
            let said = String::from_utf8_lossy(&ran.stdout).into_owned();
            assert!(said.contains("1 passed"), "{said}");
        }
        Ok(ran) if ran.status.code() == Some(101) => {
            panic!("{}", String::from_utf8_lossy(&ran.stdout));
        }
        other => eprintln!("skipped: {test} (root, and no way to be somebody else: {other:?})"),
    }
    false
}

fn allow(dir: &Path, mode: u32) {
    fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_directory_without_write_permission_is_named() {
    if !applies("a_directory_without_write_permission_is_named") {
        return;
    }
    let dir = TempDir::new().unwrap();
    allow(dir.path(), 0o500);
    let error = open(settings(dir.path(), Durability::Write))
        .err()
        .unwrap()
        .to_string();
    allow(dir.path(), 0o700);
    assert!(
        error.starts_with("cannot open the journal's lock `"),
        "{error}"
    );
    assert!(error.contains("Permission denied"), "{error}");
}

#[test]
fn a_directory_that_may_no_longer_be_written_refuses_until_it_may() {
    if !applies("a_directory_that_may_no_longer_be_written_refuses_until_it_may") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let mut settings = settings(dir.path(), Durability::Write);
    settings.segment_bytes = 1;
    let journal = open(settings).unwrap();
    append(&journal, intent("before")).unwrap();
    allow(dir.path(), 0o500);
    for _ in 0..3 {
        let refused = append(&journal, intent("during"));
        assert_eq!(refused, Err(JournalError::Failed));
    }
    assert_eq!(journal.trouble(), Some(JournalError::Failed));
    allow(dir.path(), 0o700);
    append(&journal, intent("after")).unwrap();
    journal.close();
    let records = records(dir.path());
    let named = |name: &str| records.iter().filter(|r| r["request_id"] == name).count();
    assert_eq!(
        (named("before"), named("during"), named("after")),
        (1, 0, 1)
    );
    let noted = records.iter().find(|r| r["note"] == "recovered").unwrap();
    assert!(
        noted["detail"].as_str().unwrap().contains("denied"),
        "{noted}"
    );
}
