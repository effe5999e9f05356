//! Token acceptance: the corpus, the library as a second opinion, mutated tokens, the cache.

mod cache;
mod corpus;
mod described;
mod explaining;
mod isolation;
mod library;
mod metadata;
mod mutated;
mod profiles;
mod proofs;
mod rules;
mod vectors;
mod world;
