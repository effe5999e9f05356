//! A search for values that meet a set of clauses, exact and bounded.

/// Some of a variable's values, by their positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Values(Box<[u64]>);

impl Values {
    pub(super) fn of(many: usize, holds: impl Fn(usize) -> bool) -> Values {
        let mut words = vec![0_u64; many.div_ceil(64)];
        for at in (0..many).filter(|at| holds(*at)) {
            if let Some(word) = words.get_mut(at / 64) {
                *word |= 1 << (at % 64);
            }
        }
        Values(words.into())
    }

    fn both(&self, other: &Values, flip: u64) -> Values {
        let words = self.0.iter().zip(&other.0);
        Values(words.map(|(one, two)| one & (two ^ flip)).collect())
    }

    fn and(&self, other: &Values) -> Values {
        self.both(other, 0)
    }

    fn without(&self, other: &Values) -> Values {
        self.both(other, u64::MAX)
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(i, word)| {
            (0..64)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| i * 64 + bit)
        })
    }
}

/// A variable has one of these values.
#[derive(Debug, Clone)]
pub(super) struct Literal {
    pub(super) variable: usize,
    pub(super) values: Values,
}

/// At least one of these holds; none of none does.
pub(super) type Clause = Vec<Literal>;

/// What a search came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A value for each variable.
    Found(Vec<usize>),
    /// There are none.
    Nothing,
    /// There are some, and none was accepted.
    Unaccepted,
    /// The bound was hit first.
    Bound,
}

/// Searches values, one per variable of `sizes`, that meet every clause and that `accept` takes.
/// `left` is counted down by one per combination that is looked at.
pub(super) fn solve(
    sizes: &[usize],
    clauses: &[Clause],
    left: &mut u64,
    accept: &mut dyn FnMut(&[usize]) -> bool,
) -> Outcome {
    let domains = sizes.iter().map(|many| Values::of(*many, |_| true));
    let mut search = Search {
        clauses,
        left,
        accept,
        bound: false,
        refused: false,
    };
    match search.go(0, domains.collect()) {
        Some(found) => Outcome::Found(found),
        None if search.bound => Outcome::Bound,
        None if search.refused => Outcome::Unaccepted,
        None => Outcome::Nothing,
    }
}

struct Search<'a> {
    clauses: &'a [Clause],
    left: &'a mut u64,
    accept: &'a mut dyn FnMut(&[usize]) -> bool,
    bound: bool,
    refused: bool,
}

impl Search<'_> {
    fn tick(&mut self) -> bool {
        if *self.left == 0 {
            self.bound = true;
            return false;
        }
        *self.left -= 1;
        true
    }

    /// Branches on the clauses from `from` on.
    fn go(&mut self, from: usize, mut domains: Vec<Values>) -> Option<Vec<usize>> {
        if !self.tick() {
            return None;
        }
        let clauses = self.clauses;
        let Some(clause) = clauses.get(from) else {
            return self.leaf(&domains, 0, &mut Vec::new());
        };
        for literal in clause {
            let Some(domain) = domains.get(literal.variable).cloned() else {
                continue;
            };
            let within = domain.and(&literal.values);
            let rest = domain.without(&literal.values);
            if !within.is_empty() {
                let mut narrowed = domains.clone();
                set(&mut narrowed, literal.variable, within);
                if let Some(found) = self.go(from + 1, narrowed) {
                    return Some(found);
                }
            }
            // What the next literals are tried with has not met this one.
            if rest.is_empty() || self.bound {
                return None;
            }
            set(&mut domains, literal.variable, rest);
        }
        None
    }

    /// Every combination of what is left, until one is accepted.
    fn leaf(
        &mut self,
        domains: &[Values],
        at: usize,
        chosen: &mut Vec<usize>,
    ) -> Option<Vec<usize>> {
        let Some(domain) = domains.get(at) else {
            if !self.tick() {
                return None;
            }
            if (self.accept)(chosen) {
                return Some(chosen.clone());
            }
            self.refused = true;
            return None;
        };
        for value in domain.iter() {
            chosen.push(value);
            let found = self.leaf(domains, at + 1, chosen);
            chosen.pop();
            if found.is_some() || self.bound {
                return found;
            }
        }
        None
    }
}

fn set(domains: &mut [Values], at: usize, values: Values) {
    if let Some(domain) = domains.get_mut(at) {
        *domain = values;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn literals() -> impl Strategy<Value = Vec<Vec<(usize, u8)>>> {
        let clause = prop::collection::vec((0..3usize, 0..16u8), 0..4);
        prop::collection::vec(clause, 0..6)
    }

    proptest! {
        /// The search and plain enumeration agree about whether there is anything.
        #[test]
        fn it_finds_what_enumeration_finds(clauses in literals()) {
            let made: Vec<Clause> = clauses
                .iter()
                .map(|clause| {
                    let literal = |(variable, mask): &(usize, u8)| Literal {
                        variable: *variable,
                        values: Values::of(4, |at| mask >> at & 1 == 1),
                    };
                    clause.iter().map(literal).collect()
                })
                .collect();
            let holds = |values: &[usize]| {
                clauses.iter().all(|clause| {
                    clause.iter().any(|(variable, mask)| mask >> values[*variable] & 1 == 1)
                })
            };
            let all = (0..64).map(|n| [n % 4, n / 4 % 4, n / 16]);
            let expected = all.into_iter().any(|values| holds(&values));
            let mut left = 100_000;
            match solve(&[4, 4, 4], &made, &mut left, &mut |_| true) {
                Outcome::Found(values) => prop_assert!(holds(&values)),
                outcome => {
                    prop_assert_eq!(outcome, Outcome::Nothing);
                    prop_assert!(!expected);
                }
            }
        }
    }

    #[test]
    fn a_bound_and_a_refusal_are_not_nothing() {
        let none: &[Clause] = &[];
        let refused = solve(&[3, 3], none, &mut 100, &mut |_| false);
        assert_eq!(refused, Outcome::Unaccepted);
        assert_eq!(solve(&[3, 3], none, &mut 4, &mut |_| false), Outcome::Bound);
        let odd = solve(&[3, 3], none, &mut 100, &mut |v| v == [2, 1]);
        assert_eq!(odd, Outcome::Found(vec![2, 1]));
    }
}
