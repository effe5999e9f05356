//! What else could stand under a claim.

use crate::a2a::strict_json::Value as Json;
use crate::policy::decide::Needed;

/// What kind of change a mutant is, which says what can show that it is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Another value of the same type. A test that shows just this one allowed says that it is meant.
    Value,
    /// Another value under a matcher that takes more than a list of them. Tests that show several
    /// allowed say that what is like them is meant.
    Open,
    /// Nothing, null, another type, or empty.
    Shape,
    /// The test states a claim that no rule asked for.
    Needless,
    /// Another agent, skill, issuer, operation or grant. A test that shows it allowed says that it is
    /// meant.
    Call,
    /// A skill that is none.
    Unknown,
}

/// A change of one value.
pub(super) struct Change {
    pub(super) how: String,
    pub(super) sort: Sort,
    /// `None`: left out.
    pub(super) value: Option<Json>,
}

impl Change {
    pub(super) fn new(how: impl Into<String>, sort: Sort, value: Option<Json>) -> Change {
        Change {
            how: how.into(),
            sort,
            value,
        }
    }
}

/// Every change of a value. `shown` are the least and the greatest number that tests show allowed.
pub(super) fn changes(value: &Json, needed: &Needed, shown: Option<(f64, f64)>) -> Vec<Change> {
    let sort = if needed.open { Sort::Open } else { Sort::Value };
    let mut all = vec![
        Change::new("left out", Sort::Shape, None),
        Change::new("null", Sort::Shape, Some(Json::Null)),
        Change::new(
            "in a list",
            Sort::Shape,
            Some(Json::Array(vec![value.clone()])),
        ),
        Change::new("of another type", Sort::Shape, Some(retyped(value))),
    ];
    let mut add = |how: String, sort, value| all.push(Change::new(how, sort, Some(value)));
    let text = |text: &str| Json::String(text.into());
    match value {
        Json::String(old) => {
            add("empty".to_owned(), Sort::Shape, text(""));
            for (how, new) in texts(old) {
                add(how, sort, text(&new));
            }
            let others = needed.listed.iter().filter(|other| **other != *old);
            for other in others {
                add(format!("`{other}`"), Sort::Value, text(other));
            }
        }
        Json::Array(items) => {
            add("empty".to_owned(), Sort::Shape, Json::Array(Vec::new()));
            for (i, item) in items.iter().enumerate() {
                let Json::String(old) = item else { continue };
                let with = |new: Option<Json>| {
                    let mut items = items.clone();
                    match (new, items.get_mut(i)) {
                        (Some(new), Some(place)) => *place = new,
                        (_, _) => drop(items.remove(i)),
                    }
                    Json::Array(items)
                };
                if items.len() > 1 {
                    add(format!("without `{old}`"), sort, with(None));
                }
                for (how, new) in texts(old) {
                    add(format!("`{old}` {how}"), sort, with(Some(text(&new))));
                }
                let others = needed.listed.iter().filter(|other| **other != *old);
                for other in others {
                    let how = format!("`{other}` for `{old}`");
                    add(how, Sort::Value, with(Some(text(other))));
                }
            }
        }
        Json::Number(old) => {
            let old: Option<f64> = old.parse().ok();
            let (least, greatest) = match (shown, old) {
                (Some((least, greatest)), Some(old)) => (least.min(old), greatest.max(old)),
                (_, Some(old)) => (old, old),
                (_, None) => return all,
            };
            for (new, open) in [(least - 1.0, needed.below), (greatest + 1.0, needed.above)] {
                let sort = if open { Sort::Open } else { Sort::Value };
                let number = serde_json::Number::from_f64(new).map(|n| n.to_string());
                if let Some(number) = number {
                    let shown = number.strip_suffix(".0").unwrap_or(&number).to_owned();
                    add(shown, sort, Json::Number(number.into()));
                }
            }
        }
        Json::Bool(old) => add((!old).to_string(), sort, Json::Bool(!old)),
        Json::Null | Json::Object(_) => {}
    }
    all
}

/// A value of another type that a careless reader might take for the same.
fn retyped(value: &Json) -> Json {
    match value {
        Json::String(text) => Json::Object(vec![("value".into(), Json::String(text.clone()))]),
        Json::Array(items) => {
            let words: Vec<&str> = items.iter().filter_map(Json::as_str).collect();
            Json::String(words.join(" ").into())
        }
        Json::Number(text) => Json::String(text.clone()),
        Json::Bool(value) => Json::String(value.to_string().into()),
        Json::Null => Json::String("null".into()),
        Json::Object(_) => Json::Bool(true),
    }
}

/// Texts that look like another.
fn texts(old: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let cased: String = old
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() {
                c.to_ascii_uppercase()
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect();
    if cased != old {
        all.push(("in another case".to_owned(), cased));
    }
    if let Some(alike) = alike(old) {
        all.push(("with a look-alike letter".to_owned(), alike));
    }
    all.push(("with more behind it".to_owned(), format!("{old}x")));
    all.push(("with more before it".to_owned(), format!("x{old}")));
    all
}

/// The text with its first letter that has one replaced by its Cyrillic look-alike.
fn alike(text: &str) -> Option<String> {
    const ALIKE: [(char, char); 8] = [
        ('a', '\u{430}'),
        ('c', '\u{441}'),
        ('e', '\u{435}'),
        ('i', '\u{456}'),
        ('o', '\u{43e}'),
        ('p', '\u{440}'),
        ('s', '\u{455}'),
        ('x', '\u{445}'),
    ];
    let (at, old, new) = text.char_indices().find_map(|(at, c)| {
        let (old, new) = ALIKE.into_iter().find(|(old, _)| *old == c)?;
        Some((at, old, new))
    })?;
    let (before, after) = (text.get(..at)?, text.get(at + old.len_utf8()..)?);
    Some(format!("{before}{new}{after}"))
}

/// What stands under a name of an object, or at a position of a list.
pub(super) fn inner<'v>(value: &'v mut Json, name: &str) -> Option<&'v mut Json> {
    match value {
        Json::Object(members) => {
            let found = members.iter_mut().find(|(n, _)| **n == *name);
            found.map(|(_, value)| value)
        }
        Json::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
    }
}

/// Takes out what stands at a path.
pub(super) fn taken_out(payload: &mut Json, path: &[Box<str>]) {
    let Some((last, way)) = path.split_last() else {
        return;
    };
    let mut at = payload;
    for name in way {
        match inner(at, name) {
            Some(next) => at = next,
            None => return,
        }
    }
    match at {
        Json::Object(members) => members.retain(|(name, _)| name != last),
        Json::Array(items) => {
            if let Some(position) = last.parse().ok().filter(|p: &usize| *p < items.len()) {
                items.remove(position);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// Paths of the plain values in a message, but for those by which a call is told from others.
pub(super) fn leaves(message: &Json) -> Vec<Vec<Box<str>>> {
    const NAMES: [&str; 3] = ["messageId", "role", "kind"];
    let mut found = Vec::new();
    let mut open: Vec<(Vec<Box<str>>, &Json)> = vec![(Vec::new(), message)];
    while let Some((path, value)) = open.pop() {
        let under = |name: &str| {
            let mut path = path.clone();
            path.push(name.into());
            path
        };
        match value {
            Json::Object(members) => {
                let members = members.iter().rev();
                let others =
                    members.filter(|(name, _)| !path.is_empty() || !NAMES.contains(&&**name));
                open.extend(others.map(|(name, value)| (under(name), value)));
            }
            Json::Array(items) => {
                let items = items.iter().enumerate().rev();
                open.extend(items.map(|(i, value)| (under(&i.to_string()), value)));
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => found.push(path),
        }
    }
    found
}
