//! `portcullis audit reconcile`: the journal beside the agent's own log.

mod told;

use super::ask::instant;
use super::from::From;
use crate::adapters::clock::SystemClock;
use crate::adapters::journal::lines::{Lines, Next};
use crate::audit::reconcile::log::{Format, Line, MAX_ENTRY};
use crate::audit::reconcile::{Join, Kind, MAX_IDS, Span, Stray, TooMany};
use crate::audit::redact::{TEXT, cut};
use crate::cli::exit;
use crate::pipeline::ports::Clock;
use clap::ValueEnum;
use flate2::read::MultiGzDecoder;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use told::{in_words, json, metrics};

/// What to compare.
///
/// The agent must log the header `Portcullis-Request-Id` of each request. The receipts middlewares
/// do it by themselves. In nginx:
///
///   log_format portcullis '$remote_addr - $remote_user [$time_local] "$request" $status '
///                         '$body_bytes_sent "$http_referer" "$http_user_agent" '
///                         '"$http_portcullis_request_id"';
///   access_log /var/log/nginx/agent.log portcullis;
///
/// In Apache, the combined format with `\"%{Portcullis-Request-Id}i\"` behind it; in Envoy, its
/// text format with `"%REQ(PORTCULLIS-REQUEST-ID)%"` as last field, or JSON and `--field`.
///
/// Exit code 1: something is in the agent's log that the journal did not let through, or of which
/// it says that nothing reached the agent.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    #[command(flatten)]
    from: From,
    /// The agent's own log, also compressed with gzip; `-` is standard input; may be repeated
    #[arg(long, value_name = "FILE", required = true)]
    backend_log: Vec<PathBuf>,
    /// How it is written
    #[arg(long, value_enum, default_value = "receipts", conflicts_with_all = ["field", "column", "pattern"])]
    format: Known,
    /// It has a JSON object a line, with the request id here; dots lead into objects
    #[arg(long, value_name = "PATH", conflicts_with_all = ["column", "pattern"])]
    field: Option<String>,
    /// It is CSV with a line of names, and the request id in this column
    #[arg(long, value_name = "NAME", conflicts_with = "pattern")]
    column: Option<String>,
    /// It has lines in which this regular expression finds the group `id`, and perhaps `time`
    #[arg(long, value_name = "REGEX")]
    pattern: Option<String>,
    /// The field or column with the time: RFC 3339, as in access logs, or a number since 1970
    #[arg(long, value_name = "NAME")]
    time: Option<String>,
    /// Leave out lines of the agent's log in which this regular expression finds something, such as
    /// health checks; they are counted
    #[arg(long, value_name = "REGEX")]
    ignore: Option<String>,
    /// Only calls from this time on: 2026-05-31, 2026-05-31T14:00, now-2h, 7d, today, yesterday; all
    /// in UTC
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only calls before this time, written likewise
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// The agent whose log it is, by its configured name; an id of a call to another one is then
    /// nobody's
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// List the ids of these
    #[arg(long, value_enum, value_name = "KIND")]
    list: Option<List>,
    /// List at most so many, the oldest first
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: usize,
    /// Write the numbers to this file, for the textfile collector of Prometheus' node exporter
    #[arg(long, value_name = "FILE")]
    prometheus: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Formats that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Known {
    /// Of the receipts middlewares
    Receipts,
    /// Apache's combined format, with the id as last quoted field
    Combined,
    /// nginx's combined format, with the id as last quoted field
    Nginx,
    /// Envoy's text format, with the id as last quoted field
    Envoy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum List {
    /// Forwarded, and not in the agent's log
    OursOnly,
    /// In the agent's log, and not let through: lines
    TheirsOnly,
    /// Refused, and in the agent's log
    RefusedButExecuted,
    /// More than once in the agent's log
    Repeated,
    /// In the agent's log, and the journal says that nothing reached it
    Contradicted,
}

impl List {
    fn kind(self) -> Kind {
        match self {
            List::OursOnly => Kind::OursOnly,
            List::TheirsOnly => Kind::TheirsOnly,
            List::RefusedButExecuted => Kind::RefusedButExecuted,
            List::Repeated => Kind::Repeated,
            List::Contradicted => Kind::Contradicted,
        }
    }
}

/// A line of the agent's log that nobody made whom we let through.
#[derive(Serialize)]
struct StrayLine {
    file: String,
    line: u64,
    why: Stray,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

/// What was read beside the report.
#[derive(Default, Serialize)]
struct Passed {
    /// Lines of the agent's log that are no entries.
    not_understood: u64,
    /// Lines of the agent's log that were left out.
    ignored: u64,
    /// Places of the journal with something else than the next record.
    faults: u64,
    #[serde(skip)]
    entries: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    strays: Vec<StrayLine>,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    match reconcile(arguments) {
        Ok(code) => code,
        Err((code, message)) => {
            if !message.is_empty() {
                eprintln!("error: {message}");
            }
            code
        }
    }
}

type Failed = (u8, String);

fn reconcile(arguments: &Arguments) -> Result<u8, Failed> {
    let time = |name, text: &Option<String>| {
        let time = text.as_deref().map(|text| instant(name, text)).transpose();
        time.map_err(|code| (code, String::new()))
    };
    let span = Span {
        since: time("--since", &arguments.since)?.map_or(0, |time| time.0),
        until: time("--until", &arguments.until)?.map_or(u64::MAX, |time| time.0),
    };
    let ignore = arguments.ignore.as_deref().map(regex::Regex::new);
    let ignore = ignore.transpose().map_err(|error| {
        let help = "see https://docs.rs/regex for what it may be";
        (
            exit::USAGE,
            format!("`--ignore`: {error}\n  = help: {help}"),
        )
    })?;
    // Before the journal is read, which may take a while.
    format(arguments)?;
    let folders = arguments
        .from
        .folders()
        .map_err(|code| (code, String::new()))?;
    let mut join = Join::new(span, arguments.agent.as_deref());
    let mut read = Passed::default();
    for folder in &folders {
        ours(folder, span, &mut join, &mut read)?;
    }
    for file in &arguments.backend_log {
        theirs(arguments, file, ignore.as_ref(), &mut join, &mut read)?;
    }
    if read.entries == 0 && read.not_understood > 0 {
        let message = "no line of the agent's log is in this format\n  = help: `--format`, `--field`, `--column` or `--pattern` says which it is";
        return Err((exit::INVALID, message.into()));
    }
    let report = join.report();
    if let Some(file) = &arguments.prometheus {
        let text = metrics(
            &report,
            arguments.agent.as_deref(),
            SystemClock::new().now(),
        );
        replace(file, text.as_bytes()).map_err(|error| {
            (
                exit::INVALID,
                format!("cannot write `{}`: {error}", file.display()),
            )
        })?;
    }
    let listed = arguments
        .list
        .map(|list| (list, join.list(list.kind(), arguments.limit)));
    let mut out = String::new();
    if arguments.json {
        json(&mut out, &report, &read, listed.as_ref());
    } else {
        let _ = in_words(&mut out, &report, &read, listed.as_ref());
    }
    // A closed pipe is the reader's choice.
    let _ = io::stdout().lock().write_all(out.as_bytes());
    Ok(match (report.is_breached(), read.faults) {
        (true, _) => exit::NO,
        (false, 0) => exit::YES,
        (false, _) => exit::INTEGRITY,
    })
}

fn too_many(_: TooMany) -> Failed {
    let message = format!(
        "there are more than {MAX_IDS} ids\n  = help: compare a shorter time, with `--since` and `--until`"
    );
    (exit::INVALID, message)
}

fn ours(folder: &Path, span: Span, join: &mut Join, read: &mut Passed) -> Result<(), Failed> {
    let failed = |error: io::Error| {
        let message = format!(
            "the journal in `{}` cannot be read: {error}",
            folder.display()
        );
        (exit::INVALID, message)
    };
    let mut lines = Lines::since(folder, span.journal_since()).map_err(failed)?;
    let mut line = Vec::new();
    loop {
        match lines.next(&mut line).map_err(failed)? {
            Next::End => return Ok(()),
            Next::Record(seq) => match serde_json::from_slice(&line) {
                Ok(record) => join.ours(&record).map_err(too_many)?,
                Err(_) => {
                    read.faults += 1;
                    eprintln!("warning: {}, record {seq}: not a record", lines.segment());
                }
            },
            Next::Fault(fault) => {
                read.faults += 1;
                eprintln!("warning: {}: {fault}", lines.segment());
            }
        }
    }
}

fn format(arguments: &Arguments) -> Result<Format, Failed> {
    let time = arguments.time.as_deref();
    let usage = |error| {
        (
            exit::USAGE,
            format!("the format of the agent's log: {error}"),
        )
    };
    let timed = |format: Format| match time {
        None => Ok(format),
        Some(_) => Err((
            exit::USAGE,
            "`--time` goes with `--field` or `--column`; a pattern has a group `time`".into(),
        )),
    };
    match (&arguments.field, &arguments.column, &arguments.pattern) {
        (Some(field), _, _) => Ok(Format::json(field, time)),
        (_, Some(column), _) => Ok(Format::csv(column, time)),
        (_, _, Some(pattern)) => timed(Format::pattern(pattern).map_err(usage)?),
        (None, None, None) => timed(match arguments.format {
            Known::Receipts => Format::receipts(),
            Known::Combined | Known::Nginx => Format::combined().map_err(usage)?,
            Known::Envoy => Format::envoy().map_err(usage)?,
        }),
    }
}

/// A log, which may be compressed.
fn open(file: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut raw: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => Box::new(File::open(file)?),
    };
    let mut magic = Vec::new();
    raw.by_ref().take(2).read_to_end(&mut magic)?;
    let compressed = magic == [0x1f, 0x8b];
    let whole = Cursor::new(magic).chain(raw);
    Ok(match compressed {
        true => Box::new(BufReader::new(MultiGzDecoder::new(whole))),
        false => Box::new(BufReader::with_capacity(256 << 10, whole)),
    })
}

fn theirs(
    arguments: &Arguments,
    file: &Path,
    ignore: Option<&regex::Regex>,
    join: &mut Join,
    read: &mut Passed,
) -> Result<(), Failed> {
    let shown = file.display().to_string();
    let failed = |error: io::Error| (exit::INVALID, format!("`{shown}` cannot be read: {error}"));
    let mut format = format(arguments)?;
    let mut reader = open(file).map_err(failed)?;
    let mut entry = Vec::new();
    let (mut number, mut first) = (0, 1);
    loop {
        let ended = !more(&mut reader, &mut entry).map_err(failed)?;
        number += u64::from(!ended);
        if !ended && entry.len() <= MAX_ENTRY && format.goes_on(&entry) {
            entry.push(b'\n');
            continue;
        }
        if ended && entry.is_empty() {
            return Ok(());
        }
        let line = std::mem::take(&mut entry);
        let place = std::mem::replace(&mut first, number + 1);
        let text = ignore.map(|ignore| (ignore, String::from_utf8_lossy(&line)));
        if text.is_some_and(|(ignore, text)| ignore.is_match(&text)) {
            read.ignored += 1;
            continue;
        }
        let taken = match line.len() > MAX_ENTRY {
            true => Line::NotUnderstood,
            false => format
                .read(&line)
                .map_err(|e| (exit::INVALID, format!("`{shown}`: {e}")))?,
        };
        match taken {
            Line::Nothing => {}
            Line::NotUnderstood => {
                read.not_understood += 1;
                if read.not_understood <= SHOWN {
                    eprintln!("warning: {shown}, line {place}: not in this format");
                }
            }
            Line::Entry(found) => {
                read.entries += 1;
                let stray = join
                    .theirs(found.id.as_deref(), found.at)
                    .map_err(too_many)?;
                let wanted = arguments.list == Some(List::TheirsOnly);
                if let (Some(why), true) = (stray, wanted && read.strays.len() < arguments.limit) {
                    read.strays.push(StrayLine {
                        file: shown.clone(),
                        line: place,
                        why,
                        id: found.id.map(|id| cut(&id, TEXT).into_owned()),
                    });
                }
            }
        }
    }
}

/// Lines that are no entries and are told one by one.
const SHOWN: u64 = 5;

/// Adds a line, or as much of it as is bounded; false at the end.
fn more(reader: &mut dyn BufRead, entry: &mut Vec<u8>) -> io::Result<bool> {
    let mut any = false;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        let room = (MAX_ENTRY + 1).saturating_sub(entry.len());
        entry.extend_from_slice(&piece[..piece.len().min(room)]);
        let taken = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(taken);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Writes a file so that nobody ever reads half of it.
pub(super) fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // A collector reads names with its own ending only.
    let beside = file.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = File::create(&beside).and_then(|mut new| {
        new.write_all(bytes)?;
        new.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&beside, file));
    if moved.is_err() {
        let _ = fs::remove_file(&beside);
    }
    moved
}
