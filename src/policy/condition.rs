//! Conditions on claims, three-valued.
//!
//! A comparison with anything but a value of the declared type is [`Tri::Unknown`] (PR-3), and
//! nothing here turns an unknown into a false early (PR-5): what an unknown means is up to the
//! rule. Nothing is converted (PR-4) and everything is compared byte for byte (PR-6).

use super::content::ContentTest;
use super::decision::why;
use super::glob::Glob;
use super::index::RuleIssuers;
use crate::identity::issuer::ClaimKind;
use crate::identity::{ClaimState, ClaimValue, Principal};
use std::sync::Arc;

/// True, false, or not known (Kleene's strong logic).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tri {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can tell.
    Unknown,
}

impl Tri {
    /// Both together: false beats unknown, unknown beats true.
    pub(super) fn and(self, other: Tri) -> Tri {
        match (self, other) {
            (Tri::False, _) | (_, Tri::False) => Tri::False,
            (Tri::Unknown, _) | (_, Tri::Unknown) => Tri::Unknown,
            (Tri::True, Tri::True) => Tri::True,
        }
    }

    /// Its name.
    pub fn label(self) -> &'static str {
        match self {
            Tri::True => "true",
            Tri::False => "false",
            Tri::Unknown => "unknown",
        }
    }
}

impl From<bool> for Tri {
    fn from(value: bool) -> Tri {
        if value { Tri::True } else { Tri::False }
    }
}

/// Why a test is not true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Missing,
    Null,
    WrongType,
    ValueDiffers,
    Oversize,
    Ambiguous,
}

impl Why {
    /// The code in decisions and records.
    pub(super) fn code(self) -> &'static str {
        match self {
            Why::Missing => why::MISSING,
            Why::Null => why::NULL,
            Why::WrongType => why::WRONG_TYPE,
            Why::ValueDiffers => why::VALUE_DIFFERS,
            Why::Oversize => why::OVERSIZE,
            Why::Ambiguous => why::AMBIGUOUS,
        }
    }
}

/// Tests, all of which must hold. Without one it holds always.
#[derive(Debug, Default)]
pub(super) struct Condition {
    /// On different claims: what depends on the token alone.
    pub(super) claims: Box<[Test]>,
    /// On the content of the message.
    pub(super) content: Box<[ContentTest]>,
}

/// One matcher on one claim.
#[derive(Debug)]
pub(super) struct Test {
    /// The claim's name in policies.
    pub(super) claim: Arc<str>,
    pub(super) source: Source,
    pub(super) matcher: Matcher,
    /// `if_missing: no_match`: false, not unknown, without the claim (PR-3b).
    pub(super) missing_is_false: bool,
}

/// Where a claim stands in a [`Principal`].
#[derive(Debug)]
pub(super) enum Source {
    /// Among the declared claims; by position of the issuer. `None`: not declared there.
    Declared(Box<[Option<usize>]>),
    Reserved(Reserved),
}

/// Claims that policies know without a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reserved {
    Subject,
    Client,
    Actor,
    Scopes,
    Proof,
    Delegated,
}

impl Reserved {
    pub(super) fn named(name: &str) -> Option<Reserved> {
        Some(match name {
            "sub" => Reserved::Subject,
            "client_id" => Reserved::Client,
            "actor_sub" => Reserved::Actor,
            "scopes" => Reserved::Scopes,
            "proof" => Reserved::Proof,
            "delegated" => Reserved::Delegated,
            _ => return None,
        })
    }

    pub(super) fn kind(self) -> ClaimKind {
        match self {
            Reserved::Subject | Reserved::Client | Reserved::Actor | Reserved::Proof => {
                ClaimKind::String
            }
            Reserved::Scopes => ClaimKind::SpaceString,
            Reserved::Delegated => ClaimKind::Boolean,
        }
    }

    /// Whether every accepted token has it.
    pub(super) fn is_always_there(self) -> bool {
        match self {
            Reserved::Subject | Reserved::Proof | Reserved::Delegated => true,
            Reserved::Client | Reserved::Actor | Reserved::Scopes => false,
        }
    }

    fn found(self, principal: &Principal, party: Party) -> Found<'_> {
        match self {
            Reserved::Subject => match party {
                Party::Subject => Found::Text(&principal.subject),
                Party::Actor => actor(principal),
            },
            Reserved::Client => match &principal.client {
                Some(client) => Found::Text(client),
                None => Found::Missing,
            },
            Reserved::Actor => actor(principal),
            // No scope and no scope claim look alike; missing is the reading that grants less.
            Reserved::Scopes if principal.scopes.is_empty() => Found::Missing,
            Reserved::Scopes => Found::Texts(&principal.scopes),
            // A request that does not prove it never gets here (SC-5).
            Reserved::Proof => Found::Text(principal.confirmation.kind().label()),
            Reserved::Delegated => Found::Boolean(!principal.actors.is_empty()),
        }
    }
}

/// The outermost actor. One of another issuer is there, but its name cannot be compared with names
/// of ours (IS-6): a wrong type, which no `if_missing` lifts.
fn actor(principal: &Principal) -> Found<'_> {
    match principal.actors.first() {
        None => Found::Missing,
        Some(actor) if actor.issuer.is_some() => Found::WrongType,
        Some(actor) => Found::Text(&actor.subject),
    }
}

/// For whom a condition is asked. A delegated call must be allowed to both parties (GR-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Party {
    /// The subject of the token.
    Subject,
    /// Who acts for it: `sub` is then the actor's. All else that the token says is the same.
    Actor,
}

impl Party {
    /// A condition that names the actor speaks of the delegation as it is, so it holds for both.
    pub(super) fn within(self, tests: &[Test]) -> Party {
        match self {
            Party::Actor if !names_actor(tests) => Party::Actor,
            Party::Actor | Party::Subject => Party::Subject,
        }
    }
}

/// Whether one of the tests is about who acts for the subject.
pub(super) fn names_actor(tests: &[Test]) -> bool {
    let is_actor = |test: &Test| matches!(test.source, Source::Reserved(Reserved::Actor));
    tests.iter().any(is_actor)
}

/// What stands under a claim (PR-2).
#[derive(Clone, Copy)]
pub(super) enum Found<'p> {
    Text(&'p str),
    Number(f64),
    Boolean(bool),
    Texts(&'p [Box<str>]),
    Missing,
    Null,
    WrongType,
}

/// A matcher with its operands. Lists are sorted.
#[derive(Debug, PartialEq)]
pub(super) enum Matcher {
    EqualsText(Box<str>),
    EqualsNumber(f64),
    EqualsBoolean(bool),
    AnyOf(Box<[Box<str>]>),
    Intersects(Box<[Box<str>]>),
    AllOf(Box<[Box<str>]>),
    Contains(Box<str>),
    Matches(Glob),
    Exists(bool),
    Greater(f64),
    GreaterOrEqual(f64),
    Less(f64),
    LessOrEqual(f64),
    Between(f64, f64),
}

impl Test {
    /// How it comes out for a token, and why it is not true.
    fn of(&self, principal: &Principal, party: Party) -> (Tri, Why) {
        let found = self.found(principal, party);
        let why = match found {
            Found::Missing => Why::Missing,
            Found::Null => Why::Null,
            Found::WrongType => Why::WrongType,
            Found::Text(_) | Found::Number(_) | Found::Boolean(_) | Found::Texts(_) => {
                Why::ValueDiffers
            }
        };
        if let Matcher::Exists(wanted) = self.matcher {
            // Two-valued: a value of another type is there all the same (PR-3).
            let exists = !matches!(found, Found::Missing | Found::Null);
            return (Tri::from(exists == wanted), why);
        }
        match self.matcher.compare(found) {
            Some(holds) => (Tri::from(holds), why),
            None if self.missing_is_false && why == Why::Missing => (Tri::False, why),
            // A value that the matcher cannot compare is of another type than was declared.
            None if why == Why::ValueDiffers => (Tri::Unknown, Why::WrongType),
            None => (Tri::Unknown, why),
        }
    }

    fn found<'p>(&self, principal: &'p Principal, party: Party) -> Found<'p> {
        let state = match &self.source {
            Source::Reserved(reserved) => return reserved.found(principal, party),
            Source::Declared(by_issuer) => by_issuer
                .get(principal.issuer_index)
                .copied()
                .flatten()
                .and_then(|i| principal.claims.get(i)),
        };
        match state {
            None | Some(ClaimState::Missing) => Found::Missing,
            Some(ClaimState::Null) => Found::Null,
            Some(ClaimState::WrongType) => Found::WrongType,
            Some(ClaimState::Value(ClaimValue::String(text))) => Found::Text(text),
            Some(ClaimState::Value(ClaimValue::Number(number))) => Found::Number(*number),
            Some(ClaimState::Value(ClaimValue::Boolean(boolean))) => Found::Boolean(*boolean),
            Some(ClaimState::Value(ClaimValue::Strings(texts))) => Found::Texts(texts),
        }
    }

    /// The claim that an explanation names.
    pub(super) fn told(&self, party: Party) -> Arc<str> {
        match (&self.source, party) {
            (Source::Reserved(Reserved::Subject), Party::Actor) => "actor_sub".into(),
            (Source::Reserved(_) | Source::Declared(_), Party::Subject | Party::Actor) => {
                Arc::clone(&self.claim)
            }
        }
    }

    /// Whether a token of one of `issuers` can have this claim.
    pub(super) fn uses(&self, issuer: usize, issuers: &RuleIssuers) -> Option<usize> {
        match &self.source {
            Source::Declared(by_issuer) if issuers.contains(issuer) => {
                by_issuer.get(issuer).copied().flatten()
            }
            Source::Declared(_) | Source::Reserved(_) => None,
        }
    }
}

impl Matcher {
    /// `None` when there is nothing that can be compared.
    pub(super) fn compare(&self, found: Found<'_>) -> Option<bool> {
        let number = match found {
            // A number that is none compares with nothing.
            Found::Number(n) if !n.is_nan() => Some(n),
            _ => None,
        };
        let text = match found {
            Found::Text(text) => Some(text),
            _ => None,
        };
        let texts = match found {
            Found::Texts(texts) => Some(texts),
            _ => None,
        };
        match self {
            Matcher::EqualsText(wanted) => text.map(|t| *t == **wanted),
            // Both are exact: a policy's number is within the integers of a double.
            #[allow(clippy::float_cmp)]
            Matcher::EqualsNumber(wanted) => number.map(|n| n == *wanted),
            Matcher::EqualsBoolean(wanted) => match found {
                Found::Boolean(boolean) => Some(boolean == *wanted),
                _ => None,
            },
            Matcher::AnyOf(wanted) => text.map(|t| has(wanted, t)),
            Matcher::Intersects(wanted) => texts.map(|all| all.iter().any(|t| has(wanted, t))),
            Matcher::AllOf(wanted) => texts.map(|all| wanted.iter().all(|w| all.contains(w))),
            Matcher::Contains(wanted) => texts.map(|all| all.contains(wanted)),
            Matcher::Matches(glob) => text.map(|t| glob.matches(t)),
            Matcher::Exists(_) => None,
            Matcher::Greater(bound) => number.map(|n| n > *bound),
            Matcher::GreaterOrEqual(bound) => number.map(|n| n >= *bound),
            Matcher::Less(bound) => number.map(|n| n < *bound),
            Matcher::LessOrEqual(bound) => number.map(|n| n <= *bound),
            Matcher::Between(low, high) => number.map(|n| *low <= n && n <= *high),
        }
    }
}

impl Matcher {
    /// As a policy writes it.
    pub(super) fn told(&self) -> String {
        let list = |values: &[Box<str>]| values.join(", ");
        match self {
            Matcher::EqualsText(value) => format!("equals {value}"),
            Matcher::EqualsNumber(value) => format!("equals {value}"),
            Matcher::EqualsBoolean(value) => format!("equals {value}"),
            Matcher::AnyOf(values) | Matcher::Intersects(values) => {
                format!("any_of {}", list(values))
            }
            Matcher::AllOf(values) => format!("all_of {}", list(values)),
            Matcher::Contains(value) => format!("contains {value}"),
            Matcher::Matches(glob) => format!("matches {}", glob.filled("*")),
            Matcher::Exists(value) => format!("exists {value}"),
            Matcher::Greater(bound) => format!("gt {bound}"),
            Matcher::GreaterOrEqual(bound) => format!("gte {bound}"),
            Matcher::Less(bound) => format!("lt {bound}"),
            Matcher::LessOrEqual(bound) => format!("lte {bound}"),
            Matcher::Between(low, high) => format!("between {low} and {high}"),
        }
    }
}

fn has(sorted: &[Box<str>], text: &str) -> bool {
    sorted.binary_search_by(|w| (**w).cmp(text)).is_ok()
}

/// All tests together: false beats unknown, unknown beats true.
pub(super) fn evaluate(tests: &[Test], principal: &Principal, party: Party) -> Tri {
    let party = party.within(tests);
    let mut all = Tri::True;
    for test in tests {
        match test.of(principal, party).0 {
            Tri::False => return Tri::False,
            Tri::Unknown => all = Tri::Unknown,
            Tri::True => {}
        }
    }
    all
}

/// Every test, for whom it was asked, what it comes to, and why that is if it is not true.
pub(super) fn results<'t>(
    tests: &'t [Test],
    principal: &Principal,
    party: Party,
) -> impl Iterator<Item = (&'t Test, Party, Tri, Why)> {
    let party = party.within(tests);
    tests.iter().map(move |test| {
        let (tri, why) = test.of(principal, party);
        (test, party, tri, why)
    })
}

/// The tests that are not true, for whom they were asked, and why.
pub(super) fn failing<'t>(
    tests: &'t [Test],
    principal: &Principal,
    party: Party,
) -> impl Iterator<Item = (&'t Test, Party, Why)> {
    let open = |(test, party, tri, why)| (tri != Tri::True).then_some((test, party, why));
    results(tests, principal, party).filter_map(open)
}
