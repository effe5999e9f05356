//! The shape of `revocation`, and of the files that it names.

use super::TEXTS;
use crate::source::shape::{Fields, Shape, optional, required};

/// `revocation`.
pub static REVOCATION: Fields = Fields {
    title: "revocation",
    doc: "Which tokens are refused before they expire.",
    fields: &[
        optional(
            "files",
            TEXTS,
            "denylists, relative to this file; they are watched",
        ),
        optional(
            "state",
            Shape::Text,
            "file of the entries that operators add; made when it is not there; without it none can be added",
        ),
    ],
    later: &[],
};

/// An instant as an operator writes it.
const INSTANT: Shape = Shape::Either(&[Shape::Text, Shape::Integer(0, 253_402_300_799)]);

/// A denylist.
pub static DENYLIST: Fields = Fields {
    title: "denylist",
    doc: "Tokens that are refused although they have not expired.",
    fields: &[
        required("version", Shape::Integer(1, 1), "version of this format: 1"),
        required(
            "revoked",
            Shape::List(&Shape::Object(&DENIAL)),
            "the entries; `[]` when there is none",
        ),
    ],
    later: &[],
};

/// One of `revoked`.
pub static DENIAL: Fields = Fields {
    title: "denial",
    doc: "What is revoked: exactly one of `jti`, `sub`, `client_id`, `sid`, `key`, `signing_input`.",
    fields: &[
        optional("issuer", Shape::Text, "name of the issuer entry"),
        optional("jti", Shape::Text, "one token"),
        optional("sub", Shape::Text, "the tokens of a subject"),
        optional(
            "issued_before",
            INSTANT,
            "with `sub`: only tokens issued before this instant",
        ),
        optional("client_id", Shape::Text, "the tokens of a client"),
        optional("sid", Shape::Text, "the tokens of a session"),
        optional(
            "key",
            Shape::Text,
            "the tokens that a key signed: its RFC 7638 thumbprint in base64url",
        ),
        optional(
            "signing_input",
            Shape::Text,
            "one token: SHA-256 in hexadecimal of the token up to its last dot",
        ),
        optional(
            "until",
            INSTANT,
            "from this instant on the entry has no effect; default: it stays",
        ),
        optional("note", Shape::Text, "why; not used"),
    ],
    later: &[],
};
