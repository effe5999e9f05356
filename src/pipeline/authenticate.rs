//! [`authenticate`]: who sends this request (`token-acceptance` sections 1 to 10).

use super::confirm::confirm;
use super::gate::{Gate, Live};
use super::introspection::introspected;
use super::locate::Knock;
use super::ports::Owner;
use super::recorder::HiddenCaller;
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
use std::sync::{Arc, OnceLock};

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
    /// The caller as records show it where they hide who it is, once one was written; under the
    /// generation that it is kept with.
    pub hidden: Arc<OnceLock<HiddenCaller>>,
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
            content: None,
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
    /// SHA-256 of the DER of the client certificate of this very connection.
    pub certificate: Option<[u8; 32]>,
    /// The HTTP method.
    pub method: &'a str,
    /// Where callers see what they ask for.
    pub seen_as: SeenAs<'a>,
}

/// The URI under which callers see what they ask for; its query does not count.
#[derive(Clone, Copy)]
pub enum SeenAs<'a> {
    /// That of a path on a public listener.
    Public(Knock<'a>),
    /// This one.
    Url(&'a str),
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
    let presented = presented(presentation.headers, presentation.query)
        .map_err(|fault| refuse(gate, live, NO_ISSUER, fault))?;
    let (Presented::Bearer(token) | Presented::Dpop(token)) = presented;
    let confirmed =
        |principal: &Principal| confirmed(gate, live, presentation, presented, principal);
    verify(gate, live, presentation.peer, token, confirmed).await
}

/// What a token is bound to. It comes before what may ask others, so that who stole a token causes
/// no question about it.
fn confirmed(
    gate: &Gate,
    live: &Live,
    presentation: &Presentation<'_>,
    presented: Presented<'_>,
    principal: &Principal,
) -> Result<(), Rejection> {
    if principal.confirmation.key.is_some() {
        // A proof is verified at every request, so a token that is known does not pass for free.
        check_failures(gate, presentation.peer)?;
    }
    let judged = confirm(
        gate,
        live,
        presentation,
        presented,
        principal,
        seconds(gate),
    );
    judged.map_err(|found| {
        // A caller whose clock is wrong does no work of ours; one without the key does.
        if found == fault::PROOF_SIGNATURE {
            gate.failures
                .note(presentation.peer, gate.clock.monotonic());
        }
        refuse(gate, live, &principal.issuer, found)
    })
}

fn refuse(gate: &Gate, live: &Live, issuer: &str, fault: TokenFault) -> Rejection {
    gate.metrics.auth_failure(issuer, fault.code);
    rejection(gate, live, fault)
}

/// CA-5: bounds what one address may have us verify in vain.
fn check_failures(gate: &Gate, peer: IpAddr) -> Result<(), Rejection> {
    let Some(seconds) = gate.failures.spent(peer, gate.clock.monotonic()) else {
        return Ok(());
    };
    gate.metrics.auth_failure(NO_ISSUER, "too_many_failures");
    Err(Rejection {
        retry_after: Some(seconds),
        ..Rejection::plain(Fault::RateLimited, "too_many_failures")
    })
}

/// Whose a token is, once `confirmed` has judged what it is bound to.
async fn verify(
    gate: &Gate,
    live: &Live,
    peer: IpAddr,
    token: &str,
    confirmed: impl Fn(&Principal) -> Result<(), Rejection>,
) -> Result<Arc<Verified>, Rejection> {
    let refuse = |issuer: &str, fault: TokenFault| refuse(gate, live, issuer, fault);
    let uptime = gate.clock.monotonic();
    let key = TokenKey::of(token);
    if let Some(verified) = live.tokens.get(&key, uptime) {
        let mut good = still_good(&live.issuers, &verified.principal, seconds(gate));
        if good.is_ok() {
            confirmed(&verified.principal)?;
            good = gate.revocations.judge(&verified.principal, seconds(gate));
        }
        if good.is_ok() {
            good = introspected(gate, live, token, key, &verified.principal).await;
        }
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
    check_failures(gate, peer)?;
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
    confirmed(&principal)?;
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
        fingerprint: Fingerprint::of(gate.fingerprints.key(), signing_input.as_bytes()),
        owner: owner(&principal),
        memo: Arc::default(),
        hidden: Arc::default(),
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
pub fn owner(principal: &Principal) -> Owner {
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
pub(super) fn rejection(gate: &Gate, live: &Live, fault: TokenFault) -> Rejection {
    let asks = fault.answer == Answer::UseNonce;
    Rejection {
        offers_dpop: live.offers_dpop(),
        dpop_nonce: asks.then(|| current_nonce(gate)),
        ..of_token(fault)
    }
}

/// The same, as far as it is the token's.
pub(super) fn of_token(fault: TokenFault) -> Rejection {
    let (public, challenge) = match fault.answer {
        Answer::NoCredential => (Fault::Unauthenticated, Challenge::Bearer),
        Answer::InvalidRequest => (Fault::InvalidCredentials, Challenge::InvalidRequest),
        Answer::InvalidToken => (Fault::Unauthenticated, Challenge::InvalidToken),
        Answer::InvalidProof => (Fault::Unauthenticated, Challenge::InvalidProof),
        Answer::UseNonce => (Fault::Unauthenticated, Challenge::UseNonce),
        Answer::Unavailable => (Fault::Unavailable, Challenge::None),
    };
    Rejection {
        challenge,
        retry_after: (fault.answer == Answer::Unavailable).then_some(RETRY_AFTER),
        token_rule: Some(fault.rule),
        ..Rejection::plain(public, fault.code)
    }
}

/// The nonce that a caller is told.
pub fn current_nonce(gate: &Gate) -> Box<str> {
    let [given, _] = gate.proof_nonces.at(seconds(gate));
    given
}
