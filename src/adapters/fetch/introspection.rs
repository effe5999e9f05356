//! [`IntrospectionClient`]: questions to introspection endpoints (RV-3), over TLS.
//!
//! No redirect is followed, no proxy used, nothing repeated; time and size are bounded. Token and
//! secret stand in the request alone.

use super::exchange::plain_mannered;
use crate::audit::redact::Secret;
use crate::pipeline::RequestId;
use crate::pipeline::introspection::{
    Endpoint, Introspection, IntrospectionReply, Introspector, Unanswered,
};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use reqwest::{Client, Response};
use rustls::ClientConfig;
use std::sync::Arc;
use std::time::Duration;

/// Largest answer.
const MAX_ANSWER: usize = 64 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// From the connection to the last byte of the body.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(5);
const SIGNED: &str = "application/token-introspection+jwt";

/// How long a connection is kept for the next question: shorter than common servers keep it, so
/// that none is lost to an end that they have just closed.
const IDLE: Duration = Duration::from_secs(4);
/// Most connections that are kept to one endpoint.
const MAX_IDLE: usize = 16;

/// Makes clients, each for one endpoint and sharing its connections with nothing else.
///
/// The address of an endpoint is not judged as that of a key set is (LC-4): no document of an
/// issuer can name it, only the operator, and who has no certificate for the host gets no question.
#[derive(Debug)]
pub struct IntrospectionClient {
    connect: Duration,
    total: Duration,
}

impl Default for IntrospectionClient {
    fn default() -> IntrospectionClient {
        IntrospectionClient::with_timeouts(CONNECT_TIMEOUT, TOTAL_TIMEOUT)
    }
}

impl IntrospectionClient {
    /// With other bounds than 3 s for the connection and 5 s for the whole exchange.
    pub fn with_timeouts(connect: Duration, total: Duration) -> IntrospectionClient {
        IntrospectionClient { connect, total }
    }
}

impl Introspector for IntrospectionClient {
    fn endpoint(&self, settings: &Arc<Introspection>) -> Box<dyn Endpoint> {
        let tls = ClientConfig::clone(&settings.tls);
        let client = plain_mannered(Some(tls), self.connect, Some(self.total))
            .https_only(true)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MAX_IDLE)
            .build();
        Box::new(OneEndpoint {
            client: client.ok(),
            settings: Arc::clone(settings),
        })
    }
}

struct OneEndpoint {
    /// `None` where none could be made: every question then fails.
    client: Option<Client>,
    settings: Arc<Introspection>,
}

#[async_trait]
impl Endpoint for OneEndpoint {
    async fn ask(
        &self,
        token: &str,
        request_id: RequestId,
    ) -> Result<IntrospectionReply, Unanswered> {
        let settings = &self.settings;
        let client = self.client.as_ref().ok_or(Unanswered::Unreachable)?;
        let accept = match settings.signed {
            true => SIGNED,
            false => "application/json",
        };
        let request = client
            .post(&*settings.url)
            .header("Portcullis-Purpose", "introspection")
            .header("Portcullis-Request-Id", request_id.as_str())
            .header(ACCEPT, accept)
            .header(ACCEPT_ENCODING, "identity")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        // A verified token has no character that a form would have to escape.
        let question = format!("token={token}&token_type_hint=access_token");
        let request = match &settings.secret {
            Some(secret) => request
                .header(AUTHORIZATION, basic(&settings.client_id, secret))
                .body(question),
            // Our certificate says who we are, and the form which client that is (RFC 8705
            // section 2).
            None => {
                let client_id = form_encoded(&settings.client_id);
                request.body(format!("{question}&client_id={client_id}"))
            }
        };
        let response = request.send().await.map_err(|error| classify(&error))?;
        if response.status() != StatusCode::OK {
            return Err(Unanswered::Status(response.status().as_u16()));
        }
        let media = response.headers().get(CONTENT_TYPE);
        let media = media.map_or(&b""[..], |value| value.as_bytes());
        let end = media.iter().position(|b| *b == b';').unwrap_or(media.len());
        let bare = media.get(..end).unwrap_or_default().trim_ascii();
        let signed = bare.eq_ignore_ascii_case(SIGNED.as_bytes());
        if !signed && !bare.eq_ignore_ascii_case(b"application/json")
            || response.headers().contains_key(CONTENT_ENCODING)
        {
            return Err(Unanswered::MediaType);
        }
        let body = read(response).await?.freeze();
        Ok(IntrospectionReply { signed, body })
    }
}

/// Both parts are form-encoded first (RFC 6749 section 2.3.1).
fn basic(client_id: &str, secret: &Secret<Box<str>>) -> HeaderValue {
    let pair = format!(
        "{}:{}",
        form_encoded(client_id),
        form_encoded(secret.reveal())
    );
    let text = format!("Basic {}", STANDARD.encode(pair));
    let mut value = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

fn form_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push('+'),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

async fn read(mut response: Response) -> Result<BytesMut, Unanswered> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| classify(&error))? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(Unanswered::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn classify(error: &reqwest::Error) -> Unanswered {
    if error.is_timeout() {
        Unanswered::TimedOut
    } else if error.is_connect() {
        Unanswered::Unreachable
    } else {
        Unanswered::Broken
    }
}
