//! Which journals a command reads.

use super::keys::{self, fingerprint_key};
use crate::audit::redact::hidden::{HidingKey, Redact};
use crate::cli::exit;
use crate::config::check::load;
use crate::config::snapshot::Snapshot;
use crate::identity::keys::KeySet;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Where journals are.
#[derive(clap::Args)]
pub(in crate::cli) struct From {
    /// A journal's folder; may be repeated. Default: the one of the gateway file
    #[arg(long, value_name = "DIR")]
    pub(super) journal: Vec<PathBuf>,
    /// A folder that `audit bundle` made, in the place of a journal; may be repeated. Only what is
    /// named so may lack records between its spans
    #[arg(long, value_name = "DIR", conflicts_with = "journal")]
    pub(super) bundle: Vec<PathBuf>,
    /// The gateway file, which says where the journal is
    #[arg(long, value_name = "FILE", default_value = "config/gateway.yaml")]
    pub(super) config: PathBuf,
}

/// A folder to read.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Folder {
    pub(in crate::cli) path: PathBuf,
    /// Whether it was named as a bundle. What lies in the folder says nothing about that: whoever
    /// takes records out of a journal could put it there.
    pub(super) bundle: bool,
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl From {
    /// The journals' folders; the gateway file is only read where no folder is named.
    ///
    /// # Errors
    /// The exit code; what is wrong was printed.
    pub(super) fn folders(&self) -> Result<Vec<Folder>, u8> {
        let as_one = |bundle| {
            move |path: &PathBuf| Folder {
                path: path.clone(),
                bundle,
            }
        };
        let journals = self.journal.iter().map(as_one(false));
        let named: Vec<Folder> = journals
            .chain(self.bundle.iter().map(as_one(true)))
            .collect();
        if !named.is_empty() {
            return Ok(named);
        }
        let snapshot = self.snapshot("name the journal's folder with `--journal DIR`")?;
        Ok(vec![as_one(false)(&snapshot.audit.dir)])
    }

    /// The public part of the key that the gateway file has for checkpoints.
    ///
    /// # Errors
    /// The exit code; what is wrong was printed.
    pub(super) fn checkpoint_keys(&self) -> Result<KeySet, u8> {
        let snapshot = self.snapshot(
            "name the keys that you trust with `--keys FILE`, or look at none with `--no-keys`",
        )?;
        let (file, _) = snapshot.keys.checkpoint_file(&snapshot.audit.dir);
        keys::read(&file)
    }

    /// The keys that the gateway file has for fingerprints: the one in force, then those before it.
    ///
    /// # Errors
    /// The exit code; what is wrong was printed.
    pub(super) fn fingerprint_keys(&self) -> Result<Vec<HidingKey>, u8> {
        let snapshot = self.snapshot("name the key with `--key FILE`")?;
        let files = fingerprint_files(&snapshot);
        files.iter().map(|file| fingerprint_key(file)).collect()
    }

    /// Likewise, for values that the journals may hide: none where folders are named, since whose
    /// keys theirs are is not known, and none where there are none and nothing is to be hidden.
    ///
    /// # Errors
    /// The exit code; what is wrong was printed.
    pub(super) fn hiding_keys(&self) -> Result<Vec<HidingKey>, u8> {
        if !self.journal.is_empty() || !self.bundle.is_empty() {
            return Ok(Vec::new());
        }
        let snapshot = self.snapshot("name the journal's folder with `--journal DIR`")?;
        let hides = snapshot.redact != Redact::default();
        let files = fingerprint_files(&snapshot).into_iter();
        files
            .filter(|file| hides || file.exists())
            .map(|file| fingerprint_key(&file))
            .collect()
    }

    fn snapshot(&self, help: &str) -> Result<Snapshot, u8> {
        load(&self.config)
            .map(|loaded| loaded.snapshot)
            .map_err(|problems| {
                eprint!("{problems}");
                eprintln!("  = help: {help}");
                exit::INVALID
            })
    }
}

/// The files of the keys for fingerprints: the one in force, then those before it.
fn fingerprint_files(snapshot: &Snapshot) -> Vec<PathBuf> {
    let (file, _) = snapshot.keys.fingerprint_file(&snapshot.audit.dir);
    let older = snapshot.keys.older_fingerprints.iter().cloned();
    std::iter::once(file).chain(older).collect()
}
