//! Values that records hold as tokens instead of themselves: `hmac:<key id>:<32 hex digits>`.
//!
//! Equal values of one class have equal tokens under one key, so records can still be joined, and
//! whoever has the key can find what is written about a value. Without it a token says nothing.

use aws_lc_rs::digest::{Context, SHA256};
use aws_lc_rs::hmac;
use std::fmt::{self, Write};

/// What keeps the id of a key from being the digest of the key alone.
const KEY_LABEL: &[u8] = b"portcullis-redaction-key";

/// What a value is: the same text in two classes has two tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A subject, a client or an actor, also where it is the value of a claim.
    Subject,
    /// The id of a message, task, context, artifact or push configuration.
    Id,
    /// An IP address, without its port.
    Address,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 3] = [Class::Subject, Class::Id, Class::Address];

    /// In output of commands.
    pub fn label(self) -> &'static str {
        match self {
            Class::Subject => "subject",
            Class::Id => "id",
            Class::Address => "address",
        }
    }
}

/// What records hide; by default nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Redact {
    /// Subjects, clients and actors.
    pub subjects: bool,
    /// Ids of messages, tasks, contexts, artifacts and push configurations.
    pub ids: bool,
    /// Addresses of callers.
    pub addresses: Addresses,
}

/// How addresses of callers are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Addresses {
    /// As they are.
    #[default]
    Plain,
    /// As tokens.
    Hidden,
    /// Without their last part: /24, or /56 of IPv6.
    Prefix,
}

/// A key that hides values; prints only its id.
#[derive(Clone)]
pub struct HidingKey {
    key: hmac::Key,
    id: [u8; 4],
}

impl HidingKey {
    /// From the bytes of a key file.
    pub fn new(bytes: &[u8]) -> HidingKey {
        let mut context = Context::new(&SHA256);
        context.update(KEY_LABEL);
        context.update(bytes);
        let mut id = [0; 4];
        for (to, from) in id.iter_mut().zip(context.finish().as_ref()) {
            *to = *from;
        }
        HidingKey {
            key: hmac::Key::new(hmac::HMAC_SHA256, bytes),
            id,
        }
    }

    /// The key itself, for fingerprints of tokens.
    pub fn key(&self) -> &hmac::Key {
        &self.key
    }

    /// The token of a value.
    pub fn hide(&self, class: Class, value: &str) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(class.label().as_bytes());
        context.update(&[0]);
        context.update(value.as_bytes());
        let tag = context.sign();
        let mut token = String::with_capacity(46);
        // Writing to a string cannot fail.
        let _ = write!(token, "hmac:{self}:");
        for byte in tag.as_ref().iter().take(16) {
            let _ = write!(token, "{byte:02x}");
        }
        token
    }
}

/// The id of the key that a token was made with; `None` for what is no token.
pub fn key_of(token: &str) -> Option<&str> {
    let (id, tag) = token.strip_prefix("hmac:")?.split_once(':')?;
    let hex = |text: &str, length| {
        let mut bytes = text.bytes();
        text.len() == length && bytes.all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    (hex(id, 8) && hex(tag, 32)).then_some(id)
}

impl fmt::Display for HidingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for HidingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::replay::is_hidden;

    #[test]
    fn tokens_depend_on_key_class_and_value_and_show_none_of_them() {
        let (key, other) = (HidingKey::new(&[7; 32]), HidingKey::new(&[8; 32]));
        let token = key.hide(Class::Subject, "alice");
        assert_eq!(token.len(), 46);
        assert!(token.starts_with(&format!("hmac:{key}:")));
        assert_eq!(token, key.hide(Class::Subject, "alice"));
        for different in [
            key.hide(Class::Subject, "bob"),
            key.hide(Class::Id, "alice"),
            other.hide(Class::Subject, "alice"),
        ] {
            assert_ne!(token, different);
        }
        assert!(!token.contains("alice"));
        assert_eq!(format!("{key:?}").len(), 8);
    }

    /// So that other programs can compute it.
    #[test]
    fn a_token_is_the_head_of_an_hmac_over_class_zero_and_value() {
        let bytes = [7; 32];
        let plain = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
        let tag = hmac::sign(&plain, b"id\0task-1");
        let hex: String = tag.as_ref()[..16]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let token = HidingKey::new(&bytes).hide(Class::Id, "task-1");
        assert!(token.ends_with(&format!(":{hex}")), "{token}");
    }

    #[test]
    fn what_reads_records_again_knows_a_token_from_a_value() {
        let token = HidingKey::new(&[7; 32]).hide(Class::Subject, "alice");
        assert!(is_hidden(&token));
        assert_eq!(key_of(&token), Some(&token[5..13]));
        for value in [
            "alice",
            "hmac",
            "hmac:",
            &token[..45],
            &token.replace("hmac", "hash"),
        ] {
            assert!(!is_hidden(value), "{value}");
            assert_eq!(key_of(value), None);
        }
    }
}
