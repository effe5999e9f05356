//! Reading an agent's own log: which entry it is, by the request id that we sent, and of when.

use crate::source::instant::parse_instant;
use regex::{Regex, RegexBuilder};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// Longest entry that is read, in bytes.
pub const MAX_ENTRY: usize = 1 << 20;
/// Largest compiled expression, in bytes.
const MAX_PATTERN: usize = 1 << 20;

/// What the receipts middlewares write.
const RECEIPTS: [&str; 2] = ["request_id", "time"];
/// The last quoted field is the id; quotes inside fields are escaped.
const COMBINED: &str = r#"\[(?P<time>[^\]]+)\].*"(?P<id>(?:[^"\\]|\\.)*)"\s*$"#;
/// Envoy's time stands in brackets at the beginning.
const ENVOY: &str = r#"^\[(?P<time>[^\]]+)\].*"(?P<id>[^"]*)"\s*$"#;

/// How entries are written.
#[derive(Debug)]
pub enum Format {
    /// One JSON object a line.
    Json {
        /// Where the id is.
        id: Vec<Box<str>>,
        /// Where the time is.
        time: Option<Vec<Box<str>>>,
    },
    /// RFC 4180, with a line of names at the beginning.
    Csv {
        /// The name of the id's column.
        id: Box<str>,
        /// The name of the time's column.
        time: Option<Box<str>>,
        /// The columns' places, once their names were read.
        places: Option<(usize, Option<usize>)>,
    },
    /// A line in which an expression finds `id`, and perhaps `time`.
    Pattern(Regex),
}

/// What is wrong with a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatError(pub String);

/// An entry.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// What stands where the id should be.
    pub id: Option<Cow<'a, str>>,
    /// Milliseconds since the Unix epoch.
    pub at: Option<u64>,
}

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// An entry.
    Entry(Entry<'a>),
    /// Names of columns, or an empty line.
    Nothing,
    /// No entry of this format.
    NotUnderstood,
}

impl Format {
    /// The receipts of our middlewares.
    pub fn receipts() -> Format {
        let [id, time] = RECEIPTS;
        Format::Json {
            id: vec![id.into()],
            time: Some(vec![time.into()]),
        }
    }

    /// JSON objects with the id at a path of names with dots.
    pub fn json(id: &str, time: Option<&str>) -> Format {
        let path = |text: &str| text.split('.').map(Box::from).collect();
        Format::Json {
            id: path(id),
            time: time.map(path),
        }
    }

    /// Columns.
    pub fn csv(id: &str, time: Option<&str>) -> Format {
        Format::Csv {
            id: id.into(),
            time: time.map(Box::from),
            places: None,
        }
    }

    /// The combined format of Apache and nginx, with the id as last quoted field.
    pub fn combined() -> Result<Format, FormatError> {
        Format::pattern(COMBINED)
    }

    /// Envoy's text format, with the id as last quoted field.
    pub fn envoy() -> Result<Format, FormatError> {
        Format::pattern(ENVOY)
    }

    /// Lines in which an expression finds the group `id`, and perhaps `time`.
    ///
    /// # Errors
    /// It is no expression, is too large, or has no group `id`.
    pub fn pattern(text: &str) -> Result<Format, FormatError> {
        let built = RegexBuilder::new(text).size_limit(MAX_PATTERN).build();
        let pattern = built.map_err(|error| FormatError(error.to_string()))?;
        if !pattern.capture_names().flatten().any(|name| name == "id") {
            return Err(FormatError("it has no group `(?P<id>…)`".into()));
        }
        Ok(Format::Pattern(pattern))
    }

    /// Reads a line.
    ///
    /// # Errors
    /// The names of the columns lack one that was asked for.
    pub fn read<'l>(&mut self, line: &'l [u8]) -> Result<Line<'l>, FormatError> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(Line::Nothing);
        }
        let entry = match self {
            Format::Json { id, time } => json(line, id, time.as_deref()),
            Format::Pattern(pattern) => std::str::from_utf8(line).ok().and_then(|line| {
                let found = pattern.captures(line)?;
                let id = found.name("id").map(|id| Cow::Borrowed(id.as_str()));
                Some(Entry {
                    id: id.filter(|id| !["", "-"].contains(&&**id)),
                    at: found.name("time").and_then(|time| moment(time.as_str())),
                })
            }),
            Format::Csv { id, time, places } => {
                let Some((id_at, time_at)) = places else {
                    let names = fields(line).unwrap_or_default();
                    let place = |name: &str| {
                        let found = names
                            .iter()
                            .position(|n| n.trim_start_matches('\u{feff}') == name);
                        found.ok_or_else(|| {
                            FormatError(format!("its first line has no column `{name}`"))
                        })
                    };
                    let time = time.as_deref().map(place).transpose()?;
                    *places = Some((place(id)?, time));
                    return Ok(Line::Nothing);
                };
                fields(line).map(|mut fields| Entry {
                    at: time_at.and_then(|at| moment(fields.get(at)?)),
                    id: (*id_at < fields.len())
                        .then(|| fields.swap_remove(*id_at))
                        .filter(|id| !id.is_empty()),
                })
            }
        };
        Ok(entry.map_or(Line::NotUnderstood, Line::Entry))
    }

    /// Whether an entry goes on in the next line: a quoted field of CSV may hold line feeds.
    pub fn goes_on(&self, line: &[u8]) -> bool {
        matches!(self, Format::Csv { .. }) && line.iter().filter(|b| **b == b'"').count() % 2 == 1
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn json<'l>(line: &[u8], id: &[Box<str>], time: Option<&[Box<str>]>) -> Option<Entry<'l>> {
    let value: Value = serde_json::from_slice(line).ok()?;
    if !value.is_object() {
        return None;
    }
    let at = |path: &[Box<str>]| -> Option<&Value> {
        let mut names = path.iter();
        names.try_fold(&value, |value, name| value.get(&**name))
    };
    let id = at(id).and_then(Value::as_str);
    let time = time.and_then(at).and_then(|time| match time {
        Value::String(text) => moment(text),
        Value::Number(number) => number.as_f64().and_then(since_epoch),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    });
    Some(Entry {
        id: id.map(|id| Cow::Owned(id.to_owned())),
        at: time,
    })
}

/// The fields of one record of RFC 4180; `None` where quotes do not fit.
fn fields(line: &[u8]) -> Option<Vec<Cow<'_, str>>> {
    let text = std::str::from_utf8(line).ok()?;
    let mut rest = text.strip_suffix('\r').unwrap_or(text);
    let mut fields = Vec::new();
    loop {
        let (field, left) = match rest.strip_prefix('"') {
            None => match rest.find(',') {
                Some(at) => (Cow::Borrowed(&rest[..at]), &rest[at..]),
                None => (Cow::Borrowed(rest), ""),
            },
            Some(quoted) => {
                let mut field = String::new();
                let mut quoted = quoted;
                loop {
                    let at = quoted.find('"')?;
                    field.push_str(&quoted[..at]);
                    quoted = &quoted[at + 1..];
                    match quoted.strip_prefix('"') {
                        Some(more) => {
                            field.push('"');
                            quoted = more;
                        }
                        None => break,
                    }
                }
                (Cow::Owned(field), quoted)
            }
        };
        fields.push(field);
        match left.strip_prefix(',') {
            Some(next) => rest = next,
            None if left.is_empty() => return Some(fields),
            None => return None,
        }
    }
}

/// A time as logs write it: RFC 3339, that of access logs, or a number since the epoch.
pub fn moment(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return since_epoch(number);
    }
    if let Some(rest) = text.get(2..).filter(|rest| rest.starts_with('/')) {
        return of_access_log(text, rest);
    }
    let dot = text.find('.').unwrap_or(text.len());
    let (whole, fraction) = text.split_at(dot);
    let zone = fraction.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (fraction, zone) = fraction.split_at(zone.unwrap_or(fraction.len()));
    let seconds = parse_instant(&format!("{}{zone}", whole.replacen(' ', "T", 1)))?;
    let mut millis = 0;
    for (digit, worth) in fraction.bytes().skip(1).zip([100, 10, 1]) {
        millis += u64::from(digit - b'0') * worth;
    }
    Some(u64::try_from(seconds).ok()? * 1000 + millis)
}

/// `10/Oct/2026:13:55:36 -0700`.
fn of_access_log(text: &str, rest: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = rest.get(1..4)?;
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let (day, year, time) = (text.get(..2)?, text.get(7..11)?, text.get(12..20)?);
    let zone = text.get(21..26)?;
    let (hours, minutes) = zone.split_at_checked(3)?;
    let seconds = parse_instant(&format!("{year}-{month:02}-{day}T{time}{hours}:{minutes}"))?;
    Some(u64::try_from(seconds).ok()? * 1000)
}

/// Seconds, or milliseconds where seconds would be beyond the year 5000.
fn since_epoch(number: f64) -> Option<u64> {
    let good = number.is_finite() && (0.0..1e16).contains(&number);
    let millis = if number < 1e11 {
        number * 1000.0
    } else {
        number
    };
    good.then_some(millis as u64)
}
