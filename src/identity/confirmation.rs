//! [`Confirmation`]: to which certificate or key a token is bound (RFC 7800), and whether a request
//! shows that its sender holds it (SC-1 to SC-10).
//!
//! It is kept with the verified token and judged again at every request, since the connection and
//! the proof are another one each time (CA-2).

use super::accept::Refusals;
use super::dpop::{self, Expected, Proof};
use super::fault::{self, TokenFault};
use super::token::base64url;
use super::transport::Presented;
use crate::a2a::strict_json::Value;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use http::HeaderMap;

/// What a token is bound to; nothing, if it is a plain bearer token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confirmation {
    /// `x5t#S256`: SHA-256 of the DER of the client certificate (RFC 8705 section 3.1).
    pub certificate: Option<[u8; 32]>,
    /// `jkt`: RFC 7638 thumbprint of the key that signs proofs (RFC 9449 section 6.1).
    pub key: Option<[u8; 32]>,
}

/// How a caller proves that a token is its own, as policies and records say it (SC-9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProofKind {
    /// Not at all: whoever has the token can use it.
    None,
    /// By the certificate of its connection.
    Mtls,
    /// By a signed proof with every request.
    Dpop,
}

impl ProofKind {
    /// Its name in policies and records.
    pub fn label(self) -> &'static str {
        match self {
            ProofKind::None => "none",
            ProofKind::Mtls => "mtls",
            ProofKind::Dpop => "dpop",
        }
    }
}

/// What a request shows beside its token.
pub struct Shown<'a> {
    /// The token, under its scheme.
    pub presented: Presented<'a>,
    /// SHA-256 of the DER of the client certificate of this very connection.
    pub certificate: Option<[u8; 32]>,
    /// The header fields. No certificate in them counts (SC-8).
    pub headers: &'a HeaderMap,
    /// The HTTP method.
    pub method: &'a str,
    /// Seconds since the epoch.
    pub now: i64,
    /// The nonces that a proof may have, if its issuer's tokens need one.
    pub nonces: Option<&'a [Box<str>]>,
}

impl Confirmation {
    /// Reads `cnf`: absent, or an object of members that we all know (SC-1, SC-5).
    pub(super) fn read<R: Refusals>(
        payload: &Value,
        refusals: &mut R,
    ) -> Result<Confirmation, TokenFault> {
        let mut confirmation = Confirmation::default();
        let members = match payload.get("cnf") {
            None => return Ok(confirmation),
            Some(Value::Object(members)) if !members.is_empty() => members,
            Some(_) => {
                refusals.refuse(fault::CONFIRMATION_FORM)?;
                return Ok(confirmation);
            }
        };
        for (name, value) in members {
            let (place, fault) = match &**name {
                "x5t#S256" => (&mut confirmation.certificate, fault::CERTIFICATE_PRINT),
                "jkt" => (&mut confirmation.key, fault::KEY_PRINT),
                _ => {
                    refusals.refuse(fault::CONFIRMATION_MEMBER)?;
                    continue;
                }
            };
            *place = value.as_str().and_then(thumbprint);
            if place.is_none() {
                refusals.refuse(fault)?;
            }
        }
        Ok(confirmation)
    }

    /// How the caller proves it. A token that is bound twice is proved twice; it counts as `mtls`.
    pub fn kind(&self) -> ProofKind {
        match (self.certificate, self.key) {
            (Some(_), _) => ProofKind::Mtls,
            (None, Some(_)) => ProofKind::Dpop,
            (None, None) => ProofKind::None,
        }
    }

    /// Judges one request with this token; every member must hold (SC-5). `uri` makes the URI under
    /// which callers see what they ask for, and is asked only where there is a proof to compare.
    ///
    /// The proof that it gives has not been looked up among those seen before.
    ///
    /// # Errors
    /// The rule that refuses the request.
    pub fn judge(
        &self,
        shown: &Shown<'_>,
        uri: impl FnOnce() -> String,
    ) -> Result<Option<Proof>, TokenFault> {
        if let Some(bound) = &self.certificate {
            let certificate = shown.certificate.ok_or(fault::NO_CERTIFICATE)?;
            verify_slices_are_equal(bound, &certificate).map_err(|_| fault::OTHER_CERTIFICATE)?;
        }
        match (&self.key, shown.presented) {
            (None, Presented::Bearer(_)) => Ok(None),
            (None, Presented::Dpop(_)) => Err(fault::UNBOUND_AS_DPOP),
            (Some(_), Presented::Bearer(_)) => Err(fault::BOUND_AS_BEARER),
            (Some(key), Presented::Dpop(token)) => {
                let expected = Expected {
                    key,
                    token,
                    method: shown.method,
                    uri: &uri(),
                    now: shown.now,
                    nonces: shown.nonces,
                };
                dpop::judge(dpop::only(shown.headers)?, &expected).map(Some)
            }
        }
    }
}

/// 32 bytes in canonical base64url.
fn thumbprint(text: &str) -> Option<[u8; 32]> {
    // Longer text is none, and need not be decoded to know it.
    (text.len() == 43)
        .then(|| base64url(text))??
        .try_into()
        .ok()
}
