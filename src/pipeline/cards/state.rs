//! What is known of one agent's card.

use super::outcome::CardTrouble;
use super::signing::NamedKeys;
use crate::a2a::card::{Attested, DroppedInterface, Interface, Published};
use crate::pipeline::ports::UnixMillis;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// The state of one agent's card.
#[derive(Debug, Clone)]
pub enum CardState {
    /// There never was one.
    Absent {
        /// Since when.
        since: UnixMillis,
        /// Why.
        reason: CardTrouble,
    },
    /// A good one is being served.
    Current(Current),
    /// The agent answers with something that cannot be published, and there is no good one.
    Withheld {
        /// Since when.
        since: UnixMillis,
        /// Why.
        reason: CardTrouble,
    },
}

/// A good card.
#[derive(Debug, Clone)]
pub struct Current {
    /// What is served.
    pub published: Arc<Published>,
    /// When this body was first published: `Last-Modified`.
    pub published_at: UnixMillis,
    /// When the agent last confirmed it.
    pub fetched_at: UnixMillis,
    /// Why a newer one was not taken, and since when; it goes on being served.
    pub kept: Option<(UnixMillis, CardTrouble)>,
    pub(super) interfaces: Arc<[Interface]>,
    pub(super) upstream: Bytes,
    pub(super) upstream_etag: Option<Box<str>>,
    pub(super) path: Box<str>,
    pub(super) named: Arc<NamedKeys>,
}

/// What a card request gets.
#[derive(Debug, Clone)]
pub enum CardView {
    /// The card, and when its body was first published (Unix milliseconds).
    Ready(Arc<Published>, UnixMillis),
    /// None yet: 503 with this `Retry-After` in seconds.
    Missing(u64),
    /// The agent's cannot be published: 502.
    Withheld,
}

/// What an outcome changed: for the records `fetch` and `card_changed`, and for metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardChange {
    /// The first good card.
    Installed(Arc<Published>),
    /// Another card than before.
    Changed {
        /// The card until now.
        before: Arc<Published>,
        /// The card from now on.
        after: Arc<Published>,
    },
    /// The same card.
    Unchanged,
    /// The last good card stays, for this reason.
    Kept(CardTrouble),
    /// There is still none.
    Absent(CardTrouble),
    /// What the agent answers cannot be published, and there is no good card.
    Withheld(CardTrouble),
}

impl CardChange {
    /// For metrics.
    pub fn label(&self) -> &'static str {
        match self {
            CardChange::Installed(_) => "installed",
            CardChange::Changed { .. } => "changed",
            CardChange::Unchanged => "unchanged",
            CardChange::Kept(_) => "kept",
            CardChange::Absent(_) => "absent",
            CardChange::Withheld(_) => "withheld",
        }
    }
}

/// Something about an agent's card that operators should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardNotice {
    /// The agent's name.
    pub agent: Box<str>,
    /// What.
    pub kind: CardNoticeKind,
}

/// What operators should know about a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardNoticeKind {
    /// There is no card to serve, and none to learn interfaces from.
    NoCard(CardTrouble),
    /// An old card is served, since this time the agent gives none that is better.
    LastGood(UnixMillis, CardTrouble),
    /// The card has a skill that `skills` does not list.
    SkillUnlisted(Box<str>),
    /// `skills` lists a skill that the card does not have.
    SkillVanished(Box<str>),
    /// An interface of the card is not published.
    InterfaceDropped(DroppedInterface),
    /// The card has no signature that counts, and none is required.
    Unproven(Attested),
}

impl CardNoticeKind {
    /// What it is, for metrics.
    pub fn label(&self) -> &'static str {
        match self {
            CardNoticeKind::NoCard(_) => "no_card",
            CardNoticeKind::LastGood(..) => "last_good",
            CardNoticeKind::SkillUnlisted(_) => "skill_unlisted",
            CardNoticeKind::SkillVanished(_) => "skill_vanished",
            CardNoticeKind::InterfaceDropped(_) => "interface_dropped",
            CardNoticeKind::Unproven(_) => "unproven",
        }
    }

    /// Every label.
    pub const LABELS: [&str; 6] = [
        "no_card",
        "last_good",
        "skill_unlisted",
        "skill_vanished",
        "interface_dropped",
        "unproven",
    ];
}

impl fmt::Display for CardNoticeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CardNoticeKind::NoCard(trouble) => trouble.fmt(f),
            CardNoticeKind::LastGood(_, trouble) => write!(f, "an old card is served: {trouble}"),
            CardNoticeKind::SkillUnlisted(skill) => {
                write!(
                    f,
                    "the card has skill `{skill}`, which `skills` does not list"
                )
            }
            CardNoticeKind::SkillVanished(skill) => {
                write!(f, "`skills` lists `{skill}`, which the card does not have")
            }
            CardNoticeKind::InterfaceDropped(dropped) => write!(
                f,
                "the card's interface `{}` is not published: {}",
                dropped.address,
                dropped.reason.label()
            ),
            CardNoticeKind::Unproven(attested) => {
                write!(
                    f,
                    "the card has no signature that counts: {}",
                    attested.label()
                )
            }
        }
    }
}

impl Current {
    pub(super) fn first(published: Published, now: UnixMillis) -> Current {
        Current {
            interfaces: Arc::from(published.interfaces.as_slice()),
            published: Arc::new(published),
            published_at: now,
            fetched_at: now,
            kept: None,
            upstream: Bytes::new(),
            upstream_etag: None,
            path: "".into(),
            named: Arc::default(),
        }
    }

    /// The same with another published form; an equal one keeps its date.
    pub(super) fn with(&self, published: Published, now: UnixMillis) -> Current {
        if published == *self.published {
            return self.clone();
        }
        let same_body = published.document == self.published.document;
        Current {
            interfaces: Arc::from(published.interfaces.as_slice()),
            published: Arc::new(published),
            published_at: if same_body { self.published_at } else { now },
            ..self.clone()
        }
    }
}
