//! [`UsedTokens`]: tokens that may be used once, and were (RV-4).
//!
//! The store is of this process. After a restart nothing is known of what was used before, so a
//! token that may have been issued before the start is refused; several gateways that take the
//! same tokens would each accept one.

use super::authenticate::{Verified, rejection};
use super::gate::{Gate, Live};
use super::rejection::Rejection;
use super::revocations::seconds;
use crate::config::snapshot::Agent;
use crate::identity::{Principal, TokenFault, fault};
use aws_lc_rs::digest::{Context, SHA256};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most tokens that are remembered at one time; beyond it every further one is refused.
pub const MAX_USED: usize = 100_000;

/// Tokens that were used, until they have expired.
#[derive(Default)]
pub struct UsedTokens(Mutex<Used>);

#[derive(Default)]
struct Used {
    /// By issuer entry and `jti`; the second since the epoch from which on the token is refused
    /// by its age anyway.
    until: HashMap<[u8; 32], i64>,
    /// No entry ends before it.
    earliest: i64,
}

impl UsedTokens {
    /// Whether a token was used.
    fn has(&self, key: &[u8; 32]) -> bool {
        self.lock().until.contains_key(key)
    }

    /// Uses a token; of two requests with it, one gets it.
    fn take(&self, key: [u8; 32], until: i64, now: i64, most: usize) -> Result<(), TokenFault> {
        let mut used = self.lock();
        if used.until.contains_key(&key) {
            return Err(fault::TOKEN_USED);
        }
        if used.until.len() >= most && used.earliest <= now {
            used.until.retain(|_, until| now < *until);
            used.earliest = used.until.values().copied().min().unwrap_or(i64::MAX);
        }
        if used.until.len() >= most {
            return Err(fault::USED_TOKENS_FULL);
        }
        used.earliest = match used.until.is_empty() {
            true => until,
            false => used.earliest.min(until),
        };
        used.until.insert(key, until);
        Ok(())
    }

    fn give_back(&self, key: &[u8; 32]) {
        self.lock().until.remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Judges before the body is read whether a token could be used here; uses nothing.
///
/// # Errors
/// It has no `jti` (CL-8), was used, or may have been used before the start.
pub fn could_use(
    gate: &Gate,
    live: &Live,
    agent: &Agent,
    verified: &Verified,
) -> Result<(), Rejection> {
    if !agent.one_time {
        return Ok(());
    }
    let principal = &verified.principal;
    let key = key(principal).map_err(|fault| refused(gate, live, principal, fault))?;
    let started = seconds(gate.started).saturating_add(leeway(live, principal));
    let fault = match principal.issued {
        Some(issued) if issued > started => match gate.used_tokens.has(&key) {
            true => fault::TOKEN_USED,
            false => return Ok(()),
        },
        Some(_) | None => fault::USE_UNKNOWN,
    };
    Err(refused(gate, live, principal, fault))
}

/// A use that can be taken back as long as nothing was forwarded for it.
#[must_use]
pub struct Use(Option<[u8; 32]>);

impl Use {
    /// Takes it back if the call cannot go after all.
    ///
    /// # Errors
    /// Those of `going`.
    pub fn settle<T>(self, gate: &Gate, going: Result<T, Rejection>) -> Result<T, Rejection> {
        if let (Err(_), Some(key)) = (&going, &self.0) {
            gate.used_tokens.give_back(key);
        }
        going
    }
}

/// Uses the token of an allowed call, before anything is forwarded.
///
/// # Errors
/// Another call was quicker, or no more can be remembered.
pub fn use_once(
    gate: &Gate,
    live: &Live,
    agent: &Agent,
    verified: &Verified,
) -> Result<Use, Rejection> {
    if !agent.one_time {
        return Ok(Use(None));
    }
    let principal = &verified.principal;
    let until = principal.expires.saturating_add(leeway(live, principal));
    let taken = key(principal).and_then(|key| {
        let now = seconds(gate.clock.now());
        let taken = gate.used_tokens.take(key, until, now, MAX_USED);
        taken.map(|()| Use(Some(key)))
    });
    taken.map_err(|fault| refused(gate, live, principal, fault))
}

/// Issuer entry and `jti` (IS-5): neither holds the separator.
fn key(principal: &Principal) -> Result<[u8; 32], TokenFault> {
    let id = principal.token_id.as_deref().ok_or(fault::TOKEN_ID)?;
    let mut context = Context::new(&SHA256);
    context.update(principal.issuer.as_bytes());
    context.update(b"\x1f");
    context.update(id.as_bytes());
    let mut key = [0; 32];
    key.copy_from_slice(context.finish().as_ref());
    Ok(key)
}

fn leeway(live: &Live, principal: &Principal) -> i64 {
    let issuer = live.snapshot.issuers.get(principal.issuer_index);
    issuer.map_or(60, |issuer| i64::try_from(issuer.leeway).unwrap_or(60))
}

fn refused(gate: &Gate, live: &Live, principal: &Principal, fault: TokenFault) -> Rejection {
    gate.metrics.auth_failure(&principal.issuer, fault.code);
    rejection(gate, live, fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_store_refuses_until_something_has_expired() {
        let used = UsedTokens::default();
        assert_eq!(used.take([1; 32], 10, 0, 2), Ok(()));
        assert_eq!(used.take([1; 32], 10, 0, 2), Err(fault::TOKEN_USED));
        assert_eq!(used.take([2; 32], 20, 0, 2), Ok(()));
        assert_eq!(used.take([3; 32], 30, 9, 2), Err(fault::USED_TOKENS_FULL));
        assert_eq!(used.take([3; 32], 30, 10, 2), Ok(()));
        assert_eq!(used.take([4; 32], 30, 19, 2), Err(fault::USED_TOKENS_FULL));
        assert_eq!(used.take([2; 32], 20, 19, 2), Err(fault::TOKEN_USED));
        used.give_back(&[2; 32]);
        assert_eq!(used.take([4; 32], 30, 19, 2), Ok(()));
    }

    #[test]
    fn of_many_at_once_one_gets_the_token() {
        let used = UsedTokens::default();
        let taken = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| used.take([7; 32], 10, 0, 100).is_ok()))
                .collect();
            let taken = takers.into_iter().map(|taker| taker.join());
            taken.filter(|taken| matches!(taken, Ok(true))).count()
        });
        assert_eq!(taken, 1);
    }
}
