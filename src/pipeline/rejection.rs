//! [`Rejection`]: what a caller gets instead of the agent's answer, and the private reason beside it.

use crate::a2a::{Dialect, Fault};

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
    /// The token lacks the grant; the scope is named by the surface.
    InsufficientScope(ScopeHint),
}

/// Which grant would have been needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeHint {
    /// The agent surface.
    Agent,
    /// The backend and admin surfaces.
    Full,
}

impl Challenge {
    /// The header's value; constant, nothing of the request is in it.
    pub fn value(self) -> Option<&'static str> {
        match self {
            Challenge::None => None,
            Challenge::Bearer => Some(r#"Bearer realm="portcullis""#),
            Challenge::InvalidRequest => {
                Some(r#"Bearer realm="portcullis", error="invalid_request""#)
            }
            Challenge::InvalidToken => Some(r#"Bearer realm="portcullis", error="invalid_token""#),
            Challenge::InsufficientScope(ScopeHint::Agent) => {
                Some(r#"Bearer realm="portcullis", error="insufficient_scope", scope="agent""#)
            }
            Challenge::InsufficientScope(ScopeHint::Full) => {
                Some(r#"Bearer realm="portcullis", error="insufficient_scope", scope="full""#)
            }
        }
    }
}

impl Rejection {
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
    pub fn in_dialect(mut self, dialect: Dialect, rpc_id: Option<&str>) -> Rejection {
        self.dialect = Some(dialect);
        self.rpc_id = rpc_id.map(Box::from);
        self
    }
}
