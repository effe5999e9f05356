//! The bytes that a card's signature covers (A2A 1.0 section 8.4.1, RFC 8785).
//!
//! The specification's words leave two forms in use (`a2a-protocol.md` c.2): its own, in which
//! required fields stay although they are empty, and the SDKs', in which nothing empty stays.

use super::narrow::folded;
use super::read::{Member, Node, find, read};
use super::shape::{CARD, Kind, Presence, Shape};
use std::borrow::Cow;
use std::fmt::Write;

/// The two forms of one card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Canonical {
    /// The specification's (S).
    pub(super) spec: String,
    /// The one without anything empty (E), as the Python and JavaScript SDKs have it.
    pub(super) stripped: String,
}

/// The card has no canonical form: a field has another type than in 1.0, is set beside another of
/// the same union, or is spelt in a way that only some readers take for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotCanonical;

/// Both forms of a card. Members that 1.0 does not know, the older shape among them, are in
/// neither.
pub(super) fn canonical(card: &[Member<'_>]) -> Result<Canonical, NotCanonical> {
    let normal = message(card, &CARD)?;
    let mut spec = String::new();
    normal.write(&mut spec);
    let mut stripped = String::new();
    normal
        .strip()
        .unwrap_or(Normal::Object(Vec::new()))
        .write(&mut stripped);
    Ok(Canonical { spec, stripped })
}

/// Any JSON in the form of RFC 8785; `None` for what is no JSON, has a member twice, is nested too
/// deep, or has a number that is no finite double.
pub fn jcs(json: &[u8]) -> Option<String> {
    let node = read(json).ok()?;
    let mut out = String::new();
    any(&node).ok()?.write(&mut out);
    Some(out)
}

/// A value by its meaning.
#[derive(Debug)]
enum Normal<'n> {
    Null,
    Flag(bool),
    Number(f64),
    Text(&'n str),
    Array(Vec<Normal<'n>>),
    Object(Vec<(&'n str, Normal<'n>)>),
}

fn message<'n>(members: &'n [Member<'_>], shape: &Shape) -> Result<Normal<'n>, NotCanonical> {
    for member in members {
        let name = folded(&member.name);
        let near = shape.fields.iter().find(|field| folded(field.name) == name);
        if near.is_some_and(|field| field.name != member.name) {
            return Err(NotCanonical);
        }
    }
    let mut fields = Vec::new();
    for field in shape.fields {
        let Some(node) = find(members, field.name) else {
            continue;
        };
        let value = value(node, field.kind)?;
        if field.presence != Presence::Implicit || !value.is_default() {
            fields.push((field.name, value));
        }
    }
    if shape.one_of && fields.len() > 1 {
        return Err(NotCanonical);
    }
    Ok(Normal::Object(fields))
}

fn value<'n>(node: &'n Node<'_>, kind: Kind) -> Result<Normal<'n>, NotCanonical> {
    match (kind, node) {
        (Kind::Text, Node::Text(_, text)) => Ok(Normal::Text(text)),
        (Kind::Flag, Node::Scalar("true")) => Ok(Normal::Flag(true)),
        (Kind::Flag, Node::Scalar("false")) => Ok(Normal::Flag(false)),
        (Kind::Texts, Node::Array(items)) => list(items, |item| value(item, Kind::Text)),
        (Kind::Messages(shape), Node::Array(items)) => {
            list(items, |item| value(item, Kind::Message(shape)))
        }
        (Kind::Message(shape), Node::Object(members)) => message(members, shape),
        (Kind::TextMap, Node::Object(members)) => map(members, |entry| value(entry, Kind::Text)),
        (Kind::Map(shape), Node::Object(members)) => {
            map(members, |entry| value(entry, Kind::Message(shape)))
        }
        (Kind::Struct, Node::Object(members)) => map(members, any),
        (
            Kind::Text
            | Kind::Flag
            | Kind::Texts
            | Kind::Messages(_)
            | Kind::Message(_)
            | Kind::TextMap
            | Kind::Map(_)
            | Kind::Struct,
            _,
        ) => Err(NotCanonical),
    }
}

fn list<'n, 'a>(
    items: &'n [Node<'a>],
    read: impl Fn(&'n Node<'a>) -> Result<Normal<'n>, NotCanonical>,
) -> Result<Normal<'n>, NotCanonical> {
    Ok(Normal::Array(
        items.iter().map(read).collect::<Result<_, _>>()?,
    ))
}

fn map<'n, 'a>(
    members: &'n [Member<'a>],
    read: impl Fn(&'n Node<'a>) -> Result<Normal<'n>, NotCanonical>,
) -> Result<Normal<'n>, NotCanonical> {
    let entries = members
        .iter()
        .map(|member| Ok((&*member.name, read(&member.value)?)));
    Ok(Normal::Object(entries.collect::<Result<_, _>>()?))
}

/// A value of a `google.protobuf.Struct`, whose numbers are doubles.
fn any<'n>(node: &'n Node<'_>) -> Result<Normal<'n>, NotCanonical> {
    match node {
        Node::Text(_, text) => Ok(Normal::Text(text)),
        Node::Scalar("null") => Ok(Normal::Null),
        Node::Scalar("true") => Ok(Normal::Flag(true)),
        Node::Scalar("false") => Ok(Normal::Flag(false)),
        Node::Scalar(number) => {
            let number: f64 = number.parse().map_err(|_| NotCanonical)?;
            number
                .is_finite()
                .then_some(Normal::Number(number))
                .ok_or(NotCanonical)
        }
        Node::Array(items) => list(items, any),
        Node::Object(members) => map(members, any),
    }
}

impl<'n> Normal<'n> {
    fn is_default(&self) -> bool {
        match self {
            Normal::Null => true,
            Normal::Flag(flag) => !flag,
            Normal::Number(_) => false,
            Normal::Text(text) => text.is_empty(),
            Normal::Array(items) => items.is_empty(),
            Normal::Object(members) => members.is_empty(),
        }
    }

    /// Without empty texts, lists, objects and nulls, at any depth; `None` when nothing is left.
    fn strip(self) -> Option<Normal<'n>> {
        match self {
            Normal::Null => None,
            Normal::Text("") => None,
            Normal::Flag(_) | Normal::Number(_) | Normal::Text(_) => Some(self),
            Normal::Array(items) => {
                let items: Vec<_> = items.into_iter().filter_map(Normal::strip).collect();
                (!items.is_empty()).then_some(Normal::Array(items))
            }
            Normal::Object(members) => {
                let members: Vec<_> = members
                    .into_iter()
                    .filter_map(|(name, value)| Some((name, value.strip()?)))
                    .collect();
                (!members.is_empty()).then_some(Normal::Object(members))
            }
        }
    }

    /// Appends the value in the form of RFC 8785.
    fn write(&self, out: &mut String) {
        match self {
            Normal::Null => out.push_str("null"),
            Normal::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Normal::Number(number) => out.push_str(&ecmascript(*number)),
            Normal::Text(text) => write_text(text, out),
            Normal::Array(items) => {
                out.push('[');
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Normal::Object(members) => {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
                out.push('{');
                for (position, (name, value)) in sorted.into_iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    write_text(name, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// RFC 8785 section 3.2.2.2: as few escapes as JSON allows, in lower case.
fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// A finite double as ECMAScript writes it (ECMA-262 Number::toString, RFC 8785 section 3.2.2.3).
fn ecmascript(number: f64) -> Cow<'static, str> {
    if number == 0.0 {
        return Cow::Borrowed("0");
    }
    let (digits, point) = shortest(number.abs());
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let sign = if number < 0.0 { "-" } else { "" };
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or(0));
    let text = if count <= point && point <= 21 {
        format!("{sign}{digits}{}", zeros(point - count))
    } else if 0 < point && point <= 21 {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
        format!("{sign}{whole}.{fraction}")
    } else if -6 < point && point <= 0 {
        format!("{sign}0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        let plus = if point > 0 { "+" } else { "-" };
        format!("{sign}{first}{dot}{rest}e{plus}{}", (point - 1).abs())
    };
    Cow::Owned(text)
}

/// The shortest digits that read back as the same double, nearest first and even among equals,
/// and where the point stands before, in or behind them. The standard library's are not: it goes
/// up where two are equally near.
fn shortest(number: f64) -> (String, i32) {
    let text = serde_json::to_string(&number).unwrap_or_default();
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let places = |text: &str| i32::try_from(text.len()).unwrap_or(i32::MAX);
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let point = places(whole) + exponent - (places(&all) - places(digits));
    (digits.trim_end_matches('0').to_owned(), point)
}

#[cfg(test)]
#[path = "canonical/tests.rs"]
mod tests;
