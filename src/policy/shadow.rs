//! Shadow mode: rules that change no decision, and what they would have changed.

use super::condition::Tri;
use super::decision::{Decision, Effect};
use crate::source::instant::{end_of_day, parse_instant};
use crate::source::tree::clip;
use crate::source::{Mapping, Problem, codes};
use std::sync::Arc;

/// A rule in shadow mode, and how long it is meant to be.
#[derive(Debug)]
pub struct Shadow {
    /// Its id.
    pub rule: Arc<str>,
    /// In seconds since 1970; from then on it is expired.
    until: i64,
    /// What is wrong with it once it is expired.
    expired: Problem,
}

impl Shadow {
    pub(super) fn new(rule: Arc<str>, until: Until) -> Shadow {
        let mut expired = until.expired;
        expired.message = format!("the shadow rule `{rule}` has expired");
        Shadow {
            rule,
            until: until.at,
            expired,
        }
    }

    /// What is wrong with it at `now`, in seconds since 1970. The rule stays in shadow mode: time
    /// alone neither grants nor refuses anything.
    pub fn expired(&self, now: i64) -> Option<&Problem> {
        (self.until <= now).then_some(&self.expired)
    }
}

/// What a rule says of its mode.
#[derive(Default)]
pub(super) struct Mode {
    pub(super) shadow: bool,
    /// There, unless it has a problem, when `shadow` is true.
    pub(super) until: Option<Until>,
}

pub(super) struct Until {
    at: i64,
    expired: Problem,
}

/// Reads `mode` and `until` of a rule. A rule with problems is not used at all.
pub(super) fn mode(fields: &Mapping<'_, '_>) -> Mode {
    let (mode, until) = (fields.get("mode"), fields.get("until"));
    if let (None, Some(until)) = (&mode, &until) {
        until.error(
            codes::SHADOW,
            "`until` without `mode: shadow`: a rule in force does not expire",
            "remove it, or add `mode: shadow`",
        );
    }
    let Some(mode) = mode else {
        return Mode::default();
    };
    if mode.word(&[("shadow", ())]).is_none() {
        return Mode::default();
    }
    let Some(until) = until else {
        mode.error(
            codes::SHADOW,
            "a shadow rule without `until`",
            "add the last day on which it is meant to be shadow: `until: 2027-01-31`",
        );
        return Mode {
            shadow: true,
            until: None,
        };
    };
    let at = until.text().and_then(|text| {
        let at = end_of_day(text).or_else(|| parse_instant(text));
        if at.is_none() {
            until.error(
                codes::SHADOW,
                format!("`{}` is neither a date nor an instant", clip(text)),
                "write `2027-01-31`, or `2027-01-31T12:00:00Z`",
            );
        }
        at
    });
    let expired = until.problem(
        codes::SHADOW_EXPIRED,
        "",
        "put the rule in force by removing `mode` and `until`, remove it, or give it more time; until then it stays shadow",
    );
    Mode {
        shadow: true,
        until: at.map(|at| Until { at, expired }),
    }
}

/// What a rule in shadow mode comes to for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowResult {
    /// Its id.
    pub rule: Arc<str>,
    /// What it says.
    pub effect: Effect,
    /// Whether it is about this call and caller.
    pub result: RuleResult,
    /// The decision that it alone would have turned round, had it been in force: `Deny` for an
    /// allowed call, `Allow` for one that no rule allows.
    pub would: Option<Effect>,
}

/// What a rule comes to for a call that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleResult {
    /// It allows, or denies.
    Match,
    /// It says nothing about this caller.
    NoMatch,
    /// It cannot be known: an allow does not allow then, and a deny does deny.
    Unknown,
}

impl RuleResult {
    /// All, in the order of their declaration.
    pub const ALL: [RuleResult; 3] = [RuleResult::Match, RuleResult::NoMatch, RuleResult::Unknown];

    /// The word in records and metrics.
    pub fn label(self) -> &'static str {
        match self {
            RuleResult::Match => "match",
            RuleResult::NoMatch => "no_match",
            RuleResult::Unknown => "unknown",
        }
    }

    /// What the rule comes to for both parties of a delegated call: an allow must match for
    /// both, a deny fires for one.
    pub(super) fn with(self, other: RuleResult, effect: Effect) -> RuleResult {
        let settles = match effect {
            Effect::Allow => RuleResult::NoMatch,
            Effect::Deny => RuleResult::Match,
        };
        if self == settles || other == settles {
            settles
        } else if self == RuleResult::Unknown || other == RuleResult::Unknown {
            RuleResult::Unknown
        } else {
            self
        }
    }

    /// Whether a deny with this result fires.
    pub(super) fn fires(self) -> bool {
        match self {
            RuleResult::Match | RuleResult::Unknown => true,
            RuleResult::NoMatch => false,
        }
    }
}

impl From<Tri> for RuleResult {
    fn from(tri: Tri) -> RuleResult {
        match tri {
            Tri::True => RuleResult::Match,
            Tri::False => RuleResult::NoMatch,
            Tri::Unknown => RuleResult::Unknown,
        }
    }
}

impl Decision {
    /// Takes over the shadow results of a decision about another part of the same call, which
    /// turned this one round: what was to change there changes nothing any more.
    #[must_use]
    pub fn overruling(self, other: Decision) -> Decision {
        self.beside(other.changing_nothing())
    }

    /// The same where no rule in shadow mode alone would have turned it round.
    #[must_use]
    pub fn changing_nothing(mut self) -> Decision {
        self.shadow
            .iter_mut()
            .for_each(|result| result.would = None);
        self
    }

    /// Takes over the shadow results of a decision about another part of the same call, of which
    /// both are allowed.
    #[must_use]
    pub fn beside(mut self, other: Decision) -> Decision {
        self.shadow = self.shadow.into_iter().chain(other.shadow).collect();
        self
    }
}
