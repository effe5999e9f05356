//! Following a journal that grows, across its segments.

use super::files::is_segment;
use super::scan::BLOCK;
use crate::audit::chain::sequence;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A place in a journal, from which it is read on.
pub struct Follow {
    dir: PathBuf,
    /// The segment's number; `None` before there is one.
    segment: Option<u64>,
    offset: u64,
    open: Option<File>,
    /// The last record that was read.
    last: u64,
    /// Up to this record, the segment has what the one before had too.
    doubled: u64,
}

/// What there is to be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Whole lines.
    Lines(Vec<u8>),
    /// Nothing more for now.
    Nothing,
}

impl Follow {
    /// Behind so many bytes of a segment, or from the beginning of what comes.
    pub fn from(dir: &Path, place: Option<(u64, u64)>) -> Follow {
        Follow {
            dir: dir.to_path_buf(),
            segment: place.map(|(segment, _)| segment),
            offset: place.map_or(0, |(_, offset)| offset),
            open: None,
            last: 0,
            doubled: 0,
        }
    }

    /// Reads on: at most a block of whole lines.
    ///
    /// # Errors
    /// The journal cannot be read, or a line is longer than a block.
    pub fn step(&mut self) -> io::Result<Step> {
        // Before reading: when there is a later segment by then, this one is complete.
        let next = self.later()?;
        if let Some(segment) = self.segment {
            if let Some(lines) = self.read(segment)? {
                return Ok(Step::Lines(lines));
            }
            if next.is_none() {
                return Ok(Step::Nothing);
            }
        }
        if let Some(next) = next {
            (self.segment, self.offset, self.open) = (Some(next), 0, None);
            // What could not be synced was taken along into the next segment.
            self.doubled = self.last;
            if let Some(lines) = self.read(next)? {
                return Ok(Step::Lines(lines));
            }
        }
        Ok(Step::Nothing)
    }

    fn read(&mut self, segment: u64) -> io::Result<Option<Vec<u8>>> {
        if self.open.is_none() {
            let name = format!("journal-{segment:020}.jsonl");
            self.open = Some(File::open(self.dir.join(name))?);
        }
        loop {
            let (mut bytes, more) = self.block()?;
            self.drop_doubled(&mut bytes);
            if !bytes.is_empty() || !more {
                return Ok((!bytes.is_empty()).then_some(bytes));
            }
        }
    }

    /// A block of whole lines, and whether there were any.
    fn block(&mut self) -> io::Result<(Vec<u8>, bool)> {
        let Some(file) = &self.open else {
            return Ok((Vec::new(), false));
        };
        let mut bytes = vec![0; usize::try_from(BLOCK).unwrap_or(usize::MAX)];
        let mut read = 0;
        while read < bytes.len() {
            match file.read_at(&mut bytes[read..], self.offset + read as u64)? {
                0 => break,
                more => read += more,
            }
        }
        let full = read == bytes.len();
        bytes.truncate(read);
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        if whole == 0 && full {
            return Err(io::Error::other("a line is longer than a record can be"));
        }
        bytes.truncate(whole);
        self.offset += whole as u64;
        Ok((bytes, whole > 0))
    }

    /// Drops the lines that the segment before had too.
    fn drop_doubled(&mut self, lines: &mut Vec<u8>) {
        let mut new = 0;
        while self.doubled > 0
            && let Some(end) = memchr::memchr(b'\n', &lines[new..])
        {
            if sequence(&lines[new..new + end]).is_some_and(|seq| seq <= self.doubled) {
                new += end + 1;
            } else {
                self.doubled = 0;
            }
        }
        lines.drain(..new);
        if let Some(text) = lines.strip_suffix(b"\n") {
            let line = memchr::memrchr(b'\n', text).map_or(text, |at| &text[at + 1..]);
            self.last = sequence(line).unwrap_or(self.last);
        }
    }

    /// The number of the next segment.
    fn later(&self) -> io::Result<Option<u64>> {
        let mut next = None;
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let number = name
                .filter(|_| is_segment(&path))
                .and_then(|name| name.strip_prefix("journal-")?.strip_suffix(".jsonl"))
                .and_then(|number| number.parse::<u64>().ok());
            let later = number.filter(|number| self.segment.is_none_or(|own| *number > own));
            next = match (next, later) {
                (Some(next), Some(later)) => Some(later.min(next)),
                (next, later) => later.or(next),
            };
        }
        Ok(next)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::audit::chain::Chain;
    use std::fs::OpenOptions;
    use std::io::Write;

    fn write(dir: &Path, segment: u64, text: &str) {
        let path = dir.join(format!("journal-{segment:020}.jsonl"));
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn whole_lines_come_once_across_segments() {
        let dir = tempfile::tempdir().unwrap();
        let mut follow = Follow::from(dir.path(), None);
        let lines = |text: &str| Step::Lines(text.as_bytes().to_vec());
        assert_eq!(follow.step().unwrap(), Step::Nothing);
        write(dir.path(), 1, "a\nb");
        assert_eq!(follow.step().unwrap(), lines("a\n"));
        assert_eq!(follow.step().unwrap(), Step::Nothing);
        write(dir.path(), 1, "c\n");
        write(dir.path(), 4, "d\n");
        write(dir.path(), 9, "e\n");
        assert_eq!(follow.step().unwrap(), lines("bc\n"));
        assert_eq!(follow.step().unwrap(), lines("d\n"));
        assert_eq!(follow.step().unwrap(), lines("e\n"));
        assert_eq!(follow.step().unwrap(), Step::Nothing);
        let mut later = Follow::from(dir.path(), Some((1, 2)));
        assert_eq!(later.step().unwrap(), lines("bc\n"));
    }

    #[test]
    fn records_that_the_next_segment_has_too_come_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut chain = Chain::START;
        let all: Vec<String> = (0..6)
            .map(|_| {
                let mut line = Vec::new();
                chain.seal(b"", &mut line);
                String::from_utf8(line).unwrap()
            })
            .collect();
        write(dir.path(), 1, &all[..4].concat());
        let mut follow = Follow::from(dir.path(), None);
        let lines = |lines: &[String]| Step::Lines(lines.concat().into_bytes());
        assert_eq!(follow.step().unwrap(), lines(&all[..4]));
        // First all of what comes is known, then some of it.
        write(dir.path(), 3, &all[2..4].concat());
        assert_eq!(follow.step().unwrap(), Step::Nothing);
        write(dir.path(), 3, &all[4]);
        assert_eq!(follow.step().unwrap(), lines(&all[4..5]));
        write(dir.path(), 5, &all[4..].concat());
        assert_eq!(follow.step().unwrap(), lines(&all[5..]));
        assert_eq!(follow.step().unwrap(), Step::Nothing);
    }
}
