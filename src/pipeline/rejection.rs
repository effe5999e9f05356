//! [`Rejection`]: what a caller gets instead of the agent's answer, and the private reason beside it.

use crate::a2a::{Answer, Dialect, Fault, render, render_with_status};
use crate::identity::dpop::ALGS;
use crate::identity::issuer::Grant;
use crate::identity::resource::Resource;

/// Our refusal of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// What the caller is told.
    pub fault: Fault,
    /// Why, for journal and metrics: a code of a closed, private set.
    pub code: &'static str,
    /// The dialect to answer in; `None` gives the constant document that every caller can read.
    pub dialect: Option<Dialect>,
    /// The JSON-RPC id to echo, as its bytes stood.
    pub rpc_id: Option<Box<str>>,
    /// The challenge of a 401, 400 or 403 about credentials.
    pub challenge: Challenge,
    /// `Retry-After` in seconds.
    pub retry_after: Option<u32>,
    /// `Allow`, with a 405: the methods that the path has.
    pub allow: Option<&'static str>,
    /// A status that takes the place of the fault's own in JSON-RPC (`deny_status`).
    pub status: Option<u16>,
    /// For a token: the numbered rule that refused it (LG-3).
    pub token_rule: Option<&'static str>,
    /// With a 401: whether DPoP is offered beside `Bearer` (RFC 9449 section 7.1).
    pub offers_dpop: bool,
    /// `DPoP-Nonce`: what the next proof must repeat (RFC 9449 section 9).
    pub dpop_nonce: Option<Box<str>>,
}

/// `WWW-Authenticate` (RFC 6750 section 3; ER-1 to ER-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenge {
    /// No challenge.
    None,
    /// No credential was given: no error code.
    Bearer,
    /// The request is malformed.
    InvalidRequest,
    /// The token is not accepted.
    InvalidToken,
    /// The proof of possession is not accepted (RFC 9449 section 7.1).
    InvalidProof,
    /// It must have the nonce that comes with this (RFC 9449 section 9).
    UseNonce,
    /// The token lacks the grant; this is the one that the surface needs.
    InsufficientScope(Grant),
}

/// What the configuration adds to a challenge.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guidance<'a> {
    /// The resource that was asked for, if it has metadata (RFC 9728 section 5.1).
    pub resource: Option<&'a Resource>,
    /// The scope that would have given the grant, where the caller's issuer has one.
    pub scope: Option<&'a str>,
}

impl Challenge {
    /// The header's value, made of constants and configuration: nothing of the request is in it.
    pub fn value(self, guidance: Guidance<'_>) -> Option<String> {
        let (error, scope) = match self {
            Challenge::None => return None,
            Challenge::Bearer => (None, None),
            Challenge::InvalidRequest => (Some("invalid_request"), None),
            Challenge::InvalidToken => (Some("invalid_token"), None),
            Challenge::InvalidProof => return Some(dpop_error("invalid_dpop_proof")),
            Challenge::UseNonce => return Some(dpop_error("use_dpop_nonce")),
            Challenge::InsufficientScope(_) => (Some("insufficient_scope"), guidance.scope),
        };
        let metadata = guidance.resource.map(|resource| &*resource.metadata_url);
        let mut value = String::from(r#"Bearer realm="portcullis""#);
        for (name, text) in [
            ("error", error),
            ("scope", scope),
            ("resource_metadata", metadata),
        ] {
            // What is quoted has neither quotes nor backslashes: both are kept out of it.
            if let Some(text) = text {
                value.extend([", ", name, "=\"", text, "\""]);
            }
        }
        Some(value)
    }
}

fn dpop_error(error: &str) -> String {
    format!(r#"DPoP error="{error}", algs="{ALGS}""#)
}

impl Rejection {
    /// The second challenge: the other scheme under which a token may come.
    pub fn offer(&self) -> Option<String> {
        let first = matches!(self.challenge, Challenge::Bearer | Challenge::InvalidToken);
        (self.offers_dpop && first).then(|| format!(r#"DPoP algs="{ALGS}""#))
    }

    /// What the caller gets. `fallback` is the dialect of whoever reads nothing else, where the
    /// refusal has none of its own.
    pub fn answer(&self, fallback: Option<Dialect>) -> Answer {
        let dialect = self.dialect.or(fallback);
        let rpc_id = self.rpc_id.as_deref();
        match self.status {
            Some(status) => render_with_status(self.fault, dialect, rpc_id, status),
            None => render(self.fault, dialect, rpc_id),
        }
    }

    /// A refusal before any dialect is known.
    pub fn plain(fault: Fault, code: &'static str) -> Rejection {
        Rejection {
            fault,
            code,
            dialect: None,
            rpc_id: None,
            challenge: Challenge::None,
            retry_after: None,
            allow: None,
            status: None,
            token_rule: None,
            offers_dpop: false,
            dpop_nonce: None,
        }
    }

    /// No usable credential (TR-4).
    pub fn unauthenticated(code: &'static str) -> Rejection {
        Rejection {
            challenge: Challenge::Bearer,
            ..Rejection::plain(Fault::Unauthenticated, code)
        }
    }

    /// We cannot serve now; the caller may try again.
    pub fn unavailable(code: &'static str, retry_after: u32) -> Rejection {
        Rejection {
            retry_after: Some(retry_after),
            ..Rejection::plain(Fault::Unavailable, code)
        }
    }

    /// Answers in the call's own dialect, echoing its id.
    ///
    /// A refusal of the credential stays the same bytes wherever it is found out (ER-1).
    pub fn in_dialect(mut self, dialect: Dialect, rpc_id: Option<&str>) -> Rejection {
        if self.challenge != Challenge::None {
            return self;
        }
        self.dialect = Some(dialect);
        self.rpc_id = rpc_id.map(Box::from);
        self
    }
}
