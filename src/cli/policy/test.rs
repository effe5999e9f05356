//! `portcullis test`: the tests of policies, and what they leave untested.

use super::suite::{Named, Suite};
use crate::cli::exit;
use crate::pipeline::trial::Judged;
use crate::policy::decision::why;
use crate::policy::trial::{Miss, Trial};
use crate::policy::{Tested, considered, explain, required};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// What to test.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    named: Named,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a JUnit report to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// A test that was run.
struct Ran<'s> {
    trial: &'s Trial,
    judged: Judged,
    misses: Vec<Miss>,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> u8 {
    let suite = match Suite::open(&arguments.named) {
        Ok(suite) => suite,
        Err(code) => return code,
    };
    let ran: Vec<Ran<'_>> = suite
        .trials
        .iter()
        .map(|trial| one(&suite, trial))
        .collect();
    let failed = ran.iter().filter(|ran| !ran.misses.is_empty()).count();
    if let Some(file) = &arguments.junit
        && let Err(error) = fs::write(file, junit(&ran))
    {
        eprintln!("error: `{}` cannot be written: {error}", file.display());
        return exit::INVALID;
    }
    let coverage = Coverage::of(&suite, &ran);
    if arguments.json {
        println!("{:#}", as_json(&suite, &ran, &coverage));
    } else {
        print!("{}", as_text(&suite, &ran, &coverage));
    }
    match (ran.len(), failed) {
        (0, _) => exit::NO,
        (_, 0) => exit::YES,
        (_, _) => exit::FAILED,
    }
}

fn one<'s>(suite: &Suite, trial: &'s Trial) -> Ran<'s> {
    let judged = suite.judge(&trial.caller, &trial.call);
    let misses = trial.expect.misses(&judged.decision, judged.http);
    Ran {
        trial,
        judged,
        misses,
    }
}

/// What tests touch of the rules.
struct Coverage<'s> {
    /// By rule: how many tests it decides.
    rules: BTreeMap<&'s str, usize>,
    /// By allow and claim that it requires: whether a test of a caller that the rule is about leaves
    /// the claim out.
    left_out: BTreeMap<(&'s str, Arc<str>), bool>,
}

impl<'s> Coverage<'s> {
    fn of(suite: &'s Suite, ran: &[Ran<'_>]) -> Coverage<'s> {
        let claims = |(rule, claims): (&'s str, Vec<Arc<str>>)| {
            claims.into_iter().map(move |claim| ((rule, claim), false))
        };
        let shadow = |id: &str| suite.policy.shadows().iter().any(|s| *s.rule == *id);
        let in_force = suite.policy.ids().filter(|id| !shadow(id));
        let mut coverage = Coverage {
            rules: in_force.map(|id| (id, 0)).collect(),
            left_out: required(&suite.policy).flat_map(claims).collect(),
        };
        for ran in ran.iter().filter(|ran| ran.misses.is_empty()) {
            let decided = ran.judged.decision.rule.as_deref();
            if let Some(count) = decided.and_then(|rule| coverage.rules.get_mut(rule)) {
                *count += 1;
            }
            coverage.leaves_out(suite, ran);
        }
        coverage
    }

    fn leaves_out(&mut self, suite: &Suite, ran: &Ran<'_>) {
        let Ok(principal) = suite.principal(&ran.trial.caller) else {
            return;
        };
        let call = &ran.trial.call;
        let skill = ran
            .judged
            .skill
            .as_ref()
            .and_then(|skill| skill.id.as_deref());
        let met = suite.bench().asked(&principal, call, skill, |question| {
            considered(&suite.policy, question)
        });
        for found in met {
            if found.outside.is_some() || found.shadow {
                continue;
            }
            let missing = |test: &&Tested| test.why == Some(why::MISSING) && !test.content;
            for test in found.tests.iter().filter(missing) {
                for ((rule, claim), left_out) in &mut self.left_out {
                    *left_out |= **rule == *found.rule && *claim == test.claim;
                }
            }
        }
    }
}

fn as_text(suite: &Suite, ran: &[Ran<'_>], coverage: &Coverage<'_>) -> String {
    let mut text = String::new();
    let mut file = "";
    for ran in ran {
        if file != &*ran.trial.file {
            file = &ran.trial.file;
            text.push_str(&format!("{file}\n"));
        }
        let mark = if ran.misses.is_empty() {
            "ok  "
        } else {
            "FAIL"
        };
        text.push_str(&format!("  {mark}  {}\n", ran.trial.name));
        for miss in &ran.misses {
            text.push_str(&format!(
                "        {}: expected {}, got {}\n",
                miss.what, miss.expected, miss.got
            ));
        }
        if !ran.misses.is_empty() {
            text.push_str(&format!(
                "        line {}: {}\n",
                ran.trial.line,
                explain(&ran.judged.decision)
            ));
        }
    }
    for file in &suite.passed_over {
        text.push_str(&format!(
            "{file}: passed over, it is about another policy\n"
        ));
    }
    let untouched: Vec<&str> = coverage
        .rules
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(rule, _)| *rule)
        .collect();
    let all = coverage.rules.len();
    let _ = write!(
        text,
        "\n{} of {all} rules decide a test",
        all - untouched.len()
    );
    if !untouched.is_empty() {
        let _ = write!(text, "; none is decided by: {}", untouched.join(", "));
    }
    let there: Vec<String> = coverage
        .left_out
        .iter()
        .filter(|(_, left_out)| !**left_out)
        .map(|((rule, claim), _)| format!("{rule}: {claim}"))
        .collect();
    if !there.is_empty() {
        let _ = write!(text, "\nno test leaves out: {}", there.join(", "));
    }
    let failed = ran.iter().filter(|ran| !ran.misses.is_empty()).count();
    let _ = match ran.len() {
        0 => writeln!(text, "\nno test was found"),
        all => writeln!(text, "\n{} of {all} tests passed", all - failed),
    };
    text
}

fn as_json(suite: &Suite, ran: &[Ran<'_>], coverage: &Coverage<'_>) -> Value {
    let tests: Vec<Value> = ran.iter().map(test_json).collect();
    let rules: Vec<Value> = coverage
        .rules
        .iter()
        .map(|(rule, count)| json!({ "rule": rule, "decides": count }))
        .collect();
    let left_out: Vec<Value> = coverage
        .left_out
        .iter()
        .map(|((rule, claim), left_out)| {
            json!({ "rule": rule, "claim": **claim, "left_out": left_out })
        })
        .collect();
    json!({
        "good": !ran.is_empty() && ran.iter().all(|ran| ran.misses.is_empty()),
        "tests": tests,
        "coverage": { "rules": rules, "claims": left_out },
        "passed_over": suite.passed_over,
    })
}

fn test_json(ran: &Ran<'_>) -> Value {
    let misses: Vec<Value> = ran
        .misses
        .iter()
        .map(|m| json!({ "what": m.what, "expected": m.expected, "got": m.got }))
        .collect();
    json!({
        "file": ran.trial.file, "line": ran.trial.line, "name": ran.trial.name,
        "ok": ran.misses.is_empty(), "misses": misses, "got": super::judged_json(&ran.judged),
    })
}

/// As build servers read it.
fn junit(ran: &[Ran<'_>]) -> String {
    let mut files: Vec<&str> = ran.iter().map(|ran| &*ran.trial.file).collect();
    files.dedup();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for file in files {
        let here = || ran.iter().filter(|ran| *ran.trial.file == *file);
        let failed = here().filter(|ran| !ran.misses.is_empty()).count();
        text.push_str(&format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failed}\">\n",
            xml(file),
            here().count()
        ));
        for ran in here() {
            let head = format!(
                "    <testcase name=\"{}\" classname=\"{}\" file=\"{}\" line=\"{}\"",
                xml(&ran.trial.name),
                xml(file),
                xml(file),
                ran.trial.line
            );
            if ran.misses.is_empty() {
                text.push_str(&format!("{head}/>\n"));
                continue;
            }
            let misses = ran.misses.iter();
            let misses =
                misses.map(|m| format!("{}: expected {}, got {}", m.what, m.expected, m.got));
            let misses: Vec<String> = misses.collect();
            text.push_str(&format!(
                "{head}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n",
                xml(&misses.join("; ")),
                xml(&explain(&ran.judged.decision))
            ));
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

/// Text as XML has it; characters that XML has not are left out.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}
