//! Records in the forms that other systems read: [`csv`] for tables, [`ocsf`] for SIEMs. JSON Lines
//! need no form: they are the journal's own lines.

pub mod csv;
pub mod ocsf;

use serde_json::Value;

/// A member of a record, by its path with dots.
pub(super) fn at<'v>(record: &'v Value, path: &str) -> Option<&'v Value> {
    let mut names = path.split('.');
    names.try_fold(record, |value, name| value.get(name))
}
