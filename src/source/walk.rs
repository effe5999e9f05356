//! Walking the tree with typed readers that collect every problem.
//!
//! A reader returns `None` after it reported a problem, so a caller goes on with what it has and
//! the operator sees all problems at once. [`Value::fields`] checks a mapping against its table:
//! unknown, missing and not-yet-built fields are reported there, before any value is read.

use super::codes;
use super::problem::{Problem, Problems};
use super::quantity::{parse_duration, parse_size, show_duration, show_size, suggest};
use super::shape::Fields;
use super::tree::{Document, Key, Kind, Node, clip};
use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Stands for a line that is not shown.
const HIDDEN: &str = "(this line is not shown, since it may hold a secret)";

/// Collects the problems of one document.
#[derive(Debug)]
pub struct Walker<'d> {
    document: &'d Document,
    problems: RefCell<Problems>,
    hidden: RefCell<HashSet<usize>>,
}

/// A value with its path, ready to be read as some type.
#[derive(Debug, Clone)]
pub struct Value<'w, 'd> {
    walker: &'w Walker<'d>,
    /// The value.
    pub node: &'d Node,
    path: String,
}

/// A mapping whose keys were checked against its table.
#[derive(Debug)]
pub struct Mapping<'w, 'd> {
    value: Value<'w, 'd>,
    table: &'static Fields,
}

impl<'d> Walker<'d> {
    /// Starts with the problems that the document already has.
    pub fn new(document: &'d Document) -> Walker<'d> {
        Walker {
            document,
            problems: RefCell::new(document.problems.clone()),
            hidden: RefCell::default(),
        }
    }

    /// The outermost value.
    pub fn root(&self) -> Value<'_, 'd> {
        Value {
            walker: self,
            node: &self.document.root,
            path: String::new(),
        }
    }

    /// Adds a problem.
    pub fn report(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    /// All problems, in file order.
    pub fn into_problems(self) -> Problems {
        let mut problems = self.problems.into_inner();
        let hidden = self.hidden.into_inner();
        for problem in problems.0.iter_mut().filter(|p| hidden.contains(&p.line)) {
            HIDDEN.clone_into(&mut problem.source_line);
        }
        // Stable, so that problems of one place stay in the order in which they were found.
        problems.0.sort_by_key(|p| (p.line, p.column));
        problems
    }
}

impl<'w, 'd> Value<'w, 'd> {
    /// Its YAML path, such as `agents[0].route.path`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reports an error here.
    pub fn error(&self, code: &'static str, message: impl Into<String>, hint: impl Into<String>) {
        self.walker.report(self.problem(code, message, hint));
    }

    /// Reports a warning here.
    pub fn warn(&self, code: &'static str, message: impl Into<String>, hint: impl Into<String>) {
        self.walker
            .report(self.problem(code, message, hint).warning());
    }

    /// No problem shows the line of this value: it holds what must not be shown.
    pub fn hide_line(&self) {
        self.walker
            .hidden
            .borrow_mut()
            .insert(self.node.position.line);
    }

    /// An error about this value, not reported yet.
    pub fn problem(
        &self,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Problem {
        self.walker
            .document
            .problem(self.node.position, code, message)
            .at(self.path.clone())
            .hint(hint)
    }

    /// Reports that the value has another type than `wanted` (`text`, `a list`, …).
    pub fn wrong_type(&self, wanted: &str) {
        if self.node.kind == Kind::Reported {
            return;
        }
        let found = match self.node.kind {
            Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => {
                format!("{} (`{}`)", self.node.type_name(), clip(&self.node.written))
            }
            Kind::Null | Kind::Str(_) | Kind::Seq(_) | Kind::Map(_) | Kind::Reported => {
                self.node.type_name().to_owned()
            }
        };
        let hint = match self.node.kind {
            Kind::Null => "give it a value, or remove the line".to_owned(),
            Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) if wanted == "text" => {
                format!("put it in quotes: `\"{}\"`", clip(&self.node.written))
            }
            Kind::Str(_) if self.node.quoted => {
                "remove the quotes, or see the schema for what stands here".to_owned()
            }
            _ => format!("write {wanted} here"),
        };
        self.error(
            codes::WRONG_TYPE,
            format!("expected {wanted}, found {found}"),
            hint,
        );
    }

    /// Text that is not empty.
    pub fn text(&self) -> Option<&'d str> {
        self.text_as("text")
    }

    fn text_as(&self, wanted: &str) -> Option<&'d str> {
        let Kind::Str(text) = &self.node.kind else {
            self.wrong_type(wanted);
            return None;
        };
        if text.is_empty() {
            self.error(
                codes::EMPTY_VALUE,
                "the text is empty",
                "give it a value, or remove the line",
            );
            return None;
        }
        Some(text)
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Option<bool> {
        match self.node.kind {
            Kind::Bool(value) => Some(value),
            _ => {
                self.wrong_type("`true` or `false`");
                None
            }
        }
    }

    /// `on` or `off`, or the same as a boolean. Unquoted they are text to some YAML readers and a
    /// boolean to others, but here both say the same, so they are no problem.
    pub fn switch(&self) -> Option<bool> {
        let on = match (&self.node.kind, &*self.node.written) {
            (Kind::Reported, word @ ("on" | "off")) => {
                let here = self.node.position;
                self.walker.problems.borrow_mut().0.retain(|p| {
                    p.code != codes::AMBIGUOUS_WORD
                        || (p.line, p.column) != (here.line, here.column)
                });
                word == "on"
            }
            (Kind::Str(_), _) => return self.word(&[("on", true), ("off", false)]),
            _ => return self.boolean(),
        };
        Some(on)
    }

    /// A whole number in `range`.
    pub fn integer(&self, range: RangeInclusive<i64>) -> Option<i64> {
        let Kind::Int(value) = self.node.kind else {
            self.wrong_type("a whole number");
            return None;
        };
        if range.contains(&value) {
            return Some(value);
        }
        self.error(
            codes::OUT_OF_RANGE,
            format!("`{value}` is out of range"),
            format!("give a number from {} to {}", range.start(), range.end()),
        );
        None
    }

    /// A duration such as `500ms`, `15m` or `30d`, in `range`.
    pub fn duration(&self, range: RangeInclusive<Duration>) -> Option<Duration> {
        let text = self.text_as("a duration such as `15m`")?;
        let Some(value) = parse_duration(text) else {
            self.error(
                codes::BAD_DURATION,
                format!("`{}` is not a duration", clip(text)),
                "write a whole number and a unit, ms, s, m, h or d: `15m`",
            );
            return None;
        };
        if range.contains(&value) {
            return Some(value);
        }
        self.error(
            codes::OUT_OF_RANGE,
            format!("`{text}` is out of range"),
            format!(
                "give a duration from {} to {}",
                show_duration(*range.start()),
                show_duration(*range.end())
            ),
        );
        None
    }

    /// A size such as `10MiB`, in bytes, in `range`.
    pub fn size(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let text = self.text_as("a size such as `10MiB`")?;
        let Some(value) = parse_size(text) else {
            self.error(
                codes::BAD_SIZE,
                format!("`{}` is not a size", clip(text)),
                "write a whole number and a unit, B, KiB, MiB, GiB or TiB: `10MiB`",
            );
            return None;
        };
        if range.contains(&value) {
            return Some(value);
        }
        self.error(
            codes::OUT_OF_RANGE,
            format!("`{text}` is out of range"),
            format!(
                "give a size from {} to {}",
                show_size(*range.start()),
                show_size(*range.end())
            ),
        );
        None
    }

    /// One of a closed set of words.
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let text = self.text()?;
        if let Some((_, value)) = words.iter().find(|(w, _)| *w == text) {
            return Some(*value);
        }
        let allowed: Vec<String> = words.iter().map(|(w, _)| format!("`{w}`")).collect();
        let hint = match suggest(text, words.iter().map(|(w, _)| *w)) {
            Some(near) => format!("did you mean `{near}`? Allowed: {}", allowed.join(", ")),
            None => format!("allowed: {}", allowed.join(", ")),
        };
        self.error(
            codes::NOT_ALLOWED,
            format!("`{}` is not allowed here", clip(text)),
            hint,
        );
        None
    }

    /// The elements of a list that is not empty.
    pub fn list(&self) -> Option<Vec<Value<'w, 'd>>> {
        let Kind::Seq(items) = &self.node.kind else {
            self.wrong_type("a list");
            return None;
        };
        if items.is_empty() {
            self.error(
                codes::EMPTY_VALUE,
                "the list is empty",
                "name at least one element, or remove the line",
            );
            return None;
        }
        let element = |(i, node)| Value {
            walker: self.walker,
            node,
            path: format!("{}[{i}]", self.path),
        };
        Some(items.iter().enumerate().map(element).collect())
    }

    /// A list of different texts, each with its place. Elements with problems are left out.
    pub fn texts(&self) -> Option<Vec<(Value<'w, 'd>, &'d str)>> {
        let mut seen = HashSet::new();
        let mut texts = Vec::new();
        for value in self.list()? {
            let Some(text) = value.text() else { continue };
            if seen.insert(text) {
                texts.push((value, text));
            } else {
                value.error(
                    codes::DUPLICATE_VALUE,
                    format!("`{}` stands here a second time", clip(text)),
                    "remove one of them",
                );
            }
        }
        Some(texts)
    }

    /// The entries of a mapping whose names the operator chooses.
    pub fn entries(&self) -> Option<Vec<(&'d Key, Value<'w, 'd>)>> {
        let Kind::Map(entries) = &self.node.kind else {
            self.wrong_type("a mapping");
            return None;
        };
        if entries.is_empty() {
            self.error(
                codes::EMPTY_VALUE,
                "the mapping is empty",
                "name at least one entry, or remove the line",
            );
            return None;
        }
        let child = |(key, node): &'d (Key, Node)| (key, self.child(&key.name, node));
        Some(entries.iter().map(child).collect())
    }

    /// A mapping checked against its table: every key is declared, every required one is there.
    pub fn fields(&self, table: &'static Fields) -> Option<Mapping<'w, 'd>> {
        let Kind::Map(entries) = &self.node.kind else {
            self.wrong_type("a mapping");
            return None;
        };
        for (key, _) in entries {
            if table.get(&key.name).is_none() {
                self.walker.report(self.undeclared(key, table));
            }
        }
        // Where the only field has a future alternative, that one is the problem to solve.
        let replaced = table.fields.len() == 1
            && entries
                .iter()
                .any(|(k, _)| table.later.iter().any(|(name, _)| *name == k.name));
        for field in table.fields.iter().filter(|f| f.required && !replaced) {
            if !entries.iter().any(|(k, _)| k.name == field.name) {
                self.error(
                    codes::MISSING_FIELD,
                    format!("`{}` is missing", field.name),
                    format!("add it: {}", field.doc),
                );
            }
        }
        Some(Mapping {
            value: self.clone(),
            table,
        })
    }

    /// Shows every text in this value, at any depth, to `look`.
    pub fn each_text(&self, look: &mut impl FnMut(&Value<'w, 'd>, &'d str)) {
        // Recursion is bounded by the depth of the tree.
        match &self.node.kind {
            Kind::Str(text) => look(self, text),
            Kind::Seq(items) => {
                for (i, node) in items.iter().enumerate() {
                    let path = format!("{}[{i}]", self.path);
                    let walker = self.walker;
                    Value { walker, node, path }.each_text(look);
                }
            }
            Kind::Map(entries) => {
                for (key, node) in entries {
                    self.child(&key.name, node).each_text(look);
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Reported => {}
        }
    }

    fn undeclared(&self, key: &Key, table: &Fields) -> Problem {
        let name = key.name.as_str();
        if let Some((name, hint)) = table.later.iter().find(|(n, _)| *n == name) {
            return self
                .walker
                .document
                .problem(
                    key.position,
                    codes::NOT_AVAILABLE,
                    format!("`{name}` is not available in this version"),
                )
                .at(self.path.clone())
                .hint(*hint);
        }
        let names = || table.fields.iter().map(|f| f.name);
        let hint = match suggest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "{} has: {}",
                table.title,
                names().collect::<Vec<_>>().join(", ")
            ),
        };
        self.walker
            .document
            .problem(
                key.position,
                codes::UNKNOWN_FIELD,
                format!("unknown field `{}`", clip(name)),
            )
            .at(self.path.clone())
            .hint(hint)
    }

    fn child(&self, name: &str, node: &'d Node) -> Value<'w, 'd> {
        let plain = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let path = match (self.path.is_empty(), plain) {
            (true, true) => name.to_owned(),
            (false, true) => format!("{}.{name}", self.path),
            (_, false) => format!("{}[\"{}\"]", self.path, clip(name)),
        };
        Value {
            walker: self.walker,
            node,
            path,
        }
    }
}

impl<'w, 'd> Mapping<'w, 'd> {
    /// The value of a declared field, if it is there. A required field that is absent was already
    /// reported.
    pub fn get(&self, name: &str) -> Option<Value<'w, 'd>> {
        debug_assert!(
            self.table.get(name).is_some(),
            "{} does not declare {name}",
            self.table.title
        );
        let node = self.value.node.get(name)?;
        Some(self.value.child(name, node))
    }

    /// Whether the field is there.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The mapping itself, to report a problem that concerns it as a whole.
    pub fn whole(&self) -> &Value<'w, 'd> {
        &self.value
    }
}

#[cfg(test)]
mod tests;
