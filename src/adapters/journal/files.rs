//! The journal's directory: its lock, its segments, and the one that grows.

use super::{Holder, OpenError};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";
/// A segment in the making.
const CARRIED: &str = "carried.tmp";
/// Longest lock file that is read, in bytes.
const MAX_LOCK: u64 = 4096;
/// How far ahead space is taken, in bytes: a device that fills up shows so much earlier.
const AHEAD: u64 = 4 << 20;
/// Space is given out in pages.
const PAGE: u64 = 4096;

/// What the writer does to a disk; the other implementations break on purpose.
pub(super) trait Storage: Send {
    /// Bytes of the current segment, as far as they were written on purpose.
    fn segment_bytes(&self) -> u64;
    /// What all segments are together.
    ///
    /// # Errors
    /// The directory cannot be read.
    fn measure(&self) -> io::Result<Measured>;
    /// Makes sure that so many bytes can be appended without asking the device for room.
    fn reserve(&mut self, bytes: u64) -> io::Result<()>;
    /// Writes behind what the segment has. On an error, part of it may have been written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Removes what a failed append left behind, and what was appended beyond `bytes`.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
    /// Makes what was appended survive a power loss.
    fn sync(&mut self) -> io::Result<()>;
    /// Goes on in a new segment, whose first record will be `sequence`, with room for `reserve`
    /// bytes. On an error the segment before is still the current one.
    fn begin(&mut self, sequence: u64, reserve: u64) -> io::Result<()>;
    /// What the current segment has behind its first `from` bytes.
    fn tail(&self, from: u64) -> io::Result<Vec<u8>>;
    /// Goes on in a new segment as [`Storage::begin`] does, which has `tail` already, durably, when
    /// it gets its name; then cuts it from the current segment, behind its first `from` bytes.
    fn carry(&mut self, tail: &[u8], from: u64, sequence: u64, reserve: u64) -> io::Result<()>;
    /// Gives back what was reserved and is not used.
    fn release(&mut self);
    /// Whether the current segment's name no longer leads to it (renamed or removed).
    fn is_gone(&self) -> bool;
    /// Whether the current segment has no name at all, so that what is written is lost.
    fn is_removed(&self) -> bool;
}

/// All segments together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Measured {
    pub bytes: u64,
    pub segments: u64,
}

/// A directory of segments. Holds the lock until it is dropped.
pub(super) struct Files {
    dir: PathBuf,
    current: Option<Segment>,
    /// How far ahead space is taken; 0 where the file system cannot.
    ahead: u64,
    instance: Box<str>,
    lock: File,
}

struct Segment {
    path: PathBuf,
    file: File,
    inode: u64,
    bytes: u64,
    /// Up to where there is room for sure.
    reserved: u64,
}

/// What the lock says.
#[derive(Serialize, Deserialize)]
struct Note {
    pid: u32,
    instance: Box<str>,
}

impl Files {
    /// Makes the directory (0700) where it is missing, and becomes its only writer.
    pub(super) fn open(dir: &Path, segment: u64, instance: &str) -> Result<Files, OpenError> {
        make_dir(dir).map_err(OpenError::io("make the journal's directory", dir))?;
        Ok(Files {
            dir: dir.to_path_buf(),
            current: None,
            ahead: AHEAD.min(segment).max(PAGE),
            instance: instance.into(),
            lock: hold(dir, instance)?,
        })
    }

    /// The segments' paths, oldest first.
    pub(super) fn segments(&self) -> Result<Vec<PathBuf>, OpenError> {
        segment_paths(&self.dir).map_err(OpenError::io("list the journal", &self.dir))
    }

    /// Goes on in an existing segment after its first `bytes`, removing what follows them.
    pub(super) fn resume(&mut self, path: &Path, bytes: u64) -> Result<(), OpenError> {
        let open = || {
            let (file, metadata) = cut_to(path, bytes)?;
            Ok(Segment {
                path: path.to_path_buf(),
                inode: metadata.ino(),
                file,
                bytes,
                reserved: bytes,
            })
        };
        self.current = Some(open().map_err(OpenError::io("open the journal's segment", path))?);
        Ok(())
    }

    /// Removes what stands behind the first `bytes` of a segment that is not the current one.
    pub(super) fn trim(&self, path: &Path, bytes: u64) -> Result<(), OpenError> {
        let cut = cut_to(path, bytes).map(drop);
        cut.map_err(OpenError::io("cut the journal's segment", path))
    }

    /// Removes what a crash left of a segment in the making: the segment before still has it all.
    pub(super) fn remove_unfinished(&self) {
        // The next one that is made removes it too.
        let _ = fs::remove_file(self.dir.join(CARRIED));
    }

    fn path(&self, sequence: u64) -> PathBuf {
        self.dir.join(format!("journal-{sequence:020}.jsonl"))
    }

    fn current(&mut self) -> io::Result<&mut Segment> {
        self.current.as_mut().ok_or_else(no_segment)
    }

    /// The lock is gone with a directory that was removed.
    fn hold_again(&mut self) -> io::Result<()> {
        let path = self.dir.join(LOCK);
        let held = self.lock.metadata()?.ino();
        if fs::metadata(&path).is_ok_and(|metadata| metadata.ino() == held) {
            return Ok(());
        }
        self.lock = hold(&self.dir, &self.instance).map_err(|error| match error {
            OpenError::Io { source, .. } => source,
            other => io::Error::other(other),
        })?;
        Ok(())
    }
}

impl Storage for Files {
    fn segment_bytes(&self) -> u64 {
        self.current.as_ref().map_or(0, |segment| segment.bytes)
    }

    fn measure(&self) -> io::Result<Measured> {
        let mut measured = Measured::default();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if is_segment(&entry.path()) {
                measured.bytes += entry.metadata()?.len();
                measured.segments += 1;
            }
        }
        Ok(measured)
    }

    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        let ahead = self.ahead;
        let segment = self.current.as_mut().ok_or_else(no_segment)?;
        if segment.reserve(bytes, ahead)? == Reserved::Unsupported && ahead > 0 {
            self.ahead = 0;
            tracing::warn!(
                dir = %self.dir.display(),
                "the journal's file system reserves no space: a full device shows only when a write fails"
            );
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reserve(bytes.len() as u64)?;
        let segment = self.current()?;
        segment.file.write_all(bytes)?;
        segment.bytes += bytes.len() as u64;
        Ok(())
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        let segment = self.current()?;
        segment.file.set_len(bytes)?;
        segment.bytes = bytes;
        segment.reserved = bytes;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.current()?.file.sync_data()
    }

    fn begin(&mut self, sequence: u64, reserve: u64) -> io::Result<()> {
        make_dir(&self.dir)?;
        self.hold_again()?;
        let path = self.path(sequence);
        // An empty segment of this name is left behind when its first write failed.
        if fs::metadata(&path).is_ok_and(|metadata| metadata.len() == 0) {
            fs::remove_file(&path)?;
        }
        let mut segment = Segment::create(&path)?;
        let begun = segment
            .reserve(reserve, self.ahead)
            // The new name must survive a power loss as well as the bytes will.
            .and_then(|_| sync_dir(&self.dir));
        begun.inspect_err(|_| {
            let _ = fs::remove_file(&path);
        })?;
        self.release();
        self.current = Some(segment);
        Ok(())
    }

    fn tail(&self, from: u64) -> io::Result<Vec<u8>> {
        let segment = self.current.as_ref().ok_or_else(no_segment)?;
        let length = segment.bytes.saturating_sub(from);
        let mut tail = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        segment.file.read_exact_at(&mut tail, from)?;
        Ok(tail)
    }

    fn carry(&mut self, tail: &[u8], from: u64, sequence: u64, reserve: u64) -> io::Result<()> {
        self.hold_again()?;
        let (made, path) = (self.dir.join(CARRIED), self.path(sequence));
        match fs::remove_file(&made) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut segment = Segment::create(&made)?;
        segment.reserve(tail.len() as u64 + reserve, self.ahead)?;
        segment.file.write_all(tail)?;
        segment.bytes = tail.len() as u64;
        segment.file.sync_all()?;
        // From here on a crash leaves the tail in both segments, never in none.
        fs::rename(&made, &path)?;
        segment.path = path;
        let named = sync_dir(&self.dir);
        if from == 0 {
            // It has the name of the one before, whose place it took.
            self.current = Some(segment);
            return named;
        }
        if let Err(error) = named {
            let _ = fs::remove_file(&segment.path);
            return Err(error);
        }
        if let Some(before) = self.current.replace(segment)
            && let Err(error) = before.file.set_len(from)
        {
            tracing::error!(
                segment = %before.path.display(),
                "records stand in the next segment too, and are cut here at the next start: {error}"
            );
        }
        Ok(())
    }

    fn release(&mut self) {
        if let Some(segment) = &mut self.current
            && segment.reserved > segment.bytes
        {
            // Cutting a file at its own length gives back what is reserved behind it; where that
            // fails, the space is given back with the file.
            let _ = segment.file.set_len(segment.bytes);
            segment.reserved = segment.bytes;
        }
    }

    fn is_gone(&self) -> bool {
        self.current.as_ref().is_some_and(|segment| {
            fs::metadata(&segment.path).map_or(true, |metadata| metadata.ino() != segment.inode)
        })
    }

    fn is_removed(&self) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|segment| segment.file.metadata().is_ok_and(|m| m.nlink() == 0))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reserved {
    Room,
    Unsupported,
}

impl Segment {
    /// A new file (0600).
    fn create(path: &Path) -> io::Result<Segment> {
        let file = OpenOptions::new()
            .create_new(true)
            .read(true)
            .append(true)
            .mode(0o600)
            .open(path)?;
        Ok(Segment {
            inode: file.metadata()?.ino(),
            path: path.to_path_buf(),
            file,
            bytes: 0,
            reserved: 0,
        })
    }

    /// `ahead` is 0 where the file system reserves nothing.
    fn reserve(&mut self, bytes: u64, ahead: u64) -> io::Result<Reserved> {
        let wanted = self.bytes + bytes;
        if ahead == 0 {
            return Ok(Reserved::Unsupported);
        }
        if wanted <= self.reserved {
            return Ok(Reserved::Room);
        }
        let needed = (wanted - self.reserved).next_multiple_of(PAGE);
        // On a device that is nearly full, what is needed may still fit where more does not.
        for length in [needed.max(ahead), needed] {
            // The file keeps its length, so what is reserved never reads as zeros.
            let flags = FallocateFlags::KEEP_SIZE;
            match retry_on_intr(|| fallocate(&self.file, flags, self.reserved, length)) {
                Ok(()) => {
                    self.reserved += length;
                    return Ok(Reserved::Room);
                }
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
                    return Ok(Reserved::Unsupported);
                }
                Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) if length > needed => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Reserved::Room)
    }
}

/// Opens a segment and removes, durably, what stands behind its first `bytes`.
fn cut_to(path: &Path, bytes: u64) -> io::Result<(File, Metadata)> {
    let file = OpenOptions::new().read(true).append(true).open(path)?;
    let metadata = file.metadata()?;
    if metadata.len() > bytes {
        file.set_len(bytes)?;
        file.sync_all()?;
    }
    Ok((file, metadata))
}

fn no_segment() -> io::Error {
    io::Error::other("the journal has no segment")
}

/// Takes the directory's lock and writes into it whose it is.
fn hold(dir: &Path, instance: &str) -> Result<File, OpenError> {
    let path = dir.join(LOCK);
    let mut lock = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .mode(0o600)
        .open(&path)
        .map_err(OpenError::io("open the journal's lock", &path))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let read = (&lock).take(MAX_LOCK).read_to_string(&mut text);
            let note: Option<Note> = read.ok().and_then(|_| serde_json::from_str(&text).ok());
            let holder = note.map(|Note { pid, instance }| Holder { pid, instance });
            return Err(OpenError::Locked(dir.to_path_buf(), holder));
        }
        Err(TryLockError::Error(error)) => {
            return Err(OpenError::io("lock the journal", &path)(error));
        }
    }
    let note = Note {
        pid: std::process::id(),
        instance: instance.into(),
    };
    // It only helps whoever finds the journal locked; a full device must not keep it closed.
    let _ = lock
        .set_len(0)
        .and_then(|()| writeln!(lock, "{}", serde_json::to_string(&note)?));
    Ok(lock)
}

/// Makes a directory (0700) and what leads to it, so that all of it survives a power loss.
pub(super) fn make_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = dir.parent().filter(|parent| *parent != Path::new(""));
    if let Some(parent) = parent {
        make_dir(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
        made => made?,
    }
    sync_dir(parent.unwrap_or(Path::new(".")))
}

/// Makes names in a directory survive a power loss.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// The segments of a journal, oldest first.
pub(super) fn segment_paths(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if is_segment(&path) {
            paths.push(path);
        }
    }
    // Numbers are padded, so names sort like them.
    paths.sort_unstable();
    Ok(paths)
}

pub(super) fn is_segment(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_prefix("journal-")?.strip_suffix(".jsonl"))
        .is_some_and(|number| number.len() == 20 && number.bytes().all(|b| b.is_ascii_digit()))
}
