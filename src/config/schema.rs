//! The JSON Schema of the gateway file, for editors.

use super::document::GATEWAY;

/// The draft-07 schema that `portcullis schema gateway` prints, with a line feed at its end. The
/// copy in `config/gateway.schema.json` is compared in tests.
pub fn gateway() -> String {
    format!("{:#}\n", GATEWAY.json_schema())
}
