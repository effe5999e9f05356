//! [`KeySet`]: an issuer's JWKS, read entry by entry (KY-1 to KY-14).
//!
//! What is not understood is skipped and told, never guessed at: an entry is usable only when its
//! one algorithm is certain and its key material is sound.

mod material;

use super::issuer::Algorithm;
use crate::a2a::strict_json::{JsonFault, Value, parse_value};
use aws_lc_rs::digest;
use aws_lc_rs::signature::ParsedPublicKey;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use material::material;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Most entries of a document (KY-14).
const MAX_ENTRIES: usize = 64;
/// Deepest nesting of a document (FM-3).
const MAX_DEPTH: usize = 16;
/// Longest `kid` in characters (HD-6).
pub(super) const MAX_KID: usize = 256;
/// Members of a JWK that only a private key has (RFC 7518 sections 6.2.2 and 6.3.2, RFC 8037).
const PRIVATE: [&str; 7] = ["d", "p", "q", "dp", "dq", "qi", "oth"];

/// A usable public key with its one algorithm (KY-5).
#[derive(Clone)]
pub struct Key {
    /// Its name; `None` serves only KY-11.
    pub kid: Option<Box<str>>,
    /// What it verifies. Ed25519 keys verify under both names of that algorithm.
    pub algorithm: Algorithm,
    /// RFC 7638.
    pub thumbprint: [u8; 32],
    public: ParsedPublicKey,
}

impl Key {
    /// Whether the signature is this key's over `message`.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.public.verify_sig(message, signature).is_ok()
    }

    /// Whether a token with this `alg` may be verified with this key.
    pub fn takes(&self, alg: Algorithm) -> bool {
        let one_name = |a| match a {
            Algorithm::Ed25519 => Algorithm::EdDsa,
            other => other,
        };
        one_name(self.algorithm) == one_name(alg)
    }
}

/// The usable keys of one issuer.
#[derive(Clone, Default)]
pub struct KeySet {
    keys: Vec<Key>,
    by_kid: HashMap<Box<str>, usize>,
}

/// Where an issuer's keys are at this moment: fixed, or kept fresh by somebody else.
pub trait KeySource: Send + Sync {
    /// The set that counts now; `None` while none may be used (LC-10, LC-13).
    fn current(&self) -> Option<Arc<KeySet>>;
}

/// Keys that never change, if there are any.
pub struct Fixed(pub Option<Arc<KeySet>>);

impl KeySource for Fixed {
    fn current(&self) -> Option<Arc<KeySet>> {
        self.0.clone()
    }
}

/// Shows the names of its keys.
impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.keys.iter().map(|k| &k.kid))
            .finish()
    }
}

/// Why a whole document is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySetFault {
    /// Not strict JSON (FM-3).
    Json(JsonFault),
    /// Not an object with one array `keys` (KY-3).
    NoKeys,
    /// More than 64 entries (KY-14).
    TooMany,
}

impl fmt::Display for KeySetFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeySetFault::Json(fault) => write!(f, "it is not strict JSON ({fault})"),
            KeySetFault::NoKeys => f.write_str("it is not an object with an array `keys`"),
            KeySetFault::TooMany => write!(f, "it has more than {MAX_ENTRIES} keys"),
        }
    }
}

/// What is wrong with one entry, which is therefore not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryNote {
    /// Its position in `keys`.
    pub position: usize,
    /// Why.
    pub why: Unusable,
}

/// Why an entry of a key set is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unusable {
    /// Not an object, or a member of the wrong type (KY-3).
    Form,
    /// A key type or curve that we do not know (KY-4).
    Kind,
    /// A symmetric key (KY-13).
    Symmetric,
    /// For something else than verifying signatures (KY-4).
    Purpose,
    /// An algorithm that we do not know or that does not fit the key (KY-5).
    Algorithm,
    /// RSA numbers out of bounds (KY-6).
    Rsa,
    /// Not a point of its curve, or not written canonically (KY-7).
    Point,
    /// Not an Ed25519 key, or one that fits every signature (KY-8).
    Ed25519,
    /// The private key was published with it: it is compromised (KY-9).
    Private,
    /// Another key has the same `kid`, or the same key another algorithm (KY-5, KY-10).
    Ambiguous,
}

impl Unusable {
    /// Every reason.
    pub const ALL: [Unusable; 10] = [
        Unusable::Form,
        Unusable::Kind,
        Unusable::Symmetric,
        Unusable::Purpose,
        Unusable::Algorithm,
        Unusable::Rsa,
        Unusable::Point,
        Unusable::Ed25519,
        Unusable::Private,
        Unusable::Ambiguous,
    ];

    /// For metrics.
    pub fn label(self) -> &'static str {
        match self {
            Unusable::Form => "form",
            Unusable::Kind => "kind",
            Unusable::Symmetric => "symmetric",
            Unusable::Purpose => "purpose",
            Unusable::Algorithm => "algorithm",
            Unusable::Rsa => "rsa",
            Unusable::Point => "point",
            Unusable::Ed25519 => "ed25519",
            Unusable::Private => "private",
            Unusable::Ambiguous => "ambiguous",
        }
    }

    /// The rule behind it.
    pub fn rule(self) -> &'static str {
        match self {
            Unusable::Form => "KY-3",
            Unusable::Kind | Unusable::Purpose => "KY-4",
            Unusable::Symmetric => "KY-13",
            Unusable::Algorithm => "KY-5",
            Unusable::Rsa => "KY-6",
            Unusable::Point => "KY-7",
            Unusable::Ed25519 => "KY-8",
            Unusable::Private => "KY-9",
            Unusable::Ambiguous => "KY-10",
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unusable::Form => "is no JWK, or a member of it has the wrong type",
            Unusable::Kind => "has a key type or curve other than RSA, P-256, P-384 and Ed25519",
            Unusable::Symmetric => {
                "is a symmetric key, which everybody with the file could sign with"
            }
            Unusable::Purpose => "is not for verifying signatures (`use`, `key_ops`)",
            Unusable::Algorithm => "has an `alg` that is unknown or does not fit its key",
            Unusable::Rsa => {
                "is an RSA key outside 2048 to 8192 bits, or its numbers are not sound base64url"
            }
            Unusable::Point => {
                "is no point of its curve, or its coordinates are not written in full"
            }
            Unusable::Ed25519 => "is no sound Ed25519 key of 32 bytes",
            Unusable::Private => "is published with its private part, so anybody can sign with it",
            Unusable::Ambiguous => {
                "shares its `kid`, or its key under another `alg`, with another entry"
            }
        })
    }
}

/// An entry that is understood, before it is compared with the others.
struct Candidate {
    position: usize,
    key: Key,
}

impl KeySet {
    /// Reads a document. `rsa_alg` is the algorithm of RSA keys that name none (KY-5).
    ///
    /// # Errors
    /// When the document as a whole cannot be used.
    pub fn parse(
        document: &[u8],
        rsa_alg: Algorithm,
    ) -> Result<(KeySet, Vec<EntryNote>), KeySetFault> {
        let document = parse_value(document, MAX_DEPTH).map_err(KeySetFault::Json)?;
        let entries = document
            .get("keys")
            .and_then(Value::as_array)
            .ok_or(KeySetFault::NoKeys)?;
        if entries.len() > MAX_ENTRIES {
            return Err(KeySetFault::TooMany);
        }
        let mut notes = Vec::new();
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut leaked = Vec::new();
        for (position, entry) in entries.iter().enumerate() {
            if entry.as_object().is_some_and(has_private_part) {
                // The same key without its private part, in another entry, is just as lost.
                leaked.extend(material(entry).ok().map(|m| thumbprint(&m.canonical)));
                notes.push(EntryNote {
                    position,
                    why: Unusable::Private,
                });
                continue;
            }
            match key(entry, rsa_alg) {
                Ok(key) => candidates.push(Candidate { position, key }),
                Err(why) => notes.push(EntryNote { position, why }),
            }
        }
        let mut set = KeySet::default();
        for candidate in &candidates {
            let key = &candidate.key;
            let clashes = |other: &Candidate| {
                let same_key = key.thumbprint == other.key.thumbprint;
                key.kid.is_some() && key.kid == other.key.kid && !same_key
                    || same_key && !key.takes(other.key.algorithm)
            };
            let why = if leaked.contains(&key.thumbprint) {
                Unusable::Private
            } else if candidates.iter().any(clashes) {
                Unusable::Ambiguous
            } else {
                set.add(key.clone());
                continue;
            };
            notes.push(EntryNote {
                position: candidate.position,
                why,
            });
        }
        notes.sort_by_key(|note| note.position);
        Ok((set, notes))
    }

    fn add(&mut self, key: Key) {
        let same = |other: &Key| other.kid == key.kid && other.thumbprint == key.thumbprint;
        if self.keys.iter().any(same) {
            return;
        }
        if let Some(kid) = &key.kid {
            self.by_kid.insert(kid.clone(), self.keys.len());
        }
        self.keys.push(key);
    }

    /// The key of exactly this name (KY-1).
    pub fn named(&self, kid: &str) -> Option<&Key> {
        self.keys.get(*self.by_kid.get(kid)?)
    }

    /// The only usable key for an algorithm, if there is just one (KY-11). One key under two
    /// names is one key.
    pub fn only(&self, alg: Algorithm) -> Option<&Key> {
        let mut fitting = self.keys.iter().filter(|key| key.takes(alg));
        let first = fitting.next()?;
        fitting
            .all(|other| other.thumbprint == first.thumbprint)
            .then_some(first)
    }

    /// Whether a key is in the set.
    pub fn holds(&self, thumbprint: &[u8; 32]) -> bool {
        self.keys.iter().any(|key| key.thumbprint == *thumbprint)
    }

    /// Whether a key is in the set, for an algorithm.
    pub fn takes(&self, thumbprint: &[u8; 32], alg: Algorithm) -> bool {
        let is_it = |key: &Key| key.thumbprint == *thumbprint && key.takes(alg);
        self.keys.iter().any(is_it)
    }

    /// A key for an algorithm, whichever comes first. It verifies nobody's token (KY-2).
    pub(super) fn any_for(&self, alg: Algorithm) -> Option<&Key> {
        self.keys.iter().find(|key| key.takes(alg))
    }

    /// Whether the same usable keys are in both, under the same names and algorithms, in whatever
    /// order.
    pub fn same_as(&self, other: &KeySet) -> bool {
        self.keys.len() == other.keys.len()
            && self
                .keys
                .iter()
                .all(|one| other.keys.iter().any(|two| same(one, two)))
    }

    /// Names of the usable keys of which `other` has no equal, in the document's order: the `kid`,
    /// or the thumbprint of a key without one.
    pub fn names_beyond(&self, other: Option<&KeySet>) -> Vec<Box<str>> {
        let theirs = other.map_or(&[][..], KeySet::keys);
        let own = self.keys.iter();
        own.filter(|one| !theirs.iter().any(|two| same(one, two)))
            .map(|key| match &key.kid {
                Some(kid) => kid.clone(),
                None => URL_SAFE_NO_PAD.encode(key.thumbprint).into(),
            })
            .collect()
    }

    /// Whether both have a key (IS-3).
    pub fn shares_with(&self, other: &KeySet) -> bool {
        self.keys.iter().any(|key| other.holds(&key.thumbprint))
    }

    /// The usable keys, in the document's order.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }
}

/// Whether it is one key under one name for one algorithm.
fn same(one: &Key, two: &Key) -> bool {
    one.kid == two.kid && one.algorithm == two.algorithm && one.thumbprint == two.thumbprint
}

fn has_private_part(members: &[(Box<str>, Value)]) -> bool {
    members.iter().any(|(name, _)| PRIVATE.contains(&&**name))
}

/// A public key that stands in a header for `alg`, judged like one of a key set (KY-4 to KY-9).
pub(super) fn embedded(jwk: &Value, alg: Algorithm) -> Result<Key, Unusable> {
    if jwk.as_object().is_some_and(has_private_part) {
        return Err(Unusable::Private);
    }
    let rsa_alg = if alg.is_rsa() { alg } else { Algorithm::Rs256 };
    let key = key(jwk, rsa_alg)?;
    key.takes(alg).then_some(key).ok_or(Unusable::Algorithm)
}

fn key(entry: &Value, rsa_alg: Algorithm) -> Result<Key, Unusable> {
    let material = material(entry)?;
    purpose(entry)?;
    let kid = match entry.get("kid") {
        None => None,
        Some(Value::String(kid)) if is_kid(kid) => Some(kid.clone()),
        Some(_) => return Err(Unusable::Form),
    };
    let algorithm = match entry.get("alg") {
        None => material.default_algorithm(rsa_alg),
        Some(Value::String(name)) => Algorithm::NAMES
            .iter()
            .find(|(known, _)| **known == **name)
            .map(|(_, algorithm)| *algorithm)
            .ok_or(Unusable::Algorithm)?,
        Some(_) => return Err(Unusable::Form),
    };
    Ok(Key {
        kid,
        algorithm,
        thumbprint: thumbprint(&material.canonical),
        public: material.public_key(algorithm)?,
    })
}

/// HD-6: what a `kid` is made of, in keys as in tokens.
pub(super) fn is_kid(kid: &str) -> bool {
    (1..=MAX_KID).contains(&kid.len()) && kid.bytes().all(|b| matches!(b, 0x20..=0x7e))
}

/// KY-4: `use` and `key_ops`, which must agree where both are there.
fn purpose(entry: &Value) -> Result<(), Unusable> {
    match entry.get("use") {
        None => {}
        Some(Value::String(purpose)) if &**purpose == "sig" => {}
        Some(Value::String(_)) => return Err(Unusable::Purpose),
        Some(_) => return Err(Unusable::Form),
    }
    let Some(operations) = entry.get("key_ops") else {
        return Ok(());
    };
    let names: Option<Vec<&str>> = operations
        .as_array()
        .and_then(|list| list.iter().map(Value::as_str).collect());
    let names = names.ok_or(Unusable::Form)?;
    let other = |name: &&str| !["verify", "sign"].contains(name);
    if !names.contains(&"verify") || entry.get("use").is_some() && names.iter().any(other) {
        return Err(Unusable::Purpose);
    }
    Ok(())
}

/// RFC 7638: SHA-256 over the required members, which the caller has put into canonical form.
pub(super) fn thumbprint(canonical: &str) -> [u8; 32] {
    let mut print = [0; 32];
    let digest = digest::digest(&digest::SHA256, canonical.as_bytes());
    for (to, from) in print.iter_mut().zip(digest.as_ref()) {
        *to = *from;
    }
    print
}
