//! The texts of configurations that were in force, kept beside the journal by their SHA-256.

use super::files::{make_dir, sync_dir};
use crate::audit::redact::hex;
use aws_lc_rs::digest::{SHA256, digest};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The folder of texts in a journal's directory.
const TEXTS: &str = "texts";

/// Keeps a text, durably; one that is there already costs a look at it.
pub(super) fn keep(journal: &Path, text: &[u8]) -> io::Result<()> {
    let mut digits = [0; 64];
    let name = hex(digest(&SHA256, text).as_ref(), &mut digits).to_owned();
    let folder = journal.join(TEXTS);
    make_dir(&folder)?;
    let path = folder.join(&name);
    // What stands there may be half of it, after a crash.
    if fs::read(&path).is_ok_and(|found| found == text) {
        File::open(&path)?.sync_all()?;
        return sync_dir(&folder);
    }
    let draft = folder.join(format!("{name}.{}", std::process::id()));
    let _ = fs::remove_file(&draft);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| {
            file.write_all(text)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&draft, &path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written?;
    sync_dir(&folder)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_text_is_kept_once_by_its_digest_and_mended_when_it_is_half() {
        let dir = tempfile::tempdir().unwrap();
        let abc = dir
            .path()
            .join("texts/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        keep(dir.path(), b"abc").unwrap();
        keep(dir.path(), b"abc").unwrap();
        keep(dir.path(), b"other").unwrap();
        assert_eq!(fs::read(&abc).unwrap(), b"abc");
        assert_eq!(
            fs::metadata(&abc).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(abc.parent().unwrap()).unwrap().count(), 2);
        fs::write(&abc, "a").unwrap();
        keep(dir.path(), b"abc").unwrap();
        assert_eq!(fs::read(&abc).unwrap(), b"abc");
    }
}
