//! Why a journal cannot be opened.

use crate::audit::chain::Broken;
use crate::audit::redact::{TEXT, cut};
use crate::pipeline::ports::JournalError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a journal cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another process writes to it; which one, as far as its lock says.
    Locked(PathBuf, Option<Holder>),
    /// A file operation failed.
    Io {
        /// What was being done, as in "cannot …".
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A segment has a record that does not follow from those before it; this is no torn write.
    Damaged(PathBuf, Broken),
    /// A segment does not end where the next one begins.
    Gap(PathBuf),
    /// Its metrics cannot be made.
    Metrics(String),
    /// The first records of this run could not be written; with the system's reason.
    Unwritable(PathBuf, JournalError, Box<str>),
}

/// Who holds a journal's lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its name in records.
    pub instance: Box<str>,
}

impl OpenError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> OpenError + use<> {
        let path = path.to_path_buf();
        move |source| OpenError::Io {
            doing,
            path: path.clone(),
            source,
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOVE: &str =
            "keep the directory as evidence and set `audit.journal.dir` to a new one";
        match self {
            OpenError::Locked(dir, holder) => {
                write!(
                    f,
                    "the journal in `{}` is in use by another process",
                    dir.display()
                )?;
                if let Some(Holder { pid, instance }) = holder {
                    write!(f, ", {pid} (instance `{}`)", cut(instance, TEXT))?;
                }
                f.write_str("; stop that one, or give each its own `audit.journal.dir`")
            }
            OpenError::Io {
                doing,
                path,
                source,
            } => write!(
                f,
                "cannot {doing} `{}`: {source}; it must be readable and writable for this user",
                path.display()
            ),
            OpenError::Damaged(path, broken) => {
                write!(
                    f,
                    "the journal is damaged: `{}`, {broken}; {MOVE}",
                    path.display()
                )
            }
            OpenError::Gap(path) => write!(
                f,
                "the journal is damaged: `{}` does not end where the next segment begins; {MOVE}",
                path.display()
            ),
            OpenError::Metrics(why) => write!(f, "the journal's metrics cannot be made: {why}"),
            OpenError::Unwritable(dir, error, detail) => write!(
                f,
                "cannot write to the journal in `{}`: {error} ({detail})",
                dir.display()
            ),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Io { source, .. } => Some(source),
            OpenError::Damaged(_, broken) => Some(broken),
            OpenError::Locked(..)
            | OpenError::Gap(_)
            | OpenError::Metrics(_)
            | OpenError::Unwritable(..) => None,
        }
    }
}
