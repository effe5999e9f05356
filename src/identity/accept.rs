//! [`accept`]: from a token's text to a [`Principal`], or to the rule that refuses it.

use super::Principal;
use super::fault::{self, TokenFault};
use super::issuer::IssuerConfig;
use std::sync::Arc;

/// The trusted issuers of one generation, with their key sets.
pub struct Issuers {
    entries: Vec<Arc<IssuerConfig>>,
}

/// A refused token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub fault: TokenFault,
    /// The configured name of the entry that the token's `iss` chose, if it chose one. The token
    /// may still be forged.
    pub issuer: Option<Arc<str>>,
}

impl Issuers {
    /// Compiles the entries, in their order.
    pub fn compile(configs: &[Arc<IssuerConfig>]) -> Issuers {
        Issuers {
            entries: configs.to_vec(),
        }
    }
}

/// Judges a token. `now` is in seconds since the epoch.
///
/// # Errors
/// The first rule that refuses it.
pub fn accept(issuers: &Issuers, token: &str, now: i64) -> Result<Principal, Refused> {
    let _ = (issuers.entries.len(), token, now);
    Err(Refused {
        fault: fault::UNKNOWN_ISSUER,
        issuer: None,
    })
}

/// Judges again what changes while a token is remembered (CA-2): its times, and whether the key
/// that verified it is still its issuer's.
///
/// # Errors
/// The rule that refuses it now.
pub fn still_good(issuers: &Issuers, principal: &Principal, now: i64) -> Result<(), TokenFault> {
    let _ = (issuers.entries.len(), principal, now);
    Err(fault::KEY_GONE)
}
