//! Calls: intents joined with their outcomes, and refusals, out of a journal that is read in pieces.
//!
//! A piece is looked at alone ([`Piece`]): most outcomes stand in the piece of their intent. What is
//! left open is joined behind, in the journal's order ([`Calls`]).

use super::field::Side;
use crate::audit::record::Time;
use memchr::memmem;
use memchr::memmem::Finder;
use std::collections::HashMap;
use std::collections::{BTreeMap, VecDeque};

/// Most calls that wait behind one whose outcome is not known yet; the oldest such call then comes
/// after all others.
const HELD: usize = 65_536;

/// What bytes must hold before they are worth being read.
#[derive(Debug)]
pub struct Filter {
    needles: Vec<(Side, Vec<Finder<'static>>)>,
    since: Option<Time>,
    until: Option<Time>,
}

impl Filter {
    pub(super) fn new(
        needles: Vec<(Side, Vec<Finder<'static>>)>,
        since: Option<Time>,
        until: Option<Time>,
    ) -> Filter {
        Filter {
            needles,
            since,
            until,
        }
    }

    /// Whether a record of its own may meet the conditions.
    pub fn record(&self, members: &[u8]) -> bool {
        let mut needles = self.needles.iter();
        self.in_time(members) && needles.all(|(_, any)| has(any, members))
    }

    fn first(&self, members: &[u8], alone: bool) -> bool {
        self.in_time(members)
            && self.needles.iter().all(|(side, any)| match side {
                Side::First => has(any, members),
                Side::Either | Side::Outcome | Side::Elsewhere => !alone || has(any, members),
            })
    }

    fn both(&self, first: &[u8], outcome: &[u8]) -> bool {
        self.needles.iter().all(|(side, any)| match side {
            Side::First => true,
            Side::Outcome => has(any, outcome),
            Side::Either => has(any, first) || has(any, outcome),
            Side::Elsewhere => false,
        })
    }

    fn in_time(&self, members: &[u8]) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        // What says no time is looked at: leaving it out would hide it.
        let Some(time) = time_of(members) else {
            return true;
        };
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time < until)
    }
}

fn has(any: &[Finder<'_>], bytes: &[u8]) -> bool {
    any.iter().any(|needle| needle.find(bytes).is_some())
}

/// The kind of a record, from what stands behind `prev`.
pub fn kind_of(members: &[u8]) -> &[u8] {
    const NAME: &[u8] = br#","kind":""#;
    let rest = members.strip_prefix(NAME).unwrap_or_default();
    let end = memchr::memchr(b'"', rest).unwrap_or(0);
    rest.get(..end).unwrap_or_default()
}

/// The time of a record.
pub fn time_of(members: &[u8]) -> Option<Time> {
    // A quote inside a JSON string is escaped, so this stands nowhere but at the member.
    const NAME: &[u8] = br#","time":""#;
    let at = memmem::find(members, NAME)? + NAME.len();
    Time::parse(std::str::from_utf8(members.get(at..at + 24)?).ok()?)
}

/// Which intent an outcome belongs to.
pub fn intent_of(members: &[u8]) -> Option<u64> {
    const NAME: &[u8] = br#","intent":"#;
    let rest = members.get(memmem::find(members, NAME)? + NAME.len()..)?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit());
    std::str::from_utf8(&rest[..end.unwrap_or(rest.len())])
        .ok()?
        .parse()
        .ok()
}

/// What came of looking at a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged<T> {
    /// It meets the conditions.
    Yes(T),
    /// It does not.
    No,
    /// Its record does not hold the claim that this depends on.
    NotRecorded,
    /// It cannot be read.
    NotARecord,
}

/// Looks at a call: the line of its intent or refusal, and that of its outcome.
pub type Judge<'j, T> = dyn Fn(&[u8], Option<&[u8]>) -> Judged<T> + Sync + 'j;

/// The calls that begin in one piece of a journal.
pub struct Piece<'l, 'j, T> {
    filter: &'j Filter,
    judge: &'j Judge<'j, T>,
    /// The first sequence number of the piece.
    start: Option<u64>,
    /// Positions in `items` of intents that wait for their outcome.
    open: HashMap<u64, usize>,
    items: Vec<(u64, Item<'l, T>)>,
    /// Outcomes of intents before the piece.
    later: Vec<(u64, Vec<u8>)>,
}

enum Item<'l, T> {
    Judged(Judged<T>),
    Open(&'l [u8], &'l [u8]),
}

/// What a piece leaves.
#[derive(Debug)]
pub struct Left<T> {
    items: Vec<(u64, Begun<T>)>,
    later: Vec<(u64, Vec<u8>)>,
}

/// A call that begins in a piece.
#[derive(Debug)]
enum Begun<T> {
    Judged(Judged<T>),
    /// The line of an intent whose outcome is not there.
    Open(Vec<u8>),
}

impl<'l, 'j, T> Piece<'l, 'j, T> {
    /// Nothing yet.
    pub fn new(filter: &'j Filter, judge: &'j Judge<'j, T>) -> Piece<'l, 'j, T> {
        Piece {
            filter,
            judge,
            start: None,
            open: HashMap::new(),
            items: Vec::new(),
            later: Vec::new(),
        }
    }

    /// Takes the next record: its number, its line, and what stands there behind `prev`.
    pub fn take(&mut self, seq: u64, line: &'l [u8], members: &'l [u8]) {
        let start = *self.start.get_or_insert(seq);
        match kind_of(members) {
            b"intent" if self.filter.first(members, false) => {
                self.open.insert(seq, self.items.len());
                self.items.push((seq, Item::Open(line, members)));
            }
            b"refusal" if self.filter.first(members, true) => {
                let judged = (self.judge)(line, None);
                self.items.push((seq, Item::Judged(judged)));
            }
            b"outcome" => {
                let Some(intent) = intent_of(members) else {
                    return;
                };
                if intent < start {
                    self.later.push((intent, line.to_vec()));
                    return;
                }
                let Some(at) = self.open.remove(&intent) else {
                    return;
                };
                let Some((_, item)) = self.items.get_mut(at) else {
                    return;
                };
                if let Item::Open(first, its) = *item {
                    *item = Item::Judged(match self.filter.both(its, members) {
                        true => (self.judge)(first, Some(line)),
                        false => Judged::No,
                    });
                }
            }
            _ => {}
        }
    }

    /// No more records.
    pub fn done(self) -> Left<T> {
        let items = self.items.into_iter().filter_map(|(seq, item)| match item {
            Item::Judged(Judged::No) => None,
            Item::Judged(judged) => Some((seq, Begun::Judged(judged))),
            Item::Open(line, _) => Some((seq, Begun::Open(line.to_vec()))),
        });
        Left {
            items: items.collect(),
            later: self.later,
        }
    }
}

/// Joins pieces in the journal's order.
pub struct Calls<'j, T> {
    judge: &'j Judge<'j, T>,
    /// Intents without an outcome so far.
    open: BTreeMap<u64, Vec<u8>>,
    /// Calls in the order of their first records; `None` for those that are open.
    held: VecDeque<(u64, Option<Judged<T>>)>,
    /// Calls whose outcome came long after many other calls.
    late: Vec<Judged<T>>,
}

impl<'j, T> Calls<'j, T> {
    /// Nothing yet.
    pub fn new(judge: &'j Judge<'j, T>) -> Calls<'j, T> {
        Calls {
            judge,
            open: BTreeMap::new(),
            held: VecDeque::new(),
            late: Vec::new(),
        }
    }

    /// Takes what the next piece left, and hands over what is settled.
    pub fn join(&mut self, left: Left<T>, give: &mut dyn FnMut(u64, Judged<T>)) {
        for (intent, outcome) in left.later {
            let Some(first) = self.open.remove(&intent) else {
                continue;
            };
            let judged = (self.judge)(&first, Some(&outcome));
            match self.held.binary_search_by_key(&intent, |(seq, _)| *seq) {
                Ok(at) => {
                    if let Some((_, held)) = self.held.get_mut(at) {
                        *held = Some(judged);
                    }
                }
                Err(_) => self.late.push(judged),
            }
        }
        for (seq, item) in left.items {
            let judged = match item {
                Begun::Judged(judged) => Some(judged),
                Begun::Open(line) => {
                    self.open.insert(seq, line);
                    None
                }
            };
            self.held.push_back((seq, judged));
        }
        loop {
            match self.held.front() {
                Some((_, Some(_))) => {}
                Some((_, None)) if self.held.len() > HELD => {}
                Some((_, None)) | None => return,
            }
            if let Some((seq, Some(judged))) = self.held.pop_front() {
                give(seq, judged);
            }
        }
    }

    /// Takes the next piece of a journal that grows, and hands over calls as they end: nobody
    /// waits for one that goes on.
    pub fn join_as_they_end(&mut self, left: Left<T>, give: &mut dyn FnMut(u64, Judged<T>)) {
        for (intent, outcome) in left.later {
            if let Some(first) = self.open.remove(&intent) {
                give(intent, (self.judge)(&first, Some(&outcome)));
            }
        }
        for (seq, begun) in left.items {
            match begun {
                Begun::Judged(judged) => give(seq, judged),
                Begun::Open(line) => {
                    self.open.insert(seq, line);
                }
            }
        }
        while self.open.len() > HELD {
            self.open.pop_first();
        }
    }

    /// How many calls wait for their outcome.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// The end of the journal: what is open has no outcome. Gives how many calls come behind
    /// others that began later.
    pub fn done(mut self, give: &mut dyn FnMut(u64, Judged<T>)) -> u64 {
        let mut late = self.late;
        for (seq, judged) in self.held {
            let judged = match judged {
                Some(judged) => judged,
                None => match self.open.remove(&seq) {
                    Some(line) => (self.judge)(&line, None),
                    None => Judged::No,
                },
            };
            give(seq, judged);
        }
        late.extend(
            self.open
                .into_values()
                .map(|line| (self.judge)(&line, None)),
        );
        let told = late.len() as u64;
        for judged in late {
            give(0, judged);
        }
        told
    }
}
