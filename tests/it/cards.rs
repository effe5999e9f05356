//! Agent Cards: case files for rewriting, properties, the store, and the fetcher against raw
//! servers.

mod fetching;
mod keeping;
mod key_sets;
mod rewriting;
mod schemes;
mod signed;
mod versions;
