//! What claims are worth: grants, and the names that policies use.

use crate::config::document;
use crate::identity::issuer::{
    ClaimDeclaration, ClaimKind, Grant, GrantForm, GrantMark, RESERVED_CLAIMS,
};
use crate::source::{Value, codes};

/// Most names in the path of a claim; deeper payloads are refused (FM-3).
const MAX_PATH: usize = 16;
const FORMS: [(&str, GrantForm); 3] = [
    ("space_string", GrantForm::SpaceString),
    ("string_array", GrantForm::StringArray),
    ("either", GrantForm::Either),
];
const GRANTS: [(&str, Grant); 2] = [("agent", Grant::Agent), ("full", Grant::Full)];
const KINDS: [(&str, ClaimKind); 5] = [
    ("string", ClaimKind::String),
    ("number", ClaimKind::Number),
    ("boolean", ClaimKind::Boolean),
    ("string_array", ClaimKind::StringArray),
    ("space_string", ClaimKind::SpaceString),
];

/// Names from a payload's top down.
fn claim_path(value: &Value<'_, '_>) -> Vec<Box<str>> {
    let names: Vec<Box<str>> = match value.list() {
        // The same name may stand twice in a path.
        Some(names) => names
            .iter()
            .filter_map(|n| n.text().map(Box::from))
            .collect(),
        None => return Vec::new(),
    };
    if names.len() > MAX_PATH {
        value.error(
            codes::OUT_OF_RANGE,
            format!("the path has {} names", names.len()),
            format!("a path has at most {MAX_PATH} names; deeper tokens are refused"),
        );
    }
    names
}

pub(super) fn grants(value: &Value<'_, '_>) -> Vec<GrantMark> {
    let mut marks = Vec::new();
    for entry in value.list().unwrap_or_default() {
        let Some(fields) = entry.fields(&document::GRANT) else {
            continue;
        };
        let path = fields
            .get("path")
            .map(|v| claim_path(&v))
            .unwrap_or_default();
        let form = fields.get("form").and_then(|v| v.word(&FORMS));
        let mut map = Vec::new();
        for (key, grant) in fields
            .get("map")
            .and_then(|v| v.entries())
            .unwrap_or_default()
        {
            // GR-5: such a value is split before it is compared, so it could never match.
            if form == Some(GrantForm::SpaceString)
                && (key.name.is_empty() || key.name.contains(' '))
            {
                grant.error(
                    codes::NOT_ALLOWED,
                    "a value with a space never matches under `form: space_string`",
                    "write the single words, each with its grant",
                );
            }
            map.extend(
                grant
                    .word(&GRANTS)
                    .map(|g| (Box::from(key.name.as_str()), g)),
            );
        }
        marks.extend(form.map(|form| GrantMark { path, form, map }));
    }
    marks
}

pub(super) fn claims(value: &Value<'_, '_>) -> Vec<ClaimDeclaration> {
    let mut claims = Vec::new();
    for (key, entry) in value.entries().unwrap_or_default() {
        let name = key.name.as_str();
        if RESERVED_CLAIMS.contains(&name) {
            entry.error(
                codes::RESERVED_CLAIM,
                format!("`{name}` is a name that policies know already"),
                "declare the claim under another name, such as `my_…`",
            );
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.bytes().all(plain) {
            entry.error(
                codes::BAD_NAME,
                "a claim's name starts with a letter and has letters, digits, `_` and `-`",
                "choose a plain name; the token's own spelling goes into `path`",
            );
        }
        let Some(fields) = entry.fields(&document::CLAIM) else {
            continue;
        };
        let path = fields
            .get("path")
            .map(|v| claim_path(&v))
            .unwrap_or_default();
        let kind = fields.get("type").and_then(|v| v.word(&KINDS));
        claims.extend(kind.map(|kind| ClaimDeclaration {
            name: name.into(),
            path,
            kind,
        }));
    }
    claims
}
