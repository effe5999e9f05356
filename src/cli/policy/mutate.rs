//! `portcullis mutate`: every allowed test, changed in one place, must be refused.

use super::suite::{Named, Suite};
use crate::a2a::strict_json::Value as Json;
use crate::cli::exit;
use crate::cli::token::safe;
use crate::identity::trial::place;
use crate::pipeline::trial::{Judged, ambiguous, names_any_skill, read};
use crate::policy::mutate::{Around, Mutant, Sort, group, look, mutants, of_content};
use crate::policy::trial::Trial;
use crate::policy::{Asked, Effect, looks_at_content, needed};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What to change.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    named: Named,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A test whose call is allowed, as it should be.
struct Allowed<'s> {
    trial: &'s Trial,
    judged: Judged,
}

impl Allowed<'_> {
    fn rule(&self) -> &str {
        self.judged.decision.rule.as_deref().unwrap_or_default()
    }

    fn skill(&self) -> Option<&str> {
        self.judged.skill.as_ref()?.id.as_deref()
    }
}

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Refused,
    /// Another rule allows this other call.
    OtherRule(String),
    /// It is allowed, and the test with this name shows that it is meant; or the test says so itself.
    Meant(String),
    Survived(String),
}

impl Fate {
    fn label(&self) -> &'static str {
        match self {
            Fate::Refused => "refused",
            Fate::OtherRule(_) => "other_rule",
            Fate::Meant(_) => "meant",
            Fate::Survived(_) => "survived",
        }
    }
}

/// A mutant and what became of it.
struct Line {
    what: String,
    how: String,
    sort: Option<Sort>,
    fate: Fate,
}

/// A test and its mutants.
struct Group<'s> {
    trial: &'s Trial,
    lines: Vec<Line>,
    /// What the test says may survive, and nothing did.
    needless: Vec<&'s str>,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> u8 {
    let suite = match Suite::open(&arguments.named) {
        Ok(suite) => suite,
        Err(code) => return code,
    };
    let mut failed = 0;
    let mut allowed = Vec::new();
    for trial in &suite.trials {
        let judged = suite.judge(&trial.caller, &trial.call);
        if !trial
            .expect
            .misses(&judged.decision, judged.http)
            .is_empty()
        {
            failed += 1;
        } else if judged.decision.effect == Effect::Allow {
            allowed.push(Allowed { trial, judged });
        }
    }
    if failed > 0 {
        eprintln!("error: {failed} tests fail; `portcullis test` says why, and they come first");
        return exit::FAILED;
    }
    let groups: Vec<Group<'_>> = allowed.iter().map(|a| of(&suite, &allowed, a)).collect();
    if arguments.json {
        println!("{:#}", as_json(&groups));
    } else {
        print!("{}", as_text(&groups));
    }
    let survived = groups
        .iter()
        .flat_map(|group| &group.lines)
        .any(|line| matches!(line.fate, Fate::Survived(_)));
    match (groups.is_empty(), survived) {
        (true, _) => exit::NO,
        (false, true) => exit::FAILED,
        (false, false) => exit::YES,
    }
}

/// The mutants of one test.
fn of<'s>(suite: &Suite, all: &[Allowed<'s>], one: &Allowed<'s>) -> Group<'s> {
    let trial = one.trial;
    let mut lines = Vec::new();
    let mut group = Group {
        trial,
        lines: Vec::new(),
        needless: Vec::new(),
    };
    let Ok(principal) = suite.principal(&trial.caller) else {
        return group;
    };
    let (needed, looks) = suite
        .bench()
        .asked(&principal, &trial.call, one.skill(), |question| {
            let policy = &suite.policy;
            let needed = needed(policy, question, one.rule());
            (needed, looks_at_content(policy, question, one.rule()))
        });
    let snapshot = &suite.snapshot;
    let skills: Vec<&[Box<str>]> = snapshot.agents.iter().map(|a| &*a.skills).collect();
    let agent = snapshot.agents.get(trial.call.agent);
    let around = Around {
        issuers: &snapshot.issuers,
        skills: &skills,
        grant: principal.grant,
        skill: one.skill(),
        any_skill: agent.is_some_and(|agent| names_any_skill(agent)),
        needed: &needed,
        shown: &|claim| shown(suite, all, one, claim),
    };
    for mutant in mutants(trial, &around) {
        let fate = fate(suite, all, one, &mutant);
        lines.push(Line {
            how: match (&*mutant.what, snapshot.agents.get(mutant.call.agent)) {
                ("agent", Some(agent)) => agent.name.to_string(),
                (_, _) => mutant.how,
            },
            what: mutant.what.into(),
            sort: Some(mutant.sort),
            fate,
        });
    }
    contents(suite, all, one, looks, &mut lines);
    if let (Asked::Operation(operation), Some(agent)) = (trial.call.asked, agent) {
        for (how, written) in ambiguous(agent, operation, &trial.call) {
            let fate = match read(agent, &written) {
                Ok(_) => Fate::Survived("it is read as one clear call".to_owned()),
                Err(_) => Fate::Refused,
            };
            lines.push(Line {
                what: "body".to_owned(),
                how: how.to_owned(),
                sort: None,
                fate,
            });
        }
    }
    let survived: BTreeSet<&str> = lines
        .iter()
        .filter(|line| matches!(&line.fate, Fate::Meant(by) if by.is_empty()))
        .map(|line| line.what.as_str())
        .collect();
    let survive = trial.survive.iter().map(|name| &**name);
    group.needless = survive.filter(|name| !survived.contains(name)).collect();
    group.lines = lines;
    group
}

/// What a test's message says, changed. Values at which no rule looks are passed over.
fn contents(
    suite: &Suite,
    all: &[Allowed<'_>],
    one: &Allowed<'_>,
    looks: bool,
    lines: &mut Vec<Line>,
) {
    let line = |mutant: Mutant, fate: Fate| Line {
        what: mutant.what.into(),
        how: mutant.how,
        sort: Some(mutant.sort),
        fate,
    };
    let judged = |mutant: &Mutant| {
        let fate = fate(suite, all, one, mutant);
        match (fate, by_others(all, one, mutant)) {
            (Fate::Survived(_), Some(name)) => Fate::Meant(name),
            (fate, _) => fate,
        }
    };
    if !looks {
        if let Some(mutant) = of_content(one.trial).into_iter().flatten().next() {
            let whole = Mutant {
                how: "any".to_owned(),
                sort: Sort::Needless,
                ..mutant
            };
            let fate = fate(suite, all, one, &whole);
            lines.push(line(whole, fate));
        }
        return;
    }
    for mutants in of_content(one.trial) {
        let mut mutants = mutants.into_iter();
        let Some(left_out) = mutants.next() else {
            continue;
        };
        if fate(suite, all, one, &left_out) != Fate::Refused {
            continue;
        }
        lines.push(line(left_out, Fate::Refused));
        for mutant in mutants {
            let fate = judged(&mutant);
            lines.push(line(mutant, fate));
        }
    }
}

/// The test that shows a changed content to be meant: it has another value at that place, and what
/// it and this test have in common there the changed one has too.
fn by_others(all: &[Allowed<'_>], one: &Allowed<'_>, mutant: &Mutant) -> Option<String> {
    if mutant.sort != Sort::Open {
        return None;
    }
    let path: Vec<Box<str>> = mutant
        .how
        .split(' ')
        .next()?
        .split('.')
        .map(Box::from)
        .collect();
    let value = |message: Option<&Json>| look(message?, &path).map(ToString::to_string);
    let before = value(one.trial.call.message.as_ref())?;
    let changed = value(mutant.call.message.as_ref())?;
    let shows = |other: &&Allowed<'_>| {
        let there = value(other.trial.call.message.as_ref());
        other.rule() == one.rule() && there.is_some_and(|there| is_like(&before, &there, &changed))
    };
    all.iter()
        .find(shows)
        .map(|other| other.trial.name.to_string())
}

/// The least and the greatest number with which tests show a claim allowed by a test's rule.
fn shown(suite: &Suite, all: &[Allowed<'_>], one: &Allowed<'_>, claim: &str) -> Option<(f64, f64)> {
    let mut range: Option<(f64, f64)> = None;
    for other in all.iter().filter(|other| other.rule() == one.rule()) {
        let value = value_of(suite, other.trial, claim);
        let number = value.and_then(|value| value.parse::<f64>().ok());
        if let Some(number) = number {
            let (least, greatest) = range.unwrap_or((number, number));
            range = Some((least.min(number), greatest.max(number)));
        }
    }
    range
}

/// What a test has under a claim, as JSON.
fn value_of(suite: &Suite, trial: &Trial, claim: &str) -> Option<String> {
    value_in(suite, trial.caller.issuer, &trial.caller.payload, claim)
}

fn value_in(suite: &Suite, issuer: usize, payload: &Json, claim: &str) -> Option<String> {
    let config = suite.snapshot.issuers.get(issuer)?;
    let path = place(claim, payload, config)?;
    look(payload, &path).map(ToString::to_string)
}

fn fate(suite: &Suite, all: &[Allowed<'_>], one: &Allowed<'_>, mutant: &Mutant) -> Fate {
    let principal = suite.principal(&mutant.caller).map(|mut principal| {
        if let Some(reach) = mutant.reach {
            principal.grant = reach;
        }
        principal
    });
    let judged = suite
        .bench()
        .judge(principal.as_ref().map_err(|fault| *fault), &mutant.call);
    if judged.decision.effect == Effect::Deny {
        return Fate::Refused;
    }
    let by = judged.decision.rule.as_deref().unwrap_or_default();
    let other_call = mutant.sort == Sort::Call && &*mutant.what != "grant";
    if other_call && by != one.rule() {
        return Fate::OtherRule(by.to_owned());
    }
    let grant = principal.ok().and_then(|principal| principal.grant);
    let shows = |other: &&Allowed<'_>| {
        let value = || value_of(suite, other.trial, &mutant.what);
        let changed = || {
            value_in(
                suite,
                mutant.caller.issuer,
                &mutant.caller.payload,
                &mutant.what,
            )
        };
        let before = || value_of(suite, one.trial, &mutant.what);
        other.rule() == by
            && match mutant.sort {
                Sort::Value => value() == changed(),
                Sort::Open => {
                    let like = |other: &String| match changed() {
                        Some(changed) => is_like(&before().unwrap_or_default(), other, &changed),
                        None => false,
                    };
                    value().as_ref().is_some_and(like)
                }
                Sort::Shape | Sort::Needless | Sort::Unknown => false,
                Sort::Call => match &*mutant.what {
                    "grant" => suite
                        .principal(&other.trial.caller)
                        .is_ok_and(|p| p.grant == grant),
                    "issuer" => other.trial.caller.issuer == mutant.caller.issuer,
                    "agent" => other.trial.call.agent == mutant.call.agent,
                    "operation" => group(other.trial.call.asked) == group(mutant.call.asked),
                    _ => {
                        other.trial.call.agent == mutant.call.agent
                            && other.skill() == mutant.call.skill.as_deref()
                    }
                },
            }
    };
    if let Some(other) = all.iter().find(shows) {
        return Fate::Meant(other.trial.name.to_string());
    }
    if one.trial.survive.contains(&mutant.what) {
        return Fate::Meant(String::new());
    }
    Fate::Survived(format!("rule `{by}` allows it"))
}

/// Whether a value is like two others that tests show: of text, it begins and ends with what those
/// have in common there; all as JSON.
fn is_like(one: &str, other: &str, changed: &str) -> bool {
    if one == other {
        return false;
    }
    if ![one, other, changed]
        .iter()
        .all(|text| text.starts_with('"'))
    {
        return true;
    }
    let same = |(a, b): &(char, char)| a == b;
    let before = one.chars().zip(other.chars()).take_while(same).count();
    let back = || one.chars().rev().zip(other.chars().rev());
    let behind = back().take_while(same).count();
    let begins = one.chars().zip(changed.chars()).take_while(same).count();
    let ends = one.chars().rev().zip(changed.chars().rev());
    begins >= before && ends.take_while(same).count() >= behind
}

/// What to do about a survivor.
fn help(line: &Line) -> &'static str {
    match line.sort {
        None => "report this: the reader of requests must refuse it",
        Some(Sort::Needless) => "no rule asks for it: leave it out of the test, or require it",
        Some(Sort::Shape) => "the rule takes what is no value: compare the claim with one",
        Some(Sort::Value) => "narrow the rule, or add a test that shows this value allowed",
        Some(Sort::Open) => "narrow the rule, or add a test with another value that is allowed",
        Some(Sort::Call) => "narrow the rule, or add a test that shows this allowed",
        Some(Sort::Unknown) => "name the skills, or say `survive: [skill]`",
    }
}

fn count(groups: &[Group<'_>], label: &str) -> usize {
    let lines = groups.iter().flat_map(|group| &group.lines);
    lines.filter(|line| line.fate.label() == label).count()
}

fn as_text(groups: &[Group<'_>]) -> String {
    let mut text = String::new();
    let mut file = "";
    for group in groups {
        if file != &*group.trial.file {
            file = &group.trial.file;
            text.push_str(&format!("{file}\n"));
        }
        let refused = group
            .lines
            .iter()
            .filter(|l| l.fate == Fate::Refused)
            .count();
        text.push_str(&format!(
            "  {}: {refused} of {} mutants refused\n",
            group.trial.name,
            group.lines.len()
        ));
        for line in &group.lines {
            let (what, how) = (&line.what, safe(&line.how));
            match &line.fate {
                Fate::Refused => {}
                Fate::OtherRule(rule) => {
                    text.push_str(&format!("    other rule  {what} {how}: by `{rule}`\n"));
                }
                Fate::Meant(by) if by.is_empty() => {
                    text.push_str(&format!("    meant       {what} {how}: the test says so\n"));
                }
                Fate::Meant(by) => {
                    text.push_str(&format!("    meant       {what} {how}: see `{by}`\n"));
                }
                Fate::Survived(why) => text.push_str(&format!(
                    "    SURVIVED    {what} {how}: {why}\n                = help: {}\n",
                    help(line)
                )),
            }
        }
        for name in &group.needless {
            text.push_str(&format!(
                "    note        `survive: [{name}]` is not needed\n"
            ));
        }
    }
    if groups.is_empty() {
        return "no test allows anything, so there is nothing to change\n".to_owned();
    }
    let all: usize = groups.iter().map(|group| group.lines.len()).sum();
    text.push_str(&format!(
        "\n{all} mutants: {} refused, {} allowed by another rule, {} meant, {} survived\n",
        count(groups, "refused"),
        count(groups, "other_rule"),
        count(groups, "meant"),
        count(groups, "survived")
    ));
    text
}

fn as_json(groups: &[Group<'_>]) -> Value {
    let tests = groups.iter().map(|group| {
        let mutants = group.lines.iter().map(|line| {
            let by = match &line.fate {
                Fate::Refused => None,
                Fate::OtherRule(by) | Fate::Meant(by) | Fate::Survived(by) => Some(by),
            };
            json!({ "what": line.what, "how": line.how, "fate": line.fate.label(), "by": by })
        });
        json!({
            "file": group.trial.file, "line": group.trial.line, "test": group.trial.name,
            "mutants": mutants.collect::<Vec<_>>(), "needless": group.needless,
        })
    });
    json!({
        "good": !groups.is_empty() && count(groups, "survived") == 0,
        "refused": count(groups, "refused"), "other_rule": count(groups, "other_rule"),
        "meant": count(groups, "meant"), "survived": count(groups, "survived"),
        "tests": tests.collect::<Vec<_>>(),
    })
}
