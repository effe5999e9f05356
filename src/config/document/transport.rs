//! The shape of `listeners` and `agents[].backend`: both ends of our connections.

use super::TEXTS;
use crate::source::shape::{Fields, Shape, optional, required};

/// One of `listeners`.
pub static LISTENER: Fields = Fields {
    title: "listener",
    doc: "A port on which callers connect.",
    fields: &[
        required("name", Shape::Text, "its name in logs and metrics"),
        required(
            "bind",
            Shape::Text,
            "IP address and port, such as `127.0.0.1:8080`",
        ),
        required(
            "public_url",
            Shape::Text,
            "the origin that callers see, such as `https://agents.example.com`; the only source of URLs in cards",
        ),
        optional(
            "hosts",
            TEXTS,
            "accepted Host values; default: the host of `public_url`",
        ),
        optional(
            "tls",
            Shape::Object(&LISTENER_TLS),
            "TLS 1.2 and 1.3, with HTTP/2 and HTTP/1.1 by ALPN",
        ),
        optional(
            "client_ca",
            Shape::Object(&CLIENT_CA),
            "whose client certificates are verified; needs `tls`",
        ),
        optional(
            "plaintext",
            Shape::Word(&["i_understand"]),
            "needed beyond loopback without `tls`: tokens travel unencrypted to this listener, so a TLS terminator must stand in front",
        ),
        optional(
            "h2c",
            Shape::Boolean,
            "accept HTTP/2 by prior knowledge on this plaintext listener; default false",
        ),
        optional(
            "health_path",
            Shape::Text,
            "where load balancers ask whether the gateway is ready, with any Host: 200 or 503",
        ),
        optional(
            "cors",
            Shape::Object(&CORS),
            "pages of other origins that may call from browsers; default: none",
        ),
    ],
    later: &[(
        "trusted_proxies",
        "remove it; X-Forwarded-* is not trusted from anybody",
    )],
};

/// `listeners[].tls`.
pub static LISTENER_TLS: Fields = Fields {
    title: "listener_tls",
    doc: "How connections of callers are secured.",
    fields: &[required(
        "certificates",
        Shape::List(&Shape::Object(&CERTIFICATE)),
        "the one that is for the asked name is shown, else the first",
    )],
    later: &[],
};

/// A certificate with its key.
pub static CERTIFICATE: Fields = Fields {
    title: "certificate",
    doc: "A certificate and its private key, each a PEM file relative to this file.",
    fields: &[
        required(
            "cert",
            Shape::Text,
            "the certificate, and behind it those of its issuers",
        ),
        required("key", Shape::Text, "its private key, without a passphrase"),
    ],
    later: &[],
};

/// `listeners[].client_ca`.
pub static CLIENT_CA: Fields = Fields {
    title: "client_ca",
    doc: "Client certificates of callers.",
    fields: &[
        required(
            "file",
            Shape::Text,
            "certificate authorities in PEM, relative to this file",
        ),
        required(
            "mode",
            Shape::Word(&["optional", "required"]),
            "`optional`: who shows a certificate must show a good one; `required`: everybody must",
        ),
    ],
    later: &[],
};

/// `listeners[].cors`.
pub static CORS: Fields = Fields {
    title: "cors",
    doc: "Browsers.",
    fields: &[required(
        "origins",
        TEXTS,
        "exact origins, such as `https://console.example.com`",
    )],
    later: &[],
};

/// `agents[].backend`.
pub static BACKEND: Fields = Fields {
    title: "backend",
    doc: "Where an agent really is.",
    fields: &[
        required(
            "url",
            Shape::Text,
            "its base URL, `http://` or `https://`; the path is kept byte for byte",
        ),
        optional(
            "card",
            Shape::Text,
            "path of its card on the backend's origin; default: both well-known names below the base path, then at the origin",
        ),
        optional(
            "http",
            Shape::Word(&["h1", "h2"]),
            "HTTP version of its card and of calls other than gRPC's, which are always HTTP/2; default: HTTP/1.1, and with `https://` what is agreed on",
        ),
        optional(
            "identity",
            Shape::Either(&[
                Shape::Word(&["none", "assertion", "mtls"]),
                Shape::Object(&IDENTITY),
            ]),
            "how it can tell that a call comes through us: `none` (the default), `assertion` (a JWT that we sign, which needs `keys`), `mtls` (our client certificate under `tls`), or a secret in a header",
        ),
        optional(
            "tls",
            Shape::Object(&BACKEND_TLS),
            "how connections to its `https://` origins are secured; default: the machine's certificate authorities",
        ),
    ],
    later: &[("urls", "use `url`")],
};

/// `agents[].backend.identity`, when it is no word.
pub static IDENTITY: Fields = Fields {
    title: "backend_identity",
    doc: "A secret that agent and gateway share.",
    fields: &[required(
        "header",
        Shape::Object(&IDENTITY_HEADER),
        "the header field that carries it",
    )],
    later: &[],
};

/// `agents[].backend.identity.header`.
pub static IDENTITY_HEADER: Fields = Fields {
    title: "identity_header",
    doc: "A header field with a secret; what callers send under its name does not travel.",
    fields: &[
        required("name", Shape::Text, "its name, such as `X-Api-Key`"),
        required(
            "value",
            Shape::Either(&[Shape::Text, Shape::Object(&super::OWN_KEY)]),
            "`{file: PATH}`, or `${NAME}` for an environment variable; never the secret itself",
        ),
    ],
    later: &[],
};

/// `agents[].backend.tls`.
pub static BACKEND_TLS: Fields = Fields {
    title: "backend_tls",
    doc: "How connections to an agent are secured.",
    fields: &[
        optional(
            "ca",
            Shape::Text,
            "certificate authorities in PEM, instead of the machine's",
        ),
        optional(
            "server_name",
            Shape::Text,
            "the name that the agent's certificate is for; default: the host of the URL",
        ),
        optional(
            "client",
            Shape::Object(&CERTIFICATE),
            "our certificate towards the agent",
        ),
    ],
    later: &[],
};
