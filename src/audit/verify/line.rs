//! What verification must know of a line, and whether it has what its kind must have.

use crate::audit::record;
use crate::audit::record::Time;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// The members that each kind of record must have, by the schema.
#[derive(Debug)]
pub struct Required {
    names: Vec<Box<str>>,
    /// For each kind, which of `names`.
    kinds: Vec<(Box<str>, u128)>,
}

/// What a line says, as far as it matters here.
#[derive(Debug, Default)]
pub(super) struct Seen<'l> {
    pub kind: Cow<'l, str>,
    pub time: Option<Time>,
    pub instance: Cow<'l, str>,
    pub intent: Option<u64>,
    pub note: Cow<'l, str>,
    pub journal: Option<Cow<'l, str>>,
    pub delivery: Cow<'l, str>,
    has: u128,
    twice: bool,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wrong {
    NotJson,
    Lacks(Box<str>),
}

impl Required {
    /// Those of the record's schema.
    pub fn new() -> Required {
        let schema = record::schema();
        let mut required = Required {
            names: Vec::new(),
            kinds: Vec::new(),
        };
        let own = required.mask(&schema);
        let variants = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
        for variant in variants.into_iter().flatten() {
            if let Some(kind) = variant["properties"]["kind"]["const"].as_str() {
                let mask = required.mask(variant);
                required.kinds.push((kind.into(), own | mask));
            }
        }
        required
    }

    fn mask(&mut self, node: &Value) -> u128 {
        let mut mask = 0;
        for name in node["required"].as_array().into_iter().flatten() {
            let name = name.as_str().unwrap_or_default();
            let at = self.at(name).unwrap_or_else(|| {
                self.names.push(name.into());
                self.names.len() - 1
            });
            mask |= bit(at);
        }
        mask
    }

    fn at(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| **known == *name)
    }

    /// Reads a line.
    pub(super) fn read<'l>(&self, line: &'l [u8]) -> Result<Seen<'l>, Wrong> {
        let mut json = serde_json::Deserializer::from_slice(line);
        let seen = json.deserialize_map(Members(self));
        let seen = seen.and_then(|seen| json.end().map(|()| seen));
        let seen = seen.ok().filter(|seen| !seen.twice).ok_or(Wrong::NotJson)?;
        let kind = self.kinds.iter().find(|(kind, _)| **kind == *seen.kind);
        let Some((_, mask)) = kind else {
            return Err(Wrong::Lacks("kind".into()));
        };
        let missing = mask & !seen.has;
        if missing != 0 {
            let at = missing.trailing_zeros() as usize;
            let name = self.names.get(at).cloned().unwrap_or_default();
            return Err(Wrong::Lacks(name));
        }
        if seen.time.is_none() {
            return Err(Wrong::Lacks("time".into()));
        }
        Ok(seen)
    }
}

impl Default for Required {
    fn default() -> Required {
        Required::new()
    }
}

/// Names beyond the width of the mask are not asked for.
fn bit(at: usize) -> u128 {
    u32::try_from(at)
        .ok()
        .and_then(|at| 1u128.checked_shl(at))
        .unwrap_or(0)
}

struct Members<'r>(&'r Required);

impl<'l> Visitor<'l> for Members<'_> {
    type Value = Seen<'l>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<Seen<'l>, A::Error> {
        let mut seen = Seen::default();
        while let Some(Text(name)) = map.next_key::<Text<'l>>()? {
            if let Some(at) = self.0.at(&name) {
                seen.twice |= seen.has & bit(at) != 0;
                seen.has |= bit(at);
            }
            match &*name {
                "kind" => seen.kind = map.next_value::<Text<'l>>()?.0,
                "instance" => seen.instance = map.next_value::<Text<'l>>()?.0,
                "note" => seen.note = map.next_value::<Text<'l>>()?.0,
                "delivery" => seen.delivery = map.next_value::<Text<'l>>()?.0,
                "journal" => seen.journal = Some(map.next_value::<Text<'l>>()?.0),
                "time" => seen.time = Time::parse(&map.next_value::<Text<'l>>()?.0),
                "intent" => seen.intent = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(seen)
    }
}

/// Text that is borrowed where it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Text<'l>(#[serde(borrow)] Cow<'l, str>);
