//! What shipping the journal to a collector takes: where to, what came of it, how it is told.

use super::Gate;
use crate::audit::record::NoteTopic;
use std::time::Duration;

/// Where log records go, and with which header fields; adapters know it from here.
pub use crate::config::telemetry::Otlp as Endpoint;

/// What came of sending a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// The collector has it; of some records it says how many it refused, and why.
    Taken(Option<(u64, String)>),
    /// It takes less at once.
    TooLarge,
    /// It will never take it: an HTTP status.
    Refused(u16),
    /// It did not take it now; why, and how long it asks to be left alone.
    Later(Box<str>, Option<Duration>),
}

/// Pauses between attempts: twice as long each time, with an upper bound.
#[derive(Debug, Clone)]
pub struct Backoff {
    next: Duration,
    first: Duration,
}

/// Longest pause that we choose by ourselves.
const LONGEST: Duration = Duration::from_secs(60);

impl Backoff {
    /// Begins with this pause.
    pub fn new(first: Duration) -> Backoff {
        Backoff { next: first, first }
    }

    /// The pause before the next attempt. `share` is random: of the pause that is due, between a
    /// half and all of it, so that many gateways do not come back at once.
    pub fn pause(&mut self, asked: Option<Duration>, share: u8) -> Duration {
        let due = self.next;
        self.next = (due * 2).min(LONGEST);
        let pause = due / 2 + due / 2 * u32::from(share) / 255;
        asked.unwrap_or_default().max(pause)
    }

    /// It works again.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

impl Gate {
    /// Records what became of records that were to be shipped.
    pub fn record_export(&self, what: &str) {
        self.record_note(NoteTopic::Export, what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_a_collector_can_ask_for_more() {
        let mut backoff = Backoff::new(Duration::from_secs(1));
        let pauses: Vec<u64> = (0..8).map(|_| backoff.pause(None, 255).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.pause(None, 0), Duration::from_secs(30));
        let asked = Some(Duration::from_secs(200));
        assert_eq!(backoff.pause(asked, 0), Duration::from_secs(200));
        backoff.reset();
        assert_eq!(
            backoff.pause(asked.map(|_| Duration::ZERO), 255).as_secs(),
            1
        );
    }
}
