//! [`Space`]: every caller that a set of rules can tell apart, as one list of values per variable.

use super::super::condition::{Condition, Matcher, Party, Test, Tri, evaluate};
use super::super::content::ContentTest;
use super::caller::{Caller, Fact, Variable};
use super::texts;
use crate::identity::issuer::{ClaimKind, IssuerConfig};
use crate::identity::{Actor, ClaimState, ClaimValue, ProofKind};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Most pieces of arrays that are told apart one by one: 2 to this power of arrays are looked at.
const PIECES: usize = 12;

/// An issuer entry as one of the compared sides knows it.
#[derive(Clone, Copy)]
pub(in crate::policy) struct Trust<'a> {
    pub(in crate::policy) index: usize,
    pub(in crate::policy) config: &'a IssuerConfig,
}

/// A condition of a rule, for one party, under one side's entry of the issuer.
#[derive(Clone, Copy)]
pub(in crate::policy) struct Asked<'a> {
    pub(in crate::policy) condition: &'a Condition,
    pub(in crate::policy) party: Party,
    pub(in crate::policy) trust: Trust<'a>,
}

/// The values of every variable that the conditions look at.
pub(in crate::policy) struct Space {
    pub(in crate::policy) variables: Vec<(Variable, Vec<Fact>)>,
    /// Whether there is a value for every way in which the conditions can come out.
    pub(in crate::policy) complete: bool,
}

/// How one test comes out, by the position of its variable's value.
pub(super) struct Column {
    pub(super) variable: usize,
    pub(super) results: Vec<Tri>,
}

impl Space {
    /// For callers of one issuer with one grant: `base` says both.
    pub(in crate::policy) fn new(base: &Caller, asked: &[Asked<'_>]) -> Space {
        let mut contents: BTreeSet<Variable> = BTreeSet::new();
        let mut by_variable: BTreeMap<Variable, Vec<(&Test, Party, Trust<'_>)>> = BTreeMap::new();
        for asked in asked {
            let party = asked.party.within(&asked.condition.claims);
            contents.extend(asked.condition.content.iter().map(content));
            for test in asked.condition.claims.iter() {
                let variable = variable_of(test, party);
                let tests = by_variable.entry(variable).or_default();
                tests.push((test, party, asked.trust));
            }
        }
        let mut complete = true;
        let claims = by_variable.into_iter().map(|(variable, tests)| {
            let (facts, whole) = facts(&variable, &tests);
            complete &= whole;
            // One value for each way in which the tests can come out.
            let mut seen = HashSet::new();
            let mut kept = Vec::new();
            for fact in facts {
                let mut caller = base.clone();
                caller.set(&variable, &fact);
                let way: Vec<u8> = tests
                    .iter()
                    .map(|(test, party, trust)| comes_to(test, *party, &caller, *trust) as u8)
                    .collect();
                // With or without a delegation makes a difference of its own.
                let apart = matches!(fact, Fact::Actor(None));
                if seen.insert((way, apart)) {
                    kept.push(fact);
                }
            }
            (variable, kept)
        });
        let mut variables: Vec<(Variable, Vec<Fact>)> = claims.collect();
        // A message may lack every value, so that comes first.
        let ways = [Tri::Unknown, Tri::False, Tri::True].map(Fact::Content);
        variables.extend(
            contents
                .into_iter()
                .map(|variable| (variable, ways.to_vec())),
        );
        Space {
            variables,
            complete,
        }
    }

    /// How many values each variable has.
    pub(in crate::policy) fn sizes(&self) -> Vec<usize> {
        self.variables
            .iter()
            .map(|(_, facts)| facts.len())
            .collect()
    }

    /// The caller with these values.
    pub(in crate::policy) fn caller(&self, base: &Caller, values: &[usize]) -> Caller {
        let mut caller = base.clone();
        for ((variable, facts), value) in self.variables.iter().zip(values) {
            if let Some(fact) = facts.get(*value) {
                caller.set(variable, fact);
            }
        }
        caller
    }

    /// How each test of a condition comes out.
    pub(super) fn columns(&self, base: &Caller, asked: &Asked<'_>) -> Vec<Column> {
        let party = asked.party.within(&asked.condition.claims);
        let column = |test: &Test| {
            let wanted = variable_of(test, party);
            let all = self.variables.iter();
            let variable = all.clone().position(|(known, _)| *known == wanted)?;
            let (known, facts) = self.variables.get(variable)?;
            let results = facts.iter().map(|fact| {
                let mut caller = base.clone();
                caller.set(known, fact);
                comes_to(test, party, &caller, asked.trust)
            });
            Some(Column {
                variable,
                results: results.collect(),
            })
        };
        let said = |test: &ContentTest| {
            let wanted = content(test);
            let mut all = self.variables.iter();
            let variable = all.position(|(known, _)| *known == wanted)?;
            let (_, facts) = self.variables.get(variable)?;
            let results = facts.iter().map(|fact| match fact {
                Fact::Content(tri) => *tri,
                _ => Tri::Unknown,
            });
            Some(Column {
                variable,
                results: results.collect(),
            })
        };
        let claims = asked.condition.claims.iter().filter_map(column);
        claims
            .chain(asked.condition.content.iter().filter_map(said))
            .collect()
    }
}

fn comes_to(test: &Test, party: Party, caller: &Caller, trust: Trust<'_>) -> Tri {
    let principal = caller.principal(trust.index, trust.config);
    evaluate(std::slice::from_ref(test), &principal, party)
}

/// Tests that say the same come out alike; of others nothing is taken to follow.
fn content(test: &ContentTest) -> Variable {
    Variable::Content(format!("{test:?}").into())
}

/// Of the actor, `sub` is the actor's.
fn variable_of(test: &Test, party: Party) -> Variable {
    match (Variable::of(test), party) {
        (Variable::Subject, Party::Actor) => Variable::Actor,
        (variable, _) => variable,
    }
}

type Tests<'a> = [(&'a Test, Party, Trust<'a>)];

/// Values for every class that the tests can tell apart, those that people would write first.
fn facts(variable: &Variable, tests: &Tests<'_>) -> (Vec<Fact>, bool) {
    match variable {
        Variable::Claim(name) => claim_facts(name, tests),
        Variable::Subject => {
            let (texts, complete) = texts_of(tests, false);
            let facts = texts.into_iter().map(|text| Fact::Text(Some(text)));
            (facts.collect(), complete)
        }
        Variable::Client => {
            let (texts, complete) = texts_of(tests, false);
            let facts = texts.into_iter().map(|text| Fact::Text(Some(text)));
            (facts.chain([Fact::Text(None)]).collect(), complete)
        }
        Variable::Actor => {
            let (texts, complete) = texts_of(tests, false);
            let actor = |subject, issuer| Fact::Actor(Some(Actor { subject, issuer }));
            let ours = texts.into_iter().map(|text| actor(text, None));
            let theirs = actor("other".into(), Some("https://other.example".into()));
            let facts = [Fact::Actor(None)].into_iter().chain(ours);
            (facts.chain([theirs]).collect(), complete)
        }
        Variable::Scopes => {
            let (arrays, complete) = arrays_of(tests);
            let (none, some): (Vec<_>, Vec<_>) = arrays.into_iter().partition(Vec::is_empty);
            // Where a scope gives the grant, there is one.
            let facts = some.into_iter().chain([vec!["other".into()]]).chain(none);
            (facts.map(Fact::Texts).collect(), complete)
        }
        // Comes out in every way, see above.
        Variable::Content(_) => (Vec::new(), true),
        Variable::Proof => {
            let kinds = [ProofKind::None, ProofKind::Mtls, ProofKind::Dpop];
            (kinds.map(Fact::Proof).to_vec(), true)
        }
    }
}

fn claim_facts(name: &str, tests: &Tests<'_>) -> (Vec<Fact>, bool) {
    let declared = tests.iter().find_map(|(_, _, trust)| {
        let mut claims = trust.config.claims.iter();
        claims.find(|claim| *claim.name == *name)
    });
    let Some(declared) = declared else {
        // Tokens of this issuer never have it.
        return (vec![Fact::Claim(ClaimState::Missing)], true);
    };
    let (values, complete): (Vec<ClaimValue>, bool) = match declared.kind {
        ClaimKind::String => {
            let (texts, complete) = texts_of(tests, true);
            (
                texts.into_iter().map(ClaimValue::String).collect(),
                complete,
            )
        }
        ClaimKind::Number => (numbers_of(tests), true),
        ClaimKind::Boolean => (
            vec![ClaimValue::Boolean(true), ClaimValue::Boolean(false)],
            true,
        ),
        ClaimKind::StringArray | ClaimKind::SpaceString => {
            let (arrays, complete) = arrays_of(tests);
            (
                arrays.into_iter().map(ClaimValue::Strings).collect(),
                complete,
            )
        }
    };
    let values = values.into_iter().map(ClaimState::Value);
    let all = [ClaimState::Missing].into_iter().chain(values);
    let all = all.chain([ClaimState::Null, ClaimState::WrongType]);
    (all.map(Fact::Claim).collect(), complete)
}

fn texts_of(tests: &Tests<'_>, empty: bool) -> (Vec<Box<str>>, bool) {
    let mut named: BTreeSet<&str> = BTreeSet::new();
    let mut globs = Vec::new();
    for (test, _, _) in tests {
        match &test.matcher {
            Matcher::EqualsText(text) => drop(named.insert(text)),
            Matcher::AnyOf(all) => named.extend(all.iter().map(AsRef::as_ref)),
            Matcher::Matches(glob) => globs.push(glob),
            _ => {}
        }
    }
    let found = texts::classes(&named, &globs, empty);
    (found.texts, found.complete)
}

/// Every bound, something between any two, and something beyond both ends.
fn numbers_of(tests: &Tests<'_>) -> Vec<ClaimValue> {
    let mut bounds = Vec::new();
    for (test, _, _) in tests {
        match &test.matcher {
            Matcher::EqualsNumber(n)
            | Matcher::Greater(n)
            | Matcher::GreaterOrEqual(n)
            | Matcher::Less(n)
            | Matcher::LessOrEqual(n) => bounds.push(*n),
            Matcher::Between(low, high) => bounds.extend([*low, *high]),
            _ => {}
        }
    }
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    let between = bounds.windows(2).filter_map(|pair| match pair {
        [low, high] => Some(if high - low > 1.0 {
            low.floor() + 1.0
        } else {
            low + (high - low) / 2.0
        }),
        _ => None,
    });
    let mut numbers: Vec<f64> = between.collect();
    let ends = [
        bounds.first().map_or(0.0, |n| n - n.abs().max(1.0)),
        bounds.last().map_or(0.0, |n| n + n.abs().max(1.0)),
    ];
    numbers.extend(ends);
    bounds.extend(numbers);
    bounds.into_iter().map(ClaimValue::Number).collect()
}

/// The tests that want a piece beside others or alone, those that want it or another, and a number
/// of its own for what is told apart anyway.
type Block = (Vec<usize>, Vec<usize>, usize);

/// Arrays by which of the named pieces they have.
fn arrays_of(tests: &Tests<'_>) -> (Vec<Vec<Box<str>>>, bool) {
    // What is looked for together is had together or not at all, and of what will do in each
    // other's place one is enough.
    let mut roles: BTreeMap<&str, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for (i, (test, _, _)) in tests.iter().enumerate() {
        match &test.matcher {
            Matcher::Contains(piece) => roles.entry(piece).or_default().0.push(i),
            Matcher::AllOf(all) => {
                for piece in all {
                    roles.entry(piece).or_default().0.push(i);
                }
            }
            Matcher::Intersects(all) => {
                for piece in all {
                    roles.entry(piece).or_default().1.push(i);
                }
            }
            _ => {}
        }
    }
    let mut blocks: BTreeMap<Block, Vec<&str>> = BTreeMap::new();
    for (i, (piece, (all, any))) in roles.into_iter().enumerate() {
        // What is wanted in both ways stays by itself.
        let alone = if all.is_empty() || any.is_empty() {
            0
        } else {
            i + 1
        };
        let enough = all.is_empty();
        let block = blocks.entry((all, any, alone)).or_default();
        if !enough || block.is_empty() {
            block.push(piece);
        }
    }
    let blocks: Vec<Vec<&str>> = blocks.into_values().collect();
    let complete = blocks.len() <= PIECES;
    let told = blocks.get(..PIECES).unwrap_or(&blocks);
    let rest = blocks.get(PIECES..).unwrap_or_default();
    let mut sets: Vec<u32> = (0..1_u32 << told.len()).collect();
    // Short arrays first.
    sets.sort_by_key(|set| set.count_ones());
    let array = |set: &u32| {
        let chosen = told.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
        chosen
            .flat_map(|(_, block)| block)
            .map(|p| Box::from(*p))
            .collect()
    };
    let mut arrays: Vec<Vec<Box<str>>> = sets.iter().map(array).collect();
    arrays.extend(
        rest.iter()
            .map(|block| block.iter().map(|p| Box::from(*p)).collect()),
    );
    (arrays, complete)
}
