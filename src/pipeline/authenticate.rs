//! [`authenticate`]: who sends this request (`token-acceptance` sections 1 to 10).

use super::gate::{Gate, Live};
use super::introspection::introspected;
use super::ports::Owner;
use super::rejection::{Challenge, Rejection};
use super::token_cache::TokenKey;
use crate::a2a::Fault;
use crate::audit::redact::Fingerprint;
use crate::identity::fault;
use crate::identity::transport::{Presented, presented};
use crate::identity::{Answer, Principal, Refused, TokenFault, accept, still_good};
use crate::policy::{Asked, AskedSkill, Memo, Question};
use http::HeaderMap;
use std::net::IpAddr;
use std::sync::Arc;

/// `Retry-After` while an issuer's keys are not there, in seconds.
const RETRY_AFTER: u32 = 5;
/// Stands for the issuer where none was chosen; metrics never show text of a token.
const NO_ISSUER: &str = "other";

/// A caller whose token was accepted.
#[derive(Debug, PartialEq)]
pub struct Verified {
    /// Who.
    pub principal: Principal,
    /// Which token, for records (LG-2).
    pub fingerprint: Fingerprint,
    /// Whom its tasks and contexts belong to.
    pub owner: Owner,
    /// What rules were found to say about the token, under the generation that it is kept with.
    pub memo: Arc<Memo>,
}

impl Verified {
    /// What policy is asked for a call of this caller.
    pub fn asks<'a>(&'a self, agent: usize, asked: Asked, skill: AskedSkill<'a>) -> Question<'a> {
        Question {
            agent,
            asked,
            skill,
            principal: &self.principal,
            memo: Some(&self.memo),
        }
    }
}

/// A request, as far as it says who sends it.
pub struct Presentation<'a> {
    /// The header fields.
    pub headers: &'a HeaderMap,
    /// The query, without its question mark.
    pub query: Option<&'a str>,
    /// The address of the other end of the connection.
    pub peer: IpAddr,
}

/// Judges the credential of a request. Waits, and at most a second, for a token that lacks nothing
/// but a key which its issuer may have published since; and where the issuer itself is asked.
///
/// # Errors
/// The reply that the caller gets, with the private reason in it; already counted.
pub async fn authenticate(
    gate: &Gate,
    live: &Live,
    presentation: &Presentation<'_>,
) -> Result<Arc<Verified>, Rejection> {
    let Presentation {
        headers,
        query,
        peer,
    } = *presentation;
    let refuse = |issuer: &str, fault: TokenFault| {
        gate.metrics.auth_failure(issuer, fault.code);
        rejection(fault)
    };
    let token = match presented(headers, query) {
        Ok(Presented::Bearer(token)) => token,
        Ok(Presented::Dpop(_)) => return Err(refuse(NO_ISSUER, fault::DPOP_SCHEME)),
        Err(fault) => return Err(refuse(NO_ISSUER, fault)),
    };
    let uptime = gate.clock.monotonic();
    let key = TokenKey::of(token);
    if let Some(verified) = live.tokens.get(&key, uptime) {
        let good = still_good(&live.issuers, &verified.principal, seconds(gate))
            .and_then(|()| gate.revocations.judge(&verified.principal, seconds(gate)));
        let good = match good {
            Ok(()) => introspected(gate, live, token, key, &verified.principal).await,
            refused => refused,
        };
        return match good {
            Ok(()) => Ok(verified),
            Err(fault) => {
                if fault.answer != Answer::Unavailable {
                    live.tokens.remove(&key);
                }
                Err(refuse(&verified.principal.issuer, fault))
            }
        };
    }
    if let Some(seconds) = gate.failures.spent(peer, uptime) {
        gate.metrics.auth_failure(NO_ISSUER, "too_many_failures");
        let limited = Rejection::plain(Fault::RateLimited, "too_many_failures");
        return Err(Rejection {
            retry_after: Some(seconds),
            ..limited
        });
    }
    let principal = accept_patiently(gate, live, token)
        .await
        .map_err(|refused| {
            let issuer = refused.issuer.as_deref().unwrap_or(NO_ISSUER);
            let rejection = refuse(issuer, refused.fault);
            if refused.fault.answer != Answer::Unavailable {
                gate.failures.note(peer, uptime);
            }
            let seeks = refused.seeks.filter(|seeks| seeks.kid.is_none());
            let slot = seeks.and_then(|seeks| live.issuer_keys.get(seeks.issuer));
            match slot {
                Some(slot) => Rejection {
                    retry_after: Some(slot.retry_after()),
                    ..rejection
                },
                None => rejection,
            }
        })?;
    let good = match gate.revocations.judge(&principal, seconds(gate)) {
        Ok(()) => introspected(gate, live, token, key, &principal).await,
        refused => refused,
    };
    if let Err(fault) = good {
        if fault.answer != Answer::Unavailable {
            gate.failures.note(peer, uptime);
        }
        return Err(refuse(&principal.issuer, fault));
    }
    let signing_input = token.rsplit_once('.').map_or(token, |(input, _)| input);
    let verified = Arc::new(Verified {
        fingerprint: Fingerprint::of(&gate.fingerprints, signing_input.as_bytes()),
        owner: owner(&principal),
        memo: Arc::default(),
        principal,
    });
    live.tokens.insert(key, Arc::clone(&verified), uptime);
    Ok(verified)
}

/// Judges a token; one that lacks nothing but a key may wait for newer ones (LC-7 to LC-9).
async fn accept_patiently(gate: &Gate, live: &Live, token: &str) -> Result<Principal, Refused> {
    let refused = match accept(&live.issuers, token, seconds(gate)) {
        Ok(principal) => return Ok(principal),
        Err(refused) => refused,
    };
    let Some(seeks) = &refused.seeks else {
        return Err(refused);
    };
    match live.issuer_keys.get(seeks.issuer) {
        Some(slot) if gate.issuer_keys.seek(slot, seeks).await => {
            accept(&live.issuers, token, seconds(gate))
        }
        Some(_) | None => Err(refused),
    }
}

/// The wall clock as tokens write it.
fn seconds(gate: &Gate) -> i64 {
    i64::try_from(gate.clock.now() / 1000).unwrap_or(i64::MAX)
}

/// Issuer entry and subject (IS-5, IS-6), and the client when delegated: what one agent does for a
/// person is not what another does. Without a client it is the actor. None of them holds the
/// separator: names are plain, and the rest has no control character (FM-7).
fn owner(principal: &Principal) -> Owner {
    let mut key = format!("{}\u{1f}{}", principal.issuer, principal.subject);
    if let Some(actor) = principal.actors.first() {
        let (by, name) = match &principal.client {
            Some(client) => ("client", client),
            None => ("actor", &actor.subject),
        };
        for part in ["\u{1f}", by, "\u{1f}", name] {
            key.push_str(part);
        }
    }
    Owner(key.into())
}

/// The reply to a refused token, before any dialect is known.
pub(super) fn rejection(fault: TokenFault) -> Rejection {
    let (public, challenge) = match fault.answer {
        Answer::NoCredential => (Fault::Unauthenticated, Challenge::Bearer),
        Answer::InvalidRequest => (Fault::InvalidCredentials, Challenge::InvalidRequest),
        Answer::InvalidToken => (Fault::Unauthenticated, Challenge::InvalidToken),
        Answer::Unavailable => (Fault::Unavailable, Challenge::None),
    };
    Rejection {
        challenge,
        retry_after: (fault.answer == Answer::Unavailable).then_some(RETRY_AFTER),
        token_rule: Some(fault.rule),
        ..Rejection::plain(public, fault.code)
    }
}
