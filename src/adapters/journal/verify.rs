//! Verifying the files of a journal, block by block on all cores.

use super::read::MAX_LINE;
use super::scan::{BLOCK, Block, End as BlockEnd, Segment, each};
use crate::audit::chain::Chain;
use crate::audit::checkpoint::Signed;
use crate::audit::verify::What;
use crate::audit::verify::join::{End, Verifier};
use crate::audit::verify::piece::{At, Looking, Means, Piece};
use crate::audit::verify::report::Report;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Looks at every line of `segments` on `threads` threads; `read` is told how many bytes that were.
pub fn verify(
    segments: &[Segment],
    means: &Means,
    (external, beginning, end): (Vec<Signed>, Chain, End),
    threads: usize,
    read: &mut dyn FnMut(u64),
) -> Report {
    let mut verifier = Verifier::new(means, external, beginning);
    let mut bytes = 0;
    let work = |block: Block<'_>| look(means, block);
    each(segments, threads, &work, &mut |segment, piece: Piece| {
        if let Some(segment) = segments.get(segment) {
            verifier.join(&segment.name, segment.first, piece);
        }
        bytes += BLOCK;
        read(bytes);
        ControlFlow::Continue(())
    });
    verifier.done(end)
}

fn look(means: &Means, block: Block<'_>) -> Piece {
    let mut looking = Looking::new(means);
    let mut at = At {
        line: 0,
        offset: block.offset,
    };
    let mut rest = block.lines;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let (line, behind) = rest.split_at(end);
        match line.len() > MAX_LINE {
            true => looking.fault(at, What::TooLong),
            false => looking.line(at, line),
        }
        at.line += 1;
        at.offset += end as u64 + 1;
        rest = behind.get(1..).unwrap_or_default();
    }
    match block.end {
        BlockEnd::Whole => {}
        BlockEnd::Torn => looking.torn(at),
        BlockEnd::TooLong => looking.fault(at, What::TooLong),
        BlockEnd::Unreadable(why) => looking.fault(at, What::Unreadable(why)),
    }
    looking.done()
}

/// Whether a process of this machine holds the lock of the journal in `dir`, as the kernel tells
/// it: taking the lock to find out could keep a gateway from starting.
pub fn is_held(dir: &Path) -> bool {
    let Ok(lock) = fs::metadata(dir.join("lock")) else {
        return false;
    };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let inode = lock.ino().to_string();
    locks.lines().any(|line| {
        let mut words = line.split_ascii_whitespace();
        let exclusive = words.any(|word| word == "FLOCK") && words.any(|word| word == "WRITE");
        let file = words.nth(1).and_then(|file| file.rsplit(':').next());
        exclusive && file == Some(&inode)
    })
}
