//! Whether some caller is allowed a call by one set of rules and refused it by another.

use super::super::condition::{Condition, Party, Tri};
use super::super::index::{Body, Rule};
use super::caller::{Caller, Fact, Variable};
use super::solve::{Clause, Literal, Outcome, Values, solve};
use super::space::{Asked, Column, Space, Trust};
use crate::identity::issuer::Grant;

/// The rules that concern a call on one side, and that side's entry of the caller's issuer.
pub(super) struct Half<'a> {
    /// Within reach of the grant, about the issuer; each with its number, which rules that say the
    /// same share.
    pub(super) allows: Vec<(usize, &'a Rule)>,
    pub(super) denies: Vec<(usize, &'a Rule)>,
    pub(super) trust: Option<Trust<'a>>,
}

/// What makes the difference.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cause<'a> {
    /// An allow of the side that allows.
    Allow(&'a Rule),
    /// A deny of the side that refuses.
    Deny(&'a Rule),
}

impl<'a> Cause<'a> {
    /// The rule.
    pub(super) fn rule(self) -> &'a Rule {
        match self {
            Cause::Allow(rule) | Cause::Deny(rule) => rule,
        }
    }

    /// Whether it is the same rule of the same side.
    fn is(self, other: Cause<'_>) -> bool {
        let deny = |cause: Cause<'_>| matches!(cause, Cause::Deny(_));
        deny(self) == deny(other) && self.rule().id == other.rule().id
    }
}

/// A cause, and a caller that shows it; where that could not be decided, the reason.
pub(super) struct Finding<'a> {
    pub(super) cause: Cause<'a>,
    pub(super) shown: Result<Caller, &'static str>,
}

/// The bound was hit.
pub(super) const BOUND: &str = "bound";
/// Values of a claim could not all be told apart within the bound.
pub(super) const CLASSES: &str = "classes";
/// It depends on the message, or every caller that was found is one that no token can state.
pub(super) const NO_TOKEN: &str = "no_token";

/// Everything that `one` allows and `other` refuses to callers like `base`, by what causes it.
/// `accept` says whether a caller is one that there can be, and is judged so.
pub(super) fn search<'a>(
    base: &Caller,
    one: &Half<'a>,
    other: &Half<'a>,
    combinations: u64,
    accept: &mut dyn FnMut(&Caller) -> bool,
) -> Vec<Finding<'a>> {
    let Some(trust) = one.trust else {
        return Vec::new();
    };
    let halves = [(one, Some(trust)), (other, other.trust)];
    let mut conditions = Vec::new();
    for (half, trust) in halves {
        let Some(trust) = trust else { continue };
        for (_, rule) in half.allows.iter().chain(&half.denies) {
            let condition = condition_of(rule);
            conditions.extend(condition.map(|condition| (condition, trust)));
        }
    }
    let delegated = conditions.iter().any(|(condition, _)| {
        let mut tests = condition.claims.iter();
        tests.any(|test| Variable::of(test) == Variable::Actor)
    });
    let parties: &[Party] = if delegated { &BOTH } else { &BOTH[..1] };
    let asked = conditions.iter().flat_map(|(condition, trust)| {
        parties.iter().map(|party| Asked {
            condition,
            party: *party,
            trust: *trust,
        })
    });
    let space = Space::new(base, &asked.collect::<Vec<_>>());
    let mut searcher = Searcher {
        base,
        space: &space,
        combinations,
        accept,
        findings: Vec::new(),
    };
    let one = Prepared::half(base, &space, one, Some(trust), parties);
    let other = Prepared::half(base, &space, other, other.trust, parties);
    searcher.run(&one, &other, 1);
    let capped = base.grant == Some(Grant::Full) && !trust.config.delegated_full;
    if delegated && !capped {
        searcher.run(&one, &other, 2);
    }
    searcher.findings
}

/// Whom a call must be allowed to.
const BOTH: [Party; 2] = [Party::Subject, Party::Actor];

pub(in crate::policy) fn condition_of(rule: &Rule) -> Option<&Condition> {
    match &rule.body {
        Body::Allow { require, .. } => Some(require),
        Body::DenyWhen(condition) | Body::DenyUnless(condition) => Some(condition),
        Body::DenyAlways => None,
    }
}

/// A rule, and how its tests come out for each party.
struct Prepared<'a> {
    number: usize,
    rule: &'a Rule,
    columns: Vec<Vec<Column>>,
}

/// Allows, then denies.
type Rules<'a> = [Vec<Prepared<'a>>; 2];

impl<'a> Prepared<'a> {
    /// Allows, then denies.
    fn half(
        base: &Caller,
        space: &Space,
        half: &Half<'a>,
        trust: Option<Trust<'a>>,
        parties: &[Party],
    ) -> Rules<'a> {
        let Some(trust) = trust else {
            return [Vec::new(), Vec::new()];
        };
        let prepare = |(number, rule): &(usize, &'a Rule)| {
            let columns = parties.iter().map(|party| {
                let asked = condition_of(rule).map(|condition| Asked {
                    condition,
                    party: *party,
                    trust,
                });
                asked.map_or(Vec::new(), |asked| space.columns(base, &asked))
            });
            Prepared {
                number: *number,
                rule,
                columns: columns.collect(),
            }
        };
        [&half.allows, &half.denies].map(|rules| rules.iter().map(prepare).collect())
    }

    /// One literal per test: where it comes out as one of `results`.
    fn literals(&self, party: usize, results: &[Tri]) -> Vec<Literal> {
        let literal = |column: &Column| Literal {
            variable: column.variable,
            values: Values::of(column.results.len(), |at| {
                column.results.get(at).is_some_and(|r| results.contains(r))
            }),
        };
        let columns = self.columns.get(party).into_iter().flatten();
        columns.map(literal).collect()
    }

    fn holds(&self, party: usize, clauses: &mut Vec<Clause>) {
        let all = self.literals(party, &[Tri::True]);
        clauses.extend(all.into_iter().map(|literal| vec![literal]));
    }

    fn lacks(&self, party: usize, clauses: &mut Vec<Clause>) {
        clauses.push(self.literals(party, &[Tri::False, Tri::Unknown]));
    }

    fn quiet(&self, party: usize, clauses: &mut Vec<Clause>) {
        match self.rule.body {
            Body::DenyWhen(_) => clauses.push(self.literals(party, &[Tri::False])),
            Body::DenyUnless(_) => self.holds(party, clauses),
            Body::DenyAlways => clauses.push(Vec::new()),
            Body::Allow { .. } => {}
        }
    }

    fn fires(&self, party: usize, clauses: &mut Vec<Clause>) {
        match self.rule.body {
            Body::DenyWhen(_) => {
                let all = self.literals(party, &[Tri::True, Tri::Unknown]);
                clauses.extend(all.into_iter().map(|literal| vec![literal]));
            }
            Body::DenyUnless(_) => self.lacks(party, clauses),
            Body::DenyAlways | Body::Allow { .. } => {}
        }
    }
}

struct Searcher<'s, 'a> {
    base: &'s Caller,
    space: &'s Space,
    combinations: u64,
    accept: &'s mut dyn FnMut(&Caller) -> bool,
    findings: Vec<Finding<'a>>,
}

impl<'a> Searcher<'_, 'a> {
    /// For calls that so many parties have to be allowed.
    fn run(&mut self, one: &Rules<'a>, other: &Rules<'a>, parties: usize) {
        let [our_allows, our_denies] = one;
        let [their_allows, their_denies] = other;
        let mut always = self.delegation(parties > 1);
        for party in 0..parties {
            our_denies.iter().for_each(|d| d.quiet(party, &mut always));
        }
        // Nothing allows it to one of the parties.
        let refusing = (0..parties).map(|party| {
            let mut clauses = Vec::new();
            their_allows
                .iter()
                .for_each(|a| a.lacks(party, &mut clauses));
            clauses
        });
        let refusing: Vec<Vec<Clause>> = refusing.collect();
        for allow in our_allows {
            // Where the other side says the same of the same calls, it is no cause.
            if their_allows.iter().any(|a| a.number == allow.number) {
                continue;
            }
            for holding in holding(allow, our_allows, parties) {
                for refused in &refusing {
                    let all = [&holding, &always, refused];
                    self.look(Cause::Allow(allow.rule), &all.map(Vec::clone).concat());
                }
            }
        }
        for deny in their_denies {
            if our_denies.iter().any(|d| d.number == deny.number) {
                continue;
            }
            for party in 0..parties {
                let mut firing = Vec::new();
                deny.fires(party, &mut firing);
                for allow in our_allows {
                    for holding in holding(allow, our_allows, parties) {
                        let all = [&holding, &firing, &always];
                        self.look(Cause::Deny(deny.rule), &all.map(Vec::clone).concat());
                    }
                }
            }
        }
    }

    fn look(&mut self, cause: Cause<'a>, clauses: &[Clause]) {
        let known = self.findings.iter().position(|f| f.cause.is(cause));
        let shown = |at: usize| self.findings.get(at).is_some_and(|f| f.shown.is_ok());
        if known.is_some_and(shown) {
            return;
        }
        let mut left = self.combinations;
        let (space, base) = (self.space, self.base);
        let accept = &mut self.accept;
        let outcome = solve(&space.sizes(), clauses, &mut left, &mut |values| {
            accept(&space.caller(base, values))
        });
        let shown = match outcome {
            Outcome::Found(values) => Ok(space.caller(base, &values)),
            Outcome::Nothing if space.complete => return,
            Outcome::Nothing => Err(CLASSES),
            Outcome::Unaccepted => Err(NO_TOKEN),
            Outcome::Bound => Err(BOUND),
        };
        match known.and_then(|at| self.findings.get_mut(at)) {
            Some(finding) => finding.shown = shown,
            None => self.findings.push(Finding { cause, shown }),
        }
    }

    /// Whether somebody acts for the subject.
    fn delegation(&self, wanted: bool) -> Vec<Clause> {
        let variables = self.space.variables.iter().enumerate();
        let actors = variables.filter(|(_, (variable, _))| *variable == Variable::Actor);
        let clause = |(variable, (_, facts)): (usize, &(Variable, Vec<Fact>))| {
            let fits = |value: usize| {
                let fact = facts.get(value);
                fact.is_some_and(|fact| (*fact != Fact::Actor(None)) == wanted)
            };
            vec![Literal {
                variable,
                values: Values::of(facts.len(), fits),
            }]
        };
        actors.map(clause).collect()
    }
}

/// The ways in which a rule has a part in allowing a call to every party.
fn holding(allow: &Prepared<'_>, allows: &[Prepared<'_>], parties: usize) -> Vec<Vec<Clause>> {
    let of = |rules: &[(&Prepared<'_>, usize)]| {
        let mut clauses = Vec::new();
        rules
            .iter()
            .for_each(|(rule, party)| rule.holds(*party, &mut clauses));
        clauses
    };
    if parties == 1 {
        return vec![of(&[(allow, 0)])];
    }
    let with = allows.iter().flat_map(|second| {
        [
            of(&[(allow, 0), (second, 1)]),
            of(&[(second, 0), (allow, 1)]),
        ]
    });
    with.collect()
}
