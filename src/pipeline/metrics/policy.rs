//! Which policies are in force.

use super::{Metrics, named, register};
use prometheus::{IntGaugeVec, Registry};
use std::sync::{Mutex, PoisonError};

/// Digits of a digest that are shown; enough to find its `config` record.
const SHOWN: usize = 16;

/// The digest in force, as a label: one at a time.
pub(super) struct PolicyFamily {
    info: IntGaugeVec,
    shown: Mutex<Box<str>>,
}

impl PolicyFamily {
    pub(super) fn new(r: &Registry) -> Result<PolicyFamily, prometheus::Error> {
        Ok(PolicyFamily {
            info: register(
                r,
                IntGaugeVec::new(
                    named(
                        "policy_info",
                        "1 for the policy digest in force, by its first 16 digits",
                    ),
                    &["digest"],
                ),
            )?,
            shown: Mutex::default(),
        })
    }
}

impl Metrics {
    /// The configuration with this hex digest is in force.
    pub fn set_policy_digest(&self, digest: &str) {
        let digest = digest.get(..SHOWN).unwrap_or(digest);
        let mut shown = self
            .policy
            .shown
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if &**shown == digest {
            return;
        }
        self.policy.info.with_label_values(&[digest]).set(1);
        // There is none at first.
        let _ = self.policy.info.remove_label_values(&[&**shown]);
        *shown = digest.into();
    }
}
