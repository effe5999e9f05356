//! [`Recorder`]: follows one request and writes what became of it, whatever that is.
//!
//! A refusal, an intent before anything is sent, an outcome at the end. If the request's future is
//! dropped, or panics, the destructor writes what is known.

mod asked;
mod hidden;

pub use hidden::HiddenCaller;

use super::authenticate::Verified;
use super::metrics::{AgentMetrics, Phase};
use super::observe::ReplyNote;
use super::ports::{JournalError, RecordBody, Recorded, UnixMillis};
use super::request_id::RequestId;
use super::skill::Skill;
use super::trace::{Parent, Trace};
use super::{Attempts, Gate, Live, Rejection};
use crate::a2a::{Call, Fault};
use crate::audit::record::{
    Artifacts, Delivery, Effect as EffectRecord, Ended, Head, Id, Ids, Intent, Millis, Outcome,
    Reach, Reached, Record, Refusal, Response, Surface, Time, Timing,
};
use crate::config::snapshot::{Agent, Listener};
use crate::policy::Decision;
use hidden::HiddenReply;
use http::Method;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Follows one request from its header to its conclusion.
pub struct Recorder {
    gate: Arc<Gate>,
    /// The generation that this request keeps to its end.
    pub live: Arc<Live>,
    /// Its id, in every answer and record.
    pub request_id: RequestId,
    /// The trace that it is a part of.
    pub trace: Trace,
    /// Its start, monotonic.
    pub started: Duration,
    time: UnixMillis,
    listener: Arc<Listener>,
    source: SocketAddr,
    /// SHA-256 of the DER of its connection's client certificate.
    pub certificate: Option<[u8; 32]>,
    method: Method,
    /// What its path leads to.
    pub surface: Surface,
    /// The agent that its path leads to.
    pub agent: Option<Arc<Agent>>,
    /// Its canonical path, only where it leads to an agent.
    pub path: Option<Box<str>>,
    /// The caller, once its token is verified.
    pub verified: Option<Arc<Verified>>,
    /// The tenant for which the call is made, where the agent has tenants.
    pub tenant: Option<Box<str>>,
    /// Length and SHA-256 of the body that leaves, when it is not the caller's own.
    pub forwarded: Option<(u64, [u8; 32])>,
    /// The skill of a message.
    pub skill: Option<Skill>,
    /// The call, once it is parsed.
    pub call: Option<Call>,
    /// Extensions that its header declares.
    pub extensions: Vec<Box<str>>,
    /// Hosts of the webhooks that it sets.
    pub webhook_hosts: Vec<Box<str>>,
    /// What was decided; before that, a refusal's own code takes its place.
    pub decision: Option<Decision>,
    /// Length of the body.
    pub body_bytes: u64,
    /// SHA-256 of the body, where it was computed.
    pub body_sha256: Option<[u8; 32]>,
    /// Attempts to hand it to the agent.
    pub attempts: Attempts,
    /// What came back.
    pub reply: ReplyNote,
    intent: Option<u64>,
    own_work: Duration,
    overhead: Option<Duration>,
    concluded: bool,
}

/// Who sent a request, from which connection, where to.
pub struct Arrival {
    /// Where it was accepted.
    pub listener: Arc<Listener>,
    /// The peer.
    pub source: SocketAddr,
    /// The HTTP method.
    pub method: Method,
    /// SHA-256 of the DER of the client certificate of the connection.
    pub certificate: Option<[u8; 32]>,
    /// What its `traceparent` says.
    pub parent: Option<Parent>,
}

impl Recorder {
    /// Begins to follow a request.
    pub fn begin(gate: &Arc<Gate>, arrival: Arrival) -> Recorder {
        let Arrival {
            listener,
            source,
            method,
            certificate,
            parent,
        } = arrival;
        // All that one request needs, at once.
        let mut random = [0; 34];
        gate.random.fill(&mut random);
        let (mut id, mut ids) = ([0; 10], [0; 24]);
        id.copy_from_slice(&random[..10]);
        ids.copy_from_slice(&random[10..]);
        let time = gate.clock.now();
        Recorder {
            live: gate.live(),
            request_id: RequestId::of(time, id),
            trace: Trace::new(parent, &ids),
            started: gate.clock.monotonic(),
            time,
            gate: gate.clone(),
            listener,
            source,
            certificate,
            method,
            surface: Surface::None,
            agent: None,
            path: None,
            verified: None,
            tenant: None,
            forwarded: None,
            skill: None,
            call: None,
            extensions: Vec::new(),
            webhook_hosts: Vec::new(),
            decision: None,
            body_bytes: 0,
            body_sha256: None,
            attempts: Attempts::default(),
            reply: ReplyNote::default(),
            intent: None,
            own_work: Duration::ZERO,
            overhead: None,
            concluded: false,
        }
    }

    /// Writes the intent and waits until it is as durable as configured (I-2).
    pub async fn intend(&mut self) -> Result<Recorded, JournalError> {
        let members = {
            let (claims, hidden) = (self.claims(), self.hidden());
            let asked = self.asked("allowed", &claims, &hidden);
            Record::Intent(Intent {
                head: self.head(),
                asked,
            })
            .members()
        };
        let receipt = self.gate.journal.append(RecordBody(members));
        self.gate.metrics.journal_record("intent");
        let bounded = tokio::time::timeout(JOURNAL_BOUND, receipt.wait()).await;
        let recorded = bounded
            .unwrap_or(Err(JournalError::TimedOut))
            .inspect_err(|_| {
                self.gate.metrics.journal_error();
            })?;
        self.intent = Some(recorded.sequence());
        self.overhead = Some(self.elapsed());
        Ok(recorded)
    }

    /// Concludes a request that was refused; `status` is what the caller got.
    pub fn refused(&mut self, rejection: &Rejection, status: u16) {
        // After an intent the outcome is the conclusion: the agent may have seen the call.
        if self.concluded || self.intent.is_some() {
            return;
        }
        self.concluded = true;
        self.count(rejection.code, "deny");
        if !self.untouched()
            && let Some(metrics) = self.metrics()
        {
            metrics.refused_reached();
        }
        if self.verified.is_none() && !self.is_singled_out(rejection.code) {
            return;
        }
        let (claims, hidden) = (self.claims(), self.hidden());
        let record = Record::Refusal(Refusal {
            head: self.head(),
            asked: self.asked(rejection.code, &claims, &hidden),
            http_status: status,
            fault: rejection.fault.entry().public_reason,
            token_reason: rejection.token_rule,
            error: (self.decided(rejection.code).effect == EffectRecord::Allow)
                .then_some(rejection.code),
            reach: Reach::UNTOUCHED,
        });
        self.gate.metrics.journal_record("refusal");
        self.gate.journal.queue(RecordBody(record.members()));
    }

    /// Whether the refusal of a stranger is recorded by itself; if not, it has been counted.
    fn is_singled_out(&self, code: &'static str) -> bool {
        let gate = &self.gate;
        let now = gate.clock.monotonic();
        let crowded = gate.journal.crowded();
        gate.strangers.record(code, now, self.time, crowded)
    }

    /// Concludes a public card request: it is no call, so it is counted and not recorded.
    pub fn card_served(&mut self, reason: &'static str) {
        self.concluded = true;
        self.count(reason, "allow");
    }

    /// Concludes a forwarded call.
    pub fn ended(&mut self, ended: Ended, whole: bool) {
        if self.concluded {
            return;
        }
        let Some(intent) = self.intent else {
            self.refused(&Rejection::plain(Fault::Internal, ended.label()), 0);
            return;
        };
        self.concluded = true;
        let delivery = match self.reply.http_status {
            0 => self.attempts.delivery(),
            _ if whole => Delivery::Responded,
            _ => Delivery::ResponsePartial,
        };
        self.count_forwarded(delivery);
        let hidden = self.hidden_reply();
        let outcome = self.outcome(intent, delivery, ended, hidden.as_ref());
        let record = Record::Outcome(outcome);
        self.gate.metrics.journal_record("outcome");
        self.gate.journal.queue(RecordBody(record.members()));
    }

    fn outcome<'s>(
        &'s self,
        intent: u64,
        delivery: Delivery,
        ended: Ended,
        hidden: Option<&'s HiddenReply>,
    ) -> Outcome<'s> {
        let reply = &self.reply;
        let (task_id, context_id, artifacts) = match hidden {
            Some(hidden) => (
                hidden.task.as_deref(),
                hidden.context.as_deref(),
                &hidden.artifacts,
            ),
            None => (
                reply.task_id.as_deref(),
                reply.context_id.as_deref(),
                &reply.artifacts,
            ),
        };
        Outcome {
            head: Head {
                time: Time(self.gate.clock.now()),
                ..self.head()
            },
            request_id: self.request_id.as_str(),
            intent,
            agent: self.agent.as_ref().map_or("", |a| &a.name),
            operation: self.call.as_ref().map(|c| c.operation),
            reach: delivery.into(),
            attempts: self.attempts.list(),
            response: (reply.http_status != 0).then(|| Response {
                http_status: reply.http_status,
                grpc_status: reply.grpc_status,
                rpc_code: reply.rpc_code,
                kind: reply.kind,
                states: &reply.states,
                extensions: Ids(&reply.extensions),
                bytes: reply.bytes,
                events: reply.events,
                judged: reply.judged(),
                malformed: reply.malformed,
                ended_by_close: reply.ended_by_close,
            }),
            task_id: task_id.map(Id),
            context_id: context_id.map(Id),
            artifacts: Artifacts(artifacts),
            ended,
            ms: Timing {
                total: Millis(self.elapsed()),
                to_response: reply
                    .header_at
                    .map(|at| Millis(at.saturating_sub(self.started))),
                overhead: self.overhead.map(Millis),
            },
        }
    }

    /// The address that it came from.
    pub fn peer(&self) -> IpAddr {
        self.source.ip()
    }

    /// The HTTP method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The gate that it came through.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Whether provably nothing of the call reached the agent.
    pub fn untouched(&self) -> bool {
        self.reply.http_status == 0 && self.attempts.delivery().reached() == Reached::No
    }

    /// Ends a phase of our own work that began at `began`, and says when.
    ///
    /// Waiting for caller or agent belongs to none, so the total is the sum of the phases.
    pub fn phase(&mut self, phase: Phase, began: Duration) -> Duration {
        let now = self.elapsed();
        let took = now.saturating_sub(began);
        self.own_work += took;
        self.gate.metrics.overhead(phase, took);
        if phase == Phase::Record {
            self.gate.metrics.overhead(Phase::Total, self.own_work);
        }
        now
    }

    /// Time since the request's start.
    pub fn elapsed(&self) -> Duration {
        self.gate.clock.monotonic().saturating_sub(self.started)
    }

    fn head(&self) -> Head<'_> {
        Head {
            time: Time(self.time),
            instance: &self.gate.instance,
            generation: self.live.snapshot.generation,
            policy_digest: &self.live.snapshot.digest,
        }
    }

    /// The metric handles of the agent that the path leads to.
    pub fn metrics(&self) -> Option<&AgentMetrics> {
        let agent = self.agent.as_ref()?;
        self.live.agents.get(agent.index).map(|metrics| &**metrics)
    }

    fn count(&self, reason: &'static str, effect: &'static str) {
        let operation = self.call.as_ref().map(|c| c.operation);
        match self.metrics() {
            Some(metrics) => metrics.request_on(self.surface.label(), operation, effect, reason),
            None => self
                .gate
                .metrics
                .request_without_agent(self.surface.label(), effect, reason),
        }
    }

    fn count_forwarded(&self, delivery: Delivery) {
        let Some(metrics) = self.metrics() else {
            return;
        };
        let operation = self.call.as_ref().map(|c| c.operation);
        if let Some(skill) = &self.skill {
            let assurance = skill.assurance.map_or("none", |a| a.label());
            metrics.skill(skill.source.label(), assurance);
        }
        match operation {
            Some(operation) => metrics.allowed(operation),
            None => metrics.request_on(self.surface.label(), None, "allow", "allowed"),
        }
        metrics.delivery(delivery.label());
        if let Some(at) = self.reply.header_at {
            metrics.first_byte(at.saturating_sub(self.started));
        }
        for attempt in self.attempts.list() {
            metrics.attempt(attempt.stage.label(), attempt.reused);
        }
        metrics.duration(operation, self.reply.events > 1, self.elapsed());
    }
}

/// How long a call waits for its intent before it is refused.
const JOURNAL_BOUND: Duration = Duration::from_secs(2);

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.concluded {
            let ended = if std::thread::panicking() {
                Ended::Panic
            } else {
                Ended::Abandoned
            };
            self.ended(ended, false);
        }
    }
}

/// A method that HTTP knows; any other is a stranger's text, and `other` in a record.
fn named(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::DELETE
        | Method::CONNECT
        | Method::OPTIONS
        | Method::TRACE
        | Method::PATCH => method.as_str(),
        _ => "other",
    }
}
