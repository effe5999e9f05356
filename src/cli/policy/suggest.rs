//! `portcullis suggest`: narrower rules, from what the journal shows to be used.

use super::window::{Passed, Window};
use crate::cli::exit;
use crate::config::check::load;
use crate::config::snapshot::Snapshot;
use crate::policy::diff::Side;
use crate::policy::replay::Judge;
use crate::policy::suggest::{Proposal, Suggestion, Usage, listed_claims, suggest};
use crate::source::{Document, Problems};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;

/// What to look at.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The gateway file, which says where policies and journal are
    #[arg(long, value_name = "FILE", default_value = "config/gateway.yaml")]
    config: PathBuf,
    #[command(flatten)]
    window: Window,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What came of it.
struct Suggested {
    usage: Usage,
    passed: Passed,
    suggestions: Vec<Suggestion>,
    /// Rules for which the replay did not bear a suggestion out.
    fallen: Vec<String>,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> u8 {
    let snapshot = match load(&arguments.config) {
        Ok(loaded) => loaded.snapshot,
        Err(problems) => return wrong(&problems),
    };
    let mut documents = Vec::new();
    for file in &snapshot.policies {
        match Document::parse(&file.path.display().to_string(), &file.text) {
            Ok(document) => documents.push(document),
            Err(problems) => return wrong(&problems),
        }
    }
    let suggested = match look(arguments, &snapshot, &documents) {
        Ok(suggested) => suggested,
        Err(error) => {
            eprintln!("error: {error}");
            return exit::INVALID;
        }
    };
    if arguments.json {
        println!("{:#}", as_json(&suggested));
    } else {
        print!("{}", as_text(&suggested));
    }
    // Without a call nothing is known to be needed, and everything would be suggested away.
    if suggested.usage.allowed == 0 {
        exit::NO
    } else {
        exit::YES
    }
}

fn wrong(problems: &Problems) -> u8 {
    eprint!("{problems}");
    exit::INVALID
}

fn look(
    arguments: &Arguments,
    snapshot: &Snapshot,
    documents: &[Document],
) -> Result<Suggested, String> {
    let world = snapshot.world();
    let side = Side {
        policies: &snapshot.policy,
        world: &world,
    };
    let judge = Judge::new(side);
    let claims: HashMap<String, Vec<Box<str>>> = listed_claims(documents).into_iter().collect();
    let mut usage = Usage::default();
    let passed = arguments.window.each(snapshot, true, |recorded| {
        let listed = |rule: &str| claims.get(rule).map_or(&[][..], Vec::as_slice);
        usage.add(recorded, &judge.judge(recorded), listed);
    })?;
    let mut proposals: Vec<Proposal> = if usage.allowed == 0 {
        Vec::new()
    } else {
        suggest(documents, &world, &usage)
    };
    arguments.window.each(snapshot, false, |recorded| {
        if !recorded.allowed {
            return;
        }
        let judged = judge.judge(recorded);
        for proposal in &mut proposals {
            proposal.replay(recorded, &judged, &snapshot.policy, &world);
        }
    })?;
    let (held, fallen): (Vec<Proposal>, Vec<Proposal>) =
        proposals.into_iter().partition(|proposal| proposal.holds);
    Ok(Suggested {
        usage,
        passed,
        suggestions: held.into_iter().map(|p| p.suggestion).collect(),
        fallen: fallen
            .iter()
            .map(|p| p.suggestion.rule.to_string())
            .collect(),
    })
}

fn as_text(suggested: &Suggested) -> String {
    let mut text = match &suggested.passed.span {
        Some((first, last)) => format!(
            "{} allowed and {} refused calls from {first} to {last}\n",
            suggested.usage.allowed, suggested.usage.refused
        ),
        None => "no decision of policy in this time\n".to_owned(),
    };
    for suggestion in &suggested.suggestions {
        let (file, line) = &suggestion.place;
        text += &format!("\n# {file}:{line}, rule `{}`: ", suggestion.rule);
        text += &match &suggestion.usage {
            None => "never used".to_owned(),
            Some(usage) => format!(
                "{} calls, the first at {}, the last at {}",
                usage.count, usage.first, usage.last
            ),
        };
        match &suggestion.yaml {
            Some(yaml) => {
                text += &format!("\n# never used: {}\n{yaml}", suggestion.unused.join("; "));
            }
            None => text += "; remove it\n",
        }
    }
    if !suggested.fallen.is_empty() {
        text += &format!(
            "\nno suggestion, since a call would be refused or its record does not say enough: {}\n",
            suggested.fallen.join(", ")
        );
    }
    if suggested.suggestions.is_empty() && suggested.usage.allowed > 0 {
        text += "nothing to suggest: every part of every allow was used\n";
    } else if !suggested.suggestions.is_empty() {
        text += "\nreplayed over these calls, each of these alone refuses none of them\n";
    }
    text
}

fn as_json(suggested: &Suggested) -> Value {
    let suggestions: Vec<Value> = suggested
        .suggestions
        .iter()
        .map(|suggestion| {
            let usage = suggestion.usage.as_ref();
            json!({
                "rule": &*suggestion.rule, "file": suggestion.place.0, "line": suggestion.place.1,
                "unused": suggestion.unused, "yaml": suggestion.yaml,
                "calls": usage.map_or(0, |u| u.count),
                "first": usage.map(|u| &u.first), "last": usage.map(|u| &u.last),
                "newly_refused": 0,
            })
        })
        .collect();
    let span = suggested.passed.span.as_ref();
    json!({
        "window": { "first": span.map(|s| &s.0), "last": span.map(|s| &s.1),
            "allowed": suggested.usage.allowed, "refused": suggested.usage.refused },
        "suggestions": suggestions, "not_borne_out": suggested.fallen,
        "faults": suggested.passed.faults,
    })
}
