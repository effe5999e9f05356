//! [`Metrics`]: what Prometheus reads, under the fixed names of `design.md` section 12.
//!
//! Labels come only from configuration (`agent`, `issuer`) and from closed sets (`&'static str`);
//! nothing a caller sent can become one. A request on the good path costs atomic increments:
//! its handles are resolved once per agent and kept in [`AgentMetrics`].

mod issuer_keys;
mod phase;
mod rules;

pub use phase::Phase;
pub use rules::RuleMetrics;

use crate::a2a::Operation;
use crate::policy::PolicySet;
use prometheus::core::Collector;
use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// From 5 ms to 8 h: one call and one long stream fall in different finite buckets (FC-93).
const DURATION_BUCKETS: [f64; 21] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
    1800.0, 3600.0, 7200.0, 14_400.0, 28_800.0,
];

/// From 10 µs to 100 ms: our own work never waits for the agent, so it never takes longer.
const OVERHEAD_BUCKETS: [f64; 13] = [
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025,
    0.05, 0.1,
];

/// Operations, and one slot for requests that are none (a card, a backend path, a refusal before
/// parsing).
const SLOTS: usize = Operation::ALL.len() + 1;

/// All metrics of one gateway, with a registry of their own: several gateways fit in a process.
pub struct Metrics {
    registry: Registry,
    families: Arc<Families>,
    overhead: [Histogram; Phase::ALL.len()],
    reloads_ok: IntCounter,
    reloads_failed: IntCounter,
    generation: IntGauge,
    keys: issuer_keys::KeyFamilies,
    rules: rules::RuleFamilies,
    denylist: IntGaugeVec,
    auth_failures: IntCounterVec,
    journal_records: Handles<1, IntCounter>,
    journal_record_family: IntCounterVec,
    journal_errors: IntCounter,
    journal_trouble: IntGauge,
    agents: Mutex<HashMap<Box<str>, Arc<AgentMetrics>>>,
}

/// The families that [`AgentMetrics`] draws handles from.
struct Families {
    requests: IntCounterVec,
    deliveries: IntCounterVec,
    attempts: IntCounterVec,
    duration: HistogramVec,
    streams_open: IntGaugeVec,
    skills: IntCounterVec,
    card_fetches: IntCounterVec,
    card_drift: IntGaugeVec,
}

impl Metrics {
    /// Registers every family.
    ///
    /// # Errors
    /// Only when a name is registered twice, which is a mistake in this file.
    pub fn new() -> Result<Metrics, prometheus::Error> {
        let registry = Registry::new();
        let r = &registry;
        let families = Families {
            requests: register(
                r,
                IntCounterVec::new(
                    named("requests_total", "Requests answered, by decision"),
                    &["agent", "surface", "operation", "effect", "reason"],
                ),
            )?,
            deliveries: register(
                r,
                IntCounterVec::new(
                    named("deliveries_total", "How far forwarded calls got"),
                    &["agent", "delivery"],
                ),
            )?,
            attempts: register(
                r,
                IntCounterVec::new(
                    named("attempts_total", "Attempts by the last stage they reached"),
                    &["agent", "stage", "reused"],
                ),
            )?,
            duration: register(
                r,
                HistogramVec::new(
                    HistogramOpts::from(named(
                        "request_duration_seconds",
                        "From the request header to the last byte of the reply",
                    ))
                    .buckets(DURATION_BUCKETS.to_vec()),
                    &["agent", "operation", "streaming"],
                ),
            )?,
            streams_open: register(
                r,
                IntGaugeVec::new(named("streams_open", "Event streams now open"), &["agent"]),
            )?,
            skills: register(
                r,
                IntCounterVec::new(
                    named("skills_total", "Where the skill of a call came from"),
                    &["agent", "source", "assurance"],
                ),
            )?,
            card_fetches: register(
                r,
                IntCounterVec::new(
                    named(
                        "card_fetches_total",
                        "Fetches of agents' cards, by their effect",
                    ),
                    &["agent", "result"],
                ),
            )?,
            card_drift: register(
                r,
                IntGaugeVec::new(
                    named(
                        "card_drift",
                        "What operators should look at in an agent's card, by kind",
                    ),
                    &["agent", "kind"],
                ),
            )?,
        };
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
            families: Arc::new(families),
            overhead: Phase::ALL.map(|phase| overhead.with_label_values(&[phase.label()])),
            reloads_ok: reloads.with_label_values(&["ok"]),
            reloads_failed: reloads.with_label_values(&["failed"]),
            generation: register(
                r,
                IntGauge::with_opts(named("generation", "The configuration generation in use")),
            )?,
            keys: issuer_keys::KeyFamilies::new(r)?,
            rules: rules::RuleFamilies::new(r)?,
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
        self.families
            .requests
            .with_label_values(&["none", surface, "none", effect, reason])
            .inc();
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

/// The handles of one agent.
pub struct AgentMetrics {
    name: Box<str>,
    families: Arc<Families>,
    allowed: [OnceLock<IntCounter>; SLOTS],
    duration: [[OnceLock<Histogram>; 2]; SLOTS],
    deliveries: Handles<1, IntCounter>,
    attempts: Handles<2, IntCounter>,
    skills: Handles<2, IntCounter>,
    streams_open: IntGauge,
}

impl AgentMetrics {
    fn new(name: &str, families: Arc<Families>) -> AgentMetrics {
        AgentMetrics {
            streams_open: families.streams_open.with_label_values(&[name]),
            name: name.into(),
            families,
            allowed: std::array::from_fn(|_| OnceLock::new()),
            duration: std::array::from_fn(|_| [OnceLock::new(), OnceLock::new()]),
            deliveries: Handles::new(),
            attempts: Handles::new(),
            skills: Handles::new(),
        }
    }

    /// The agent's card was fetched, with this effect.
    pub fn card_fetched(&self, result: &'static str) {
        let labels = [&*self.name, result];
        self.families.card_fetches.with_label_values(&labels).inc();
    }

    /// How much there is of one kind to look at in the agent's card.
    pub fn set_card_drift(&self, kind: &'static str, count: usize) {
        self.families
            .card_drift
            .with_label_values(&[&*self.name, kind])
            .set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A call on the `agent` surface was allowed.
    pub fn allowed(&self, operation: Operation) {
        self.allowed[operation as usize]
            .get_or_init(|| self.request("agent", Some(operation), "allow", "allowed"))
            .inc();
    }

    /// Any other request of this agent: a refusal, a card, a backend path. Looks its labels up.
    pub fn request_on(
        &self,
        surface: &'static str,
        operation: Option<Operation>,
        effect: &'static str,
        reason: &'static str,
    ) {
        self.request(surface, operation, effect, reason).inc();
    }

    fn request(
        &self,
        surface: &str,
        operation: Option<Operation>,
        effect: &str,
        reason: &str,
    ) -> IntCounter {
        self.families.requests.with_label_values(&[
            &*self.name,
            surface,
            label(operation),
            effect,
            reason,
        ])
    }

    /// How far a forwarded call got (`design.md` section 9).
    pub fn delivery(&self, delivery: &'static str) {
        self.deliveries
            .get([delivery], |[delivery]| {
                self.families
                    .deliveries
                    .with_label_values(&[&*self.name, delivery])
            })
            .inc();
    }

    /// One attempt, by the last stage that it reached.
    pub fn attempt(&self, stage: &'static str, reused: bool) {
        let reused = if reused { "true" } else { "false" };
        self.attempts
            .get([stage, reused], |[stage, reused]| {
                self.families
                    .attempts
                    .with_label_values(&[&*self.name, stage, reused])
            })
            .inc();
    }

    /// Where a call's skill came from and how much that is worth.
    pub fn skill(&self, source: &'static str, assurance: &'static str) {
        self.skills
            .get([source, assurance], |[source, assurance]| {
                self.families
                    .skills
                    .with_label_values(&[&*self.name, source, assurance])
            })
            .inc();
    }

    /// From request header to last byte. `streaming` says what the reply was, not what was asked.
    pub fn duration(&self, operation: Option<Operation>, streaming: bool, took: Duration) {
        let slot = operation.map_or(SLOTS - 1, |operation| operation as usize);
        self.duration[slot][usize::from(streaming)]
            .get_or_init(|| {
                self.families.duration.with_label_values(&[
                    &*self.name,
                    label(operation),
                    if streaming { "true" } else { "false" },
                ])
            })
            .observe(took.as_secs_f64());
    }

    /// Counts a stream as open until the guard is dropped, however the stream ends.
    pub fn stream_opened(&self) -> OpenStream {
        self.streams_open.inc();
        OpenStream(self.streams_open.clone())
    }
}

/// An open stream; see [`AgentMetrics::stream_opened`].
pub struct OpenStream(IntGauge);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.dec();
    }
}

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

fn label(operation: Option<Operation>) -> &'static str {
    operation.map_or("none", Operation::name)
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
