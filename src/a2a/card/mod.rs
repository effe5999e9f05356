//! Agent Cards: reading, rewriting, serving.
