//! Questions to a journal: conditions on the fields of calls and records.
//!
//! Answers: does this call, its intent with its outcome, meet these conditions. May import: what
//! `audit` may. Invariants: pure, a record's bytes in and a truth out; what a record does not say of a
//! claim is no answer, neither yes nor no ([`Truth::NotRecorded`]); a condition on a field that
//! does not exist is an error; what the prefilter passes over cannot meet the conditions. Start
//! reading at [`Query`].

pub mod calls;
pub mod field;
pub mod read;
pub mod time;

use super::record::Time;
use super::redact::hidden::{HidingKey, key_of};
use super::redact::{ID, TEXT, cut};
use calls::Filter;
use field::{Field, Fields, Shape};
use memchr::memmem::Finder;
use read::{Column, Projection, Row, Scalar};

/// Conditions that must all hold; of several `=` on one field, one must.
#[derive(Debug)]
pub struct Query {
    groups: Vec<Group>,
    /// What is read of records: what the conditions need, and what was added with [`Query::column`].
    pub projection: Projection,
    /// Only what happened at this time or later.
    pub since: Option<Time>,
    /// Only what happened before this time.
    pub until: Option<Time>,
}

/// One condition, or several `=` on one field.
#[derive(Debug)]
struct Group {
    field: Field,
    column: Column,
    comparison: Comparison,
    operands: Vec<Operand>,
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Differs,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// In this order, so that `!=` and `<=` are not taken for `=` or `<`.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("!=", Comparison::Differs),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("=", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// What a value is compared with.
#[derive(Debug)]
struct Operand {
    /// As it was given, and as records cut it; empty for `field=`, which asks for absence.
    texts: Vec<Box<str>>,
    number: Option<f64>,
}

/// Whether something meets conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// That depends on a claim that its record does not hold, because policy did not use it.
    NotRecorded,
}

impl Query {
    /// Reads conditions, such as `agent=pr-agent`, `claims.role!=reviewer` or `ms.total>1000`.
    ///
    /// # Errors
    /// The first that is wrong, in words for whoever wrote it.
    pub fn parse(conditions: &[String], fields: &Fields) -> Result<Query, String> {
        let mut query = Query {
            groups: Vec::new(),
            projection: Projection::default(),
            since: None,
            until: None,
        };
        for condition in conditions {
            query.add(condition, fields)?;
        }
        Ok(query)
    }

    fn add(&mut self, condition: &str, fields: &Fields) -> Result<(), String> {
        let (at, sign, comparison) = COMPARISONS
            .iter()
            .filter_map(|(sign, comparison)| Some((condition.find(sign)?, *sign, *comparison)))
            // The first sign that stands there; of two at one place, the longer one.
            .min_by_key(|(at, sign, _)| (*at, 2 - sign.len()))
            .ok_or_else(|| {
                format!(
                    "`{}` is no condition; write FIELD=VALUE, FIELD!=VALUE, or < and > for numbers",
                    cut(condition, TEXT)
                )
            })?;
        let (name, value) = (&condition[..at], &condition[at + sign.len()..]);
        let field = fields.find(name)?;
        let ordered = !matches!(comparison, Comparison::Equal | Comparison::Differs);
        let number = value.parse::<f64>().ok().filter(|n| n.is_finite());
        if ordered && (field.shape != Shape::Number || number.is_none()) {
            return Err(format!(
                "`{}`: `{sign}` compares numbers, and `{name}` is {}",
                cut(condition, TEXT),
                match field.shape {
                    Shape::Number => "one, but what it is compared with is none",
                    Shape::Text | Shape::Flag | Shape::Any => "none",
                }
            ));
        }
        if field.shape == Shape::Number && number.is_none() && !value.is_empty() {
            return Err(format!("`{}`: `{name}` is a number", cut(condition, TEXT)));
        }
        let operand = Operand::of(value, number);
        let same = self.groups.iter_mut().find(|group| {
            let equal = [group.comparison, comparison] == [Comparison::Equal; 2];
            equal && group.field == field
        });
        if let Some(group) = same {
            group.operands.push(operand);
            return Ok(());
        }
        let column = self.projection.add(&field);
        self.groups.push(Group {
            field,
            column,
            comparison,
            operands: vec![operand],
        });
        Ok(())
    }

    /// Takes values for their tokens under these keys too, on fields that `audit.redact` may hide.
    pub fn look_for_tokens(&mut self, keys: &[HidingKey]) {
        for group in &mut self.groups {
            let Some(class) = group.field.class() else {
                continue;
            };
            for operand in &mut group.operands {
                if let Some(value) = operand.texts.first().cloned() {
                    let tokens = keys.iter().map(|key| key.hide(class, &value).into());
                    operand.texts.extend(tokens);
                }
            }
        }
    }

    /// The first condition that compares with a plain value what `audit.redact` may hide; claims,
    /// of which it hides few, are not counted.
    pub fn hidable(&self) -> Option<&str> {
        let plain = |operand: &Operand| operand.texts.first().is_some_and(|v| key_of(v).is_none());
        let found = self.groups.iter().find(|group| {
            let claim = matches!(group.field.from, field::From::Claim(_));
            !claim && group.field.class().is_some() && group.operands.iter().any(plain)
        });
        found.map(|group| &*group.field.name)
    }

    /// Has a field read of everything that meets the conditions.
    pub fn column(&mut self, field: &Field) -> Column {
        self.projection.add(field)
    }

    /// The first condition on a field that calls do not have.
    pub fn beyond_calls(&self) -> Option<&str> {
        let beyond = self.groups.iter().find(|group| !group.field.of_calls());
        beyond.map(|group| &*group.field.name)
    }

    /// Whether what was read meets the conditions.
    pub fn judge(&self, row: &Row) -> Truth {
        let mut truth = Truth::Yes;
        for group in &self.groups {
            match group.holds(row) {
                Truth::Yes => {}
                Truth::No => return Truth::No,
                Truth::NotRecorded => truth = Truth::NotRecorded,
            }
        }
        truth
    }

    /// What the bytes of whatever meets the conditions must contain.
    pub fn filter(&self) -> Filter {
        let needles = self.groups.iter().filter_map(|group| {
            let some = group.comparison == Comparison::Equal;
            let needles = group.operands.iter().filter(|_| some);
            let needles: Vec<Vec<u8>> = needles
                .map(|operand| group.field.needles(&operand.texts))
                .collect::<Option<Vec<_>>>()?
                .concat();
            let finders = needles
                .iter()
                .map(|needle| Finder::new(needle).into_owned());
            (!needles.is_empty()).then(|| (group.field.side, finders.collect()))
        });
        Filter::new(needles.collect(), self.since, self.until)
    }
}

impl Operand {
    fn of(value: &str, number: Option<f64>) -> Operand {
        let mut texts: Vec<Box<str>> = Vec::new();
        for text in [value.into(), cut(value, ID), cut(value, TEXT)] {
            if !value.is_empty() && !texts.iter().any(|known| **known == *text) {
                texts.push(text.into());
            }
        }
        Operand { texts, number }
    }

    fn is(&self, value: &Scalar) -> bool {
        match value {
            Scalar::Text(text) => self.texts.contains(text),
            Scalar::Number(number) => self.number.is_some() && number.as_f64() == self.number,
            Scalar::Flag(flag) => self.texts.iter().any(|text| **text == *flag.to_string()),
        }
    }
}

impl Group {
    fn holds(&self, row: &Row) -> Truth {
        let values = row.values(self.column);
        let recorded = !values.is_empty() || !row.claim_not_recorded(self.column);
        if !recorded {
            return Truth::NotRecorded;
        }
        let equal = self
            .operands
            .iter()
            .any(|operand| match operand.texts.is_empty() {
                true => values.is_empty(),
                false => values.iter().any(|value| operand.is(value)),
            });
        let than = |compare: fn(&f64, &f64) -> bool| {
            let limits = self.operands.iter().filter_map(|operand| operand.number);
            let mut limits = limits.map(|limit| {
                let mut numbers = values.iter().filter_map(Scalar::number);
                numbers.any(|number| compare(&number, &limit))
            });
            limits.any(|holds| holds)
        };
        let holds = match self.comparison {
            Comparison::Equal => equal,
            Comparison::Differs => !equal,
            Comparison::Less => than(f64::lt),
            Comparison::LessOrEqual => than(f64::le),
            Comparison::Greater => than(f64::gt),
            Comparison::GreaterOrEqual => than(f64::ge),
        };
        if holds { Truth::Yes } else { Truth::No }
    }
}

#[cfg(test)]
mod tests;
