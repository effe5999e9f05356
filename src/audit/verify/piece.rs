//! One piece of a journal, looked at without its neighbours.

use super::What;
use super::line::{Required, Wrong};
use crate::audit::chain::{Chain, Checker};
use crate::audit::checkpoint::{Fault, Signed};
use crate::audit::record::Time;
use crate::audit::redact::hex;
use crate::identity::keys::KeySet;
use std::collections::BTreeSet;

/// What a piece is checked with.
#[derive(Debug)]
pub struct Means {
    /// What each kind of record must have.
    pub required: Required,
    /// The keys that are trusted; `None` to look at no signature.
    pub keys: Option<KeySet>,
    /// Records of which the hash is wanted, for external checkpoints.
    pub wanted: BTreeSet<u64>,
}

/// A place in a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The line, counting from 0 in the piece.
    pub line: u64,
    /// Bytes before it in the segment.
    pub offset: u64,
}

/// Records that follow from each other.
#[derive(Debug)]
pub struct Run {
    /// Where the chain stood before its first record, by what that says.
    pub(super) before: Chain,
    /// Where it stands after its last.
    pub(super) after: Chain,
    pub(super) first: At,
    pub(super) last: At,
    /// What happened in it, in order.
    pub(super) events: Vec<(u64, At, Event)>,
}

/// Something in a run that matters beyond its piece.
#[derive(Debug)]
pub(super) enum Event {
    Problem(What),
    Checkpoint(Box<Signed>, Result<(), Fault>),
    /// Of which process, when, and when the record before it in the piece was written.
    Opened(Box<str>, Time, Option<Time>),
    Closed,
    Journal(Box<str>),
    Intent,
    Outcome(u64),
    /// The clock was set back, by so many milliseconds.
    Back(u64),
    /// The hash of a wanted record.
    Head([u8; 32]),
}

/// A part of a piece.
#[derive(Debug)]
pub(super) enum Part {
    Run(Run),
    /// What is no record.
    Fault(At, What),
}

/// What a piece comes to.
#[derive(Debug, Default)]
pub struct Piece {
    pub(super) parts: Vec<Part>,
    pub(super) lines: u64,
    pub(super) times: Option<(Time, Time)>,
    pub(super) last_instance: Box<str>,
    pub(super) refusals: u64,
    pub(super) intents: u64,
    pub(super) outcomes: u64,
    /// It ends with a line that is not complete.
    pub(super) torn: Option<At>,
}

/// How much a clock may be set back before it is said, in milliseconds.
const BACK: u64 = 1000;

/// Looks at one line after the other.
pub struct Looking<'m> {
    means: &'m Means,
    piece: Piece,
    run: Option<(Run, Checker)>,
    /// Where the chain stood before the line that is looked at.
    previous: Chain,
    latest: Time,
    /// The time of the record before the one that is looked at.
    before: Option<Time>,
}

impl<'m> Looking<'m> {
    /// Nothing yet.
    pub fn new(means: &'m Means) -> Looking<'m> {
        Looking {
            means,
            piece: Piece::default(),
            run: None,
            previous: Chain::START,
            latest: Time(0),
            before: None,
        }
    }

    /// A line without its line feed.
    pub fn line(&mut self, at: At, line: &[u8]) {
        self.piece.lines += 1;
        let follows = match &mut self.run {
            Some((_, checker)) => {
                self.previous = checker.chain();
                checker.take(line).is_ok()
            }
            None => false,
        };
        if !follows {
            self.end_run();
            let mut checker = match Checker::before(line) {
                Ok(checker) => checker,
                Err(_) => return self.piece.parts.push(Part::Fault(at, What::NotARecord)),
            };
            let before = checker.chain();
            self.previous = before;
            // It expects exactly this line.
            if checker.take(line).is_err() {
                return self.piece.parts.push(Part::Fault(at, What::NotARecord));
            }
            let run = Run {
                before,
                after: before,
                first: at,
                last: at,
                events: Vec::new(),
            };
            self.run = Some((run, checker));
        }
        let Some((run, checker)) = &mut self.run else {
            return;
        };
        run.last = at;
        run.after = checker.chain();
        self.look(at, line);
    }

    /// What is no line: too long, or unreadable.
    pub fn fault(&mut self, at: At, what: What) {
        self.piece.lines += u64::from(!matches!(what, What::Unreadable(_)));
        self.end_run();
        self.piece.parts.push(Part::Fault(at, what));
    }

    /// The piece ends with a line that is not complete.
    pub fn torn(&mut self, at: At) {
        self.piece.lines += 1;
        self.piece.torn = Some(at);
    }

    /// No more lines.
    pub fn done(mut self) -> Piece {
        self.end_run();
        self.piece
    }

    fn end_run(&mut self) {
        if let Some((run, _)) = self.run.take() {
            self.piece.parts.push(Part::Run(run));
        }
    }

    fn event(&mut self, at: At, event: Event) {
        if let Some((run, _)) = &mut self.run {
            run.events.push((run.after.sequence(), at, event));
        }
    }

    fn look(&mut self, at: At, line: &[u8]) {
        let Some(chain) = self.run.as_ref().map(|(run, _)| run.after) else {
            return;
        };
        let seq = chain.sequence();
        if self.means.wanted.contains(&seq) {
            self.event(at, Event::Head(chain.head()));
        }
        let seen = match self.means.required.read(line) {
            Ok(seen) => seen,
            Err(Wrong::NotJson) => return self.event(at, Event::Problem(What::NotJson)),
            Err(Wrong::Lacks(name)) => {
                return self.event(at, Event::Problem(What::Lacks(name)));
            }
        };
        let (time, before) = (seen.time.unwrap_or(Time(0)), self.before);
        if let Some(time) = seen.time {
            self.before = Some(time);
            let back = self.latest.0.saturating_sub(time.0);
            if back > BACK {
                self.event(at, Event::Back(back));
            }
            self.latest = self.latest.max(time);
            let first = self.piece.times.map_or(time, |(first, _)| first);
            self.piece.times = Some((first, time));
        }
        if *self.piece.last_instance != *seen.instance {
            self.piece.last_instance = (&*seen.instance).into();
        }
        if let Some(journal) = &seen.journal {
            self.event(at, Event::Journal((&**journal).into()));
        }
        match &*seen.kind {
            "intent" => {
                self.piece.intents += 1;
                self.event(at, Event::Intent);
            }
            "outcome" => {
                self.piece.outcomes += 1;
                match seen.intent {
                    Some(intent) => self.event(at, Event::Outcome(intent)),
                    None => self.event(at, Event::Problem(What::Lacks("intent".into()))),
                }
            }
            "refusal" => {
                self.piece.refusals += 1;
                if seen.delivery != "not_attempted" {
                    let delivery = (&*seen.delivery).into();
                    self.event(at, Event::Problem(What::RefusedAndSent { delivery }));
                }
            }
            "checkpoint" => self.checkpoint(at, line),
            "note" if seen.note == "opened" => {
                let instance = (&*seen.instance).into();
                self.event(at, Event::Opened(instance, time, before));
            }
            "note" if seen.note == "closed" => self.event(at, Event::Closed),
            _ => {}
        }
    }

    fn checkpoint(&mut self, at: At, line: &[u8]) {
        let Some(signed) = Signed::of(line) else {
            return self.event(at, Event::Problem(What::Checkpoint(Fault::Form)));
        };
        let chain = self.previous;
        let head = hex(&chain.head(), &mut [0; 64]).to_owned();
        let agrees = signed.size == chain.sequence() && *signed.chain_head == *head;
        let good = match &self.means.keys {
            _ if !agrees => Err(Fault::Contradiction),
            Some(keys) => signed.verify(keys),
            None => Ok(()),
        };
        self.event(at, Event::Checkpoint(Box::new(signed), good));
    }
}
