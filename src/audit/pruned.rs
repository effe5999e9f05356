//! What is left of a segment that was removed ([`Pruned`]), and which segments may go ([`plan`]).
//!
//! A removed segment leaves one signed line: its place in the chain and its digest. The chain
//! stays checkable across the hole, a copy that turns up later can be compared, and nobody without
//! the key can make a hole look planned.

use crate::identity::SigningKey;
use crate::identity::keys::KeySet;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The name of the file that holds these lines, in the journal's directory.
pub const FILE: &str = "pruned.jsonl";

/// One removed segment, as a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pruned {
    /// The version of this format: 1.
    pub v: u64,
    /// The file's name.
    pub segment: String,
    /// The journal's id.
    pub journal: String,
    /// Sequence number of its first record.
    pub first_seq: u64,
    /// Sequence number of its last record.
    pub last_seq: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// The hash that its first record names as its predecessor's.
    pub prev: String,
    /// The hash of its last record, which the next segment's first record names.
    pub head: String,
    /// Time of its first record.
    pub from: String,
    /// Time of its last record.
    pub to: String,
    /// Why it could go: `age` or `exported`.
    pub why: String,
    /// When it went.
    pub time: String,
    /// Which key signed: its RFC 7638 thumbprint.
    pub key_id: String,
    /// Base64 of the Ed25519 signature over [`Pruned::text`].
    pub signature: String,
}

impl Pruned {
    /// What is signed: every member but the version, the key and the signature.
    pub fn text(&self) -> String {
        format!(
            "portcullis-pruned/v1\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n",
            self.segment,
            self.journal,
            self.first_seq,
            self.last_seq,
            self.bytes,
            self.sha256,
            self.prev,
            self.head,
            self.from,
            self.to,
            self.why,
            self.time,
        )
    }

    /// Signs it.
    pub fn sign(&mut self, key: &SigningKey) {
        self.key_id = key.kid().to_owned();
        self.signature = STANDARD.encode(key.signature(self.text().as_bytes()));
    }

    /// Whether one of these keys signed it. A line feed in a member would let one text be read as
    /// another, so such a line is never good.
    pub fn is_signed_by(&self, keys: &KeySet) -> bool {
        let members = [
            &self.segment,
            &self.journal,
            &self.sha256,
            &self.prev,
            &self.head,
            &self.from,
            &self.to,
            &self.why,
            &self.time,
        ];
        let signature = STANDARD.decode(&self.signature);
        let good = |signature: Vec<u8>| {
            keys.named(&self.key_id)
                .is_some_and(|key| key.verifies(self.text().as_bytes(), &signature))
        };
        self.v == 1 && !members.iter().any(|m| m.contains('\n')) && signature.is_ok_and(good)
    }

    /// Whether it is the piece of the same chain right before `next`.
    pub fn leads_to(&self, next: &Pruned) -> bool {
        self.journal == next.journal
            && self.last_seq.checked_add(1) == Some(next.first_seq)
            && self.head == next.prev
    }
}

/// A segment that could go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Sequence number of its last record.
    pub last_seq: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Time of its last record, in milliseconds since the epoch.
    pub last_time: u64,
}

/// What may go.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The time of asking, in milliseconds since the epoch.
    pub now: u64,
    /// From this age on a segment may go that was not exported.
    pub min_age: Duration,
    /// Everything up to this record was exported.
    pub exported: Option<u64>,
    /// Younger segments stay, exported or not.
    pub older_than: Option<Duration>,
    /// Stop as soon as the journal is no larger than this, in bytes.
    pub down_to: Option<u64>,
    /// The oldest intent without an outcome, if there is any: recovery reads back to it.
    pub oldest_open: Option<u64>,
}

/// Why a segment may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is older than the minimum age.
    Age,
    /// It was exported.
    Exported,
}

impl Why {
    /// For the line that it leaves.
    pub fn label(self) -> &'static str {
        match self {
            Why::Age => "age",
            Why::Exported => "exported",
        }
    }
}

/// Why a segment stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// The gateway writes, or wrote last, to it.
    Newest,
    /// An intent in it, or after its start, has no outcome yet.
    OpenIntent(u64),
    /// It is younger than the minimum age and was not exported as a whole.
    Young,
    /// It is younger than what was asked for.
    Asked,
    /// The journal is small enough without it.
    Small,
}

/// How many segments may go, counted from the oldest, each with why, and why the next one stays.
/// The rest is always one piece: what goes is never in the middle.
pub fn plan(segments: &[Candidate], rules: &Rules) -> (Vec<Why>, Stays) {
    let mut total: u64 = segments.iter().map(|s| s.bytes).sum();
    let mut going = Vec::new();
    for (index, segment) in segments.iter().enumerate() {
        let age = Duration::from_millis(rules.now.saturating_sub(segment.last_time));
        let stays = if index + 1 == segments.len() {
            Some(Stays::Newest)
        } else if let Some(open) = rules.oldest_open.filter(|open| *open <= segment.last_seq) {
            Some(Stays::OpenIntent(open))
        } else if rules.down_to.is_some_and(|bytes| total <= bytes) {
            Some(Stays::Small)
        } else if rules.older_than.is_some_and(|least| age < least) {
            Some(Stays::Asked)
        } else {
            None
        };
        if let Some(stays) = stays {
            return (going, stays);
        }
        if rules.exported.is_some_and(|to| to >= segment.last_seq) {
            going.push(Why::Exported);
        } else if age >= rules.min_age {
            going.push(Why::Age);
        } else {
            return (going, Stays::Young);
        }
        total -= segment.bytes;
    }
    (going, Stays::Newest)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::identity::issuer::Algorithm;
    use aws_lc_rs::signature::Ed25519KeyPair;
    use proptest::prelude::*;

    const DAY: u64 = 86_400_000;

    fn segments(days_old: &[u64]) -> Vec<Candidate> {
        let made = days_old.iter().enumerate().map(|(index, days)| Candidate {
            last_seq: (index as u64 + 1) * 10,
            bytes: 100,
            last_time: 1000 * DAY - days * DAY,
        });
        made.collect()
    }

    fn rules() -> Rules {
        Rules {
            now: 1000 * DAY,
            min_age: Duration::from_millis(30 * DAY),
            exported: None,
            older_than: None,
            down_to: None,
            oldest_open: None,
        }
    }

    #[test]
    fn only_old_or_exported_segments_go_and_never_the_newest() {
        let four = segments(&[90, 60, 20, 10]);
        let age = || vec![Why::Age, Why::Age];
        assert_eq!(plan(&four, &rules()), (age(), Stays::Young));
        let exported = Rules {
            exported: Some(25),
            ..rules()
        };
        let both = vec![Why::Exported, Why::Exported];
        assert_eq!(plan(&four, &exported), (both, Stays::Young));
        let exported = Rules {
            exported: Some(400),
            ..rules()
        };
        let all = vec![Why::Exported; 3];
        assert_eq!(plan(&four, &exported), (all, Stays::Newest));
        let asked = Rules {
            older_than: Some(Duration::from_millis(70 * DAY)),
            ..rules()
        };
        assert_eq!(plan(&four, &asked), (vec![Why::Age], Stays::Asked));
        let small = Rules {
            down_to: Some(300),
            ..rules()
        };
        assert_eq!(plan(&four, &small), (vec![Why::Age], Stays::Small));
        let open = Rules {
            oldest_open: Some(12),
            ..rules()
        };
        assert_eq!(plan(&four, &open), (vec![Why::Age], Stays::OpenIntent(12)));
        assert_eq!(
            plan(&segments(&[90]), &rules()),
            (Vec::new(), Stays::Newest)
        );
        assert_eq!(plan(&[], &rules()), (Vec::new(), Stays::Newest));
    }

    fn line() -> Pruned {
        Pruned {
            v: 1,
            segment: "journal-00000000000000000001.jsonl".into(),
            journal: "01JZZZZZZZZZZZZZZZZZZZZZZZ".into(),
            first_seq: 1,
            last_seq: 10,
            bytes: 1000,
            sha256: "ab".repeat(32),
            prev: "00".repeat(32),
            head: "cd".repeat(32),
            from: "2026-01-01T00:00:00.000Z".into(),
            to: "2026-01-02T00:00:00.000Z".into(),
            why: Why::Age.label().into(),
            time: "2026-06-01T00:00:00.000Z".into(),
            key_id: String::new(),
            signature: String::new(),
        }
    }

    proptest! {
        #[test]
        fn no_member_of_a_signed_line_can_change(at in 0..11usize, text in "[a-z0-9\n]{1,9}", number in 0..99u64) {
            let key = SigningKey::new(Ed25519KeyPair::generate().unwrap());
            let document = format!(r#"{{"keys":[{}]}}"#, key.public_jwk());
            let (keys, _) = KeySet::parse(document.as_bytes(), Algorithm::EdDsa).unwrap();
            let mut good = line();
            good.sign(&key);
            prop_assert!(good.is_signed_by(&keys));
            let mut bad = good.clone();
            match at {
                0 => bad.segment = text,
                1 => bad.journal = text,
                2 => bad.first_seq = number,
                3 => bad.last_seq = number,
                4 => bad.bytes = number,
                5 => bad.sha256 = text,
                6 => bad.prev = text,
                7 => bad.head = text,
                8 => bad.from = text,
                9 => bad.to = text,
                _ => bad.time = text,
            }
            prop_assert_eq!(bad.is_signed_by(&keys), bad == good);
        }

        #[test]
        fn what_goes_is_never_young_open_or_the_newest(
            days in prop::collection::vec(0..100u64, 0..8),
            exported in prop::option::of(0..90u64),
            open in prop::option::of(0..90u64),
        ) {
            let segments = segments(&days);
            let rules = Rules { exported, oldest_open: open, ..rules() };
            let (going, _) = plan(&segments, &rules);
            prop_assert!(going.len() < segments.len().max(1));
            for segment in segments.iter().take(going.len()) {
                let age = rules.now - segment.last_time;
                prop_assert!(age >= 30 * DAY || exported.is_some_and(|to| to >= segment.last_seq));
                prop_assert!(open.is_none_or(|open| open > segment.last_seq));
            }
        }
    }
}
