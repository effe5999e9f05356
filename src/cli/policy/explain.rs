//! `portcullis explain`: what comes of a call, and what every rule about it says.

use super::caller::{Who, described, told, usage};
use super::judged_json;
use super::recorded::{Recorded, call_of};
use super::suite::Suite;
use crate::cli::exit;
use crate::pipeline::trial::Judged;
use crate::policy::mutate::name_of;
use crate::policy::trial::is_message;
use crate::policy::{
    Asked, AskedSkill, Considered, Effect, Question, Tested, considered, decide,
    explain as in_words,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What to explain.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The operation by its 1.0 name, or `backend`; that of the request with --request
    #[arg(value_name = "OPERATION")]
    operation: Option<String>,
    /// The agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The skill that a message names; without it, none
    #[arg(long, value_name = "NAME")]
    skill: Option<String>,
    /// The message, as A2A 1.0 writes it, in JSON or YAML; without it, one with a text
    #[arg(long, value_name = "FILE")]
    message: Option<PathBuf>,
    #[command(flatten)]
    who: Who,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An explanation.
struct Explained {
    caller: String,
    call: String,
    judged: Judged,
    /// The skill of a recorded request, as it was found then.
    skill: Option<(Option<String>, String, Option<String>)>,
    considered: Vec<Considered>,
    recorded: Option<Recorded>,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> u8 {
    match explained(arguments) {
        Ok(explained) => {
            if arguments.json {
                println!("{:#}", explained.as_json());
            } else {
                print!("{}", explained.as_text());
            }
            match explained.judged.decision.effect {
                Effect::Allow => exit::YES,
                Effect::Deny => exit::NO,
            }
        }
        Err(code) => code,
    }
}

fn explained(arguments: &Arguments) -> Result<Explained, u8> {
    let (suite, caller) = arguments.who.open()?;
    if let Some(recorded) = caller.recorded {
        if arguments.operation.is_some() || arguments.agent.is_some() || arguments.skill.is_some() {
            return Err(usage(
                "the request says what was called",
                "leave out the operation, --agent and --skill",
            ));
        }
        return again(&suite, recorded);
    }
    let calling = described(
        &suite.snapshot,
        (arguments.operation.as_deref(), arguments.agent.as_deref()),
        arguments.skill.as_deref(),
        arguments.message.as_deref(),
    )?;
    let principal = caller.principal;
    let judged = suite
        .bench()
        .judge(principal.as_ref().map_err(|fault| *fault), &calling);
    let skill = judged.skill.as_ref().and_then(|skill| skill.id.clone());
    let considered = principal.as_ref().map_or_else(
        |_| Vec::new(),
        |principal| {
            suite
                .bench()
                .asked(principal, &calling, skill.as_deref(), |question| {
                    considered(&suite.policy, question)
                })
        },
    );
    Ok(Explained {
        caller: match &principal {
            Ok(principal) => told(principal),
            Err(fault) => format!(
                "nobody: the token is refused by {} ({})",
                fault.rule, fault.code
            ),
        },
        call: told_call(
            arguments.agent.as_deref().unwrap_or_default(),
            calling.asked,
        ),
        judged,
        skill: None,
        considered,
        recorded: None,
    })
}

/// A recorded request, judged by the rules of now.
fn again(suite: &Suite, recorded: Recorded) -> Result<Explained, u8> {
    let (agent, asked) = call_of(&recorded)?;
    let Some(principal) = &recorded.principal else {
        return Err(exit::NO);
    };
    let skill = recorded.skill.as_ref().and_then(|(id, ..)| id.as_deref());
    let question = Question {
        agent,
        asked,
        skill: match (is_message(asked), skill) {
            (false, _) => AskedSkill::NotAMessage,
            (true, Some(skill)) => AskedSkill::Known(skill),
            (true, None) => AskedSkill::Unknown,
        },
        principal,
        memo: None,
        // No record has it.
        content: None,
    };
    let decision = decide(&suite.policy, &question);
    let name = suite.snapshot.agents.get(agent).map(|a| a.name.to_string());
    Ok(Explained {
        caller: told(principal),
        call: told_call(&name.unwrap_or_default(), asked),
        judged: Judged {
            decision,
            skill: None,
            http: 0,
        },
        skill: recorded.skill.clone(),
        considered: considered(&suite.policy, &question),
        recorded: Some(recorded),
    })
}

fn told_call(agent: &str, asked: Asked) -> String {
    format!("{} on {agent}", name_of(asked))
}

impl Explained {
    /// The skill, with where it was read and what that is worth.
    fn skill(&self) -> Option<(Option<String>, String, Option<String>)> {
        self.skill.clone().or_else(|| {
            let skill = self.judged.skill.as_ref()?;
            Some((
                skill.id.as_deref().map(str::to_owned),
                skill.source.label().to_owned(),
                skill.assurance.map(|a| a.label().to_owned()),
            ))
        })
    }

    /// Whether a test looks at something that a record does not tell.
    fn is_untold(&self, test: &Tested) -> bool {
        self.recorded.as_ref().is_some_and(|recorded| {
            test.content || recorded.untold.iter().any(|claim| **claim == *test.claim)
        })
    }

    /// What the tests of a rule look at and a record does not tell.
    fn untold<'s>(&'s self, rule: &'s Considered) -> impl Iterator<Item = &'s str> {
        let tests = rule.tests.iter().filter(|test| self.is_untold(test));
        tests.map(|test| &*test.claim)
    }

    fn as_text(&self) -> String {
        let mut text = format!("caller    {}\ncall      {}\n", self.caller, self.call);
        if let Some((id, source, assurance)) = self.skill() {
            let id = id.unwrap_or_else(|| "unknown".to_owned());
            let worth = assurance.map(|a| format!(", assurance {a}"));
            let worth = worth.unwrap_or_default();
            text.push_str(&format!("skill     {id}, read from {source}{worth}\n"));
        }
        let decision = &self.judged.decision;
        let http = match self.judged.http {
            0 => String::new(),
            status => format!(", HTTP {status}"),
        };
        text.push_str(&format!(
            "decision  {} ({}){http}\n          {}\n",
            decision.effect.label(),
            decision.reason,
            in_words(decision)
        ));
        if let Some(recorded) = &self.recorded {
            text.push_str(&format!("then      {}\n", recorded.then));
            let untold: Vec<&str> = self
                .considered
                .iter()
                .flat_map(|c| self.untold(c))
                .collect();
            let untold: BTreeSet<&str> = untold.into_iter().collect();
            if !untold.is_empty() {
                text.push_str(&format!(
                    "untold    {}: the record does not say whether there was a value; counted as missing\n",
                    untold.into_iter().collect::<Vec<_>>().join(", ")
                ));
            }
        }
        if self.considered.is_empty() {
            text.push_str("\nno rule is about this agent and operation\n");
            return text;
        }
        text.push_str("\nrules about this agent and operation\n");
        for rule in &self.considered {
            let mark = match (rule.counts, rule.shadow) {
                (true, false) => "*",
                (true, true) => "~",
                (false, _) => " ",
            };
            let whom = if rule.for_actor {
                ", for the actor"
            } else {
                ""
            };
            let untold: Vec<&str> = self.untold(rule).collect();
            let result = match (&rule.outside, untold.is_empty()) {
                (Some(why), _) => format!("false, not about this: {why}"),
                (None, true) => rule.result.label().to_owned(),
                (None, false) => "unknown, the record does not tell".to_owned(),
            };
            text.push_str(&format!(
                "{mark} {:<5} {:<28} {result}{whom}\n",
                rule.effect.label(),
                rule.rule
            ));
            for test in &rule.tests {
                let why = test.why.map(|why| format!(": {why}")).unwrap_or_default();
                let result = if self.is_untold(test) {
                    "unknown: not in the record".to_owned()
                } else {
                    format!("{}{why}", test.result.label())
                };
                text.push_str(&format!("        {} {}: {result}\n", test.claim, test.asks));
            }
        }
        text.push_str("\n* allows, or fires: a deny does on unknown too\n");
        if self
            .considered
            .iter()
            .any(|rule| rule.shadow && rule.counts)
        {
            text.push_str("~ would, but is in shadow mode\n");
        }
        text
    }

    fn as_json(&self) -> Value {
        let rules = self.considered.iter().map(|rule| {
            let tests = rule.tests.iter().map(|test| {
                json!({ "claim": *test.claim, "content": test.content, "asks": test.asks,
                    "result": test.result.label(), "why": test.why,
                    "untold": self.is_untold(test) })
            });
            json!({
                "rule": *rule.rule, "effect": rule.effect.label(), "counts": rule.counts,
                "shadow": rule.shadow,
                "result": rule.result.label(), "outside": rule.outside,
                "for_actor": rule.for_actor, "tests": tests.collect::<Vec<_>>(),
            })
        });
        let skill = self.skill();
        let skill = skill.map(
            |(id, source, assurance)| json!({ "id": id, "source": source, "assurance": assurance }),
        );
        let mut decision = judged_json(&self.judged);
        decision["skill"] = json!(skill);
        if self.judged.http == 0 {
            decision["http"] = Value::Null;
        }
        let recorded = self.recorded.as_ref();
        json!({
            "caller": self.caller, "call": self.call, "decision": decision,
            "rules": rules.collect::<Vec<_>>(),
            "then": recorded.map(|r| &r.then), "untold": recorded.map(|r| &r.untold),
        })
    }
}
