//! The shape of `issuers`.

use super::{BACKEND_TLS, OWN_KEY, TEXTS};
use crate::source::shape::{Fields, Shape, optional, required};

/// One of `issuers`.
pub static ISSUER: Fields = Fields {
    title: "issuer",
    doc: "A trusted issuer of tokens.",
    fields: &[
        required(
            "name",
            Shape::Text,
            "its name in policies, logs and records",
        ),
        required("issuer", Shape::Text, "the exact `iss` value of its tokens"),
        optional(
            "audiences",
            TEXTS,
            "accepted `aud` values, compared exactly; only under `cognito` `clients` may stand instead",
        ),
        required("keys", Shape::Object(&KEYS), "where its public keys are"),
        optional(
            "profile",
            Shape::Word(&[
                "strict", "keycloak", "entra", "auth0", "okta", "cognito", "spiffe",
            ]),
            "`strict` (RFC 9068, the default) or a declared set of relaxations",
        ),
        optional(
            "algorithms",
            Shape::List(&Shape::Word(&[
                "ES256", "ES384", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA",
                "Ed25519",
            ])),
            "accepted signature algorithms; default ES256, RS256, EdDSA, Ed25519, or what the profile's product signs with",
        ),
        optional(
            "rsa_alg",
            Shape::Word(&["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]),
            "algorithm of RSA keys that name none; default RS256",
        ),
        optional(
            "typ",
            Shape::List(&Shape::Word(&["JWT", "JOSE", "at+jwt", "absent"])),
            "accepted `typ` headers, where the profile leaves a choice",
        ),
        optional(
            "max_lifetime",
            Shape::Duration,
            "longest lifetime of a token; default `1h`, at most `24h`",
        ),
        optional(
            "leeway",
            Shape::Duration,
            "tolerance for clocks that differ; default `30s`, at most `60s`",
        ),
        optional(
            "not_before",
            Shape::Either(&[Shape::Text, Shape::Integer(0, 253_402_300_799)]),
            "tokens issued before this instant are refused; RFC 3339 or seconds since 1970",
        ),
        optional(
            "clients",
            TEXTS,
            "accepted clients, from the claim that the profile names; default: any",
        ),
        optional(
            "tenants",
            TEXTS,
            "accepted tenants, from the claim that the profile names; needed under `entra`",
        ),
        optional(
            "trust_domain",
            Shape::Text,
            "the SPIFFE trust domain of its subjects; under `spiffe`, and there needed",
        ),
        optional(
            "shared_keys",
            TEXTS,
            "names of issuer entries that may hold the same keys; each must name the other",
        ),
        optional(
            "delegated_full",
            Shape::Boolean,
            "let tokens with an actor (`act`) keep the full grant; default false: agent at most",
        ),
        optional(
            "allow_missing_kid",
            Shape::Boolean,
            "accept tokens without `kid` while the issuer has one fitting key; default false",
        ),
        optional(
            "ignore_header",
            Shape::List(&Shape::Word(&["jwk", "jku", "x5u", "x5c"])),
            "header members to ignore; by default a token that has one is refused",
        ),
        required(
            "grants",
            Shape::List(&Shape::Object(&GRANT)),
            "which claims give which grant; nothing is implied",
        ),
        optional(
            "claims",
            Shape::Named(&Shape::Object(&CLAIM)),
            "claims that policies may use, by name",
        ),
        optional(
            "introspection",
            Shape::Object(&INTROSPECTION),
            "ask the issuer about each token, beside verifying it (RFC 7662); default: it is not asked",
        ),
        optional(
            "dpop",
            Shape::Object(&DPOP),
            "the issuer binds tokens to keys of callers (RFC 9449): 401s offer DPoP too; default: they do not, and bound tokens need a proof all the same",
        ),
        optional(
            "development",
            Shape::Boolean,
            "mark an issuer for development; default false",
        ),
    ],
    later: &[],
};

/// `issuers[].introspection`.
pub static INTROSPECTION: Fields = Fields {
    title: "introspection",
    doc: "How an issuer is asked about its tokens.",
    fields: &[
        required(
            "url",
            Shape::Text,
            "its introspection endpoint, over `https`",
        ),
        required(
            "client_id",
            Shape::Text,
            "what the issuer calls this gateway; signed answers name it as their audience",
        ),
        optional(
            "client_secret",
            Shape::Either(&[Shape::Text, Shape::Object(&OWN_KEY)]),
            "how the gateway shows who it is (`client_secret_basic`): `{file: PATH}`, or `${NAME}` for an environment variable",
        ),
        optional(
            "tls",
            Shape::Object(&BACKEND_TLS),
            "whose certificates are trusted, and with `client` how the gateway shows who it is",
        ),
        optional(
            "signed",
            Shape::Boolean,
            "only signed answers count (RFC 9701); default false",
        ),
        optional(
            "cache",
            Shape::Duration,
            "how long a positive answer is relied on; default and at most `30s`",
        ),
    ],
    later: &[],
};

/// `issuers[].keys`.
pub static KEYS: Fields = Fields {
    title: "issuer_keys",
    doc: "Where an issuer's public keys are: one of `file`, `url` and `discovery`.",
    fields: &[
        optional("file", Shape::Text, "a JWKS file, relative to this file"),
        optional("url", Shape::Text, "the `https` URL of a JWKS"),
        optional(
            "discovery",
            Shape::Either(&[Shape::Boolean, Shape::Word(&["openid", "oauth"])]),
            "`true`: the JWKS that the issuer's metadata names, at OpenID's place or else that of RFC 8414; or just one of the two",
        ),
        optional(
            "hosts",
            TEXTS,
            "hosts that `jwks_uri` may have beside the issuer's own",
        ),
        optional(
            "private",
            Shape::Boolean,
            "take addresses of private networks; default false",
        ),
        optional(
            "loopback",
            Shape::Boolean,
            "take addresses of this machine, and plain `http` to them; default false",
        ),
        optional(
            "ca",
            Shape::Text,
            "PEM file with the only authorities to trust; default: the machine's",
        ),
        optional(
            "refresh",
            Shape::Duration,
            "how often the set is fetched; default `5m`, which a longer `max-age` may move, `60s` to `1h`",
        ),
        optional(
            "stale",
            Shape::Duration,
            "how long keys serve after they were last fetched; default `1h`, `60s` to `24h`",
        ),
        optional(
            "connect_timeout",
            Shape::Duration,
            "for a connection; default `3s`, at most `10s`",
        ),
        optional(
            "timeout",
            Shape::Duration,
            "for a whole fetch; default `5s`, at most `30s`",
        ),
    ],
    later: &[],
};

/// `issuers[].dpop`.
pub static DPOP: Fields = Fields {
    title: "dpop",
    doc: "How callers prove that they hold the key of a token.",
    fields: &[optional(
        "nonce",
        Shape::Boolean,
        "proofs must repeat a nonce of this gateway's, which a first try is told; default false",
    )],
    later: &[],
};

/// One of `issuers[].grants`.
pub static GRANT: Fields = Fields {
    title: "grant_mark",
    doc: "A claim whose values give a grant.",
    fields: &[
        required(
            "path",
            TEXTS,
            "names from the payload's top down; a dot in a name is literal",
        ),
        required(
            "form",
            Shape::Word(&["space_string", "string_array", "either"]),
            "how the claim is read",
        ),
        required(
            "map",
            Shape::Named(&Shape::Word(&["agent", "full"])),
            "claim values and the grant that each gives",
        ),
    ],
    later: &[],
};

/// One of `issuers[].claims`.
pub static CLAIM: Fields = Fields {
    title: "claim",
    doc: "A claim that policies may use.",
    fields: &[
        required("path", TEXTS, "names from the payload's top down"),
        required(
            "type",
            Shape::Word(&[
                "string",
                "number",
                "boolean",
                "string_array",
                "space_string",
            ]),
            "its type; a value of another type is no value",
        ),
    ],
    later: &[],
};
