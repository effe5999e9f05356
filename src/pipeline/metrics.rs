//! [`Metrics`]: what Prometheus reads, under the fixed names of `design.md` section 12.
//!
//! Labels come only from configuration (`agent`, `issuer`) and from closed sets (`&'static str`);
//! nothing a caller sent can become one. A request on the good path costs atomic increments:
//! its handles are resolved once per agent and kept in [`AgentMetrics`].

mod agent;
mod export;
mod issuer_keys;
mod journal;
mod phase;
mod policy;
mod rules;

pub use agent::{AgentMetrics, OpenStream};
pub use journal::JournalMetrics;
pub use phase::Phase;
pub use rules::RuleMetrics;

use crate::policy::PolicySet;
use prometheus::core::Collector;
use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// From 10 µs to 100 ms: our own work never waits for the agent, so it never takes longer.
const OVERHEAD_BUCKETS: [f64; 13] = [
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025,
    0.05, 0.1,
];

/// All metrics of one gateway, with a registry of their own: several gateways fit in a process.
pub struct Metrics {
    registry: Registry,
    families: Arc<agent::Families>,
    overhead: [Histogram; Phase::ALL.len()],
    reloads_ok: IntCounter,
    reloads_failed: IntCounter,
    generation: IntGauge,
    policy: policy::PolicyFamily,
    keys: issuer_keys::KeyFamilies,
    rules: rules::RuleFamilies,
    export: export::ExportFamilies,
    denylist: IntGaugeVec,
    auth_failures: IntCounterVec,
    journal_records: Handles<1, IntCounter>,
    journal_record_family: IntCounterVec,
    journal_errors: IntCounter,
    journal_trouble: IntGauge,
    agents: Mutex<HashMap<Box<str>, Arc<AgentMetrics>>>,
}

impl Metrics {
    /// Registers every family.
    ///
    /// # Errors
    /// Only when a name is registered twice, which is a mistake in this file.
    pub fn new() -> Result<Metrics, prometheus::Error> {
        let registry = Registry::new();
        let r = &registry;
        let overhead = register(
            r,
            HistogramVec::new(
                HistogramOpts::from(named(
                    "overhead_seconds",
                    "Time that the gateway itself took, without waiting for caller or agent",
                ))
                .buckets(OVERHEAD_BUCKETS.to_vec()),
                &["phase"],
            ),
        )?;
        let reloads = register(
            r,
            IntCounterVec::new(named("reloads_total", "Reloads by result"), &["result"]),
        )?;
        let journal_record_family = register(
            r,
            IntCounterVec::new(
                named("journal_records_total", "Records written, by kind"),
                &["kind"],
            ),
        )?;
        Ok(Metrics {
            families: Arc::new(agent::Families::new(r)?),
            overhead: Phase::ALL.map(|phase| overhead.with_label_values(&[phase.label()])),
            reloads_ok: reloads.with_label_values(&["ok"]),
            reloads_failed: reloads.with_label_values(&["failed"]),
            generation: register(
                r,
                IntGauge::with_opts(named("generation", "The configuration generation in use")),
            )?,
            policy: policy::PolicyFamily::new(r)?,
            keys: issuer_keys::KeyFamilies::new(r)?,
            rules: rules::RuleFamilies::new(r)?,
            export: export::ExportFamilies::new(r)?,
            denylist: register(
                r,
                IntGaugeVec::new(
                    named(
                        "denylist_entries",
                        "Revocations in force, by what they name",
                    ),
                    &["kind"],
                ),
            )?,
            auth_failures: register(
                r,
                IntCounterVec::new(
                    named("auth_failures_total", "Tokens refused"),
                    &["issuer", "reason"],
                ),
            )?,
            journal_records: Handles::new(),
            journal_record_family,
            journal_errors: register(
                r,
                IntCounter::with_opts(named(
                    "journal_errors_total",
                    "Records that could not be written",
                )),
            )?,
            journal_trouble: register(
                r,
                IntGauge::with_opts(named(
                    "journal_trouble",
                    "1 while the journal cannot be written and calls are refused",
                )),
            )?,
            agents: Mutex::new(HashMap::new()),
            registry,
        })
    }

    /// The handles of one configured agent. The same name yields the same handles, so counters go
    /// on across generations. Takes a lock: ask when a configuration is compiled, not per request.
    pub fn agent(&self, name: &str) -> Arc<AgentMetrics> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = agents.get(name) {
            return Arc::clone(found);
        }
        let made = Arc::new(AgentMetrics::new(name, Arc::clone(&self.families)));
        agents.insert(name.into(), Arc::clone(&made));
        made
    }

    /// The handles of a policy's rules; takes a lock, and is asked once per generation.
    pub fn rules(&self, policies: &PolicySet) -> RuleMetrics {
        self.rules.follow(policies)
    }

    /// How many rules in shadow mode have expired.
    pub fn set_shadow_rules_expired(&self, count: usize) {
        self.rules.set_expired(count);
    }

    /// A request that led to no agent (unknown path, wrong host, no usable HTTP).
    pub fn request_without_agent(
        &self,
        surface: &'static str,
        effect: &'static str,
        reason: &'static str,
    ) {
        self.families.without_agent(surface, effect, reason).inc();
    }

    /// Time that we took in one phase of one request.
    pub fn overhead(&self, phase: Phase, took: Duration) {
        self.overhead[phase as usize].observe(took.as_secs_f64());
    }

    /// A token was refused. `issuer` is a configured name, or `other`; never text from a token.
    pub fn auth_failure(&self, issuer: &str, reason: &'static str) {
        self.auth_failures
            .with_label_values(&[issuer, reason])
            .inc();
    }

    /// A reload put `generation` into use.
    pub fn reloaded(&self, generation: u64) {
        self.reloads_ok.inc();
        self.set_generation(generation);
    }

    /// A reload was refused; the last good generation stays.
    pub fn reload_failed(&self) {
        self.reloads_failed.inc();
    }

    /// The generation in use, at start.
    pub fn set_generation(&self, generation: u64) {
        self.generation
            .set(i64::try_from(generation).unwrap_or(i64::MAX));
    }

    /// A record of this kind is in the journal.
    pub fn journal_record(&self, kind: &'static str) {
        self.journal_records
            .get([kind], |labels| {
                self.journal_record_family.with_label_values(&labels)
            })
            .inc();
    }

    /// A record could not be written.
    pub fn journal_error(&self) {
        self.journal_errors.inc();
    }

    /// Whether the journal cannot be written now.
    pub fn set_journal_trouble(&self, trouble: bool) {
        self.journal_trouble.set(i64::from(trouble));
    }

    /// Everything in the text exposition format; see [`CONTENT_TYPE`] for its media type.
    pub fn render(&self) -> String {
        let mut out = Vec::new();
        // An encoder only fails on a family without samples of its own type, which cannot be
        // built with the types above; what was encoded until then is still worth showing.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Handles found by labels from a closed set, without a lock once they are known: the set is
/// small, so a scan beats hashing. What does not fit any more is counted as `other`.
struct Handles<const N: usize, T> {
    known: [OnceLock<([&'static str; N], T)>; 24],
    other: OnceLock<T>,
}

impl<const N: usize, T> Handles<N, T> {
    fn new() -> Handles<N, T> {
        Handles {
            known: std::array::from_fn(|_| OnceLock::new()),
            other: OnceLock::new(),
        }
    }

    fn get(&self, labels: [&'static str; N], make: impl Fn([&'static str; N]) -> T) -> &T {
        for slot in &self.known {
            // Two callers may race for a free slot: the loser sees the winner's labels and goes on.
            let (found, handle) = slot.get_or_init(|| (labels, make(labels)));
            if *found == labels {
                return handle;
            }
        }
        self.other.get_or_init(|| make(["other"; N]))
    }
}

fn named(name: &str, help: &str) -> Opts {
    Opts::new(format!("portcullis_{name}"), help)
}

fn register<T: Collector + Clone + 'static>(
    registry: &Registry,
    family: Result<T, prometheus::Error>,
) -> Result<T, prometheus::Error> {
    let family = family?;
    registry.register(Box::new(family.clone()))?;
    Ok(family)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
