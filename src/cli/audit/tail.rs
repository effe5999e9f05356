//! `portcullis audit tail`: the last calls of a journal, and those that come.

use super::ask::{Ask, listed};
use super::from::From;
use super::query::joined;
use crate::adapters::journal::follow::{Follow, Step};
use crate::adapters::journal::scan::cores;
use crate::adapters::journal::search::{Search, Told};
use crate::audit::query::calls::{Calls, Judged, Piece};
use crate::audit::query::field::Fields;
use crate::audit::query::read::{Column, Row};
use crate::audit::query::{Query, Truth};
use crate::audit::redact::{TEXT, cut};
use crate::cli::exit;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// Between looks at a journal that has nothing new.
const PAUSE: Duration = Duration::from_millis(200);
const CALLS: &str = "time,request,agent,caller,skill,operation,reason,delivery";
const RECORDS: &str = "seq,time,kind,request,agent,caller,reason,delivery";

/// Which calls.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    from: From,
    /// Go on with what comes, also in segments that begin later
    #[arg(short, long)]
    follow: bool,
    /// How many of the last ones
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    lines: usize,
    /// Show each record as it comes; otherwise calls, once they ended
    #[arg(long)]
    records: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// What is said of a call or record.
struct Saying {
    columns: Vec<Column>,
    json: bool,
}

impl Saying {
    fn line(&self, first: &[u8], outcome: Option<&[u8]>, row: &Row) -> Vec<u8> {
        if self.json {
            return joined(first, outcome);
        }
        let cells = self.columns.iter().map(|column| {
            let values = row.values(*column);
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            match values.is_empty() {
                true => "-".to_owned(),
                false => cut(&values.join(","), TEXT).into_owned(),
            }
        });
        cells.collect::<Vec<String>>().join("  ").into_bytes()
    }
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    match answer(arguments) {
        Ok(code) | Err(code) => code,
    }
}

fn answer(arguments: &Arguments) -> Result<u8, u8> {
    let fields = Fields::new();
    let mut query = arguments
        .ask
        .query(&arguments.from, &fields, arguments.records)?;
    let names = if arguments.records { RECORDS } else { CALLS };
    let columns = names.split(',').filter_map(|name| fields.find(name).ok());
    let saying = Saying {
        columns: columns.map(|field| query.column(&field)).collect(),
        json: arguments.json,
    };
    let folders = arguments.from.folders()?;
    let [folder] = folders.as_slice() else {
        eprintln!("error: one journal can be followed at a time");
        return Err(exit::USAGE);
    };
    // What comes later is read from where this ends.
    let segments = listed(folder)?;
    let mut last = VecDeque::new();
    let mut faults = 0;
    let search = Search {
        query: &query,
        records: arguments.records,
        threads: cores(),
    };
    let make = |first: &[u8], outcome: Option<&[u8]>, row: &Row| saying.line(first, outcome, row);
    // The last calls are mostly in the last segments.
    for from in (0..segments.len()).rev() {
        last.clear();
        faults = 0;
        search.run(&segments[from..], &make, &mut |told| {
            match told {
                Told::Found(line) => {
                    last.push_back(line);
                    if last.len() > arguments.lines {
                        last.pop_front();
                    }
                }
                Told::Fault(..) | Told::NotARecord(_) => faults += 1,
                Told::Progress(_) => {}
            }
            ControlFlow::Continue(())
        });
        if last.len() >= arguments.lines {
            break;
        }
    }
    let mut out = io::stdout().lock();
    for line in &last {
        if put(&mut out, line).is_err() {
            return Ok(exit::YES);
        }
    }
    if faults > 0 {
        eprintln!("warning: {faults} places hold no record; `portcullis audit verify` says which");
    }
    if !arguments.follow {
        return Ok(if faults == 0 {
            exit::YES
        } else {
            exit::INTEGRITY
        });
    }
    let place = segments
        .last()
        .map(|segment| (segment.first, segment.bytes));
    let following = Following {
        query: &query,
        records: arguments.records,
        saying: &saying,
    };
    following.go(folder, place, &mut out)
}

fn put(out: &mut dyn Write, line: &[u8]) -> io::Result<()> {
    out.write_all(line)?;
    out.write_all(b"\n")?;
    out.flush()
}

struct Following<'f> {
    query: &'f Query,
    records: bool,
    saying: &'f Saying,
}

impl Following<'_> {
    /// Until standard output is gone.
    fn go(&self, folder: &Path, place: Option<(u64, u64)>, out: &mut dyn Write) -> Result<u8, u8> {
        let filter = self.query.filter();
        let judge = |first: &[u8], outcome: Option<&[u8]>| {
            let Ok(row) = self.query.projection.read(first, outcome) else {
                return Judged::NotARecord;
            };
            match self.query.judge(&row) {
                Truth::Yes => Judged::Yes(self.saying.line(first, outcome, &row)),
                Truth::No => Judged::No,
                Truth::NotRecorded => Judged::NotRecorded,
            }
        };
        let mut calls = Calls::new(&judge);
        let mut follow = Follow::from(folder, place);
        loop {
            let lines = match follow.step() {
                Ok(Step::Lines(lines)) => lines,
                Ok(Step::Nothing) => {
                    std::thread::sleep(PAUSE);
                    continue;
                }
                Err(error) => {
                    eprintln!("error: the journal cannot be read: {error}");
                    return Err(exit::INVALID);
                }
            };
            let mut said = Vec::new();
            let mut give = |_: u64, judged: Judged<Vec<u8>>| match judged {
                Judged::Yes(line) => said.push(line),
                Judged::NotARecord => eprintln!("warning: a line is no record"),
                Judged::No | Judged::NotRecorded => {}
            };
            let mut piece = Piece::new(&filter, &judge);
            for line in lines
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
            {
                match crate::audit::chain::glance(line) {
                    Some((seq, members)) if self.records => {
                        if filter.record(members) {
                            give(seq, judge(line, None));
                        }
                    }
                    Some((seq, members)) => piece.take(seq, line, members),
                    None => eprintln!("warning: a line is no record"),
                }
            }
            calls.join_as_they_end(piece.done(), &mut give);
            for line in said {
                if put(out, &line).is_err() {
                    return Ok(exit::YES);
                }
            }
        }
    }
}
