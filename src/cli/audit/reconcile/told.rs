//! What was found, in words, as JSON, and for Prometheus.

use super::{List, Passed, StrayLine};
use crate::audit::reconcile::{Listed, Report, Split};
use crate::audit::redact::{TEXT, cut};
use serde::Serialize;
use std::fmt::Write;

pub(super) fn json(
    out: &mut String,
    report: &Report,
    read: &Passed,
    listed: Option<&(List, (Vec<Listed>, u64))>,
) {
    #[derive(Serialize)]
    struct Whole<'a> {
        breached: bool,
        #[serde(flatten)]
        report: &'a Report,
        #[serde(flatten)]
        read: &'a Passed,
        #[serde(skip_serializing_if = "Option::is_none")]
        ids: Option<&'a Vec<Listed>>,
    }
    let whole = Whole {
        breached: report.is_breached(),
        report,
        read,
        ids: listed.map(|(_, (ids, _))| ids),
    };
    // Names are strings and numbers are whole, so that cannot fail.
    out.push_str(&serde_json::to_string_pretty(&whole).unwrap_or_default());
    out.push('\n');
}

pub(super) fn in_words(
    out: &mut String,
    report: &Report,
    read: &Passed,
    listed: Option<&(List, (Vec<Listed>, u64))>,
) -> std::fmt::Result {
    let (counts, strays) = (&report.counts, &report.theirs_only);
    let (both, ours) = (&counts.both, &counts.ours_only);
    let split = |s: &Split| {
        format!(
            "reached yes {}, maybe {}, no {}, open {}",
            s.yes, s.maybe, s.no, s.open
        )
    };
    writeln!(
        out,
        "both                  {:>9}  {}",
        both.total(),
        split(both)
    )?;
    writeln!(
        out,
        "ours only             {:>9}  {}",
        ours.total(),
        split(ours)
    )?;
    writeln!(
        out,
        "theirs only           {:>9}  without our id {}, not in the journal {}, another agent's {}",
        strays.total(),
        strays.without_id,
        strays.unknown_id,
        strays.other_agent
    )?;
    writeln!(
        out,
        "refused but executed  {:>9}  of {} refused",
        counts.refused_but_executed,
        counts.refused + counts.refused_but_executed
    )?;
    if counts.repeated > 0 {
        writeln!(
            out,
            "repeated              {:>9}  of them {} that we sent more than once",
            counts.repeated, counts.resent
        )?;
    }
    for (count, what) in [
        (
            both.no,
            "contradicted: the journal says that nothing of them reached the agent",
        ),
        (report.fetches, "of our own fetches are in the agent's log"),
        (
            report.outside,
            "lines of the agent's log belong to another time",
        ),
        (read.ignored, "lines of the agent's log were left out"),
        (
            read.not_understood,
            "lines of the agent's log are not in this format",
        ),
        (
            read.faults,
            "places of the journal are no record: see `portcullis audit verify`",
        ),
    ] {
        if count > 0 {
            writeln!(out, "{count} {what}")?;
        }
    }
    let Some((list, (ids, count))) = listed else {
        return Ok(());
    };
    writeln!(out)?;
    if *list == List::TheirsOnly {
        for StrayLine {
            file,
            line,
            why,
            id,
        } in &read.strays
        {
            let id = id.as_deref().unwrap_or("-");
            writeln!(out, "{file}, line {line}: {id}: {}", why.label())?;
        }
        let left = strays.total().saturating_sub(read.strays.len() as u64);
        return more_left(out, left);
    }
    for listed in ids {
        writeln!(
            out,
            "{} {} {} seen {}",
            listed.request_id,
            cut(&listed.agent, TEXT),
            listed.journal,
            listed.seen
        )?;
    }
    more_left(out, count - ids.len() as u64)
}

fn more_left(out: &mut String, left: u64) -> std::fmt::Result {
    match left {
        0 => Ok(()),
        left => writeln!(out, "… and {left} more: see `--limit`"),
    }
}

/// The numbers as Prometheus reads them. Strangers are of the agent whose log it is, which is known
/// where it was named, or where there is only one.
pub(super) fn metrics(report: &Report, agent: Option<&str>, now: u64) -> String {
    let mut names = report.agents.keys().filter(|name| *name != "other");
    let only = match (agent, names.next(), names.next()) {
        (Some(agent), _, _) => agent,
        (None, Some(name), None) => name,
        (None, _, _) => "other",
    };
    let mut out = String::new();
    let (records, moment) = ("reconcile_records", "reconcile_timestamp_seconds");
    let _ = write!(
        out,
        "# HELP portcullis_{records} Requests by what the journal and the agent's own log have of them.\n\
         # TYPE portcullis_{records} gauge\n",
    );
    let mut agents = report.agents.clone();
    agents.remove("other");
    agents.entry(only.to_owned()).or_default();
    for (name, counts) in &agents {
        let theirs = if name == only {
            report.theirs_only.total()
        } else {
            0
        };
        for (kind, value) in [
            ("both", counts.both.total()),
            ("ours_only_yes", counts.ours_only.yes),
            ("ours_only_maybe", counts.ours_only.maybe),
            ("ours_only_no", counts.ours_only.no),
            ("ours_only_open", counts.ours_only.open),
            ("theirs_only", theirs),
            ("refused", counts.refused),
            ("refused_but_executed", counts.refused_but_executed),
            ("repeated", counts.repeated),
            ("contradicted", counts.both.no),
        ] {
            // Names of agents have neither quotes nor backslashes.
            let _ = writeln!(
                out,
                "portcullis_{records}{{agent=\"{name}\",kind=\"{kind}\"}} {value}"
            );
        }
    }
    let _ = write!(
        out,
        "# HELP portcullis_{moment} When they were compared.\n\
         # TYPE portcullis_{moment} gauge\n\
         portcullis_{moment} {}.{:03}\n",
        now / 1000,
        now % 1000
    );
    out
}
