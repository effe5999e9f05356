//! What becomes of records whose sync failed.

use super::*;

#[test]
fn after_a_failed_sync_the_records_are_withdrawn_and_a_new_segment_begins() {
    let (disk, mut writer) = open(Durability::Group, u64::MAX);
    assert_eq!(append(&mut writer, "a"), Ok(3));
    disk.set(|disk| disk.fail_sync = true);
    assert_eq!(append(&mut writer, "b"), Err(JournalError::Failed));
    disk.set(|disk| disk.fail_sync = false);
    assert_eq!(append(&mut writer, "c"), Ok(5));
    assert_eq!(disk.names(), ["opened", "a", "segment", "c", "recovered"]);
    assert_eq!(disk.0.lock().unwrap().segments.len(), 2);
}

#[test]
fn after_a_failed_background_sync_what_was_not_synced_begins_a_new_segment() {
    let (disk, mut writer) = open(Durability::Write, u64::MAX);
    assert_eq!(append(&mut writer, "a"), Ok(3));
    assert_eq!(append(&mut writer, "b"), Ok(4));
    disk.set(|disk| disk.fail_sync = true);
    writer.tick();
    assert_eq!(writer.trouble(), Some(JournalError::Failed));
    assert_eq!(append(&mut writer, "c"), Err(JournalError::Failed));
    disk.set(|disk| disk.fail_sync = false);
    assert_eq!(append(&mut writer, "d"), Ok(5));
    let lines = disk.lines();
    assert_eq!(disk.names(), ["opened", "a", "b", "d", "recovered"]);
    assert_eq!(lines[5]["detail"], "carry");
    let firsts: Vec<u64> = (disk.0.lock().unwrap().segments.iter())
        .map(|(first, _)| *first)
        .collect();
    assert_eq!(firsts, [1, 3]);
    assert_eq!(writer.total, disk.measure().unwrap().bytes);
}

#[test]
fn outcomes_before_a_failed_batch_go_along_and_the_batch_does_not() {
    let (disk, mut writer) = open(Durability::Group, u64::MAX);
    assert_eq!(append(&mut writer, "a"), Ok(3));
    writer.batch(&mut vec![outcome("o")]);
    disk.set(|disk| disk.fail_sync = true);
    assert_eq!(append(&mut writer, "b"), Err(JournalError::Failed));
    disk.set(|disk| disk.fail_sync = false);
    let synced = disk.syncs();
    assert_eq!(append(&mut writer, "c"), Ok(5));
    assert_eq!(disk.syncs(), synced + 1);
    assert_eq!(disk.names(), ["opened", "a", "o", "c", "recovered"]);
    assert_eq!(disk.0.lock().unwrap().segments[1].0, 4);
}

#[test]
fn what_cannot_be_read_back_keeps_calls_out_until_a_restart() {
    let (disk, mut writer) = open(Durability::Write, u64::MAX);
    assert_eq!(append(&mut writer, "a"), Ok(3));
    disk.set(|disk| (disk.fail_sync, disk.stale) = (true, true));
    writer.tick();
    disk.set(|disk| disk.fail_sync = false);
    for _ in 0..2 {
        assert_eq!(append(&mut writer, "b"), Err(JournalError::Failed));
        // Reading it again could only hide what happened.
        disk.set(|disk| disk.stale = false);
        writer.tick();
    }
    assert!(writer.detail().contains("restart the gateway"));
    assert_eq!(disk.names(), ["opened", "a"]);
}

#[test]
fn a_checkpoint_that_cannot_be_synced_is_counted_and_the_next_segment_is_signed_anew() {
    let (disk, mut writer, clock) = open_at(Durability::Write, u64::MAX);
    disk.set(|disk| disk.fail_sync = true);
    clock.advance(Duration::from_secs(60));
    writer.tick();
    assert_eq!(writer.metrics.checkpoint_errors.get(), 1);
    assert_eq!(writer.trouble(), Some(JournalError::Failed));
    disk.set(|disk| disk.fail_sync = false);
    writer.tick();
    assert_eq!(writer.trouble(), None);
    let names = disk.all_names();
    // The one that was not synced was never shown outside.
    assert_eq!(names[2..], ["checkpoint", "recovered", "checkpoint"]);
    assert_eq!(disk.0.lock().unwrap().segments.len(), 2);
}
