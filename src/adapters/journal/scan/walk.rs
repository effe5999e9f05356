//! From blocks to lines with their places: each block is walked alone, and the seams between them
//! are joined behind.

use super::super::read::{Fault, MAX_LINE, Place};
use super::{Block, End, Segment};
use crate::audit::chain::glance;

/// A record as it stands.
#[derive(Debug, Clone, Copy)]
pub struct Raw<'b> {
    /// Its sequence number.
    pub seq: u64,
    /// The line, without its line feed.
    pub line: &'b [u8],
    /// What stands behind `prev`: `,"kind":…}`.
    pub members: &'b [u8],
    /// Where it stands in the block.
    pub at: At,
}

/// A place in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The line, counting from 0 in the block.
    pub line: u64,
    /// Bytes before it in the segment.
    pub offset: u64,
}

/// Walks over the lines of a block; [`Walk::done`] says how it joins its neighbours.
#[derive(Debug)]
pub struct Walk<'b> {
    rest: &'b [u8],
    at: At,
    end: End,
    edges: Edges,
}

/// How a block joins its neighbours.
#[derive(Debug, Default)]
pub struct Edges {
    /// How many lines begin in it.
    lines: u64,
    /// Its first record, if that comes before any fault.
    first: Option<(u64, At)>,
    /// The sequence number that the next block must begin with.
    next: Option<u64>,
    faults: Vec<(At, Fault)>,
    /// It ends with a line that is not complete.
    torn: Option<At>,
}

/// Most faults of one block that are told one by one.
const FAULTS: usize = 1000;

impl<'b> Walk<'b> {
    /// From its first line on.
    pub fn new(block: Block<'b>) -> Walk<'b> {
        Walk {
            rest: block.lines,
            at: At {
                line: 0,
                offset: block.offset,
            },
            end: block.end,
            edges: Edges::default(),
        }
    }

    fn fault(&mut self, at: At, fault: Fault) {
        if !matches!(fault, Fault::Missing { .. }) {
            // Which record this was to be is not known.
            self.edges.next = None;
        }
        if self.edges.faults.len() < FAULTS {
            self.edges.faults.push((at, fault));
        }
    }

    /// What is left to say once all records were taken.
    pub fn done(mut self) -> Edges {
        let at = self.at;
        match std::mem::replace(&mut self.end, End::Whole) {
            End::Whole => {}
            End::Torn => {
                self.at.line += 1;
                self.edges.torn = Some(at);
            }
            End::TooLong => {
                self.at.line += 1;
                self.fault(at, Fault::TooLong);
            }
            End::Unreadable(why) => self.fault(at, Fault::Unreadable(why)),
        }
        self.edges.lines = self.at.line;
        self.edges
    }
}

impl<'b> Iterator for Walk<'b> {
    type Item = Raw<'b>;

    fn next(&mut self) -> Option<Raw<'b>> {
        loop {
            let end = memchr::memchr(b'\n', self.rest)?;
            let line = self.rest.get(..end)?;
            self.rest = self.rest.get(end + 1..)?;
            let at = self.at;
            self.at = At {
                line: at.line + 1,
                offset: at.offset + end as u64 + 1,
            };
            if line.len() > MAX_LINE {
                self.fault(at, Fault::TooLong);
                continue;
            }
            let Some((seq, members)) = glance(line) else {
                self.fault(at, Fault::NotARecord);
                continue;
            };
            match self.edges.next {
                Some(expected) if expected != seq => {
                    let found = seq;
                    self.fault(at, Fault::Missing { expected, found });
                }
                None if self.edges.faults.is_empty() && self.edges.first.is_none() => {
                    self.edges.first = Some((seq, at));
                }
                Some(_) | None => {}
            }
            self.edges.next = Some(seq.saturating_add(1));
            return Some(Raw {
                seq,
                line,
                members,
                at,
            });
        }
    }
}

/// Joins blocks in the journal's order.
#[derive(Debug, Default)]
pub struct Seams {
    /// The segment that the last block was of.
    segment: usize,
    /// Lines of it before the next block.
    lines: u64,
    /// The sequence number that comes next, once one was seen.
    next: Option<u64>,
    torn: Option<(usize, u64, At)>,
    unreadable: bool,
    faults: u64,
}

impl Seams {
    /// Takes the next block's edges; faults go to `tell`. Gives the line in the segment on which
    /// the block begins, counting from 1.
    pub fn join(
        &mut self,
        segment: usize,
        edges: Edges,
        segments: &[Segment],
        tell: &mut dyn FnMut(&Place, &Fault),
    ) -> u64 {
        let place = |segment: usize, base: u64, at: At| Place {
            segment: segments
                .get(segment)
                .map_or_else(Box::default, |s| s.name.clone()),
            line: base + at.line,
            offset: at.offset,
        };
        // A line that is not complete is none only at the very end.
        if let Some((torn, base, at)) = self.torn.take() {
            self.faults += 1;
            self.next = None;
            tell(&place(torn, base, at), &Fault::NotARecord);
        }
        if self.segment != segment {
            (self.segment, self.lines, self.unreadable) = (segment, 0, false);
            if segments.get(segment).is_some_and(|segment| segment.apart) {
                self.next = None;
            }
        }
        let base = self.lines + 1;
        self.lines += edges.lines;
        if let (Some(expected), Some((found, at))) = (self.next, edges.first)
            && expected != found
        {
            self.faults += 1;
            let fault = Fault::Missing { expected, found };
            tell(&place(segment, base, at), &fault);
        }
        for (at, fault) in &edges.faults {
            // One such file is one fault, however many blocks it has.
            let unreadable = matches!(fault, Fault::Unreadable(_));
            if !(unreadable && self.unreadable) {
                self.faults += 1;
                tell(&place(segment, base, *at), fault);
            }
            self.unreadable |= unreadable;
        }
        if edges.lines > 0 || !edges.faults.is_empty() {
            self.next = edges.next;
        }
        self.torn = edges.torn.map(|at| (segment, base, at));
        base
    }

    /// How many faults there were.
    pub fn faults(&self) -> u64 {
        self.faults
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::super::read::{Line, Reading};
    use super::super::{BLOCK, each, segments};
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::ops::ControlFlow;
    use std::path::Path;

    const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

    fn line(seq: u64, extra: usize) -> String {
        let pad = "x".repeat(extra);
        format!(
            "{{\"v\":1,\"seq\":{seq},\"prev\":\"{ZEROS}\",\"kind\":\"note\",\"pad\":\"{pad}\"}}\n"
        )
    }

    fn plainly(dir: &Path) -> Vec<String> {
        let tell = |(place, line): (Place, Line)| match line {
            Line::Record(record) => format!("{place} {}: {}", place.offset, record["seq"]),
            Line::Fault(fault) => format!("{place}: {fault}"),
        };
        Reading::open(dir).unwrap().map(tell).collect()
    }

    fn at_speed(dir: &Path, threads: usize) -> Vec<String> {
        let segments = segments(dir).unwrap();
        let mut seams = Seams::default();
        let mut told = Vec::new();
        let work = |block: Block<'_>| {
            let mut walk = Walk::new(block);
            let records: Vec<(u64, At)> = walk.by_ref().map(|raw| (raw.seq, raw.at)).collect();
            (records, walk.done())
        };
        let mut take = |segment: usize, (records, edges): (Vec<(u64, At)>, Edges)| {
            let mut faults: Vec<(Place, String)> = Vec::new();
            let base = seams.join(segment, edges, &segments, &mut |place, fault| {
                faults.push((place.clone(), format!("{place}: {fault}")));
            });
            let name = &segments[segment].name;
            let mut here: Vec<(u64, u8, String)> = Vec::new();
            for (place, text) in faults {
                match place.segment == *name {
                    true => here.push((place.line, 0, text)),
                    false => told.push(text),
                }
            }
            for (seq, at) in records {
                let line = base + at.line;
                here.push((line, 1, format!("{name}, line {line} {}: {seq}", at.offset)));
            }
            here.sort();
            told.extend(here.into_iter().map(|(.., text)| text));
            ControlFlow::Continue(())
        };
        each(&segments, threads, &work, &mut take);
        told
    }

    /// The plain reader gives the offset behind a line, this one the offset before it.
    fn without_offsets(told: Vec<String>) -> Vec<String> {
        told.into_iter()
            .map(
                |text| match text.split_once(" ").map(|_| text.rsplit_once(": ")) {
                    Some(Some((place, what))) if what.parse::<u64>().is_ok() => {
                        let place = place.rsplit_once(' ').unwrap().0;
                        format!("{place}: {what}")
                    }
                    _ => text,
                },
            )
            .collect()
    }

    fn agree(parts: &[(u64, Vec<u8>)]) {
        let dir = tempfile::tempdir().unwrap();
        for (first, bytes) in parts {
            let name = format!("journal-{first:020}.jsonl");
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        let plain = without_offsets(plainly(dir.path()));
        for threads in [1, 3] {
            let found = without_offsets(at_speed(dir.path(), threads));
            assert_eq!(found, plain, "{threads} threads");
        }
    }

    #[test]
    fn lines_across_blocks_are_found_once_with_their_places() {
        // Lines of such lengths that block ends fall into, right before and right behind a line.
        let size = usize::try_from(BLOCK).unwrap();
        let empty = line(1, 0).len();
        for odd in [0, 1, 2, 7] {
            let mut bytes = Vec::new();
            let half = size / 4;
            for seq in 1..=9 {
                let extra = half - empty + usize::from(seq == 4) * odd;
                bytes.extend(line(seq, extra).bytes());
            }
            bytes.extend(b"{\"v\":1,\"seq\":10,\"prev\":\"");
            agree(&[(1, bytes)]);
        }
    }

    #[test]
    fn offsets_are_those_of_the_lines() {
        let dir = tempfile::tempdir().unwrap();
        let name = "journal-00000000000000000001.jsonl";
        let bytes: String = (1..=3).map(|seq| line(seq, 1000)).collect();
        fs::write(dir.path().join(name), &bytes).unwrap();
        let length = bytes.len() / 3;
        let expected: Vec<String> = (0..3)
            .map(|n| format!("{name}, line {} {}: {}", n + 1, n * length, n + 1))
            .collect();
        assert_eq!(at_speed(dir.path(), 2), expected);
    }

    #[test]
    fn a_line_longer_than_blocks_is_one_fault() {
        let mut bytes = line(1, 10).into_bytes();
        bytes.extend(vec![b'x'; 3 * usize::try_from(BLOCK).unwrap()]);
        bytes.push(b'\n');
        bytes.extend(line(2, 10).bytes());
        agree(&[(1, bytes.clone()), (3, line(4, 1).into_bytes())]);
        // And at the very end, where it is longer than what is still being written.
        bytes.extend(vec![b'y'; 2 * MAX_LINE]);
        agree(&[(1, bytes)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_finds_what_the_plain_reader_finds(
            parts in prop::collection::vec(
                prop::collection::vec((0u64..4, 0usize..40, any::<bool>()), 0..6), 1..4),
            torn in any::<bool>(),
        ) {
            let mut seq = 1;
            let mut files = Vec::new();
            for part in parts {
                let first = seq;
                let mut bytes = Vec::new();
                for (skip, extra, garbage) in part {
                    if garbage {
                        bytes.extend(b"garbage\n");
                    }
                    seq += skip / 3;
                    bytes.extend(line(seq, extra).bytes());
                    seq += 1;
                }
                if torn {
                    bytes.extend(b"{\"v\":1");
                }
                seq += 1;
                files.push((first, bytes));
            }
            agree(&files);
        }
    }
}
