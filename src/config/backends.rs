//! `agents[].backend`: where an agent really is, and how we connect to it.

use super::address::{HttpUrl, parse_url};
use super::agents::{WELL_KNOWN, sent_path};
use super::capture::Capture;
use super::document;
use super::snapshot::{Backend, BackendHttp};
use super::tls::Trust;
use crate::source::{Mapping, Value, codes};
use std::cell::OnceCell;

/// What all origins of one agent share.
pub(super) struct Transport<'n, 'd, 'c> {
    fields: Option<Mapping<'n, 'd>>,
    capture: &'c Capture,
    http: Option<BackendHttp>,
    /// Read when the first origin needs it.
    trust: OnceCell<Option<Trust>>,
}

impl<'n, 'd, 'c> Transport<'n, 'd, 'c> {
    /// Of `backend`.
    pub(super) fn new(value: Option<&Value<'n, 'd>>, capture: &'c Capture) -> Self {
        let fields = value.and_then(|v| v.fields(&document::BACKEND));
        let http = fields.as_ref().and_then(|f| f.get("http"));
        let http = http.and_then(|v| v.word(&[("h1", BackendHttp::H1), ("h2", BackendHttp::H2)]));
        Transport {
            fields,
            capture,
            http,
            trust: OnceCell::new(),
        }
    }

    /// The fields of `backend`.
    pub(super) fn fields(&self) -> Option<&Mapping<'n, 'd>> {
        self.fields.as_ref()
    }

    /// The origin of a URL, without paths. `place` is where the URL stands.
    pub(super) fn origin(&self, place: &Value<'_, '_>, url: &HttpUrl<'_>) -> Backend {
        let host: Box<str> = url.host.to_ascii_lowercase().into();
        let trust = || {
            let tls = self.fields.as_ref().and_then(|f| f.get("tls"));
            Trust::read(tls.as_ref(), place, self.capture)
        };
        let trust = match url.https {
            true => self.trust.get_or_init(trust).as_ref(),
            false => None,
        };
        Backend {
            port: url.port,
            authority: url.authority().into(),
            http: self.http,
            tls: trust.map(|trust| trust.towards(&host)),
            host,
            ..Backend::default()
        }
    }

    /// Reports settings of TLS that no origin has a use for.
    pub(super) fn unused(&self) {
        let tls = self.fields.as_ref().and_then(|f| f.get("tls"));
        if let Some(tls) = tls
            && self.trust.get().is_none()
        {
            tls.error(
                codes::TRANSPORT,
                "the agent has no `https://` origin, so this would be ignored",
                "write `https://` in `url`, or remove `tls`",
            );
        }
    }
}

impl Transport<'_, '_, '_> {
    /// The backend, and the path of its URL as written.
    pub(super) fn backend(&self) -> Option<(Backend, Box<str>)> {
        let fields = self.fields.as_ref()?;
        let card = fields.get("card").and_then(|v| sent_path(&v));
        let place = fields.get("url")?;
        let text = place.text()?;
        let url = match parse_url(text) {
            Ok(url) => url,
            Err(fault) => {
                place.error(
                    codes::BAD_URL,
                    format!("not a usable URL: {fault}"),
                    "write scheme, host, port and base path: `http://127.0.0.1:9999`",
                );
                return None;
            }
        };
        let base_path: Box<str> = url.path.strip_suffix('/').unwrap_or(url.path).into();
        if base_path
            .split('/')
            .skip(1)
            .any(|s| matches!(s, "" | "." | ".."))
        {
            place.error(
                codes::BAD_URL,
                "the path of the URL has an empty segment, `.` or `..`",
                "write the path as the agent expects it, without them",
            );
        }
        let card_paths = match card {
            Some(card) => vec![card],
            None => default_card_paths(&base_path),
        };
        let path = url.path.into();
        let backend = Backend {
            base_path,
            card_paths,
            ..self.origin(&place, &url)
        };
        Some((backend, path))
    }
}

/// Below the base path first, since one origin may hold many agents; then at the origin, where
/// most agents with a base path have it (FC-06).
fn default_card_paths(base_path: &str) -> Vec<Box<str>> {
    let mut paths: Vec<Box<str>> = Vec::new();
    for base in [base_path, ""] {
        for name in WELL_KNOWN {
            let path: Box<str> = format!("{base}{name}").into();
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths
}
