//! The fields of an AgentCard of 1.0 as a table (`a2a.proto` of A2A 1.0, section 4.4): what
//! signatures cover.

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

const fn field(name: &'static str, kind: Kind, presence: Presence) -> Field {
    Field {
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
    field("name", Text, Required),
    field("description", Text, Required),
    field("supportedInterfaces", Messages(&INTERFACE), Required),
    field("provider", Message(&PROVIDER), Explicit),
    field("version", Text, Required),
    field("documentationUrl", Text, Explicit),
    field("capabilities", Message(&CAPABILITIES), Required),
    field("securitySchemes", Map(&SCHEME), Implicit),
    field("securityRequirements", Messages(&REQUIREMENT), Implicit),
    field("defaultInputModes", Texts, Required),
    field("defaultOutputModes", Texts, Required),
    field("skills", Messages(&SKILL), Required),
    field("iconUrl", Text, Explicit),
]);

static INTERFACE: Shape = shape(&[
    field("url", Text, Required),
    field("protocolBinding", Text, Required),
    field("tenant", Text, Implicit),
    field("protocolVersion", Text, Required),
]);

static PROVIDER: Shape = shape(&[
    field("url", Text, Required),
    field("organization", Text, Required),
]);

static CAPABILITIES: Shape = shape(&[
    field("streaming", Flag, Explicit),
    field("pushNotifications", Flag, Explicit),
    field("extensions", Messages(&EXTENSION), Implicit),
    field("extendedAgentCard", Flag, Explicit),
]);

static EXTENSION: Shape = shape(&[
    field("uri", Text, Implicit),
    field("description", Text, Implicit),
    field("required", Flag, Implicit),
    field("params", Struct, Explicit),
]);

static SKILL: Shape = shape(&[
    field("id", Text, Required),
    field("name", Text, Required),
    field("description", Text, Required),
    field("tags", Texts, Required),
    field("examples", Texts, Implicit),
    field("inputModes", Texts, Implicit),
    field("outputModes", Texts, Implicit),
    field("securityRequirements", Messages(&REQUIREMENT), Implicit),
]);

static REQUIREMENT: Shape = shape(&[field("schemes", Map(&LIST), Implicit)]);

static LIST: Shape = shape(&[field("list", Texts, Implicit)]);

static SCHEME: Shape = Shape {
    fields: &[
        field("apiKeySecurityScheme", Message(&API_KEY), Explicit),
        field("httpAuthSecurityScheme", Message(&HTTP_AUTH), Explicit),
        field("oauth2SecurityScheme", Message(&OAUTH2), Explicit),
        field("openIdConnectSecurityScheme", Message(&OIDC), Explicit),
        field("mtlsSecurityScheme", Message(&MTLS), Explicit),
    ],
    one_of: true,
};

static API_KEY: Shape = shape(&[
    field("description", Text, Implicit),
    field("location", Text, Required),
    field("name", Text, Required),
]);

static HTTP_AUTH: Shape = shape(&[
    field("description", Text, Implicit),
    field("scheme", Text, Required),
    field("bearerFormat", Text, Implicit),
]);

static OAUTH2: Shape = shape(&[
    field("description", Text, Implicit),
    field("flows", Message(&FLOWS), Required),
    field("oauth2MetadataUrl", Text, Implicit),
]);

static OIDC: Shape = shape(&[
    field("description", Text, Implicit),
    field("openIdConnectUrl", Text, Required),
]);

static MTLS: Shape = shape(&[field("description", Text, Implicit)]);

static FLOWS: Shape = Shape {
    fields: &[
        field("authorizationCode", Message(&CODE_FLOW), Explicit),
        field("clientCredentials", Message(&CLIENT_FLOW), Explicit),
        field("implicit", Message(&IMPLICIT_FLOW), Explicit),
        field("password", Message(&PASSWORD_FLOW), Explicit),
        field("deviceCode", Message(&DEVICE_FLOW), Explicit),
    ],
    one_of: true,
};

static CODE_FLOW: Shape = shape(&[
    field("authorizationUrl", Text, Required),
    field("tokenUrl", Text, Required),
    field("refreshUrl", Text, Implicit),
    field("scopes", TextMap, Required),
    field("pkceRequired", Flag, Implicit),
]);

static CLIENT_FLOW: Shape = shape(&[
    field("tokenUrl", Text, Required),
    field("refreshUrl", Text, Implicit),
    field("scopes", TextMap, Required),
]);

static IMPLICIT_FLOW: Shape = shape(&[
    field("authorizationUrl", Text, Implicit),
    field("refreshUrl", Text, Implicit),
    field("scopes", TextMap, Implicit),
]);

static PASSWORD_FLOW: Shape = shape(&[
    field("tokenUrl", Text, Implicit),
    field("refreshUrl", Text, Implicit),
    field("scopes", TextMap, Implicit),
]);

static DEVICE_FLOW: Shape = shape(&[
    field("deviceAuthorizationUrl", Text, Required),
    field("tokenUrl", Text, Required),
    field("refreshUrl", Text, Implicit),
    field("scopes", TextMap, Required),
]);
