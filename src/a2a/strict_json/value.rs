//! An owned tree, for tokens and cards.

use super::{Cursor, JsonFault, Kind};
use std::fmt::{self, Write};

/// No tree is deeper than this, whatever the caller asks for: dropping one takes stack per level.
const DEEPEST: usize = 256;

/// A JSON value; members keep their order, names are unique, numbers keep their text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// The number's text as it stood, in JSON's grammar and finite as a double.
    Number(Box<str>),
    /// A string, unescaped.
    String(Box<str>),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Vec<(Box<str>, Value)>),
}

/// The value as JSON, without white space.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Recursion is bounded by the depth of what was read.
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(text) => f.write_str(text),
            Value::String(text) => write!(f, "{}", serde_json::Value::from(&**text)),
            Value::Array(items) => {
                f.write_char('[')?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { "," } else { "" })?;
                }
                f.write_char(']')
            }
            Value::Object(members) => {
                f.write_char('{')?;
                for (i, (name, value)) in members.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{}:{value}", serde_json::Value::from(&**name))?;
                }
                f.write_char('}')
            }
        }
    }
}

impl Value {
    /// The member `name` of an object; `None` for other kinds too.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object()?
            .iter()
            .find(|(key, _)| &**key == name)
            .map(|(_, value)| value)
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The text of the number, if it is one.
    pub fn as_number(&self) -> Option<&str> {
        match self {
            Value::Number(text) => Some(text),
            _ => None,
        }
    }

    /// The items, if it is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The members, if it is an object.
    pub fn as_object(&self) -> Option<&[(Box<str>, Value)]> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }
}

/// A container whose end has not come.
enum Open {
    Array(Vec<Value>),
    Object(Vec<(Box<str>, Value)>, Box<str>),
}

/// Reads exactly one value; `max_depth` is capped at 256.
///
/// # Errors
/// Any [`JsonFault`].
pub fn parse_value(bytes: &[u8], max_depth: usize) -> Result<Value, JsonFault> {
    let mut cursor = Cursor::new(bytes, max_depth.min(DEEPEST))?;
    let mut open: Vec<Open> = Vec::new();
    loop {
        let mut done = match cursor.kind()? {
            Kind::Object => {
                cursor.enter_object()?;
                match cursor.next_key()? {
                    Some(key) => {
                        open.push(Open::Object(Vec::new(), key.into()));
                        continue;
                    }
                    None => Value::Object(Vec::new()),
                }
            }
            Kind::Array => {
                cursor.enter_array()?;
                if cursor.next_item()? {
                    open.push(Open::Array(Vec::new()));
                    continue;
                }
                Value::Array(Vec::new())
            }
            Kind::String => Value::String(cursor.string()?.into()),
            Kind::Number => Value::Number(cursor.number()?.into()),
            Kind::Bool => Value::Bool(cursor.boolean()?),
            Kind::Null => {
                cursor.null()?;
                Value::Null
            }
        };
        // Hand the finished value to its container, and close every container that ends with it.
        loop {
            match open.pop() {
                None => {
                    cursor.finish()?;
                    return Ok(done);
                }
                Some(Open::Array(mut items)) => {
                    items.push(done);
                    if cursor.next_item()? {
                        open.push(Open::Array(items));
                        break;
                    }
                    done = Value::Array(items);
                }
                Some(Open::Object(mut members, key)) => {
                    members.push((key, done));
                    if let Some(key) = cursor.next_key()? {
                        open.push(Open::Object(members, key.into()));
                        break;
                    }
                    done = Value::Object(members);
                }
            }
        }
    }
}
