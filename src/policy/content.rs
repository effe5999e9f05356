//! Conditions on what a message says, three-valued.
//!
//! They look at [`Content`], not at the token, so they are evaluated for every call whose claims
//! leave it open. What is not there, or not clear, is unknown, and no caller makes it less so by
//! saying more (I-3).

mod path;
mod read;

pub(super) use read::{check_scope, each};

use super::condition::{Found, Matcher, Tri, Why};
use crate::a2a::content::{Content, Unreadable, is_near};
use path::Step;
use serde_json::Value;
use std::sync::Arc;

/// What the conditions of a question look at.
#[derive(Clone, Copy)]
pub(super) enum Seen<'a> {
    /// The call has no message.
    Nothing,
    /// This.
    Content(&'a Content<'a>),
    /// Every message that there could be: what is asked is whether one of them would do.
    Any,
}

/// One matcher on the values at one path.
#[derive(Debug, PartialEq)]
pub(super) struct ContentTest {
    /// As the policy writes it.
    pub(super) path: Arc<str>,
    steps: Box<[Step]>,
    quantifier: Quantifier,
    matcher: Matcher,
    /// `if_missing: no_match`: false, not unknown, without a value.
    missing_is_false: bool,
}

/// Which of the values at a path must fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantifier {
    /// There is one, and it fits. Several are not clear: which one counts is up to the agent.
    One,
    /// There is at least one, and all fit.
    Each,
    /// At least one fits.
    Some,
}

/// All tests together: false beats unknown, unknown beats true.
pub(super) fn evaluate(tests: &[ContentTest], seen: Seen<'_>) -> Tri {
    let mut all = Tri::True;
    for test in tests {
        match test.of(seen).0 {
            Tri::False => return Tri::False,
            Tri::Unknown => all = Tri::Unknown,
            Tri::True => {}
        }
    }
    all
}

/// Every test, what it comes to, and why that is if it is not true.
pub(super) fn results<'t>(
    tests: &'t [ContentTest],
    seen: Seen<'t>,
) -> impl Iterator<Item = (&'t ContentTest, Tri, Why)> {
    tests.iter().map(move |test| {
        let (tri, why) = test.of(seen);
        (test, tri, why)
    })
}

/// The tests that are not true, and why.
pub(super) fn failing<'t>(
    tests: &'t [ContentTest],
    seen: Seen<'t>,
) -> impl Iterator<Item = (&'t ContentTest, Why)> {
    let open = |(test, tri, why)| (tri != Tri::True).then_some((test, why));
    results(tests, seen).filter_map(open)
}

impl ContentTest {
    /// What it asks of the values at its path, as a policy writes it.
    pub(super) fn asks(&self) -> String {
        let quantifier = match self.quantifier {
            Quantifier::One => "one",
            Quantifier::Each => "each",
            Quantifier::Some => "some",
        };
        format!("{quantifier} {}", self.matcher.told())
    }

    /// How it comes out for a call, and why it is not true.
    fn of(&self, seen: Seen<'_>) -> (Tri, Why) {
        let content = match seen {
            Seen::Any => return (Tri::True, Why::ValueDiffers),
            Seen::Nothing => return self.without_value(),
            Seen::Content(content) => content,
        };
        let value = match content.value() {
            Ok(value) => value,
            Err(Unreadable::Oversize) => return (Tri::Unknown, Why::Oversize),
            Err(Unreadable::Ambiguous) => return (Tri::Unknown, Why::Ambiguous),
        };
        let mut sum = Sum::default();
        let mut add = |node: &Value| self.add(node, &mut sum);
        match walk(value, &self.steps, content, &mut add) {
            Ok(()) => self.concluded(&sum),
            Err(why) => (Tri::Unknown, why),
        }
    }

    fn add(&self, node: &Value, sum: &mut Sum) {
        sum.nodes += 1;
        sum.there |= !node.is_null();
        match self.compare(node) {
            Ok(true) => sum.fitting += 1,
            Ok(false) => sum.differing += 1,
            Err(why) => {
                sum.unclear.get_or_insert(why);
            }
        }
    }

    /// Nothing is converted; a value must be of the type that the matcher is for.
    fn compare(&self, node: &Value) -> Result<bool, Why> {
        let texts: Vec<Box<str>>;
        let found = match (node, &self.matcher) {
            (Value::Null, _) => return Err(Why::Null),
            (Value::String(text), _) => Found::Text(text),
            (Value::Bool(boolean), _) => Found::Boolean(*boolean),
            (Value::Number(number), _) => match number.as_f64() {
                // Beyond this, different numbers would be equal here.
                Some(number) if number.abs() <= super::matchers::EXACT => Found::Number(number),
                Some(_) | None => return Err(Why::WrongType),
            },
            (Value::Array(items), Matcher::AllOf(_) | Matcher::Contains(_)) => {
                let all = items.iter().map(|item| item.as_str().map(Box::from));
                texts = all.collect::<Option<_>>().ok_or(Why::WrongType)?;
                Found::Texts(&texts)
            }
            (Value::Array(_) | Value::Object(_), _) => return Err(Why::WrongType),
        };
        self.matcher.compare(found).ok_or(Why::WrongType)
    }

    fn concluded(&self, sum: &Sum) -> (Tri, Why) {
        let differs = (Tri::False, Why::ValueDiffers);
        let fits = (Tri::True, Why::ValueDiffers);
        if let Matcher::Exists(wanted) = self.matcher {
            let why = match (sum.nodes, sum.there) {
                (0, _) => Why::Missing,
                (_, false) => Why::Null,
                (_, true) => Why::ValueDiffers,
            };
            return (Tri::from(sum.there == wanted), why);
        }
        let unclear = sum.unclear.map(|why| (Tri::Unknown, why));
        match self.quantifier {
            _ if sum.nodes == 0 => self.without_value(),
            Quantifier::One if sum.nodes > 1 => (Tri::Unknown, Why::Ambiguous),
            Quantifier::One | Quantifier::Each if sum.differing > 0 => differs,
            Quantifier::One | Quantifier::Each => unclear.unwrap_or(fits),
            Quantifier::Some if sum.fitting > 0 => fits,
            Quantifier::Some => unclear.unwrap_or(differs),
        }
    }

    fn without_value(&self) -> (Tri, Why) {
        let tri = match self.matcher {
            Matcher::Exists(wanted) => Tri::from(!wanted),
            _ if self.missing_is_false => Tri::False,
            _ => Tri::Unknown,
        };
        (tri, Why::Missing)
    }
}

/// What the values at a path come to.
#[derive(Default)]
struct Sum {
    nodes: usize,
    /// Whether one of them is not null.
    there: bool,
    fitting: usize,
    differing: usize,
    /// Why the first of those that cannot be compared cannot.
    unclear: Option<Why>,
}

/// Shows every value at a path to `look`. The depth of the recursion is the path's length, which is
/// bounded, and so is the work that a call may cost.
fn walk(
    value: &Value,
    steps: &[Step],
    content: &Content<'_>,
    look: &mut impl FnMut(&Value),
) -> Result<(), Why> {
    if !content.step() {
        return Err(Why::Oversize);
    }
    let Some((step, rest)) = steps.split_first() else {
        look(value);
        return Ok(());
    };
    match (step, value) {
        (Step::Name(name), Value::Object(members)) => {
            for (member, inner) in members {
                if *member == **name {
                    walk(inner, rest, content, look)?;
                } else if !content.step() {
                    return Err(Why::Oversize);
                } else if is_near(name, member) {
                    // An agent that is lax about names would find it here.
                    return Err(Why::Ambiguous);
                }
            }
        }
        (Step::All, Value::Object(members)) => {
            for inner in members.values() {
                walk(inner, rest, content, look)?;
            }
        }
        (Step::All, Value::Array(items)) => {
            for inner in items {
                walk(inner, rest, content, look)?;
            }
        }
        (Step::Index(index), Value::Array(items)) => {
            if let Some(inner) = items.get(*index) {
                walk(inner, rest, content, look)?;
            }
        }
        (Step::Name(_) | Step::All | Step::Index(_), _) => {}
    }
    Ok(())
}
