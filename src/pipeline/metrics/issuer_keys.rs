//! What becomes of issuers' key sets (LC-17). No `kid` and no URL is ever a label.

use super::{Metrics, named, register};
use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Registry};
use std::time::Duration;

/// Families about issuers' keys.
pub(super) struct KeyFamilies {
    age: GaugeVec,
    fetches: IntCounterVec,
    skipped: IntGaugeVec,
    shared: IntGaugeVec,
    unknown: IntCounterVec,
}

impl KeyFamilies {
    pub(super) fn new(r: &Registry) -> Result<KeyFamilies, prometheus::Error> {
        Ok(KeyFamilies {
            age: register(
                r,
                GaugeVec::new(
                    named(
                        "issuer_keys_age_seconds",
                        "Age of an issuer's last good key set",
                    ),
                    &["issuer"],
                ),
            )?,
            fetches: register(
                r,
                IntCounterVec::new(
                    named(
                        "issuer_keys_fetches_total",
                        "Fetches of issuers' key sets, by their result",
                    ),
                    &["issuer", "result"],
                ),
            )?,
            skipped: register(
                r,
                IntGaugeVec::new(
                    named(
                        "issuer_keys_skipped",
                        "Keys of an issuer's set that are not used, by the rule behind it",
                    ),
                    &["issuer", "reason"],
                ),
            )?,
            shared: register(
                r,
                IntGaugeVec::new(
                    named(
                        "issuer_keys_shared",
                        "Other issuers that have a key of this one's set",
                    ),
                    &["issuer"],
                ),
            )?,
            unknown: register(
                r,
                IntCounterVec::new(
                    named(
                        "issuer_unknown_kids_total",
                        "Otherwise good tokens whose key is not in the set, by what was done",
                    ),
                    &["issuer", "result"],
                ),
            )?,
        })
    }
}

impl Metrics {
    /// Age of the key set of a configured issuer; `None` while there is none.
    pub fn set_issuer_keys_age(&self, issuer: &str, age: Option<Duration>) {
        match age {
            Some(age) => self
                .keys
                .age
                .with_label_values(&[issuer])
                .set(age.as_secs_f64()),
            None => {
                let _ = self.keys.age.remove_label_values(&[issuer]);
            }
        }
    }

    /// A fetch of a configured issuer's keys ended so.
    pub fn issuer_keys_fetched(&self, issuer: &str, result: &'static str) {
        let labels = [issuer, result];
        self.keys.fetches.with_label_values(&labels).inc();
    }

    /// How many keys of a configured issuer's set are not used for one reason.
    pub fn set_issuer_keys_skipped(&self, issuer: &str, reason: &'static str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let labels = [issuer, reason];
        self.keys.skipped.with_label_values(&labels).set(count);
    }

    /// How many other issuers have a key of this one's.
    pub fn set_issuer_keys_shared(&self, issuer: &str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.keys.shared.with_label_values(&[issuer]).set(count);
    }

    /// How many entries of the denylist of one kind are in force.
    pub fn set_denylist_entries(&self, kind: &'static str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.denylist.with_label_values(&[kind]).set(count);
    }

    /// A token that is good but for its key, which is not in the set, and what was done.
    pub fn unknown_kid(&self, issuer: &str, result: &'static str) {
        let labels = [issuer, result];
        self.keys.unknown.with_label_values(&labels).inc();
    }

    /// An issuer is not configured any more: what was current about it says nothing now.
    pub fn forget_issuer(&self, issuer: &str) {
        let _ = self.keys.age.remove_label_values(&[issuer]);
        let _ = self.keys.shared.remove_label_values(&[issuer]);
        for why in crate::identity::keys::Unusable::ALL {
            let labels = [issuer, why.label()];
            let _ = self.keys.skipped.remove_label_values(&labels);
        }
    }
}
