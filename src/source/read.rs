//! From the events of `saphyr-parser` to the tree, without recursion.

use super::codes;
use super::problem::Problem;
use super::tree::{Document, Key, Kind, MAX_DEPTH, MAX_NODES, Node, Position, clip};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Reads `text` into a tree. Problems that do not stop the reading are added to `document`.
pub(super) fn tree(document: &mut Document, text: &str) -> Result<Node, Box<Problem>> {
    Builder::default().run(document, text)
}

fn place(marker: &Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// A list or mapping that is still open.
enum Frame {
    Seq {
        items: Vec<Node>,
        position: Position,
    },
    Map {
        entries: Vec<(Key, Node)>,
        /// The line in which each key stands.
        names: HashMap<String, usize>,
        key: Option<Key>,
        position: Position,
    },
}

#[derive(Default)]
struct Builder {
    stack: Vec<Frame>,
    root: Option<Node>,
    nodes: usize,
    documents: usize,
}

impl Builder {
    fn run(mut self, document: &mut Document, text: &str) -> Result<Node, Box<Problem>> {
        self.events(text, document)?;
        match self.root {
            Some(root) if root.kind != Kind::Null => Ok(root),
            Some(_) | None => Err(document
                .problem(Position::default(), codes::EMPTY, "the file is empty")
                .hint("an empty file never replaces a working one; write at least `version: 1`")
                .into()),
        }
    }

    fn events(&mut self, text: &str, document: &mut Document) -> Result<(), Box<Problem>> {
        let mut parser = Parser::new_from_str(text);
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|e| -> Box<Problem> {
                document
                    .problem(
                        place(e.marker()),
                        codes::SYNTAX,
                        format!("not valid YAML: {}", lower_first(e.info())),
                    )
                    .hint("look at the indentation, brackets and quotes here and just above")
                    .into()
            })?;
            let position = place(&span.start);
            match event {
                Event::StreamEnd => break,
                Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(_) => {
                    self.documents += 1;
                    if self.documents > 1 {
                        return Err(document
                            .problem(
                                position,
                                codes::MANY_DOCUMENTS,
                                "a second YAML document begins here",
                            )
                            .hint("write one document per file; remove the `---`")
                            .into());
                    }
                }
                Event::Alias(_) => {
                    return Err(document
                        .problem(position, codes::ANCHOR, "aliases are not read")
                        .hint("write the value out where it is needed")
                        .into());
                }
                Event::Scalar(value, style, anchor, tag) => {
                    self.marks(document, position, anchor, tag.is_some());
                    self.count(document, position)?;
                    self.scalar(document, &value, style, position)?;
                }
                Event::SequenceStart(anchor, tag) => {
                    self.marks(document, position, anchor, tag.is_some());
                    self.open(document, position)?;
                    self.stack.push(Frame::Seq {
                        items: Vec::new(),
                        position,
                    });
                }
                Event::MappingStart(anchor, tag) => {
                    self.marks(document, position, anchor, tag.is_some());
                    self.open(document, position)?;
                    self.stack.push(Frame::Map {
                        entries: Vec::new(),
                        names: HashMap::new(),
                        key: None,
                        position,
                    });
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    let node = match self.stack.pop() {
                        Some(Frame::Seq { items, position }) => {
                            Node::new(Kind::Seq(items), position)
                        }
                        Some(Frame::Map {
                            entries, position, ..
                        }) => Node::new(Kind::Map(entries), position),
                        None => continue,
                    };
                    self.place_value(document, node);
                }
            }
        }
        Ok(())
    }

    /// Reports what decorates a value and is not read.
    fn marks(&self, document: &mut Document, position: Position, anchor: usize, tag: bool) {
        if anchor != 0 {
            let problem = document
                .problem(position, codes::ANCHOR, "anchors are not read")
                .hint("write the value out where it is needed");
            document.problems.push(problem);
        }
        if tag {
            let problem = document
                .problem(position, codes::TAG, "YAML tags are not read")
                .hint("remove the `!…`; put text that looks like a number in quotes");
            document.problems.push(problem);
        }
    }

    fn count(&mut self, document: &Document, position: Position) -> Result<(), Box<Problem>> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(document
                .problem(
                    position,
                    codes::TOO_LARGE,
                    format!("more than {MAX_NODES} values"),
                )
                .hint("split the file into several")
                .into());
        }
        Ok(())
    }

    fn open(&mut self, document: &Document, position: Position) -> Result<(), Box<Problem>> {
        self.count(document, position)?;
        if self.stack.len() >= MAX_DEPTH {
            return Err(document
                .problem(
                    position,
                    codes::TOO_LARGE,
                    format!("nested deeper than {MAX_DEPTH} levels"),
                )
                .into());
        }
        match self.stack.last() {
            Some(Frame::Map { key: None, .. }) => Err(key_not_text(document, position).into()),
            Some(_) | None => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        document: &mut Document,
        value: &str,
        style: ScalarStyle,
        position: Position,
    ) -> Result<(), Box<Problem>> {
        let plain = style == ScalarStyle::Plain;
        if let Some(Frame::Map {
            key: key @ None, ..
        }) = self.stack.last_mut()
        {
            if plain && value == "<<" {
                let problem = document
                    .problem(position, codes::ANCHOR, "merge keys are not read")
                    .hint("write the fields out where they are needed");
                document.problems.push(problem);
            }
            if plain && value.is_empty() {
                return Err(key_not_text(document, position).into());
            }
            *key = Some(Key {
                name: value.to_owned(),
                position,
            });
            return Ok(());
        }
        let mut node = Node::new(Kind::Null, position);
        node.quoted = !plain;
        node.written = value.into();
        node.kind = if !plain {
            Kind::Str(value.to_owned())
        } else if is_ambiguous(value) {
            let problem = document
                .problem(
                    position,
                    codes::AMBIGUOUS_WORD,
                    format!(
                        "unquoted `{value}` is text to some YAML readers and a boolean to others"
                    ),
                )
                .hint(format!(
                    "write `true` or `false`, or `\"{value}\"` for the text"
                ));
            document.problems.push(problem);
            Kind::Reported
        } else {
            resolve(value)
        };
        self.place_value(document, node);
        Ok(())
    }

    /// Puts a finished value where it belongs.
    fn place_value(&mut self, document: &mut Document, mut node: Node) {
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(Frame::Seq { items, .. }) => items.push(node),
            Some(Frame::Map {
                entries,
                names,
                key,
                ..
            }) => {
                let Some(key) = key.take() else { return };
                // An absent value is reported by the scanner wherever the next token stands.
                if node.kind == Kind::Null && node.written.is_empty() {
                    node.position = key.position;
                }
                match names.entry(key.name.clone()) {
                    Entry::Vacant(free) => {
                        free.insert(key.position.line);
                        entries.push((key, node));
                    }
                    Entry::Occupied(taken) => {
                        let line = taken.get();
                        let problem = document
                            .problem(
                                key.position,
                                codes::DUPLICATE_KEY,
                                format!("`{}` stands here a second time", clip(&key.name)),
                            )
                            .hint(format!(
                                "it was first given in line {line}; keep one of them"
                            ));
                        document.problems.push(problem);
                    }
                }
            }
        }
    }
}

fn key_not_text(document: &Document, position: Position) -> Problem {
    document
        .problem(position, codes::KEY_NOT_TEXT, "a key must be text")
        .hint("write `name: value`; put text with special characters in quotes")
}

/// Words that YAML 1.1 readers take for booleans.
fn is_ambiguous(value: &str) -> bool {
    ["yes", "no", "on", "off"]
        .iter()
        .any(|w| w.eq_ignore_ascii_case(value))
}

/// The core schema of YAML 1.2.2, section 10.3.2.
fn resolve(value: &str) -> Kind {
    match value {
        "" | "~" | "null" | "Null" | "NULL" => return Kind::Null,
        "true" | "True" | "TRUE" => return Kind::Bool(true),
        "false" | "False" | "FALSE" => return Kind::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Kind::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Kind::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Kind::Float(f64::NEG_INFINITY),
        _ => {}
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = value.strip_prefix(prefix)
            && digits.bytes().all(|b| char::from(b).is_digit(radix))
            && let Ok(number) = i64::from_str_radix(digits, radix)
        {
            return Kind::Int(number);
        }
    }
    let unsigned = value.strip_prefix(['+', '-']).unwrap_or(value);
    let looks_numeric = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.contains(|c: char| c.is_ascii_digit())
        && unsigned
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    if !looks_numeric {
        return Kind::Str(value.to_owned());
    }
    if let Ok(number) = value.parse::<i64>() {
        return Kind::Int(number);
    }
    match value.parse::<f64>() {
        Ok(number) => Kind::Float(number),
        Err(_) => Kind::Str(value.to_owned()),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
