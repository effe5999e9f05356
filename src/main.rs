//! The `portcullis` program: an exit code and an allocator, nothing else.

use std::process::ExitCode;

/// Short decay keeps memory flat under many idle event streams; it is set at build time through
/// the allocator's own configuration symbol in `.cargo/config.toml`, so that no `unsafe` is needed.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    portcullis::cli::main()
}
