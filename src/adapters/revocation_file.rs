//! The file of revocations that operators added: they must outlive the process.
//!
//! It is written whole, beside its place, made durable, and moved there, so that a crash leaves
//! the old list or the new one. A file that cannot be read stops the start: without it, what was
//! revoked would be accepted again.

use crate::a2a::strict_json::{Value, parse_value};
use crate::pipeline::revocations::{Added, MAX_ADDED, form};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Largest file that is read: as many entries as there may be, each as long as it can be.
const MAX_BYTES: u64 = 256 << 20;
const DEPTH: usize = 4;

/// Where they are kept.
#[derive(Debug)]
pub struct RevocationFile {
    path: PathBuf,
}

/// Why the kept revocations cannot be used.
#[derive(Debug)]
pub struct RevocationFileError {
    path: PathBuf,
    why: String,
}

impl fmt::Display for RevocationFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the revocations in `{}` cannot be used: {}; what was revoked would be accepted again, so \
             the gateway does not start without them",
            self.path.display(),
            self.why
        )
    }
}

impl std::error::Error for RevocationFileError {}

impl RevocationFile {
    /// Opens the file and reads its entries. One that is not there is made, so that a directory
    /// that cannot be written is found out now and not when something must be revoked.
    ///
    /// # Errors
    /// It cannot be read or written, others may write it, or it is not what was written.
    pub fn open(path: &Path) -> Result<(RevocationFile, Vec<Added>), RevocationFileError> {
        let wrong = |why: String| RevocationFileError {
            path: path.to_owned(),
            why,
        };
        let file = RevocationFile {
            path: path.to_owned(),
        };
        let entries = match File::open(path) {
            Ok(opened) => read(opened).map_err(wrong)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(wrong(error.to_string())),
        };
        file.save(&entries)
            .map_err(|error| wrong(format!("it cannot be written: {error}")))?;
        Ok((file, entries))
    }

    /// Reads the entries of a file without opening it for good; none where there is no file.
    ///
    /// # Errors
    /// As for [`RevocationFile::open`], but for writing.
    pub fn look(path: &Path) -> Result<Vec<Added>, RevocationFileError> {
        let wrong = |why: String| RevocationFileError {
            path: path.to_owned(),
            why,
        };
        match File::open(path) {
            Ok(opened) => read(opened).map_err(wrong),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// Puts these entries in the place of those that are kept, durably.
    ///
    /// # Errors
    /// The operating system's; the old entries stay.
    pub fn save(&self, entries: &[Added]) -> io::Result<()> {
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        fs::create_dir_all(folder)?;
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(text(entries).as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)?;
        File::open(folder)?.sync_all()
    }
}

/// One entry a line, so that people can read it.
fn text(entries: &[Added]) -> String {
    let mut text = String::from("{\"version\":1,\"revocations\":[");
    for (at, entry) in entries.iter().enumerate() {
        text.push_str(if at == 0 { "\n" } else { ",\n" });
        text.push_str(&form::stored(entry).to_string());
    }
    text.push_str("\n]}\n");
    debug_assert!(entries.len() > 100 || serde_json::from_str::<serde_json::Value>(&text).is_ok());
    text
}

fn read(mut file: File) -> Result<Vec<Added>, String> {
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    if metadata.permissions().mode() & 0o022 != 0 {
        return Err("others than its owner may write it; run `chmod go-w` on it".to_owned());
    }
    let mut bytes = Vec::new();
    let read = (&mut file).take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err("it is too large".to_owned());
    }
    let value = parse_value(&bytes, DEPTH).map_err(|_| "it is not strict JSON".to_owned())?;
    if value.get("version").and_then(Value::as_number) != Some("1") {
        return Err("its `version` is not 1".to_owned());
    }
    let entries = value.get("revocations").and_then(Value::as_array);
    let entries = entries.ok_or("it has no list `revocations`")?;
    if entries.len() > MAX_ADDED {
        return Err(format!("it has more than {MAX_ADDED} entries"));
    }
    let read = entries.iter().enumerate().map(|(at, entry)| {
        form::read_stored(entry).map_err(|why| format!("entry {}: {why}", at + 1))
    });
    read.collect()
}
