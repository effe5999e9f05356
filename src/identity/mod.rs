//! Who is calling: issuers, keys, tokens, principals.
//!
//! Answers: may this token stand for a caller, and for whom. May import: `source`, `a2a`.
//! Invariants: absent, malformed or doubled input never widens access (I-3); a key of one issuer
//! never validates a token that names another. Start reading at [`issuer`].

pub mod issuer;
