//! The shape of the gateway file: every field that may stand in it, as tables.
//!
//! The walker refuses what is not here, and `gateway.schema.json` is made from here. Names under
//! `later` are in the design and not built yet; they are refused with a way out.

mod agent;
mod issuer;
mod revocation;
mod telemetry;
mod transport;

pub use agent::{
    AGENT, BACKEND_PATH, GRPC, INTERFACE, LIMITS, OWN_KEY, ROUTE, SKILL_FROM, TENANT, VERIFY,
};
pub use issuer::{CLAIM, DPOP, GRANT, INTROSPECTION, ISSUER, KEYS};
pub use revocation::{DENIAL, DENYLIST, REVOCATION};
pub use telemetry::{OTLP, TELEMETRY};
pub use transport::{
    BACKEND, BACKEND_TLS, CERTIFICATE, CLIENT_CA, CORS, IDENTITY, IDENTITY_HEADER, LISTENER,
    LISTENER_TLS,
};

use crate::source::shape::{Fields, Shape, optional, required};

/// A list of texts.
const TEXTS: Shape = Shape::List(&Shape::Text);

/// The whole file.
pub static GATEWAY: Fields = Fields {
    title: "gateway",
    doc: "A Portcullis gateway file.",
    fields: &[
        required("version", Shape::Integer(1, 1), "version of this format: 1"),
        required(
            "listeners",
            Shape::List(&Shape::Object(&LISTENER)),
            "where callers connect",
        ),
        optional(
            "admin",
            Shape::Object(&ADMIN),
            "health, readiness and metrics",
        ),
        optional(
            "issuers",
            Shape::List(&Shape::Object(&ISSUER)),
            "whose tokens are accepted; without one every call is refused",
        ),
        required(
            "agents",
            Shape::List(&Shape::Object(&AGENT)),
            "the agents to guard",
        ),
        optional(
            "policies",
            Shape::Object(&POLICIES),
            "who may do what; without one every call is refused",
        ),
        optional(
            "revocation",
            Shape::Object(&REVOCATION),
            "which tokens are refused before they expire",
        ),
        optional(
            "ownership",
            Shape::Object(&OWNERSHIP),
            "where it is kept whose task is whose; default: in memory",
        ),
        optional(
            "keys",
            Shape::Object(&SIGNING_KEYS),
            "our own private keys; replicas share them",
        ),
        required(
            "audit",
            Shape::Object(&AUDIT),
            "the journal of what reached which agent",
        ),
        optional(
            "telemetry",
            Shape::Object(&TELEMETRY),
            "where records are shipped to besides; metrics are at `/metrics` of the admin listener",
        ),
    ],
    later: &[(
        "limits",
        "remove it; body size and timeouts are under `agents[].limits`",
    )],
};

/// `admin`.
pub static ADMIN: Fields = Fields {
    title: "admin",
    doc: "The listener for operators.",
    fields: &[
        optional(
            "bind",
            Shape::Text,
            "IP address and port; default `127.0.0.1:9901`; port 0 takes a free one",
        ),
        optional(
            "socket",
            Shape::Text,
            "Unix socket of the admin API, relative to this file, for this user only; default: none",
        ),
    ],
    later: &[],
};

/// `policies`.
pub static POLICIES: Fields = Fields {
    title: "policies",
    doc: "Which policy files are loaded.",
    fields: &[
        required(
            "files",
            TEXTS,
            "paths relative to this file; `*` may stand in the last part; `*_test.yaml` is never loaded",
        ),
        optional(
            "names",
            TEXTS,
            "policies that must be there; one that vanishes is an error",
        ),
        optional(
            "end_marker",
            Shape::Word(&["required"]),
            "every policy file must end with a line `...` (the end of a YAML document), so that one that is half written, and would be valid with fewer rules, is never loaded",
        ),
    ],
    later: &[],
};

/// `ownership`.
pub static OWNERSHIP: Fields = Fields {
    title: "ownership",
    doc: "Where it is kept whose task is whose.",
    fields: &[
        required("store", Shape::Object(&STORE), "`{memory: {}}`"),
        optional(
            "ttl",
            Shape::Duration,
            "how long an id stays its caller's after its last use, no shorter than any `max_stream`; default `30d`",
        ),
    ],
    later: &[],
};

/// `ownership.store`.
pub static STORE: Fields = Fields {
    title: "ownership_store",
    doc: "The store of bindings.",
    fields: &[required(
        "memory",
        Shape::Object(&MEMORY),
        "in this process; lost at a restart: `{}`",
    )],
    later: &[
        (
            "embedded",
            "write `{memory: {}}`; bindings are lost at a restart",
        ),
        ("redis", "write `{memory: {}}` and run one gateway"),
    ],
};

/// `ownership.store.memory`.
pub static MEMORY: Fields = Fields {
    title: "memory_store",
    doc: "No settings.",
    fields: &[],
    later: &[],
};

/// `keys`.
pub static SIGNING_KEYS: Fields = Fields {
    title: "signing_keys",
    doc: "Our own private keys; their public parts are at `/.well-known/jwks.json`. Changing it needs a restart.",
    fields: &[
        optional(
            "dir",
            Shape::Text,
            "directory of the keys that no other line names; they are made on the first start",
        ),
        optional(
            "card",
            Shape::Object(&OWN_KEY),
            "the key that signs cards: Ed25519, PKCS#8 PEM; it must be there",
        ),
        optional(
            "assertion",
            Shape::Object(&OWN_KEY),
            "the key that signs assertions to agents, in the same form; it must be there",
        ),
        optional(
            "checkpoint",
            Shape::Object(&OWN_KEY),
            "the key that signs checkpoints of the journal, in the same form; it must be there; default, without `dir`: `checkpoint.pem` beside the journal, made on the first start",
        ),
        optional(
            "fingerprint",
            Shape::Either(&[
                Shape::Object(&OWN_KEY),
                Shape::List(&Shape::Object(&OWN_KEY)),
            ]),
            "the key of the fingerprints of tokens in records, and of what they hide: 32 random bytes in base64; it must be there; of a list the first writes, and the others are known to `audit hash`; default, without `dir`: `fingerprint.key` beside the journal, made on the first start",
        ),
    ],
    later: &[(
        "page_token",
        "remove it; page tokens are sealed with a key of this process",
    )],
};

/// `audit`.
pub static AUDIT: Fields = Fields {
    title: "audit",
    doc: "The record of what happened.",
    fields: &[
        required(
            "journal",
            Shape::Object(&JOURNAL),
            "where and how it is written",
        ),
        optional(
            "redact",
            Shape::Object(&REDACT),
            "what records show as tokens instead of as it is; default: nothing",
        ),
    ],
    later: &[
        ("sinks", "remove it; `telemetry.otlp` ships records"),
        ("export", "remove it; run `portcullis audit export`"),
    ],
};

/// `audit.redact`.
pub static REDACT: Fields = Fields {
    title: "redact",
    doc: "What records show as tokens under the key of fingerprints, so that they can be joined and not read.",
    fields: &[
        optional(
            "subjects",
            Shape::Word(&["hmac"]),
            "subjects, clients and actors, also where they are values of claims",
        ),
        optional(
            "ids",
            Shape::Word(&["hmac"]),
            "ids of messages, tasks, contexts, artifacts and push configurations; paths end before them",
        ),
        optional(
            "addresses",
            Shape::Word(&["hmac", "prefix"]),
            "addresses of callers; `prefix` leaves the network: /24, or /56 of IPv6",
        ),
    ],
    later: &[],
};

/// `audit.journal`.
pub static JOURNAL: Fields = Fields {
    title: "journal",
    doc: "Where and how the journal is written. Changing it needs a restart.",
    fields: &[
        required(
            "dir",
            Shape::Text,
            "directory of its segments, relative to this file",
        ),
        optional(
            "durability",
            Shape::Word(&["write", "group", "each"]),
            "`write` (the default): our crash loses nothing; `group`: nor does a power failure; `each`: the same, with a sync for each call",
        ),
        optional(
            "max_bytes",
            Shape::Size,
            "largest size of all segments; default `20GiB`",
        ),
        optional(
            "segment_bytes",
            Shape::Size,
            "a segment that would grow beyond this is followed by a new one; default `64MiB`",
        ),
        optional(
            "rotate_every",
            Shape::Duration,
            "a segment as old as this is followed by a new one; default `24h`",
        ),
        optional(
            "checkpoint_every",
            Shape::Duration,
            "the longest time between two signed checkpoints; default `1m`",
        ),
        optional(
            "min_age",
            Shape::Duration,
            "from this age on `portcullis audit prune` may remove a segment that was not exported; default `90d`",
        ),
        optional(
            "checkpoints",
            Shape::Object(&CHECKPOINTS),
            "where checkpoints go besides, out of reach of whoever could change the journal; default: nowhere",
        ),
    ],
    later: &[],
};

/// `audit.journal.checkpoints`.
pub static CHECKPOINTS: Fields = Fields {
    title: "checkpoints",
    doc: "Copies of the journal's checkpoints; one that fails is counted and told, and stops nothing.",
    fields: &[
        optional(
            "file",
            Shape::Text,
            "file to which each is appended as a line, relative to this file",
        ),
        optional(
            "stdout",
            Shape::Boolean,
            "whether each goes to stdout; default false",
        ),
    ],
    later: &[],
};
