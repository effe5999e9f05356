//! The journal: its record schema, its chain, and its writer when things break.
#![allow(clippy::unwrap_used)]

use portcullis::audit::record;
use std::path::Path;

#[test]
fn the_record_schema_in_config_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/record.schema.json");
    let mut generated = serde_json::to_string_pretty(&record::schema()).unwrap();
    generated.push('\n');
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        stored, generated,
        "run with UPDATE_EXPECT=1 and review the difference"
    );
}
