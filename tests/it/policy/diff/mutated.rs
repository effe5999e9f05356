//! Policies drawn by chance, each with one widening put into it.

use super::super::corp_site;
use super::callers::anybody_newly_allowed;
use super::{assert_shown, says};
use portcullis::policy::diff::Direction;
use std::fmt::Write;

/// Numbers that look like chance and are the same every time (SplitMix64).
pub(super) struct Draw(pub(super) u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, many: usize) -> usize {
        (self.next() % many as u64) as usize
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Is {
    Equals(&'static str),
    AnyOf(Vec<&'static str>),
    Matches(&'static str),
    Contains(&'static str),
    AllOf(Vec<&'static str>),
    Between(i64, i64),
    AtLeast(i64),
    True,
}

impl Is {
    fn yaml(&self) -> String {
        match self {
            Is::Equals(text) => format!("equals: {text}"),
            Is::AnyOf(all) => format!("any_of: [{}]", all.join(", ")),
            Is::Matches(glob) => format!("matches: \"{glob}\""),
            Is::Contains(text) => format!("contains: {text}"),
            Is::AllOf(all) => format!("all_of: [{}]", all.join(", ")),
            Is::Between(low, high) => format!("between: [{low}, {high}]"),
            Is::AtLeast(low) => format!("gte: {low}"),
            Is::True => "equals: true".to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Require,
    When,
    Unless,
    Always,
}

#[derive(Clone, Debug)]
pub(super) struct Rule {
    id: String,
    place: Place,
    agents: Vec<&'static str>,
    operations: Vec<&'static str>,
    skills: Vec<&'static str>,
    full: bool,
    shadow: bool,
    tests: Vec<(&'static str, Is, bool)>,
}

impl Rule {
    fn yaml(&self) -> String {
        let effect = match self.place {
            Place::Require => "allow",
            Place::When | Place::Unless | Place::Always => "deny",
        };
        let mut out = format!(
            "  - id: {}\n    {effect}: {{agents: [{}], operations: [{}]",
            self.id,
            self.agents.join(", "),
            self.operations.join(", ")
        );
        if self.operations.contains(&"messages") {
            write!(out, ", skills: [{}]", self.skills.join(", ")).unwrap();
        }
        out += "}\n";
        if self.shadow {
            out += "    mode: shadow\n    until: 2099-01-31\n";
        }
        let place = match self.place {
            Place::Require => {
                writeln!(
                    out,
                    "    grant: {}",
                    if self.full { "full" } else { "agent" }
                )
                .unwrap();
                "require"
            }
            Place::When => "when",
            Place::Unless => "unless",
            Place::Always => return out + "    always: true\n",
        };
        if self.tests.is_empty() {
            return out;
        }
        writeln!(out, "    {place}:").unwrap();
        for (claim, is, lifted) in &self.tests {
            let lift = if *lifted {
                ", if_missing: no_match"
            } else {
                ""
            };
            writeln!(out, "      {claim}: {{{}{lift}}}", is.yaml()).unwrap();
        }
        out
    }
}

const AGENTS: [&str; 2] = ["pr-agent", "weather"];
const OPERATIONS: [&str; 4] = ["messages", "tasks", "list", "card"];

fn test(draw: &mut Draw) -> (&'static str, Is, bool) {
    let (claim, is) = match draw.below(9) {
        0 => ("role", Is::Equals("reviewer")),
        1 => ("role", Is::AnyOf(vec!["admin", "reviewer"])),
        2 => ("role", Is::Matches("team/re*")),
        3 => ("groups", Is::Contains("ops")),
        4 => ("groups", Is::AllOf(vec!["eu", "ops"])),
        5 => ("level", Is::Between(2, 3)),
        6 => ("level", Is::AtLeast(5)),
        7 => ("verified", Is::True),
        _ => draw.one(&[
            ("sub", Is::Equals("alice")),
            ("proof", Is::Equals("dpop")),
            ("actor_sub", Is::Equals("robot")),
            ("scopes", Is::Contains("deploy")),
        ]),
    };
    (claim, is, false)
}

fn rule(draw: &mut Draw, i: usize) -> Rule {
    let place = match draw.below(6) {
        0 => Place::When,
        1 => Place::Unless,
        2 if i.is_multiple_of(3) => Place::Always,
        _ => Place::Require,
    };
    let agents = vec![draw.one(&AGENTS)];
    let skill = if agents == ["weather"] {
        "forecast"
    } else {
        draw.one(&["hello", "review-diff"])
    };
    let many = match place {
        Place::Always => 0,
        Place::Require => draw.below(3),
        Place::When | Place::Unless => 1 + draw.below(2),
    };
    let mut tests: Vec<(&'static str, Is, bool)> = Vec::new();
    for _ in 0..many {
        let one = test(draw);
        if tests.iter().all(|(claim, ..)| *claim != one.0) {
            tests.push(one);
        }
    }
    Rule {
        id: format!("r{i}"),
        place,
        agents,
        operations: vec![draw.one(&OPERATIONS)],
        skills: vec![skill],
        full: draw.below(3) == 0,
        shadow: false,
        tests,
    }
}

/// Without a deny nothing is refused.
fn everything() -> Rule {
    Rule {
        id: "everything".to_owned(),
        place: Place::Require,
        agents: AGENTS.to_vec(),
        operations: OPERATIONS.to_vec(),
        skills: vec!["forecast", "hello", "review-diff"],
        full: false,
        shadow: false,
        tests: Vec::new(),
    }
}

/// Ways to widen a policy by one rule; each says which, where it has one to change.
type Widening = fn(&mut Draw, &mut Vec<Rule>) -> Option<usize>;

fn some_rule(draw: &mut Draw, rules: &[Rule], fits: impl Fn(&Rule) -> bool) -> Option<usize> {
    let fitting: Vec<usize> = (0..rules.len()).filter(|i| fits(&rules[*i])).collect();
    (!fitting.is_empty()).then(|| draw.one(&fitting))
}

/// Puts another matcher in the place of one.
fn swap(draw: &mut Draw, rules: &mut [Rule], of: impl Fn(&Is) -> Option<Is>) -> Option<usize> {
    let allow = |rule: &Rule| rule.place == Place::Require;
    let at = some_rule(draw, rules, |rule| {
        allow(rule) && rule.tests.iter().any(|(_, is, _)| of(is).is_some())
    })?;
    let mut tests = rules[at].tests.iter_mut();
    let (_, is, _) = tests.find(|(_, is, _)| of(is).is_some())?;
    *is = of(is)?;
    Some(at)
}

const WIDENINGS: [(&str, Widening); 16] = [
    ("a test is dropped", |draw, rules| {
        let at = some_rule(draw, rules, |r| {
            r.place == Place::Require && !r.tests.is_empty()
        })?;
        let test = draw.below(rules[at].tests.len());
        rules[at].tests.remove(test);
        Some(at)
    }),
    ("a value is added", |draw, rules| {
        swap(draw, rules, |is| match is {
            Is::Equals("dpop") => Some(Is::AnyOf(vec!["dpop", "mtls"])),
            Is::Equals(text) => Some(Is::AnyOf(vec![*text, "guest"])),
            Is::AnyOf(all) => Some(Is::AnyOf([all.as_slice(), &["guest"]].concat())),
            _ => None,
        })
    }),
    ("a pattern is widened", |draw, rules| {
        swap(draw, rules, |is| {
            (*is == Is::Matches("team/re*")).then_some(Is::Matches("team/*"))
        })
    }),
    ("all becomes one", |draw, rules| {
        swap(draw, rules, |is| match is {
            Is::AllOf(all) => Some(Is::Contains(all[0])),
            _ => None,
        })
    }),
    ("a range is widened", |draw, rules| {
        swap(draw, rules, |is| match is {
            Is::Between(low, high) => Some(Is::Between(*low, high + 1)),
            Is::AtLeast(low) => Some(Is::AtLeast(low - 1)),
            _ => None,
        })
    }),
    ("the grant is lowered", |draw, rules| {
        let at = some_rule(draw, rules, |r| r.place == Place::Require && r.full)?;
        rules[at].full = false;
        Some(at)
    }),
    ("a skill is added", |draw, rules| {
        let at = some_rule(draw, rules, |r| {
            r.place == Place::Require && r.agents == ["pr-agent"] && r.operations == ["messages"]
        })?;
        rules[at].skills = vec!["hello", "review-diff"];
        Some(at)
    }),
    ("an agent is added", |draw, rules| {
        let at = some_rule(draw, rules, |r| {
            r.place == Place::Require && r.operations != ["messages"]
        })?;
        rules[at].agents = AGENTS.to_vec();
        Some(at)
    }),
    ("an operation is added", |draw, rules| {
        let at = some_rule(draw, rules, |r| r.place == Place::Require)?;
        let more = draw.one(&["tasks", "list", "push"]);
        let operations = &mut rules[at].operations;
        if operations.contains(&more) {
            return None;
        }
        operations.push(more);
        Some(at)
    }),
    ("a deny is removed", |draw, rules| {
        let at = some_rule(draw, rules, |r| r.place != Place::Require)?;
        rules.remove(at);
        Some(at)
    }),
    ("a deny becomes shadow", |draw, rules| {
        let at = some_rule(draw, rules, |r| r.place != Place::Require)?;
        rules[at].shadow = true;
        Some(at)
    }),
    ("a deny has when in place of unless", |draw, rules| {
        let at = some_rule(draw, rules, |r| r.place == Place::Unless)?;
        rules[at].place = Place::When;
        Some(at)
    }),
    ("a missing claim no longer fires", |draw, rules| {
        let fits = |test: &(&str, Is, bool)| !["sub", "proof"].contains(&test.0) && !test.2;
        let at = some_rule(draw, rules, |r| {
            r.place == Place::When && r.tests.iter().any(fits)
        })?;
        let mut tests = rules[at].tests.iter_mut();
        tests.find(|test| fits(test))?.2 = true;
        Some(at)
    }),
    ("a deny gets another condition", |draw, rules| {
        let at = some_rule(draw, rules, |r| r.place == Place::When)?;
        let more = test(draw);
        let tests = &mut rules[at].tests;
        if tests.iter().any(|(claim, ..)| *claim == more.0) {
            return None;
        }
        tests.push(more);
        Some(at)
    }),
    ("a deny is about fewer operations", |draw, rules| {
        let at = some_rule(draw, rules, |r| r.place != Place::Require)?;
        let other = draw.one(&["tasks", "list", "push"]);
        if rules[at].operations == [other] {
            return None;
        }
        rules[at].operations = vec![other];
        Some(at)
    }),
    ("a rule is added", |draw, rules| {
        let mut more = rule(draw, 1);
        more.id = "more".to_owned();
        if more.place != Place::Require {
            return None;
        }
        rules.push(more);
        Some(rules.len() - 1)
    }),
];

#[test]
fn a_widening_is_found_in_each_of_50_mutated_policies() {
    let site = corp_site();
    let mut by_way = [0; WIDENINGS.len()];
    let mut found = 0;
    for seed in 0..4000 {
        if found == 50 {
            break;
        }
        let mut draw = Draw(seed);
        let way = seed as usize % WIDENINGS.len();
        // Every way a few times, however often it hits nothing.
        if by_way[way] > 50 / WIDENINGS.len() {
            continue;
        }
        let mut rules: Vec<Rule> = (0..3 + draw.below(6)).map(|i| rule(&mut draw, i)).collect();
        if WIDENINGS[way].0.contains("deny") || WIDENINGS[way].0.contains("fires") {
            rules.push(everything());
        }
        let mut wider = rules.clone();
        let (name, widen) = WIDENINGS[way];
        let Some(at) = widen(&mut draw, &mut wider) else {
            continue;
        };
        let id = rules.get(at).map_or("more", |rule| rule.id.as_str());
        let yaml = |rules: &[Rule]| rules.iter().map(Rule::yaml).collect::<String>();
        let (before, after) = (yaml(&rules), yaml(&wider));
        if after.is_empty() {
            continue;
        }
        let (old, new) = (site.set(&before), site.set(&after));
        // Another rule may allow it anyway, or a deny stand in its way.
        let Some(agent) = anybody_newly_allowed(&site, &old, &new) else {
            continue;
        };
        let difference = site.difference(&old, &new);
        assert_shown(&site, &difference, &old, &new);
        assert!(difference.undecided.is_empty(), "{difference:?}");
        assert!(
            says(&difference, Direction::Allowed, &agent),
            "{name}, seed {seed}\n{before}\n{after}\n{difference:?}"
        );
        let mut changes = difference.changes.iter();
        assert!(
            changes.any(|c| c.direction == Direction::Allowed && &*c.rule == id),
            "{name}, seed {seed}, {id}\n{before}\n{after}\n{difference:?}"
        );
        by_way[way] += 1;
        found += 1;
    }
    assert_eq!(found, 50, "{by_way:?}");
    assert!(by_way.iter().all(|many| *many > 0), "{by_way:?}");
}
