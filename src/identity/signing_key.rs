//! [`SigningKey`]: a key of our own, Ed25519 (RFC 8037).
//!
//! Its signatures are deterministic, so gateways that share a key serve the same bytes.

use super::keys::thumbprint;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair, Signature};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::fmt;

/// Where the public parts of our own keys are (RFC 7517).
pub const KEY_SET: &str = "/.well-known/jwks.json";

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

/// A private key and its public name.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    x: Box<str>,
    kid: Box<str>,
}

/// Shows the key's name, nothing of the key.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("kid", &self.kid)
            .finish_non_exhaustive()
    }
}

impl SigningKey {
    /// The `alg` of its signatures.
    pub const ALGORITHM: &str = "EdDSA";

    /// A key pair that was made or read.
    pub fn new(pair: Ed25519KeyPair) -> SigningKey {
        let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let print = thumbprint(&format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#));
        SigningKey {
            kid: URL_SAFE_NO_PAD.encode(print).into(),
            x: x.into(),
            pair,
        }
    }

    /// Reads PKCS#8 PEM (RFC 5208, RFC 7468); `None` when it is no Ed25519 key.
    pub fn from_pem(pem: &str) -> Option<SigningKey> {
        let (_, rest) = pem.split_once(BEGIN)?;
        let (body, _) = rest.split_once(END)?;
        let body: String = body.split_ascii_whitespace().collect();
        let der = STANDARD.decode(body).ok()?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok()?;
        Some(SigningKey::new(pair))
    }

    /// PKCS#8 PEM, for a file that only its owner may read; `None` when the library refuses.
    pub fn to_pem(&self) -> Option<String> {
        let der = self.pair.to_pkcs8v1().ok()?;
        let body = STANDARD.encode(der.as_ref());
        let lines: Vec<&str> = body
            .as_bytes()
            .chunks(64)
            .filter_map(|line| std::str::from_utf8(line).ok())
            .collect();
        Some(format!("{BEGIN}\n{}\n{END}\n", lines.join("\n")))
    }

    /// Its name: the RFC 7638 thumbprint.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The public part as a JWK (RFC 7517).
    pub fn public_jwk(&self) -> String {
        format!(
            r#"{{"kty":"OKP","crv":"Ed25519","x":"{}","kid":"{}","use":"sig","alg":"{}"}}"#,
            self.x,
            self.kid,
            Self::ALGORITHM
        )
    }

    /// The signature over `message`.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.signature(message).as_ref().to_vec()
    }

    /// The same without allocating.
    pub fn signature(&self, message: &[u8]) -> Signature {
        self.pair.sign(message)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::issuer::Algorithm;
    use super::super::keys::KeySet;
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_file_and_verifies_by_its_public_part() {
        let key = SigningKey::new(Ed25519KeyPair::generate().unwrap());
        let again = SigningKey::from_pem(&key.to_pem().unwrap()).unwrap();
        assert_eq!(again.kid(), key.kid());
        assert_eq!(again.sign(b"m"), key.sign(b"m"));
        let document = format!(r#"{{"keys":[{}]}}"#, key.public_jwk());
        let (set, notes) = KeySet::parse(document.as_bytes(), Algorithm::Rs256).unwrap();
        assert!(notes.is_empty());
        let public = set.named(key.kid()).unwrap();
        assert!(public.takes(Algorithm::EdDsa) && public.verifies(b"m", &key.sign(b"m")));
        assert!(!public.verifies(b"n", &key.sign(b"m")));
        assert!(!document.contains("\"d\""));
        assert!(
            SigningKey::from_pem("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----")
                .is_none()
        );
    }
}
