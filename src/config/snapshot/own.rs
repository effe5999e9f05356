//! What a gateway keeps for itself: its keys, its journal, and the texts of its configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where our own private keys are; changing it needs a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SigningKeys {
    /// Directory of keys that are made on the first start.
    pub dir: Option<PathBuf>,
    /// The key that signs cards, which must be there.
    pub card: Option<PathBuf>,
    /// The key that signs assertions to agents, which must be there.
    pub assertion: Option<PathBuf>,
    /// The key that signs checkpoints of the journal, which must be there.
    pub checkpoint: Option<PathBuf>,
    /// The key of token fingerprints and of what records hide, which must be there.
    pub fingerprint: Option<PathBuf>,
    /// The keys that were in its place before: with them older records can be searched.
    pub older_fingerprints: Vec<PathBuf>,
}

impl SigningKeys {
    /// The file of the key that signs cards, and whether it is made when it is not there.
    pub fn card_file(&self) -> Option<(PathBuf, bool)> {
        self.file(self.card.as_ref(), "card.pem")
    }

    /// The same of the key that signs assertions.
    pub fn assertion_file(&self) -> Option<(PathBuf, bool)> {
        self.file(self.assertion.as_ref(), "assertion.pem")
    }

    /// The same of the key that signs what `portcullis prove` found.
    pub fn proof_file(&self) -> Option<(PathBuf, bool)> {
        self.file(None, "proof.pem")
    }

    /// The same of the key that signs checkpoints of the journal in the directory `journal`, where
    /// it is made when nothing else is configured.
    pub fn checkpoint_file(&self, journal: &Path) -> (PathBuf, bool) {
        let made = "checkpoint.pem";
        let file = self.file(self.checkpoint.as_ref(), made);
        file.unwrap_or_else(|| (journal.join(made), true))
    }

    /// The same of the key of token fingerprints: 32 random bytes in base64.
    pub fn fingerprint_file(&self, journal: &Path) -> (PathBuf, bool) {
        let made = "fingerprint.key";
        let file = self.file(self.fingerprint.as_ref(), made);
        file.unwrap_or_else(|| (journal.join(made), true))
    }

    /// Whether any key is configured that shows the gateway to others.
    pub fn any(&self) -> bool {
        self.card_file().is_some() || self.assertion_file().is_some()
    }

    fn file(&self, named: Option<&PathBuf>, made: &str) -> Option<(PathBuf, bool)> {
        match (named, &self.dir) {
            (Some(file), _) => Some((file.clone(), false)),
            (None, Some(dir)) => Some((dir.join(made), true)),
            (None, None) => None,
        }
    }
}

/// The journal's settings; changing them needs a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// Directory of the journal's segments.
    pub dir: PathBuf,
    /// When an intent counts as recorded.
    pub durability: Durability,
    /// Largest size of all segments together, in bytes.
    pub max_bytes: u64,
    /// A segment that would grow beyond this many bytes is followed by a new one.
    pub segment_bytes: u64,
    /// A segment whose first record is as old as this is followed by a new one.
    pub rotate_every: Duration,
    /// The longest time between two checkpoints.
    pub checkpoint_every: Duration,
    /// From this age on a segment may be removed that was not exported.
    pub min_age: Duration,
    /// Where checkpoints go besides the journal.
    pub copies: CheckpointCopies,
}

impl Audit {
    /// A journal in a directory, with the defaults of everything else.
    pub fn new(dir: PathBuf) -> Audit {
        Audit {
            dir,
            durability: Durability::Write,
            max_bytes: 20 << 30,
            segment_bytes: 64 << 20,
            rotate_every: Duration::from_secs(86_400),
            checkpoint_every: Duration::from_secs(60),
            min_age: Duration::from_secs(90 * 86_400),
            copies: CheckpointCopies::default(),
        }
    }
}

/// Where checkpoints are copied to, so that a journal that was cut short shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckpointCopies {
    /// A file, to which they are appended.
    pub file: Option<PathBuf>,
    /// Whether they go to stdout.
    pub stdout: bool,
}

/// When an intent counts as recorded (`design.md` section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// In the kernel; fsync every second. A crash of ours loses nothing.
    Write,
    /// After an fsync shared by all calls that wait. Survives power loss.
    Group,
    /// After an fsync of its own.
    Each,
}

/// A file of the configuration, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// Its path.
    pub name: Box<str>,
    /// What it is to the gateway.
    pub role: SourceRole,
    /// Its bytes.
    pub text: Arc<[u8]>,
}

/// What a file of the configuration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceRole {
    /// The gateway file.
    Gateway,
    /// A policy file.
    Policy,
}
