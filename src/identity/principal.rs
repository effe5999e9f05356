//! [`Principal`]: a verified caller. It says who, never may (CA-2).

use super::confirmation::Confirmation;
use super::issuer::{Algorithm, Grant};
use std::sync::Arc;

/// A value of a declared claim.
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimValue {
    /// A string.
    String(Box<str>),
    /// A number.
    Number(f64),
    /// A boolean.
    Boolean(bool),
    /// An array of strings, or the pieces of a space-separated string.
    Strings(Vec<Box<str>>),
}

/// What stands in a token under a declared claim (PR-2).
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimState {
    /// A value of the declared type.
    Value(ClaimValue),
    /// Nothing.
    Missing,
    /// `null`.
    Null,
    /// A value of another type; an array with one wrong element too (PR-4).
    WrongType,
}

/// Who acts for the subject of a token (RFC 8693 section 4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Its `sub`.
    pub subject: Box<str>,
    /// Its `iss`, where that is another than the token's: the subject then means nothing among
    /// ours (IS-6).
    pub issuer: Option<Box<str>>,
}

/// A verified caller.
#[derive(Debug, Clone, PartialEq)]
pub struct Principal {
    /// Position of its issuer in the configuration.
    pub issuer_index: usize,
    /// Its issuer's configured name (IS-6: a subject is nothing without its issuer).
    pub issuer: Arc<str>,
    /// `sub`.
    pub subject: Box<str>,
    /// The client, from the claim that the profile names.
    pub client: Option<Box<str>>,
    /// `jti`, or what the profile names instead.
    pub token_id: Option<Box<str>>,
    /// `sid`, where it is a string: only ever compared with the denylist (RV-1).
    pub session: Option<Box<str>>,
    /// The pieces of `scope`, for the reserved name `scopes`.
    pub scopes: Vec<Box<str>>,
    /// Who acts for it, outermost first; empty without delegation. Only the first counts for
    /// access (GR-8).
    pub actors: Vec<Actor>,
    /// The reach of its token, delegation considered (GR-8); `None` may do nothing (GR-1).
    pub grant: Option<Grant>,
    /// The issuer's declared claims, in the order of their declaration.
    pub claims: Vec<ClaimState>,
    /// `exp` in seconds, rounded down (CL-14).
    pub expires: i64,
    /// `nbf` in seconds, rounded up.
    pub not_before: Option<i64>,
    /// `iat` in seconds, rounded up.
    pub issued: Option<i64>,
    /// RFC 7638 thumbprint of the key that verified it.
    pub key: [u8; 32],
    /// The algorithm under which that key verified it (KY-5).
    pub algorithm: Algorithm,
    /// SHA-256 of the signing input, `header.payload` (RV-2).
    pub signing_input: [u8; 32],
    /// What its token is bound to; judged again with every request (CA-2).
    pub confirmation: Confirmation,
}
