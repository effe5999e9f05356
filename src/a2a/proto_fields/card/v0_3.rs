//! The fields of an AgentCard of 0.3 (`a2a.v1`).

use super::STRUCT;
use crate::a2a::strict_proto::Kind::{Message as Nested, Text, Varint};
use crate::a2a::strict_proto::Message;
use crate::a2a::strict_proto::table::{many, map_entry, once, one_of, open};

/// `AgentCard`.
pub static CARD: Message = open(
    "AgentCard",
    &[
        once(1, "name", Text),
        once(2, "description", Text),
        once(3, "url", Text),
        once(4, "provider", Nested(&PROVIDER)),
        once(5, "version", Text),
        once(6, "documentation_url", Text),
        once(7, "capabilities", Nested(&CAPABILITIES)),
        many(8, "security_schemes", Nested(&SCHEME_ENTRY)),
        many(9, "security", Nested(&SECURITY)),
        many(10, "default_input_modes", Text),
        many(11, "default_output_modes", Text),
        many(12, "skills", Nested(&SKILL)),
        once(13, "supports_authenticated_extended_card", Varint),
        once(14, "preferred_transport", Text),
        many(15, "additional_interfaces", Nested(&INTERFACE)),
        once(16, "protocol_version", Text),
        many(17, "signatures", Nested(&SIGNATURE)),
        once(18, "icon_url", Text),
    ],
);

static INTERFACE: Message = open(
    "AgentInterface",
    &[once(1, "url", Text), once(2, "transport", Text)],
);

static PROVIDER: Message = open(
    "AgentProvider",
    &[once(1, "url", Text), once(2, "organization", Text)],
);

static CAPABILITIES: Message = open(
    "AgentCapabilities",
    &[
        once(1, "streaming", Varint),
        once(2, "push_notifications", Varint),
        many(3, "extensions", Nested(&EXTENSION)),
    ],
);

static EXTENSION: Message = open(
    "AgentExtension",
    &[
        once(1, "uri", Text),
        once(2, "description", Text),
        once(3, "required", Varint),
        once(4, "params", Nested(&STRUCT)),
    ],
);

static SKILL: Message = open(
    "AgentSkill",
    &[
        once(1, "id", Text),
        once(2, "name", Text),
        once(3, "description", Text),
        many(4, "tags", Text),
        many(5, "examples", Text),
        many(6, "input_modes", Text),
        many(7, "output_modes", Text),
        many(8, "security", Nested(&SECURITY)),
    ],
);

static SIGNATURE: Message = open(
    "AgentCardSignature",
    &[
        once(1, "protected", Text),
        once(2, "signature", Text),
        once(3, "header", Nested(&STRUCT)),
    ],
);

/// In JSON its entries stand without a member around them.
pub static SECURITY: Message = open("Security", &[many(1, "schemes", Nested(&SECURITY_ENTRY))]);

static SECURITY_ENTRY: Message = map_entry(
    "Security.SchemesEntry",
    &[once(1, "key", Text), once(2, "value", Nested(&LIST))],
);

/// In JSON its items stand without a member around them.
pub static LIST: Message = open("StringList", &[many(1, "list", Text)]);

static SCHEME_ENTRY: Message = map_entry(
    "AgentCard.SecuritySchemesEntry",
    &[once(1, "key", Text), once(2, "value", Nested(&SCHEME))],
);

/// In JSON its `type` says which of them it is. Of the agent's own schemes none is published, so
/// only the kinds of ours are here.
pub static SCHEME: Message = open(
    "SecurityScheme",
    &[
        one_of(2, "http_auth_security_scheme", Nested(&HTTP_AUTH)),
        one_of(4, "open_id_connect_security_scheme", Nested(&OPEN_ID)),
    ],
);

/// The `type` of each kind in JSON, by its field's number.
pub static SCHEME_TYPES: [(u32, &str); 2] = [(2, "http"), (4, "openIdConnect")];

static OPEN_ID: Message = open(
    "OpenIdConnectSecurityScheme",
    &[
        once(1, "description", Text),
        once(2, "open_id_connect_url", Text),
    ],
);

static HTTP_AUTH: Message = open(
    "HTTPAuthSecurityScheme",
    &[
        once(1, "description", Text),
        once(2, "scheme", Text),
        once(3, "bearer_format", Text),
    ],
);
