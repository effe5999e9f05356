//! `portcullis audit hash`: from something an auditor holds to what the journal says of it.

use super::ask::search;
use super::from::From;
use super::keys::fingerprint_key;
use crate::audit::query::Query;
use crate::audit::query::field::Fields;
use crate::audit::redact::hidden::{Class, HidingKey};
use crate::audit::redact::{Fingerprint, ID, cut, hex};
use crate::cli::exit;
use aws_lc_rs::digest::{Context, SHA256};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Longest line of standard input, in bytes.
const MAX_VALUE: u64 = 64 << 10;

/// What to look for.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Values as a journal with redaction has them. Without any, and without --body or --token, one
    /// from each line of standard input, where no shell history keeps it
    #[arg(value_name = "VALUE", conflicts_with_all = ["body", "token"])]
    values: Vec<String>,
    /// Find the calls that carried this body, as its sender or its agent kept it
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    body: Option<PathBuf>,
    /// Find the calls of a token, which comes on standard input
    #[arg(long)]
    token: bool,
    /// A key of fingerprints. Default: the gateway file's own; may be repeated, as keys change
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    key: Vec<PathBuf>,
    #[command(flatten)]
    from: From,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let answer = match (&arguments.body, arguments.token) {
        (Some(body), _) => of_body(arguments, body),
        (None, true) => of_token(arguments),
        (None, false) => of_values(arguments),
    };
    match answer {
        Ok(code) | Err(code) => code,
    }
}

fn of_body(arguments: &Arguments, body: &Path) -> Result<u8, u8> {
    let digest = sha256(body).map_err(|error| {
        eprintln!("error: `{}` cannot be read: {error}", body.display());
        exit::INVALID
    })?;
    let conditions = ["request.sha256", "request.forwarded.sha256"];
    let conditions = conditions.map(|field| format!("{field}={digest}"));
    find(arguments, "sha256", &[digest], &conditions)
}

fn of_token(arguments: &Arguments) -> Result<u8, u8> {
    let keys = keys(arguments)?;
    let lines = lines("paste the token, then press Enter and Ctrl-D")?;
    // A header's value often comes along with its scheme.
    let token = lines
        .iter()
        .flat_map(|line| line.split_ascii_whitespace())
        .last();
    let signed = token
        .and_then(|token| token.rsplit_once('.'))
        .map(|(signed, _)| signed);
    let Some(signed) = signed.filter(|signed| signed.contains('.')) else {
        eprintln!("error: that is no signed token");
        return Err(exit::INVALID);
    };
    let prints = keys
        .iter()
        .map(|key| Fingerprint::of(key.key(), signed.as_bytes()).to_string());
    let prints: Vec<String> = prints.collect();
    let conditions: Vec<String> = prints
        .iter()
        .map(|print| format!("fingerprint={print}"))
        .collect();
    find(arguments, "fingerprint", &prints, &conditions)
}

/// Says which calls meet one of the conditions.
fn find(
    arguments: &Arguments,
    name: &str,
    hashes: &[String],
    conditions: &[String],
) -> Result<u8, u8> {
    let folders = arguments.from.folders()?;
    let fields = Fields::new();
    let mut calls: Vec<Value> = Vec::new();
    let mut known = BTreeSet::new();
    let mut faults = 0;
    for condition in conditions {
        let query = Query::parse(std::slice::from_ref(condition), &fields).map_err(|error| {
            eprintln!("error: {error}");
            exit::USAGE
        })?;
        let make = |first: &[u8], outcome: Option<&[u8]>, _: &_| {
            let read = |line: &[u8]| serde_json::from_slice(line).unwrap_or(Value::Null);
            let mut call: Value = read(first);
            if let (Some(outcome), Some(members)) = (outcome, call.as_object_mut()) {
                members.insert("outcome".to_owned(), read(outcome));
            }
            call
        };
        let searched = search(&folders, &query, false, &make, &mut |call| {
            // A call that meets two conditions is one.
            if known.insert((call["request_id"].to_string(), call["seq"].as_u64())) {
                calls.push(call);
            }
            ControlFlow::Continue(())
        })?;
        faults = faults.max(searched.faults);
    }
    if arguments.json {
        println!("{:#}", json!({ name: hashes, "calls": calls }));
    } else {
        for hash in hashes {
            println!("{name} {hash}");
        }
        for call in &calls {
            println!("{}", in_words(call));
        }
        println!("{} calls", calls.len());
    }
    Ok(match (faults, calls.is_empty()) {
        (0, false) => exit::YES,
        (0, true) => exit::NO,
        (_, _) => exit::INTEGRITY,
    })
}

fn in_words(call: &Value) -> String {
    let text = |value: &Value| cut(value.as_str().unwrap_or("-"), ID).into_owned();
    let delivery = match call["kind"] == "refusal" {
        true => text(&call["delivery"]),
        false => text(&call["outcome"]["delivery"]),
    };
    format!(
        "{} {} by {}: {} at {}, {}, {delivery}",
        text(&call["time"]),
        text(&call["request_id"]),
        text(&call["caller"]["subject"]),
        text(&call["operation"]),
        text(&call["agent"]),
        text(&call["decision"]["reason"]),
    )
}

fn of_values(arguments: &Arguments) -> Result<u8, u8> {
    let keys = keys(arguments)?;
    let values = match arguments.values.is_empty() {
        false => arguments.values.clone(),
        true => lines("write one value a line, then press Ctrl-D")?,
    };
    let mut all = Vec::new();
    for value in &values {
        for key in &keys {
            for class in Class::ALL {
                let (kind, hash) = (class.label(), key.hide(class, value));
                match arguments.json {
                    true => all.push(json!({ "kind": kind, "hash": hash })),
                    false => println!("{kind:8} {hash}"),
                }
            }
        }
    }
    if arguments.json {
        println!("{:#}", Value::Array(all));
    }
    Ok(exit::YES)
}

fn keys(arguments: &Arguments) -> Result<Vec<HidingKey>, u8> {
    match arguments.key.is_empty() {
        false => arguments
            .key
            .iter()
            .map(|path| fingerprint_key(path))
            .collect(),
        true => arguments.from.fingerprint_keys(),
    }
}

fn lines(asks: &str) -> Result<Vec<String>, u8> {
    let input = io::stdin();
    if input.is_terminal() {
        eprintln!("{asks}");
    }
    let lines = input.lock().take(MAX_VALUE).lines();
    let lines: Result<Vec<String>, io::Error> = lines.collect();
    lines.map_err(|error| {
        eprintln!("error: standard input cannot be read: {error}");
        exit::INVALID
    })
}

/// Of a file of any size.
fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => context.update(&buffer[..read]),
        }
    }
    Ok(hex(context.finish().as_ref(), &mut [0; 64]).to_owned())
}
