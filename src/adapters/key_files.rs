//! Files of our own private keys: made on the first start, shared by replicas.

use crate::audit::redact::hidden::HidingKey;
use crate::identity::SigningKey;
use crate::pipeline::ports::Random;
use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Longest key file that is read, in bytes.
const MAX_FILE: u64 = 65_536;
/// Bytes of a key of fingerprints.
const SECRET: usize = 32;

/// Why a key of ours is not there.
#[derive(Debug)]
pub struct KeyFileError {
    path: PathBuf,
    why: Why,
}

#[derive(Debug)]
enum Why {
    File(io::Error),
    NotAKey,
    NotASecret,
    NotMade,
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.why {
            Why::File(error) => write!(f, "the key file {path} cannot be used: {error}"),
            Why::NotAKey => write!(
                f,
                "the key file {path} holds no Ed25519 key in PKCS#8 PEM; `openssl genpkey -algorithm ed25519` makes one"
            ),
            Why::NotASecret => write!(
                f,
                "the key file {path} does not hold 32 bytes in base64; `openssl rand -base64 32` makes them"
            ),
            Why::NotMade => write!(f, "no key could be made for {path}"),
        }
    }
}

impl std::error::Error for KeyFileError {}

/// Reads the key in `path`; makes it first, with mode 0600, when `make` and there is none.
///
/// # Errors
/// When the file cannot be read or made, or holds no Ed25519 key.
pub fn open(path: &Path, make: bool) -> Result<SigningKey, KeyFileError> {
    let fail = |why| KeyFileError {
        path: path.to_owned(),
        why,
    };
    match read(path) {
        Ok(pem) => return SigningKey::from_pem(&pem).ok_or_else(|| fail(Why::NotAKey)),
        Err(error) if make && error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(fail(Why::File(error))),
    }
    let pair = Ed25519KeyPair::generate().map_err(|_| fail(Why::NotMade))?;
    let made = SigningKey::new(pair);
    let pem = made.to_pem().ok_or_else(|| fail(Why::NotMade))?;
    match write(path, &pem) {
        Ok(()) => {
            tracing::info!(file = %path.display(), kid = made.kid(), "a key was made");
            Ok(made)
        }
        // Another gateway was faster; its key is everybody's.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open(path, false),
        Err(error) => Err(fail(Why::File(error))),
    }
}

/// Reads the key of token fingerprints in `path`: 32 bytes in base64; makes it first, with mode
/// 0600, when `make` and there is none.
///
/// # Errors
/// When the file cannot be read or made, or holds something else.
pub fn open_secret(
    path: &Path,
    make: bool,
    random: &dyn Random,
) -> Result<HidingKey, KeyFileError> {
    let fail = |why| KeyFileError {
        path: path.to_owned(),
        why,
    };
    match read(path) {
        Ok(text) => {
            let bytes = STANDARD.decode(text.trim_ascii()).ok();
            let bytes = bytes.filter(|bytes| bytes.len() == SECRET);
            let key = bytes.map(|bytes| HidingKey::new(&bytes));
            return key.ok_or_else(|| fail(Why::NotASecret));
        }
        Err(error) if make && error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(fail(Why::File(error))),
    }
    let mut bytes = [0; SECRET];
    random.fill(&mut bytes);
    match write(path, &format!("{}\n", STANDARD.encode(bytes))) {
        Ok(()) => {
            tracing::info!(file = %path.display(), "a key was made");
            Ok(HidingKey::new(&bytes))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            open_secret(path, false, random)
        }
        Err(error) => Err(fail(Why::File(error))),
    }
}

fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        tracing::warn!(file = %path.display(), "others than its owner may read this private key");
    }
    let mut pem = String::new();
    file.take(MAX_FILE).read_to_string(&mut pem)?;
    Ok(pem)
}

/// The file is there whole or not at all, and never replaces one.
fn write(path: &Path, pem: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let draft = PathBuf::from(name);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| {
            file.write_all(pem.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::hard_link(&draft, path));
    let _ = fs::remove_file(&draft);
    written
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::audit::redact::hidden::Class;

    #[test]
    fn a_key_is_made_once_and_only_for_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys/card.pem");
        assert!(open(&path, false).is_err());
        let made = open(&path, true).unwrap();
        assert_eq!(open(&path, true).unwrap().kid(), made.kid());
        assert_eq!(open(&path, false).unwrap().kid(), made.kid());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    struct Fixed;

    impl Random for Fixed {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }

    #[test]
    fn a_key_of_fingerprints_is_made_once_and_anything_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fingerprint.key");
        let tag = |key: &HidingKey| key.hide(Class::Id, "m");
        assert!(open_secret(&path, false, &Fixed).is_err());
        let made = open_secret(&path, true, &Fixed).unwrap();
        let again = open_secret(&path, false, &Fixed).unwrap();
        assert_eq!(tag(&made), tag(&again));
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        for text in ["", "AAAA", "not base64", &"A".repeat(88)] {
            fs::write(&path, text).unwrap();
            let error = open_secret(&path, true, &Fixed).unwrap_err().to_string();
            assert!(error.contains("openssl rand -base64 32"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_file_that_is_no_key_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("card.pem");
        fs::write(&path, "something else").unwrap();
        let error = open(&path, true).unwrap_err().to_string();
        assert!(
            error.contains("card.pem") && error.contains("openssl"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "something else");
    }
}
