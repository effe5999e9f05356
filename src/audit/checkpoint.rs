//! Checkpoints: what one signs, and whether one holds.
//!
//! A checkpoint is a line of the chain like any other. The same line kept elsewhere shows later
//! whether the journal was cut or made anew: the signature covers the journal's id, its length and
//! the hash of its last record, and with it every record before.

use super::record::{Head, Time};
use super::redact::hex;
use crate::identity::SigningKey;
use crate::identity::issuer::Algorithm;
use crate::identity::keys::KeySet;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::borrow::Cow;
use std::fmt;

/// What a checkpoint says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The journal's id, a ULID.
    pub journal: &'a str,
    /// The sequence number of the last record that it covers.
    pub size: u64,
    /// Hex SHA-256 of that record's line.
    pub chain_head: &'a str,
    /// The time as the record has it.
    pub time: &'a str,
    /// The gateway process that signs.
    pub instance: &'a str,
    /// The configuration generation in force.
    pub generation: u64,
    /// The digest of that configuration.
    pub policy_digest: &'a str,
}

impl Statement<'_> {
    /// The text that is signed.
    pub fn text(&self) -> String {
        let Statement {
            journal,
            size,
            chain_head,
            time,
            instance,
            generation,
            policy_digest,
        } = self;
        format!(
            "portcullis-checkpoint/v1\n{journal}\n{size}\n{chain_head}\n{time}\n{instance}\n{generation}\n{policy_digest}\n"
        )
    }

    /// Standard base64 of the Ed25519 signature over the text.
    pub fn sign(&self, key: &SigningKey) -> String {
        STANDARD.encode(key.signature(self.text().as_bytes()))
    }
}

/// Signs that a chain stands at `size` with the hash `chain_head`.
pub fn sign(
    key: &SigningKey,
    journal: &str,
    (size, chain_head): (u64, [u8; 32]),
    head: Head<'_>,
) -> String {
    let (mut digits, mut moment) = ([0; 64], Time::TEMPLATE);
    let statement = Statement {
        journal,
        size,
        chain_head: hex(&chain_head, &mut digits),
        time: head.time.text(&mut moment),
        instance: head.instance,
        generation: head.generation,
        policy_digest: head.policy_digest,
    };
    statement.sign(key)
}

/// A checkpoint's line, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The journal's id.
    pub journal: Box<str>,
    /// Its own sequence number.
    pub sequence: u64,
    /// The sequence number of the last record that it covers.
    pub size: u64,
    /// Hex SHA-256 of that record's line.
    pub chain_head: Box<str>,
    /// The time as the record has it.
    pub time: Box<str>,
    /// The gateway process that signed.
    pub instance: Box<str>,
    /// The configuration generation in force.
    pub generation: u64,
    /// The digest of that configuration.
    pub policy_digest: Box<str>,
    /// RFC 7638 thumbprint of the key.
    pub key_id: Box<str>,
    /// Base64 of the signature.
    pub signature: Box<str>,
    prev: Box<str>,
}

/// Its members: all of them are signed, so there must be no others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    v: u64,
    seq: u64,
    #[serde(borrow)]
    prev: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow)]
    instance: Cow<'a, str>,
    generation: u64,
    #[serde(borrow)]
    policy_digest: Cow<'a, str>,
    #[serde(borrow)]
    journal: Cow<'a, str>,
    size: u64,
    #[serde(borrow)]
    chain_head: Cow<'a, str>,
    #[serde(borrow)]
    key_id: Cow<'a, str>,
    #[serde(borrow)]
    signature: Cow<'a, str>,
}

impl Signed {
    /// Reads a line without its line feed; `None` for anything but a checkpoint, so that a file
    /// may have other lines in between.
    pub fn of(line: &[u8]) -> Option<Signed> {
        let line: Line<'_> = serde_json::from_slice(line).ok()?;
        if line.v != 1 || line.kind != "checkpoint" {
            return None;
        }
        let text = |text: Cow<'_, str>| text.into_owned().into_boxed_str();
        Some(Signed {
            sequence: line.seq,
            size: line.size,
            journal: text(line.journal),
            chain_head: text(line.chain_head),
            time: text(line.time),
            instance: text(line.instance),
            generation: line.generation,
            policy_digest: text(line.policy_digest),
            key_id: text(line.key_id),
            signature: text(line.signature),
            prev: text(line.prev),
        })
    }

    /// What it says.
    pub fn statement(&self) -> Statement<'_> {
        Statement {
            journal: &self.journal,
            size: self.size,
            chain_head: &self.chain_head,
            time: &self.time,
            instance: &self.instance,
            generation: self.generation,
            policy_digest: &self.policy_digest,
        }
    }

    /// Whether it agrees with itself and one of `keys` signed it.
    ///
    /// # Errors
    /// Why it proves nothing.
    pub fn verify(&self, keys: &KeySet) -> Result<(), Fault> {
        if self.prev != self.chain_head || self.sequence.checked_sub(1) != Some(self.size) {
            return Err(Fault::Contradiction);
        }
        let key = keys.named(&self.key_id).ok_or(Fault::UnknownKey)?;
        let signature = STANDARD.decode(&*self.signature).ok();
        let text = self.statement().text();
        let good = key.takes(Algorithm::EdDsa)
            && signature.is_some_and(|signature| key.verifies(text.as_bytes(), &signature));
        good.then_some(()).ok_or(Fault::Signature)
    }
}

/// Why a checkpoint proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It has a member that it should not have, or lacks one.
    Form,
    /// Its own `seq` and `prev` are not those of the record after the one that it covers.
    Contradiction,
    /// The key that it names is not among those that are trusted.
    UnknownKey,
    /// The signature is not that key's over what it says.
    Signature,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Form => "its members are not those of a checkpoint, all of which are signed",
            Fault::Contradiction => {
                "its `size` and `chain_head` are not those of the record before it"
            }
            Fault::UnknownKey => "its `key_id` is not one of the trusted keys",
            Fault::Signature => "its signature does not fit what it says",
        })
    }
}

impl std::error::Error for Fault {}

/// The public part of a key of ours as a set that checkpoints are verified with; `None` only when
/// the key cannot be read back, which its form rules out.
pub fn public_keys(key: &SigningKey) -> Option<KeySet> {
    let document = format!(r#"{{"keys":[{}]}}"#, key.public_jwk());
    let (keys, _) = KeySet::parse(document.as_bytes(), Algorithm::EdDsa).ok()?;
    Some(keys)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::audit::chain::{Chain, Checker};
    use crate::audit::record::{Checkpoint, Record, Sha256};
    use aws_lc_rs::signature::Ed25519KeyPair;

    const JOURNAL: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    fn key() -> SigningKey {
        SigningKey::new(Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap())
    }

    /// A journal of two records, the second of which is a checkpoint.
    fn lines() -> Vec<Vec<u8>> {
        let (mut chain, mut out) = (Chain::START, Vec::new());
        chain.seal(br#""kind":"note""#, &mut out);
        let time = Time(1_798_675_199_007);
        let key = key();
        let head = Head {
            time,
            instance: "gw-1",
            generation: 1,
            policy_digest: "d",
        };
        let signature = sign(&key, JOURNAL, (1, chain.head()), head);
        let checkpoint = Record::Checkpoint(Checkpoint {
            head,
            journal: JOURNAL,
            size: 1,
            chain_head: Sha256(chain.head()),
            key_id: key.kid(),
            signature: &signature,
        });
        chain.seal(&checkpoint.members(), &mut out);
        out.pop();
        out.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn the_text_is_what_others_must_be_able_to_rebuild() {
        let lines = lines();
        let signed = Signed::of(&lines[1]).unwrap();
        let head = Checker::before(&lines[1]).unwrap().chain().head();
        let mut digits = [0; 64];
        assert_eq!(
            signed.statement().text(),
            format!(
                "portcullis-checkpoint/v1\n{JOURNAL}\n1\n{}\n2026-12-30T23:59:59.007Z\ngw-1\n1\nd\n",
                hex(&head, &mut digits)
            )
        );
    }

    #[test]
    fn a_checkpoint_holds_until_anything_of_it_is_changed() {
        let lines = lines();
        let keys = public_keys(&key()).unwrap();
        assert_eq!(Signed::of(&lines[0]), None);
        assert_eq!(Signed::of(b"2026-12-30 INFO not a record"), None);
        let good = Signed::of(&lines[1]).unwrap();
        assert_eq!(good.verify(&keys), Ok(()));
        let changed = |change: &dyn Fn(&mut Signed)| {
            let mut signed = good.clone();
            change(&mut signed);
            signed.verify(&keys)
        };
        let other = || "x".into();
        for (found, expected) in [
            (changed(&|s| s.journal = other()), Fault::Signature),
            (changed(&|s| s.time = other()), Fault::Signature),
            (changed(&|s| s.instance = other()), Fault::Signature),
            (changed(&|s| s.generation = 2), Fault::Signature),
            (changed(&|s| s.policy_digest = other()), Fault::Signature),
            (changed(&|s| s.signature = other()), Fault::Signature),
            (changed(&|s| s.key_id = other()), Fault::UnknownKey),
            (changed(&|s| s.size += 1), Fault::Contradiction),
            (changed(&|s| s.sequence = 0), Fault::Contradiction),
            (changed(&|s| s.prev = other()), Fault::Contradiction),
            (
                changed(&|s| (s.size, s.sequence) = (7, 8)),
                Fault::Signature,
            ),
            (
                changed(&|s| (s.chain_head, s.prev) = (other(), other())),
                Fault::Signature,
            ),
        ] {
            assert_eq!(found, Err(expected));
        }
        let stranger = SigningKey::new(Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap());
        let strangers = public_keys(&stranger).unwrap();
        assert_eq!(good.verify(&strangers), Err(Fault::UnknownKey));
    }
}
