//! Rows for terminals and for spreadsheets.

use crate::audit::redact::{ID, cut};
use std::io::{self, IsTerminal, Write};

/// Rows that are looked at before the widths of columns are chosen; later ones are cut to them.
const SAMPLE: usize = 500;
/// The least width of a column that had to give way.
const LEAST: usize = 8;
const GAP: usize = 2;

/// A table that grows while it is printed.
pub(super) struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    widths: Option<Vec<usize>>,
    /// Most characters of a line; `None` where nothing is cut.
    room: Option<usize>,
}

impl Table {
    /// For standard output: on a terminal lines are cut to its width.
    pub(super) fn new(heads: Vec<String>) -> Table {
        let terminal = io::stdout().is_terminal();
        Table {
            heads,
            rows: Vec::new(),
            widths: None,
            room: terminal.then(width),
        }
    }

    /// Adds a row, and prints rows once there is a sample of them.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn add(&mut self, row: Vec<String>, out: &mut dyn Write) -> io::Result<()> {
        let row = row.iter().map(|cell| cut(cell, ID).into_owned()).collect();
        self.rows.push(row);
        if self.widths.is_some() || self.rows.len() >= SAMPLE {
            self.flush(out)?;
        }
        Ok(())
    }

    /// Prints what is left.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn flush(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.widths.is_none() {
            let widths = widths(&self.heads, &self.rows, self.room);
            writeln!(out, "{}", line(&self.heads, &widths))?;
            self.widths = Some(widths);
        }
        let widths = self.widths.as_deref().unwrap_or_default();
        for row in self.rows.drain(..) {
            writeln!(out, "{}", line(&row, widths))?;
        }
        Ok(())
    }
}

/// How wide the terminal is.
fn width() -> usize {
    let told = std::env::var("COLUMNS").ok();
    told.and_then(|text| text.parse().ok())
        .or_else(|| {
            Some(usize::from(
                rustix::termios::tcgetwinsize(io::stdout()).ok()?.ws_col,
            ))
        })
        .filter(|width| *width > 0)
        .unwrap_or(120)
}

/// As wide as the rows need, or so that they fit the room, the widest columns giving way first.
fn widths(heads: &[String], rows: &[Vec<String>], room: Option<usize>) -> Vec<usize> {
    let length = |cell: &String| cell.chars().count();
    let mut widths: Vec<usize> = heads.iter().map(length).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(length(cell));
        }
    }
    let Some(room) = room else {
        return widths;
    };
    let gaps = GAP * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > room {
        match widths.iter_mut().max() {
            Some(widest) if *widest > LEAST => *widest -= 1,
            Some(_) | None => break,
        }
    }
    widths
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
        if at > 0 {
            line.extend(std::iter::repeat_n(' ', GAP));
        }
        let length = cell.chars().count();
        if length > *width {
            line.extend(cell.chars().take(width.saturating_sub(1)));
            line.push('…');
        } else {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - length));
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// A line of comma-separated values (RFC 4180). A cell that a spreadsheet would take for a formula
/// gets an apostrophe in front.
pub(super) fn csv<'c>(cells: impl Iterator<Item = &'c str>) -> String {
    let cells: Vec<String> = cells.map(quoted).collect();
    cells.join(",") + "\r\n"
}

fn quoted(cell: &str) -> String {
    let cell = match cell.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{cell}"),
        false => cell.to_owned(),
    };
    match cell.contains(['"', ',', '\r', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_columns_give_way_first() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let mut table = Table {
            heads: row(["time", "who", "rule"]),
            rows: Vec::new(),
            widths: None,
            room: Some(30),
        };
        let mut out = Vec::new();
        table
            .add(row(["10:00", "somebody with a long name", "r1"]), &mut out)
            .unwrap();
        table
            .add(row(["10:01", "b\u{202e}ob", ""]), &mut out)
            .unwrap();
        table.flush(&mut out).unwrap();
        let expected =
            "time   who                rule\n10:00  somebody with a …  r1\n10:01  b\\u{202e}ob\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn cells_are_quoted_and_are_no_formulas() {
        let cells = ["a", "b,c", "say \"x\"", "=1+1", "@x", "-1", ""];
        assert_eq!(
            csv(cells.into_iter()),
            "a,\"b,c\",\"say \"\"x\"\"\",'=1+1,'@x,'-1,\r\n"
        );
    }
}
