//! Whose signature a card has, and ours.

use crate::a2a::card::{Attested, BadSignature, attest};
use crate::config::snapshot::Verify;
use crate::identity::SigningKey;
use crate::identity::issuer::Algorithm;
use crate::identity::keys::KeySet;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::sync::Arc;

/// Key sets that signatures named by `jku`, by their URLs.
pub type NamedKeys = Vec<(Box<str>, KeySet)>;

/// What the signatures of a card are worth: by a trusted key of exactly their `kid`, under an
/// algorithm that is allowed and the key's own.
pub(super) fn attested(verify: &Verify, named: &NamedKeys, card: &[u8]) -> Attested {
    attest(card, &|header, input, signature| {
        let known = Algorithm::NAMES
            .iter()
            .find(|(name, _)| **name == *header.alg);
        let algorithm = known
            .map(|(_, algorithm)| *algorithm)
            .filter(|algorithm| verify.algorithms.contains(algorithm))
            .ok_or(BadSignature::Algorithm)?;
        let kid = header.kid.as_deref().ok_or(BadSignature::UnknownKey)?;
        let hinted = named
            .iter()
            .filter(|(url, _)| header.jku.as_ref() == Some(url) && verify.key_sets.contains(url));
        let key = std::iter::once(&*verify.keys)
            .chain(hinted.map(|(_, set)| set))
            .find_map(|set| set.named(kid))
            .ok_or(BadSignature::UnknownKey)?;
        if !key.takes(algorithm) {
            return Err(BadSignature::Algorithm);
        }
        match key.verifies(input, signature) {
            true => Ok(()),
            false => Err(BadSignature::Mismatch),
        }
    })
}

/// Our key, with the header under which it signs.
pub(super) struct CardSigner {
    key: Arc<SigningKey>,
    protected: Box<str>,
}

impl CardSigner {
    /// `base` is the public URL of the listener whose cards are signed.
    pub(super) fn new(key: &Arc<SigningKey>, base: &str) -> CardSigner {
        let header = serde_json::json!({
            "alg": SigningKey::ALGORITHM,
            "jku": format!("{base}{}", crate::pipeline::locate::KEY_SET),
            "kid": key.kid(),
            "typ": "JOSE",
        });
        CardSigner {
            protected: URL_SAFE_NO_PAD.encode(header.to_string()).into(),
            key: Arc::clone(key),
        }
    }

    pub(super) fn protected(&self) -> &str {
        &self.protected
    }

    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.key.sign(message)
    }
}
