//! At the very end of `max_bytes`.

use super::*;

#[test]
fn without_room_for_a_checkpoint_nothing_else_changes_and_it_comes_later() {
    let (disk, mut writer, clock) = open_at(Durability::Write, 6000);
    while append(&mut writer, "a").is_ok() {}
    // Outcomes of calls under way take what was kept for them.
    for n in 0..100 {
        writer.batch(&mut vec![outcome(&n.to_string())]);
    }
    let lines = disk.lines().len();
    for _ in 0..3 {
        clock.advance(Duration::from_secs(1));
        writer.tick();
    }
    clock.advance(Duration::from_secs(60));
    writer.tick();
    writer.tick();
    assert_eq!(writer.metrics.checkpoint_errors.get(), 1);
    assert_eq!(writer.trouble(), Some(JournalError::Full));
    assert_eq!(writer.detail(), "");
    assert_eq!(disk.lines().len(), lines);
    writer.settings.max_bytes = 60_000;
    clock.advance(Duration::from_secs(60));
    writer.tick();
    assert_eq!(writer.trouble(), None);
    // With the segment that ends, before what was kept.
    assert_eq!(disk.all_names()[lines], "checkpoint");
}
