//! The admin API: JSON under [`PREFIX`], for operators with the full grant or on the Unix socket.
//!
//! A token that is presented is always judged, on the socket too: a bad one never counts as none
//! (I-3). What strangers get does not tell which paths there are.

use super::health::AdminReply;
use super::revoke;
use crate::a2a::strict_json::{Value, parse_value};
use crate::adapters::revocation_file::RevocationFile;
use crate::audit::record::Trigger;
use crate::identity::issuer::Grant;
use crate::identity::transport::presented;
use crate::identity::{Answer, KeySource, Principal};
use crate::pipeline::issuer_keys::Refreshed;
use crate::pipeline::rejection::Guidance;
use crate::pipeline::{Challenge, Gate, Presentation, Rejection, SeenAs, authenticate};
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::{Value as Json, json};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Where the API begins.
pub const PREFIX: &str = "/admin/v1/";
/// Largest body of a request.
pub const MAX_BODY: usize = 64 * 1024;
/// Deepest JSON of a request.
const DEPTH: usize = 4;

/// How a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// By the Unix socket, which only our own user can open.
    Socket,
    /// By the admin address, on loopback.
    Loopback,
    /// By the admin address, from other machines and in plain text: tokens are not taken there
    /// (TR-9).
    Network,
}

/// A request of an operator.
pub struct Ask<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The path, as it came.
    pub path: &'a str,
    /// The query, without its question mark.
    pub query: Option<&'a str>,
    /// The header fields.
    pub headers: &'a HeaderMap,
    /// The body.
    pub body: &'a Bytes,
    /// How it came in.
    pub door: Door,
    /// The address of the other end.
    pub peer: IpAddr,
}

/// What the API works on.
pub struct Api {
    pub(super) gate: Arc<Gate>,
    /// Where revocations are kept, if they are.
    pub(super) kept: Option<Arc<RevocationFile>>,
    /// Held while the list of revocations is changed and written.
    pub(super) writing: Mutex<()>,
}

/// Who asks, for log and journal.
pub(super) struct Operator(pub(super) String);

impl Api {
    /// An API for a gate; without `kept` nothing can be revoked by it.
    pub fn new(gate: Arc<Gate>, kept: Option<RevocationFile>) -> Api {
        Api {
            gate,
            kept: kept.map(Arc::new),
            writing: Mutex::new(()),
        }
    }

    /// Answers a request whose path begins with [`PREFIX`].
    pub async fn respond(&self, ask: &Ask<'_>) -> AdminReply {
        let operator = match self.admit(ask).await {
            Ok(operator) => operator,
            Err(refused) => return *refused,
        };
        let rest = ask.path.strip_prefix(PREFIX).unwrap_or_default();
        let parts: Vec<&str> = rest.split('/').collect();
        match (parts.as_slice(), ask.method) {
            (["reload"], "POST") => self.reload(&operator),
            (["reload"], _) => wrong_method("POST"),
            (["issuers"], "GET") => self.issuers(),
            (["issuers"], _) => wrong_method("GET"),
            (["issuers", name, "refresh"], "POST") => self.refresh(&operator, name).await,
            (["issuers", _, "refresh"], _) => wrong_method("POST"),
            (["revocations"], "GET") => revoke::list(self, ask.query),
            (["revocations"], "POST") => match json_body(ask) {
                Ok(order) => revoke::add(self, &operator, &order).await,
                Err(refused) => *refused,
            },
            (["revocations"], _) => wrong_method("GET, POST"),
            (["revocations", id], "DELETE") => revoke::remove(self, &operator, id).await,
            (["revocations", _], _) => wrong_method("DELETE"),
            _ => error(404, "not_found", "there is no such path in the admin API"),
        }
    }

    async fn admit(&self, ask: &Ask<'_>) -> Result<Operator, Box<AdminReply>> {
        if ask.door == Door::Socket
            && let Err(fault) = presented(ask.headers, ask.query)
            && fault.answer == Answer::NoCredential
            && !ask.headers.contains_key(http::header::AUTHORIZATION)
        {
            return Ok(Operator("the socket".to_owned()));
        }
        if ask.door == Door::Network {
            return Err(Box::new(error(
                403,
                "plaintext",
                "the admin address is no loopback address and has no TLS, so it takes no token; use `admin.socket`",
            )));
        }
        let live = self.gate.live();
        // As configured, whatever `Host` says.
        let url = format!("http://{}{}", live.snapshot.admin.bind, ask.path);
        let presentation = Presentation {
            headers: ask.headers,
            query: ask.query,
            peer: ask.peer,
            certificate: None,
            method: ask.method,
            seen_as: SeenAs::Url(&url),
        };
        let refuse = |rejection: &Rejection| Box::new(refused(rejection));
        let verified = authenticate(&self.gate, &live, &presentation)
            .await
            .map_err(|rejection| refuse(&rejection))?;
        let principal: &Principal = &verified.principal;
        if principal.grant != Some(Grant::Full) {
            let fault = crate::a2a::Fault::InsufficientScope;
            return Err(refuse(&Rejection {
                challenge: Challenge::InsufficientScope(Grant::Full),
                ..Rejection::plain(fault, "insufficient_scope")
            }));
        }
        Ok(Operator(format!(
            "{}/{}",
            principal.issuer, principal.subject
        )))
    }

    fn reload(&self, operator: &Operator) -> AdminReply {
        self.done(operator, "reload", "");
        self.gate.request_reload(Trigger::Admin);
        let generation = self.gate.live().snapshot.generation;
        let accepted = json!({ "accepted": true, "generation": generation });
        answer(202, &accepted)
    }

    fn issuers(&self) -> AdminReply {
        let live = self.gate.live();
        let file = self.gate.files_age();
        let issuers: Vec<Json> = live
            .snapshot
            .issuers
            .iter()
            .zip(&live.issuer_keys)
            .map(|(issuer, slot)| {
                let age = if slot.is_remote() {
                    slot.age()
                } else {
                    Some(file)
                };
                json!({
                    "name": issuer.name,
                    "issuer": issuer.issuer,
                    "development": issuer.development,
                    "fetched": slot.is_remote(),
                    "usable_keys": slot.current().map_or(0, |keys| keys.keys().len()),
                    "keys_age_seconds": age.map(|age| age.as_secs()),
                    "trouble": slot.notice(),
                })
            })
            .collect();
        answer(200, &json!({ "issuers": issuers }))
    }

    /// LC-11: what the issuer has published by now counts when this returns.
    async fn refresh(&self, operator: &Operator, issuer: &str) -> AdminReply {
        match self.gate.issuer_keys.refresh(issuer).await {
            Refreshed::Done => {
                self.done(operator, "refresh", issuer);
                answer(200, &json!({ "refreshed": issuer }))
            }
            Refreshed::Failed(why) => error(
                502,
                "not_fetched",
                &format!("the keys could not be fetched: {why}; those that were there stay"),
            ),
            Refreshed::File => error(
                409,
                "in_a_file",
                "the keys are in a file, which is looked at every second",
            ),
            Refreshed::NoIssuer => error(404, "not_found", "no issuer entry has this name"),
        }
    }

    /// Logs and records what an operator did.
    pub(super) fn done(&self, operator: &Operator, action: &str, what: &str) {
        tracing::info!(operator = ?operator.0, action, what, "admin action");
        self.gate
            .record_admin(&format!("{action} {what} by {}", operator.0));
    }
}

/// The strict JSON of a request's body.
fn json_body(ask: &Ask<'_>) -> Result<Value, Box<AdminReply>> {
    let media = ask.headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
    let bare = media.map(|media| {
        let end = media.iter().position(|b| *b == b';').unwrap_or(media.len());
        media.get(..end).unwrap_or_default().trim_ascii()
    });
    if !bare.is_some_and(|bare| bare.eq_ignore_ascii_case(b"application/json")) {
        return Err(Box::new(error(
            415,
            "media_type",
            "send the body as `Content-Type: application/json`",
        )));
    }
    parse_value(ask.body, DEPTH).map_err(|_| {
        Box::new(error(
            400,
            "malformed",
            "the body is not strict JSON: look for a member that stands twice or bytes after the object",
        ))
    })
}

/// A refusal of the token, in the words of all our refusals.
fn refused(rejection: &Rejection) -> AdminReply {
    let entry = rejection.fault.entry();
    AdminReply {
        challenge: rejection.challenge.value(Guidance::default()),
        retry_after: rejection.retry_after,
        ..error(entry.rest_status, entry.public_reason, entry.message)
    }
}

fn wrong_method(allow: &'static str) -> AdminReply {
    AdminReply {
        allow: Some(allow),
        ..error(405, "method", "the path does not take this method")
    }
}

/// A refusal.
pub(super) fn error(status: u16, code: &str, message: &str) -> AdminReply {
    answer(
        status,
        &json!({ "error": { "code": code, "message": message } }),
    )
}

/// A whole answer.
pub(super) fn answer(status: u16, body: &Json) -> AdminReply {
    AdminReply {
        status,
        content_type: "application/json",
        allow: None,
        challenge: None,
        retry_after: None,
        body: format!("{body}\n"),
    }
}
