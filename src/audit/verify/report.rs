//! What verification found: [`Report`].

use super::Problem;
use crate::audit::checkpoint::Signed;
use crate::audit::record::Time;
use std::collections::BTreeSet;

/// What a journal comes to.
#[derive(Debug, Clone)]
pub struct Report {
    /// Signatures were checked.
    pub checked: bool,
    /// The journal's id.
    pub journal: Option<Box<str>>,
    /// Segments with anything in them.
    pub segments: u64,
    /// Records.
    pub records: u64,
    /// The sequence number of the last.
    pub last: u64,
    /// The hash of the last, in hex.
    pub head: Option<Box<str>>,
    /// The times of the first and the last record.
    pub times: Option<(Time, Time)>,
    /// Intents, outcomes and refusals.
    pub intents: u64,
    /// Outcomes.
    pub outcomes: u64,
    /// Refusals.
    pub refusals: u64,
    /// Intents without an outcome.
    pub open: u64,
    /// The checkpoints in it.
    pub checkpoints: Checkpoints,
    /// The checkpoints that were kept elsewhere.
    pub external: External,
    /// Records behind the last checkpoint.
    pub unsigned: u64,
    /// Records that follow from each other, in order; the first hundred.
    pub stretches: Vec<Stretch>,
    /// How many of them there are.
    pub stretch_count: u64,
    /// Gateway processes that wrote it, in order; the first hundred.
    pub instances: Vec<Instance>,
    /// How many of them there are.
    pub instance_count: u64,
    /// How many did not close it.
    pub unclosed: u64,
    /// The last of them closed it.
    pub closed: bool,
    /// The process that wrote the last record.
    pub last_instance: Option<Box<str>>,
    /// A process holds it.
    pub held: bool,
    /// Its last line is being written.
    pub being_written: bool,
    /// How often the clock was set back.
    pub set_back: u64,
    /// By how many milliseconds at most.
    pub most_set_back: u64,
    /// What is not as it was written; the first hundred.
    pub problems: Vec<Problem>,
    /// How many there are.
    pub problem_count: u64,
    /// Bytes are not as they were written.
    pub broken: bool,
    /// Intents that were open at the last start.
    pub(super) starting: Option<Vec<u64>>,
}

/// Checkpoints.
#[derive(Debug, Clone, Default)]
pub struct Checkpoints {
    /// How many hold.
    pub good: u64,
    /// How many prove nothing.
    pub bad: u64,
    /// The last that holds.
    pub last: Option<Checkpoint>,
    /// Thumbprints of the keys that signed.
    pub keys: BTreeSet<Box<str>>,
}

impl Checkpoints {
    pub(super) fn one(signed: &Signed) -> Checkpoint {
        Checkpoint {
            size: signed.size,
            time: signed.time.clone(),
            key: signed.key_id.clone(),
        }
    }
}

/// One checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last record that it covers.
    pub size: u64,
    /// Its time.
    pub time: Box<str>,
    /// The thumbprint of its key.
    pub key: Box<str>,
}

/// External checkpoints.
#[derive(Debug, Clone, Copy, Default)]
pub struct External {
    /// How many are found in the journal.
    pub found: u64,
    /// How many are about records that were pruned.
    pub pruned: u64,
    /// The most records that one covers.
    pub last: Option<u64>,
}

impl External {
    pub(super) fn latest(before: Option<u64>, size: u64) -> u64 {
        before.map_or(size, |before| before.max(size))
    }
}

/// Records that follow from each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
    /// It begins where the journal has to begin.
    pub from_start: bool,
    /// The last checkpoint in it that holds.
    pub signed: Option<Checkpoint>,
}

/// A gateway process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Its name.
    pub name: Box<str>,
    /// The record with which it began.
    pub opened: u64,
    /// The one before it had closed the journal.
    pub before_closed: bool,
    /// How long after the record before, in milliseconds.
    pub after: Option<u64>,
}

impl Report {
    pub(super) fn new(checked: bool) -> Report {
        Report {
            checked,
            journal: None,
            segments: 0,
            records: 0,
            last: 0,
            head: None,
            times: None,
            intents: 0,
            outcomes: 0,
            refusals: 0,
            open: 0,
            checkpoints: Checkpoints::default(),
            external: External::default(),
            unsigned: 0,
            stretches: Vec::new(),
            stretch_count: 0,
            instances: Vec::new(),
            instance_count: 0,
            unclosed: 0,
            closed: false,
            last_instance: None,
            held: false,
            being_written: false,
            set_back: 0,
            most_set_back: 0,
            problems: Vec::new(),
            problem_count: 0,
            broken: false,
            starting: None,
        }
    }

    /// Nothing is other than it was written, and what it says fits together.
    pub fn intact(&self) -> bool {
        self.problem_count == 0 && self.records > 0
    }

    /// The last record up to which everything is proven by a signature.
    pub fn trusted(&self) -> Option<u64> {
        let first = self
            .stretches
            .first()
            .filter(|stretch| stretch.from_start)?;
        first.signed.as_ref().map(|checkpoint| checkpoint.size)
    }

    /// The problem with which it begins: of those about records, the one about the first record.
    pub fn first_broken(&self) -> Option<&Problem> {
        let problems = self.problems.iter().filter(|problem| problem.what.breaks());
        problems.min_by_key(|problem| problem.records.map_or(u64::MAX, |(_, last)| last))
    }
}
