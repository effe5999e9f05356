//! Asking an issuer whether a token is still good (RV-3), after it was verified here.
//!
//! Only tokens that were accepted are asked about, so strangers cause no question. Of many
//! requests with one token one asks, and the others wait for its answer.

/// How an issuer is asked; adapters know it from here.
pub use crate::config::snapshot::Introspection;

use super::gate::{Gate, Live};
use super::request_id::RequestId;
use super::revocations::seconds;
use super::token_cache::TokenKey;
use crate::identity::introspection::{judge_plain, judge_signed};
use crate::identity::{Principal, TokenFault, fault};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most tokens whose answers are remembered.
const MAX_ACTIVE: usize = 10_000;
/// Most questions that are under way at one time.
const MAX_ASKED: usize = 1024;

/// An answer of an introspection endpoint with status 200.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntrospectionReply {
    /// Whether its media type is that of a signed answer (RFC 9701).
    pub signed: bool,
    /// Its body.
    pub body: Bytes,
}

/// Why there is no answer: a closed set, without any text from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// No connection, or no TLS that we trust.
    Unreachable,
    /// It did not come in time.
    TimedOut,
    /// Another status than 200.
    Status(u16),
    /// Neither JSON nor a signed answer by its media type, or encoded.
    MediaType,
    /// More bytes than an answer has.
    TooLarge,
    /// The connection broke.
    Broken,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unanswered::Unreachable => f.write_str("the endpoint cannot be reached"),
            Unanswered::TimedOut => f.write_str("the endpoint did not answer in time"),
            Unanswered::Status(status) => write!(f, "the endpoint answered {status}"),
            Unanswered::MediaType => f.write_str("the answer has another media type"),
            Unanswered::TooLarge => f.write_str("the answer is too large"),
            Unanswered::Broken => f.write_str("the connection broke"),
        }
    }
}

/// Knows the way to introspection endpoints.
pub trait Introspector: Send + Sync {
    /// The way to one endpoint, made once for all questions of a generation.
    fn endpoint(&self, settings: &Arc<Introspection>) -> Box<dyn Endpoint>;
}

/// The way to one introspection endpoint, with the connections that are kept to it.
#[async_trait]
pub trait Endpoint: Send + Sync {
    /// One question about a token, bounded in time and size.
    ///
    /// # Errors
    /// Why there is no answer.
    async fn ask(
        &self,
        token: &str,
        request_id: RequestId,
    ) -> Result<IntrospectionReply, Unanswered>;
}

type Outcome = Result<(), TokenFault>;
type Flight = Arc<tokio::sync::Mutex<Option<Outcome>>>;

/// An issuer that is asked.
struct Asked {
    settings: Arc<Introspection>,
    endpoint: Box<dyn Endpoint>,
    /// Why the last question got no answer that counts.
    failing: Mutex<Option<Box<str>>>,
}

impl Asked {
    fn failed(&self, issuer: &str, why: &dyn fmt::Display) -> TokenFault {
        let mut failing = lock(&self.failing);
        if failing.replace(why.to_string().into()).is_none() {
            tracing::error!(issuer, "introspection failed, its tokens get 503: {why}");
        }
        fault::INTROSPECTION_FAILED
    }

    fn answered(&self, issuer: &str) {
        if lock(&self.failing).take().is_some() {
            tracing::info!(issuer, "introspection answers again");
        }
    }
}

/// What issuers have answered under one generation.
pub struct ActiveTokens {
    /// By issuer, in their order.
    asked: Vec<Option<Asked>>,
    /// Until which monotonic time an answer may be relied on.
    until: Mutex<HashMap<TokenKey, Duration>>,
    flights: Mutex<HashMap<TokenKey, Flight>>,
}

impl ActiveTokens {
    /// Nothing yet, and the ways to those who are asked.
    pub fn new(
        settings: &[Option<Arc<Introspection>>],
        introspector: &dyn Introspector,
    ) -> ActiveTokens {
        let asked = |settings: &Arc<Introspection>| Asked {
            settings: Arc::clone(settings),
            endpoint: introspector.endpoint(settings),
            failing: Mutex::default(),
        };
        ActiveTokens {
            asked: settings.iter().map(|s| s.as_ref().map(asked)).collect(),
            until: Mutex::default(),
            flights: Mutex::default(),
        }
    }

    /// Which issuers, by their index, did not answer the last question, and why.
    pub fn failing(&self) -> impl Iterator<Item = (usize, Box<str>)> {
        let failing = |asked: &Asked| lock(&asked.failing).clone();
        let each = self.asked.iter().enumerate();
        each.filter_map(move |(issuer, asked)| Some((issuer, failing(asked.as_ref()?)?)))
    }

    fn holds(&self, key: &TokenKey, now: Duration) -> bool {
        lock(&self.until).get(key).is_some_and(|until| now < *until)
    }

    fn keep(&self, key: TokenKey, until: Duration, now: Duration) {
        let mut kept = lock(&self.until);
        if kept.len() >= MAX_ACTIVE {
            kept.retain(|_, until| now < *until);
        }
        // With so many at once the next use asks again, which is no harm but a question.
        if kept.len() < MAX_ACTIVE {
            kept.insert(key, until);
        }
    }

    /// The question about a token, under way or new; `None` when there are too many.
    fn flight(&self, key: TokenKey) -> Option<Flight> {
        let mut flights = lock(&self.flights);
        if flights.len() >= MAX_ASKED {
            // Those that a caller who left began, and nobody goes on with.
            flights.retain(|_, flight| Arc::strong_count(flight) > 1);
        }
        if flights.len() >= MAX_ASKED && !flights.contains_key(&key) {
            return None;
        }
        Some(Arc::clone(flights.entry(key).or_default()))
    }

    fn land(&self, key: &TokenKey) {
        lock(&self.flights).remove(key);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the issuer of a verified token, if its entry says so, unless it said yes a moment ago.
///
/// # Errors
/// The token is not active; or there is no answer that counts.
pub async fn introspected(
    gate: &Gate,
    live: &Live,
    token: &str,
    key: TokenKey,
    principal: &Principal,
) -> Result<(), TokenFault> {
    let active = &live.active;
    let Some(Some(asked)) = active.asked.get(principal.issuer_index) else {
        return Ok(());
    };
    if active.holds(&key, gate.clock.monotonic()) {
        return Ok(());
    }
    let flight = active.flight(key).ok_or(fault::INTROSPECTION_FAILED)?;
    // Who gets the lock first asks. If that caller leaves, the next one does.
    let mut outcome = flight.lock().await;
    if let Some(outcome) = *outcome {
        return outcome;
    }
    let answer = ask(gate, live, asked, token, principal).await;
    let judged = answer.map(|until| {
        let now = gate.clock.monotonic();
        let left = until.saturating_sub(seconds(gate.clock.now()));
        let left = Duration::from_secs(u64::try_from(left).unwrap_or(0));
        active.keep(key, now.saturating_add(left.min(asked.settings.cache)), now);
    });
    *outcome = Some(judged);
    active.land(&key);
    judged
}

/// Until which second since the epoch the answer may be relied on.
async fn ask(
    gate: &Gate,
    live: &Live,
    asked: &Asked,
    token: &str,
    principal: &Principal,
) -> Result<i64, TokenFault> {
    let id = RequestId::new(&*gate.clock, &*gate.random);
    let issuer = &*principal.issuer;
    let failed = |why: &dyn fmt::Display| asked.failed(issuer, why);
    let reply = asked.endpoint.ask(token, id).await;
    let reply = reply.map_err(|why| failed(&why))?;
    let now = seconds(gate.clock.now());
    let judged = match (asked.settings.signed, reply.signed) {
        (false, false) => judge_plain(&reply.body, &live.issuers, principal, now),
        (true, true) => {
            let us = &asked.settings.client_id;
            judge_signed(&reply.body, &live.issuers, principal, us, now)
        }
        (true, false) => return Err(failed(&"the answer is not signed")),
        (false, true) => return Err(failed(&"the answer is signed, and `signed` is not set")),
    };
    match judged {
        Err(fault) if fault == fault::INTROSPECTION_FAILED => {
            Err(failed(&"the answer is not that of an introspection"))
        }
        judged => {
            asked.answered(issuer);
            judged
        }
    }
}
