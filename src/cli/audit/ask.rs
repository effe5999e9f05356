//! Conditions of a command line, and the search for what meets them.

use super::from::{Folder, From};
use super::keys::fingerprint_key;
use crate::adapters::clock::SystemClock;
use crate::adapters::journal::hiding::hiding;
use crate::adapters::journal::scan::{Segment, cores, segments};
use crate::adapters::journal::search::{Make, Search, Searched, Told};
use crate::audit::query::field::Fields;
use crate::audit::query::{Query, time};
use crate::audit::record::Time;
use crate::audit::redact::hidden::HidingKey;
use crate::cli::exit;
use crate::pipeline::ports::Clock;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// What is looked for.
#[derive(clap::Args)]
#[command(after_long_help = fields_help())]
pub(super) struct Ask {
    /// FIELD=VALUE, FIELD!=VALUE, or <, <=, >, >= for numbers; all must hold, and of several = on
    /// one field, one. `FIELD=` asks for absence, `FIELD!=` for presence
    #[arg(value_name = "CONDITION")]
    conditions: Vec<String>,
    /// From this time on: 2026-05-31, 2026-05-31T14:00, now-2h, 7d, today, yesterday; all in UTC
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before this time, written likewise
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// A key of fingerprints: values are looked for as they are and as tokens of this key, where
    /// the journal hides them; may be repeated. Default: those of the gateway file, where the
    /// journal is its own
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
}

fn fields_help() -> String {
    let short = Fields::short().map(|(name, what)| format!("  {name:12} {what}"));
    let short: Vec<String> = short.collect();
    format!(
        "Fields, by their short names:\n{}\n  claims.NAME  a claim that policy used. `claims.role!=reviewer` finds those with another role,\n               with none, or with one of no value; calls whose record does not say, because\n               policy did not use the claim, are counted by themselves\n\nAny other field of `portcullis schema record` goes by its full name, such as\ncaller.scopes, response.http_status or ms.total.",
        short.join("\n")
    )
}

/// The time of the command.
pub(super) fn now() -> Time {
    Time(SystemClock::new().now())
}

/// A time of the command line.
///
/// # Errors
/// The exit code; what is wrong was printed.
pub(super) fn instant(name: &str, text: &str) -> Result<Time, u8> {
    time::parse(text, now()).map_err(|error| {
        eprintln!("error: `{name}`: {error}");
        exit::USAGE
    })
}

impl Ask {
    /// What stands on the command line, for whoever reads of it later.
    pub(super) fn said(&self) -> serde_json::Value {
        serde_json::json!({
            "conditions": self.conditions, "since": self.since, "until": self.until,
        })
    }

    /// Whether there is no condition but time.
    pub(super) fn is_plain(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The query.
    ///
    /// # Errors
    /// The exit code; what is wrong was printed.
    pub(super) fn query(&self, from: &From, fields: &Fields, records: bool) -> Result<Query, u8> {
        self.with(Vec::new(), from, fields, records)
    }

    /// The query with further conditions.
    ///
    /// # Errors
    /// The exit code; what is wrong was printed.
    pub(super) fn with(
        &self,
        mut further: Vec<String>,
        from: &From,
        fields: &Fields,
        records: bool,
    ) -> Result<Query, u8> {
        let wrong = |error: &str| {
            eprintln!("error: {error}");
            exit::USAGE
        };
        further.extend_from_slice(&self.conditions);
        let mut query = Query::parse(&further, fields).map_err(|error| wrong(&error))?;
        if let Some(name) = query.beyond_calls().filter(|_| !records) {
            return Err(wrong(&format!(
                "`{name}` is no field of calls\n  = help: `--records` looks at each record by itself"
            )));
        }
        let since = self.since.as_deref().map(|text| instant("--since", text));
        let until = self.until.as_deref().map(|text| instant("--until", text));
        (query.since, query.until) = (since.transpose()?, until.transpose()?);
        self.look_for_tokens(&mut query, from)?;
        Ok(query)
    }

    /// A value that the journal hides must not look as if it were not there.
    fn look_for_tokens(&self, query: &mut Query, from: &From) -> Result<(), u8> {
        let named = self.key.iter().map(|file| fingerprint_key(file));
        let mut keys: Vec<HidingKey> = named.collect::<Result<_, u8>>()?;
        query.look_for_tokens(&keys);
        let Some(name) = query.hidable().map(str::to_owned) else {
            return Ok(());
        };
        if keys.is_empty() {
            keys = from.hiding_keys()?;
            query.look_for_tokens(&keys);
        }
        let known: Vec<String> = keys.iter().map(ToString::to_string).collect();
        for folder in from.folders()? {
            // What cannot be read is told when it is searched.
            let seen = hiding(&listed(&folder)?).unwrap_or_default();
            let others = seen.keys.iter().filter(|id| !known.contains(id));
            let others: Vec<&str> = others.map(String::as_str).collect();
            if !others.is_empty() {
                eprintln!(
                    "warning: {} hides values with a key that is not known here ({}), so `{name}` may not find all\n  = help: name its file with `--key FILE`",
                    folder.display(),
                    others.join(", ")
                );
            }
            if seen.networks && name == "source" {
                eprintln!(
                    "warning: {} has networks for addresses, such as 192.0.2.0/24; `source` compares with these",
                    folder.display()
                );
            }
        }
        Ok(())
    }
}

/// The segments of a journal.
///
/// # Errors
/// The exit code; what is wrong was printed.
pub(super) fn listed(folder: &Folder) -> Result<Vec<Segment>, u8> {
    let unreadable = |why: &str| {
        eprintln!(
            "error: the journal in `{}` cannot be read: {why}",
            folder.display()
        );
        exit::INVALID
    };
    let mut found = segments(folder).map_err(|error| unreadable(&error.to_string()))?;
    for segment in &mut found {
        segment.apart = folder.bundle;
    }
    match found.is_empty() {
        true => Err(unreadable("it has no segment, `journal-….jsonl`")),
        false => Ok(found),
    }
}

/// Looks through journals, one after the other, and tells faults and progress as it goes.
///
/// # Errors
/// The exit code; what is wrong was printed.
pub(super) fn search<T: Send>(
    folders: &[Folder],
    query: &Query,
    records: bool,
    make: &Make<'_, T>,
    found: &mut dyn FnMut(T) -> ControlFlow<()>,
) -> Result<Searched, u8> {
    let mut all = Searched::default();
    for folder in folders {
        let segments = listed(folder)?;
        let mut progress = Progress::of(&segments);
        let mut off = false;
        let search = Search {
            query,
            records,
            threads: cores(),
        };
        let searched = search.run(&segments, make, &mut |told| {
            match told {
                Told::Found(it) => {
                    progress.clear();
                    off = found(it).is_break();
                }
                Told::Fault(place, fault) => {
                    progress.clear();
                    eprintln!("warning: {}: {place}: {fault}", folder.display());
                }
                Told::NotARecord(seq) => {
                    progress.clear();
                    eprintln!("warning: {}: record {seq} is not JSON", folder.display());
                }
                Told::Progress(read) => progress.show(read),
            }
            match off {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        progress.clear();
        all.not_recorded += searched.not_recorded;
        all.faults += searched.faults;
        all.late += searched.late;
        if off {
            break;
        }
    }
    Ok(all)
}

/// Looks through the records of one journal.
///
/// # Errors
/// The exit code; what is wrong was printed.
pub(super) fn search_records(
    folder: &Folder,
    query: &Query,
    found: &mut dyn FnMut(Value) -> ControlFlow<()>,
) -> Result<Searched, u8> {
    let make = |line: &[u8], _: Option<&[u8]>, _: &_| serde_json::from_slice::<Value>(line);
    let folders = std::slice::from_ref(folder);
    // What is not JSON was told as a fault.
    search(folders, query, true, &make, &mut |record| {
        record.map_or(ControlFlow::Continue(()), &mut *found)
    })
}

/// Says on a terminal how far a long reading is.
pub(super) struct Progress {
    total: u64,
    shows: bool,
    shown: Option<u64>,
}

impl Progress {
    /// Nothing is read of these.
    pub(super) fn of(segments: &[Segment]) -> Progress {
        Progress {
            total: segments.iter().map(|segment| segment.bytes).sum(),
            shows: std::io::stderr().is_terminal(),
            shown: None,
        }
    }

    /// So many bytes are read.
    pub(super) fn show(&mut self, read: u64) {
        let percent = read.min(self.total) * 100 / self.total.max(1);
        if self.shows && self.shown != Some(percent) && percent < 100 {
            eprint!("\r{percent} % of {} MiB", self.total >> 20);
            let _ = std::io::stderr().flush();
            self.shown = Some(percent);
        }
    }

    /// Takes it off the terminal again.
    pub(super) fn clear(&mut self) {
        if self.shown.take().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
