//! The page about the fields of records.

use portcullis::audit::{fields, record};
use std::fs;
use std::path::Path;

/// What every field means, and what it says about a person.
#[test]
fn the_page_about_fields_in_config_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/journal-fields.md");
    let generated = fields::page(&record::schema());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        stored, generated,
        "run with UPDATE_EXPECT=1 and review the difference"
    );
}
