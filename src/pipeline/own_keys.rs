//! [`OwnKeys`]: our private keys, and the document that tells of their public parts.

use crate::a2a::card::rewrite::strong_etag;
use crate::a2a::card::serve::Document;
use crate::audit::redact::hidden::HidingKey;
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
    /// The key of token fingerprints (LG-2); `None`: one of this process.
    pub fingerprints: Option<HidingKey>,
}

/// The keys with which a journal is written; they are there before it is opened.
#[derive(Clone, Default)]
pub struct JournalKeys {
    /// Signs checkpoints.
    pub checkpoint: Option<Arc<SigningKey>>,
    /// The key of token fingerprints, and of what records hide.
    pub fingerprints: Option<HidingKey>,
}

impl OwnKeys {
    /// Keys that were read or made.
    pub fn new(
        card: Option<SigningKey>,
        assertion: Option<SigningKey>,
        journal: JournalKeys,
    ) -> OwnKeys {
        let public: Vec<String> = [&card, &assertion]
            .into_iter()
            .flatten()
            .chain(journal.checkpoint.as_deref())
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
            fingerprints: journal.fingerprints,
        }
    }
}
