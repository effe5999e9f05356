//! Says in plain words what is missing before a dependency fails to build in less plain ones.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
