//! Removing segments, each for a signed line that keeps its place in the chain.
//!
//! A gateway may write to the journal meanwhile: only segments that it has left are touched. One
//! pruner works at a time. The line is durable before the file goes, so that a crash in between
//! leaves both, and the next run finishes.

use crate::audit::chain::{Chain, Checker};
use crate::audit::pruned::{self, Pruned};
use crate::audit::redact::hex;
use aws_lc_rs::digest::{Context, SHA256};
use serde::Deserialize;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Longest line that is read, in bytes.
const MAX_LINE: u64 = super::read::MAX_LINE as u64;
/// Longest file of lines of removed segments that is read, in bytes: some 100,000 of them.
const MAX_FILE: u64 = 64 << 20;

/// The right to remove segments of a journal; one at a time. Held until it is dropped.
pub struct Pruner {
    dir: PathBuf,
    _lock: File,
}

/// A segment as its first and last line tell.
#[derive(Debug, Clone)]
pub struct Ends {
    /// Where it is.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its first record.
    pub first: End,
    /// Its last record.
    pub last: End,
}

/// What one record tells about its segment.
#[derive(Debug, Clone, Deserialize)]
pub struct End {
    /// Its sequence number.
    pub seq: u64,
    /// Its time.
    pub time: String,
    /// The journal's id, in records that begin or end a segment.
    pub journal: Option<String>,
    /// The oldest intent without an outcome, in the first record of a segment.
    pub oldest_open: Option<u64>,
}

/// A whole segment that was read through.
#[derive(Debug)]
pub struct Whole {
    /// Where the chain stood before it.
    pub before: Chain,
    /// Where it stands after it.
    pub after: Chain,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
    /// Its last line, without its line feed.
    pub last: Vec<u8>,
}

impl Pruner {
    /// Becomes the only pruner of a journal.
    ///
    /// # Errors
    /// Another one works, or the lock cannot be used.
    pub fn open(dir: &Path) -> io::Result<Pruner> {
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(dir.join("prune.lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Pruner {
                dir: dir.to_path_buf(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(io::Error::other(
                "another `audit prune` is at work on this journal",
            )),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Removes a segment after its line is durable; `known`: the line is there already.
    ///
    /// # Errors
    /// The line cannot be written, or the file not removed; then it is still there.
    pub fn remove(&self, line: &Pruned, known: bool) -> io::Result<()> {
        if !known {
            let mut bytes = serde_json::to_vec(line)?;
            bytes.push(b'\n');
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .mode(0o600)
                .open(self.dir.join(pruned::FILE))?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            File::open(&self.dir)?.sync_all()?;
        }
        fs::remove_file(self.dir.join(&line.segment))?;
        File::open(&self.dir)?.sync_all()
    }
}

/// The lines of segments that were removed, oldest first; none where none was.
///
/// # Errors
/// The file cannot be read, or a line of it is none; with its number.
pub fn removed(dir: &Path) -> io::Result<Vec<Pruned>> {
    let text = match bounded(&dir.join(pruned::FILE), MAX_FILE) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let lines = text.lines().enumerate();
    lines
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| {
                let number = index + 1;
                io::Error::other(format!("{}, line {number}: {error}", pruned::FILE))
            })
        })
        .collect()
}

/// Looks at a segment's first and last record. A gateway may be writing to one that is `growing`:
/// its last whole record counts, and there is none yet where its first is not whole.
///
/// # Errors
/// The file cannot be read, or does not begin and end in a record.
pub fn ends(path: &Path, growing: bool) -> io::Result<Option<Ends>> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(MAX_LINE)))?;
    let mut tail = Vec::new();
    (&mut file)
        .take(bytes.min(MAX_LINE))
        .read_to_end(&mut tail)?;
    let Some(end) = tail.iter().rposition(|byte| *byte == b'\n') else {
        return match growing {
            true => Ok(None),
            false => Err(io::Error::other("it holds no whole record")),
        };
    };
    if end + 1 < tail.len() && !growing {
        return Err(io::Error::other("its last line is not whole"));
    }
    let last = tail[..end].rsplit(|byte| *byte == b'\n').next();
    file.seek(SeekFrom::Start(0))?;
    let mut first = Vec::new();
    BufReader::new(file)
        .take(MAX_LINE)
        .read_until(b'\n', &mut first)?;
    let end = |line: &[u8]| {
        serde_json::from_slice::<End>(line)
            .map_err(|_| io::Error::other("it does not begin and end in a record"))
    };
    Ok(Some(Ends {
        path: path.to_path_buf(),
        bytes,
        first: end(&first)?,
        last: end(last.unwrap_or_default())?,
    }))
}

/// Reads a segment through: every line must follow from the one before.
///
/// # Errors
/// The file cannot be read, or the chain breaks in it; with the line.
pub fn whole(path: &Path) -> io::Result<Whole> {
    let mut reader = BufReader::with_capacity(256 << 10, File::open(path)?);
    let mut context = Context::new(&SHA256);
    let mut found: Option<(Chain, Checker)> = None;
    let (mut line, mut last, mut bytes) = (Vec::new(), Vec::new(), 0);
    loop {
        line.clear();
        let length = (&mut reader)
            .take(MAX_LINE + 1)
            .read_until(b'\n', &mut line)?;
        if length == 0 {
            break;
        }
        bytes += length as u64;
        context.update(&line);
        if line.pop_if(|byte| *byte == b'\n').is_none() {
            return Err(io::Error::other("a line of it is not whole"));
        }
        if found.is_none() {
            let first = Checker::before(&line).map_err(io::Error::other)?;
            found = Some((first.chain(), first));
        }
        if let Some((_, checker)) = &mut found {
            checker.take(&line).map_err(io::Error::other)?;
        }
        std::mem::swap(&mut line, &mut last);
    }
    let (before, checker) = found.ok_or_else(|| io::Error::other("it is empty"))?;
    let mut sha256 = [0; 32];
    for (to, from) in sha256.iter_mut().zip(context.finish().as_ref()) {
        *to = *from;
    }
    Ok(Whole {
        before,
        after: checker.chain(),
        bytes,
        sha256,
        last,
    })
}

/// The hash of record `sequence` in a segment that has it, by the chain.
///
/// # Errors
/// The file cannot be read, the chain breaks before it, or it is not there.
pub fn hash_of(path: &Path, sequence: u64) -> io::Result<[u8; 32]> {
    let mut reader = BufReader::with_capacity(256 << 10, File::open(path)?);
    let mut checker: Option<Checker> = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = (&mut reader)
            .take(MAX_LINE + 1)
            .read_until(b'\n', &mut line)?;
        if length == 0 || line.pop_if(|byte| *byte == b'\n').is_none() {
            return Err(io::Error::other(format!("record {sequence} is not there")));
        }
        let mut next = match checker.take() {
            Some(checker) => checker,
            None => Checker::before(&line).map_err(io::Error::other)?,
        };
        next.take(&line).map_err(io::Error::other)?;
        if next.chain().sequence() == sequence {
            return Ok(next.chain().head());
        }
        checker = Some(next);
    }
}

/// The text of a file of at most `most` bytes.
///
/// # Errors
/// It cannot be read, is no text, or is longer.
pub fn bounded(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(most + 1).read_to_string(&mut text)?;
    match text.len() as u64 > most {
        true => Err(io::Error::other(format!("it is longer than {most} bytes"))),
        false => Ok(text),
    }
}

/// A digest in hex.
pub fn written(digest: &[u8; 32]) -> String {
    hex(digest, &mut [0; 64]).to_owned()
}
