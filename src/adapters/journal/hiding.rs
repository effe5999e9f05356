//! Whether a journal hides values, and with which keys, by a look at its segments' ends.

use super::scan::Segment;
use crate::audit::redact::hidden::key_of;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What is looked at of each end of a segment, in bytes.
const END: u64 = 64 << 10;
/// Length of a token.
const TOKEN: usize = 46;

/// What was seen of values that are not written as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hiding {
    /// The ids of the keys of tokens.
    pub keys: BTreeSet<String>,
    /// Addresses stand there as networks.
    pub networks: bool,
}

/// Looks at the first and last records of each segment, so what was hidden for a short while only
/// may not be seen.
///
/// # Errors
/// A segment cannot be read.
pub fn hiding(segments: &[Segment]) -> io::Result<Hiding> {
    let mut seen = Hiding::default();
    for segment in segments {
        let file = File::open(&segment.path)?;
        let last = segment.bytes.saturating_sub(END);
        let mut ends = vec![0, last];
        ends.dedup();
        for from in ends {
            let length = segment.bytes.saturating_sub(from).min(END);
            let mut text = vec![0; usize::try_from(length).map_err(io::Error::other)?];
            file.read_exact_at(&mut text, from)?;
            look(&text, &mut seen);
        }
    }
    Ok(seen)
}

fn look(text: &[u8], seen: &mut Hiding) {
    for at in memchr::memmem::find_iter(text, b"\"hmac:") {
        let token = text.get(at + 1..at + 1 + TOKEN);
        let token = token.and_then(|token| std::str::from_utf8(token).ok());
        if let Some(id) = token.and_then(key_of)
            && !seen.keys.contains(id)
        {
            seen.keys.insert(id.to_owned());
        }
    }
    const ADDRESS: &[u8] = b"\"addr\":\"";
    let mut addresses = memchr::memmem::find_iter(text, ADDRESS);
    seen.networks |= addresses.any(|at| {
        let value = text.get(at + ADDRESS.len()..).unwrap_or_default();
        let end = value.iter().position(|byte| *byte == b'"').unwrap_or(0);
        value[..end].contains(&b'/')
    });
}
