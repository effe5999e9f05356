//! The Unix socket of operators: whoever can open it is our own user.
//!
//! It is bound where nobody else can look, gets its mode, and only then its name, so that there is
//! no moment at which others could connect.

use super::listen::run;
use super::plain::Plain;
use pingora::listeners::ListenerConfig;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A bound socket that nobody serves yet.
#[derive(Debug)]
pub struct BoundSocket {
    listener: UnixListener,
    file: SocketFile,
}

/// The name of a socket in the file system. Dropping it takes the name away, unless it is another
/// process's by now.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode of our socket.
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|now| identity(&now) == self.identity) {
            // It is of no use once nobody listens; a name that stays is replaced by the next start.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Binds the socket `path`, with mode 0600. A socket of a process that is gone is replaced.
///
/// # Errors
/// Another process answers there, something else than a socket is there, or the operating system's.
pub fn bind_socket(path: &Path) -> io::Result<BoundSocket> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    let mut private = DirBuilder::new();
    private.mode(0o700);
    private.recursive(true).create(folder)?;
    vacant(path)?;
    // Short, since the name of a socket may have about a hundred bytes.
    let hidden = folder.join(format!(".{}", std::process::id()));
    let unnamed = hidden.join("s");
    clear(&hidden, &unnamed);
    private.recursive(false).create(&hidden)?;
    let bound = bind_hidden(&unnamed, path);
    clear(&hidden, &unnamed);
    bound
}

fn bind_hidden(unnamed: &Path, path: &Path) -> io::Result<BoundSocket> {
    let listener = UnixListener::bind(unnamed)?;
    fs::set_permissions(unnamed, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    fs::rename(unnamed, path)?;
    let file = SocketFile {
        path: path.to_owned(),
        identity: identity(&fs::symlink_metadata(path)?),
    };
    Ok(BoundSocket { listener, file })
}

/// What is left of a start that was cut short under the same process number.
fn clear(hidden: &Path, unnamed: &Path) {
    let _ = fs::remove_file(unnamed);
    let _ = fs::remove_dir(hidden);
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Whether the name is free, or a socket's behind which nobody is.
fn vacant(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(io::Error::other("there is something that is no socket"));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(io::Error::other("another process answers there")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error),
    }
}

impl BoundSocket {
    /// Serves plain answers until `stop` says true. The name lives as long as what is returned
    /// beside the task.
    pub fn serve_plain(
        self,
        plain: Plain,
        stop: watch::Receiver<bool>,
    ) -> (JoinHandle<()>, SocketFile) {
        let address = self.file.path.display().to_string();
        let config =
            ListenerConfig::uds(address.clone()).permissions(Permissions::from_mode(0o600));
        let fd = self.listener.into_raw_fd();
        (
            run("operators", plain, config, address, fd, stop),
            self.file,
        )
    }
}
