//! Our own keys as the configuration names them, made where there are none yet.

use crate::adapters::journal::Settings;
use crate::adapters::key_files::{KeyFileError, open, open_secret};
use crate::config::snapshot::{Audit, SigningKeys, Snapshot};
use crate::identity::SigningKey;
use crate::pipeline::ports::Random;
use crate::pipeline::{JournalKeys, OwnKeys};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All of them, beside those with which the journal is written.
pub(super) fn own_keys(
    snapshot: &Snapshot,
    journal: JournalKeys,
) -> Result<Option<OwnKeys>, KeyFileError> {
    let keys = &snapshot.keys;
    let read =
        |file: Option<(PathBuf, bool)>| file.map(|(file, make)| open(&file, make)).transpose();
    let (card, assertion) = (read(keys.card_file())?, read(keys.assertion_file())?);
    let any = card.is_some() || assertion.is_some() || journal.checkpoint.is_some();
    Ok(any.then(|| OwnKeys::new(card, assertion, journal)))
}

/// The keys with which the journal is written, and among them the one that signs its checkpoints.
pub(in crate::cli) fn journal_keys(
    keys: &SigningKeys,
    dir: &Path,
    random: &dyn Random,
) -> Result<(JournalKeys, Arc<SigningKey>), KeyFileError> {
    let (file, make) = keys.checkpoint_file(dir);
    let checkpoint = Arc::new(open(&file, make)?);
    let (file, make) = keys.fingerprint_file(dir);
    let keys = JournalKeys {
        checkpoint: Some(checkpoint.clone()),
        fingerprints: Some(open_secret(&file, make, random)?),
    };
    Ok((keys, checkpoint))
}

/// What the configured journal is opened with.
pub(in crate::cli) fn journal_settings(
    audit: &Audit,
    key: Arc<SigningKey>,
    instance: Box<str>,
) -> Settings {
    Settings {
        dir: audit.dir.clone(),
        durability: audit.durability,
        max_bytes: audit.max_bytes,
        segment_bytes: audit.segment_bytes,
        rotate_every: audit.rotate_every,
        checkpoint_every: audit.checkpoint_every,
        copies: audit.copies.clone(),
        key,
        instance,
    }
}

/// A name that no other process has.
pub(super) fn instance_name(random: &dyn Random) -> Box<str> {
    let mut bytes = [0u8; 4];
    random.fill(&mut bytes);
    format!("gw-{:08x}", u32::from_be_bytes(bytes)).into()
}
