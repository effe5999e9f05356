//! [`Scratch`]: a folder for the time of a command.

use crate::adapters::random::SystemRandom;
use crate::pipeline::ports::Random;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A folder that nobody else can read, in the system's place for temporary files; it is removed
/// when this is dropped.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes it; `command` is a part of its name.
    pub(super) fn new(command: &str) -> io::Result<Scratch> {
        let mut bytes = [0u8; 8];
        SystemRandom.fill(&mut bytes);
        let folder = std::env::temp_dir().join(format!(
            "portcullis-{command}-{:016x}",
            u64::from_be_bytes(bytes)
        ));
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Scratch(folder))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is the system's to remove.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
