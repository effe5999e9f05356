//! [`JournalMetrics`]: what a journal counts about itself.

use super::{Metrics, named};
use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts, IntCounter, IntGauge};

/// From 10 µs, a write into the kernel's memory, to 10 s, a device that hangs.
const DEVICE_BUCKETS: [f64; 14] = [
    0.000_01, 0.000_03, 0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 5.0, 10.0,
];

/// Handles that the journal moves, and [`super::Metrics::follow_journal`] shows.
#[derive(Debug, Clone)]
pub struct JournalMetrics {
    /// Bytes of all segments together.
    pub bytes: IntGauge,
    /// How many bytes they may have.
    pub max_bytes: IntGauge,
    /// How many segments there are.
    pub segments: IntGauge,
    /// The sequence number of the last record.
    pub sequence: IntGauge,
    /// Records that wait for the writer.
    pub queue_records: IntGauge,
    /// Records that nobody waited for and that could not be kept.
    pub lost: IntCounter,
    /// Time to write one batch of records.
    pub write_seconds: Histogram,
    /// Time to sync the segment.
    pub sync_seconds: Histogram,
    /// When the last signed checkpoint was written, in seconds since the Unix epoch.
    pub checkpoint_timestamp: IntGauge,
    /// Checkpoints that could not be written, or not copied.
    pub checkpoint_errors: IntCounter,
}

impl JournalMetrics {
    /// Handles at zero, for a journal with room for so many bytes.
    ///
    /// # Errors
    /// Never for these names; the library checks them when it is called.
    pub fn new(max_bytes: u64) -> Result<JournalMetrics, prometheus::Error> {
        let gauge = |name, help| IntGauge::with_opts(named(name, help));
        let counter = |name, help| IntCounter::with_opts(named(name, help));
        let seconds = |name, help| {
            let options = HistogramOpts::from(named(name, help));
            Histogram::with_opts(options.buckets(DEVICE_BUCKETS.to_vec()))
        };
        let metrics = JournalMetrics {
            bytes: gauge("journal_bytes", "Bytes of all segments of the journal")?,
            max_bytes: gauge(
                "journal_max_bytes",
                "Bytes that the segments of the journal may have together",
            )?,
            segments: gauge("journal_segments", "Segments of the journal")?,
            sequence: gauge(
                "journal_sequence",
                "Sequence number of the last record of the journal",
            )?,
            queue_records: gauge(
                "journal_queue_records",
                "Records that wait for the writer of the journal",
            )?,
            lost: counter(
                "journal_lost_total",
                "Records that nobody waited for and that could not be kept",
            )?,
            write_seconds: seconds(
                "journal_write_seconds",
                "Time to write one batch of records, without its sync",
            )?,
            sync_seconds: seconds("journal_sync_seconds", "Time to sync the journal")?,
            checkpoint_timestamp: gauge(
                "journal_checkpoint_timestamp_seconds",
                "When the last signed checkpoint was written, in Unix time",
            )?,
            checkpoint_errors: counter(
                "journal_checkpoint_errors_total",
                "Checkpoints that could not be written, or not copied",
            )?,
        };
        metrics
            .max_bytes
            .set(i64::try_from(max_bytes).unwrap_or(i64::MAX));
        Ok(metrics)
    }

    fn collectors(&self) -> [Box<dyn Collector>; 10] {
        [
            Box::new(self.bytes.clone()),
            Box::new(self.max_bytes.clone()),
            Box::new(self.segments.clone()),
            Box::new(self.sequence.clone()),
            Box::new(self.queue_records.clone()),
            Box::new(self.lost.clone()),
            Box::new(self.write_seconds.clone()),
            Box::new(self.sync_seconds.clone()),
            Box::new(self.checkpoint_timestamp.clone()),
            Box::new(self.checkpoint_errors.clone()),
        ]
    }
}

impl Metrics {
    /// Shows what the journal counts about itself.
    ///
    /// # Errors
    /// Only when there is a second one.
    pub fn follow_journal(&self, journal: &JournalMetrics) -> Result<(), prometheus::Error> {
        let all = journal.collectors();
        all.into_iter()
            .try_for_each(|collector| self.registry.register(collector))
    }
}
