//! [`Memo`]: what the conditions of rules come to for one token, each evaluated once.
//!
//! A condition looks at the token alone, so under one generation its result never changes. What
//! depends on the call, such as agent, operation and skill, is decided anew each time: what is
//! remembered is who, never may (CA-2).

use super::condition::Tri;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Results that fit in one word, two bits each.
const PER_WORD: usize = 32;

/// Results by the position of their rule, for one token under one generation: 2 bits per rule, so
/// 2.5 KB for 10,000 rules, and nothing before the first.
#[derive(Debug, Default)]
pub struct Memo {
    words: OnceLock<Box<[AtomicU64]>>,
}

/// What is remembered says nothing about who a token's caller is.
impl PartialEq for Memo {
    fn eq(&self, _: &Memo) -> bool {
        true
    }
}

impl Memo {
    /// The result for the rule at `position` of `rules` in all. Two callers at once may both
    /// evaluate it; they find the same.
    pub(super) fn recall(
        &self,
        position: usize,
        rules: usize,
        evaluate: impl FnOnce() -> Tri,
    ) -> Tri {
        let words = self.words.get_or_init(|| {
            let words = rules.div_ceil(PER_WORD);
            (0..words).map(|_| AtomicU64::new(0)).collect()
        });
        let Some(word) = words.get(position / PER_WORD) else {
            return evaluate();
        };
        let shift = 2 * (position % PER_WORD);
        match word.load(Ordering::Relaxed) >> shift & 3 {
            1 => return Tri::False,
            2 => return Tri::Unknown,
            3 => return Tri::True,
            _ => {}
        }
        let found = evaluate();
        let bits = match found {
            Tri::False => 1,
            Tri::Unknown => 2,
            Tri::True => 3,
        };
        word.fetch_or(bits << shift, Ordering::Relaxed);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_is_evaluated_once_and_kept_apart() {
        let memo = Memo::default();
        let results = [Tri::False, Tri::Unknown, Tri::True];
        let at = |position: usize| results.get(position % 3).copied().unwrap_or(Tri::Unknown);
        for position in 0..100 {
            assert_eq!(memo.recall(position, 100, || at(position)), at(position));
        }
        for position in (0..100).rev() {
            let found = memo.recall(position, 100, || panic!("evaluated twice"));
            assert_eq!(found, at(position));
        }
        // Beyond the rules there is nothing to keep.
        assert_eq!(memo.recall(1000, 100, || Tri::True), Tri::True);
        assert_eq!(memo.recall(1000, 100, || Tri::False), Tri::False);
    }
}
