//! `portcullis audit hash`: from something an auditor holds to what the journal says about it.

use super::from::From;
use crate::adapters::journal::read::{Line, Reading};
use crate::audit::redact::{ID, cut, hex};
use crate::cli::exit;
use aws_lc_rs::digest::{Context, SHA256};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What to look for.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    from: From,
    /// A file with a request's body, as its sender or its agent kept it
    #[arg(long, value_name = "FILE")]
    body: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let digest = match sha256(&arguments.body) {
        Ok(digest) => digest,
        Err(error) => {
            eprintln!(
                "error: `{}` cannot be read: {error}",
                arguments.body.display()
            );
            return exit::INVALID;
        }
    };
    let folders = match arguments.from.folders() {
        Ok(folders) => folders,
        Err(code) => return code,
    };
    let mut found = Vec::new();
    let mut faults = 0;
    for folder in folders {
        let reading = match Reading::open(&folder) {
            Ok(reading) => reading,
            Err(error) => {
                eprintln!(
                    "error: the journal in `{}` cannot be read: {error}",
                    folder.display()
                );
                return exit::INVALID;
            }
        };
        for (place, line) in reading {
            match line {
                Line::Record(record) if carried(&record, &digest) => found.push(record),
                Line::Record(_) => {}
                Line::Fault(fault) => {
                    faults += 1;
                    eprintln!("warning: {place}: {fault}");
                }
            }
        }
    }
    if arguments.json {
        println!("{:#}", json!({ "sha256": digest, "calls": found }));
    } else {
        println!("sha256 {digest}");
        for record in &found {
            println!("{}", in_words(record));
        }
        println!("{} calls carried it", found.len());
    }
    match (faults, found.is_empty()) {
        (0, false) => exit::YES,
        (0, true) => exit::NO,
        (_, _) => exit::INTEGRITY,
    }
}

/// Whether this is a call whose body, as it came or as it was forwarded, has this digest.
fn carried(record: &Value, digest: &str) -> bool {
    let request = &record["request"];
    request["sha256"] == digest || request["forwarded"]["sha256"] == digest
}

fn in_words(record: &Value) -> String {
    let text = |value: &Value| cut(value.as_str().unwrap_or("-"), ID).into_owned();
    format!(
        "{} {} {} by {} at {}: {}",
        text(&record["time"]),
        text(&record["kind"]),
        text(&record["request_id"]),
        text(&record["caller"]["subject"]),
        text(&record["agent"]),
        text(&record["decision"]["reason"]),
    )
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
