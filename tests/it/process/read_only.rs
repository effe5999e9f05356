//! A file system that becomes read-only under an open journal, as ext4 does after an error.

use super::full_disk::send;
use super::hello_agent;
use crate::support::issuer::{DevAlgorithm, Grant, Issuer};
use crate::support::process::{Files, Plan, Process, eventually, of_kind};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

/// An ext4 file system in a file; unmounted when dropped.
struct Device {
    folder: tempfile::TempDir,
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

impl Device {
    /// `None` where this user may not mount, or there is no ext4.
    fn make() -> Option<Device> {
        let device = Device {
            folder: tempfile::tempdir().unwrap(),
        };
        File::create(device.image())
            .unwrap()
            .set_len(32 << 20)
            .unwrap();
        fs::create_dir(device.place()).unwrap();
        let made = succeeds(
            Command::new("mkfs.ext4")
                .args(["-q", "-F"])
                .arg(device.image()),
        );
        (made && device.mount() && device.trigger().is_some()).then_some(device)
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("place")
    }

    fn mount(&self) -> bool {
        let options = ["-o", "loop,errors=remount-ro"];
        succeeds(
            Command::new("mount")
                .args(options)
                .arg(self.image())
                .arg(self.place()),
        )
    }

    /// Where the kernel lets an error of this file system be triggered.
    fn trigger(&self) -> Option<PathBuf> {
        let mut find = Command::new("findmnt");
        let found = find
            .args(["-no", "SOURCE"])
            .arg(self.place())
            .output()
            .ok()?;
        let source = String::from_utf8(found.stdout).ok()?;
        let name = source.trim().strip_prefix("/dev/")?;
        let file = PathBuf::from(format!("/sys/fs/ext4/{name}/trigger_fs_error"));
        file.exists().then_some(file)
    }

    /// Unmounts it, mends it, and mounts it again.
    fn mend(&self) {
        assert!(succeeds(Command::new("umount").arg(self.place())));
        // Exit code 1: errors were mended.
        let mended = Command::new("fsck.ext4")
            .arg("-fy")
            .arg(self.image())
            .output();
        assert!(mended.unwrap().status.code().unwrap() <= 1);
        assert!(self.mount());
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.place()).output();
    }
}

#[tokio::test]
async fn a_file_system_that_becomes_read_only_stops_calls_and_what_was_answered_is_there_later() {
    let Some(device) = Device::make() else {
        eprintln!("skipped: read-only file system (needs root, ext4 and loop devices)");
        return;
    };
    let agent = hello_agent().await;
    let issuer = Issuer::new(DevAlgorithm::Es256);
    let url = agent.url();
    let journal = device.place().join("journal");
    let files = Files::write(
        &issuer,
        &Plan {
            journal: Some(&journal),
            durability: "group",
            ..Plan::for_agent(&url)
        },
    );
    let mut process = Process::start(&files).await;
    let token = issuer.token("alice", Grant::Agent, Value::Null);
    for number in 0..5 {
        assert_eq!(send(&process, &token, number).await.status, 200);
    }
    // The kernel makes nothing read-only that is open for writing, unless it has to.
    let mut remount = Command::new("mount");
    remount.args(["-o", "remount,ro"]).arg(device.place());
    assert!(!succeeds(&mut remount));
    assert_eq!(send(&process, &token, 5).await.status, 200);
    fs::write(device.trigger().unwrap(), "1").unwrap();

    let before = agent.counters().requests();
    for number in 6..12 {
        let refused = send(&process, &token, number).await;
        assert_eq!(refused.status, 503, "{}", refused.text());
        assert!(
            refused.json()["error"]["code"].is_number(),
            "{}",
            refused.text()
        );
    }
    assert_eq!(agent.counters().requests(), before, "the agent was touched");
    let ready = process.until_ready("not ready", |r| r.status == 503).await;
    assert_eq!(
        ready.json()["reasons"][0]["what"],
        "journal",
        "{}",
        ready.text()
    );

    process.signal("TERM");
    process.ended().await;
    device.mend();
    let process = Process::start(&files).await;
    assert_eq!(send(&process, &token, 12).await.status, 200);
    let records = eventually("the last outcome", async || {
        let records = files.records();
        let count = |kind| of_kind(&records, kind).len();
        (count("intent") == count("outcome")).then_some(records)
    })
    .await;
    let intents: HashSet<&str> = of_kind(&records, "intent")
        .iter()
        .map(|r| r["message_id"].as_str().unwrap())
        .collect();
    for request in agent.requests() {
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            continue;
        };
        let id = body["params"]["message"]["messageId"].as_str().unwrap();
        assert!(
            intents.contains(id),
            "{id} was received and is not recorded"
        );
    }
}
