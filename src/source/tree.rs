//! The positioned YAML tree.
//!
//! Size, depth and number of values are bounded, and every value keeps its place in the file.

use super::codes;
use super::problem::{Problem, Problems, Severity};
use super::read;

/// Largest file in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Most values in one file.
pub const MAX_NODES: usize = 200_000;
/// Deepest nesting of lists and mappings.
pub const MAX_DEPTH: usize = 32;

/// Longest source line that a problem shows, in characters.
const SHOWN_CHARACTERS: usize = 160;

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// 1-based; 0 means the whole file.
    pub line: usize,
    /// 1-based, in characters.
    pub column: usize,
}

/// What a value is, after the core schema of YAML 1.2.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `null`, `~`, or nothing after the colon.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Str(String),
    /// A list.
    Seq(Vec<Node>),
    /// A mapping, in file order, each key once.
    Map(Vec<(Key, Node)>),
    /// Already reported; readers pass over it without a second problem.
    Reported,
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Where it starts.
    pub position: Position,
    /// Whether it is text written in quotes or as a block.
    pub quoted: bool,
    /// A plain scalar as it was written (`1.0` stays `1.0`); empty for lists and mappings.
    pub written: Box<str>,
}

/// A key and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its text.
    pub name: String,
    /// Where it starts.
    pub position: Position,
}

/// A file that an operator wrote, as a tree.
#[derive(Debug, Clone)]
pub struct Document {
    /// The file as it was named to us.
    pub file: String,
    /// The outermost value.
    pub root: Node,
    /// What is wrong with it that did not stop the reading: duplicate keys, ambiguous words,
    /// tags. A [`super::Walker`] starts with these.
    pub problems: Problems,
    text: String,
    /// Byte offset at which each line starts.
    lines: Vec<usize>,
}

impl Document {
    /// Reads one YAML document.
    ///
    /// # Errors
    /// What makes the tree meaningless: syntax, aliases, an empty file, several documents, a
    /// bound exceeded. Lesser problems are in [`Document::problems`].
    pub fn parse(file: &str, text: &str) -> Result<Document, Problems> {
        let mut document = Document {
            file: file.to_owned(),
            root: Node::new(Kind::Null, Position::default()),
            problems: Problems::default(),
            text: String::new(),
            lines: Vec::new(),
        };
        if text.len() > MAX_BYTES {
            let problem = document
                .problem(
                    Position::default(),
                    codes::TOO_LARGE,
                    format!("the file has {} bytes", text.len()),
                )
                .hint(format!(
                    "a file may have {MAX_BYTES} bytes; split it into several"
                ));
            return Err(Problems(vec![problem]));
        }
        document.text = text.to_owned();
        document.lines = line_starts(text);
        match read::tree(&mut document, text) {
            Ok(root) => {
                document.root = root;
                Ok(document)
            }
            Err(problem) => {
                let mut problems = document.problems;
                problems.push(*problem);
                Err(problems)
            }
        }
    }

    /// The text that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// An error at a place in this file, to be refined with [`Problem::at`] and [`Problem::hint`].
    pub fn problem(
        &self,
        position: Position,
        code: &'static str,
        message: impl Into<String>,
    ) -> Problem {
        Problem {
            severity: Severity::Error,
            code,
            message: message.into(),
            file: self.file.clone(),
            line: position.line,
            column: position.column,
            source_line: self.source_line(position.line),
            path: String::new(),
            hint: None,
        }
    }

    /// A line as problems show it: cut, without passwords of URLs, and with a blank for each control character so that the
    /// caret below it stays in place and a terminal is not steered by a file.
    fn source_line(&self, line: usize) -> String {
        let Some(start) = line.checked_sub(1).and_then(|i| self.lines.get(i)) else {
            return String::new();
        };
        let rest = self.text.get(*start..).unwrap_or_default();
        rest.chars()
            .take_while(|c| !matches!(c, '\n' | '\r'))
            .take(SHOWN_CHARACTERS)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect::<String>()
            .split_inclusive("://")
            .enumerate()
            .map(|(i, part)| {
                if i == 0 {
                    part.to_owned()
                } else {
                    mask_userinfo(part)
                }
            })
            .collect()
    }
}

/// Hides what stands before the `@` of a URL, keeping the columns: it may be a password.
fn mask_userinfo(after_scheme: &str) -> String {
    let ends = |c: char| c == '/' || c == '"' || c == '\'' || c.is_whitespace();
    let authority = after_scheme.split(ends).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => {
            let hidden = after_scheme.get(..at).map_or(0, |s| s.chars().count());
            let rest = after_scheme.get(at..).unwrap_or_default();
            format!("{}{rest}", "*".repeat(hidden))
        }
        None => after_scheme.to_owned(),
    }
}

impl Node {
    pub(super) fn new(kind: Kind, position: Position) -> Node {
        Node {
            kind,
            position,
            quoted: false,
            written: Box::default(),
        }
    }

    /// Its type in words, for messages.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Int(_) | Kind::Float(_) => "a number",
            Kind::Str(_) => "text",
            Kind::Seq(_) => "a list",
            Kind::Map(_) => "a mapping",
            Kind::Reported => "a broken value",
        }
    }

    /// The value of `name` in a mapping.
    pub fn get(&self, name: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|(k, _)| k.name == name).map(|(_, v)| v),
            Kind::Null
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Float(_)
            | Kind::Str(_)
            | Kind::Seq(_)
            | Kind::Reported => None,
        }
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut starts = vec![0];
    for (i, byte) in bytes.iter().enumerate() {
        let ends = match byte {
            b'\n' => true,
            // A lone carriage return is a line break too.
            b'\r' => bytes.get(i + 1) != Some(&b'\n'),
            _ => false,
        };
        if ends {
            starts.push(i + 1);
        }
    }
    starts
}

/// Text of the operator as messages show it: cut, without control characters.
pub(crate) fn clip(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut clipped: String = text
        .chars()
        .take(SHOWN)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        clipped.push('…');
    }
    clipped
}

#[cfg(test)]
mod tests;
