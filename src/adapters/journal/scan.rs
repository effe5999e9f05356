//! Reading a journal at speed: its bytes in blocks, on all cores, handed over in the journal's order.
//!
//! It needs no lock and changes nothing. A block holds the lines that begin in it, however they are
//! cut by its ends, so that blocks can be looked at alone; memory is a few blocks for each core. What
//! is no record, missing or unreadable is told with its place ([`walk`]).

pub mod walk;

use super::files::segment_paths;
use super::read::MAX_LINE;
use crate::audit::record::Time;
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread;

/// Size of a block, in bytes.
pub const BLOCK: u64 = 4 << 20;
/// What is read at once to find the end of a line that goes on behind its block.
const PIECE: usize = 64 << 10;
/// Clocks are set back now and then: a segment counts as reaching this much further, in
/// milliseconds, than its first and the next one's first record say.
const SLACK: u64 = 3_600_000;

/// A segment as it was when the journal was listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Its file.
    pub path: PathBuf,
    /// The file's name.
    pub name: Box<str>,
    /// The sequence number of its first record, by its name.
    pub first: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// It is a span of a bundle, which need not follow from the one before.
    pub apart: bool,
}

/// The segments of a journal, oldest first.
///
/// # Errors
/// The folder cannot be listed, or a segment has no size.
pub fn segments(dir: &Path) -> io::Result<Vec<Segment>> {
    // Sizes come after all names: a segment that is not the last of these is complete then.
    let measured = segment_paths(dir)?.into_iter().map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.trim_start_matches("journal-");
        let first = number.trim_end_matches(".jsonl").parse().unwrap_or(0);
        let (name, bytes) = (name.into(), fs::metadata(&path)?.len());
        Ok(Segment {
            path,
            name,
            first,
            bytes,
            apart: false,
        })
    });
    measured.collect()
}

impl Segment {
    /// The time of its first record; `None` where that cannot be read.
    pub fn begins(&self) -> Option<Time> {
        const NAME: &[u8] = br#","time":""#;
        let mut start = [0; 512];
        let read = File::open(&self.path).ok()?.read_at(&mut start, 0).ok()?;
        let start = start.get(..read)?;
        let at = memchr::memmem::find(start, NAME)? + NAME.len();
        Time::parse(std::str::from_utf8(start.get(at..at + 24)?).ok()?)
    }
}

/// The positions of the segments that can hold records from `since` to before `until`: all but those
/// whose neighbours say otherwise.
pub fn within(
    segments: &[Segment],
    since: Option<Time>,
    until: Option<Time>,
) -> std::ops::Range<usize> {
    if since.is_none() && until.is_none() {
        return 0..segments.len();
    }
    let begins: Vec<Option<Time>> = segments.iter().map(Segment::begins).collect();
    let before = |begins: &Option<Time>| match (begins, since) {
        (Some(begins), Some(since)) => begins.0.saturating_add(SLACK) <= since.0,
        (_, _) => false,
    };
    let behind = |begins: &Option<Time>| match (begins, until) {
        (Some(begins), Some(until)) => begins.0 >= until.0.saturating_add(SLACK),
        (_, _) => false,
    };
    // The last segment that begins early enough holds the first record that is wanted, at the latest.
    let start = begins.iter().rposition(before).unwrap_or(0);
    let end = begins.iter().position(behind).unwrap_or(segments.len());
    start..end.max(start)
}

/// The lines that begin in one stretch of a segment.
#[derive(Debug)]
pub struct Block<'b> {
    /// The segment's position in the list.
    pub segment: usize,
    /// Where the first of the lines begins in the segment.
    pub offset: u64,
    /// The lines, each with its line feed.
    pub lines: &'b [u8],
    /// What stands behind them.
    pub end: End,
}

/// What stands behind the whole lines of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The next block, or nothing.
    Whole,
    /// A last line without its line feed, which may still be written.
    Torn,
    /// A line that is longer than [`MAX_LINE`].
    TooLong,
    /// Nothing that can be read; the system's reason.
    Unreadable(Box<str>),
}

/// Has `work` look at every block on `threads` threads, and hands over what it says in the
/// journal's order, with the segment's position. `take` may break off.
pub fn each<R: Send>(
    segments: &[Segment],
    threads: usize,
    work: &(dyn Fn(Block<'_>) -> R + Sync),
    take: &mut dyn FnMut(usize, R) -> ControlFlow<()>,
) {
    let jobs: Vec<(usize, u64)> = segments
        .iter()
        .enumerate()
        .flat_map(|(position, segment)| {
            (0..segment.bytes.div_ceil(BLOCK)).map(move |index| (position, index))
        })
        .collect();
    let threads = threads.clamp(1, jobs.len().max(1));
    thread::scope(|scope| {
        let jobs = &jobs;
        let mut results = Vec::new();
        for first in 0..threads {
            let (sender, receiver) = sync_channel(1);
            results.push(receiver);
            scope.spawn(move || {
                let mut reader = Reader::default();
                for (position, index) in jobs.iter().skip(first).step_by(threads) {
                    let Some(segment) = segments.get(*position) else {
                        return;
                    };
                    let said = work(reader.block(*position, segment, *index));
                    if sender.send(said).is_err() {
                        return;
                    }
                }
            });
        }
        for (job, (position, _)) in jobs.iter().enumerate() {
            let next = results.get(job % threads).and_then(|from| from.recv().ok());
            let Some(said) = next else {
                return;
            };
            if take(*position, said).is_break() {
                return;
            }
        }
    });
}

/// How many threads are worth having.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What one thread reads with.
#[derive(Default)]
struct Reader {
    open: Option<(usize, File)>,
    buffer: Vec<u8>,
}

impl Reader {
    fn block(&mut self, position: usize, segment: &Segment, index: u64) -> Block<'_> {
        let (offset, from, to, end) = match self.read(position, segment, index) {
            Ok(found) => found,
            Err(error) => {
                let why = error.to_string().into();
                (index * BLOCK, 0, 0, End::Unreadable(why))
            }
        };
        Block {
            segment: position,
            offset,
            lines: self.buffer.get(from..to).unwrap_or_default(),
            end,
        }
    }

    /// Where the lines begin in the segment, where they are in the buffer, and what is behind them.
    fn read(
        &mut self,
        position: usize,
        segment: &Segment,
        index: u64,
    ) -> io::Result<(u64, usize, usize, End)> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != position) {
            self.open = Some((position, File::open(&segment.path)?));
        }
        let Some((_, file)) = &self.open else {
            return Err(io::Error::other("no file is open"));
        };
        let start = index * BLOCK;
        // One byte earlier, to see whether a line begins exactly here.
        let lead = start.saturating_sub(1);
        let stop = segment.bytes.min(start + BLOCK);
        self.buffer.clear();
        let mut ended = fill(file, &mut self.buffer, lead, stop)?;
        let from = match start {
            0 => 0,
            _ => memchr::memchr(b'\n', &self.buffer).map_or(self.buffer.len(), |at| at + 1),
        };
        let offset = lead + from as u64;
        let mut whole = memchr::memrchr(b'\n', &self.buffer).map_or(0, |at| at + 1);
        if from >= self.buffer.len() {
            return Ok((offset, 0, 0, End::Whole));
        }
        whole = whole.max(from);
        // The last line goes on behind the block.
        while whole < self.buffer.len() && !ended {
            let known = self.buffer.len();
            if known - whole > MAX_LINE {
                break;
            }
            let at = lead + known as u64;
            let stop = segment.bytes.min(at + PIECE as u64);
            ended = fill(file, &mut self.buffer, at, stop)? || at >= stop;
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[known..]) {
                whole = known + found + 1;
                self.buffer.truncate(whole);
            }
        }
        let end = match self.buffer.len() - whole {
            0 => End::Whole,
            rest if rest > MAX_LINE => End::TooLong,
            _ => End::Torn,
        };
        Ok((offset, from, whole, end))
    }
}

/// Appends the bytes from `from` to before `to`; true where the file ends before.
fn fill(file: &File, buffer: &mut Vec<u8>, from: u64, to: u64) -> io::Result<bool> {
    let known = buffer.len();
    let wanted = usize::try_from(to.saturating_sub(from)).unwrap_or(0);
    buffer.resize(known + wanted, 0);
    let mut read = 0;
    while read < wanted {
        let into = &mut buffer[known + read..];
        match file.read_at(into, from + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                buffer.truncate(known);
                return Err(error);
            }
        }
    }
    buffer.truncate(known + read);
    Ok(read < wanted)
}
