//! Reading only the wanted fields of a record, without building the rest of it.

use super::field::{Field, From, Side};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::net::SocketAddr;

/// A value that is no object and no array.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// Text.
    Text(Box<str>),
    /// A number.
    Number(serde_json::Number),
    /// True or false.
    Flag(bool),
}

impl Scalar {
    /// As a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Scalar::Number(number) => number.as_f64(),
            Scalar::Text(_) | Scalar::Flag(_) => None,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Text(text) => f.write_str(text),
            Scalar::Number(number) => number.fmt(f),
            Scalar::Flag(flag) => flag.fmt(f),
        }
    }
}

/// Which fields are read, and where their values go.
#[derive(Debug, Default)]
pub struct Projection {
    first: Node,
    outcome: Node,
    /// One for each slot that needs it.
    made: Vec<(usize, From)>,
    slots: usize,
    known: Vec<(Field, Column)>,
}

/// A field's place in a [`Row`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    values: usize,
    /// For a claim: where its lack of a value is.
    lack: Option<usize>,
}

/// What was read of one call or record.
#[derive(Debug, Clone, Default)]
pub struct Row(Vec<Vec<Scalar>>);

#[derive(Debug, Default)]
struct Node {
    members: Vec<(Box<str>, Node)>,
    slots: Vec<usize>,
}

impl Projection {
    /// Has a field read.
    pub fn add(&mut self, field: &Field) -> Column {
        if let Some((_, column)) = self
            .known
            .iter()
            .find(|(known, _)| known.from == field.from)
        {
            return *column;
        }
        let (path, lack) = match &field.from {
            From::Path(path) => (path.clone(), None),
            From::Claim(name) => {
                let values = format!("caller.claims.{name}").into();
                (values, Some(format!("caller.no_claims.{name}")))
            }
            From::Address => ("source.addr".into(), None),
            From::Day | From::Hour => ("time".into(), None),
        };
        let values = self.slot(&path, field.side);
        let lack = lack.map(|path| self.slot(&path, field.side));
        if matches!(field.from, From::Address | From::Day | From::Hour) {
            self.made.push((values, field.from.clone()));
        }
        let column = Column { values, lack };
        self.known.push((field.clone(), column));
        column
    }

    fn slot(&mut self, path: &str, side: Side) -> usize {
        let slot = self.slots;
        self.slots += 1;
        // In the view of records, each of them is read as if it were the first.
        self.first.put(path, slot);
        if matches!(side, Side::Outcome | Side::Either) {
            self.outcome.put(path, slot);
        }
        slot
    }

    /// Reads a call, or with `outcome` absent any record.
    ///
    /// # Errors
    /// It is not JSON.
    pub fn read(&self, first: &[u8], outcome: Option<&[u8]>) -> Result<Row, NotJson> {
        let mut row = Row(vec![Vec::new(); self.slots]);
        self.first.read(first, &mut row)?;
        if let Some(outcome) = outcome {
            self.outcome.read(outcome, &mut row)?;
        }
        for (slot, from) in &self.made {
            for value in row.0.get_mut(*slot).into_iter().flatten() {
                if let Scalar::Text(text) = value
                    && let Some(short) = made(from, text)
                {
                    *text = short;
                }
            }
        }
        Ok(row)
    }
}

/// What is shown of a text.
fn made(from: &From, text: &str) -> Option<Box<str>> {
    match from {
        From::Day => text.get(..10).map(Box::from),
        From::Hour => text.get(..13).map(Box::from),
        // Where addresses are hidden or shortened there is no port.
        From::Address => Some(match text.parse::<SocketAddr>() {
            Ok(addr) => addr.ip().to_string().into(),
            Err(_) => text.into(),
        }),
        From::Path(_) | From::Claim(_) => None,
    }
}

impl Row {
    /// The values of a field, in the order in which they stand.
    pub fn values(&self, column: Column) -> &[Scalar] {
        self.0.get(column.values).map_or(&[], Vec::as_slice)
    }

    /// Why a claim has no value: `missing`, `null` or `wrong_type`.
    pub fn lack(&self, column: Column) -> Option<&Scalar> {
        self.0.get(column.lack?)?.first()
    }

    /// The record says neither a claim's value nor that it has none.
    pub fn claim_not_recorded(&self, column: Column) -> bool {
        column.lack.is_some() && self.values(column).is_empty() && self.lack(column).is_none()
    }
}

/// It is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotJson;

impl Node {
    fn put(&mut self, path: &str, slot: usize) {
        let Some((name, rest)) = path
            .split_once('.')
            .map(|(name, rest)| (name, Some(rest)))
            .or((!path.is_empty()).then_some((path, None)))
        else {
            return self.slots.push(slot);
        };
        let at = match self.members.iter().position(|(known, _)| **known == *name) {
            Some(at) => at,
            None => {
                self.members.push((name.into(), Node::default()));
                self.members.len() - 1
            }
        };
        if let Some((_, node)) = self.members.get_mut(at) {
            node.put(rest.unwrap_or_default(), slot);
        }
    }

    fn read(&self, line: &[u8], row: &mut Row) -> Result<(), NotJson> {
        let mut json = serde_json::Deserializer::from_slice(line);
        let read = Into { node: self, row }.deserialize(&mut json);
        read.and_then(|()| json.end()).map_err(|_| NotJson)
    }
}

struct Into<'n, 'r> {
    node: &'n Node,
    row: &'r mut Row,
}

impl Into<'_, '_> {
    fn put(self, value: Scalar) {
        for slot in &self.node.slots {
            if let Some(values) = self.row.0.get_mut(*slot) {
                values.push(value.clone());
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Into<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Into<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(member) = map.next_key_seed(Member(self.node))? {
            match member {
                Some(node) => {
                    let row = &mut *self.row;
                    map.next_value_seed(Into { node, row })?;
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        loop {
            let (node, row) = (self.node, &mut *self.row);
            if seq.next_element_seed(Into { node, row })?.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.put(Scalar::Text(text.into()));
        Ok(())
    }

    fn visit_bool<E>(self, flag: bool) -> Result<(), E> {
        self.put(Scalar::Flag(flag));
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.put(Scalar::Number(number.into()));
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.put(Scalar::Number(number.into()));
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        if let Some(number) = serde_json::Number::from_f64(number) {
            self.put(Scalar::Number(number));
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A member's name, to the node that wants it.
struct Member<'n>(&'n Node);

impl<'de, 'n> DeserializeSeed<'de> for Member<'n> {
    type Value = Option<&'n Node>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'n> Visitor<'_> for Member<'n> {
    type Value = Option<&'n Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let mut members = self.0.members.iter();
        let found = members.find(|(known, _)| **known == *name);
        Ok(found.map(|(_, node)| node))
    }
}
