//! What one matcher says about another on the same claim: whether it implies it, or excludes it.
//!
//! Both answers may miss a case, and neither is ever wrong: what rests on them are warnings about
//! rules that can be removed.

use super::condition::Matcher;

/// Numbers that a matcher takes: a bound below and one above, each with whether it is included.
type Range = ((f64, bool), (f64, bool));

impl Matcher {
    /// Whether every value that this takes is taken by `other` too.
    pub(super) fn implies(&self, other: &Matcher) -> bool {
        if let Some(texts) = self.texts() {
            return texts.iter().all(|text| other.takes_text(text));
        }
        if let (Some(these), Some(those)) = (self.range(), other.range()) {
            return within(these, those);
        }
        match (self, other) {
            (Matcher::Exists(these), Matcher::Exists(those)) => these == those,
            // What compares at all is there.
            (_, Matcher::Exists(wanted)) => *wanted,
            (Matcher::Exists(_), _) => false,
            (Matcher::EqualsBoolean(these), Matcher::EqualsBoolean(those)) => these == those,
            (Matcher::Matches(these), Matcher::Matches(those)) => these == those,
            (Matcher::Intersects(these), Matcher::Intersects(those)) => {
                these.iter().all(|text| those.contains(text))
            }
            (Matcher::Contains(text), _) => other.taken_from(std::slice::from_ref(text)),
            (Matcher::AllOf(texts), _) => other.taken_from(texts),
            _ => false,
        }
    }

    /// Whether no value is taken by both.
    pub(super) fn excludes(&self, other: &Matcher) -> bool {
        for (one, two) in [(self, other), (other, self)] {
            if let Some(texts) = one.texts() {
                return match two {
                    Matcher::Exists(wanted) => !wanted,
                    _ => !texts.iter().any(|text| two.takes_text(text)),
                };
            }
        }
        if let (Some(these), Some(those)) = (self.range(), other.range()) {
            return apart(these, those) || apart(those, these);
        }
        match (self, other) {
            (Matcher::Exists(these), Matcher::Exists(those)) => these != those,
            (_, Matcher::Exists(wanted)) | (Matcher::Exists(wanted), _) => !wanted,
            (Matcher::EqualsBoolean(these), Matcher::EqualsBoolean(those)) => these != those,
            _ => false,
        }
    }

    /// The texts that it takes, where they can be counted.
    fn texts(&self) -> Option<&[Box<str>]> {
        match self {
            Matcher::EqualsText(text) => Some(std::slice::from_ref(text)),
            Matcher::AnyOf(texts) => Some(texts),
            _ => None,
        }
    }

    fn takes_text(&self, text: &str) -> bool {
        match self {
            Matcher::EqualsText(wanted) => **wanted == *text,
            Matcher::AnyOf(wanted) => wanted.iter().any(|w| **w == *text),
            Matcher::Matches(glob) => glob.matches(text),
            Matcher::Exists(wanted) => *wanted,
            _ => false,
        }
    }

    /// Whether it takes every array that has all of `texts`.
    fn taken_from(&self, texts: &[Box<str>]) -> bool {
        match self {
            Matcher::Contains(wanted) => texts.contains(wanted),
            Matcher::AllOf(wanted) => wanted.iter().all(|w| texts.contains(w)),
            Matcher::Intersects(wanted) => wanted.iter().any(|w| texts.contains(w)),
            _ => false,
        }
    }

    fn range(&self) -> Option<Range> {
        const LEAST: (f64, bool) = (f64::NEG_INFINITY, true);
        const MOST: (f64, bool) = (f64::INFINITY, true);
        Some(match *self {
            Matcher::EqualsNumber(n) => ((n, true), (n, true)),
            Matcher::Greater(n) => ((n, false), MOST),
            Matcher::GreaterOrEqual(n) => ((n, true), MOST),
            Matcher::Less(n) => (LEAST, (n, false)),
            Matcher::LessOrEqual(n) => (LEAST, (n, true)),
            Matcher::Between(low, high) => ((low, true), (high, true)),
            _ => return None,
        })
    }
}

fn within(inner: Range, outer: Range) -> bool {
    let ((low, low_in), (high, high_in)) = inner;
    let ((least, least_in), (most, most_in)) = outer;
    #[allow(clippy::float_cmp)]
    let bounded = |bound: f64, included: bool, other: f64, other_in: bool| {
        bound == other && (other_in || !included)
    };
    (low > least || bounded(low, low_in, least, least_in))
        && (high < most || bounded(high, high_in, most, most_in))
}

/// Whether everything in `low` is less than everything in `high`.
fn apart(low: Range, high: Range) -> bool {
    let ((_, (most, most_in)), ((least, least_in), _)) = (low, high);
    #[allow(clippy::float_cmp)]
    let touch = most == least && !(most_in && least_in);
    most < least || touch
}

#[cfg(test)]
mod tests {
    use super::Matcher::{self, *};
    use crate::policy::glob::Glob;

    fn texts(texts: &[&str]) -> Box<[Box<str>]> {
        let mut texts: Vec<Box<str>> = texts.iter().map(|t| Box::from(*t)).collect();
        texts.sort();
        texts.into()
    }

    fn check(cases: Vec<(Matcher, Matcher, bool)>, holds: fn(&Matcher, &Matcher) -> bool) {
        for (one, two, expected) in cases {
            assert_eq!(holds(&one, &two), expected, "{one:?} {two:?}");
        }
    }

    #[test]
    fn one_matcher_implies_another() {
        let glob = |pattern| Matches(Glob::new(pattern));
        check(
            vec![
                (EqualsText("a".into()), AnyOf(texts(&["a", "b"])), true),
                (AnyOf(texts(&["a", "b"])), EqualsText("a".into()), false),
                (AnyOf(texts(&["x/a", "x/b"])), glob("x/*"), true),
                (AnyOf(texts(&["x/a", "y/b"])), glob("x/*"), false),
                (glob("x/*"), glob("x/*"), true),
                (glob("x/a"), glob("x/*"), false),
                (glob("x/*"), Exists(true), true),
                (EqualsText("a".into()), Exists(true), true),
                (EqualsText("a".into()), Exists(false), false),
                (Exists(false), Exists(false), true),
                (Exists(true), EqualsText("a".into()), false),
                (EqualsBoolean(true), EqualsBoolean(true), true),
                (EqualsBoolean(true), EqualsBoolean(false), false),
                (Between(2.0, 3.0), Greater(1.0), true),
                (Between(1.0, 3.0), Greater(1.0), false),
                (Greater(1.0), GreaterOrEqual(1.0), true),
                (GreaterOrEqual(1.0), Greater(1.0), false),
                (EqualsNumber(3.0), LessOrEqual(3.0), true),
                (Less(3.0), Between(0.0, 3.0), false),
                (Contains("a".into()), Intersects(texts(&["a", "b"])), true),
                (Contains("a".into()), AllOf(texts(&["a", "b"])), false),
                (AllOf(texts(&["a", "b"])), Contains("b".into()), true),
                (AllOf(texts(&["a", "b"])), AllOf(texts(&["a"])), true),
                (
                    Intersects(texts(&["a"])),
                    Intersects(texts(&["a", "b"])),
                    true,
                ),
                (Intersects(texts(&["a"])), Contains("a".into()), false),
            ],
            Matcher::implies,
        );
    }

    #[test]
    fn one_matcher_excludes_another() {
        let glob = |pattern| Matches(Glob::new(pattern));
        check(
            vec![
                (EqualsText("a".into()), EqualsText("b".into()), true),
                (AnyOf(texts(&["a", "b"])), AnyOf(texts(&["b", "c"])), false),
                (AnyOf(texts(&["a", "b"])), glob("x/*"), true),
                (glob("x/*"), EqualsText("x/y".into()), false),
                (glob("x/*"), glob("y/*"), false),
                (EqualsText("a".into()), Exists(false), true),
                (EqualsText("a".into()), Exists(true), false),
                (Exists(false), glob("*"), true),
                (Exists(false), Exists(true), true),
                (EqualsBoolean(true), EqualsBoolean(false), true),
                (Less(1.0), GreaterOrEqual(1.0), true),
                (LessOrEqual(1.0), GreaterOrEqual(1.0), false),
                (Between(1.0, 2.0), Greater(2.0), true),
                (Contains("a".into()), Contains("b".into()), false),
            ],
            |one, two| {
                assert_eq!(one.excludes(two), two.excludes(one), "{one:?} {two:?}");
                one.excludes(two)
            },
        );
    }
}
