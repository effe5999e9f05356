//! Reading a journal at start: where its chain stands, what is torn, which intents are open.

use super::OpenError;
use super::read::MAX_LINE;
use crate::audit::chain::{Broken, Chain, Checker, Why, sequence};
use crate::source::instant::parse_instant;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A segment mostly ends with a checkpoint, which is no longer.
const SHORT: u64 = 16 << 10;

/// What a journal holds at start.
#[derive(Debug)]
pub(super) struct Found {
    /// Where the chain stands.
    pub chain: Chain,
    /// The last segment and how many of its bytes are whole records; `None` when there is none.
    pub last: Option<(PathBuf, u64)>,
    /// Bytes behind them that are no record.
    pub torn_bytes: u64,
    /// Segments with records that the next one begins with: after how many bytes those come.
    pub doubled: Vec<(PathBuf, u64)>,
    /// Intents without an outcome, by sequence number.
    pub open: BTreeMap<u64, OpenIntent>,
    /// The journal's id, as the newest record that names it has it.
    pub journal: Option<Box<str>>,
    /// The key of the newest checkpoint.
    pub key_id: Option<Box<str>>,
    /// When the last segment began, in seconds since the Unix epoch.
    pub segment_since: Option<u64>,
    /// The last record of a process that did not close the journal.
    pub unclosed: Option<LastRecord>,
}

impl Found {
    /// In a directory without segments.
    pub(super) fn nothing() -> Found {
        Found {
            chain: Chain::START,
            last: None,
            torn_bytes: 0,
            doubled: Vec::new(),
            open: BTreeMap::new(),
            journal: None,
            key_id: None,
            segment_since: None,
            unclosed: None,
        }
    }
}

/// The last record of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LastRecord {
    pub sequence: u64,
    pub instance: Box<str>,
    pub time: Box<str>,
}

/// An intent whose outcome is not known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OpenIntent {
    pub request_id: String,
    pub agent: String,
    pub operation: Option<String>,
    pub generation: u64,
    pub policy_digest: String,
}

impl OpenIntent {
    /// From a record's members; `None` for other kinds.
    pub(super) fn of(members: &[u8]) -> Option<OpenIntent> {
        let object = [b"{", members, b"}"].concat();
        let seen: Seen<'_> = serde_json::from_slice(&object).ok()?;
        (seen.kind == "intent").then(|| seen.into())
    }
}

impl From<Seen<'_>> for OpenIntent {
    fn from(seen: Seen<'_>) -> OpenIntent {
        OpenIntent {
            request_id: seen.request_id.unwrap_or_default(),
            agent: seen.agent.unwrap_or_default(),
            operation: seen.operation,
            generation: seen.generation,
            policy_digest: seen.policy_digest.unwrap_or_default(),
        }
    }
}

/// Reads segments from the newest back to the oldest intent that was open when it began, at most
/// to the last opening of the journal: what was open before that was closed then.
pub(super) fn read(segments: &[PathBuf]) -> Result<Found, OpenError> {
    let mut found = Found::nothing();
    let mut closed = HashSet::new();
    let mut next: Option<(Chain, &Path)> = None;
    let mut back_to = None;
    let mut backwards = segments.iter().rev();
    for path in backwards.by_ref() {
        let scan = scan(path, found.last.is_none(), next)?;
        if found.last.is_none() {
            found.torn_bytes = scan.torn_bytes;
            found.last = Some((path.clone(), scan.good_bytes));
            found.segment_since = scan.since;
        }
        found.journal = found.journal.or(scan.journal);
        found.key_id = found.key_id.or(scan.key_id);
        let Some((start, end)) = scan.span else {
            // Nothing whole in it: only the newest can be so, after a crash in its first write.
            continue;
        };
        match next {
            None => {
                found.chain = end;
                found.unclosed = scan.newest.filter(|last| last.sequence != scan.closed_at);
            }
            Some((next, _)) if next != end => return Err(OpenError::Gap(path.clone())),
            Some(_) if scan.doubled => found.doubled.push((path.clone(), scan.good_bytes)),
            Some(_) => {}
        }
        next = Some((start, path));
        for (sequence, intent) in scan.open {
            if !closed.contains(&sequence) {
                found.open.insert(sequence, intent);
            }
        }
        closed.extend(scan.closed_elsewhere);
        back_to = back_to.or(scan.reaches_back_to);
        if scan.opening || back_to.is_some_and(|oldest| start.sequence() < oldest) {
            break;
        }
    }
    // Cutting a segment becomes durable when the system finds time for it, so an older one may
    // have got back what it had. Whether its chain holds otherwise is not asked here.
    let mut next = next.map(|(_, path)| path);
    for path in backwards {
        let doubled = next.and_then(|next| doubled(path, next).transpose());
        if let Some(bytes) = doubled.transpose()? {
            found.doubled.push((path.clone(), bytes));
        }
        next = Some(path);
    }
    Ok(found)
}

/// After how many bytes of a segment come records that the next one begins with, if it has any.
fn doubled(path: &Path, next: &Path) -> Result<Option<u64>, OpenError> {
    let mut first = Vec::new();
    let file = File::open(next).map_err(OpenError::io("read the journal's segment", next))?;
    let read = BufReader::new(file)
        .take(MAX_LINE as u64 + 1)
        .read_until(b'\n', &mut first);
    read.map_err(OpenError::io("read the journal's segment", next))?;
    first.pop_if(|byte| *byte == b'\n');
    let Ok(before) = Checker::before(&first) else {
        return Ok(None);
    };
    let newest = last_sequence(path).map_err(OpenError::io("read the journal's segment", path))?;
    if newest == Some(before.chain().sequence()) {
        return Ok(None);
    }
    let scan = scan(path, false, Some((before.chain(), next)));
    Ok(scan.ok().filter(|scan| scan.doubled).map(|s| s.good_bytes))
}

/// The sequence number of a segment's last line, where it ends with a short one.
fn last_sequence(path: &Path) -> io::Result<Option<u64>> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let from = size.saturating_sub(SHORT);
    let mut end = vec![0; usize::try_from(size - from).map_err(io::Error::other)?];
    file.read_exact_at(&mut end, from)?;
    let line = end.strip_suffix(b"\n").and_then(|lines| {
        let before = memchr::memrchr(b'\n', lines)?;
        lines.get(before + 1..)
    });
    Ok(line.and_then(sequence))
}

/// One segment.
struct Scan {
    /// Where the chain stood before its first and after its last record.
    span: Option<(Chain, Chain)>,
    good_bytes: u64,
    torn_bytes: u64,
    /// Behind the good ones stands what the next segment begins with.
    doubled: bool,
    open: BTreeMap<u64, OpenIntent>,
    closed_elsewhere: HashSet<u64>,
    opening: bool,
    /// No intent before this one was open when the segment began.
    reaches_back_to: Option<u64>,
    journal: Option<Box<str>>,
    key_id: Option<Box<str>>,
    /// When its first record was written.
    since: Option<u64>,
    newest: Option<LastRecord>,
    /// The last record that may follow when the journal is closed: its note, or the checkpoint
    /// behind that.
    closed_at: u64,
}

/// What recovery must know of a record; other members are skipped.
#[derive(Deserialize)]
struct Seen<'a> {
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    request_id: Option<String>,
    intent: Option<u64>,
    agent: Option<String>,
    operation: Option<String>,
    #[serde(default)]
    generation: u64,
    policy_digest: Option<String>,
    note: Option<String>,
    oldest_open: Option<u64>,
    #[serde(borrow, default)]
    instance: Cow<'a, str>,
    #[serde(borrow, default)]
    time: Cow<'a, str>,
    journal: Option<Box<str>>,
    key_id: Option<Box<str>>,
}

/// `next`: where the chain stands before the first record of the next segment, and that segment.
fn scan(path: &Path, newest: bool, next: Option<(Chain, &Path)>) -> Result<Scan, OpenError> {
    let failed = OpenError::io("read the journal's segment", path);
    let file = File::open(path).map_err(&failed)?;
    let size = file.metadata().map_err(&failed)?.len();
    let mut reader = BufReader::with_capacity(256 << 10, file);
    let mut scan = Scan {
        span: None,
        good_bytes: 0,
        torn_bytes: 0,
        doubled: false,
        open: BTreeMap::new(),
        closed_elsewhere: HashSet::new(),
        opening: false,
        reaches_back_to: None,
        journal: None,
        key_id: None,
        since: None,
        newest: None,
        closed_at: 0,
    };
    let mut checker: Option<(Chain, Checker)> = None;
    let mut line = Vec::new();
    let mut number = 0;
    let mut torn: Option<Broken> = None;
    loop {
        line.clear();
        let mut bounded = reader.by_ref().take(MAX_LINE as u64 + 1);
        let length = bounded.read_until(b'\n', &mut line).map_err(&failed)?;
        if length == 0 {
            break;
        }
        number += 1;
        let whole = line.pop_if(|byte| *byte == b'\n').is_some();
        let broken = |why| Broken { line: number, why };
        let result = if whole {
            take(&mut checker, &line).map_err(broken)
        } else {
            Err(broken(Why::NotARecord))
        };
        match result {
            // A whole record behind something that is none, or one out of place: that is no
            // torn write, and cutting it off could hide what happened.
            Err(error) if error.why != Why::NotARecord => return Err(damaged(path, error)),
            Ok(seen) => {
                if let Some(error) = torn {
                    return Err(damaged(path, error));
                }
                let sequence = checker
                    .as_ref()
                    .map_or(0, |(_, checker)| checker.chain().sequence());
                note(&mut scan, sequence, seen);
                scan.good_bytes += length as u64;
                let chain = checker.as_ref().map(|(_, checker)| checker.chain());
                if let Some((_, behind)) = next.filter(|(next, _)| Some(*next) == chain)
                    && scan.good_bytes < size
                {
                    if !repeats(&mut reader, behind).map_err(&failed)? {
                        return Err(OpenError::Gap(path.to_path_buf()));
                    }
                    scan.doubled = true;
                    break;
                }
            }
            Err(error) => {
                torn = torn.or(Some(error));
                // No record has a zero byte. A page that did not reach the disk before a power
                // loss reads as zeros, and pages behind it may have reached it: what stands after
                // the first lost page was never answered as durable.
                if newest && line.contains(&0) {
                    break;
                }
            }
        }
    }
    scan.torn_bytes = size.saturating_sub(scan.good_bytes);
    if let (Some(error), false) = (torn, newest) {
        return Err(damaged(path, error));
    }
    scan.span = checker.map(|(start, checker)| (start, checker.chain()));
    Ok(scan)
}

/// Whether what comes in a segment is what the next one begins with, as far as it can be read: it
/// was taken along there when it could not be synced here, so a power loss may have torn it.
fn repeats(rest: &mut impl BufRead, next: &Path) -> io::Result<bool> {
    let mut next = BufReader::with_capacity(256 << 10, File::open(next)?);
    let (mut here, mut there) = (Vec::new(), Vec::new());
    loop {
        here.clear();
        there.clear();
        let most = MAX_LINE as u64 + 1;
        if rest.by_ref().take(most).read_until(b'\n', &mut here)? == 0 {
            return Ok(true);
        }
        next.by_ref().take(most).read_until(b'\n', &mut there)?;
        if here != there {
            return Ok(here.contains(&0) || !here.ends_with(b"\n"));
        }
    }
}

/// Checks one line against the chain, and that it is JSON; the chain only moves when both hold.
fn take<'l>(checker: &mut Option<(Chain, Checker)>, line: &'l [u8]) -> Result<Seen<'l>, Why> {
    let mut next = match checker {
        Some(running) => running.clone(),
        None => {
            let first = Checker::before(line).map_err(|broken| broken.why)?;
            (first.chain(), first)
        }
    };
    next.1.take(line).map_err(|broken| broken.why)?;
    let seen = serde_json::from_slice(line).map_err(|_| Why::NotARecord)?;
    *checker = Some(next);
    Ok(seen)
}

fn note(scan: &mut Scan, sequence: u64, seen: Seen<'_>) {
    scan.since = scan.since.or_else(|| seconds(&seen.time));
    scan.newest = Some(LastRecord {
        sequence,
        instance: seen.instance.as_ref().into(),
        time: seen.time.as_ref().into(),
    });
    let named = seen.journal.as_ref();
    scan.journal = named.cloned().or(scan.journal.take());
    match &*seen.kind {
        "intent" => {
            scan.open.insert(sequence, seen.into());
        }
        "outcome" => {
            if let Some(intent) = seen.intent
                && scan.open.remove(&intent).is_none()
            {
                scan.closed_elsewhere.insert(intent);
            }
        }
        "note" if seen.note.as_deref() == Some("opened") => {
            scan.open.clear();
            scan.opening = true;
        }
        "note" if seen.note.as_deref() == Some("closed") => scan.closed_at = sequence,
        "checkpoint" => {
            if scan.closed_at > 0 && scan.closed_at + 1 == sequence {
                scan.closed_at = sequence;
            }
            scan.key_id = seen.key_id.or(scan.key_id.take());
        }
        "note" if seen.note.as_deref() == Some("segment") => {
            scan.reaches_back_to = Some(seen.oldest_open.unwrap_or(sequence));
        }
        _ => {}
    }
}

/// The whole seconds of a record's time.
fn seconds(time: &str) -> Option<u64> {
    let whole = parse_instant(&format!("{}Z", time.get(..19)?))?;
    u64::try_from(whole).ok()
}

fn damaged(path: &Path, broken: Broken) -> OpenError {
    OpenError::Damaged(path.to_path_buf(), broken)
}
