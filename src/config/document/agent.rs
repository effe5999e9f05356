//! The shape of `agents`.

use super::TEXTS;
use crate::source::shape::{Fields, Shape, optional, required};

/// One of `agents`.
pub static AGENT: Fields = Fields {
    title: "agent",
    doc: "An agent to guard.",
    fields: &[
        required(
            "name",
            Shape::Text,
            "its name in policies, records and metrics",
        ),
        required("route", Shape::Object(&ROUTE), "where callers find it"),
        optional(
            "publish",
            Shape::Boolean,
            "whether its card is public; default false: 404",
        ),
        required(
            "backend",
            Shape::Object(&super::BACKEND),
            "where it really is",
        ),
        optional(
            "interfaces",
            Shape::Either(&[
                Shape::Word(&["auto"]),
                Shape::List(&Shape::Object(&INTERFACE)),
            ]),
            "`auto` (the default): from its card, on the backend's own origin; or a list",
        ),
        optional(
            "grpc",
            Shape::Object(&GRPC),
            "where callers find its gRPC interface, which has no path prefix; default: it is not offered",
        ),
        optional("skills", TEXTS, "ids of the skills that policies may name"),
        optional(
            "skill_from",
            Shape::List(&Shape::Object(&SKILL_FROM)),
            "where a call names its skill, all that it names must agree; needed when there are several",
        ),
        optional(
            "skill_default",
            Shape::Text,
            "the skill of a call that names none",
        ),
        optional(
            "tenant",
            Shape::Either(&[Shape::Word(&["none"]), Shape::Object(&TENANT)]),
            "for which of its tenants calls are made: `none` (the default), or fixed, or by a claim of the caller",
        ),
        optional(
            "stamp",
            Shape::Either(&[Shape::Boolean, Shape::Word(&["on", "off"])]),
            "put skill and request id into the metadata of messages; default `off`",
        ),
        optional(
            "forward_token",
            Shape::Boolean,
            "send the caller's bearer token on to the origin of `backend.url`; default false: it ends here",
        ),
        optional(
            "contexts",
            Shape::Word(&["claimable", "issued"]),
            "`claimable` (the default): a caller may bring a context id of its own; `issued`: only ids from the agent",
        ),
        optional(
            "backend_paths",
            Shape::List(&Shape::Object(&BACKEND_PATH)),
            "other paths of the backend, reachable with a full grant and a rule",
        ),
        optional(
            "one_time",
            Shape::Boolean,
            "a token is good for one call only; remembered by this process, so run one gateway; default false",
        ),
        optional(
            "deny_status",
            Shape::Numbers(&[403, 200]),
            "HTTP status of a policy refusal in JSON-RPC: 403 (the default) or 200",
        ),
        optional(
            "reply_guard",
            Shape::Boolean,
            "withhold malformed replies; default true",
        ),
        optional(
            "also_origins",
            TEXTS,
            "other origins by which the agent names itself in its card",
        ),
        optional(
            "verify",
            Shape::Object(&VERIFY),
            "whose signature its card has; default: signatures are not looked at",
        ),
        optional(
            "sign",
            Shape::Boolean,
            "sign the published card with our own key, which needs `keys`; default false",
        ),
        optional(
            "public_skills",
            Shape::Either(&[Shape::Word(&["none"]), TEXTS]),
            "ids of the skills that the public card shows, or `none`; default: all that policy could allow anybody",
        ),
        optional("limits", Shape::Object(&LIMITS), "sizes and timeouts"),
    ],
    later: &[
        (
            "own",
            "remove it; tasks belong to the caller who started them",
        ),
        (
            "health",
            "for `grpc.health.v1` write `grpc: {health: true, ...}`",
        ),
    ],
};

/// `agents[].route`.
pub static ROUTE: Fields = Fields {
    title: "route",
    doc: "Where callers find an agent.",
    fields: &[required(
        "path",
        Shape::Text,
        "public path prefix, such as `/agents/weather`, or `/`",
    )],
    later: &[("host", "use `path`; one port serves many agents")],
};

/// `agents[].grpc`.
pub static GRPC: Fields = Fields {
    title: "grpc",
    doc: "Where callers find an agent's gRPC interface: either a host or a listener.",
    fields: &[
        optional(
            "host",
            Shape::Text,
            "a `Host` value of its own, on every listener; only gRPC is served under it",
        ),
        optional(
            "listener",
            Shape::Text,
            "name of the listener on which it is served, for this agent only",
        ),
        optional(
            "health",
            Shape::Boolean,
            "whether the gateway answers `grpc.health.v1` for the agent, without a token; default false",
        ),
    ],
    later: &[],
};

/// One of `agents[].interfaces`.
pub static INTERFACE: Fields = Fields {
    title: "interface",
    doc: "A path of an agent that speaks one binding.",
    fields: &[
        required(
            "binding",
            Shape::Word(&["JSONRPC", "HTTP+JSON", "GRPC"]),
            "its protocol binding: `JSONRPC`, `HTTP+JSON` or `GRPC`",
        ),
        required(
            "version",
            Shape::Either(&[
                Shape::Word(&["0.3", "1.0"]),
                Shape::List(&Shape::Word(&["0.3", "1.0"])),
            ]),
            "protocol version or versions, in quotes: `\"1.0\"`",
        ),
        optional(
            "backend",
            Shape::Text,
            "path on the backend's origin, or URL on another, sent as written; default: that of `backend.url`; for gRPC an origin such as `http://127.0.0.1:50051`",
        ),
        optional(
            "public_path",
            Shape::Text,
            "path below the route; default: the route itself; gRPC has none",
        ),
    ],
    later: &[],
};

/// `agents[].verify`.
pub static VERIFY: Fields = Fields {
    title: "verify",
    doc: "Whose signature an agent's card has (A2A 1.0 section 8.4). Needs `keys` or `jku`.",
    fields: &[
        optional(
            "keys",
            Shape::Object(&OWN_KEY),
            "a JWKS of the public keys whose signatures count, looked up by `kid`",
        ),
        optional(
            "jku",
            TEXTS,
            "whole `https://` URLs of key sets that signatures may name; no other is ever fetched",
        ),
        optional(
            "required",
            Shape::Boolean,
            "publish no card without a signature that counts; default true; with false it is only told",
        ),
        optional(
            "algorithms",
            Shape::List(&Shape::Word(&[
                "ES256", "ES384", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA",
                "Ed25519",
            ])),
            "signature algorithms that count; default ES256, RS256, EdDSA, Ed25519",
        ),
    ],
    later: &[],
};

/// A key file, of ours or of somebody's public keys.
pub static OWN_KEY: Fields = Fields {
    title: "key_file",
    doc: "A file with keys.",
    fields: &[required(
        "file",
        Shape::Text,
        "its path, relative to this file",
    )],
    later: &[],
};

/// One of `agents[].skill_from`.
pub static SKILL_FROM: Fields = Fields {
    title: "skill_from",
    doc: "Where a call names its skill; exactly one of these.",
    fields: &[
        optional("metadata", Shape::Text, "key of the message's metadata"),
        optional(
            "request_metadata",
            Shape::Text,
            "key of the request's own metadata",
        ),
        optional(
            "data",
            Shape::Text,
            "JSONPath to one value in the data parts of the message: `$.skill`",
        ),
        optional(
            "header",
            Shape::Text,
            "name of a header field, which gRPC calls metadata",
        ),
        optional(
            "path",
            Shape::Named(&Shape::Text),
            "for each skill, the public path of the agent's interface that is for it alone",
        ),
    ],
    later: &[],
};

/// `agents[].tenant`.
pub static TENANT: Fields = Fields {
    title: "tenant",
    doc: "For which of an agent's tenants calls are made; exactly one of these. Needs interfaces of version 1.0.",
    fields: &[
        optional("fixed", Shape::Text, "this one, for every caller"),
        optional(
            "claim",
            Shape::Text,
            "the one that this declared claim of the caller's token names",
        ),
    ],
    later: &[],
};

/// One of `agents[].backend_paths`.
pub static BACKEND_PATH: Fields = Fields {
    title: "backend_path",
    doc: "A path of the backend that is no A2A interface.",
    fields: &[
        required(
            "path",
            Shape::Text,
            "path on the backend's origin; callers use route and path",
        ),
        required(
            "methods",
            Shape::List(&Shape::Word(&[
                "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS",
            ])),
            "allowed methods",
        ),
    ],
    later: &[],
};

/// `agents[].limits`.
pub static LIMITS: Fields = Fields {
    title: "agent_limits",
    doc: "Sizes and timeouts of one agent.",
    fields: &[
        optional("body", Shape::Size, "largest request body; default `10MiB`"),
        optional(
            "idle_stream",
            Shape::Duration,
            "longest silence of a stream; default `15m`",
        ),
        optional(
            "max_stream",
            Shape::Duration,
            "longest life of a stream; default `4h`",
        ),
        optional(
            "unary_timeout",
            Shape::Duration,
            "longest wait for a unary reply; default `10m`",
        ),
        optional(
            "connect_timeout",
            Shape::Duration,
            "longest wait for a connection; default `5s`",
        ),
        optional(
            "send_timeout",
            Shape::Duration,
            "longest time for which a write to the agent may be stuck; default `30s`",
        ),
    ],
    later: &[("streams", "remove it"), ("requests", "remove it")],
};
