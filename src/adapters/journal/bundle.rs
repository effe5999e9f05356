//! What a bundle takes out of a journal: where its checkpoints and configurations are, spans of its
//! lines, and texts.

use super::read::MAX_LINE;
use super::scan::walk::{Seams, Walk};
use super::scan::{Block, Segment, cores, each};
use crate::audit::bundle::Span;
use crate::audit::chain::{Chain, Checker};
use crate::audit::query::calls::kind_of;
use crate::audit::redact::hex;
use aws_lc_rs::digest::{SHA256, digest};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;

/// Longest text that is read, in bytes.
const MAX_TEXT: u64 = 64 << 20;

/// Where a journal has what bundles need.
#[derive(Debug, Default)]
pub struct Sought {
    /// Sequence numbers of its checkpoints, ascending.
    pub checkpoints: Vec<u64>,
    /// By the digest that they put in force: sequence numbers of records of loaded configurations,
    /// ascending.
    pub configs: BTreeMap<Box<str>, Vec<u64>>,
    /// By digest: the texts that it is made of.
    pub texts: BTreeMap<Box<str>, Vec<Found>>,
    /// Places with something else than the next record.
    pub faults: u64,
}

/// A text, by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Found {
    /// The file's name when it was read.
    pub name: Box<str>,
    /// `gateway` or `policy`.
    pub role: Box<str>,
    /// Hex SHA-256 of its bytes.
    pub sha256: Box<str>,
}

/// What of a record of a configuration matters here.
#[derive(Deserialize)]
struct Config {
    result: Box<str>,
    policy_digest: Box<str>,
    #[serde(default)]
    files: Vec<Found>,
}

enum Seen {
    Checkpoint(u64),
    Config(u64, Config),
}

impl Found {
    /// Its bytes, from the folder of a journal or a bundle; `None` where they are not there, or are
    /// not those that the digest is of.
    pub fn read(&self, folder: &Path) -> Option<Vec<u8>> {
        // From a record, so it may be anything.
        let plain = self.sha256.len() == 64 && self.sha256.bytes().all(|b| b.is_ascii_hexdigit());
        let path = plain.then(|| folder.join("texts").join(&*self.sha256))?;
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|f| f.take(MAX_TEXT).read_to_end(&mut bytes));
        let is = digest(&SHA256, &bytes);
        let good = read.is_ok() && hex(is.as_ref(), &mut [0; 64]) == &*self.sha256;
        good.then_some(bytes)
    }
}

/// Looks through a journal once.
///
/// # Errors
/// A segment cannot be read.
pub fn look(segments: &[Segment]) -> io::Result<Sought> {
    let mut sought = Sought::default();
    let mut seams = Seams::default();
    let work = |block: Block<'_>| {
        let mut walk = Walk::new(block);
        let mut seen = Vec::new();
        for raw in walk.by_ref() {
            match kind_of(raw.members) {
                b"checkpoint" => seen.push(Seen::Checkpoint(raw.seq)),
                b"config" => {
                    if let Ok(config) = serde_json::from_slice(raw.line) {
                        seen.push(Seen::Config(raw.seq, config));
                    }
                }
                _ => {}
            }
        }
        (seen, walk.done())
    };
    let mut unreadable = None;
    each(segments, cores(), &work, &mut |segment, (seen, edges)| {
        seams.join(segment, edges, segments, &mut |place, fault| {
            sought.faults += 1;
            unreadable.get_or_insert_with(|| format!("{place}: {fault}"));
        });
        for seen in seen {
            match seen {
                Seen::Checkpoint(sequence) => sought.checkpoints.push(sequence),
                Seen::Config(sequence, config) if &*config.result == "loaded" => {
                    let digest = &config.policy_digest;
                    let list = sought.configs.entry(digest.clone()).or_default();
                    list.push(sequence);
                    sought.texts.insert(digest.clone(), config.files);
                }
                Seen::Config(..) => {}
            }
        }
        ControlFlow::Continue(())
    });
    match unreadable {
        Some(why) => Err(io::Error::other(why)),
        None => Ok(sought),
    }
}

/// Where the chain stood before the first record of a file, by what that record says.
///
/// # Errors
/// The file cannot be read, or begins with no record.
pub fn before(segment: &Segment) -> io::Result<Chain> {
    let mut line = Vec::new();
    BufReader::new(File::open(&segment.path)?)
        .take(MAX_LINE as u64 + 1)
        .read_until(b'\n', &mut line)?;
    let line = line.strip_suffix(b"\n").unwrap_or(&line);
    let checker = Checker::before(line).map_err(io::Error::other)?;
    Ok(checker.chain())
}

/// Copies the lines of a span, and says how many there were.
///
/// # Errors
/// A segment cannot be read, a record of the span is missing, or it cannot be written.
pub fn copy(segments: &[Segment], span: Span, out: &mut File) -> io::Result<u64> {
    let first = segments.partition_point(|segment| segment.first <= span.first);
    let end = segments.partition_point(|segment| segment.first <= span.last);
    let within = segments
        .get(first.saturating_sub(1)..end)
        .unwrap_or_default();
    let work = |block: Block<'_>| {
        let mut walk = Walk::new(block);
        let (mut lines, mut count) = (Vec::new(), 0u64);
        for raw in walk.by_ref() {
            if span.first <= raw.seq && raw.seq <= span.last {
                lines.extend_from_slice(raw.line);
                lines.push(b'\n');
                count += 1;
            }
        }
        (lines, count)
    };
    let (mut copied, mut written) = (0, Ok(()));
    each(within, cores(), &work, &mut |_, (lines, count)| {
        copied += count;
        written = out.write_all(&lines);
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    written?;
    out.sync_all()?;
    if copied != span.last - span.first + 1 {
        return Err(io::Error::other("records are missing in the journal"));
    }
    Ok(copied)
}
