//! `portcullis can-i`: whether a caller may do something, or all that it may do.

use super::caller::{Who, calling, described, told};
use super::judged_json;
use super::suite::Suite;
use crate::a2a::Operation;
use crate::cli::exit;
use crate::identity::{Principal, TokenFault};
use crate::pipeline::trial::Judged;
use crate::policy::mutate::name_of;
use crate::policy::trial::{Calling, is_message};
use crate::policy::{Asked, Effect, explain};
use serde_json::{Value, json};
use std::path::PathBuf;

/// What to ask.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The operation by its 1.0 name, or `backend`
    #[arg(value_name = "OPERATION", required_unless_present = "list")]
    operation: Option<String>,
    /// The agent
    #[arg(long, value_name = "NAME", required_unless_present = "list")]
    agent: Option<String>,
    /// The skill that a message names; without it, none
    #[arg(long, value_name = "NAME", conflicts_with = "list")]
    skill: Option<String>,
    /// The message, as A2A 1.0 writes it, in JSON or YAML; without it, one with a text
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    message: Option<PathBuf>,
    /// Every agent, operation and skill, or those of --agent
    #[arg(long, conflicts_with = "operation")]
    list: bool,
    #[command(flatten)]
    who: Who,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> u8 {
    asked(arguments).unwrap_or_else(|code| code)
}

fn asked(arguments: &Arguments) -> Result<u8, u8> {
    let (suite, caller) = arguments.who.open()?;
    let untold = caller.recorded.map(|recorded| recorded.untold);
    if let Some(untold) = untold.filter(|untold| !untold.is_empty()) {
        eprintln!(
            "warning: the record does not tell {}: counted as missing",
            untold.join(", ")
        );
    }
    let whose = caller.principal.as_ref().map_err(|fault| *fault);
    if arguments.list {
        return list(arguments, &suite, whose);
    }
    let calling = described(
        &suite.snapshot,
        (arguments.operation.as_deref(), arguments.agent.as_deref()),
        arguments.skill.as_deref(),
        arguments.message.as_deref(),
    )?;
    let judged = suite.bench().judge(whose, &calling);
    let yes = judged.decision.effect == Effect::Allow;
    if arguments.json {
        let mut report = judged_json(&judged);
        report["yes"] = json!(yes);
        println!("{report:#}");
    } else {
        let word = if yes { "yes" } else { "no" };
        println!("{word}: {}", says(whose, &judged));
    }
    Ok(if yes { exit::YES } else { exit::NO })
}

fn says(whose: Result<&Principal, TokenFault>, judged: &Judged) -> String {
    match whose {
        Ok(_) => explain(&judged.decision),
        Err(fault) => format!("the token is refused by {} ({})", fault.rule, fault.code),
    }
}

/// One row of the list.
struct Row<'s> {
    agent: &'s str,
    operation: &'static str,
    skill: Option<&'s str>,
    judged: Judged,
}

fn list(
    arguments: &Arguments,
    suite: &Suite,
    whose: Result<&Principal, TokenFault>,
) -> Result<u8, u8> {
    if let Some(agent) = &arguments.agent {
        // Only to find out whether it is there.
        calling(&suite.snapshot, agent, "GetTask", None)?;
    }
    let named = |name: &str| arguments.agent.as_ref().is_none_or(|agent| *agent == *name);
    let mut rows = Vec::new();
    for agent in suite.snapshot.agents.iter().filter(|a| named(&a.name)) {
        let operations = Operation::ALL.into_iter().map(Asked::Operation);
        let backend = (!agent.backend_paths.is_empty()).then_some(Asked::Backend);
        for asked in operations.chain(backend) {
            let skills: Vec<Option<&str>> = match is_message(asked) {
                true if !agent.skills.is_empty() => {
                    agent.skills.iter().map(|skill| Some(&**skill)).collect()
                }
                _ => vec![None],
            };
            for skill in skills {
                let calling = Calling {
                    agent: agent.index,
                    asked,
                    skill: skill.map(Box::from),
                    message: None,
                    owned: true,
                };
                rows.push(Row {
                    agent: &agent.name,
                    operation: name_of(asked),
                    skill,
                    judged: suite.bench().judge(whose, &calling),
                });
            }
        }
    }
    let any = rows
        .iter()
        .any(|row| row.judged.decision.effect == Effect::Allow);
    if arguments.json {
        let rows: Vec<Value> = rows.iter().map(row_json).collect();
        println!("{:#}", json!({ "rows": rows }));
    } else {
        if let Ok(principal) = whose {
            println!("{}\n", told(principal));
        }
        print!("{}", table(&rows, whose));
    }
    Ok(if any { exit::YES } else { exit::NO })
}

fn row_json(row: &Row<'_>) -> Value {
    json!({ "agent": row.agent, "operation": row.operation, "skill": row.skill,
        "decision": judged_json(&row.judged) })
}

fn table(rows: &[Row<'_>], whose: Result<&Principal, TokenFault>) -> String {
    let width = |column: &dyn Fn(&Row<'_>) -> usize, least: usize| {
        rows.iter().map(column).max().unwrap_or(0).max(least)
    };
    let agents = width(&|row| row.agent.len(), "agent".len());
    let operations = width(&|row| row.operation.len(), "operation".len());
    let skills = width(&|row| row.skill.unwrap_or("-").len(), "skill".len());
    let line = |agent: &str, operation: &str, skill: &str, may: &str, why: &str| {
        let line = format!(
            "{agent:<agents$}  {operation:<operations$}  {skill:<skills$}  {may:<3}  {why}"
        );
        format!("{}\n", line.trim_end())
    };
    let mut text = line("agent", "operation", "skill", "may", "because");
    for row in rows {
        let yes = row.judged.decision.effect == Effect::Allow;
        let may = if yes { "yes" } else { "no" };
        let why = says(whose, &row.judged);
        text.push_str(&line(
            row.agent,
            row.operation,
            row.skill.unwrap_or("-"),
            may,
            &why,
        ));
    }
    text
}
