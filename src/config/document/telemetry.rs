//! The shape of `telemetry`.

use super::OWN_KEY;
use crate::source::shape::{Fields, Shape, optional, required};

/// `telemetry`.
pub static TELEMETRY: Fields = Fields {
    title: "telemetry",
    doc: "Where records are shipped to, besides the journal.",
    fields: &[optional(
        "otlp",
        Shape::Object(&OTLP),
        "an OpenTelemetry collector; default: none",
    )],
    later: &[],
};

/// `telemetry.otlp`.
pub static OTLP: Fields = Fields {
    title: "otlp",
    doc: "An OpenTelemetry collector that gets the journal's records as logs, by HTTP in JSON.",
    fields: &[
        required(
            "endpoint",
            Shape::Text,
            "base URL of its HTTP receiver, such as `http://otel:4318`; `/v1/logs` is added",
        ),
        optional(
            "headers",
            Shape::Named(&Shape::Either(&[Shape::Text, Shape::Object(&OWN_KEY)])),
            "header fields of each request by name, such as `Authorization`: `{file: PATH}`, or `${NAME}` for an environment variable",
        ),
        optional(
            "logs",
            Shape::Boolean,
            "whether records are shipped as logs; default true",
        ),
    ],
    later: &[],
};
