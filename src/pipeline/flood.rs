//! Bounds what strangers can write into the journal (`design.md` section 9).
//!
//! Refusals of callers that nobody verified are recorded one by one up to a rate, then counted by
//! reason, so that a flood of bad requests cannot fill the disk.

use super::Gate;
use super::ports::RecordBody;
use crate::audit::record::{Counts, Record, Refusals, Time};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Records per second that strangers may cause.
pub const PER_SECOND: u32 = 100;

/// What was refused and not recorded one by one.
#[derive(Debug, Default)]
pub struct Flood {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The second that `recorded` counts in, since the epoch.
    second: u64,
    recorded: u32,
    /// When the first of `counted` came, in milliseconds since the epoch.
    since: u64,
    counted: BTreeMap<&'static str, u64>,
}

/// What was counted, ready for one record.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    since: u64,
    reasons: Vec<(&'static str, u64)>,
}

impl Flood {
    /// Whether a refusal of a stranger is to be recorded; otherwise it is counted.
    pub fn admits(&self, reason: &'static str, now: u64) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let second = now / 1000;
        if state.second != second {
            state.second = second;
            state.recorded = 0;
        }
        if state.recorded < PER_SECOND {
            state.recorded += 1;
            return true;
        }
        if state.counted.is_empty() {
            state.since = now;
        }
        // Reasons are a closed set, so this cannot grow without bound.
        *state.counted.entry(reason).or_default() += 1;
        false
    }

    fn take(&self) -> Option<Summary> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.counted.is_empty() {
            return None;
        }
        let reasons = std::mem::take(&mut state.counted).into_iter().collect();
        Some(Summary {
            since: state.since,
            reasons,
        })
    }
}

impl Gate {
    /// Writes one record for what was counted since the last call. Called every second and at the
    /// end.
    pub fn record_flood(&self) {
        let Some(summary) = self.flood.take() else {
            return;
        };
        let live = self.live();
        let record = Record::Refusals(Refusals {
            head: self.head(&live),
            since: Time(summary.since),
            count: summary.reasons.iter().map(|(_, count)| count).sum(),
            reasons: Counts(&summary.reasons),
        });
        self.metrics.journal_record("refusals");
        self.journal.queue(RecordBody(record.members()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_rate_refusals_are_counted_by_reason() {
        let flood = Flood::default();
        for _ in 0..PER_SECOND {
            assert!(flood.admits("no_credential", 5_000));
        }
        assert_eq!(flood.take(), None);
        assert!(!flood.admits("no_credential", 5_100));
        assert!(!flood.admits("expired", 5_200));
        assert!(!flood.admits("expired", 5_999));
        assert!(
            flood.admits("expired", 6_000),
            "a new second has room again"
        );
        let expected = Summary {
            since: 5_100,
            reasons: vec![("expired", 2), ("no_credential", 1)],
        };
        assert_eq!(flood.take(), Some(expected));
        assert_eq!(flood.take(), None);
    }
}
