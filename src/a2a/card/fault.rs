//! What keeps a card, or one of its interfaces, from being published.

use super::read::Unreadable;
use std::fmt;

/// An interface of the agent's card that is not published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedInterface {
    /// Its address as the card had it: for operators only.
    pub address: Box<str>,
    /// Why.
    pub reason: DropReason,
}

/// Why an interface is not published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// The gateway does not proxy its binding.
    Binding,
    /// The gateway does not proxy its version, or it names none.
    Version,
    /// Its address cannot be read.
    Address,
    /// It is not on the backend's own origin.
    Origin,
    /// Its path is not below the backend's base path, or not in canonical form.
    Path,
    /// Its address has user information, a query or a fragment.
    Query,
    /// Another interface of the card has its public path and leads elsewhere.
    PathTaken,
    /// It is in the older shape only, which no signature covers, and a signature is required.
    NotCovered,
    /// It is on an extended card and not on the public one, so no path leads to it.
    NotReachable,
    /// The card has more than 64 different paths.
    TooMany,
}

impl DropReason {
    /// For logs and records.
    pub fn label(self) -> &'static str {
        match self {
            DropReason::Binding => "binding_not_offered",
            DropReason::Version => "version_not_offered",
            DropReason::Address => "address_unreadable",
            DropReason::Origin => "foreign_origin",
            DropReason::Path => "path_outside_base",
            DropReason::Query => "address_with_query",
            DropReason::PathTaken => "path_taken",
            DropReason::NotCovered => "not_covered",
            DropReason::NotReachable => "not_reachable",
            DropReason::TooMany => "too_many",
        }
    }
}

/// Why a card is withheld.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardFault {
    /// Not UTF-8 JSON.
    NotJson,
    /// A member occurs twice in one object.
    DuplicateMember,
    /// Nested deeper than 64.
    TooDeep,
    /// Not an object with a name and an address (FC-17).
    NotACard,
    /// A member that must be understood has another type; names it.
    WrongType(&'static str),
    /// Not one clear protobuf message.
    NotProto,
    /// A member has a type that no signature of ours could cover.
    Unsignable,
    /// No interface is left.
    NoInterface(Vec<DroppedInterface>),
}

impl CardFault {
    /// For records and metrics.
    pub fn label(&self) -> &'static str {
        match self {
            CardFault::NotJson => "not_json",
            CardFault::DuplicateMember => "duplicate_member",
            CardFault::TooDeep => "too_deep",
            CardFault::NotACard => "not_a_card",
            CardFault::WrongType(_) => "wrong_type",
            CardFault::NotProto => "not_protobuf",
            CardFault::Unsignable => "unsignable",
            CardFault::NoInterface(_) => "no_interface",
        }
    }
}

impl fmt::Display for CardFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CardFault::NotJson => f.write_str("the agent's card is not JSON in UTF-8"),
            CardFault::DuplicateMember => {
                f.write_str("the agent's card has a member twice in one object")
            }
            CardFault::TooDeep => f.write_str("the agent's card is nested deeper than 64"),
            CardFault::NotACard => f.write_str(
                "the agent's reply is not a card: it must be an object with `name` and \
                 `supportedInterfaces` or `url`",
            ),
            CardFault::WrongType(name) => {
                write!(f, "`{name}` in the agent's card has the wrong type")
            }
            CardFault::NotProto => f.write_str("the agent's card is not one clear protobuf message"),
            CardFault::Unsignable => f.write_str(
                "the agent's card cannot be signed: a member has another type or spelling than in 1.0",
            ),
            CardFault::NoInterface(dropped) if dropped.is_empty() => f.write_str(
                "none of the listed `interfaces` has a version of the shape of the agent's card",
            ),
            CardFault::NoInterface(dropped) => {
                f.write_str("the agent's card has no interface that can be offered")?;
                for one in dropped.iter().take(SAID) {
                    write!(f, "; `{}`: {}", one.address, one.reason.label())?;
                }
                if let Some(more) = dropped.len().checked_sub(SAID).filter(|more| *more > 0) {
                    write!(f, "; and {more} more")?;
                }
                f.write_str("; list them under `interfaces` if they lead to this backend")
            }
        }
    }
}

impl From<Unreadable> for CardFault {
    fn from(unreadable: Unreadable) -> CardFault {
        match unreadable {
            Unreadable::NotJson => CardFault::NotJson,
            Unreadable::DuplicateMember => CardFault::DuplicateMember,
            Unreadable::TooDeep => CardFault::TooDeep,
        }
    }
}

/// How many interfaces an error names.
const SAID: usize = 5;
