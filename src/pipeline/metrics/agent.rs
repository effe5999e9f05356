//! What is counted of each agent's calls.

use super::{Handles, named, register};
use crate::a2a::Operation;
use crate::audit::record::Delivery;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Registry,
};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// From 5 ms to 8 h: one call and one long stream fall in different finite buckets (FC-93).
const DURATION_BUCKETS: [f64; 21] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
    1800.0, 3600.0, 7200.0, 14_400.0, 28_800.0,
];

/// Operations, and one slot for requests that are none (a card, a backend path, a refusal before
/// parsing).
const SLOTS: usize = Operation::ALL.len() + 1;

/// The families that [`AgentMetrics`] draws handles from.
pub(super) struct Families {
    requests: IntCounterVec,
    deliveries: IntCounterVec,
    attempts: IntCounterVec,
    duration: HistogramVec,
    first_byte: HistogramVec,
    refused_reached: IntCounterVec,
    streams_open: IntGaugeVec,
    skills: IntCounterVec,
    card_fetches: IntCounterVec,
    card_drift: IntGaugeVec,
}

impl Families {
    pub(super) fn new(r: &Registry) -> Result<Families, prometheus::Error> {
        Ok(Families {
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
            first_byte: register(
                r,
                HistogramVec::new(
                    HistogramOpts::from(named(
                        "time_to_first_byte_seconds",
                        "From the request header to the agent's response header",
                    ))
                    .buckets(DURATION_BUCKETS.to_vec()),
                    &["agent"],
                ),
            )?,
            refused_reached: register(
                r,
                IntCounterVec::new(
                    named(
                        "refused_reached_total",
                        "Refused requests of which something had been sent: never any",
                    ),
                    &["agent"],
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
        })
    }

    /// A request that led to no agent.
    pub(super) fn without_agent(&self, surface: &str, effect: &str, reason: &str) -> IntCounter {
        let labels = ["none", surface, "none", effect, reason];
        self.requests.with_label_values(&labels)
    }
}

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
    first_byte: Histogram,
    refused_reached: IntCounter,
}

impl AgentMetrics {
    pub(super) fn new(name: &str, families: Arc<Families>) -> AgentMetrics {
        AgentMetrics {
            streams_open: families.streams_open.with_label_values(&[name]),
            first_byte: families.first_byte.with_label_values(&[name]),
            // There from the start, so that one more than none shows as an increase.
            refused_reached: families.refused_reached.with_label_values(&[name]),
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

    /// Calls whose intents a crash left open, which the next start closed: nobody knows.
    pub fn unknown_deliveries(&self, many: u64) {
        let labels = [&*self.name, Delivery::Unknown.label()];
        let unknown = self.families.deliveries.with_label_values(&labels);
        unknown.inc_by(many);
    }

    /// A request was refused although some of it had been sent, which must never be (I-1).
    pub fn refused_reached(&self) {
        self.refused_reached.inc();
    }

    /// From request header to the agent's response header.
    pub fn first_byte(&self, took: Duration) {
        self.first_byte.observe(took.as_secs_f64());
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

fn label(operation: Option<Operation>) -> &'static str {
    operation.map_or("none", Operation::name)
}
