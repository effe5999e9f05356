//! [`Glob`]: the pattern of the matcher `matches`.

/// An anchored pattern: literal, but for `*`, which stands for any text without `/` (PR-7).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Glob {
    /// By `/`, then by `*`.
    segments: Box<[Box<[Box<str>]>]>,
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Glob {
        let segment = |s: &str| s.split('*').map(Box::from).collect();
        Glob {
            segments: pattern.split('/').map(segment).collect(),
        }
    }

    /// By `/`, then by `*`.
    pub(super) fn segments(&self) -> &[Box<[Box<str>]>] {
        &self.segments
    }

    /// A text that fits, with this in the place of each `*`.
    pub(super) fn filled(&self, filler: &str) -> String {
        let segments = self.segments.iter().map(|pieces| pieces.join(filler));
        segments.collect::<Vec<_>>().join("/")
    }

    /// Takes time linear in the text: within a segment each piece is looked for once, leftmost.
    pub(super) fn matches(&self, text: &str) -> bool {
        let mut parts = text.split('/');
        let all = self
            .segments
            .iter()
            .all(|segment| parts.next().is_some_and(|part| fits(segment, part)));
        all && parts.next().is_none()
    }
}

/// Whether the pieces stand in `part` in this order, the first at its start, the last at its end.
fn fits(pieces: &[Box<str>], part: &str) -> bool {
    let (first, rest) = match pieces {
        [] => return part.is_empty(),
        [only] => return **only == *part,
        [first, rest @ ..] => (first, rest),
    };
    let Some(mut left) = part.strip_prefix(&**first) else {
        return false;
    };
    let Some((last, middle)) = rest.split_last() else {
        return left.is_empty();
    };
    for piece in middle {
        let Some((_, after)) = left.split_once(&**piece) else {
            return false;
        };
        left = after;
    }
    left.ends_with(&**last)
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn a_glob_is_anchored_and_its_star_stays_in_one_segment() {
        let cases = [
            ("sandbox/*", "sandbox/a", true),
            ("sandbox/*", "sandbox/", true),
            ("sandbox/*", "sandbox/a/b", false),
            ("sandbox/*", "sandbox", false),
            ("sandbox/*", "xsandbox/a", false),
            ("*", "", true),
            ("*", "a", true),
            ("*", "a/b", false),
            ("*/*", "a/b", true),
            ("a.b", "a.b", true),
            ("a.b", "axb", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("ab*ba", "abba", true),
            ("a*", "A", false),
            ("a*", "\u{e4}", false),
            ("*\u{e4}", "x\u{e4}", true),
            ("a?c", "abc", false),
            ("[ab]", "a", false),
            ("a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(
                Glob::new(pattern).matches(text),
                expected,
                "{pattern} {text}"
            );
        }
    }
}
