//! `portcullis audit export`: records for other systems, each run going on where the last one ended.

use super::ask::Ask;
use super::from::From;
use super::reconcile::replace;
use crate::adapters::journal::lines::{Lines, Next, Position, ResumeError, journal_id};
use crate::adapters::journal::read::Fault;
use crate::audit::export::{csv, ocsf};
use crate::audit::query::field::Fields;
use crate::audit::query::{Query, Truth};
use crate::audit::reconcile::log::moment;
use crate::audit::record::Time;
use crate::cli::exit;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Records between two notes of how far an export came: what a crash makes it write twice at most.
const EVERY: u64 = 100_000;

/// What to export, and in which form.
///
/// Conditions look at each record by itself, so one on the caller finds intents and refusals and no
/// outcomes; in OCSF they look at the call.
///
/// With `--position`, what was exported is remembered and only what is new is written: each record
/// at least once, and once only unless an export is interrupted.
///
/// Exit code 5: some of the journal is no record, or vanished before it was exported.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    from: From,
    /// The form
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,
    /// The file to write; default: standard output. One that exists is only ever added to, which
    /// needs `--position`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The file that remembers what was exported; made by the first run
    #[arg(long, value_name = "FILE")]
    position: Option<PathBuf>,
    #[command(flatten)]
    ask: Ask,
    /// Print what was done as JSON; needs `--out`
    #[arg(long, requires = "out")]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// The journal's own lines, unchanged
    Jsonl,
    /// A table: RFC 4180, and no field is a formula to a spreadsheet
    Csv,
    /// API Activity (6003) of the Open Cybersecurity Schema Framework, an event a line; records
    /// that are about no call are left out
    Ocsf,
}

/// What a position file holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    format: Format,
    last: Position,
    /// The segment of the oldest call that had no outcome yet, where calls are joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open_since: Option<Box<str>>,
}

type Failed = (u8, String);

/// What was done.
#[derive(Default, Serialize)]
struct Done {
    read: u64,
    written: u64,
    /// Records that vanished before they were exported.
    missing: u64,
    /// Places with something else than a record.
    faults: u64,
    /// Records that do not say whether they meet the conditions, and were left out.
    not_recorded: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<u64>,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    match export(arguments) {
        Ok(done) => {
            tell(arguments, &done);
            match done.missing + done.faults {
                0 => exit::YES,
                _ => exit::INTEGRITY,
            }
        }
        Err((code, message)) => {
            if !message.is_empty() {
                eprintln!("error: {message}");
            }
            code
        }
    }
}

fn tell(arguments: &Arguments, done: &Done) {
    if arguments.json {
        println!("{:#}", json!(done));
        return;
    }
    let what = match arguments.format {
        Format::Jsonl | Format::Csv => "records",
        Format::Ocsf => "events",
    };
    let mut told = format!("exported {} {what}", done.written);
    if let (Some(first), Some(last)) = (done.first, done.last) {
        told += &format!(", from record {first} to {last}");
    }
    // Beside what is exported, standard output says nothing.
    match arguments.out {
        Some(_) => println!("{told}"),
        None => eprintln!("{told}"),
    }
    for (count, what) in [
        (done.missing, "records vanished before they were exported"),
        (done.faults, "places of the journal are no record"),
    ] {
        if count > 0 {
            eprintln!("warning: {count} {what}; see `portcullis audit verify`");
        }
    }
    if done.not_recorded > 0 {
        eprintln!(
            "warning: {} records do not have a claim that was asked for; they were left out",
            done.not_recorded
        );
    }
}

fn export(arguments: &Arguments) -> Result<Done, Failed> {
    let folders = arguments
        .from
        .folders()
        .map_err(|code| (code, String::new()))?;
    let query = arguments.ask.query(&arguments.from, &Fields::new(), true);
    let query = query.map_err(|code| (code, String::new()))?;
    let plain = arguments.ask.is_plain();
    if arguments.position.is_some() && folders.len() != 1 {
        let message = "`--position` remembers the place in one journal\n  = help: export each journal with a position file of its own";
        return Err((exit::USAGE, message.into()));
    }
    let kept = arguments
        .position
        .as_deref()
        .map(kept)
        .transpose()?
        .flatten();
    if let Some(kept) = &kept
        && kept.format != arguments.format
    {
        let message = "the position file is of an export in another form\n  = help: give each form a position file of its own";
        return Err((exit::USAGE, message.into()));
    }
    let mut out = Out::open(arguments, kept.is_some())?;
    let mut done = Done::default();
    for folder in &folders {
        one(
            arguments,
            folder,
            kept.as_ref(),
            (&query, plain),
            &mut out,
            &mut done,
        )?;
    }
    out.flush().map_err(|error| out.failed(&error))?;
    Ok(done)
}

fn one(
    arguments: &Arguments,
    folder: &Path,
    kept: Option<&Kept>,
    (query, plain): (&Query, bool),
    out: &mut Out,
    done: &mut Done,
) -> Result<(), Failed> {
    let whole = plain && query.since.is_none() && query.until.is_none();
    let unreadable = |error: &dyn std::fmt::Display| {
        let message = format!("the journal in `{}`: {error}", folder.display());
        (exit::INVALID, message)
    };
    let id = journal_id(folder).map_err(|error| unreadable(&error))?;
    let mut lines = match kept {
        None => {
            let since = query.since.map_or(0, |since| since.0);
            Lines::since(folder, since).map_err(|error| unreadable(&error))?
        }
        Some(kept) => {
            let resumed = Lines::resume(folder, &kept.last);
            let resumed = resumed.map_err(|error| match error {
                ResumeError::Another(_) => {
                    let help = "export another journal with another position file; where records may be written twice, remove this one";
                    let (code, message) = unreadable(&error);
                    (code, format!("{message}\n  = help: {help}"))
                }
                ResumeError::Io(_) => unreadable(&error),
            })?;
            match &kept.open_since {
                // What calls that were open then asked for is read once more.
                Some(segment) => {
                    Lines::from_segment(folder, segment).map_err(|e| unreadable(&e))?
                }
                None => resumed,
            }
        }
    };
    let seen = kept.map_or(0, |kept| kept.last.seq);
    let mut events = ocsf::Events::default();
    let mut opened = std::collections::BTreeMap::new();
    let (mut line, mut text) = (Vec::new(), String::new());
    let mut position = None;
    let mut unkept = 0;
    loop {
        let seq = match lines.next(&mut line).map_err(|error| unreadable(&error))? {
            Next::End => break,
            Next::Record(seq) => seq,
            Next::Fault(fault) => {
                eprintln!("warning: {}: {fault}", lines.segment());
                match fault {
                    Fault::Missing { expected, found } => {
                        done.missing += found.saturating_sub(expected);
                    }
                    Fault::NotARecord | Fault::TooLong | Fault::Unreadable(_) => done.faults += 1,
                }
                continue;
            }
        };
        let again = seq <= seen;
        done.read += u64::from(!again);
        text.clear();
        if arguments.format == Format::Jsonl && whole {
            out.write(&line, true)?;
        } else {
            let Ok(record) = serde_json::from_slice::<Value>(&line) else {
                done.faults += 1;
                eprintln!("warning: {}, record {seq}: not a record", lines.segment());
                continue;
            };
            let mut holds = |members: &[u8], record: &Value| {
                asked_for(query, plain, members, &record["time"], done)
            };
            match arguments.format {
                Format::Jsonl if holds(&line, &record) => out.write(&line, true)?,
                Format::Csv if holds(&line, &record) => {
                    csv::record(&record, &mut text);
                    out.write(text.as_bytes(), false)?;
                }
                Format::Ocsf => {
                    let call = events.take(&record).filter(|_| !again);
                    if record["kind"] == "intent" {
                        opened.insert(seq, Box::from(lines.segment()));
                    }
                    let call =
                        call.filter(|call| holds(call.call.to_string().as_bytes(), &call.call));
                    match call {
                        Some(call) => out.write(call.event().to_string().as_bytes(), true)?,
                        None if again => continue,
                        None => {
                            // It was read all the same.
                            position = lines.position(&line, id.as_deref());
                            continue;
                        }
                    }
                }
                Format::Jsonl | Format::Csv => {
                    position = lines.position(&line, id.as_deref());
                    continue;
                }
            }
        }
        done.written += 1;
        done.first.get_or_insert(seq);
        done.last = Some(seq);
        unkept += 1;
        if arguments.position.is_some() {
            position = lines.position(&line, id.as_deref());
            if unkept >= EVERY {
                unkept = 0;
                keep(arguments, &events, &mut opened, position.as_ref(), out)?;
            }
        }
    }
    keep(arguments, &events, &mut opened, position.as_ref(), out)
}

/// Whether a record, or a call as one, is asked for.
fn asked_for(query: &Query, plain: bool, members: &[u8], time: &Value, done: &mut Done) -> bool {
    let at = time.as_str().and_then(moment).map(Time);
    let early = query
        .since
        .is_some_and(|since| at.is_none_or(|at| at.0 < since.0));
    let late = query
        .until
        .is_some_and(|until| at.is_none_or(|at| at.0 >= until.0));
    if early || late {
        return false;
    }
    if plain {
        return true;
    }
    match query
        .projection
        .read(members, None)
        .map(|row| query.judge(&row))
    {
        Ok(Truth::Yes) => true,
        Ok(Truth::No) | Err(_) => false,
        Ok(Truth::NotRecorded) => {
            done.not_recorded += 1;
            false
        }
    }
}

/// Remembers how far the export came, once all of it is on the disk.
fn keep(
    arguments: &Arguments,
    events: &ocsf::Events,
    opened: &mut std::collections::BTreeMap<u64, Box<str>>,
    position: Option<&Position>,
    out: &mut Out,
) -> Result<(), Failed> {
    out.flush().map_err(|error| out.failed(&error))?;
    let (Some(file), Some(last)) = (&arguments.position, position) else {
        return Ok(());
    };
    let oldest = events.oldest_open();
    *opened = opened.split_off(&oldest.unwrap_or(u64::MAX));
    let kept = Kept {
        format: arguments.format,
        last: last.clone(),
        open_since: opened.values().next().cloned(),
    };
    let text = json!(kept).to_string() + "\n";
    replace(file, text.as_bytes()).map_err(|error| {
        (
            exit::INVALID,
            format!("cannot write `{}`: {error}", file.display()),
        )
    })
}

fn kept(file: &Path) -> Result<Option<Kept>, Failed> {
    let wrong = |why: &dyn std::fmt::Display| {
        (
            exit::INVALID,
            format!("the position file `{}`: {why}", file.display()),
        )
    };
    match fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| wrong(&error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(&error)),
    }
}

/// Where records go.
struct Out {
    to: BufWriter<Box<dyn Write>>,
    file: Option<File>,
    name: String,
}

impl Out {
    fn open(arguments: &Arguments, resumed: bool) -> Result<Out, Failed> {
        let Some(path) = &arguments.out else {
            let mut out = Out {
                to: BufWriter::with_capacity(256 << 10, Box::new(io::stdout())),
                file: None,
                name: "standard output".into(),
            };
            out.head(arguments, !resumed)?;
            return Ok(out);
        };
        let name = format!("`{}`", path.display());
        let failed = |error: io::Error| (exit::INVALID, format!("cannot write {name}: {error}"));
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).mode(0o600);
        let mut file = options.open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        if length > 0 && arguments.position.is_none() {
            let message = format!(
                "{name} is there already\n  = help: name another file, or add to this one with `--position FILE`"
            );
            return Err((exit::USAGE, message));
        }
        let whole = whole_lines(&file, length).map_err(failed)?;
        file.set_len(whole).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut out = Out {
            to: BufWriter::with_capacity(256 << 10, Box::new(file.try_clone().map_err(failed)?)),
            file: Some(file),
            name,
        };
        out.head(arguments, whole == 0)?;
        Ok(out)
    }

    fn head(&mut self, arguments: &Arguments, wanted: bool) -> Result<(), Failed> {
        if wanted && arguments.format == Format::Csv {
            let mut head = String::new();
            csv::head(&mut head);
            self.write(head.as_bytes(), false)?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], line: bool) -> Result<(), Failed> {
        let end: &[u8] = if line { b"\n" } else { b"" };
        let written = self
            .to
            .write_all(bytes)
            .and_then(|()| self.to.write_all(end));
        written.map_err(|error| self.failed(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()?;
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }

    fn failed(&self, error: &io::Error) -> Failed {
        // Who closed the pipe has what it wanted.
        let message = match error.kind() {
            ErrorKind::BrokenPipe => String::new(),
            _ => format!("cannot write {}: {error}", self.name),
        };
        (exit::INVALID, message)
    }
}

/// How much of a file is whole lines: an export that was interrupted leaves part of one.
fn whole_lines(file: &File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut buffer = vec![0; 64 << 10];
    while end > 0 {
        let from = end.saturating_sub(buffer.len() as u64);
        let mut reader = BufReader::new(file);
        reader.seek(SeekFrom::Start(from))?;
        // At most the buffer's length.
        let piece = &mut buffer[..(end - from) as usize];
        reader.read_exact(piece)?;
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        end = from;
    }
    Ok(0)
}
