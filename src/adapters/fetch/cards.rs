//! Fetches Agent Cards over HTTP/1.1, for ourselves and never for a caller.

use super::exchange::{classify, coding, decoded, document, plain_mannered, read_body};
use crate::pipeline::RequestId;
use crate::pipeline::cards::{
    CardSource, CardTarget, CardTls, FetchFailure, FetchFailureKind, FetchOutcome, Known,
};
use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCEPT, ACCEPT_ENCODING, ETAG, HOST, IF_NONE_MATCH};
use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;

/// Largest card that is read.
const MAX_CARD: usize = 1024 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// For one path, from the connection to the last byte of the body.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(5);

/// The HTTP client for cards.
pub struct CardFetcher {
    client: Client,
    /// Whom to trust for key sets; `None` for the machine's authorities.
    key_sets: Option<ClientConfig>,
    connect: Duration,
    total: Duration,
}

/// Why the client could not be made.
#[derive(Debug)]
pub struct CardFetcherError(String);

impl std::fmt::Display for CardFetcherError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot make the client for agent cards: {}", self.0)
    }
}

impl std::error::Error for CardFetcherError {}

impl CardFetcher {
    /// A client that follows no redirects, uses no proxy, repeats nothing, and sends no more than
    /// it is told.
    ///
    /// # Errors
    ///
    /// When TLS cannot be set up.
    pub fn new() -> Result<CardFetcher, CardFetcherError> {
        CardFetcher::with_timeouts(CONNECT_TIMEOUT, TOTAL_TIMEOUT)
    }

    /// The same with other bounds than 3 s for the connection and 5 s for the whole exchange.
    ///
    /// # Errors
    ///
    /// When TLS cannot be set up.
    pub fn with_timeouts(
        connect: Duration,
        total: Duration,
    ) -> Result<CardFetcher, CardFetcherError> {
        // For plain HTTP. Trusting no root at all, rather than the system's, keeps the client
        // independent of what the machine has installed.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| CardFetcherError(error.to_string()))?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let client = plain_mannered(Some(tls), connect, Some(total))
            .build()
            .map_err(|error| CardFetcherError(error.to_string()))?;
        Ok(CardFetcher {
            client,
            key_sets: None,
            connect,
            total,
        })
    }

    /// The same with other authorities for the key sets that a card's signature names than the
    /// machine's.
    pub fn trusting(self, key_sets: ClientConfig) -> CardFetcher {
        CardFetcher {
            key_sets: Some(key_sets),
            ..self
        }
    }

    /// The client for an agent's own TLS. It is made for each fetch, of which there are few.
    fn secured(&self, tls: &CardTls) -> Result<Client, FetchFailureKind> {
        let config = ClientConfig::clone(&tls.backend.config);
        plain_mannered(Some(config), self.connect, Some(self.total))
            .dns_resolver(Arc::new(Whereabouts(tls.host.clone())))
            .https_only(true)
            .build()
            .map_err(|_| FetchFailureKind::Broken)
    }

    /// One request; `Ok(None)` sends on to the next path.
    async fn ask(
        &self,
        target: &CardTarget,
        path: &str,
        known: Option<&Known>,
        request_id: RequestId,
    ) -> Result<Option<FetchOutcome>, FetchFailureKind> {
        let (client, url) = match &target.tls {
            None => {
                let url = format!("http://{}{path}", target.authority);
                (self.client.clone(), url)
            }
            // The name in the URL is the one that the certificate must be for.
            Some(tls) => {
                let name = match tls.backend.server_name.contains(':') {
                    true => format!("[{}]", tls.backend.server_name),
                    false => tls.backend.server_name.to_string(),
                };
                (
                    self.secured(tls)?,
                    format!("https://{name}:{}{path}", tls.port),
                )
            }
        };
        let mut request = client
            .get(url)
            .header(HOST, &*target.authority)
            .header("Portcullis-Purpose", "card")
            .header("Portcullis-Request-Id", request_id.as_str())
            .header(ACCEPT, "application/json")
            .header(ACCEPT_ENCODING, "identity");
        let known = known.filter(|known| *known.path == *path);
        if let Some(known) = known {
            request = request.header(IF_NONE_MATCH, &*known.etag);
        }
        let response = request.send().await.map_err(|error| classify(&error))?;
        match response.status() {
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
        let coding = coding(&response)?;
        let etag = response.headers().get(ETAG);
        let etag = etag.and_then(|etag| etag.to_str().ok()).map(Box::from);
        let body = decoded(coding, read_body(response, MAX_CARD).await?, MAX_CARD)?;
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
        let client = plain_mannered(self.key_sets.clone(), self.connect, Some(self.total))
            .https_only(true)
            .build()
            .map_err(|_| FetchFailureKind::Unreachable)?;
        let fetched = document(&client, url, request_id, MAX_CARD).await;
        fetched.map(|set| set.body).map_err(|none| none.kind())
    }
}

/// Where an agent is, whatever its certificate calls it.
struct Whereabouts(Box<str>);

impl Resolve for Whereabouts {
    fn resolve(&self, _: Name) -> Resolving {
        let host = self.0.clone();
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((&*host, 0)).await?.collect();
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}
