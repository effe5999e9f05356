//! Joining the journal with an agent's own log by request id: who saw what the other did not.
//!
//! A request id has its own time in it, so both sides agree on what belongs to a span of time,
//! whenever they wrote about it. Memory is bounded by [`MAX_IDS`] entries of about 24 bytes.

pub mod log;

use super::record::Reached;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use ulid::Ulid;

/// Most ids that are kept; some 1.5 GB of them.
pub const MAX_IDS: usize = 1 << 26;
/// Most names of agents that are told apart.
const MAX_AGENTS: usize = 4096;
/// How long before a span of time its calls may have begun, in milliseconds: an access log tells
/// of a stream when it ends.
const BEFORE: u64 = 24 * 3_600_000;
/// How far clocks may differ, in milliseconds.
const AFTER: u64 = 3_600_000;

/// A span of time in milliseconds since the Unix epoch; the end does not belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// From here.
    pub since: u64,
    /// Up to here.
    pub until: u64,
}

impl Span {
    /// All time.
    pub const ALL: Span = Span {
        since: 0,
        until: u64::MAX,
    };

    /// Whether a moment belongs to it.
    pub fn holds(self, moment: u64) -> bool {
        (self.since..self.until).contains(&moment)
    }

    /// From where the journal must be read for it.
    pub fn journal_since(self) -> u64 {
        self.since.saturating_sub(BEFORE)
    }

    fn near(self, moment: u64) -> bool {
        moment >= self.journal_since() && moment < self.until.saturating_add(AFTER)
    }
}

/// What a record says about a request, as far as joining needs it.
#[derive(Debug, Deserialize)]
pub struct Ours<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    request_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    agent: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    target: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reached: Option<Cow<'a, str>>,
    #[serde(default)]
    attempts: Vec<serde::de::IgnoredAny>,
}

/// What became of a request, by the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Refused; nothing of it was to reach an agent.
    Refused,
    /// Forwarded, and its outcome is not there (yet).
    Open,
    /// Forwarded, and it got so far.
    Forwarded(Reached),
    /// Something that we asked for ourselves.
    Own,
    /// The journal does not know it.
    Unknown,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    agent: u16,
    state: State,
    /// How often the agent's log has it.
    seen: u8,
    inside: bool,
    /// There was more than one attempt.
    resent: bool,
}

/// Why an entry of the agent's log is nobody's whom we let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stray {
    /// It has no request id, or something that is none of ours.
    WithoutId,
    /// No journal that was given has this id.
    UnknownId,
    /// It was for another agent.
    OtherAgent,
}

impl Stray {
    /// In reports.
    pub fn label(self) -> &'static str {
        match self {
            Stray::WithoutId => "without our id",
            Stray::UnknownId => "an id that is not in the journal",
            Stray::OtherAgent => "an id of a call to another agent",
        }
    }
}

/// Which ids can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Forwarded, and not in the agent's log.
    OursOnly,
    /// In the agent's log, and not let through.
    TheirsOnly,
    /// Refused, and in the agent's log.
    RefusedButExecuted,
    /// More than once in the agent's log.
    Repeated,
    /// In the agent's log, and the journal says that nothing reached it.
    Contradicted,
}

/// An id of a report.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Listed {
    /// The request id.
    pub request_id: String,
    /// The agent's configured name.
    pub agent: String,
    /// By the journal: `refused`, or whether it reached the agent.
    pub journal: &'static str,
    /// How often the agent's log has it; 255 stands for more.
    pub seen: u8,
}

/// Calls by what the journal says of whether they reached the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Split {
    /// It says yes.
    pub yes: u64,
    /// It cannot tell.
    pub maybe: u64,
    /// It says no.
    pub no: u64,
    /// It has no outcome (yet).
    pub open: u64,
}

impl Split {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.yes + self.maybe + self.no + self.open
    }

    fn add(&mut self, state: State) {
        match state {
            State::Forwarded(Reached::Yes) => self.yes += 1,
            State::Forwarded(Reached::Maybe) => self.maybe += 1,
            State::Forwarded(Reached::No) => self.no += 1,
            State::Open => self.open += 1,
            State::Refused | State::Own | State::Unknown => {}
        }
    }
}

/// What two logs have of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Calls that both have.
    pub both: Split,
    /// Calls that only the journal has.
    pub ours_only: Split,
    /// Refused calls that the agent's log does not have, as it should be.
    pub refused: u64,
    /// Refused calls that the agent's log has.
    pub refused_but_executed: u64,
    /// Ids that the agent's log has more than once.
    pub repeated: u64,
    /// Those of them with more than one attempt of ours.
    pub resent: u64,
}

/// What two logs have, and one of them has not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Of all agents.
    #[serde(flatten)]
    pub counts: Counts,
    /// Entries of the agent's log that nobody made whom we let through.
    pub theirs_only: Strays,
    /// Our own fetches that the agent's log has.
    pub fetches: u64,
    /// Entries of the agent's log that belong to another time.
    pub outside: u64,
    /// By agent.
    pub agents: BTreeMap<String, Counts>,
}

/// Entries of an agent's log that nobody made whom we let through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Strays {
    /// Without a request id of ours.
    pub without_id: u64,
    /// With one that no journal has.
    pub unknown_id: u64,
    /// With one that was for another agent.
    pub other_agent: u64,
}

impl Strays {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.without_id + self.unknown_id + self.other_agent
    }

    fn add(&mut self, stray: Stray) {
        match stray {
            Stray::WithoutId => self.without_id += 1,
            Stray::UnknownId => self.unknown_id += 1,
            Stray::OtherAgent => self.other_agent += 1,
        }
    }
}

impl Report {
    /// Whether the agent saw something that the journal did not let through, or of which it says
    /// that nothing arrived.
    pub fn is_breached(&self) -> bool {
        let counts = &self.counts;
        self.theirs_only.total() + counts.refused_but_executed + counts.both.no > 0
    }
}

/// There are more than [`MAX_IDS`] ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

/// Joins both sides: first all of ours, then all of theirs.
pub struct Join {
    ids: HashMap<[u8; 16], Known>,
    agents: Vec<Box<str>>,
    span: Span,
    only: Option<Box<str>>,
    theirs_only: Strays,
    outside: u64,
}

/// Agents beyond the bound, and fetches of something else.
const OTHER: u16 = u16::MAX;

impl Join {
    /// For this time, and calls of one agent or of all.
    pub fn new(span: Span, only: Option<&str>) -> Join {
        Join {
            ids: HashMap::new(),
            agents: Vec::new(),
            span,
            only: only.map(Box::from),
            theirs_only: Strays::default(),
            outside: 0,
        }
    }

    /// Takes a record of the journal.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn ours(&mut self, record: &Ours<'_>) -> Result<(), TooMany> {
        let state = match &*record.kind {
            "intent" => State::Open,
            "refusal" => State::Refused,
            "fetch" => State::Own,
            "outcome" => State::Forwarded(match record.reached.as_deref() {
                Some("yes") => Reached::Yes,
                Some("no") => Reached::No,
                Some(_) | None => Reached::Maybe,
            }),
            _ => return Ok(()),
        };
        let Some(id) = record.request_id.as_deref().and_then(parse) else {
            return Ok(());
        };
        let moment = id.timestamp_ms();
        if !self.span.near(moment) {
            return Ok(());
        }
        let agent = record.agent.as_deref().or(record.target.as_deref());
        let agent = self.agent(agent.unwrap_or_default());
        let resent = record.attempts.len() > 1;
        if let Some(known) = self.ids.get_mut(&id.to_bytes()) {
            // An outcome says more than its intent.
            if known.state == State::Open {
                known.state = state;
            }
            known.resent |= resent;
            return Ok(());
        }
        self.insert(
            id,
            Known {
                agent,
                state,
                seen: 0,
                inside: self.span.holds(moment),
                resent,
            },
        )
    }

    /// Takes an entry of the agent's log with the id and the time in milliseconds that it has; says
    /// what is wrong with it.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn theirs(&mut self, id: Option<&str>, at: Option<u64>) -> Result<Option<Stray>, TooMany> {
        let Some(id) = id.and_then(parse) else {
            return Ok(self.stray(Stray::WithoutId, at));
        };
        let moment = at.unwrap_or(id.timestamp_ms());
        let Some(known) = self.ids.get_mut(&id.to_bytes()) else {
            if self.span.holds(moment) {
                let known = Known {
                    agent: OTHER,
                    state: State::Unknown,
                    seen: 1,
                    inside: true,
                    resent: false,
                };
                self.insert(id, known)?;
            }
            return Ok(self.stray(Stray::UnknownId, Some(moment)));
        };
        known.seen = known.seen.saturating_add(1);
        let known = *known;
        if known.state == State::Unknown {
            return Ok(self.stray(Stray::UnknownId, Some(moment)));
        }
        if !self.concerns(known.agent) {
            return Ok(self.stray(Stray::OtherAgent, Some(id.timestamp_ms())));
        }
        Ok(None)
    }

    fn stray(&mut self, stray: Stray, at: Option<u64>) -> Option<Stray> {
        if at.is_some_and(|at| !self.span.holds(at)) {
            self.outside += 1;
            return None;
        }
        self.theirs_only.add(stray);
        Some(stray)
    }

    fn insert(&mut self, id: Ulid, known: Known) -> Result<(), TooMany> {
        if self.ids.len() >= MAX_IDS {
            return Err(TooMany);
        }
        self.ids.insert(id.to_bytes(), known);
        Ok(())
    }

    fn agent(&mut self, name: &str) -> u16 {
        let found = self.agents.iter().position(|known| **known == *name);
        let at = found.unwrap_or_else(|| {
            if self.agents.len() < MAX_AGENTS {
                self.agents.push(name.into());
            }
            self.agents.len() - 1
        });
        match self.agents.get(at) {
            Some(known) if **known == *name => u16::try_from(at).unwrap_or(OTHER),
            Some(_) | None => OTHER,
        }
    }

    fn name(&self, agent: u16) -> &str {
        self.agents
            .get(usize::from(agent))
            .map_or("other", |name| name)
    }

    fn concerns(&self, agent: u16) -> bool {
        let only = self.only.as_deref();
        only.is_none_or(|only| self.name(agent) == only)
    }

    /// What came of it.
    pub fn report(&self) -> Report {
        let mut report = Report {
            theirs_only: self.theirs_only,
            outside: self.outside,
            ..Report::default()
        };
        let mut by_agent: Vec<Option<Counts>> = vec![None; self.agents.len() + 1];
        for known in self.ids.values() {
            if !known.inside || !self.concerns(known.agent) && known.state != State::Unknown {
                continue;
            }
            if known.state == State::Own {
                report.fetches += u64::from(known.seen > 0);
                continue;
            }
            let at = usize::from(known.agent).min(self.agents.len());
            let of_agent = by_agent[at].get_or_insert_default();
            for counts in [&mut report.counts, of_agent] {
                let seen = known.seen > 0;
                match known.state {
                    State::Refused if seen => counts.refused_but_executed += 1,
                    State::Refused => counts.refused += 1,
                    state if seen => counts.both.add(state),
                    state => counts.ours_only.add(state),
                }
                counts.repeated += u64::from(known.seen > 1);
                counts.resent += u64::from(known.seen > 1 && known.resent);
            }
        }
        for (at, counts) in by_agent.into_iter().enumerate() {
            let name = u16::try_from(at).map_or("other", |at| self.name(at));
            if let Some(counts) = counts {
                report.agents.insert(name.to_owned(), counts);
            }
        }
        report
    }

    /// The oldest ids of a kind, at most so many, and how many there are. Of `TheirsOnly` those
    /// with an id of their own that no journal has.
    pub fn list(&self, kind: Kind, most: usize) -> (Vec<Listed>, u64) {
        let mut oldest = BinaryHeap::new();
        let mut count = 0;
        for (id, known) in &self.ids {
            let concerned = self.concerns(known.agent);
            let seen = known.seen > 0;
            let wanted = match (kind, known.state) {
                (_, State::Own) => false,
                (Kind::TheirsOnly, State::Unknown) => true,
                (Kind::TheirsOnly, _) => seen && !concerned,
                (Kind::Repeated, State::Unknown) => known.seen > 1,
                (Kind::Repeated, _) => concerned && known.seen > 1,
                (Kind::RefusedButExecuted, state) => concerned && seen && state == State::Refused,
                (Kind::OursOnly, State::Refused | State::Unknown) => false,
                (Kind::OursOnly, _) => concerned && !seen,
                (Kind::Contradicted, state) => {
                    concerned && seen && state == State::Forwarded(Reached::No)
                }
            };
            if !wanted || !known.inside {
                continue;
            }
            count += 1;
            oldest.push(*id);
            if oldest.len() > most {
                oldest.pop();
            }
        }
        let ids = oldest.into_sorted_vec().into_iter();
        let listed = ids.filter_map(|id| {
            let known = self.ids.get(&id)?;
            Some(Listed {
                request_id: Ulid::from_bytes(id).to_string(),
                agent: self.name(known.agent).to_owned(),
                journal: match known.state {
                    State::Refused => "refused",
                    State::Open => "open",
                    State::Forwarded(reached) => reached.label(),
                    State::Own => "fetch",
                    State::Unknown => "-",
                },
                seen: known.seen,
            })
        });
        (listed.collect(), count)
    }
}

/// An id exactly as we write ids: the decoder takes other spellings too, and more than 128 bits.
fn parse(id: &str) -> Option<Ulid> {
    let parsed = Ulid::from_string(id).ok()?;
    (*parsed.array_to_str(&mut [0; 26]) == *id).then_some(parsed)
}

#[cfg(test)]
mod tests;
