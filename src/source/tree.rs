//! The positioned YAML tree.

/// Placeholder until the parser lands.
pub struct Document;
/// Placeholder until the parser lands.
pub struct Node;
