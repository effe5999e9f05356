//! [`Collector`]: sends log records to an OpenTelemetry collector (OTLP over HTTP, in JSON).

use super::exchange::{plain_mannered, read_body};
use crate::audit::otlp::rejected;
use crate::pipeline::shipping::{Endpoint, Sent};
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use reqwest::Client;
use std::fmt;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// From the connection to the last byte of the answer.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest answer that is read.
const MAX_ANSWER: usize = 64 * 1024;
/// How long a connection is kept for the next batch.
const IDLE: Duration = Duration::from_secs(30);
/// Longest pause that a collector can ask for.
const MAX_PAUSE: Duration = Duration::from_secs(300);

/// A collector. No redirect is followed and no proxy used; time and sizes are bounded.
pub struct Collector {
    client: Client,
    endpoint: Endpoint,
}

/// Why no client could be made.
#[derive(Debug)]
pub struct CollectorError(reqwest::Error);

impl fmt::Display for CollectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot make the client for the collector: {}", self.0)
    }
}

impl std::error::Error for CollectorError {}

impl Collector {
    /// For this endpoint; over TLS it trusts the machine's authorities.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(endpoint: Endpoint) -> Result<Collector, CollectorError> {
        Collector::with_timeout(endpoint, TOTAL_TIMEOUT)
    }

    /// The same with another bound than 10 s for the whole exchange.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn with_timeout(endpoint: Endpoint, total: Duration) -> Result<Collector, CollectorError> {
        let client = plain_mannered(None, CONNECT_TIMEOUT.min(total), Some(total))
            .pool_max_idle_per_host(1)
            .pool_idle_timeout(IDLE)
            .build()
            .map_err(CollectorError)?;
        Ok(Collector { client, endpoint })
    }

    /// Sends a request once.
    pub async fn send(&self, body: Bytes) -> Sent {
        let mut request = self
            .client
            .post(&*self.endpoint.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT_ENCODING, "identity");
        for (name, value) in &self.endpoint.headers {
            request = request.header(name, value.reveal());
        }
        let response = match request.body(body).send().await {
            Ok(response) => response,
            // The error may name the URL, which has no secret in it.
            Err(error) if error.is_timeout() => return later("no answer in time", None),
            Err(error) if error.is_connect() => return later("no connection", None),
            Err(_) => return later("the connection broke", None),
        };
        let status = response.status().as_u16();
        let pause = response.headers().get(RETRY_AFTER);
        let pause = pause.and_then(|pause| pause.to_str().ok()?.trim().parse().ok());
        let pause = pause.map(|seconds| Duration::from_secs(seconds).min(MAX_PAUSE));
        match status {
            200..=299 => {
                // Records that were taken are not sent again because the answer broke off.
                let answer = read_body(response, MAX_ANSWER).await.unwrap_or_default();
                Sent::Taken(rejected(&answer))
            }
            413 => Sent::TooLarge,
            // Nothing is wrong with the records here: whoever set this up must look at it.
            401 | 403 | 404 | 405 | 407 | 408 | 429 | 500..=599 | 300..=399 => {
                later(&format!("HTTP {status}"), pause)
            }
            _ => Sent::Refused(status),
        }
    }
}

fn later(why: &str, pause: Option<Duration>) -> Sent {
    Sent::Later(why.into(), pause)
}
