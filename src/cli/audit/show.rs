//! `portcullis audit show`: everything about one request.

use super::ask::{listed, search_records};
use super::from::{Folder, From};
use super::policy::{Loaded, configurations, rule};
use crate::adapters::journal::scan::cores;
use crate::adapters::journal::search::{Search, Told};
use crate::audit::query::Query;
use crate::audit::query::field::Fields;
use crate::audit::record::Time;
use crate::audit::redact::{ID, cut};
use crate::cli::exit;
use serde_json::{Value, json};
use std::fmt::Write;
use std::ops::ControlFlow;

/// Clocks of gateways and the ids that they give out may differ by so much, in milliseconds.
const SLACK: u64 = 3_600_000;

/// Which request.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Its id, from the field `Portcullis-Request-Id` of the reply, a log or `audit query`
    request_id: String,
    #[command(flatten)]
    from: From,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is known of a request.
struct Shown {
    /// Its records, in order.
    records: Vec<Value>,
    /// The first checkpoint behind them.
    checkpoint: Option<Value>,
    configuration: Option<Loaded>,
    /// The deciding rule's text, with its file.
    rule: Option<(String, String)>,
    near: Option<(String, String)>,
    faults: u64,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    match answer(arguments) {
        Ok(code) | Err(code) => code,
    }
}

fn answer(arguments: &Arguments) -> Result<u8, u8> {
    let mut faults = 0;
    let mut found = Vec::new();
    for folder in arguments.from.folders()? {
        let shown = find(&folder, &arguments.request_id)?;
        faults += shown.faults;
        if !shown.records.is_empty() {
            found.push(shown);
        }
    }
    if arguments.json {
        let all: Vec<Value> = found.iter().map(as_json).collect();
        println!("{:#}", Value::Array(all));
    } else if found.is_empty() {
        eprintln!(
            "no request `{}` is in the journal",
            cut(&arguments.request_id, ID)
        );
    } else {
        for shown in &found {
            print!("{}", as_text(shown));
        }
    }
    Ok(match (faults, found.is_empty()) {
        (0, false) => exit::YES,
        (0, true) => exit::NO,
        (_, _) => exit::INTEGRITY,
    })
}

fn find(folder: &Folder, id: &str) -> Result<Shown, u8> {
    // An id says when it was given out, which spares reading what is older.
    let begun = ulid::Ulid::from_string(id).ok();
    let begun = begun.map(|id| Time(id.timestamp_ms().saturating_sub(SLACK)));
    let (mut records, mut faults) = records(folder, id, begun)?;
    if records.is_empty() && begun.is_some() {
        (records, faults) = self::records(folder, id, None)?;
    }
    let Some(last) = records.last() else {
        return Ok(Shown {
            records,
            checkpoint: None,
            configuration: None,
            rule: None,
            near: None,
            faults,
        });
    };
    let checkpoint = covering(folder, last["seq"].as_u64().unwrap_or(0), time(last))?;
    let first = records.first().unwrap_or(&Value::Null);
    let digest = first["policy_digest"].clone();
    let at = first["seq"].as_u64();
    let (configurations, _) = configurations(folder)?;
    let configuration = configurations.into_iter().rev().find(|loaded| {
        loaded.record["policy_digest"] == digest && loaded.record["seq"].as_u64() <= at
    });
    let text_of = |id: &Value| {
        let id = id.as_str()?;
        rule(folder, configuration.as_ref()?, id)
    };
    let decision = &first["decision"];
    Ok(Shown {
        rule: text_of(&decision["rule"]),
        near: text_of(&decision["near"]["rule"]),
        records,
        checkpoint,
        configuration,
        faults,
    })
}

fn time(record: &Value) -> Option<Time> {
    Time::parse(record["time"].as_str()?)
}

/// The records with this request's id, from some time on.
fn records(folder: &Folder, id: &str, since: Option<Time>) -> Result<(Vec<Value>, u64), u8> {
    let mut query = query(&format!("request_id={id}"))?;
    query.since = since;
    let mut records = Vec::new();
    let searched = search_records(folder, &query, &mut |record| {
        // A refusal is alone, and an outcome is the last.
        let last = record["kind"] != "intent";
        records.push(record);
        match last {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    Ok((records, searched.faults))
}

fn query(condition: &str) -> Result<Query, u8> {
    Query::parse(&[condition.to_owned()], &Fields::new()).map_err(|error| {
        eprintln!("error: {error}");
        exit::USAGE
    })
}

/// The first checkpoint that covers a record.
fn covering(folder: &Folder, seq: u64, since: Option<Time>) -> Result<Option<Value>, u8> {
    let mut query = query("kind=checkpoint")?;
    query.since = since.map(|time| Time(time.0.saturating_sub(SLACK)));
    let search = Search {
        query: &query,
        records: true,
        threads: cores(),
    };
    let mut found = None;
    let make = |line: &[u8], _: Option<&[u8]>, _: &_| serde_json::from_slice::<Value>(line);
    search.run(&listed(folder)?, &make, &mut |told| {
        if let Told::Found(Ok(checkpoint)) = told
            && checkpoint["size"].as_u64() >= Some(seq)
        {
            found = Some(checkpoint);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    Ok(found)
}

fn as_json(shown: &Shown) -> Value {
    let rule = |rule: &Option<(String, String)>| {
        let rule = rule.as_ref();
        rule.map(|(file, text)| json!({ "file": file, "text": text }))
    };
    json!({
        "records": shown.records,
        "rule": rule(&shown.rule),
        "near": rule(&shown.near),
        "configuration": shown.configuration.as_ref().map(|loaded| &loaded.record),
        "checkpoint": shown.checkpoint,
    })
}

/// A value as it is shown.
fn word(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => cut(text, ID).into_owned(),
        Value::Array(items) => items.iter().map(word).collect::<Vec<_>>().join(", "),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| format!("{}={}", cut(name, ID), word(value)))
            .collect::<Vec<_>>()
            .join(", "),
        value => value.to_string(),
    }
}

fn as_text(shown: &Shown) -> String {
    let mut out = String::new();
    for record in &shown.records {
        match record["kind"].as_str() {
            Some("intent") => out += &asked(record, shown, "allowed"),
            Some("refusal") => out += &asked(record, shown, "refused"),
            Some("outcome") => out += &ended(record),
            _ => out += &fetched(record),
        }
    }
    let first = shown.records.first().unwrap_or(&Value::Null);
    if first["kind"] == "intent" && shown.records.len() == 1 {
        out += "outcome     none yet: the call is under way, or the gateway stopped in it\n";
    }
    let records: Vec<String> = shown.records.iter().map(|r| word(&r["seq"])).collect();
    let mut say = |name: &str, what: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{name:11} {what}");
    };
    say("records", &records.join(" and "));
    match &shown.checkpoint {
        Some(checkpoint) => say(
            "covered by",
            &format!(
                "the checkpoint at record {} of {}, signed by {} (`audit verify` checks it)",
                word(&checkpoint["seq"]),
                word(&checkpoint["time"]),
                word(&checkpoint["key_id"])
            ),
        ),
        None => say("covered by", "no checkpoint yet"),
    }
    out
}

fn asked(record: &Value, shown: &Shown, effect: &str) -> String {
    let mut out = String::new();
    let mut say = |name: &str, what: String| {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{name:11} {what}");
    };
    say("request", word(&record["request_id"]));
    say("time", word(&record["time"]));
    let caller = &record["caller"];
    match caller.is_object() {
        true => {
            let mut who = format!(
                "{} of {}",
                word(&caller["subject"]),
                word(&caller["issuer"])
            );
            if !caller["client"].is_null() {
                who += &format!(", by {}", word(&caller["client"]));
            }
            let actors = caller["actors"].as_array().into_iter().flatten();
            for actor in actors {
                who += &format!(", acted for by {}", word(&actor["subject"]));
            }
            say("caller", who);
            say(
                "token",
                format!(
                    "fingerprint {}, grant {}, proof {}, scopes [{}]",
                    word(&caller["fingerprint"]),
                    word(&caller["grant"]),
                    word(&caller["proof"]),
                    word(&caller["scopes"])
                ),
            );
            for (name, which) in [("claims", "claims"), ("no_claims", "no value")] {
                if caller[name].is_object() {
                    say(which, word(&caller[name]));
                }
            }
        }
        false => say("caller", "not known: no token was accepted".to_owned()),
    }
    let source = &record["source"];
    let listener = word(&source["listener"]);
    say(
        "from",
        format!("{} at listener {listener}", word(&source["addr"])),
    );
    let mut what = format!(
        "{} at {}",
        word(&record["operation"]),
        word(&record["agent"])
    );
    if record["skill"].is_object() {
        let skill = &record["skill"];
        what += &format!(
            ", skill {} (read from {}, {})",
            word(&skill["id"]),
            word(&skill["source"]),
            word(&skill["assurance"])
        );
    }
    say("call", what);
    say(
        "in",
        format!(
            "{} {}, {} {}",
            word(&record["request"]["method"]),
            word(&record["request"]["path"]),
            word(&record["binding"]),
            word(&record["version"])
        ),
    );
    for (name, member) in [
        ("message", "message_id"),
        ("task", "task_id"),
        ("context", "context_id"),
        ("references", "reference_task_ids"),
        ("webhooks", "webhook_hosts"),
        ("trace", "trace_id"),
    ] {
        if !record[member].is_null() {
            say(name, word(&record[member]));
        }
    }
    say(
        "body",
        format!(
            "{} bytes, sha256 {}",
            record["request"]["bytes"],
            word(&record["request"]["sha256"])
        ),
    );
    let decision = &record["decision"];
    say(
        "decision",
        format!("{effect}: {}", word(&decision["reason"])),
    );
    if !decision["rule"].is_null() {
        say("rule", word(&decision["rule"]));
    }
    let near = &decision["near"];
    if near.is_object() {
        let on = [&near["claim"], &near["content"]]
            .into_iter()
            .find(|v| !v.is_null());
        let on = on.map_or_else(String::new, |on| format!(" {}", word(on)));
        say(
            "nearest",
            format!("{}:{on} {}", word(&near["rule"]), word(&near["why"])),
        );
    }
    for (file, text) in [&shown.rule, &shown.near].into_iter().flatten() {
        say("its text", cut(file, ID).into_owned());
        for line in text.lines() {
            say("", cut(line, ID).into_owned());
        }
    }
    for shadow in decision["shadow"].as_array().into_iter().flatten() {
        say("shadow", word(shadow));
    }
    let digest = word(&record["policy_digest"]);
    let since = shown.configuration.as_ref();
    let since = since.map_or_else(String::new, |loaded| {
        format!(", in force since {}", word(&loaded.record["time"]))
    });
    say("policy", format!("{digest}{since}"));
    if record["kind"] == "refusal" {
        say(
            "answer",
            format!("HTTP {}, {}", record["http_status"], word(&record["fault"])),
        );
        for member in ["token_reason", "error"] {
            if !record[member].is_null() {
                say("because", word(&record[member]));
            }
        }
        say("delivery", delivery(record));
    }
    out
}

fn delivery(record: &Value) -> String {
    format!(
        "{}; reached the agent: {}",
        word(&record["delivery"]),
        word(&record["reached"])
    )
}

fn ended(record: &Value) -> String {
    let mut out = String::new();
    let mut say = |name: &str, what: String| {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{name:11} {what}");
    };
    for attempt in record["attempts"].as_array().into_iter().flatten() {
        let error = match attempt["error"].is_null() {
            true => String::new(),
            false => format!(", {}", word(&attempt["error"])),
        };
        say(
            "attempt",
            format!(
                "{} at {} ms, {} ms, to stage {}, {} of {} bytes{error}",
                word(&attempt["peer"]),
                attempt["started_ms"],
                attempt["ms"],
                word(&attempt["stage"]),
                attempt["bytes_sent"],
                attempt["body_len"]
            ),
        );
    }
    say("delivery", delivery(record));
    let response = &record["response"];
    if response.is_object() {
        say("response", word(response));
    }
    for (name, member) in [("task", "task_id"), ("context", "context_id")] {
        if !record[member].is_null() {
            say(
                name,
                format!("{} (named by the reply)", word(&record[member])),
            );
        }
    }
    for artifact in record["artifacts"].as_array().into_iter().flatten() {
        say("artifact", word(artifact));
    }
    say(
        "ended",
        format!("{} at {}", word(&record["ended"]), word(&record["time"])),
    );
    say("ms", word(&record["ms"]));
    out
}

fn fetched(record: &Value) -> String {
    format!("{:11} {}\n", word(&record["kind"]), word(record))
}
