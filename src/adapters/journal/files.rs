//! The journal's directory: its lock, its segments, and the one that grows.

use super::OpenError;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";

/// What the writer does to a disk; the other implementation breaks on purpose.
pub(super) trait Storage: Send {
    /// Bytes of the current segment, as far as they were written on purpose.
    fn segment_bytes(&self) -> u64;
    /// Bytes of all segments together.
    ///
    /// # Errors
    /// The directory cannot be read.
    fn measure(&self) -> io::Result<u64>;
    /// Writes behind what the segment has. On an error, part of it may have been written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Removes what a failed append left behind, and what was appended beyond `bytes`.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
    /// Makes what was appended survive a power loss.
    fn sync(&mut self) -> io::Result<()>;
    /// Goes on in a new segment, whose first record will be `sequence`.
    fn begin(&mut self, sequence: u64) -> io::Result<()>;
    /// Whether the current segment's name no longer leads to it (renamed or removed).
    fn is_gone(&self) -> bool;
}

/// A directory of segments. Holds the lock until it is dropped.
pub(super) struct Files {
    dir: PathBuf,
    current: Option<Segment>,
    _lock: File,
}

struct Segment {
    path: PathBuf,
    file: File,
    inode: u64,
    bytes: u64,
}

impl Files {
    /// Makes the directory (0700) where it is missing, and becomes its only writer.
    pub(super) fn open(dir: &Path) -> Result<Files, OpenError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(OpenError::io("make the journal's directory", dir))?;
        let path = dir.join(LOCK);
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(OpenError::io("open the journal's lock", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked(dir.to_path_buf())),
            Err(TryLockError::Error(error)) => {
                return Err(OpenError::io("lock the journal", &path)(error));
            }
        }
        Ok(Files {
            dir: dir.to_path_buf(),
            current: None,
            _lock: lock,
        })
    }

    /// The segments' paths, oldest first.
    pub(super) fn segments(&self) -> Result<Vec<PathBuf>, OpenError> {
        let failed = |error| OpenError::io("list the journal", &self.dir)(error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if is_segment(&path) {
                names.push(path);
            }
        }
        // Numbers are padded, so names sort like them.
        names.sort_unstable();
        Ok(names)
    }

    /// Goes on in an existing segment after its first `bytes`, removing what follows them.
    pub(super) fn resume(&mut self, path: &Path, bytes: u64) -> Result<(), OpenError> {
        let open = || {
            let file = OpenOptions::new().append(true).open(path)?;
            let metadata = file.metadata()?;
            if metadata.len() > bytes {
                file.set_len(bytes)?;
                file.sync_all()?;
            }
            Ok(Segment {
                path: path.to_path_buf(),
                inode: metadata.ino(),
                file,
                bytes,
            })
        };
        self.current = Some(open().map_err(OpenError::io("open the journal's segment", path))?);
        Ok(())
    }

    fn current(&mut self) -> io::Result<&mut Segment> {
        self.current
            .as_mut()
            .ok_or_else(|| io::Error::other("the journal has no segment"))
    }
}

impl Storage for Files {
    fn segment_bytes(&self) -> u64 {
        self.current.as_ref().map_or(0, |segment| segment.bytes)
    }

    fn measure(&self) -> io::Result<u64> {
        let mut total = 0;
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if is_segment(&entry.path()) {
                total += entry.metadata()?.len();
            }
        }
        Ok(total)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let segment = self.current()?;
        segment.file.write_all(bytes)?;
        segment.bytes += bytes.len() as u64;
        Ok(())
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        let segment = self.current()?;
        segment.file.set_len(bytes)?;
        segment.bytes = bytes;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.current()?.file.sync_data()
    }

    fn begin(&mut self, sequence: u64) -> io::Result<()> {
        let path = self.dir.join(format!("journal-{sequence:020}.jsonl"));
        // An empty segment of this name is left behind when its first write failed.
        if fs::metadata(&path).is_ok_and(|metadata| metadata.len() == 0) {
            fs::remove_file(&path)?;
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)?;
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .mode(0o600)
            .open(&path)?;
        // The new name must survive a power loss as well as the bytes will.
        File::open(&self.dir)?.sync_all()?;
        self.current = Some(Segment {
            inode: file.metadata()?.ino(),
            path,
            file,
            bytes: 0,
        });
        Ok(())
    }

    fn is_gone(&self) -> bool {
        self.current.as_ref().is_some_and(|segment| {
            fs::metadata(&segment.path).map_or(true, |metadata| metadata.ino() != segment.inode)
        })
    }
}

pub(super) fn is_segment(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_prefix("journal-")?.strip_suffix(".jsonl"))
        .is_some_and(|number| number.len() == 20 && number.bytes().all(|b| b.is_ascii_digit()))
}
