//! A card's JSON as a tree of slices: order, number spelling and escapes stay as they were sent.

use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::collections::HashSet;

/// Deepest nesting of objects and arrays.
const MAX_DEPTH: usize = 64;

/// One JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node<'a> {
    Object(Vec<Member<'a>>),
    Array(Vec<Node<'a>>),
    /// The raw literal, quotes included, and what it says.
    Text(&'a str, Cow<'a, str>),
    /// A number, `true`, `false` or `null`, as it stood.
    Scalar(&'a str),
}

/// One member of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Member<'a> {
    /// The raw literal of the name, quotes included.
    raw: &'a str,
    pub(super) name: Cow<'a, str>,
    pub(super) value: Node<'a>,
}

impl Member<'_> {
    /// A flag that is set; `raw` is its name as a JSON string.
    pub(super) fn flag(raw: &'static str) -> Member<'static> {
        Member {
            raw,
            name: raw.trim_matches('"').into(),
            value: Node::Scalar("true"),
        }
    }
}

impl<'a> Node<'a> {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Node::Text(_, text) => Some(text),
            Node::Object(_) | Node::Array(_) | Node::Scalar(_) => None,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Node::Scalar("null"))
    }

    /// Appends the value without insignificant white space.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Node::Object(members) => {
                out.push('{');
                for (position, member) in members.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    member.write(out);
                }
                out.push('}');
            }
            Node::Array(items) => {
                out.push('[');
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Node::Text(raw, _) | Node::Scalar(raw) => out.push_str(raw),
        }
    }
}

impl Member<'_> {
    pub(super) fn write(&self, out: &mut String) {
        out.push_str(self.raw);
        out.push(':');
        self.value.write(out);
    }
}

/// The member called `name`, if its value is not `null`.
pub(super) fn find<'n, 'a>(members: &'n [Member<'a>], name: &str) -> Option<&'n Node<'a>> {
    let member = members.iter().find(|member| member.name == name)?;
    (!member.value.is_null()).then_some(&member.value)
}

/// Why bytes are no usable JSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    NotJson,
    DuplicateMember,
    TooDeep,
}

/// Reads one whole document; members that occur twice are refused at every depth, since two
/// readers may choose differently among them.
pub(super) fn read(bytes: &[u8]) -> Result<Node<'_>, Unreadable> {
    read_within(bytes, MAX_DEPTH)
}

/// The same for a card inside of something.
pub(super) fn read_enclosed(bytes: &[u8]) -> Result<Node<'_>, Unreadable> {
    read_within(bytes, MAX_DEPTH + 1)
}

fn read_within(bytes: &[u8], depth: usize) -> Result<Node<'_>, Unreadable> {
    let text = std::str::from_utf8(bytes).map_err(|_| Unreadable::NotJson)?;
    // The grammar is checked first, iteratively; the splitter below may rely on it.
    serde_json::from_str::<IgnoredAny>(text).map_err(|_| Unreadable::NotJson)?;
    let mut splitter = Splitter { text, at: 0 };
    splitter.value(depth)
}

fn deeper(depth: usize) -> Result<usize, Unreadable> {
    depth.checked_sub(1).ok_or(Unreadable::TooDeep)
}

struct Splitter<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Splitter<'a> {
    /// Reads a value that may be nested `depth` deep.
    fn value(&mut self, depth: usize) -> Result<Node<'a>, Unreadable> {
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => {
                let (raw, text) = self.string()?;
                Ok(Node::Text(raw, text))
            }
            Some(_) => self.scalar(),
            None => Err(Unreadable::NotJson),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Node<'a>, Unreadable> {
        self.at += 1;
        let mut members = Vec::new();
        let mut seen = HashSet::new();
        while self.peek() != Some(b'}') {
            if !members.is_empty() {
                self.expect(b',')?;
            }
            let (raw, name) = self.string()?;
            if !seen.insert(name.clone()) {
                return Err(Unreadable::DuplicateMember);
            }
            self.expect(b':')?;
            let value = self.value(deeper(depth)?)?;
            members.push(Member { raw, name, value });
        }
        self.at += 1;
        Ok(Node::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Node<'a>, Unreadable> {
        self.at += 1;
        let mut items = Vec::new();
        while self.peek() != Some(b']') {
            if !items.is_empty() {
                self.expect(b',')?;
            }
            items.push(self.value(deeper(depth)?)?);
        }
        self.at += 1;
        Ok(Node::Array(items))
    }

    fn string(&mut self) -> Result<(&'a str, Cow<'a, str>), Unreadable> {
        self.expect(b'"')?;
        let start = self.at - 1;
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        loop {
            match bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                Some(_) => self.at += 1,
                None => return Err(Unreadable::NotJson),
            }
        }
        self.at += 1;
        let raw = self.slice(start)?;
        if escaped {
            // Lone surrogates are caught here: the pass over the grammar does not decode.
            let text = serde_json::from_str(raw).map_err(|_| Unreadable::NotJson)?;
            return Ok((raw, Cow::Owned(text)));
        }
        Ok((raw, Cow::Borrowed(&raw[1..raw.len() - 1])))
    }

    fn scalar(&mut self) -> Result<Node<'a>, Unreadable> {
        let start = self.at;
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            if !matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'E' | b'+' | b'-' | b'.') {
                break;
            }
            self.at += 1;
        }
        if self.at == start {
            return Err(Unreadable::NotJson);
        }
        let scalar = self.slice(start)?;
        // A number that no double holds is read in as many ways as there are readers.
        let number = scalar.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        if number && !scalar.parse::<f64>().is_ok_and(f64::is_finite) {
            return Err(Unreadable::NotJson);
        }
        Ok(Node::Scalar(scalar))
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), Unreadable> {
        if self.peek() != Some(byte) {
            return Err(Unreadable::NotJson);
        }
        self.at += 1;
        Ok(())
    }

    fn slice(&self, start: usize) -> Result<&'a str, Unreadable> {
        self.text.get(start..self.at).ok_or(Unreadable::NotJson)
    }
}
