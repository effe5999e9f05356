//! Pieces of a journal, put together in its order.

use super::piece::{At, Event, Means, Part, Piece, Run};
use super::report::{Checkpoints, External, Instance, Report, Stretch};
use super::{Place, Problem, What};
use crate::audit::chain::Chain;
use crate::audit::checkpoint::Signed;
use crate::audit::record::Time;
use crate::audit::redact::hex;
use std::collections::{BTreeMap, BTreeSet};

/// Most problems, runs and instances that are told one by one; the rest is counted.
const TOLD: usize = 100;

/// Puts pieces together and says what they come to.
pub struct Verifier<'m> {
    means: &'m Means,
    external: Vec<Signed>,
    /// Where the chain stands before the first record that is expected.
    beginning: Chain,
    segment: Box<str>,
    /// Lines of the segment before the next piece.
    lines: u64,
    chain: Option<Chain>,
    last: Place,
    /// The run that is going on.
    stretch: Option<Stretch>,
    /// Which problem waits for a checkpoint that says which of two records was changed.
    undecided: Option<usize>,
    torn: Option<Place>,
    latest: Time,
    journal: Option<Box<str>>,
    open: BTreeSet<u64>,
    intents: Bits,
    heads: BTreeMap<u64, [u8; 32]>,
    /// After which record the journal was closed.
    closed: Option<u64>,
    /// Checkpoints since.
    since_closed: u64,
    last_seen: Option<(Box<str>, u64, Time)>,
    report: Report,
}

/// What stands behind the last record.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// A process holds the journal: its last line may still be written, calls may be under way.
    pub held: bool,
    /// For how long records behind the last checkpoint are fine, in milliseconds.
    pub tail: u64,
}

impl<'m> Verifier<'m> {
    /// Nothing yet. `beginning` is where the chain stood before the first record that is expected:
    /// [`Chain::START`], or what signed records of removed segments lead to.
    pub fn new(means: &'m Means, external: Vec<Signed>, beginning: Chain) -> Verifier<'m> {
        Verifier {
            means,
            external,
            beginning,
            segment: Box::default(),
            lines: 0,
            chain: None,
            last: Place::default(),
            stretch: None,
            undecided: None,
            torn: None,
            latest: Time(0),
            journal: None,
            open: BTreeSet::new(),
            intents: Bits::default(),
            heads: BTreeMap::new(),
            closed: None,
            since_closed: 0,
            last_seen: None,
            report: Report::new(means.keys.is_some()),
        }
    }

    /// The records of which external checkpoints want the hash.
    pub fn wanted(external: &[Signed]) -> BTreeSet<u64> {
        external.iter().map(|signed| signed.size).collect()
    }

    /// Takes the next piece; `named` is the sequence number in the name of its segment.
    pub fn join(&mut self, segment: &str, named: u64, piece: Piece) {
        if let Some(place) = self.torn.take() {
            self.problem(Some(place), None, What::NotARecord);
        }
        let begins = *self.segment != *segment;
        if begins {
            (self.segment, self.lines) = (segment.into(), 0);
            self.report.segments += 1;
        }
        let base = self.lines + 1;
        self.lines += piece.lines;
        self.report.intents += piece.intents;
        self.report.outcomes += piece.outcomes;
        self.report.refusals += piece.refusals;
        if let Some((first, last)) = piece.times {
            self.report.times = Some(self.report.times.map_or((first, last), |(f, _)| (f, last)));
            let back = self.latest.0.saturating_sub(first.0);
            if back > 1000 {
                self.set_back(back);
            }
            self.latest = self.latest.max(last);
        }
        for (at, part) in piece.parts.into_iter().enumerate() {
            match part {
                Part::Fault(at, what) => {
                    let place = self.place(base, at);
                    let nothing_yet = self.report.records == 0 && self.report.problem_count == 0;
                    let before = self.chain.take().or(nothing_yet.then_some(self.beginning));
                    let belongs = before.map(|chain| chain.sequence() + 1);
                    self.end_stretch();
                    self.undecided = None;
                    self.problem(Some(place), belongs.map(|seq| (seq, seq)), what);
                }
                Part::Run(run) => {
                    if begins && at == 0 && run.before.sequence() + 1 != named {
                        let place = self.place(base, run.first);
                        let first = run.before.sequence() + 1;
                        self.problem(Some(place), Some((first, first)), What::Misnamed);
                    }
                    self.run(base, run);
                }
            }
        }
        if let (Some((_, last)), Some(chain)) = (piece.times, self.chain) {
            self.last_seen = Some((piece.last_instance, chain.sequence(), last));
        }
        self.torn = piece.torn.map(|at| self.place(base, at));
    }

    fn place(&self, base: u64, at: At) -> Place {
        Place {
            segment: self.segment.clone(),
            line: base + at.line,
            offset: at.offset,
        }
    }

    fn problem(&mut self, place: Option<Place>, records: Option<(u64, u64)>, what: What) {
        self.report.problem_count += 1;
        self.report.broken |= what.breaks();
        if self.report.problems.len() < TOLD {
            self.report.problems.push(Problem {
                place,
                records,
                what,
            });
        }
    }

    fn run(&mut self, base: u64, run: Run) {
        let first = run.before.sequence() + 1;
        let follows = self.chain == Some(run.before);
        if !follows {
            let place = self.place(base, run.first);
            self.undecided = None;
            self.seam(run.before, place);
            self.end_stretch();
            // What is missing may have been the outcomes of these.
            self.open.clear();
            self.report.starting = None;
            self.intents = Bits::default();
            self.stretch = Some(Stretch {
                first,
                last: first,
                from_start: self.report.stretches.is_empty()
                    && self.report.stretch_count == 0
                    && run.before == self.beginning,
                signed: None,
            });
        }
        self.report.records += run.after.sequence() - run.before.sequence();
        for (seq, at, event) in run.events {
            let place = self.place(base, at);
            self.event(seq, place, event);
        }
        self.chain = Some(run.after);
        self.last = self.place(base, run.last);
        if let Some(stretch) = &mut self.stretch {
            stretch.last = run.after.sequence();
        }
    }

    /// A run does not follow from what came before it.
    fn seam(&mut self, before: Chain, place: Place) {
        let first = before.sequence() + 1;
        match self.chain {
            Some(chain) if chain.sequence() == before.sequence() => {
                let what = What::Changed { signed: false };
                let of = self.last.clone();
                self.undecided = Some(self.report.problems.len());
                self.problem(Some(of), Some((first - 1, first)), what);
            }
            Some(chain) => {
                let (expected, found) = (chain.sequence() + 1, first);
                let records = if found > expected {
                    (expected, found - 1)
                } else {
                    (found, found)
                };
                let what = What::Sequence { expected, found };
                self.problem(Some(place), Some(records), what);
            }
            // Behind something that is no record, what belongs here is not known.
            None if self.report.records > 0 || self.report.problem_count > 0 => {}
            None if before == self.beginning => {}
            None => {
                let expected = self.beginning.sequence() + 1;
                let what = match first == expected {
                    true => What::Changed { signed: false },
                    false => What::Beginning { expected },
                };
                self.problem(Some(place), Some((first, first)), what);
            }
        }
    }

    fn end_stretch(&mut self) {
        let Some(stretch) = self.stretch.take() else {
            return;
        };
        self.report.stretch_count += 1;
        if self.report.stretches.len() < TOLD {
            self.report.stretches.push(stretch);
        }
    }

    fn event(&mut self, seq: u64, place: Place, event: Event) {
        let own = Some((seq, seq));
        match event {
            Event::Problem(what) => self.problem(Some(place), own, what),
            Event::Checkpoint(signed, Ok(())) => self.good(&signed),
            Event::Checkpoint(signed, Err(fault)) => {
                self.since_closed += 1;
                let from = self
                    .stretch
                    .as_ref()
                    .and_then(|stretch| stretch.signed.as_ref());
                let from = from.map_or(1, |checkpoint| checkpoint.size + 1);
                self.report.checkpoints.bad += 1;
                self.identify(&signed.journal, &place, seq);
                self.problem(
                    Some(place),
                    Some((from.min(seq), seq)),
                    What::Checkpoint(fault),
                );
            }
            Event::Opened(instance, time, before) => {
                let before = before.or(self.last_seen.as_ref().map(|(.., time)| *time));
                let after = before.map(|before| time.0.saturating_sub(before.0));
                self.opened(seq, instance, after);
            }
            Event::Closed => (self.closed, self.since_closed) = (Some(seq), 0),
            Event::Journal(journal) => self.identify(&journal, &place, seq),
            Event::Intent => {
                self.open.insert(seq);
                self.intents.set(seq);
            }
            Event::Outcome(intent) => {
                let gone = self
                    .stretch
                    .as_ref()
                    .is_none_or(|stretch| intent < stretch.first);
                if !self.open.remove(&intent) && !gone {
                    let what = match self.intents.has(intent) {
                        true => What::SecondOutcome { intent },
                        false => What::NoIntent { intent },
                    };
                    self.problem(Some(place), own, what);
                }
            }
            Event::Back(millis) => self.set_back(millis),
            Event::Head(head) => {
                self.heads.insert(seq, head);
            }
        }
    }

    fn good(&mut self, signed: &Signed) {
        self.since_closed += 1;
        let checkpoint = Checkpoints::one(signed);
        let all = &mut self.report.checkpoints;
        all.good += 1;
        all.last = Some(checkpoint.clone());
        all.keys.insert(signed.key_id.clone());
        let Some(stretch) = &mut self.stretch else {
            return;
        };
        stretch.signed = Some(checkpoint);
        // What this vouches for reaches back to the first record of the run.
        if let Some(at) = self.undecided.take()
            && self.means.keys.is_some()
            && let Some(problem) = self.report.problems.get_mut(at)
            && problem.what == (What::Changed { signed: false })
        {
            problem.what = What::Changed { signed: true };
            problem.records = problem.records.map(|(first, _)| (first, first));
        }
    }

    fn identify(&mut self, journal: &str, place: &Place, seq: u64) {
        match &self.journal {
            None => self.journal = Some(journal.into()),
            Some(before) if **before != *journal => {
                let what = What::OtherJournal {
                    named: journal.into(),
                    before: before.clone(),
                };
                self.problem(Some(place.clone()), Some((seq, seq)), what);
            }
            Some(_) => {}
        }
    }

    fn opened(&mut self, seq: u64, instance: Box<str>, after: Option<u64>) {
        let in_order = self
            .closed
            .is_some_and(|closed| seq.saturating_sub(closed + 1) <= self.since_closed);
        self.report.instance_count += 1;
        let closed_before = (seq == 1 || in_order).then_some(());
        if closed_before.is_none() {
            self.report.unclosed += 1;
        }
        if self.report.instances.len() < TOLD {
            self.report.instances.push(Instance {
                name: instance,
                opened: seq,
                before_closed: closed_before.is_some(),
                after,
            });
        }
        self.closed = None;
        // A start closes what it finds open, right before or behind this note.
        let left: Vec<u64> = self.report.starting.take().into_iter().flatten().collect();
        self.left_open(&left);
        self.report.starting = Some(self.open.iter().copied().collect());
    }

    /// Intents that were open when the gateway started, and still are.
    fn left_open(&mut self, found: &[u64]) {
        for intent in found {
            if self.open.remove(intent) {
                self.problem(None, Some((*intent, *intent)), What::LeftOpen);
            }
        }
    }

    fn set_back(&mut self, millis: u64) {
        self.report.set_back += 1;
        self.report.most_set_back = self.report.most_set_back.max(millis);
    }

    /// The end of the journal.
    pub fn done(mut self, end: End) -> Report {
        if let Some(place) = self.torn.take() {
            match end.held {
                true => self.report.being_written = true,
                false => self.problem(Some(place), None, What::Torn),
            }
        }
        let found: Vec<u64> = self.report.starting.take().into_iter().flatten().collect();
        self.left_open(&found);
        self.end_stretch();
        let last = self.chain.map_or(0, |chain| chain.sequence());
        self.report.last = last;
        self.external(last);
        self.tail(last, end);
        self.report.held = end.held;
        self.report.open = self.open.len() as u64;
        self.report.closed = self
            .closed
            .is_some_and(|closed| last.saturating_sub(closed) <= self.since_closed);
        self.report.journal = self.journal.take();
        self.report.head = self
            .chain
            .map(|chain| hex(&chain.head(), &mut [0; 64]).into());
        self.report.last_instance = self.last_seen.take().map(|(name, ..)| name);
        self.report
    }

    fn external(&mut self, last: u64) {
        let first = self
            .report
            .stretches
            .first()
            .map_or(1, |stretch| stretch.first);
        for signed in std::mem::take(&mut self.external) {
            let fault = self
                .means
                .keys
                .as_ref()
                .and_then(|keys| signed.verify(keys).err());
            let records = Some((signed.size, signed.size));
            let other = self.journal.as_ref().filter(|own| **own != signed.journal);
            let what = if let Some(fault) = fault {
                Some((records, What::ExternalFault(fault)))
            } else if other.is_some() {
                let named = signed.journal.clone();
                Some((records, What::ExternalOther { named }))
            } else if signed.size > last {
                let (size, time) = (signed.size, signed.time.clone());
                Some((Some((last + 1, size)), What::Truncated { size, time }))
            } else if signed.size < first {
                self.report.external.pruned += 1;
                continue;
            } else {
                let head = self.heads.get(&signed.size);
                let same = head.is_some_and(|head| *signed.chain_head == *hex(head, &mut [0; 64]));
                let time = signed.time.clone();
                (!same).then_some((records, What::Replaced { time }))
            };
            match what {
                Some((records, what)) => self.problem(None, records, what),
                None => self.report.external.found += 1,
            }
            self.report.external.last = Some(External::latest(
                self.report.external.last.take(),
                signed.size,
            ));
        }
    }

    /// What stands behind the last checkpoint.
    fn tail(&mut self, last: u64, end: End) {
        if self.means.keys.is_none() || last == 0 {
            return;
        }
        let final_run = self.report.stretches.last();
        let signed = final_run.and_then(|stretch| stretch.signed.clone());
        let Some(signed) = signed else {
            if self.report.checkpoints.good == 0 {
                self.problem(None, None, What::NoCheckpoint);
            } else {
                let first = final_run.map_or(last, |stretch| stretch.first);
                self.problem(None, Some((first, last)), What::Unsigned { millis: 0 });
            }
            return;
        };
        // The checkpoint itself stands behind what it covers.
        let unsigned = last.saturating_sub(signed.size + 1);
        let begun = Time::parse(&signed.time).map_or(0, |time| time.0);
        let ended = self.last_seen.as_ref().map_or(begun, |(.., time)| time.0);
        let millis = ended.saturating_sub(begun);
        self.report.unsigned = unsigned;
        if unsigned > 0 && (end.tail == 0 || millis > end.tail) {
            let records = Some((signed.size + 2, last));
            self.problem(None, records, What::Unsigned { millis });
        }
    }
}

/// One bit for each record of a run, whose numbers have no gaps.
#[derive(Debug, Default)]
struct Bits {
    first: Option<u64>,
    words: Vec<u64>,
}

impl Bits {
    fn set(&mut self, seq: u64) {
        let first = *self.first.get_or_insert(seq);
        let Some((word, bit)) = place_of(first, seq) else {
            return;
        };
        while word >= self.words.len() {
            self.words.push(0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word |= bit;
        }
    }

    fn has(&self, seq: u64) -> bool {
        let place = self.first.and_then(|first| place_of(first, seq));
        place.is_some_and(|(word, bit)| self.words.get(word).is_some_and(|word| word & bit != 0))
    }
}

fn place_of(first: u64, seq: u64) -> Option<(usize, u64)> {
    let at = seq.checked_sub(first)?;
    Some((usize::try_from(at / 64).ok()?, 1 << (at % 64)))
}
