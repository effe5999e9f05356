//! What [`compare`](super::compare) found, gathered by agent and rule.

use super::super::decide::{Asked, AskedSkill};
use super::super::decision::Decision;
use super::super::explain::explain;
use super::super::index::Rule;
use super::Side;
use super::caller::Caller;
use super::webhooks::HostChange;
use crate::identity::issuer::Grant;
use crate::identity::{ClaimState, ClaimValue, ProofKind};
use aws_lc_rs::digest::{SHA256, digest};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

/// Which way a decision turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From refused to allowed.
    Allowed,
    /// From allowed to refused.
    Refused,
}

/// What kind of rule makes the difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An allow, and whether the other side has a rule of that name.
    Allow {
        /// Whether it does.
        there: bool,
    },
    /// A deny, and the same.
    Deny {
        /// Whether it does.
        there: bool,
    },
}

/// Calls that become allowed, or refused, by one rule of one agent.
#[derive(Debug, Clone)]
pub struct Change {
    /// Stands for this change and no other: whoever changes any of the rules involved changes it.
    pub id: Box<str>,
    /// Which way.
    pub direction: Direction,
    /// The agent.
    pub agent: Box<str>,
    /// The rule.
    pub rule: Arc<str>,
    /// What became of that rule.
    pub kind: Kind,
    /// Operations, by their names; `backend` for the backend surface.
    pub operations: Vec<&'static str>,
    /// Skills of messages; `None` stands for one that cannot be established.
    pub skills: Vec<Option<Box<str>>>,
    /// Issuers of the callers.
    pub issuers: Vec<Arc<str>>,
    /// Grants of the callers.
    pub grants: Vec<Grant>,
    /// Somebody who shows it.
    pub witness: Witness,
}

/// A caller, a call, and both decisions.
#[derive(Debug, Clone)]
pub struct Witness {
    /// The caller.
    pub caller: Caller,
    /// The operation.
    pub operation: &'static str,
    /// The skill of a message; `None` for one that cannot be established, and for other calls.
    pub skill: Option<Box<str>>,
    /// Whether it is a message.
    pub message: bool,
    /// The decision before.
    pub old: Decision,
    /// The decision after.
    pub new: Decision,
}

/// A difference that there may be.
#[derive(Debug, Clone)]
pub struct Undecided {
    /// As for a [`Change`].
    pub id: Box<str>,
    /// The agent.
    pub agent: Box<str>,
    /// The rule that may make the difference.
    pub rule: Arc<str>,
    /// Operations that it is about.
    pub operations: Vec<&'static str>,
    /// Why it is not decided.
    pub why: &'static str,
}

/// An issuer whose entry takes something else from the same token: its claims, their paths and
/// types, or what gives a grant. Who its callers then are cannot be compared.
#[derive(Debug, Clone)]
pub struct IssuerChange {
    /// As for a [`Change`].
    pub id: Box<str>,
    /// The entry's name.
    pub issuer: Box<str>,
}

/// Everything that changes.
#[derive(Debug, Clone, Default)]
pub struct Difference {
    /// What becomes allowed, then what becomes refused, by agent and rule.
    pub changes: Vec<Change>,
    /// Where the search ended before it was decided. Counts as allowed.
    pub undecided: Vec<Undecided>,
    /// Hosts to which webhooks become allowed or refused.
    pub hosts: Vec<HostChange>,
    /// Issuers whose entries take something else from the same token. Counts as allowed.
    pub issuers: Vec<IssuerChange>,
    /// Rules in shadow mode that are new, gone or different: in words.
    pub shadows: Vec<String>,
}

impl Difference {
    /// The ids of everything that becomes allowed, or may.
    pub fn widening(&self) -> impl Iterator<Item = &str> {
        let allowed = |direction: Direction| direction == Direction::Allowed;
        let changes = self.changes.iter().filter(move |c| allowed(c.direction));
        let hosts = self.hosts.iter().filter(move |h| allowed(h.direction));
        changes
            .map(|c| &*c.id)
            .chain(self.undecided.iter().map(|u| &*u.id))
            .chain(hosts.map(|h| &*h.id))
            .chain(self.issuers.iter().map(|i| &*i.id))
    }
}

/// A call.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) agent: &'a str,
    pub(super) asked: Asked,
    pub(super) skill: AskedSkill<'a>,
}

impl Place<'_> {
    fn operation(&self) -> &'static str {
        match self.asked {
            Asked::Operation(operation) => operation.name(),
            Asked::Backend => "backend",
        }
    }

    fn skill(&self) -> Option<Box<str>> {
        match self.skill {
            AskedSkill::Known(skill) => Some(skill.into()),
            AskedSkill::NotAMessage | AskedSkill::Unknown => None,
        }
    }
}

/// A caller with both decisions, or why there is none.
type Shown = Result<(Caller, Decision, Decision), &'static str>;
/// The rules of both sides, allows and denies, in words.
pub(super) type Said = [[Vec<String>; 2]; 2];

/// Findings by agent and rule.
#[derive(Default)]
pub(super) struct Collected<'a> {
    changes: BTreeMap<(Direction, &'a str, Arc<str>, Kind), Gathered>,
    undecided: BTreeMap<(&'a str, Arc<str>, &'static str), Gathered>,
}

#[derive(Default)]
struct Gathered {
    operations: Vec<&'static str>,
    skills: BTreeSet<Option<Box<str>>>,
    issuers: BTreeSet<Arc<str>>,
    grants: BTreeSet<Grant>,
    /// What the id is made of.
    said: BTreeSet<String>,
    witness: Option<Witness>,
}

impl<'a> Collected<'a> {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn add(
        &mut self,
        direction: Direction,
        kind: Kind,
        rule: &Rule,
        place: Place<'a>,
        said: Said,
        caller: (&Arc<str>, Grant),
        shown: Shown,
    ) {
        let rule = Arc::clone(&rule.id);
        let (gathered, witness) = match shown {
            Ok((caller, old, new)) => {
                let key = (direction, place.agent, rule, kind);
                let witness = Witness {
                    caller,
                    operation: place.operation(),
                    skill: place.skill(),
                    message: place.skill != AskedSkill::NotAMessage,
                    old,
                    new,
                };
                (self.changes.entry(key).or_default(), Some(witness))
            }
            Err(why) => {
                let key = (place.agent, rule, why);
                (self.undecided.entry(key).or_default(), None)
            }
        };
        gathered.witness = gathered.witness.take().or(witness);
        if !gathered.operations.contains(&place.operation()) {
            gathered.operations.push(place.operation());
        }
        if place.skill != AskedSkill::NotAMessage {
            gathered.skills.insert(place.skill());
        }
        gathered.issuers.insert(Arc::clone(caller.0));
        gathered.grants.insert(caller.1);
        let skill = place.skill();
        let call = (place.operation(), skill, caller.0, caller.1);
        gathered.said.insert(format!("{call:?} {said:?}"));
    }

    pub(super) fn difference(self, old: &Side<'_>, new: &Side<'_>) -> Difference {
        let changes = self.changes.into_iter().filter_map(|(key, gathered)| {
            let (direction, agent, rule, kind) = key;
            Some(Change {
                id: id(&(direction, agent, &rule, kind, &gathered.said)),
                direction,
                agent: agent.into(),
                rule,
                kind,
                operations: gathered.operations,
                skills: gathered.skills.into_iter().collect(),
                issuers: gathered.issuers.into_iter().collect(),
                grants: gathered.grants.into_iter().collect(),
                witness: gathered.witness?,
            })
        });
        let undecided = self
            .undecided
            .into_iter()
            .map(|((agent, rule, why), g)| Undecided {
                id: id(&("undecided", agent, &rule, why, &g.said)),
                agent: agent.into(),
                rule,
                operations: g.operations,
                why: match why {
                    super::search::BOUND => "the bound of combinations was hit",
                    super::search::CLASSES => {
                        "its values could not all be told apart within the bound"
                    }
                    super::search::NO_TOKEN => {
                        "it depends on what a message says, or on a caller that no token can state"
                    }
                    "issuer" => "the issuer's entry reads tokens differently",
                    _ => "the caller that was found shows it for another call",
                },
            });
        Difference {
            changes: changes.collect(),
            undecided: undecided.collect(),
            hosts: Vec::new(),
            issuers: Vec::new(),
            shadows: super::rules::shadows(old, new),
        }
    }
}

/// 128 bits of SHA-256, so that nobody can make another change that has the same.
pub(in crate::policy) fn id(of: &dyn std::fmt::Debug) -> Box<str> {
    let hash = digest(
        &SHA256,
        format!("portcullis difference 1 {of:?}").as_bytes(),
    );
    let mut text = String::with_capacity(32);
    for byte in hash.as_ref().iter().take(16) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.into()
}

impl Change {
    /// What became of the rule, in words.
    pub fn cause(&self) -> &'static str {
        match (self.direction, self.kind) {
            (Direction::Allowed, Kind::Allow { there: false }) => "a new allow",
            (Direction::Allowed, Kind::Allow { there: true }) => "this allow is wider",
            (Direction::Allowed, Kind::Deny { there: false }) => "this deny is gone",
            (Direction::Allowed, Kind::Deny { there: true }) => "this deny is narrower",
            (Direction::Refused, Kind::Allow { there: false }) => "this allow is gone",
            (Direction::Refused, Kind::Allow { there: true }) => "this allow is narrower",
            (Direction::Refused, Kind::Deny { there: false }) => "a new deny",
            (Direction::Refused, Kind::Deny { there: true }) => "this deny is wider",
        }
    }
}

impl Witness {
    /// The caller, the call and both decisions, as sentences.
    pub fn sentence(&self, agent: &str) -> String {
        let mut text = format!("{}, asking `{agent}` for {}", self.caller, self.operation);
        match (&self.skill, self.message) {
            // Writing to a string cannot fail.
            (Some(skill), _) => drop(write!(text, " of skill `{skill}`")),
            (None, true) => text.push_str(" of a skill that cannot be established"),
            (None, false) => {}
        }
        format!(
            "{text}: before, {}; now, {}",
            explain(&self.old),
            explain(&self.new)
        )
    }
}

impl std::fmt::Display for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a token of `{}` with {}",
            self.issuer,
            grant_words(self.grant)
        )?;
        for (name, state) in &self.claims {
            match state {
                ClaimState::Missing => write!(f, ", without `{name}`")?,
                ClaimState::Null => write!(f, ", with `{name}` null")?,
                ClaimState::WrongType => write!(f, ", with `{name}` of another type")?,
                ClaimState::Value(value) => write!(f, ", with `{name}` {}", shown(value))?,
            }
        }
        if *self.subject != *Caller::SUBJECT {
            write!(f, ", for subject {:?}", self.subject)?;
        }
        match self.client.as_deref() {
            Some(Caller::CLIENT) => {}
            Some(client) => write!(f, ", of client {client:?}")?,
            None => f.write_str(", without a client")?,
        }
        if !self.scopes.is_empty() {
            write!(f, ", with scopes {:?}", self.scopes.join(" "))?;
        }
        match &self.actor {
            Some(actor) if actor.issuer.is_some() => {
                f.write_str(", with an actor of another issuer")?
            }
            Some(actor) => write!(f, ", with actor {:?}", actor.subject)?,
            None => {}
        }
        match self.proof {
            ProofKind::None => Ok(()),
            proof => write!(f, ", bound by {}", proof.label()),
        }
    }
}

fn shown(value: &ClaimValue) -> String {
    match value {
        ClaimValue::String(text) => format!("{text:?}"),
        ClaimValue::Number(number) => number.to_string(),
        ClaimValue::Boolean(flag) => flag.to_string(),
        ClaimValue::Strings(all) => format!("{all:?}"),
    }
}

fn grant_words(grant: Option<Grant>) -> &'static str {
    match grant {
        None => "no grant",
        Some(Grant::Agent) => "the agent grant",
        Some(Grant::Full) => "the full grant",
    }
}
