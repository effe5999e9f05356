//! What `audit verify` does with a bundle, and with a journal whose beginning was removed.

use crate::adapters::journal::bundle::{Found, before};
use crate::adapters::journal::prune::{bounded, removed};
use crate::adapters::journal::scan::{Segment, cores};
use crate::adapters::journal::verify::verify;
use crate::audit::bundle::MANIFEST;
use crate::audit::chain::Chain;
use crate::audit::checkpoint::Signed;
use crate::audit::pruned::Pruned;
use crate::audit::redact::{ID, cut};
use crate::audit::verify::join::End;
use crate::audit::verify::piece::Means;
use crate::audit::verify::report::Report;
use crate::identity::keys::KeySet;
use serde::Deserialize;
use std::path::Path;

/// Longest manifest that is read, in bytes.
const MAX_MANIFEST: u64 = 64 << 20;

/// Where a journal has to begin, and how many segments and records were removed before.
#[derive(Default)]
pub(super) struct Beginning {
    pub(super) chain: Chain,
    pub(super) segments: u64,
    /// Why the lines of removed segments prove nothing.
    pub(super) fault: Option<String>,
}

/// Follows the lines of removed segments to the first segment that is there. Without keys nobody
/// asks who signed them.
pub(super) fn beginning(folder: &Path, segments: &[Segment], keys: Option<&KeySet>) -> Beginning {
    let first = segments.first().map_or(1, |segment| segment.first);
    let mut found = Beginning::default();
    match removed(folder) {
        Ok(lines) if first > 1 && !lines.is_empty() => {
            match follow(&lines, first, keys) {
                Ok((chain, segments)) => (found.chain, found.segments) = (chain, segments),
                Err(why) => found.fault = Some(why),
            };
        }
        Ok(_) => {}
        Err(error) => found.fault = Some(error.to_string()),
    }
    found
}

fn follow(lines: &[Pruned], first: u64, keys: Option<&KeySet>) -> Result<(Chain, u64), String> {
    let mut before: Option<&Pruned> = None;
    for (line, number) in lines.iter().zip(1u64..) {
        let wrong = |what: &str| format!("line {number} of its removed segments: {what}");
        let joined = match before {
            Some(before) => before.leads_to(line),
            None => line.first_seq == 1 && line.prev.bytes().all(|b| b == b'0'),
        };
        if !joined {
            return Err(wrong("it does not follow from the one before"));
        }
        if keys.is_some_and(|keys| !line.is_signed_by(keys)) {
            return Err(wrong("no trusted key signed it"));
        }
        if line.last_seq.checked_add(1) == Some(first) {
            let chain = Chain::at(line.last_seq, &line.head);
            return chain
                .map(|chain| (chain, number))
                .ok_or_else(|| wrong("its `head` is no hash"));
        }
        before = Some(line);
    }
    Err(format!(
        "none of its removed segments leads to record {first}"
    ))
}

/// What a bundle says of itself; nothing of it is believed but names.
#[derive(Deserialize)]
struct Manifest {
    calls: u64,
    spans: Vec<Span>,
    #[serde(default)]
    texts: Vec<Found>,
}

#[derive(Deserialize)]
struct Span {
    file: Box<str>,
    first_seq: u64,
    last_seq: u64,
}

/// What a bundle comes to.
pub(super) struct Bundle {
    pub(super) calls: u64,
    pub(super) reports: Vec<(Box<str>, Report)>,
    pub(super) texts: usize,
    /// What is wrong beside the spans themselves.
    pub(super) faults: Vec<String>,
}

impl Bundle {
    /// Nothing is other than it was written.
    pub(super) fn intact(&self) -> bool {
        let whole = |(_, report): &(_, Report)| report.intact() && report.unsigned == 0;
        self.faults.is_empty() && !self.reports.is_empty() && self.reports.iter().all(whole)
    }
}

/// Verifies a bundle: each span by itself, each up to a checkpoint, all of one journal.
pub(super) fn bundle(
    folder: &Path,
    segments: &[Segment],
    means: &Means,
    external: &[Signed],
) -> Bundle {
    let mut found = Bundle {
        calls: 0,
        reports: Vec::new(),
        texts: 0,
        faults: Vec::new(),
    };
    let manifest = bounded(&folder.join(MANIFEST), MAX_MANIFEST)
        .map_err(|error| error.to_string())
        .and_then(|text| serde_json::from_str::<Manifest>(&text).map_err(|e| e.to_string()));
    let manifest = match manifest {
        Ok(manifest) => manifest,
        Err(error) => {
            found.faults.push(format!("`{MANIFEST}`: {error}"));
            return found;
        }
    };
    found.calls = manifest.calls;
    for segment in segments {
        let chain = match before(segment) {
            Ok(chain) => chain,
            Err(error) => {
                found.faults.push(format!("{}: {error}", segment.name));
                continue;
            }
        };
        let span = manifest.spans.iter().find(|span| span.file == segment.name);
        let Some(span) = span else {
            found
                .faults
                .push(format!("{}: `{MANIFEST}` does not name it", segment.name));
            continue;
        };
        let within = |signed: &&Signed| (span.first_seq..=span.last_seq).contains(&signed.size);
        let external: Vec<Signed> = external.iter().filter(within).cloned().collect();
        let end = End {
            held: false,
            tail: 0,
        };
        let one = std::slice::from_ref(segment);
        let report = verify(one, means, (external, chain, end), cores(), &mut |_| {});
        if (chain.sequence() + 1, report.last) != (span.first_seq, span.last_seq) {
            found.faults.push(format!(
                "{}: it does not hold records {} to {}",
                segment.name, span.first_seq, span.last_seq
            ));
        }
        found.reports.push((segment.name.clone(), report));
    }
    for span in &manifest.spans {
        if !segments.iter().any(|segment| segment.name == span.file) {
            found
                .faults
                .push(format!("{} is missing", cut(&span.file, ID)));
        }
    }
    let mut journals = found
        .reports
        .iter()
        .filter_map(|(_, report)| report.journal.as_ref());
    if let Some(first) = journals.next()
        && journals.any(|other| other != first)
    {
        found
            .faults
            .push("its spans are of different journals".to_owned());
    }
    for text in &manifest.texts {
        match text.read(folder) {
            Some(_) => found.texts += 1,
            None => found.faults.push(format!(
                "the text of `{}` is missing or was changed",
                cut(&text.name, ID)
            )),
        }
    }
    found
}
