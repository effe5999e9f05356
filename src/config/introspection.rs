//! `issuers[].introspection`: how an issuer is asked about its tokens.

use super::address::parse_url;
use super::capture::Capture;
use super::document;
use super::secrets;
use super::snapshot::Introspection;
use super::tls::Trust;
use crate::source::{Value, codes};
use std::sync::Arc;
use std::time::Duration;

/// Longest time for which a positive answer is relied on (RV-3).
const MAX_CACHE: Duration = Duration::from_secs(30);

/// Reads the settings; `None` after a problem.
pub(super) fn read(value: &Value<'_, '_>, capture: &Capture) -> Option<Arc<Introspection>> {
    let fields = value.fields(&document::INTROSPECTION)?;
    let url = fields.get("url").and_then(|v| url(&v));
    let client_id = fields.get("client_id");
    let client_id = client_id.and_then(|v| v.text().map(Box::from));
    let secret_place = fields.get("client_secret");
    let secret = secret_place
        .as_ref()
        .and_then(|v| secrets::read(v, capture));
    let tls_place = fields.get("tls");
    let tls_fields = tls_place
        .as_ref()
        .and_then(|v| v.fields(&document::BACKEND_TLS));
    let own = tls_fields.as_ref().is_some_and(|tls| tls.has("client"));
    if let Some(name) = tls_fields.and_then(|tls| tls.get("server_name")) {
        name.error(
            codes::NOT_ALLOWED,
            "`server_name` is not taken here",
            "the certificate must be for the host of `url`",
        );
    }
    if secret_place.is_some() == own {
        value.error(
            codes::INTROSPECTION,
            "exactly one of `client_secret` and `tls: {client: ...}` shows the issuer who asks",
            "the endpoint must not answer just anybody (RFC 7662 section 2.1)",
        );
    }
    let trust = Trust::read(tls_place.as_ref(), value, capture);
    let signed = fields.get("signed").and_then(|v| v.boolean());
    let cache = fields.get("cache");
    let cache = cache.and_then(|v| v.duration(Duration::ZERO..=MAX_CACHE));
    if secret_place.is_some() && secret.is_none() {
        return None;
    }
    Some(Arc::new(Introspection {
        url: url?,
        client_id: client_id?,
        secret,
        signed: signed.unwrap_or(false),
        cache: cache.unwrap_or(MAX_CACHE),
        tls: trust?.client(),
    }))
}

fn url(value: &Value<'_, '_>) -> Option<Box<str>> {
    let text = value.text()?;
    match parse_url(text) {
        Ok(url) if url.https => Some(text.into()),
        Ok(_) => {
            value.error(
                codes::INTROSPECTION,
                "the endpoint is not asked in plain text",
                "write its `https://` URL: the question holds the token",
            );
            None
        }
        Err(fault) => {
            value.error(
                codes::BAD_URL,
                format!("this URL cannot be used: {fault}"),
                "write the issuer's `introspection_endpoint`",
            );
            None
        }
    }
}
