//! The JSON Schema of the gateway file, for editors.

use super::document::GATEWAY;
use crate::source::examples;

/// Where examples are taken from: a file that has every field.
const SHOWN: &str = include_str!("../../config/reference.yaml");

/// The draft-07 schema that `portcullis schema gateway` prints, with a line feed at its end. The
/// copy in `config/gateway.schema.json` is compared in tests.
pub fn gateway() -> String {
    let mut schema = GATEWAY.json_schema();
    examples::put(&mut schema, &GATEWAY, &[SHOWN]);
    format!("{schema:#}\n")
}
