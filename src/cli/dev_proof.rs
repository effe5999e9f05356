//! Proofs of possession by a key of a developer's own (RFC 9449), to try the gateway with.

use super::dev_issuer::{DevIssuer, KeyError};
use crate::pipeline::ports::{Clock, Random};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

/// What a proof says.
#[derive(Debug, Clone, Default)]
pub struct ProofClaims<'a> {
    /// `htm`.
    pub method: &'a str,
    /// `htu`; its query and fragment are left out.
    pub url: &'a str,
    /// The access token, whose hash becomes `ath`.
    pub token: Option<&'a str>,
    /// `nonce`, as a gateway gave it.
    pub nonce: Option<&'a str>,
    /// Laid over the payload: adds claims, and replaces those above.
    pub extra: Map<String, Value>,
    /// Laid over the JOSE header in the same way.
    pub header: Map<String, Value>,
    /// Claims to leave out.
    pub without: Vec<String>,
}

impl DevIssuer {
    /// A proof by this key, made now, with an id that no other has.
    pub fn prove(
        &self,
        claims: &ProofClaims<'_>,
        clock: &dyn Clock,
        random: &dyn Random,
    ) -> Result<String, KeyError> {
        let mut id = [0; 16];
        random.fill(&mut id);
        let url = claims.url.split(['?', '#']).next().unwrap_or_default();
        let mut payload = json!({
            "htm": claims.method,
            "htu": url,
            "iat": clock.now() / 1000,
            "jti": URL_SAFE_NO_PAD.encode(id),
        });
        if let Some(token) = claims.token {
            payload["ath"] = json!(URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes())));
        }
        if let Some(nonce) = claims.nonce {
            payload["nonce"] = json!(nonce);
        }
        let mut header = json!({
            "typ": "dpop+jwt", "alg": self.algorithm().name(), "jwk": self.public_jwk(),
        });
        for (whole, over) in [(&mut payload, &claims.extra), (&mut header, &claims.header)] {
            for (name, value) in over {
                whole[name] = value.clone();
            }
        }
        if let Some(payload) = payload.as_object_mut() {
            payload.retain(|name, _| !claims.without.contains(name));
        }
        self.sign(
            header.to_string().as_bytes(),
            payload.to_string().as_bytes(),
        )
    }
}
