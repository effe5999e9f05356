//! [`OwnKeys`]: our private keys, and the document that tells of their public parts.

use crate::a2a::card::rewrite::strong_etag;
use crate::a2a::card::serve::Document;
use crate::identity::SigningKey;
use std::sync::Arc;

/// The keys of one gateway; replicas share them.
pub struct OwnKeys {
    /// Signs cards.
    pub card: Arc<SigningKey>,
    /// The public parts as a JWKS.
    pub document: Document,
}

impl OwnKeys {
    /// Keys that were read or made.
    pub fn new(card: SigningKey) -> OwnKeys {
        let body = format!(r#"{{"keys":[{}]}}"#, card.public_jwk());
        OwnKeys {
            document: Document {
                etag: strong_etag(body.as_bytes()),
                body: body.into(),
            },
            card: Arc::new(card),
        }
    }
}
