//! Fetches Agent Cards, in the HTTP version of the agent's calls, for ourselves and never for a
//! caller.

use super::agent::{Bounds, Place, Unanswered, ask};
use super::exchange::{coding, decoded, document, plain_mannered};
use crate::pipeline::RequestId;
use crate::pipeline::cards::{
    CardSource, CardTarget, FetchFailure, FetchFailureKind, FetchOutcome, Known,
};
use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, ETAG, IF_NONE_MATCH};
use http::{Request, StatusCode};
use rustls::ClientConfig;
use std::time::Duration;

/// Largest card that is read.
const MAX_CARD: usize = 1024 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// For one path, from the connection to the last byte of the body.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(5);

/// The HTTP client for cards. It follows no redirects, uses no proxy, repeats nothing, and sends no
/// more than it is told.
pub struct CardFetcher {
    /// Whom to trust for key sets; `None` for the machine's authorities.
    key_sets: Option<ClientConfig>,
    bounds: Bounds,
}

impl Default for CardFetcher {
    fn default() -> CardFetcher {
        CardFetcher::with_timeouts(CONNECT_TIMEOUT, TOTAL_TIMEOUT)
    }
}

impl CardFetcher {
    /// With other bounds than 3 s for the connection and 5 s for the whole exchange.
    pub fn with_timeouts(connect: Duration, total: Duration) -> CardFetcher {
        CardFetcher {
            key_sets: None,
            bounds: Bounds { connect, total },
        }
    }

    /// The same with other authorities for the key sets that a card's signature names than the
    /// machine's.
    pub fn trusting(self, key_sets: ClientConfig) -> CardFetcher {
        CardFetcher {
            key_sets: Some(key_sets),
            ..self
        }
    }

    /// One request; `Ok(None)` sends on to the next path.
    async fn ask(
        &self,
        target: &CardTarget,
        path: &str,
        known: Option<&Known>,
        request_id: RequestId,
    ) -> Result<Option<FetchOutcome>, FetchFailureKind> {
        let place = Place {
            authority: &target.authority,
            host: &target.host,
            port: target.port,
            tls: (target.tls.as_deref()).map(|tls| (&*tls.server_name, &*tls.config)),
            speaks: target.speaks,
        };
        let mut request = Request::get(path)
            .header("Portcullis-Purpose", "card")
            .header("Portcullis-Request-Id", request_id.as_str())
            .header(ACCEPT, "application/json")
            .header(ACCEPT_ENCODING, "identity");
        let known = known.filter(|known| *known.path == *path);
        if let Some(known) = known {
            request = request.header(IF_NONE_MATCH, &*known.etag);
        }
        let request = request.body(Bytes::new());
        let request = request.map_err(|_| FetchFailureKind::Broken)?;
        let answer = ask(&place, request, &self.bounds).await.map_err(kind)?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED if known.is_some() => {
                return Ok(Some(FetchOutcome::NotModified));
            }
            // On these only: an agent that is ill must not change which card is asked for (FC-18).
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => return Ok(None),
            status if status.is_redirection() && status != StatusCode::NOT_MODIFIED => {
                return Err(FetchFailureKind::Redirected(status.as_u16()));
            }
            status => return Err(FetchFailureKind::Status(status.as_u16())),
        }
        let coding = coding(&answer.headers)?;
        let etag = answer.headers.get(ETAG);
        let etag = etag.and_then(|etag| etag.to_str().ok()).map(Box::from);
        let body = answer.body(MAX_CARD).await.map_err(kind)?;
        let body = decoded(coding, body, MAX_CARD)?;
        Ok(Some(FetchOutcome::Fetched {
            body,
            etag,
            path: path.into(),
        }))
    }
}

#[async_trait]
impl CardSource for CardFetcher {
    async fn fetch(
        &self,
        target: &CardTarget,
        known: Option<&Known>,
        request_id: RequestId,
    ) -> FetchOutcome {
        let mut last: &str = "";
        for path in &target.paths {
            last = path;
            match self.ask(target, path, known, request_id).await {
                Ok(Some(outcome)) => return outcome,
                Ok(None) => {}
                Err(kind) => {
                    return FetchOutcome::Failed(FetchFailure {
                        path: path.clone(),
                        kind,
                    });
                }
            }
        }
        FetchOutcome::Failed(FetchFailure {
            path: last.into(),
            kind: FetchFailureKind::NotFound,
        })
    }

    async fn key_set(&self, url: &str, request_id: RequestId) -> Result<Bytes, FetchFailureKind> {
        // Made each time: few agents need it, and a machine without roots must still start.
        let client = plain_mannered(
            self.key_sets.clone(),
            self.bounds.connect,
            Some(self.bounds.total),
        )
        .https_only(true)
        .build()
        .map_err(|_| FetchFailureKind::Unreachable)?;
        let fetched = document(&client, url, request_id, MAX_CARD).await;
        fetched.map(|set| set.body).map_err(|none| none.kind())
    }
}

fn kind(unanswered: Unanswered) -> FetchFailureKind {
    match unanswered {
        Unanswered::Unreachable(_) => FetchFailureKind::Unreachable,
        Unanswered::Tls(_) => FetchFailureKind::Tls,
        Unanswered::TimedOut { .. } => FetchFailureKind::TimedOut,
        Unanswered::OtherHttp(asked) => FetchFailureKind::OtherHttp(asked),
        Unanswered::Closed(asked) => FetchFailureKind::Closed(asked),
        Unanswered::Broken(_) => FetchFailureKind::Broken,
        Unanswered::TooLarge => FetchFailureKind::TooLarge,
    }
}
