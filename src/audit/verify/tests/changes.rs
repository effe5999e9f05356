//! A journal with one change anywhere.

use super::{Check, PLAIN, Written, verify};
use crate::audit::verify::report::Report;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn a_changed_byte_is_found_at_its_record(
        at in any::<prop::sample::Index>(),
        flip in 1..=255u8,
        size in 1usize..9,
    ) {
        let written = Written::usual();
        let total: usize = written.lines.iter().map(|line| line.len() + 1).sum();
        let mut at = at.index(total);
        let mut segments = written.segments();
        let (mut line, mut within) = (0, at);
        while within > written.lines[line].len() {
            within -= written.lines[line].len() + 1;
            line += 1;
        }
        for (_, bytes) in &mut segments {
            if at < bytes.len() {
                bytes[at] ^= flip;
                break;
            }
            at -= bytes.len();
        }
        let report = verify(&segments, &Check { size, ..PLAIN });
        prop_assert!(!report.intact());
        let changed = line as u64 + 1;
        prop_assert!(report.trusted().unwrap_or(0) < changed);
        let problem = report.first_broken().unwrap();
        // Losing the last line feed makes a line that is not complete.
        if let Some((from, to)) = problem.records {
            prop_assert!(from <= changed + 1 && to + 1 >= changed, "{changed}: {problem:?}");
        } else {
            prop_assert_eq!(problem.what.label(), "torn");
        }
        if let Some(place) = &problem.place {
            let number = place.segment.trim_start_matches("journal-").trim_end_matches(".jsonl");
            let begin: u64 = number.parse().unwrap();
            let named = begin + place.line - 1;
            prop_assert!(named.abs_diff(changed) <= 1, "{changed}: {problem:?}");
        }
    }

    #[test]
    fn removed_swapped_and_doubled_records_are_found(
        one in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        size in 1usize..9,
    ) {
        let written = Written::usual();
        let count = written.lines.len();
        // The last record removed is an end like any other; an external checkpoint shows it.
        let external = [written.last_checkpoint()];
        let (one, other) = (one.index(count - 1), other.index(count - 1));
        let check = Check { size, external: &external, ..PLAIN };
        let find = |change: &dyn Fn(&mut Written)| {
            let mut changed = Written::usual();
            change(&mut changed);
            verify(&changed.segments(), &check)
        };
        let near = |report: &Report, changed: usize| {
            let changed = changed as u64 + 1;
            let records = report.first_broken().and_then(|problem| problem.records);
            let near = records.is_some_and(|(from, to)| from <= changed + 1 && to + 1 >= changed);
            near && report.trusted().unwrap_or(0) < changed
        };
        let removed = find(&|changed| {
            changed.lines.remove(one);
            for begin in changed.begins.iter_mut().filter(|begin| **begin > one) {
                *begin -= 1;
            }
        });
        prop_assert!(near(&removed, one), "{one}: {:?}", removed.problems);
        let doubled = find(&|changed| {
            let line = changed.lines[one].clone();
            changed.lines.insert(one, line);
            for begin in changed.begins.iter_mut().filter(|begin| **begin > one) {
                *begin += 1;
            }
        });
        prop_assert!(near(&doubled, one + 1), "{one}: {:?}", doubled.problems);
        if one != other {
            let swapped = find(&|changed| changed.lines.swap(one, other));
            prop_assert!(near(&swapped, one.min(other)), "{one} {other}: {:?}", swapped.problems);
        }
    }
}
