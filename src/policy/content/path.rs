//! Paths to values of a message: JSONPath (RFC 9535), without what could cost or hide too much.

use jsonpath_rust::parser::errors::JsonPathError;
use jsonpath_rust::parser::model::{Segment, Selector};
use jsonpath_rust::parser::parse_json_path;

/// Longest path, in bytes.
const MAX_LENGTH: usize = 256;
/// Most steps of a path.
const MAX_STEPS: usize = 16;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Into the member of an object.
    Name(Box<str>),
    /// Into an item of an array, counted from 0.
    Index(usize),
    /// Into all members or items.
    All,
}

/// What is wrong with a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// In words.
    pub(super) what: String,
    /// What to do about it.
    pub(super) hint: &'static str,
    /// Where in the path, in characters from 0.
    pub(super) at: usize,
}

/// Reads a path.
pub(super) fn parse(text: &str) -> Result<Box<[Step]>, Fault> {
    let fault = |at: usize, what: &str, hint| Fault {
        what: what.to_owned(),
        hint,
        at,
    };
    if text.len() > MAX_LENGTH {
        let what = "the path is longer than 256 bytes";
        return Err(fault(0, what, "name a shorter way to the value"));
    }
    if let Some(at) = unquoted_space(text) {
        return Err(fault(at, "white space in a path", "remove it"));
    }
    let query = parse_json_path(text).map_err(|error| Fault {
        at: position(&error),
        what: "not a JSONPath".to_owned(),
        hint: "write names, indexes and `[*]`: `$.message.parts[*].data.repo`, with other names as `['…']`",
    })?;
    if query.segments.len() > MAX_STEPS {
        let what = "the path has more than 16 steps";
        return Err(fault(0, what, "name a shorter way to the value"));
    }
    let steps = query
        .segments
        .iter()
        .map(step)
        .collect::<Result<Vec<_>, _>>();
    let steps = steps.map_err(|(mark, what, hint)| {
        let at = text.find(mark).unwrap_or(0);
        fault(text.get(..at).map_or(0, |t| t.chars().count()), what, hint)
    })?;
    match steps.first() {
        Some(Step::Name(first)) if TOP.contains(&&**first) => Ok(steps.into()),
        Some(_) | None => Err(fault(
            1,
            "the path leads to nothing that a send has",
            "it begins with `$.message`, `$.configuration`, `$.metadata` or `$.tenant`",
        )),
    }
}

/// The members of a send's parameters.
const TOP: [&str; 4] = ["message", "configuration", "metadata", "tenant"];

/// Which text shows the place, what is wrong, what to do.
type Refused = (&'static str, &'static str, &'static str);

fn step(segment: &Segment) -> Result<Step, Refused> {
    match segment {
        Segment::Descendant(_) => Err((
            "..",
            "`..` looks everywhere",
            "write the way to the value, with `[*]` for all items or members",
        )),
        Segment::Selectors(_) => Err((
            ",",
            "several selectors in one step",
            "write one condition for each, or `[*]`",
        )),
        Segment::Selector(Selector::Wildcard) => Ok(Step::All),
        Segment::Selector(Selector::Name(name)) => Ok(Step::Name(name.as_str().into())),
        Segment::Selector(Selector::Index(index)) => match usize::try_from(*index) {
            Ok(index) => Ok(Step::Index(index)),
            Err(_) => Err((
                "-",
                "an index that counts from the end",
                "count from 0, or write `[*]` for all items",
            )),
        },
        Segment::Selector(Selector::Slice(..)) => Err((
            ":",
            "a slice leaves items out",
            "write `[*]` for all items, or one index",
        )),
        Segment::Selector(Selector::Filter(_)) => Err((
            "?",
            "filters are not read",
            "write the condition as a matcher on the value itself",
        )),
    }
}

/// Where the parser stopped, in characters from 0.
fn position(error: &JsonPathError) -> usize {
    use pest::error::LineColLocation;
    match error {
        JsonPathError::PestError(error) => match error.line_col {
            LineColLocation::Pos((_, column)) | LineColLocation::Span((_, column), _) => {
                column.saturating_sub(1)
            }
        },
        _ => 0,
    }
}

/// White space that is not part of a quoted name, which RFC 9535 allows and nobody sees.
fn unquoted_space(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut chars = text.chars().enumerate();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                chars.next();
            }
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, c) if c.is_whitespace() => return Some(at),
            (Some(_) | None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<String> {
        let steps = parse(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
        let show = |step: &Step| match step {
            Step::Name(name) => name.to_string(),
            Step::Index(index) => format!("#{index}"),
            Step::All => "*".to_owned(),
        };
        steps.iter().map(show).collect()
    }

    #[test]
    fn names_indexes_and_wildcards_are_read() {
        assert_eq!(steps("$.message"), ["message"]);
        assert_eq!(
            steps("$.message.parts[*].data.repo"),
            ["message", "parts", "*", "data", "repo"]
        );
        assert_eq!(steps("$['message']['a.b c'].*"), ["message", "a.b c", "*"]);
        assert_eq!(
            steps("$[\"metadata\"][\"it's\"][0]"),
            ["metadata", "it's", "#0"]
        );
        assert_eq!(steps("$.metadata['\"']"), ["metadata", "\""]);
        assert_eq!(steps("$.metadata[\"'a'\"]"), ["metadata", "'a'"]);
        assert_eq!(
            steps("$.metadata['it\\'s\\u00e9']"),
            ["metadata", "it's\u{e9}"]
        );
        assert_eq!(steps("$.metadata.größe[12]"), ["metadata", "größe", "#12"]);
    }

    #[test]
    fn everything_else_is_refused_at_its_place() {
        for (text, what, at) in [
            ("message", "not a JSONPath", 0),
            ("$message", "not a JSONPath", 1),
            ("$.message.", "not a JSONPath", 10),
            ("$.message.1a", "not a JSONPath", 10),
            ("$.message.pärts[", "not a JSONPath", 16),
            ("", "not a JSONPath", 0),
            ("$", "leads to nothing", 1),
            ("$[*]", "leads to nothing", 1),
            ("$.params.message", "leads to nothing", 1),
            ("$.message..repo", "looks everywhere", 9),
            ("$.message['a','b']", "several selectors", 13),
            ("$.message.parts[-1]", "from the end", 16),
            ("$.message.parts[0:2]", "a slice", 17),
            ("$.message.parts[?@.a]", "filters", 16),
            ("$.message.parts[?match(@.a, 'x')]", "white space", 27),
            ("$.message . parts", "white space", 9),
        ] {
            let fault = parse(text).unwrap_err();
            assert!(fault.what.contains(what), "{text}: {fault:?}");
            assert_eq!(fault.at, at, "{text}: {fault:?}");
        }
        assert!(parse(&format!("$.message{}", ".a".repeat(16))).is_err());
        assert!(parse(&format!("$.message.{}", "a".repeat(300))).is_err());
        assert!(parse(&format!("$.message{}", "[".repeat(200))).is_err());
    }
}
