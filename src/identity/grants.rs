//! How far a token reaches, and what its declared claims are (GR-1 to GR-8, PR-2, PR-4).

use super::issuer::{ClaimDeclaration, ClaimKind, Grant, GrantForm, GrantMark, IssuerConfig};
use super::profile::Scopes;
use super::{ClaimState, ClaimValue};
use crate::a2a::strict_json::Value;

/// The grant of a token. Delegation caps it, whatever its marks add up to (GR-4, GR-8).
pub(super) fn reach(payload: &Value, config: &IssuerConfig, delegated: bool) -> Option<Grant> {
    Some(capped(grant(payload, &config.grants)?, config, delegated))
}

/// A grant under delegation (GR-8).
pub(super) fn capped(grant: Grant, config: &IssuerConfig, delegated: bool) -> Grant {
    if delegated && !config.delegated_full {
        Grant::Agent
    } else {
        grant
    }
}

/// The grant that the marks add up to; absence is none (GR-3, GR-4).
pub(super) fn grant(payload: &Value, marks: &[GrantMark]) -> Option<Grant> {
    marks.iter().filter_map(|mark| marked(payload, mark)).max()
}

fn marked(payload: &Value, mark: &GrantMark) -> Option<Grant> {
    let value = match look(payload, &mark.path) {
        Found::Value(value) => value,
        Found::Nothing | Found::Null | Found::NoWay => return None,
    };
    // GR-7: byte for byte.
    let worth = |piece: &str| {
        let same = |(known, _): &&(Box<str>, Grant)| **known == *piece;
        mark.map.iter().filter(same).map(|(_, grant)| *grant).max()
    };
    match (mark.form, value) {
        (GrantForm::SpaceString, Value::String(text)) => pieces(text).filter_map(worth).max(),
        (GrantForm::Either, Value::String(text)) if !text.is_empty() => worth(text),
        (GrantForm::StringArray | GrantForm::Either, Value::Array(items)) => {
            // GR-5: one element of another type spoils the array.
            let texts: Vec<&str> = items.iter().map(Value::as_str).collect::<Option<_>>()?;
            texts.into_iter().filter_map(worth).max()
        }
        (GrantForm::SpaceString | GrantForm::StringArray | GrantForm::Either, _) => None,
    }
}

/// The pieces of a string of scopes: split on U+0020 only (RFC 6749 section 3.3).
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|piece| !piece.is_empty())
}

/// The scopes, where the profile has them; none for any other type, and none of an array with an
/// element of another type (GR-5).
pub(super) fn scopes(payload: &Value, scopes: Scopes) -> Vec<Box<str>> {
    match scopes {
        Scopes::Words(claim) => payload
            .get(claim)
            .and_then(Value::as_str)
            .map(|text| pieces(text).map(Box::from).collect()),
        Scopes::List(claim) => payload.get(claim).and_then(|list| match list {
            Value::Array(items) => items
                .iter()
                .map(|item| item.as_str().map(Box::from))
                .collect(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => None,
        }),
    }
    .unwrap_or_default()
}

/// The state of a declared claim (PR-2).
pub(super) fn state(payload: &Value, declaration: &ClaimDeclaration) -> ClaimState {
    let value = match look(payload, &declaration.path) {
        Found::Value(value) => value,
        Found::Nothing => return ClaimState::Missing,
        Found::Null => return ClaimState::Null,
        Found::NoWay => return ClaimState::WrongType,
    };
    let value = match (declaration.kind, value) {
        (ClaimKind::String, Value::String(text)) => Some(ClaimValue::String(text.clone())),
        (ClaimKind::Number, Value::Number(text)) => text.parse().ok().map(ClaimValue::Number),
        (ClaimKind::Boolean, Value::Bool(flag)) => Some(ClaimValue::Boolean(*flag)),
        (ClaimKind::StringArray, Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(Box::from))
            .collect::<Option<_>>()
            .map(ClaimValue::Strings),
        (ClaimKind::SpaceString, Value::String(text)) => {
            Some(ClaimValue::Strings(pieces(text).map(Box::from).collect()))
        }
        // PR-4: no coercion.
        (
            ClaimKind::String
            | ClaimKind::Number
            | ClaimKind::Boolean
            | ClaimKind::StringArray
            | ClaimKind::SpaceString,
            _,
        ) => None,
    };
    value.map_or(ClaimState::WrongType, ClaimState::Value)
}

enum Found<'v> {
    Value(&'v Value),
    Nothing,
    /// `null`, at the end of the path or on the way.
    Null,
    /// Something on the way is no object. That is not the same as nothing: a deny rule may be
    /// lifted for a missing claim, and must not be for a mangled one.
    NoWay,
}

/// GR-6: a path is a list of names; a dot in a name is literal.
fn look<'v>(payload: &'v Value, path: &[Box<str>]) -> Found<'v> {
    let mut value = payload;
    for name in path {
        value = match value {
            Value::Object(_) => match value.get(name) {
                Some(value) => value,
                None => return Found::Nothing,
            },
            Value::Null => return Found::Null,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Found::NoWay;
            }
        };
    }
    match value {
        Value::Null => Found::Null,
        value => Found::Value(value),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
