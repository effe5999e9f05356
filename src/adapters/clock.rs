//! The system's clock, and one that tests move.

use crate::pipeline::ports::{Clock, UnixMillis};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The operating system's clocks.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    pub fn new() -> SystemClock {
        SystemClock {
            start: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> UnixMillis {
        // A clock set before 1970 reads as 1970: every token is then not yet valid.
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that stands still until it is moved, for tests of anything that expires.
#[derive(Debug)]
pub struct ManualClock {
    now: AtomicU64,
    monotonic: AtomicU64,
}

impl ManualClock {
    /// A clock that stands at `now`, with its monotonic time at zero.
    pub fn at(now: UnixMillis) -> ManualClock {
        ManualClock {
            now: AtomicU64::new(now),
            monotonic: AtomicU64::new(0),
        }
    }

    /// Lets time pass on both clocks; parts of a millisecond are dropped.
    pub fn advance(&self, by: Duration) {
        let millis = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.now.fetch_add(millis, Ordering::Relaxed);
        self.monotonic.fetch_add(millis, Ordering::Relaxed);
    }

    /// Sets the wall clock, forward or back; monotonic time is unmoved.
    pub fn set(&self, now: UnixMillis) {
        self.now.store(now, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixMillis {
        self.now.load(Ordering::Relaxed)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_is_past_2020_and_monotonic_time_does_not_go_back() {
        let clock = SystemClock::new();
        assert!(clock.now() > 1_577_836_800_000);
        let before = clock.monotonic();
        assert!(clock.monotonic() >= before);
    }

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = ManualClock::at(1000);
        clock.advance(Duration::from_millis(250));
        assert_eq!(
            (clock.now(), clock.monotonic()),
            (1250, Duration::from_millis(250))
        );
        clock.set(7);
        assert_eq!(
            (clock.now(), clock.monotonic()),
            (7, Duration::from_millis(250))
        );
    }
}
