//! The calls of a journal, and of which time.

use crate::adapters::journal::read::{Line, Reading};
use crate::config::snapshot::Snapshot;
use crate::policy::replay::Recorded;
use std::path::PathBuf;

/// Which records to look at.
#[derive(clap::Args)]
pub(super) struct Window {
    /// The journal's folder; default: the configured one
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,
    /// Only records of this time (UTC) or later: `2026-05-31` or `2026-05-31T12:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = instant)]
    since: Option<String>,
    /// Only records before this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    until: Option<String>,
}

/// What else a window had.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// Records of calls that policy did not decide.
    pub(super) undecided: u64,
    /// Places of the journal with something else than the next record.
    pub(super) faults: u64,
    /// The first and the last time of a decision.
    pub(super) span: Option<(Box<str>, Box<str>)>,
}

impl Window {
    /// Hands over every decision of policy, oldest first, and tells faults of the journal.
    ///
    /// # Errors
    /// The folder cannot be listed, for the operator.
    pub(super) fn each(
        &self,
        snapshot: &Snapshot,
        tell: bool,
        mut take: impl FnMut(&Recorded),
    ) -> Result<Passed, String> {
        let dir = self.journal.as_ref().unwrap_or(&snapshot.audit.dir);
        let reading = Reading::open(dir).map_err(|error| {
            format!("the journal in `{}` cannot be read: {error}", dir.display())
        })?;
        let mut passed = Passed::default();
        for (place, line) in reading {
            let record = match line {
                Line::Record(record) => record,
                Line::Fault(fault) => {
                    passed.faults += 1;
                    if tell {
                        eprintln!("warning: {place}: {fault}");
                    }
                    continue;
                }
            };
            let time = record.get("time").and_then(|time| time.as_str());
            let time = time.unwrap_or_default();
            let early = self.since.as_deref().is_some_and(|since| time < since);
            let late = self.until.as_deref().is_some_and(|until| time >= until);
            if early || late {
                continue;
            }
            let call = ["intent", "refusal"].map(|kind| record.get("kind") == Some(&kind.into()));
            match Recorded::read(&record) {
                Some(recorded) => {
                    let span = passed
                        .span
                        .get_or_insert_with(|| (recorded.time.clone(), recorded.time.clone()));
                    span.1.clone_from(&recorded.time);
                    take(&recorded);
                }
                None if call.contains(&true) => passed.undecided += 1,
                None => {}
            }
        }
        Ok(passed)
    }
}

/// An instant as records have it, so that it can be compared as text; a day is its beginning.
fn instant(text: &str) -> Result<String, String> {
    let (day, time) = text.split_once('T').unwrap_or((text, "00:00:00Z"));
    let form = |text: &str, form: &str| {
        text.len() == form.len()
            && text
                .bytes()
                .zip(form.bytes())
                .all(|(byte, wanted)| match wanted {
                    b'0' => byte.is_ascii_digit(),
                    wanted => byte == wanted,
                })
    };
    if !form(day, "0000-00-00") || !form(time, "00:00:00Z") {
        return Err(
            "write a day, `2026-05-31`, or an instant in UTC, `2026-05-31T12:00:00Z`".into(),
        );
    }
    // Without its `Z` it sorts before all its fractions.
    Ok(format!("{day}T{}", time.trim_end_matches('Z')))
}

#[cfg(test)]
mod tests {
    use super::instant;

    #[test]
    fn instants_sort_like_the_times_of_records() {
        let of = |text| instant(text).unwrap_or_default();
        assert!(*of("2026-05-31") <= *"2026-05-31T00:00:00.000Z");
        assert!(*"2026-05-30T23:59:59.999Z" < *of("2026-05-31"));
        assert!(*of("2026-05-31T12:00:00Z") <= *"2026-05-31T12:00:00.000Z");
        for wrong in [
            "yesterday",
            "2026-5-1",
            "2026-05-31T12:00:00+02:00",
            "",
            "2026-05-31T12:00",
        ] {
            assert!(instant(wrong).is_err(), "{wrong}");
        }
    }
}
