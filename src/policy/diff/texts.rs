//! Classes of texts: one text for every way in which matchers can tell texts apart.
//!
//! Patterns are read as automata side by side and followed breadth first, so what is found is
//! complete unless the bound is hit, and then it says so.

use super::super::glob::Glob;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// Most states that are followed for one set of patterns.
const STATES: usize = 20_000;
/// What stands for all characters that no operand has, and for a star.
const FRESH: [&str; 6] = ["x", "y", "z", "q", "other", "0"];

/// Texts, and whether every class has one.
pub(super) struct Classes {
    pub(super) texts: Vec<Box<str>>,
    pub(super) complete: bool,
}

/// One text per class: each of `named`, and every combination of patterns that some other text can
/// fit. The empty text stands for a class only where `empty` allows it and nothing else does.
pub(super) fn classes(named: &BTreeSet<&str>, globs: &[&Glob], empty: bool) -> Classes {
    let mut found = Found {
        globs,
        named,
        empty,
        by_class: BTreeMap::new(),
        order: Vec::new(),
    };
    for text in named {
        found.take(text);
    }
    // Texts that people would write come first; the search below finds what they leave out.
    for glob in globs {
        for filler in FRESH {
            found.take(&glob.filled(filler));
        }
    }
    for text in ["other", "another", "x", "-", "x/y"] {
        found.take(text);
    }
    let complete = globs.is_empty() || found.search();
    if globs.is_empty() {
        let longer = named.iter().map(|text| text.len()).max().unwrap_or(0) + 1;
        found.take(&"x".repeat(longer));
    }
    found.take("");
    Classes {
        texts: found.order,
        complete,
    }
}

struct Found<'a> {
    globs: &'a [&'a Glob],
    named: &'a BTreeSet<&'a str>,
    empty: bool,
    /// By which patterns fit, and which named text it is.
    by_class: BTreeMap<(Vec<bool>, Option<Box<str>>), ()>,
    order: Vec<Box<str>>,
}

impl Found<'_> {
    /// Keeps a text when it is the first of its class.
    fn take(&mut self, text: &str) {
        if text.is_empty() && !self.empty {
            return;
        }
        let fits = self.globs.iter().map(|glob| glob.matches(text)).collect();
        let class = (fits, self.named.contains(text).then(|| text.into()));
        if self.by_class.insert(class, ()).is_none() {
            self.order.push(text.into());
        }
    }

    /// Follows all patterns at once; false when the bound was hit.
    fn search(&mut self) -> bool {
        let patterns: Vec<Pattern> = self.globs.iter().map(|glob| Pattern::new(glob)).collect();
        let tree = Tree::new(self.named);
        let mut letters: BTreeSet<char> = self.named.iter().flat_map(|text| text.chars()).collect();
        letters.extend(patterns.iter().flat_map(Pattern::letters));
        letters.insert('/');
        let fresh = ('a'..='z')
            .rev()
            .chain('0'..='9')
            .chain('\u{e0}'..='\u{2ff}');
        letters.extend(fresh.into_iter().find(|c| !letters.contains(c)));
        let start = State {
            at: patterns.iter().map(Pattern::start).collect(),
            node: Some(0),
        };
        let mut seen: HashSet<State> = HashSet::from([start.clone()]);
        let mut queue = VecDeque::from([(start, String::new())]);
        while let Some((state, text)) = queue.pop_front() {
            if !text.is_empty() {
                self.take(&text);
            }
            for letter in &letters {
                let at = patterns.iter().zip(&state.at);
                let next = State {
                    at: at.map(|(p, at)| p.step(at, *letter)).collect(),
                    node: state.node.and_then(|node| tree.step(node, *letter)),
                };
                if seen.contains(&next) {
                    continue;
                }
                if seen.len() == STATES {
                    return false;
                }
                let mut longer = text.clone();
                longer.push(*letter);
                seen.insert(next.clone());
                queue.push_back((next, longer));
            }
        }
        true
    }
}

/// Where a text has got to in every pattern, and in the tree of named texts.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    at: Vec<Box<[usize]>>,
    node: Option<usize>,
}

/// A pattern as an automaton: a letter moves on, a star stays and may be left.
struct Pattern {
    elements: Vec<Option<char>>,
}

impl Pattern {
    fn new(glob: &Glob) -> Pattern {
        let mut elements = Vec::new();
        for (i, segment) in glob.segments().iter().enumerate() {
            if i > 0 {
                elements.push(Some('/'));
            }
            for (i, piece) in segment.iter().enumerate() {
                if i > 0 {
                    elements.push(None);
                }
                elements.extend(piece.chars().map(Some));
            }
        }
        Pattern { elements }
    }

    fn letters(&self) -> impl Iterator<Item = char> + '_ {
        self.elements.iter().copied().flatten()
    }

    fn start(&self) -> Box<[usize]> {
        self.closed(BTreeSet::from([0]))
    }

    fn step(&self, at: &[usize], letter: char) -> Box<[usize]> {
        let next = at
            .iter()
            .filter_map(|position| match self.elements.get(*position)? {
                Some(wanted) => (*wanted == letter).then_some(position + 1),
                None => (letter != '/').then_some(*position),
            });
        self.closed(next.collect())
    }

    /// With what can be reached without a letter.
    fn closed(&self, mut positions: BTreeSet<usize>) -> Box<[usize]> {
        let mut open: Vec<usize> = positions.iter().copied().collect();
        while let Some(position) = open.pop() {
            let star = self.elements.get(position) == Some(&None);
            if star && positions.insert(position + 1) {
                open.push(position + 1);
            }
        }
        positions.into_iter().collect()
    }
}

/// Named texts by their letters.
struct Tree {
    nodes: Vec<HashMap<char, usize>>,
}

impl Tree {
    fn new(named: &BTreeSet<&str>) -> Tree {
        let mut nodes: Vec<HashMap<char, usize>> = vec![HashMap::new()];
        for text in named {
            let mut node = 0;
            for letter in text.chars() {
                let next = nodes.len();
                let at = nodes
                    .get_mut(node)
                    .map_or(next, |edges| *edges.entry(letter).or_insert(next));
                if at == next {
                    nodes.push(HashMap::new());
                }
                node = at;
            }
        }
        Tree { nodes }
    }

    fn step(&self, node: usize, letter: char) -> Option<usize> {
        self.nodes.get(node)?.get(&letter).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(named: &[&str], patterns: &[&str]) -> Vec<String> {
        let globs: Vec<Glob> = patterns.iter().map(|p| Glob::new(p)).collect();
        let globs: Vec<&Glob> = globs.iter().collect();
        let classes = classes(&named.iter().copied().collect(), &globs, true);
        assert!(classes.complete);
        classes.texts.iter().map(ToString::to_string).collect()
    }

    /// Every subset of patterns that some text fits has a text, also where two overlap by chance.
    #[test]
    fn overlaps_and_gaps_of_patterns_are_found() {
        let texts = found(&[], &["ab*", "*ba"]);
        let fits = |text: &str| ["ab*", "*ba"].map(|p| Glob::new(p).matches(text));
        for wanted in [[true, true], [true, false], [false, true], [false, false]] {
            assert!(
                texts.iter().any(|t| fits(t) == wanted),
                "{wanted:?} {texts:?}"
            );
        }
        // No text fits the first alone.
        let texts = found(&[], &["a*b", "*b"]);
        assert_eq!(texts.len(), 3, "{texts:?}");
    }

    #[test]
    fn a_pattern_whose_texts_are_all_named_has_no_other() {
        assert_eq!(found(&["a"], &["a"]), ["a", "other"]);
        assert_eq!(found(&["other"], &[]), ["other", "another"]);
    }
}
