//! [`OwnKeys`]: our private keys, and the document that tells of their public parts.

use crate::a2a::card::rewrite::strong_etag;
use crate::a2a::card::serve::Document;
use crate::identity::SigningKey;
use crate::identity::assertion::Asserter;
use std::sync::Arc;

/// The keys of one gateway; replicas share them.
pub struct OwnKeys {
    /// Signs cards.
    pub card: Option<Arc<SigningKey>>,
    /// Signs assertions to agents: a key of its own, so that no signature of one kind is ever one
    /// of the other.
    pub assertion: Option<Asserter>,
    /// The public parts as a JWKS.
    pub document: Document,
}

impl OwnKeys {
    /// Keys that were read or made.
    pub fn new(card: Option<SigningKey>, assertion: Option<SigningKey>) -> OwnKeys {
        let public: Vec<String> = [&card, &assertion]
            .into_iter()
            .flatten()
            .map(SigningKey::public_jwk)
            .collect();
        let body = format!(r#"{{"keys":[{}]}}"#, public.join(","));
        OwnKeys {
            document: Document {
                etag: strong_etag(body.as_bytes()),
                body: body.into(),
            },
            card: card.map(Arc::new),
            assertion: assertion.map(|key| Asserter::new(Arc::new(key))),
        }
    }
}
