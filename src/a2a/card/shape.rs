//! The fields of an AgentCard of 1.0 as a table (`a2a.proto` of A2A 1.0, section 4.4): what
//! signatures cover, and what the card is in gRPC.

/// A message.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) fields: &'static [Field],
    /// At most one of the fields may be set.
    pub(super) one_of: bool,
}

/// One field of a message.
#[derive(Debug)]
pub(super) struct Field {
    /// Its number in protobuf.
    #[expect(
        dead_code,
        reason = "names the field where the table is compared with the proto"
    )]
    pub(super) number: u32,
    /// Its name in JSON.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) presence: Presence,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    Flag,
    Texts,
    Message(&'static Shape),
    Messages(&'static Shape),
    /// From text to text.
    TextMap,
    /// From text to a message.
    Map(&'static Shape),
    /// Any JSON object (`google.protobuf.Struct`).
    Struct,
}

/// When a field stands in the JSON form that signatures cover (section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// Even when it is empty.
    Required,
    /// Whenever it was set, even to its default.
    Explicit,
    /// Only with another value than its default.
    Implicit,
}

use Kind::{Flag, Map, Message, Messages, Struct, Text, TextMap, Texts};
use Presence::{Explicit, Implicit, Required};

const fn field(number: u32, name: &'static str, kind: Kind, presence: Presence) -> Field {
    Field {
        number,
        name,
        kind,
        presence,
    }
}

const fn shape(fields: &'static [Field]) -> Shape {
    Shape {
        fields,
        one_of: false,
    }
}

/// The signatures of a card are not among its fields here: they cover all others.
pub(super) static CARD: Shape = shape(&[
    field(1, "name", Text, Required),
    field(2, "description", Text, Required),
    field(3, "supportedInterfaces", Messages(&INTERFACE), Required),
    field(4, "provider", Message(&PROVIDER), Explicit),
    field(5, "version", Text, Required),
    field(6, "documentationUrl", Text, Explicit),
    field(7, "capabilities", Message(&CAPABILITIES), Required),
    field(8, "securitySchemes", Map(&SCHEME), Implicit),
    field(9, "securityRequirements", Messages(&REQUIREMENT), Implicit),
    field(10, "defaultInputModes", Texts, Required),
    field(11, "defaultOutputModes", Texts, Required),
    field(12, "skills", Messages(&SKILL), Required),
    field(14, "iconUrl", Text, Explicit),
]);

static INTERFACE: Shape = shape(&[
    field(1, "url", Text, Required),
    field(2, "protocolBinding", Text, Required),
    field(3, "tenant", Text, Implicit),
    field(4, "protocolVersion", Text, Required),
]);

static PROVIDER: Shape = shape(&[
    field(1, "url", Text, Required),
    field(2, "organization", Text, Required),
]);

static CAPABILITIES: Shape = shape(&[
    field(1, "streaming", Flag, Explicit),
    field(2, "pushNotifications", Flag, Explicit),
    field(3, "extensions", Messages(&EXTENSION), Implicit),
    field(4, "extendedAgentCard", Flag, Explicit),
]);

static EXTENSION: Shape = shape(&[
    field(1, "uri", Text, Implicit),
    field(2, "description", Text, Implicit),
    field(3, "required", Flag, Implicit),
    field(4, "params", Struct, Explicit),
]);

static SKILL: Shape = shape(&[
    field(1, "id", Text, Required),
    field(2, "name", Text, Required),
    field(3, "description", Text, Required),
    field(4, "tags", Texts, Required),
    field(5, "examples", Texts, Implicit),
    field(6, "inputModes", Texts, Implicit),
    field(7, "outputModes", Texts, Implicit),
    field(8, "securityRequirements", Messages(&REQUIREMENT), Implicit),
]);

static REQUIREMENT: Shape = shape(&[field(1, "schemes", Map(&LIST), Implicit)]);

static LIST: Shape = shape(&[field(1, "list", Texts, Implicit)]);

static SCHEME: Shape = Shape {
    fields: &[
        field(1, "apiKeySecurityScheme", Message(&API_KEY), Explicit),
        field(2, "httpAuthSecurityScheme", Message(&HTTP_AUTH), Explicit),
        field(3, "oauth2SecurityScheme", Message(&OAUTH2), Explicit),
        field(4, "openIdConnectSecurityScheme", Message(&OIDC), Explicit),
        field(5, "mtlsSecurityScheme", Message(&MTLS), Explicit),
    ],
    one_of: true,
};

static API_KEY: Shape = shape(&[
    field(1, "description", Text, Implicit),
    field(2, "location", Text, Required),
    field(3, "name", Text, Required),
]);

static HTTP_AUTH: Shape = shape(&[
    field(1, "description", Text, Implicit),
    field(2, "scheme", Text, Required),
    field(3, "bearerFormat", Text, Implicit),
]);

static OAUTH2: Shape = shape(&[
    field(1, "description", Text, Implicit),
    field(2, "flows", Message(&FLOWS), Required),
    field(3, "oauth2MetadataUrl", Text, Implicit),
]);

static OIDC: Shape = shape(&[
    field(1, "description", Text, Implicit),
    field(2, "openIdConnectUrl", Text, Required),
]);

static MTLS: Shape = shape(&[field(1, "description", Text, Implicit)]);

static FLOWS: Shape = Shape {
    fields: &[
        field(1, "authorizationCode", Message(&CODE_FLOW), Explicit),
        field(2, "clientCredentials", Message(&CLIENT_FLOW), Explicit),
        field(3, "implicit", Message(&IMPLICIT_FLOW), Explicit),
        field(4, "password", Message(&PASSWORD_FLOW), Explicit),
        field(5, "deviceCode", Message(&DEVICE_FLOW), Explicit),
    ],
    one_of: true,
};

static CODE_FLOW: Shape = shape(&[
    field(1, "authorizationUrl", Text, Required),
    field(2, "tokenUrl", Text, Required),
    field(3, "refreshUrl", Text, Implicit),
    field(4, "scopes", TextMap, Required),
    field(5, "pkceRequired", Flag, Implicit),
]);

static CLIENT_FLOW: Shape = shape(&[
    field(1, "tokenUrl", Text, Required),
    field(2, "refreshUrl", Text, Implicit),
    field(3, "scopes", TextMap, Required),
]);

static IMPLICIT_FLOW: Shape = shape(&[
    field(1, "authorizationUrl", Text, Implicit),
    field(2, "refreshUrl", Text, Implicit),
    field(3, "scopes", TextMap, Implicit),
]);

static PASSWORD_FLOW: Shape = shape(&[
    field(1, "tokenUrl", Text, Implicit),
    field(2, "refreshUrl", Text, Implicit),
    field(3, "scopes", TextMap, Implicit),
]);

static DEVICE_FLOW: Shape = shape(&[
    field(1, "deviceAuthorizationUrl", Text, Required),
    field(2, "tokenUrl", Text, Required),
    field(3, "refreshUrl", Text, Implicit),
    field(4, "scopes", TextMap, Required),
]);
