//! `portcullis replay`: recorded decisions, judged again under a candidate.

use super::acknowledge::{Acknowledge, Acknowledged};
use super::source::{compile, policies};
use super::window::{Passed, Window};
use crate::cli::exit;
use crate::config::check::load;
use crate::policy::PolicySet;
use crate::policy::diff::Side;
use crate::policy::replay::{Group, Judge, RecordedSkill, Tally, Turn};
use crate::source::Problems;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// What to replay.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The gateway file, which says where the journal is
    #[arg(long, value_name = "FILE", default_value = "config/gateway.yaml")]
    config: PathBuf,
    /// A policy file or a folder of them, in the place of the gateway file's policies; may be
    /// repeated
    #[arg(long, value_name = "PATH")]
    policy: Vec<PathBuf>,
    #[command(flatten)]
    window: Window,
    #[command(flatten)]
    acknowledge: Acknowledge,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What came of it.
struct Replayed {
    counts: [(Turn, u64); 4],
    groups: Vec<Group>,
    beyond: u64,
    passed: Passed,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> u8 {
    let acknowledged = match arguments.acknowledge.read() {
        Ok(acknowledged) => acknowledged,
        Err(error) => {
            eprintln!("error: {error}");
            return exit::INVALID;
        }
    };
    let wrong = |problems: Problems| {
        eprint!("{problems}");
        exit::INVALID
    };
    let snapshot = match load(&arguments.config) {
        Ok(loaded) => loaded.snapshot,
        Err(problems) => return wrong(problems),
    };
    let world = snapshot.world();
    let candidate: Arc<PolicySet> = if arguments.policy.is_empty() {
        Arc::clone(&snapshot.policy)
    } else {
        let documents = policies(&arguments.policy);
        match documents.and_then(|documents| compile(&documents, &world)) {
            Ok(candidate) => candidate,
            Err(problems) => return wrong(problems),
        }
    };
    let side = Side {
        policies: &candidate,
        world: &world,
    };
    let judge = Judge::new(side);
    let mut tally = Tally::default();
    let passed = arguments.window.each(&snapshot, true, |recorded| {
        tally.add(recorded, &judge.judge(recorded), &side);
    });
    let passed = match passed {
        Ok(passed) => passed,
        Err(error) => {
            eprintln!("error: {error}");
            return exit::INVALID;
        }
    };
    let turns = [
        Turn::NewlyAllowed,
        Turn::NewlyRefused,
        Turn::Undetermined,
        Turn::Same,
    ];
    let replayed = Replayed {
        counts: turns.map(|turn| (turn, tally.count(turn))),
        beyond: tally.beyond(),
        groups: tally.groups(),
        passed,
    };
    told(arguments, &replayed, &acknowledged)
}

fn told(arguments: &Arguments, replayed: &Replayed, acknowledged: &Acknowledged) -> u8 {
    let allowed = || {
        let groups = replayed.groups.iter();
        groups.filter(|group| group.turn == Turn::NewlyAllowed)
    };
    acknowledged.warn_stale(allowed().map(|group| &*group.id));
    let counted: u64 = allowed().map(|group| group.count).sum();
    let newly = replayed
        .counts
        .iter()
        .find(|(turn, _)| *turn == Turn::NewlyAllowed);
    // What is in no group has no id that could have been reviewed.
    let nameless = newly.is_some_and(|(_, count)| *count > counted);
    let good = !nameless && allowed().all(|group| acknowledged.has(&group.id));
    if arguments.json {
        println!("{:#}", as_json(replayed, acknowledged, good));
    } else {
        print!("{}", as_text(replayed, acknowledged));
    }
    if good { exit::YES } else { exit::NO }
}

fn label(turn: Turn) -> &'static str {
    match turn {
        Turn::NewlyAllowed => "newly_allowed",
        Turn::NewlyRefused => "newly_refused",
        Turn::Undetermined => "undetermined",
        Turn::Same => "same",
    }
}

fn as_text(replayed: &Replayed, acknowledged: &Acknowledged) -> String {
    let mut text = String::new();
    for (turn, count) in &replayed.counts {
        text += &format!("{}: {count} calls\n", label(*turn).replace('_', " "));
        for group in replayed.groups.iter().filter(|group| group.turn == *turn) {
            text += &group_text(group, acknowledged);
        }
    }
    if replayed.beyond > 0 {
        text += &format!(
            "{} of them by further callers, who are too many to name\n",
            replayed.beyond
        );
    }
    let Passed {
        undecided, faults, ..
    } = replayed.passed;
    text += &format!("passed over: {undecided} calls that policy did not decide");
    text += &match faults {
        0 => "\n".to_owned(),
        faults => format!(", {faults} places of the journal that hold no record\n"),
    };
    text
}

fn group_text(group: &Group, acknowledged: &Acknowledged) -> String {
    let (issuer, subject, client) = &group.caller;
    let mut text = format!("  {issuer} / {subject}");
    if let Some(client) = client {
        text += &format!(" by {client}");
    }
    text += &format!(" at `{}`", group.agent);
    text += &match &group.skill {
        RecordedSkill::Known(skill) => format!(", skill `{skill}`"),
        RecordedSkill::Unestablished => ", no skill that could be established".to_owned(),
        RecordedSkill::None | RecordedSkill::Unrecorded => String::new(),
    };
    let operations: Vec<&str> = group.operations.iter().copied().collect();
    text += &format!(": {} × {}", group.count, operations.join(", "));
    let rules: Vec<&str> = group.rules.iter().map(AsRef::as_ref).collect();
    if !rules.is_empty() {
        text += &format!("; by {}", rules.join(", "));
    }
    for lacks in &group.lacks {
        text += &format!("; {lacks}");
    }
    text += &format!("; such as {}", group.examples.join(", "));
    if group.turn == Turn::NewlyAllowed {
        let mark = match acknowledged.has(&group.id) {
            true => " (acknowledged)",
            false => "",
        };
        text += &format!("\n    id {}{mark}", group.id);
    }
    text.push('\n');
    text
}

fn as_json(replayed: &Replayed, acknowledged: &Acknowledged, good: bool) -> Value {
    let groups: Vec<Value> = replayed
        .groups
        .iter()
        .map(|group| {
            let (issuer, subject, client) = &group.caller;
            let skill = match &group.skill {
                RecordedSkill::Known(skill) => Some(skill),
                RecordedSkill::Unestablished | RecordedSkill::None | RecordedSkill::Unrecorded => {
                    None
                }
            };
            let rules: Vec<&str> = group.rules.iter().map(AsRef::as_ref).collect();
            let lacks: Vec<String> = group.lacks.iter().map(ToString::to_string).collect();
            json!({
                "id": group.id, "turn": label(group.turn),
                "caller": { "issuer": issuer, "subject": subject, "client": client },
                "agent": group.agent, "skill": skill,
                "operations": group.operations, "rules": rules, "lacks": lacks,
                "count": group.count, "examples": group.examples,
                "acknowledged": acknowledged.has(&group.id),
            })
        })
        .collect();
    let counts = replayed.counts.iter();
    let counts: serde_json::Map<String, Value> = counts
        .map(|(turn, count)| (label(*turn).to_owned(), json!(count)))
        .collect();
    json!({
        "good": good, "counts": counts, "groups": groups, "beyond": replayed.beyond,
        "passed_over": replayed.passed.undecided, "faults": replayed.passed.faults,
    })
}
