//! What becomes of records that are shipped. The label `sink` is the name of one of our sinks.

use super::{Metrics, named, register};
use prometheus::{IntCounterVec, IntGaugeVec, Registry};

/// Families about shipped records.
pub(super) struct ExportFamilies {
    records: IntCounterVec,
    dropped: IntCounterVec,
    failures: IntCounterVec,
    lag: IntGaugeVec,
}

impl ExportFamilies {
    pub(super) fn new(r: &Registry) -> Result<ExportFamilies, prometheus::Error> {
        let counter = |name, help| register(r, IntCounterVec::new(named(name, help), &["sink"]));
        Ok(ExportFamilies {
            records: counter("export_records_total", "Records that a sink has taken")?,
            dropped: counter(
                "export_dropped_total",
                "Records that a sink refused, or that were gone before they were shipped",
            )?,
            failures: counter("export_failures_total", "Attempts to ship that failed")?,
            lag: register(
                r,
                IntGaugeVec::new(
                    named(
                        "export_lag_records",
                        "Records of the journal that a sink does not have yet",
                    ),
                    &["sink"],
                ),
            )?,
        })
    }
}

impl Metrics {
    /// A sink is configured: its counters are there from the beginning.
    pub fn export_sink(&self, sink: &'static str) {
        for family in [
            &self.export.records,
            &self.export.dropped,
            &self.export.failures,
        ] {
            family.with_label_values(&[sink]).inc_by(0);
        }
    }

    /// A sink has taken records.
    pub fn export_records(&self, sink: &'static str, count: u64) {
        self.export.records.with_label_values(&[sink]).inc_by(count);
    }

    /// Records do not get to a sink.
    pub fn export_dropped(&self, sink: &'static str, count: u64) {
        self.export.dropped.with_label_values(&[sink]).inc_by(count);
    }

    /// An attempt failed.
    pub fn export_failed(&self, sink: &'static str) {
        self.export.failures.with_label_values(&[sink]).inc();
    }

    /// How far a sink is behind.
    pub fn export_lag(&self, sink: &'static str, records: u64) {
        let records = i64::try_from(records).unwrap_or(i64::MAX);
        self.export.lag.with_label_values(&[sink]).set(records);
    }
}
