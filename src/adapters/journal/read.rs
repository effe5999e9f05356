//! Reading a journal that a gateway may be writing: record by record, in bounded memory.
//!
//! It needs no lock and changes nothing. What is no record, or missing, is told with its place and
//! never skipped in silence; whether the chain holds is not asked here.

use super::files::segment_paths;
use serde_json::Value;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Longest line that is read, in bytes. Records are far shorter.
pub const MAX_LINE: usize = 1 << 20;

/// Where a line stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The segment's file name.
    pub segment: Box<str>,
    /// The line, counting from 1.
    pub line: u64,
    /// Bytes before it in the segment.
    pub offset: u64,
}

/// What a line is.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A record.
    Record(Value),
    /// Something else.
    Fault(Fault),
}

/// What is wrong at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The line is no record.
    NotARecord,
    /// The line is longer than [`MAX_LINE`].
    TooLong,
    /// Records are missing before this one.
    Missing {
        /// The sequence number that belongs here.
        expected: u64,
        /// The one that is here.
        found: u64,
    },
    /// The rest of the segment cannot be read; the system's reason.
    Unreadable(Box<str>),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NotARecord => f.write_str("not a record"),
            Fault::TooLong => write!(f, "longer than {MAX_LINE} bytes"),
            Fault::Missing { expected, found } => {
                write!(f, "record {found} stands where record {expected} belongs")
            }
            Fault::Unreadable(why) => write!(f, "cannot be read: {why}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.segment, self.line)
    }
}

/// The lines of a journal, oldest first.
pub struct Reading {
    segments: std::vec::IntoIter<PathBuf>,
    open: Option<Open>,
    /// The sequence number that comes next, once one was seen.
    next: Option<u64>,
    /// A record that is told after what was missing before it.
    held: Option<(Place, Line)>,
}

struct Open {
    reader: BufReader<File>,
    place: Place,
    last: bool,
}

impl Reading {
    /// The segments that are there now.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn open(dir: &Path) -> io::Result<Reading> {
        Ok(Reading {
            segments: segment_paths(dir)?.into_iter(),
            open: None,
            next: None,
            held: None,
        })
    }

    fn open_next(&mut self) -> Option<Result<Open, (Place, Line)>> {
        let path = self.segments.next()?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let place = Place {
            segment: name.into(),
            line: 0,
            offset: 0,
        };
        Some(match File::open(&path) {
            Ok(file) => Ok(Open {
                reader: BufReader::with_capacity(256 << 10, file),
                place,
                last: self.segments.as_slice().is_empty(),
            }),
            Err(error) => Err((place, unreadable(&error))),
        })
    }
}

impl Iterator for Reading {
    type Item = (Place, Line);

    fn next(&mut self) -> Option<(Place, Line)> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        loop {
            if self.open.is_none() {
                match self.open_next()? {
                    Ok(open) => self.open = Some(open),
                    Err(fault) => return Some(fault),
                }
            }
            let found = self.open.as_mut().and_then(Open::line);
            let Some((place, line)) = found else {
                self.open = None;
                continue;
            };
            if matches!(line, Line::Fault(Fault::Unreadable(_))) {
                self.open = None;
            }
            let Line::Record(record) = &line else {
                // Which record this was to be is not known.
                self.next = None;
                return Some((place, line));
            };
            let found = record.get("seq").and_then(Value::as_u64).unwrap_or(0);
            let expected = self.next.replace(found.saturating_add(1));
            match expected.filter(|expected| *expected != found) {
                None => return Some((place, line)),
                Some(expected) => {
                    let fault = Line::Fault(Fault::Missing { expected, found });
                    self.held = Some((place.clone(), line));
                    return Some((place, fault));
                }
            }
        }
    }
}

impl Open {
    /// The next line; `None` at the end, and where the last line of all is still being written.
    fn line(&mut self) -> Option<(Place, Line)> {
        let mut bytes = Vec::new();
        let most = MAX_LINE as u64 + 1;
        let read = self
            .reader
            .by_ref()
            .take(most)
            .read_until(b'\n', &mut bytes);
        self.place.line += 1;
        let place = self.place.clone();
        let length = match read {
            Ok(0) => return None,
            Ok(length) => length,
            Err(error) => return Some((place, unreadable(&error))),
        };
        self.place.offset += length as u64;
        let whole = bytes.pop_if(|byte| *byte == b'\n').is_some();
        if !whole && length > MAX_LINE {
            return Some((place, self.skip()));
        }
        if !whole && self.last {
            return None;
        }
        let record = serde_json::from_slice::<Value>(&bytes).ok();
        let record = record.filter(|record| {
            whole && record.get("seq").is_some_and(Value::is_u64) && record.get("kind").is_some()
        });
        let line = record.map_or(Line::Fault(Fault::NotARecord), Line::Record);
        Some((place, line))
    }

    /// Passes over the rest of a line that is too long.
    fn skip(&mut self) -> Line {
        loop {
            let (skipped, ended) = match self.reader.fill_buf() {
                Ok([]) => return Line::Fault(Fault::TooLong),
                Ok(buffer) => match buffer.iter().position(|byte| *byte == b'\n') {
                    Some(at) => (at + 1, true),
                    None => (buffer.len(), false),
                },
                Err(error) => return unreadable(&error),
            };
            self.reader.consume(skipped);
            self.place.offset += skipped as u64;
            if ended {
                return Line::Fault(Fault::TooLong);
            }
        }
    }
}

fn unreadable(error: &io::Error) -> Line {
    Line::Fault(Fault::Unreadable(error.to_string().into()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use std::fs;

    fn line(seq: u64) -> String {
        format!("{{\"v\":1,\"seq\":{seq},\"prev\":\"\",\"kind\":\"note\"}}\n")
    }

    fn told(segments: &[(u64, &[u8])]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for (first, bytes) in segments {
            let name = format!("journal-{first:020}.jsonl");
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        fs::write(dir.path().join("lock"), "").unwrap();
        let reading = Reading::open(dir.path()).unwrap();
        let tell = |(place, line): (Place, Line)| {
            let number = place
                .segment
                .strip_prefix("journal-")
                .unwrap()
                .trim_start_matches('0');
            let at = format!("{}:{}", number.strip_suffix(".jsonl").unwrap(), place.line);
            match line {
                Line::Record(record) => format!("{at} {}", record["seq"]),
                Line::Fault(fault) => format!("{at} {fault}"),
            }
        };
        reading.map(tell).collect()
    }

    #[test]
    fn records_come_in_order_and_a_line_that_is_being_written_is_none() {
        let one = line(1) + &line(2);
        let two = line(3) + "{\"v\":1,\"seq\":4";
        let found = told(&[(3, two.as_bytes()), (1, one.as_bytes())]);
        assert_eq!(found, ["1:1 1", "1:2 2", "3:1 3"]);
    }

    #[test]
    fn what_is_missing_or_no_record_is_told_with_its_place() {
        let mut one = line(1) + &line(2) + "garbage\n" + &line(5) + &line(7);
        write!(one, "{{\"seq\":8}}\n{}", line(9)).unwrap();
        // Torn, and not the last segment.
        let torn = one.clone() + "{\"v\":1";
        let found = told(&[(1, torn.as_bytes()), (11, line(11).as_bytes())]);
        assert_eq!(
            found,
            [
                "1:1 1",
                "1:2 2",
                "1:3 not a record",
                "1:4 5",
                "1:5 record 7 stands where record 6 belongs",
                "1:5 7",
                "1:6 not a record",
                "1:7 9",
                "1:8 not a record",
                "11:1 11",
            ]
        );
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory_and_the_next_is_read() {
        let mut bytes = vec![b'x'; 3 * MAX_LINE];
        bytes.push(b'\n');
        bytes.extend(line(1).bytes());
        let found = told(&[(1, &bytes)]);
        assert_eq!(found, ["1:1 longer than 1048576 bytes", "1:2 1"]);
        let mut exact = vec![b'x'; MAX_LINE];
        exact.push(b'\n');
        exact.extend(line(1).bytes());
        assert_eq!(told(&[(1, &exact)]), ["1:1 not a record", "1:2 1"]);
    }
}
