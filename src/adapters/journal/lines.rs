//! The raw lines of a journal, one after the other, from a place that can be kept: for what goes
//! through a journal once and later goes on where it was, also while a gateway writes it.

use super::files::segment_paths;
use super::read::{Fault, MAX_LINE};
use crate::audit::chain;
use crate::audit::reconcile::log::moment;
use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The last record that was taken, so that a later run goes on behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// The journal's id, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<Box<str>>,
    /// The segment's file name.
    pub segment: Box<str>,
    /// Where its line begins.
    pub offset: u64,
    /// Its sequence number.
    pub seq: u64,
    /// Hex SHA-256 of its line without its line feed.
    pub sha256: Box<str>,
}

/// Why a journal cannot be gone on with.
#[derive(Debug)]
pub enum ResumeError {
    /// The journal is not the one of the position.
    Another(String),
    /// A file cannot be read.
    Io(io::Error),
}

impl fmt::Display for ResumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResumeError::Another(why) => write!(f, "it is not the journal of the position: {why}"),
            ResumeError::Io(error) => write!(f, "it cannot be read: {error}"),
        }
    }
}

impl std::error::Error for ResumeError {}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A record; its line, without its line feed, is in the buffer.
    Record(u64),
    /// Something else. Of [`Fault::Missing`] the record that is there comes next.
    Fault(Fault),
    /// Nothing more for now.
    End,
}

/// Goes through a journal.
pub struct Lines {
    dir: PathBuf,
    open: Option<Open>,
    /// The last segment that was read, or begun.
    segment: Option<Box<str>>,
    /// The last record: where its line begins, its sequence number.
    last: Option<(Box<str>, u64, u64)>,
    /// A record in the buffer that comes after what was missing before it.
    held: Option<(u64, u64)>,
}

struct Open {
    reader: BufReader<File>,
    /// Bytes that were taken.
    offset: u64,
    /// Only records were taken that the segment before had too.
    doubled: bool,
}

impl Lines {
    /// From the oldest record on.
    pub fn open(dir: &Path) -> io::Result<Lines> {
        // Whether it is there.
        fs::read_dir(dir)?;
        Ok(Lines {
            dir: dir.to_path_buf(),
            open: None,
            segment: None,
            last: None,
            held: None,
        })
    }

    /// From the segment on that has the first record of a time, in milliseconds since the Unix
    /// epoch.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn since(dir: &Path, since: u64) -> io::Result<Lines> {
        let mut lines = Lines::open(dir)?;
        let mut before = None;
        for name in segments(dir)? {
            if first_time(&dir.join(&*name)).is_none_or(|time| time >= since) {
                break;
            }
            // The last that begins before it may hold it.
            if let Some(skipped) = before.replace(name) {
                lines.segment = Some(skipped);
            }
        }
        Ok(lines)
    }

    /// From the beginning of a segment on, or of the next one where it was removed.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn from_segment(dir: &Path, name: &str) -> io::Result<Lines> {
        let mut lines = Lines::open(dir)?;
        let before = segments(dir)?.into_iter();
        lines.segment = before.take_while(|before| **before < *name).last();
        Ok(lines)
    }

    /// From behind a record on. If its segment was removed, what is missing is told.
    ///
    /// # Errors
    /// The journal is another one, or cannot be read.
    pub fn resume(dir: &Path, position: &Position) -> Result<Lines, ResumeError> {
        let mut lines = Lines::open(dir).map_err(ResumeError::Io)?;
        let another = |why: String| Err(ResumeError::Another(why));
        let found = journal_id(dir).map_err(ResumeError::Io)?;
        if let (Some(known), Some(found)) = (&position.journal, &found)
            && known != found
        {
            return another(format!("it is `{found}`, not `{known}`"));
        }
        let path = dir.join(&*position.segment);
        lines.segment = Some(position.segment.clone());
        lines.last = Some((position.segment.clone(), position.offset, position.seq));
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let newest = segments(dir).map_err(ResumeError::Io)?.pop();
                return match newest {
                    Some(newest) if newest > position.segment => Ok(lines),
                    Some(_) | None => another(format!("`{}` is not there", position.segment)),
                };
            }
            Err(error) => return Err(ResumeError::Io(error)),
        };
        file.seek(SeekFrom::Start(position.offset))
            .map_err(ResumeError::Io)?;
        let mut open = Open {
            reader: BufReader::with_capacity(BUFFER, file),
            offset: position.offset,
            doubled: false,
        };
        let mut line = Vec::new();
        let seq = match open.line(&mut line).map_err(ResumeError::Io)? {
            Taken::Line => chain::sequence(&line),
            Taken::TooLong | Taken::Partial | Taken::End => None,
        };
        if seq == Some(position.seq) && *sha256(&line) == *position.sha256 {
            lines.open = Some(open);
            return Ok(lines);
        }
        if lines.find(position).map_err(ResumeError::Io)? {
            return Ok(lines);
        }
        another(format!(
            "record {} does not stand at byte {} of `{}` any more",
            position.seq, position.offset, position.segment
        ))
    }

    /// Looks for the record of a position in the segment behind its own: what could not be synced
    /// was taken along there.
    fn find(&mut self, position: &Position) -> io::Result<bool> {
        let Some(name) = following(&self.dir, Some(&*position.segment))? else {
            return Ok(false);
        };
        let mut open = Open::new(File::open(self.dir.join(&*name))?);
        let mut line = Vec::new();
        loop {
            let offset = open.offset;
            let seq = match open.line(&mut line)? {
                Taken::Line => chain::sequence(&line).filter(|seq| *seq <= position.seq),
                Taken::TooLong | Taken::Partial | Taken::End => None,
            };
            let Some(seq) = seq else {
                return Ok(false);
            };
            if seq == position.seq {
                self.last = Some((name.clone(), offset, seq));
                (self.segment, self.open) = (Some(name), Some(open));
                return Ok(*sha256(&line) == *position.sha256);
            }
        }
    }

    /// Puts the next line into `line`.
    ///
    /// # Errors
    /// A file cannot be read; the next call tries again.
    pub fn next(&mut self, line: &mut Vec<u8>) -> io::Result<Next> {
        if let Some((offset, seq)) = self.held.take() {
            return Ok(self.record(offset, seq));
        }
        loop {
            let Some(open) = &mut self.open else {
                let Some(name) = following(&self.dir, self.segment.as_deref())? else {
                    return Ok(Next::End);
                };
                match File::open(self.dir.join(&*name)) {
                    Ok(file) => {
                        self.open = Some(Open::new(file));
                    }
                    // It was removed since; what is missing is told with the next record.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
                self.segment = Some(name);
                continue;
            };
            let offset = open.offset;
            match open.line(line)? {
                Taken::Line => {}
                Taken::TooLong => return Ok(Next::Fault(Fault::TooLong)),
                taken @ (Taken::End | Taken::Partial) => {
                    if following(&self.dir, self.segment.as_deref())?.is_none() {
                        return Ok(Next::End);
                    }
                    // What was written before the next segment was begun is there now.
                    match open.line(line)? {
                        Taken::Line => {}
                        Taken::TooLong => return Ok(Next::Fault(Fault::TooLong)),
                        Taken::End | Taken::Partial => {
                            self.open = None;
                            match taken {
                                Taken::Partial => return Ok(Next::Fault(Fault::NotARecord)),
                                _ => continue,
                            }
                        }
                    }
                }
            }
            let Some(seq) = chain::sequence(line) else {
                return Ok(Next::Fault(Fault::NotARecord));
            };
            if let Some((_, _, last)) = self.last
                && let Some(open) = &mut self.open
            {
                // What could not be synced was taken along into the next segment.
                open.doubled &= seq <= last;
                if open.doubled {
                    continue;
                }
            }
            if let Some((_, _, last)) = self.last
                && seq != last.saturating_add(1)
            {
                self.held = Some((offset, seq));
                return Ok(Next::Fault(Fault::Missing {
                    expected: last.saturating_add(1),
                    found: seq,
                }));
            }
            return Ok(self.record(offset, seq));
        }
    }

    fn record(&mut self, offset: u64, seq: u64) -> Next {
        let segment = self.segment.clone().unwrap_or_default();
        self.last = Some((segment, offset, seq));
        Next::Record(seq)
    }

    /// The segment that is read, for messages.
    pub fn segment(&self) -> &str {
        self.segment.as_deref().unwrap_or("-")
    }

    /// Where the record stands that was taken last; `line` is what it said.
    pub fn position(&self, line: &[u8], journal: Option<&str>) -> Option<Position> {
        let (segment, offset, seq) = self.last.clone()?;
        Some(Position {
            journal: journal.map(Box::from),
            segment,
            offset,
            seq,
            sha256: sha256(line).into(),
        })
    }
}

const BUFFER: usize = 256 << 10;

enum Taken {
    Line,
    TooLong,
    /// The line is still being written, or was torn.
    Partial,
    End,
}

impl Open {
    fn new(file: File) -> Open {
        Open {
            reader: BufReader::with_capacity(BUFFER, file),
            offset: 0,
            doubled: true,
        }
    }

    /// Takes a whole line, or nothing.
    fn line(&mut self, line: &mut Vec<u8>) -> io::Result<Taken> {
        line.clear();
        let most = MAX_LINE as u64 + 1;
        let length = self.reader.by_ref().take(most).read_until(b'\n', line)?;
        if length == 0 {
            return Ok(Taken::End);
        }
        if line.pop_if(|byte| *byte == b'\n').is_some() {
            self.offset += length as u64;
            return Ok(Taken::Line);
        }
        if length <= MAX_LINE {
            self.reader.seek(SeekFrom::Start(self.offset))?;
            return Ok(Taken::Partial);
        }
        self.offset += length as u64;
        loop {
            let (skipped, ended) = match self.reader.fill_buf()? {
                [] => return Ok(Taken::TooLong),
                buffer => match buffer.iter().position(|byte| *byte == b'\n') {
                    Some(at) => (at + 1, true),
                    None => (buffer.len(), false),
                },
            };
            self.reader.consume(skipped);
            self.offset += skipped as u64;
            if ended {
                return Ok(Taken::TooLong);
            }
        }
    }
}

/// The segments' names, oldest first.
fn segments(dir: &Path) -> io::Result<Vec<Box<str>>> {
    let paths = segment_paths(dir)?;
    let names = paths.iter().filter_map(|path| path.file_name()?.to_str());
    Ok(names.map(Box::from).collect())
}

/// The oldest segment behind this one.
fn following(dir: &Path, after: Option<&str>) -> io::Result<Option<Box<str>>> {
    let mut names = segments(dir)?.into_iter();
    Ok(names.find(|name| after.is_none_or(|after| **name > *after)))
}

/// The time of a segment's first record, in milliseconds since the Unix epoch.
fn first_time(path: &Path) -> Option<u64> {
    #[derive(Deserialize)]
    struct Head<'a> {
        time: &'a str,
    }
    let line = first_line(path).ok()?;
    moment(serde_json::from_slice::<Head<'_>>(&line).ok()?.time)
}

fn first_line(path: &Path) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let reader = BufReader::new(File::open(path)?);
    reader
        .take(MAX_LINE as u64)
        .read_until(b'\n', &mut line)
        .map(|_| line)
}

/// The id of a journal: its segments' first records have it.
///
/// # Errors
/// The folder cannot be read.
pub fn journal_id(dir: &Path) -> io::Result<Option<Box<str>>> {
    #[derive(Deserialize)]
    struct Head {
        journal: Option<Box<str>>,
    }
    for name in segments(dir)?.iter().rev() {
        let line = first_line(&dir.join(&**name))?;
        if let Ok(Head { journal: Some(id) }) = serde_json::from_slice(&line) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// The sequence number of the last whole record, where there is one.
///
/// # Errors
/// The folder or its newest segment cannot be read.
pub fn newest(dir: &Path) -> io::Result<Option<u64>> {
    for name in segments(dir)?.iter().rev() {
        let mut file = File::open(dir.join(&**name))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(BUFFER as u64)))?;
        let mut end = Vec::new();
        file.take(BUFFER as u64).read_to_end(&mut end)?;
        // What follows the last line feed is still being written.
        let lines = end.split(|byte| *byte == b'\n').rev().skip(1);
        if let Some(found) = lines.filter_map(chain::sequence).next() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn sha256(line: &[u8]) -> String {
    let digest = digest(&SHA256, line);
    digest.as_ref().iter().fold(String::new(), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
#[path = "lines/tests.rs"]
mod tests;
