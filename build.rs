//! Says in plain words what is missing before a dependency fails to build in less plain ones.

use std::process::{Command, Stdio};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The `cmake` crate looks at the same variable.
    let cmake = std::env::var("CMAKE").unwrap_or_else(|_| "cmake".to_owned());
    let found = Command::new(&cmake)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if found.is_err() {
        println!(
            "cargo::error=`{cmake}` was not found, and Pingora's zlib-ng needs it to build. Install cmake: \
             `apt-get install cmake` (Debian, Ubuntu), `dnf install cmake` (Fedora), \
             `apk add cmake` (Alpine), `brew install cmake` (macOS); or let `tests/run` or \
             `deploy/demo` do it on Debian as root"
        );
    }
}
