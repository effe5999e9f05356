//! Agent Cards: case files for rewriting, properties, and the fetcher against raw servers.

mod rewriting;
