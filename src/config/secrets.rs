//! Secrets of the gateway file: `${NAME}` names an environment variable, `{file: PATH}` a file.
//!
//! A secret never stands in the gateway file itself, and no message shows what it is.

use super::capture::Capture;
use super::document;
use crate::audit::redact::Secret;
use crate::source::{Kind, Value, codes};

/// Longest secret in bytes.
const MAX_SECRET: usize = 4096;

/// The variable that a text of the form `${NAME}` names.
pub(super) fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let good = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    good.then_some(name)
}

/// Whether the value at this path is a secret, the only place where a reference may stand.
pub(super) fn is_secret(path: &str) -> bool {
    path.starts_with("agents[") && path.ends_with(".backend.identity.header.value")
        || path.starts_with("issuers[") && path.ends_with(".introspection.client_secret")
        || path.starts_with("telemetry.otlp.headers")
}

/// A secret that stands in the file itself, which is an error, is not shown beside any other.
pub(super) fn keep(value: &Value<'_, '_>, text: &str) {
    if variable(text).is_none() {
        value.hide_line();
    }
}

/// Reads a secret; one line feed at the end of a file is no part of it.
pub(super) fn read(value: &Value<'_, '_>, capture: &Capture) -> Option<Secret<Box<str>>> {
    let reference = match &value.node.kind {
        Kind::Map(_) => None,
        Kind::Str(text) => Some(variable(text)),
        Kind::Null
        | Kind::Bool(_)
        | Kind::Int(_)
        | Kind::Float(_)
        | Kind::Seq(_)
        | Kind::Reported => Some(None),
    };
    if let Some(name) = reference {
        let Some(name) = name else {
            value.hide_line();
            value.error(
                codes::SECRET,
                "a secret stands in the file itself, or is no reference to one",
                "write `{file: PATH}`, or `${NAME}` for an environment variable; treat what stood here as known to others",
            );
            return None;
        };
        return match capture.variables.get(name) {
            Some(Some(secret)) => usable(value, secret.reveal()),
            Some(None) | None => {
                value.error(
                    codes::SECRET,
                    format!("the environment variable `{name}` is not set, or is no text"),
                    "set it where the gateway is started, or write `{file: PATH}`",
                );
                None
            }
        };
    }
    let file = value.fields(&document::OWN_KEY)?.get("file")?;
    let content = capture.files.get(&capture.resolve(file.text()?))?;
    let bytes = match &content.bytes {
        Ok(bytes) => bytes,
        Err(why) => {
            file.error(
                codes::SECRET,
                format!("the file of the secret cannot be read: {why}"),
                "paths are relative to the gateway file; check the permissions too",
            );
            return None;
        }
    };
    if content.world_writable {
        file.error(
            codes::SECRET,
            "every user of this machine may write the file of the secret",
            "run `chmod 600` on it",
        );
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        unusable(&file);
        return None;
    };
    let text = text.strip_suffix('\n').unwrap_or(text);
    usable(&file, text.strip_suffix('\r').unwrap_or(text))
}

fn usable(place: &Value<'_, '_>, secret: &str) -> Option<Secret<Box<str>>> {
    // What a header field can carry unchanged: no space at an end, no line break within.
    let plain = !secret.is_empty()
        && secret.len() <= MAX_SECRET
        && secret.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
        && secret.trim() == secret;
    if !plain {
        unusable(place);
        return None;
    }
    Some(Secret::new(secret.into()))
}

fn unusable(place: &Value<'_, '_>) {
    place.error(
        codes::SECRET,
        "the secret is empty, longer than 4096 bytes, or not one line of printable ASCII",
        "write the secret alone, on one line",
    );
}

#[cfg(test)]
mod tests {
    use super::{is_secret, variable};

    #[test]
    fn a_reference_is_one_name_and_nothing_else() {
        for (text, name) in [
            ("${KEY}", Some("KEY")),
            ("${_k1}", Some("_k1")),
            ("${}", None),
            ("${1}", None),
            ("${A}${B}", None),
            ("x${A}", None),
            ("${A:-x}", None),
            ("$A", None),
            ("plain", None),
        ] {
            assert_eq!(variable(text), name, "{text}");
        }
        assert!(is_secret("agents[12].backend.identity.header.value"));
        assert!(!is_secret("agents[12].backend.identity.header.name"));
        assert!(!is_secret("agents[0].backend.url"));
        assert!(is_secret("issuers[0].introspection.client_secret"));
        assert!(!is_secret("issuers[0].introspection.client_id"));
        assert!(is_secret("telemetry.otlp.headers.X-Api-Key"));
        assert!(!is_secret("telemetry.otlp.endpoint"));
    }
}
