//! [`Strangers`]: how many refusals of callers without a good token are recorded one by one.
//!
//! Anybody can cause such a refusal, so their records are bounded (`design.md` section 9): what
//! comes above the bound is counted, and the counts are recorded together.

use super::ports::UnixMillis;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Refusals of strangers that are recorded one by one in each [`WINDOW`].
const SINGLY: u32 = 100;
/// What they are counted over.
const WINDOW: Duration = Duration::from_secs(1);
/// The same while the journal is crowded, when none is recorded by itself.
const CROWDED_WINDOW: Duration = Duration::from_secs(60);

/// Counts refusals of strangers.
#[derive(Debug, Default)]
pub struct Strangers(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    /// When it began, monotonic.
    began: Duration,
    recorded: u32,
    counted: Summary,
}

/// What was counted instead of recorded.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// When the first was.
    pub since: UnixMillis,
    /// How many, by their private codes.
    pub reasons: BTreeMap<&'static str, u64>,
}

impl Strangers {
    /// Whether one more refusal is to be recorded by itself; otherwise it has been counted.
    /// `now` is monotonic, `wall` the time of the refusal; `crowded` as the journal says it.
    pub fn record(
        &self,
        code: &'static str,
        now: Duration,
        wall: UnixMillis,
        crowded: bool,
    ) -> bool {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What was counted before stays until it is taken.
        if now.saturating_sub(window.began) >= WINDOW && window.counted.reasons.is_empty() {
            window.began = now;
            window.recorded = 0;
        }
        if window.recorded < SINGLY && !crowded {
            window.recorded += 1;
            return true;
        }
        if window.counted.reasons.is_empty() {
            window.counted.since = wall;
        }
        *window.counted.reasons.entry(code).or_default() += 1;
        false
    }

    /// What is due to be recorded together; with `all`, whatever was counted.
    pub fn take(&self, now: Duration, crowded: bool, all: bool) -> Option<Summary> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let length = if crowded { CROWDED_WINDOW } else { WINDOW };
        let due = all || now.saturating_sub(window.began) >= length;
        if !due || window.counted.reasons.is_empty() {
            return None;
        }
        window.began = now;
        window.recorded = 0;
        Some(std::mem::take(&mut window.counted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = WINDOW;

    #[test]
    fn what_comes_above_the_bound_is_counted_by_reason_and_taken_once() {
        let strangers = Strangers::default();
        for _ in 0..SINGLY {
            assert!(strangers.record("a", SECOND, 1, false));
        }
        assert!(!strangers.record("a", SECOND, 2, false));
        assert!(!strangers.record("b", SECOND, 3, false));
        assert_eq!(strangers.take(SECOND, false, false), None);
        // Nobody took them in time: they are counted on, and nothing is recorded twice.
        assert!(!strangers.record("b", SECOND * 3, 4, false));
        let summary = Summary {
            since: 2,
            reasons: BTreeMap::from([("a", 1), ("b", 2)]),
        };
        assert_eq!(strangers.take(SECOND * 3, false, false), Some(summary));
        assert_eq!(strangers.take(SECOND * 9, false, true), None);
        assert!(strangers.record("a", SECOND * 3, 5, false));
    }

    #[test]
    fn a_crowded_journal_takes_only_summaries_and_seldom() {
        let strangers = Strangers::default();
        assert!(!strangers.record("a", SECOND, 1, true));
        assert_eq!(strangers.take(SECOND * 30, true, false), None);
        assert!(strangers.take(SECOND * 30, true, true).is_some());
        assert!(!strangers.record("a", SECOND * 31, 1, true));
        assert!(strangers.take(SECOND * 91, true, false).is_some());
    }
}
