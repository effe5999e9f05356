//! `portcullis audit bundle`: the evidence about some calls, in a folder that is verified by itself.

use super::ask::{Ask, listed, now, search};
use super::from::{Folder, From};
use crate::adapters::journal::bundle::{Found, Sought, copy, look};
use crate::adapters::journal::scan::Segment;
use crate::audit::bundle::{MANIFEST, Span, in_force, spans};
use crate::audit::chain::glance;
use crate::audit::query::field::Fields;
use crate::cli::exit;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Most calls of one bundle.
const MAX_CALLS: usize = 1_000_000;
/// Most calls that the manifest names one by one.
const NAMED: usize = 1_000;

/// What the evidence is about.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    ask: Ask,
    /// A call, by the id in its `Portcullis-Request-Id`; may be repeated
    #[arg(long, value_name = "ID")]
    request: Vec<String>,
    /// The folder to make
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    from: From,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What of a call's first record matters here.
#[derive(Deserialize)]
struct First {
    request_id: String,
    policy_digest: Box<str>,
}

/// One call that the evidence is about.
struct Call {
    request_id: String,
    digest: Box<str>,
    first: u64,
    outcome: Option<u64>,
}

fn invalid(what: impl Display) -> u8 {
    eprintln!("error: {what}");
    exit::INVALID
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    bundle(arguments).unwrap_or_else(|code| code)
}

fn bundle(arguments: &Arguments) -> Result<u8, u8> {
    let folders = arguments.from.folders()?;
    let [folder] = folders.as_slice() else {
        eprintln!("error: a bundle is of one journal; make one for each");
        return Err(exit::USAGE);
    };
    let calls = calls(arguments, &folders)?;
    let segments = listed(folder)?;
    let sought = look(&segments).map_err(invalid)?;
    let wanted = wanted(&calls, &sought)?;
    let sequences: Vec<u64> = wanted.iter().copied().collect();
    let (spans, uncovered) = spans(&sequences, &sought.checkpoints);
    if let Some(first) = uncovered {
        eprintln!("error: no checkpoint covers record {first} yet");
        eprintln!(
            "   = help: the gateway signs one every minute and when it stops; try again then"
        );
        return Err(exit::NO);
    }
    let made = write(arguments, folder, &segments, &spans, (&calls, &sought));
    let (records, missing) = made.map_err(|error| {
        invalid(format!(
            "`{}` cannot be written: {error}",
            arguments.out.display()
        ))
    })?;
    told(arguments, &calls, &spans, records, &missing);
    Ok(if sought.faults == 0 {
        exit::YES
    } else {
        exit::INTEGRITY
    })
}

fn calls(arguments: &Arguments, folders: &[Folder]) -> Result<Vec<Call>, u8> {
    let requests = arguments.request.iter().map(|id| format!("request={id}"));
    let query = arguments
        .ask
        .with(requests.collect(), &arguments.from, &Fields::new(), false)?;
    let make = |first: &[u8], outcome: Option<&[u8]>, _: &_| {
        let known: First = serde_json::from_slice(first).ok()?;
        Some(Call {
            request_id: known.request_id,
            digest: known.policy_digest,
            first: glance(first)?.0,
            outcome: outcome.and_then(glance).map(|(sequence, _)| sequence),
        })
    };
    let (mut calls, mut many) = (Vec::new(), false);
    search(folders, &query, false, &make, &mut |call| {
        many = calls.len() >= MAX_CALLS;
        if many {
            return ControlFlow::Break(());
        }
        calls.extend(call);
        ControlFlow::Continue(())
    })?;
    if many {
        return Err(invalid(format!(
            "over {MAX_CALLS} calls meet this; narrow it, or copy the journal whole"
        )));
    }
    if calls.is_empty() {
        eprintln!("error: the journal has no such call");
        return Err(exit::NO);
    }
    Ok(calls)
}

/// The records that are proven: those of the calls, and those that put their policies in force.
fn wanted(calls: &[Call], sought: &Sought) -> Result<BTreeSet<u64>, u8> {
    let asked: Vec<(u64, Box<str>)> = calls
        .iter()
        .map(|call| (call.first, call.digest.clone()))
        .collect();
    let configs = in_force(&asked, &sought.configs).map_err(|digest| {
        invalid(format!(
            "no record before its calls says what policy {digest} is; is a part of the journal missing?"
        ))
    })?;
    let of_calls = calls
        .iter()
        .flat_map(|call| [Some(call.first), call.outcome]);
    let records = of_calls.flatten().chain(configs.into_values().flatten());
    Ok(records.collect())
}

fn write(
    arguments: &Arguments,
    folder: &Path,
    segments: &[Segment],
    spans: &[Span],
    (calls, sought): (&[Call], &Sought),
) -> io::Result<(u64, Vec<String>)> {
    let out = &arguments.out;
    DirBuilder::new().mode(0o700).create(out)?;
    let mut files = Vec::new();
    let mut records = 0;
    for span in spans {
        let name = format!("journal-{:020}.jsonl", span.first);
        let count = copy(segments, *span, &mut create(&out.join(&name))?)?;
        records += count;
        files.push(json!({
            "file": name, "first_seq": span.first, "last_seq": span.last, "records": count,
        }));
    }
    let digests: BTreeSet<&str> = calls.iter().map(|call| &*call.digest).collect();
    let (texts, missing) = texts(folder, out, &digests, &sought.texts)?;
    let named = calls.iter().take(NAMED).map(
        |call| json!({ "request_id": call.request_id, "seq": call.first, "outcome": call.outcome }),
    );
    let manifest = json!({
        "v": 1,
        "made": now().to_string(),
        "asked": arguments.ask.said(),
        "requests": arguments.request,
        "calls": calls.len(),
        "named": named.collect::<Vec<_>>(),
        "spans": files,
        "policies": digests,
        "texts": texts,
        "missing_texts": missing,
    });
    let mut file = create(&out.join(MANIFEST))?;
    writeln!(file, "{manifest:#}")?;
    file.sync_all()?;
    create(&out.join("README.txt"))?.write_all(READ_ME.as_bytes())?;
    Ok((records, missing))
}

/// Copies the texts of these digests, and says which are not there, or not what they were.
fn texts(
    folder: &Path,
    out: &Path,
    digests: &BTreeSet<&str>,
    known: &BTreeMap<Box<str>, Vec<Found>>,
) -> io::Result<(Vec<Value>, Vec<String>)> {
    let (mut texts, mut missing) = (BTreeMap::new(), Vec::new());
    for digest in digests {
        for found in known.get(*digest).into_iter().flatten() {
            let Some(text) = found.read(folder) else {
                missing.push(found.sha256.to_string());
                continue;
            };
            if texts.is_empty() {
                DirBuilder::new().mode(0o700).create(out.join("texts"))?;
            }
            if !texts.contains_key(&*found.sha256) {
                create(&out.join("texts").join(&*found.sha256))?.write_all(&text)?;
            }
            let entry = json!({
                "sha256": found.sha256, "role": found.role, "name": found.name,
            });
            texts.insert(&*found.sha256, entry);
        }
    }
    Ok((texts.into_values().collect(), missing))
}

fn create(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn told(arguments: &Arguments, calls: &[Call], spans: &[Span], records: u64, missing: &[String]) {
    let out = arguments.out.display();
    if arguments.json {
        let said = json!({
            "out": arguments.out, "calls": calls.len(), "spans": spans.len(), "records": records,
            "missing_texts": missing,
        });
        println!("{said:#}");
        return;
    }
    println!(
        "{out}: {} calls, proven by {records} records in {} spans",
        calls.len(),
        spans.len()
    );
    if !missing.is_empty() {
        println!(
            "{} texts of their policies are not in the journal's `texts`, or were changed",
            missing.len()
        );
    }
    println!("verify it with: portcullis audit verify --bundle {out} --keys KEYS");
}

const READ_ME: &str = "\
Evidence about calls that went through, or were refused by, a Portcullis gateway.

bundle.json      what this is about, and what is here
journal-*.jsonl  spans of the gateway's journal, each from a record that matters to the checkpoint
                 that covers it; each line names the SHA-256 of the line before it in `prev`, and a
                 checkpoint is signed. The spans hold other calls of the same minutes too: without
                 them the chain could not be followed.
texts/           the gateway file and the policies that decided, by their SHA-256

Verify it with the gateway's public checkpoint keys, which you have from elsewhere than from here
(its /.well-known/jwks.json):

    portcullis audit verify --bundle . --keys jwks.json
    portcullis audit show --bundle . REQUEST-ID
";
