//! What came of asking an agent for its card, and what that means for us.

use crate::a2a::card::rewrite::sha256;
use crate::a2a::card::{Attested, CardFault};
use crate::config::snapshot::{BackendHttp, BackendTls, Speaks};
use crate::pipeline::RequestId;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Where an agent's card is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardTarget {
    /// `host:port` of the backend, as it goes into `Host` or `:authority`.
    pub authority: Box<str>,
    /// Host name or IP literal, without brackets, to connect to.
    pub host: Box<str>,
    /// TCP port.
    pub port: u16,
    /// Absolute paths, in order; the next is tried on 404 and 405 only.
    pub paths: Vec<Box<str>>,
    /// How the connection is secured, as for calls; `None` is plaintext.
    pub tls: Option<Arc<BackendTls>>,
    /// The HTTP version, as for calls.
    pub speaks: Speaks,
}

/// What a conditional request needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The path that the validator belongs to.
    pub path: Box<str>,
    /// The agent's own entity tag.
    pub etag: Box<str>,
}

/// What came of asking an agent for its card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchOutcome {
    /// A reply with a body, not yet read as a card.
    Fetched {
        /// At most 1 MiB, not encoded.
        body: Bytes,
        /// The agent's own validator, for the next conditional request.
        etag: Option<Box<str>>,
        /// The path that answered.
        path: Box<str>,
    },
    /// 304 to our validator.
    NotModified,
    /// No usable reply.
    Failed(FetchFailure),
}

/// One fetch as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchFacts {
    /// Its id, which the agent was told.
    pub request_id: RequestId,
    /// The path that answered, or that was tried last.
    pub path: Box<str>,
    /// The status of the last answer, if one came.
    pub http_status: Option<u16>,
    /// Body bytes that came whole.
    pub bytes: u64,
    /// SHA-256 of the body, if one came whole.
    pub sha256: Option<[u8; 32]>,
    /// How long it took.
    pub took: Duration,
}

impl FetchOutcome {
    /// What is recorded of it. `known` is what the conditional request was made with.
    pub fn facts(
        &self,
        request_id: RequestId,
        known: Option<&Known>,
        took: Duration,
    ) -> FetchFacts {
        let (path, http_status, bytes) = match self {
            FetchOutcome::Fetched { body, path, .. } => (path.clone(), Some(200), body.len()),
            FetchOutcome::NotModified => (
                known.map(|known| known.path.clone()).unwrap_or_default(),
                Some(304),
                0,
            ),
            FetchOutcome::Failed(failure) => (failure.path.clone(), failure.kind.status(), 0),
        };
        FetchFacts {
            request_id,
            path,
            http_status,
            bytes: bytes as u64,
            sha256: match self {
                FetchOutcome::Fetched { body, .. } => Some(sha256(body)),
                FetchOutcome::NotModified | FetchOutcome::Failed(_) => None,
            },
            took,
        }
    }
}

/// Why an agent's card could not be fetched. For log and journal only: it names internal paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchFailure {
    /// The path that was tried last.
    pub path: Box<str>,
    /// What happened there.
    pub kind: FetchFailureKind,
}

/// What went wrong with a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchFailureKind {
    /// No connection.
    Unreachable,
    /// Its certificate is not trusted, it refuses ours, or it speaks no TLS.
    Tls,
    /// No whole reply in time.
    TimedOut,
    /// The connection broke or the reply was no HTTP.
    Broken,
    /// The agent speaks another version of HTTP than this one, in which it was asked.
    OtherHttp(BackendHttp),
    /// Asked in this version, on which nobody agreed, the agent closed without a byte: which is
    /// what some servers do that speak another one.
    Closed(BackendHttp),
    /// 404 or 405 on every path.
    NotFound,
    /// Another status than 200.
    Status(u16),
    /// A redirect, which is never followed (FC-09).
    Redirected(u16),
    /// The reply came in an encoding other than gzip, although identity was asked for (FC-15).
    Encoded,
    /// More than 1 MiB.
    TooLarge,
}

impl FetchFailureKind {
    /// The HTTP status that came, if one did.
    pub fn status(&self) -> Option<u16> {
        match self {
            FetchFailureKind::Status(status) | FetchFailureKind::Redirected(status) => {
                Some(*status)
            }
            FetchFailureKind::Encoded | FetchFailureKind::TooLarge => Some(200),
            FetchFailureKind::NotFound => Some(404),
            FetchFailureKind::Unreachable
            | FetchFailureKind::Tls
            | FetchFailureKind::TimedOut
            | FetchFailureKind::Broken
            | FetchFailureKind::OtherHttp(_)
            | FetchFailureKind::Closed(_) => None,
        }
    }

    /// For records and metrics.
    pub fn label(&self) -> &'static str {
        match self {
            FetchFailureKind::Unreachable => "unreachable",
            FetchFailureKind::Tls => "tls",
            FetchFailureKind::TimedOut => "timed_out",
            FetchFailureKind::Broken => "broken",
            FetchFailureKind::OtherHttp(_) => "other_http",
            FetchFailureKind::Closed(_) => "closed",
            FetchFailureKind::NotFound => "not_found",
            FetchFailureKind::Status(_) => "status",
            FetchFailureKind::Redirected(_) => "redirected",
            FetchFailureKind::Encoded => "encoded",
            FetchFailureKind::TooLarge => "too_large",
        }
    }

    /// Whether the agent did answer, with something that is no card (502), as opposed to not
    /// having one now (503).
    fn is_bad_reply(&self) -> bool {
        match self {
            FetchFailureKind::Redirected(_)
            | FetchFailureKind::Encoded
            | FetchFailureKind::TooLarge => true,
            FetchFailureKind::Status(status) => (200..300).contains(status),
            FetchFailureKind::Unreachable
            | FetchFailureKind::Tls
            | FetchFailureKind::TimedOut
            | FetchFailureKind::Broken
            | FetchFailureKind::OtherHttp(_)
            | FetchFailureKind::Closed(_)
            | FetchFailureKind::NotFound => false,
        }
    }
}

/// Why there is no good card, or why a newer one was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardTrouble {
    /// It was not asked for yet.
    NotAsked,
    /// It could not be fetched.
    Fetch(FetchFailure),
    /// It could not be read or rewritten.
    Fault(CardFault),
    /// It has no signature that counts, and one is required.
    Signature(Attested),
}

impl CardTrouble {
    /// For records and metrics.
    pub fn label(&self) -> &'static str {
        match self {
            CardTrouble::NotAsked => "not_asked",
            CardTrouble::Fetch(failure) => failure.kind.label(),
            CardTrouble::Fault(fault) => fault.label(),
            CardTrouble::Signature(attested) => attested.label(),
        }
    }

    pub(super) fn withholds(&self) -> bool {
        match self {
            CardTrouble::NotAsked => false,
            CardTrouble::Fetch(failure) => failure.kind.is_bad_reply(),
            CardTrouble::Fault(_) | CardTrouble::Signature(_) => true,
        }
    }
}

impl fmt::Display for CardTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CardTrouble::NotAsked => f.write_str("the agent's card was not fetched yet"),
            CardTrouble::Fault(fault) => fault.fmt(f),
            CardTrouble::Signature(attested) => write!(
                f,
                "the agent's card has no signature that counts, and `verify` requires one: {}",
                attested.label()
            ),
            CardTrouble::Fetch(FetchFailure { path, kind }) => {
                write!(f, "the agent's card could not be fetched from `{path}`: ")?;
                match kind {
                    FetchFailureKind::Unreachable => f.write_str("no connection"),
                    FetchFailureKind::Tls => f.write_str(
                        "TLS failed: its certificate is not trusted, it refuses ours, or it speaks no TLS; see `backend.tls`",
                    ),
                    FetchFailureKind::TimedOut => f.write_str("no whole reply in time"),
                    FetchFailureKind::Broken => f.write_str("the reply broke off"),
                    FetchFailureKind::OtherHttp(asked) => f.write_str(match asked {
                        BackendHttp::H1 => {
                            "it speaks HTTP/2, and was asked in HTTP/1.1; set `backend.http: h2`"
                        }
                        BackendHttp::H2 => {
                            "it speaks no HTTP/2, in which it was asked; set `backend.http: h1`"
                        }
                    }),
                    FetchFailureKind::Closed(asked) => f.write_str(match asked {
                        BackendHttp::H1 => {
                            "it closed the connection without a reply; if it speaks HTTP/2 only, set `backend.http: h2`"
                        }
                        BackendHttp::H2 => {
                            "it closed the connection without a reply; if it speaks no HTTP/2, set `backend.http: h1`"
                        }
                    }),
                    FetchFailureKind::NotFound => {
                        f.write_str("not found on any path; set `backend.card`")
                    }
                    FetchFailureKind::Status(status) => write!(f, "status {status}"),
                    FetchFailureKind::Redirected(status) => {
                        write!(f, "redirect {status}, not followed; set `backend.card`")
                    }
                    FetchFailureKind::Encoded => {
                        f.write_str("encoded, and not as gzip, although identity was asked for")
                    }
                    FetchFailureKind::TooLarge => f.write_str("larger than 1 MiB"),
                }
            }
        }
    }
}
