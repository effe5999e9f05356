//! The manners that all our fetches have in common.
//!
//! No redirect is followed, no proxy used, nothing repeated, no more sent than is said here; a
//! body is bounded as it came and once more after it was unpacked.

use crate::pipeline::RequestId;
use crate::pipeline::cards::FetchFailureKind;
use bytes::{Bytes, BytesMut};
use flate2::read::GzDecoder;
use http::header::{ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING};
use http::{HeaderMap, StatusCode};
use reqwest::{Client, ClientBuilder, Response, redirect, retry};
use rustls::ClientConfig;
use std::io::Read;
use std::time::Duration;

/// A client that does nothing by itself. Without `tls` it trusts the machine's authorities; without
/// `total` each request says how long it may take.
pub fn plain_mannered(
    tls: Option<ClientConfig>,
    connect: Duration,
    total: Option<Duration>,
) -> ClientBuilder {
    let builder = match tls {
        Some(tls) => Client::builder().tls_backend_preconfigured(tls),
        None => Client::builder(),
    };
    let builder = match total {
        Some(total) => builder.timeout(total),
        None => builder,
    };
    builder
        .http1_only()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .pool_max_idle_per_host(0)
        .connect_timeout(connect)
}

/// A document that came with 200.
pub(super) struct Document {
    pub(super) body: Bytes,
    /// What `Cache-Control` says, if it gives an age.
    pub(super) max_age: Option<Duration>,
}

/// Why no document came; the client's own error is kept for those who look into it.
pub(super) enum NoDocument {
    Failed(FetchFailureKind),
    Unsent(reqwest::Error),
}

impl From<FetchFailureKind> for NoDocument {
    fn from(kind: FetchFailureKind) -> NoDocument {
        NoDocument::Failed(kind)
    }
}

impl NoDocument {
    /// The plain kind.
    pub(super) fn kind(&self) -> FetchFailureKind {
        match self {
            NoDocument::Failed(kind) => kind.clone(),
            NoDocument::Unsent(error) => classify(error),
        }
    }
}

/// Asks once for a JSON document of at most `bound` bytes, for the sake of keys.
pub(super) async fn document(
    client: &Client,
    url: &str,
    request_id: RequestId,
    bound: usize,
) -> Result<Document, NoDocument> {
    let request = client
        .get(url)
        .header("Portcullis-Purpose", "keys")
        .header("Portcullis-Request-Id", request_id.as_str())
        .header(ACCEPT, "application/json")
        .header(ACCEPT_ENCODING, "identity");
    let response = request.send().await.map_err(NoDocument::Unsent)?;
    match response.status() {
        StatusCode::OK => {}
        status if status.is_redirection() => {
            return Err(FetchFailureKind::Redirected(status.as_u16()).into());
        }
        status => return Err(FetchFailureKind::Status(status.as_u16()).into()),
    }
    let max_age = max_age(&response);
    let coding = coding(response.headers())?;
    let body = decoded(coding, read_body(response, bound).await?, bound)?;
    Ok(Document { body, max_age })
}

/// `max-age` in seconds, where the reply gives just one and does not forbid to keep it.
fn max_age(response: &Response) -> Option<Duration> {
    let mut age = None;
    for field in response.headers().get_all(CACHE_CONTROL) {
        for directive in field.to_str().ok()?.split(',') {
            let (name, value) = match directive.trim().split_once('=') {
                Some((name, value)) => (name, value.trim_matches('"')),
                None => (directive.trim(), ""),
            };
            if name.eq_ignore_ascii_case("no-store") || name.eq_ignore_ascii_case("no-cache") {
                return None;
            }
            if name.eq_ignore_ascii_case("max-age") {
                let seconds = value.parse().ok().map(Duration::from_secs)?;
                if age.replace(seconds).is_some() {
                    return None;
                }
            }
        }
    }
    age
}

/// How a body is encoded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Coding {
    Identity,
    Gzip,
}

/// Some servers compress whatever is asked for (FC-15). More than one coding, or another one, is
/// refused.
pub(super) fn coding(headers: &HeaderMap) -> Result<Coding, FetchFailureKind> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let coding = match codings.next().map(|coding| coding.as_bytes().trim_ascii()) {
        None => Coding::Identity,
        Some(name) if name.eq_ignore_ascii_case(b"identity") => Coding::Identity,
        Some(name) if name.eq_ignore_ascii_case(b"gzip") => Coding::Gzip,
        Some(_) => return Err(FetchFailureKind::Encoded),
    };
    match codings.next() {
        None => Ok(coding),
        Some(_) => Err(FetchFailureKind::Encoded),
    }
}

/// The body itself, with the same bound as one that came plain.
pub(super) fn decoded(
    coding: Coding,
    body: Bytes,
    bound: usize,
) -> Result<Bytes, FetchFailureKind> {
    match coding {
        Coding::Identity => Ok(body),
        Coding::Gzip => {
            let mut plain = Vec::new();
            let mut reader = GzDecoder::new(&*body).take(bound as u64 + 1);
            reader
                .read_to_end(&mut plain)
                .map_err(|_| FetchFailureKind::Broken)?;
            match plain.len() > bound {
                true => Err(FetchFailureKind::TooLarge),
                false => Ok(plain.into()),
            }
        }
    }
}

pub(super) fn classify(error: &reqwest::Error) -> FetchFailureKind {
    if error.is_timeout() {
        FetchFailureKind::TimedOut
    } else if error.is_connect() {
        FetchFailureKind::Unreachable
    } else {
        FetchFailureKind::Broken
    }
}

pub(super) async fn read_body(
    mut response: Response,
    bound: usize,
) -> Result<Bytes, FetchFailureKind> {
    let announced = response.content_length().unwrap_or(0);
    if usize::try_from(announced).map_or(true, |length| length > bound) {
        return Err(FetchFailureKind::TooLarge);
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| classify(&error))? {
        if body.len() + chunk.len() > bound {
            return Err(FetchFailureKind::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}
