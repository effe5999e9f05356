//! What comes of asking for an issuer's keys.

use crate::identity::issuer::RemoteKeys;
use crate::identity::keys::{EntryNote, KeySet, KeySetFault};
use crate::identity::metadata::MetadataFault;
use crate::pipeline::RequestId;
use crate::pipeline::cards::FetchFailureKind;
use bytes::Bytes;
use std::fmt;
use std::time::Duration;

/// Where key sets of issuers come from.
#[async_trait::async_trait]
pub trait IssuerSource: Send + Sync {
    /// Fetches a set by its rules, under this id; bounded in time and size (LC-1 to LC-5).
    ///
    /// # Errors
    /// Why there is none.
    async fn fetch(
        &self,
        from: &RemoteKeys,
        request_id: RequestId,
    ) -> Result<FetchedKeys, KeyFetchFault>;
}

/// Nowhere: for a gate whose issuers' keys are all in files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

#[async_trait::async_trait]
impl IssuerSource for Nowhere {
    async fn fetch(&self, _: &RemoteKeys, _: RequestId) -> Result<FetchedKeys, KeyFetchFault> {
        Err(KeyFetchFault::Reply(FetchFailureKind::Unreachable))
    }
}

/// A document that may hold a key set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedKeys {
    /// Its bytes, at most 256 KiB, not encoded.
    pub body: Bytes,
    /// How long the reply says that it stays as it is.
    pub max_age: Option<Duration>,
    /// Where it came from.
    pub url: Box<str>,
}

/// Why a key set was not fetched, or cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFetchFault {
    /// No usable reply.
    Reply(FetchFailureKind),
    /// The certificate is not one that we trust (LC-1).
    Untrusted,
    /// Plain `http`, where it is not allowed (LC-1).
    Plain,
    /// An address at which nobody may be asked (LC-4).
    Address,
    /// The issuer's metadata cannot be used (LC-5).
    Metadata(MetadataFault),
    /// The document is no key set (LC-12).
    KeySet(KeySetFault),
    /// The fetch was given up within us.
    Abandoned,
}

impl KeyFetchFault {
    /// For records and metrics: a code of a closed set.
    pub fn label(&self) -> &'static str {
        match self {
            KeyFetchFault::Reply(kind) => kind.label(),
            KeyFetchFault::Untrusted => "untrusted",
            KeyFetchFault::Plain => "plain_http",
            KeyFetchFault::Address => "address",
            KeyFetchFault::Metadata(fault) => fault.label(),
            KeyFetchFault::KeySet(_) => "not_a_key_set",
            KeyFetchFault::Abandoned => "abandoned",
        }
    }

    /// The HTTP status that came, if one did.
    pub fn status(&self) -> Option<u16> {
        match self {
            KeyFetchFault::Reply(kind) => kind.status(),
            KeyFetchFault::Metadata(_) | KeyFetchFault::KeySet(_) => Some(200),
            KeyFetchFault::Untrusted
            | KeyFetchFault::Plain
            | KeyFetchFault::Address
            | KeyFetchFault::Abandoned => None,
        }
    }
}

impl fmt::Display for KeyFetchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyFetchFault::Reply(kind) => match kind {
                FetchFailureKind::Unreachable => f.write_str("no connection"),
                FetchFailureKind::Tls => f.write_str("TLS failed"),
                FetchFailureKind::TimedOut => f.write_str("no whole reply in time"),
                FetchFailureKind::Broken => f.write_str("the reply broke off"),
                // Issuers are asked in HTTP/1.1.
                FetchFailureKind::OtherHttp(_) => f.write_str("it speaks no HTTP/1.1"),
                FetchFailureKind::Closed(_) => f.write_str("it closed without a reply"),
                FetchFailureKind::NotFound => f.write_str("no metadata in any of its places"),
                FetchFailureKind::Status(status) => write!(f, "status {status}"),
                FetchFailureKind::Redirected(status) => {
                    write!(f, "redirect {status}, which is not followed")
                }
                FetchFailureKind::Encoded => f.write_str("encoded, and not as gzip"),
                FetchFailureKind::TooLarge => f.write_str("larger than 256 KiB"),
            },
            KeyFetchFault::Untrusted => f.write_str("its certificate is not trusted"),
            KeyFetchFault::Plain => f.write_str("plain `http` is not allowed"),
            KeyFetchFault::Address => {
                f.write_str("its address is not one that may be asked (`private`, `loopback`)")
            }
            KeyFetchFault::Metadata(fault) => fault.fmt(f),
            KeyFetchFault::KeySet(fault) => write!(f, "what came is no key set: {fault}"),
            KeyFetchFault::Abandoned => f.write_str("the fetch was given up"),
        }
    }
}

/// A fetch that ended, as it is told and recorded.
pub struct KeyFetch<'a> {
    /// The issuer's configured name.
    pub issuer: &'a str,
    /// Its id, which the issuer was told.
    pub request_id: RequestId,
    /// Where the set was, or was to be, asked for.
    pub url: &'a str,
    /// Body bytes of the set.
    pub body: Option<&'a Bytes>,
    /// How long it took.
    pub took: Duration,
    /// What came of it.
    pub result: Result<&'a NewKeys, &'a KeyFetchFault>,
}

/// How an issuer's usable keys differ from those before: names, as the key set has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyChange {
    /// Those that were not there before.
    pub added: Vec<Box<str>>,
    /// Those that are there no more.
    pub removed: Vec<Box<str>>,
}

impl KeyChange {
    /// From one set to the next.
    pub fn between(before: Option<&KeySet>, after: &KeySet) -> KeyChange {
        KeyChange {
            added: after.names_beyond(before),
            removed: before.map_or(Vec::new(), |before| before.names_beyond(Some(after))),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

/// What a fetched set changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKeys {
    /// Whether the usable keys are others than before.
    pub changed: bool,
    /// How they differ.
    pub change: KeyChange,
    /// How many keys are usable.
    pub usable: usize,
    /// Keys of the document that are not used.
    pub unusable: Vec<EntryNote>,
    /// Configured names of issuers that have a key of this set too (IS-3).
    pub shared: Vec<Box<str>>,
}
