//! `audit`: where and how the journal is written.

use super::capture::Capture;
use super::document;
use super::snapshot::{Audit, CheckpointCopies, Durability};
use crate::audit::redact::hidden::{Addresses, Redact};
use crate::source::{Value, codes};
use std::time::Duration;

/// The journal's settings, and where they stand; `None` without a directory.
pub(super) fn read<'w, 'd>(
    value: &Value<'w, 'd>,
    capture: &Capture,
) -> Option<(Audit, Value<'w, 'd>)> {
    let journal = value.fields(&document::AUDIT)?.get("journal")?;
    let fields = journal.fields(&document::JOURNAL)?;
    let dir = capture.resolve(fields.get("dir")?.text()?);
    let default = Audit::new(dir);
    let durability = fields.get("durability").and_then(|v| {
        v.word(&[
            ("write", Durability::Write),
            ("group", Durability::Group),
            ("each", Durability::Each),
        ])
    });
    let size = |name, low| fields.get(name).and_then(|v| v.size(low..=1 << 50));
    let every = |name, low, high| {
        let range = Duration::from_secs(low)..=Duration::from_secs(high);
        fields.get(name).and_then(|v| v.duration(range))
    };
    let audit = Audit {
        durability: durability.unwrap_or(default.durability),
        max_bytes: size("max_bytes", 1 << 20).unwrap_or(default.max_bytes),
        segment_bytes: size("segment_bytes", 64 << 10).unwrap_or(default.segment_bytes),
        rotate_every: every("rotate_every", 60, 365 * 86_400).unwrap_or(default.rotate_every),
        checkpoint_every: every("checkpoint_every", 1, 86_400).unwrap_or(default.checkpoint_every),
        min_age: every("min_age", 0, 100 * 365 * 86_400).unwrap_or(default.min_age),
        copies: fields
            .get("checkpoints")
            .map(|v| copies(&v, capture))
            .unwrap_or_default(),
        dir: default.dir,
    };
    if let Some(place) = fields.get("segment_bytes")
        && audit.segment_bytes > audit.max_bytes
    {
        place.error(
            codes::BAD_SIZE,
            "a segment would be larger than all segments together may be",
            "write a size below `max_bytes`; segments are the units in which a journal is pruned",
        );
    }
    Some((audit, journal))
}

/// What records hide.
pub(super) fn redact(value: &Value<'_, '_>) -> Redact {
    let fields = value.fields(&document::AUDIT).and_then(|f| f.get("redact"));
    let Some(fields) = fields.and_then(|v| v.fields(&document::REDACT)) else {
        return Redact::default();
    };
    let hidden = |name| fields.get(name).and_then(|v| v.word(&[("hmac", true)]));
    let addresses = fields
        .get("addresses")
        .and_then(|v| v.word(&[("hmac", Addresses::Hidden), ("prefix", Addresses::Prefix)]));
    Redact {
        subjects: hidden("subjects").unwrap_or(false),
        ids: hidden("ids").unwrap_or(false),
        addresses: addresses.unwrap_or_default(),
    }
}

fn copies(value: &Value<'_, '_>, capture: &Capture) -> CheckpointCopies {
    let Some(fields) = value.fields(&document::CHECKPOINTS) else {
        return CheckpointCopies::default();
    };
    let file = fields.get("file");
    let path = file.as_ref().and_then(|v| v.text());
    let stdout = fields.get("stdout").and_then(|v| v.boolean());
    CheckpointCopies {
        file: path.map(|path| capture.resolve(path)),
        stdout: stdout.unwrap_or(false),
    }
}
