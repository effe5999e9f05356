//! `portcullis audit query`: the calls of a journal that meet conditions.

use super::ask::{Ask, search};
use super::from::{Folder, From};
use super::table::{Table, csv};
use crate::adapters::journal::search::{Make, Searched};
use crate::audit::query::Query;
use crate::audit::query::field::Fields;
use crate::audit::query::read::{Column, Row};
use crate::cli::exit;
use clap::ValueEnum;
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

/// Most of the newest that are kept to be turned round.
const NEWEST: usize = 1000;
const MOST: usize = 1_000_000;
/// Most groups that are told apart; the rest is counted together.
const GROUPS: usize = 100_000;
const CALLS: &str = "time,request,agent,caller,skill,operation,reason,rule,delivery";
const RECORDS: &str = "seq,time,kind,request,agent,caller,reason,delivery";

/// What to look for, and how to say it.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    from: From,
    /// Look at each record by itself; otherwise intents are joined with their outcomes
    #[arg(long)]
    records: bool,
    /// Count by these fields instead of listing
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',', conflicts_with_all = ["limit", "order", "columns"])]
    by: Vec<String>,
    /// At most so many
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Which come first; of the newest, 1000 where no limit is given
    #[arg(long, value_enum, default_value = "oldest")]
    order: Order,
    /// What a row of the table or of the CSV has
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',')]
    columns: Vec<String>,
    /// Print one JSON object per line: the whole records, a call's outcome as member `outcome`
    #[arg(long, conflicts_with_all = ["csv", "columns"])]
    json: bool,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    Oldest,
    Newest,
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
    let wanted = match (arguments.by.is_empty(), arguments.columns.is_empty()) {
        (false, _) => arguments.by.clone(),
        (true, false) => arguments.columns.clone(),
        (true, true) => {
            let usual = if arguments.records { RECORDS } else { CALLS };
            usual.split(',').map(str::to_owned).collect()
        }
    };
    let mut columns = Vec::new();
    for name in &wanted {
        let field = fields.find(name).map_err(|error| {
            eprintln!("error: {error}");
            exit::USAGE
        })?;
        columns.push(query.column(&field));
    }
    let time = fields.find("time").map(|field| query.column(&field)).ok();
    let limit = arguments.limit.unwrap_or(match arguments.order {
        Order::Oldest => usize::MAX,
        Order::Newest => NEWEST,
    });
    if arguments.order == Order::Newest && limit > MOST {
        eprintln!(
            "error: the newest can only be kept up to {MOST}\n  = help: `--since` bounds how many there are"
        );
        return Err(exit::USAGE);
    }
    let folders = arguments.from.folders()?;
    let asked = Asked {
        arguments,
        query: &query,
        columns: &columns,
        time,
        wanted: &wanted,
        limit,
    };
    let told = match (arguments.by.is_empty(), arguments.json) {
        (false, _) => asked.groups(&folders),
        (true, true) => asked.lines(&folders),
        (true, false) => asked.rows(&folders),
    };
    let (searched, found) = told?;
    if searched.late > 0 {
        eprintln!(
            "note: {} calls ended long after they began; they stand at the end",
            searched.late
        );
    }
    if searched.not_recorded > 0 {
        eprintln!(
            "note: not recorded: {} further calls meet all other conditions, but their records do not say the claim, since policy did not use it",
            searched.not_recorded
        );
    }
    Ok(match (searched.faults, found) {
        (0, true) => exit::YES,
        (0, false) => exit::NO,
        (_, _) => exit::INTEGRITY,
    })
}

/// A query with what is to be said of what is found.
struct Asked<'a> {
    arguments: &'a Arguments,
    query: &'a Query,
    columns: &'a [Column],
    time: Option<Column>,
    wanted: &'a [String],
    limit: usize,
}

/// What came of a search, and whether anything was found.
type Told = Result<(Searched, bool), u8>;

impl Asked<'_> {
    fn rows(&self, folders: &[Folder]) -> Told {
        let make = |_: &[u8], _: Option<&[u8]>, row: &Row| self.cells(row);
        let mut out = BufWriter::new(io::stdout().lock());
        if self.arguments.csv {
            let heads = csv(self.wanted.iter().map(String::as_str));
            write!(out, "{heads}").map_err(lost)?;
            return self.in_order(folders, &make, &mut |cells: Vec<String>| {
                write!(out, "{}", csv(cells.iter().map(String::as_str)))
            });
        }
        let mut table = Table::new(self.wanted.to_vec());
        let told = self.in_order(folders, &make, &mut |cells| {
            let shown = |cell: String| {
                if cell.is_empty() {
                    "-".to_owned()
                } else {
                    cell
                }
            };
            table.add(cells.into_iter().map(shown).collect(), &mut out)
        })?;
        if told.1 {
            table.flush(&mut out).map_err(lost)?;
        } else {
            eprintln!("nothing was found");
        }
        Ok(told)
    }

    fn lines(&self, folders: &[Folder]) -> Told {
        let make = |first: &[u8], outcome: Option<&[u8]>, _: &Row| joined(first, outcome);
        let mut out = BufWriter::new(io::stdout().lock());
        self.in_order(folders, &make, &mut |line: Vec<u8>| {
            out.write_all(&line)?;
            out.write_all(b"\n")
        })
    }

    fn in_order<T: Send>(
        &self,
        folders: &[Folder],
        make: &Make<'_, T>,
        put: &mut dyn FnMut(T) -> io::Result<()>,
    ) -> Told {
        let newest = self.arguments.order == Order::Newest;
        let mut kept = VecDeque::new();
        let mut count = 0;
        let mut failed = None;
        let searched = search(
            folders,
            self.query,
            self.arguments.records,
            make,
            &mut |it| {
                count += 1;
                if newest {
                    kept.push_back(it);
                    if kept.len() > self.limit {
                        kept.pop_front();
                    }
                    return ControlFlow::Continue(());
                }
                if let Err(error) = put(it) {
                    failed = Some(error);
                }
                match failed.is_some() || count >= self.limit {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            },
        )?;
        for it in kept.into_iter().rev() {
            if failed.is_none() {
                failed = put(it).err();
            }
        }
        match failed {
            Some(error) => Err(lost(error)),
            None => Ok((searched, count > 0)),
        }
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        let columns = self.columns.iter();
        columns.map(|column| cell(row, *column)).collect()
    }

    fn groups(&self, folders: &[Folder]) -> Told {
        let make = |_: &[u8], _: Option<&[u8]>, row: &Row| {
            let time = self.time.map(|time| cell(row, time));
            (self.cells(row), time.unwrap_or_default())
        };
        let mut groups: HashMap<Vec<String>, Group> = HashMap::new();
        let mut beyond = 0u64;
        let take = &mut |(key, time): (Vec<String>, String)| {
            let full = groups.len() >= GROUPS;
            match groups.get_mut(&key) {
                Some(group) => group.add(time),
                None if full => beyond += 1,
                None => {
                    groups.insert(key, Group::new(time));
                }
            }
            ControlFlow::Continue(())
        };
        let searched = search(folders, self.query, self.arguments.records, &make, take)?;
        let mut groups: Vec<(Vec<String>, Group)> = groups.into_iter().collect();
        groups.sort_by(|(a, one), (b, other)| other.count.cmp(&one.count).then(a.cmp(b)));
        let found = !groups.is_empty();
        self.print(groups).map_err(lost)?;
        if beyond > 0 {
            eprintln!(
                "note: {beyond} more are of further groups; more than {GROUPS} are not told apart"
            );
        }
        Ok((searched, found))
    }

    fn print(&self, groups: Vec<(Vec<String>, Group)>) -> io::Result<()> {
        let mut out = BufWriter::new(io::stdout().lock());
        let heads: Vec<String> = std::iter::once("count".to_owned())
            .chain(self.wanted.iter().cloned())
            .chain(["first".to_owned(), "last".to_owned()])
            .collect();
        if self.arguments.csv {
            write!(out, "{}", csv(heads.iter().map(String::as_str)))?;
        }
        if groups.is_empty() {
            eprintln!("nothing was found");
            return out.flush();
        }
        let mut table = Table::new(heads);
        for (key, Group { count, first, last }) in groups {
            if self.arguments.json {
                let by = self.wanted.iter().cloned().zip(key);
                let by: serde_json::Map<_, _> =
                    by.map(|(name, value)| (name, json!(value))).collect();
                let group = json!({ "count": count, "by": by, "first": first, "last": last });
                writeln!(out, "{group}")?;
                continue;
            }
            let mut cells = vec![count.to_string()];
            cells.extend(key);
            cells.extend([first, last]);
            match self.arguments.csv {
                true => write!(out, "{}", csv(cells.iter().map(String::as_str)))?,
                false => {
                    let shown = |cell: String| {
                        if cell.is_empty() {
                            "-".to_owned()
                        } else {
                            cell
                        }
                    };
                    table.add(cells.into_iter().map(shown).collect(), &mut out)?;
                }
            }
        }
        if !self.arguments.json && !self.arguments.csv {
            table.flush(&mut out)?;
        }
        out.flush()
    }
}

struct Group {
    count: u64,
    first: String,
    last: String,
}

impl Group {
    fn new(time: String) -> Group {
        Group {
            count: 1,
            first: time.clone(),
            last: time,
        }
    }

    fn add(&mut self, time: String) {
        self.count += 1;
        if time > self.last {
            self.last = time;
        } else if time < self.first {
            self.first = time;
        }
    }
}

/// The values of a field; for a claim without one, why, in parentheses.
fn cell(row: &Row, column: Column) -> String {
    let values = row.values(column);
    if let (true, Some(lack)) = (values.is_empty(), row.lack(column)) {
        return format!("({lack})");
    }
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    values.join(" ")
}

/// A call's records as one object.
pub(super) fn joined(first: &[u8], outcome: Option<&[u8]>) -> Vec<u8> {
    let mut line = first.to_vec();
    if let Some(outcome) = outcome {
        line.pop();
        line.extend_from_slice(b",\"outcome\":");
        line.extend_from_slice(outcome);
        line.push(b'}');
    }
    line
}

/// Standard output is gone, as after `| head`: that is no fault of the journal.
fn lost(error: io::Error) -> u8 {
    if error.kind() != io::ErrorKind::BrokenPipe {
        eprintln!("error: standard output: {error}");
        return exit::INVALID;
    }
    exit::YES
}
