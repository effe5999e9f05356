//! Finding the calls or records of a journal that meet conditions.

use super::read::{Fault, Place};
use super::scan::walk::{Edges, Seams, Walk};
use super::scan::{BLOCK, Block, Segment, each, within};
use crate::audit::query::calls::{Calls, Judged, Left, Piece};
use crate::audit::query::read::Row;
use crate::audit::query::{Query, Truth};
use std::ops::ControlFlow;

/// What to look for, and how.
#[derive(Debug)]
pub struct Search<'q> {
    /// The conditions.
    pub query: &'q Query,
    /// Look at each record by itself, and not at calls.
    pub records: bool,
    /// On how many threads.
    pub threads: usize,
}

/// What a search tells as it goes.
#[derive(Debug)]
pub enum Told<'t, T> {
    /// Something that meets the conditions, in the journal's order.
    Found(T),
    /// The journal has something else than a record at this place.
    Fault(&'t Place, &'t Fault),
    /// The record of this number is not JSON.
    NotARecord(u64),
    /// How many bytes were read so far.
    Progress(u64),
}

/// What else came of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Searched {
    /// Calls of which the record does not hold the claim that it depends on.
    pub not_recorded: u64,
    /// Places with something else than the next record.
    pub faults: u64,
    /// Calls that were given behind later ones, since their outcome came so late.
    pub late: u64,
}

/// Makes what is given out of a call's first record, its outcome, and what was read of them.
pub type Make<'m, T> = dyn Fn(&[u8], Option<&[u8]>, &Row) -> T + Sync + 'm;
/// Takes what is told; may break off.
pub type Take<'t, T> = dyn FnMut(Told<'_, T>) -> ControlFlow<()> + 't;

impl Search<'_> {
    /// Looks through `segments`, all of a journal.
    pub fn run<T: Send>(
        &self,
        segments: &[Segment],
        make: &Make<'_, T>,
        take: &mut Take<'_, T>,
    ) -> Searched {
        let window = within(segments, self.query.since, self.query.until);
        let behind = window.end - window.start;
        let segments = segments.get(window.start..).unwrap_or_default();
        let filter = self.query.filter();
        let judge = |first: &[u8], outcome: Option<&[u8]>| {
            let Ok(row) = self.query.projection.read(first, outcome) else {
                return Judged::NotARecord;
            };
            match self.query.judge(&row) {
                Truth::Yes => Judged::Yes(make(first, outcome, &row)),
                Truth::No => Judged::No,
                Truth::NotRecorded => Judged::NotRecorded,
            }
        };
        let work = |block: Block<'_>| {
            let mut walk = Walk::new(block);
            if !self.records {
                let mut piece = Piece::new(&filter, &judge);
                for raw in walk.by_ref() {
                    piece.take(raw.seq, raw.line, raw.members);
                }
                return (Looked::Calls(piece.done()), walk.done());
            }
            let mut found = Vec::new();
            for raw in walk.by_ref() {
                if filter.record(raw.members) {
                    match judge(raw.line, None) {
                        Judged::No => {}
                        judged => found.push((raw.seq, judged)),
                    }
                }
            }
            (Looked::Records(found), walk.done())
        };
        let mut state = State::default();
        let mut calls = Calls::new(&judge);
        let mut seams = Seams::default();
        let mut on = |segment: usize, (looked, edges): (Looked<T>, Edges)| {
            if segment >= behind && calls.open() == 0 {
                return ControlFlow::Break(());
            }
            seams.join(segment, edges, segments, &mut |place, fault| {
                state.searched.faults += 1;
                state.tell(Told::Fault(place, fault), take);
            });
            match looked {
                Looked::Records(found) => {
                    for (seq, judged) in found {
                        state.give(seq, judged, take);
                    }
                }
                Looked::Calls(left) => {
                    calls.join(left, &mut |seq, judged| state.give(seq, judged, take));
                }
            }
            state.read += BLOCK;
            let read = state.read;
            state.tell(Told::Progress(read), take);
            if state.off {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        each(segments, self.threads, &work, &mut on);
        if !state.off {
            let late = calls.done(&mut |seq, judged| state.give(seq, judged, take));
            state.searched.late = late;
        }
        state.searched
    }
}

/// What was found in one block.
enum Looked<T> {
    Records(Vec<(u64, Judged<T>)>),
    Calls(Left<T>),
}

#[derive(Default)]
struct State {
    searched: Searched,
    read: u64,
    off: bool,
}

impl State {
    fn tell<T>(&mut self, told: Told<'_, T>, take: &mut Take<'_, T>) {
        if !self.off {
            self.off = take(told).is_break();
        }
    }

    fn give<T>(&mut self, seq: u64, judged: Judged<T>, take: &mut Take<'_, T>) {
        match judged {
            Judged::Yes(found) => self.tell(Told::Found(found), take),
            Judged::No => {}
            Judged::NotRecorded => self.searched.not_recorded += 1,
            Judged::NotARecord => {
                self.searched.faults += 1;
                self.tell(Told::NotARecord(seq), take);
            }
        }
    }
}
