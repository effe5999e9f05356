//! `portcullis diff`: what a change of policies allows and refuses, with somebody who shows it.

use super::acknowledge::{Acknowledge, Acknowledged};
use super::source::Source;
use crate::cli::exit;
use crate::config::check::load;
use crate::config::snapshot::Snapshot;
use crate::identity::issuer::Grant;
use crate::policy::diff::{COMBINATIONS, Change, Difference, Direction, Side, Witness, compare};
use crate::policy::{Decision, Effect, World};
use crate::source::Problems;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What to compare.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    /// What is in force: a policy file, a folder of them, or a gateway file
    old: PathBuf,
    /// What is to be
    new: PathBuf,
    /// The gateway file whose agents and issuers policies are about; default: the one of OLD and
    /// NEW that is one, else config/gateway.yaml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    acknowledge: Acknowledge,
    /// Most combinations of claim values that are looked at for one rule and kind of call
    #[arg(long, value_name = "NUMBER", default_value_t = COMBINATIONS)]
    combinations: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> u8 {
    let acknowledged = match arguments.acknowledge.read() {
        Ok(acknowledged) => acknowledged,
        Err(error) => {
            eprintln!("error: {error}");
            return exit::INVALID;
        }
    };
    match compared(arguments) {
        Ok(found) => told(arguments, &found, &acknowledged),
        Err(problems) => {
            eprint!("{problems}");
            exit::INVALID
        }
    }
}

/// A difference, and the issuers that its witnesses are of.
struct Compared {
    difference: Difference,
    payloads: Vec<Value>,
}

fn compared(arguments: &Arguments) -> Result<Compared, Problems> {
    let (old, new) = (Source::read(&arguments.old)?, Source::read(&arguments.new)?);
    let other = match &arguments.config {
        Some(file) => Some(configuration(file)?),
        None if old.snapshot().or(new.snapshot()).is_none() => {
            Some(configuration(Path::new("config/gateway.yaml"))?)
        }
        None => None,
    };
    let other = other.as_ref().or(new.snapshot()).or(old.snapshot());
    let world = |source: &Source| -> Option<&Snapshot> {
        // A gateway file is judged in its own world.
        source.snapshot().is_none().then_some(other).flatten()
    };
    let before = known(old.snapshot().or(world(&old)));
    let after = known(new.snapshot().or(world(&new)));
    let (was, is) = (old.compile(&before)?, new.compile(&after)?);
    let side = |policies, world| Side { policies, world };
    let difference = compare(
        side(&was, &before),
        side(&is, &after),
        arguments.combinations,
    );
    let payloads = difference.changes.iter().map(|change| {
        let caller = &change.witness.caller;
        let mut issuers = after.issuers.iter().chain(before.issuers);
        let issuer = issuers.find(|issuer| *issuer.name == *caller.issuer);
        issuer.map_or(Value::Null, |issuer| Value::Object(caller.payload(issuer)))
    });
    let payloads = payloads.collect();
    Ok(Compared {
        difference,
        payloads,
    })
}

fn known(snapshot: Option<&Snapshot>) -> World<'_> {
    snapshot.map(Snapshot::world).unwrap_or_default()
}

fn configuration(file: &Path) -> Result<Snapshot, Problems> {
    load(file).map(|loaded| loaded.snapshot)
}

fn told(arguments: &Arguments, found: &Compared, acknowledged: &Acknowledged) -> u8 {
    let difference = &found.difference;
    let open: Vec<&str> = difference
        .widening()
        .filter(|id| !acknowledged.has(id))
        .collect();
    acknowledged.warn_stale(difference.widening());
    if arguments.json {
        println!("{:#}", as_json(found, acknowledged, open.is_empty()));
    } else {
        print!("{}", as_text(difference, acknowledged, open.len()));
    }
    if open.is_empty() { exit::YES } else { exit::NO }
}

fn as_text(difference: &Difference, acknowledged: &Acknowledged, open: usize) -> String {
    let mut text = String::new();
    for (direction, title) in [
        (Direction::Allowed, "becomes allowed"),
        (Direction::Refused, "becomes refused"),
    ] {
        let mut agent = "";
        for change in difference
            .changes
            .iter()
            .filter(|c| c.direction == direction)
        {
            if *change.agent != *agent {
                agent = &change.agent;
                text += &format!("{title} at `{agent}`\n");
            }
            let mark = mark(direction, acknowledged, &change.id);
            text += &format!("  rule `{}`: {}{mark}\n", change.rule, change.cause());
            text += &format!("    {}\n", calls(change));
            text += &format!("    {}\n", change.witness.sentence(&change.agent));
            text += &id_line(direction, &change.id);
        }
        let mut hosts = difference.hosts.iter().filter(|h| h.direction == direction);
        for host in hosts.by_ref() {
            let mark = mark(direction, acknowledged, &host.id);
            text += &format!(
                "{title} at `{}`: webhooks to {}{mark}\n",
                host.agent, host.host
            );
            text += &id_line(direction, &host.id);
        }
    }
    for one in &difference.undecided {
        let mark = mark(Direction::Allowed, acknowledged, &one.id);
        text += &format!(
            "undecided at `{}`: rule `{}`, {}: {}{mark}\n",
            one.agent,
            one.rule,
            one.operations.join(", "),
            one.why
        );
        text += &id_line(Direction::Allowed, &one.id);
    }
    for entry in &difference.issuers {
        let mark = mark(Direction::Allowed, acknowledged, &entry.id);
        text += &format!(
            "undecided: the entry of issuer `{}` takes something else from the same token{mark}\n",
            entry.issuer
        );
        text += &id_line(Direction::Allowed, &entry.id);
    }
    for shadow in &difference.shadows {
        text += &format!("in shadow mode, not in force: {shadow}\n");
    }
    let count = |direction| {
        let changes = difference
            .changes
            .iter()
            .filter(|c| c.direction == direction);
        let hosts = difference.hosts.iter().filter(|h| h.direction == direction);
        changes.count() + hosts.count()
    };
    let _ = writeln!(
        text,
        "{} become allowed, {} become refused, {} are undecided; {open} to be reviewed",
        count(Direction::Allowed),
        count(Direction::Refused),
        difference.undecided.len() + difference.issuers.len()
    );
    text
}

fn mark(direction: Direction, acknowledged: &Acknowledged, id: &str) -> &'static str {
    if direction == Direction::Allowed && acknowledged.has(id) {
        " (acknowledged)"
    } else {
        ""
    }
}

/// Only what widens is acknowledged.
fn id_line(direction: Direction, id: &str) -> String {
    match direction {
        Direction::Allowed => format!("    id {id}\n"),
        Direction::Refused => String::new(),
    }
}

fn calls(change: &Change) -> String {
    let mut text = change.operations.join(", ");
    if !change.skills.is_empty() {
        let name = |skill: &Option<Box<str>>| match skill {
            Some(skill) => format!("`{skill}`"),
            None => "one that cannot be established".to_owned(),
        };
        let skills: Vec<String> = change.skills.iter().map(name).collect();
        let _ = write!(text, "; skills: {}", skills.join(", "));
    }
    let grants: Vec<&str> = change.grants.iter().map(|g| grant(*g)).collect();
    let _ = write!(
        text,
        "; issuers: {}; grants: {}",
        change.issuers.join(", "),
        grants.join(", ")
    );
    text
}

fn grant(grant: Grant) -> &'static str {
    match grant {
        Grant::Agent => "agent",
        Grant::Full => "full",
    }
}

fn as_json(found: &Compared, acknowledged: &Acknowledged, good: bool) -> Value {
    let difference = &found.difference;
    let way = |direction| match direction {
        Direction::Allowed => "allowed",
        Direction::Refused => "refused",
    };
    let changes = difference.changes.iter().zip(&found.payloads);
    let changes: Vec<Value> = changes
        .map(|(change, payload)| {
            let grants: Vec<&str> = change.grants.iter().map(|g| grant(*g)).collect();
            let issuers: Vec<&str> = change.issuers.iter().map(AsRef::as_ref).collect();
            json!({
                "id": change.id, "becomes": way(change.direction), "agent": change.agent,
                "rule": &*change.rule, "cause": change.cause(),
                "operations": change.operations, "skills": change.skills,
                "issuers": issuers, "grants": grants,
                "acknowledged": acknowledged.has(&change.id),
                "witness": witness(&change.witness, &change.agent, payload),
            })
        })
        .collect();
    let hosts: Vec<Value> = difference
        .hosts
        .iter()
        .map(|host| {
            json!({ "id": host.id, "becomes": way(host.direction), "agent": host.agent,
                "host": host.host, "acknowledged": acknowledged.has(&host.id) })
        })
        .collect();
    let undecided: Vec<Value> = difference
        .undecided
        .iter()
        .map(|one| {
            json!({ "id": one.id, "agent": one.agent, "rule": &*one.rule,
                "operations": one.operations, "why": one.why,
                "acknowledged": acknowledged.has(&one.id) })
        })
        .collect();
    let issuers: Vec<Value> = difference
        .issuers
        .iter()
        .map(|entry| {
            json!({ "id": entry.id, "issuer": entry.issuer,
                "acknowledged": acknowledged.has(&entry.id) })
        })
        .collect();
    json!({ "good": good, "issuers": issuers, "changes": changes, "webhooks": hosts, "undecided": undecided,
        "shadow": difference.shadows })
}

/// As tests of policies write it.
fn witness(witness: &Witness, agent: &str, payload: &Value) -> Value {
    let caller = &witness.caller;
    let mut call = json!({ "agent": agent, "operation": witness.operation });
    if let (Some(skill), Some(call)) = (&witness.skill, call.as_object_mut()) {
        call.insert("skill".to_owned(), json!(skill));
    }
    json!({
        "as": { "issuer": &*caller.issuer, "grant": caller.grant.map(grant),
            "proof": caller.proof.label(), "claims": payload },
        "call": call,
        "old": decision(&witness.old),
        "new": decision(&witness.new),
    })
}

fn decision(decision: &Decision) -> Value {
    let effect = match decision.effect {
        Effect::Allow => "allow",
        Effect::Deny => "deny",
    };
    json!({ "effect": effect, "reason": decision.reason, "rule": decision.rule.as_deref() })
}
