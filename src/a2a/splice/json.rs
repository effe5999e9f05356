//! Splices into JSON.

use super::{STAMP, Stamp, Unspliced};
use bytes::Bytes;
use serde_json::Value;
use std::ops::Range;

/// A member that may be set, or the object in which one may be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Slot {
    /// It is not there.
    #[default]
    Absent,
    /// Its value stands here, and says nothing or what is to be replaced.
    Value(Range<usize>),
    /// It is an object.
    Object {
        /// Where its first member begins: behind the brace.
        at: usize,
        /// Whether it has no member.
        empty: bool,
    },
}

/// Places within a body. They are byte positions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonSpots {
    /// The JSON-RPC request object; absent in HTTP+JSON.
    pub envelope: Slot,
    /// The parameters.
    pub params: Slot,
    /// `tenant` in the parameters.
    pub tenant: Slot,
    /// `message`.
    pub message: Slot,
    /// `message.metadata`.
    pub metadata: Slot,
    /// A stamp of the caller's in `message.metadata`.
    pub stamp: Slot,
    /// The whole member, with one of its commas: a stamp of the caller's in the request's metadata.
    pub elsewhere: Option<Range<usize>>,
}

/// A piece of the body and what takes its place.
struct Edit {
    at: Range<usize>,
    with: String,
}

pub(super) fn splice(
    body: &Bytes,
    spots: &JsonSpots,
    tenant: Option<&str>,
    stamp: Option<Stamp<'_>>,
) -> Result<Bytes, Unspliced> {
    let mut edits = Vec::with_capacity(3);
    if let Some(tenant) = tenant {
        let tenant = Value::from(tenant).to_string();
        let chain = [
            ("params", &spots.params, &spots.envelope),
            ("tenant", &spots.tenant, &spots.params),
        ];
        edits.push(set(chain, &tenant)?);
    }
    if let Some(stamp) = stamp {
        let value = shown(stamp);
        let chain = [
            ("metadata", &spots.metadata, &spots.message),
            (STAMP, &spots.stamp, &spots.metadata),
        ];
        edits.push(set(chain, &value)?);
        edits.extend(spots.elsewhere.clone().map(|at| Edit {
            at,
            with: String::new(),
        }));
    }
    apply(body, edits)
}

/// The value of the stamp.
fn shown(stamp: Stamp<'_>) -> String {
    let request_id = Value::from(stamp.request_id);
    match stamp.skill {
        Some(skill) => {
            let skill = Value::from(skill);
            format!("{{\"skill\":{skill},\"requestId\":{request_id}}}")
        }
        None => format!("{{\"requestId\":{request_id}}}"),
    }
}

/// Sets a member of an object, and makes the object where it is not there.
///
/// The first link is the object: its name, itself, and what it is a member of. The second is the
/// member.
fn set(
    [(outer, object, parent), (name, member, _)]: [(&str, &Slot, &Slot); 2],
    value: &str,
) -> Result<Edit, Unspliced> {
    if let Slot::Value(at) = member {
        return Ok(Edit {
            at: at.clone(),
            with: value.to_owned(),
        });
    }
    match (object, parent) {
        (Slot::Object { at, empty }, _) => Ok(insertion(*at, *empty, name, value)),
        (Slot::Value(at), _) => Ok(Edit {
            at: at.clone(),
            with: format!("{{\"{name}\":{value}}}"),
        }),
        (Slot::Absent, Slot::Object { at, empty }) => {
            let object = format!("{{\"{name}\":{value}}}");
            Ok(insertion(*at, *empty, outer, &object))
        }
        (Slot::Absent, Slot::Absent | Slot::Value(_)) => Err(Unspliced),
    }
}

/// A first member of an object.
fn insertion(at: usize, empty: bool, name: &str, value: &str) -> Edit {
    let comma = if empty { "" } else { "," };
    Edit {
        at: at..at,
        with: format!("\"{name}\":{value}{comma}"),
    }
}

fn apply(body: &Bytes, mut edits: Vec<Edit>) -> Result<Bytes, Unspliced> {
    edits.sort_by_key(|edit| (edit.at.start, edit.at.end));
    let added: usize = edits.iter().map(|edit| edit.with.len()).sum();
    let mut spliced = Vec::with_capacity(body.len() + added);
    let mut at = 0;
    for edit in edits {
        spliced.extend_from_slice(body.get(at..edit.at.start).ok_or(Unspliced)?);
        spliced.extend_from_slice(edit.with.as_bytes());
        at = edit.at.end;
    }
    spliced.extend_from_slice(body.get(at..).ok_or(Unspliced)?);
    Ok(spliced.into())
}
