//! `portcullis audit verify`: is a journal as it was written.

use super::ask::{Progress, listed};
use super::from::From;
use super::keys;
use super::spans::{Beginning, Bundle, beginning, bundle};
use crate::adapters::journal::scan::cores;
use crate::adapters::journal::verify::{is_held, verify};
use crate::audit::checkpoint::Signed;
use crate::audit::redact::{ID, cut};
use crate::audit::verify::join::{End, Verifier};
use crate::audit::verify::piece::Means;
use crate::audit::verify::report::{Report, Stretch};
use crate::audit::verify::{Problem, Required};
use crate::cli::exit;
use crate::source::quantity::parse_duration;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long records may stand behind the last checkpoint while a gateway writes: it signs every
/// minute.
const TAIL: Duration = Duration::from_secs(120);
/// Most problems that are printed; JSON has the first hundred.
const SHOWN: usize = 10;

/// What to verify, and against what.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    from: From,
    /// The keys to trust: a JWKS, or an Ed25519 key in PEM. Default: the gateway file's own
    #[arg(long, value_name = "FILE", conflicts_with = "no_keys")]
    keys: Option<PathBuf>,
    /// Look at no signature: the chain alone shows accidents, and nobody who knows how it is made
    #[arg(long)]
    no_keys: bool,
    /// Checkpoints that were kept elsewhere, one in a line; other lines are passed over. They show
    /// when the end of the journal is gone, or all of it was made anew. May be repeated
    #[arg(long, value_name = "FILE")]
    external: Vec<PathBuf>,
    /// For how long records may stand behind the last checkpoint. Default: 2m while a gateway holds
    /// the journal, and no time otherwise
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    tail: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "write a duration such as `2m`".to_owned())
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    match answer(arguments) {
        Ok(code) | Err(code) => code,
    }
}

fn answer(arguments: &Arguments) -> Result<u8, u8> {
    let external = external(&arguments.external)?;
    let folders = arguments.from.folders()?;
    let keys = match (&arguments.keys, arguments.no_keys) {
        (Some(file), _) => Some(keys::read(file)?),
        (None, true) => None,
        (None, false) => Some(arguments.from.checkpoint_keys()?),
    };
    let means = Means {
        required: Required::new(),
        keys,
        wanted: Verifier::wanted(&external),
    };
    let mut whole = true;
    let mut all = Vec::new();
    for folder in &folders {
        // Before the journal is listed: what is written later is not looked at.
        let held = is_held(folder);
        let tail = arguments.tail.unwrap_or(match held {
            true => TAIL,
            false => Duration::ZERO,
        });
        let segments = listed(folder)?;
        let mut progress = Progress::of(&segments);
        let end = End {
            held,
            tail: u64::try_from(tail.as_millis()).unwrap_or(u64::MAX),
        };
        if folder.bundle {
            let found = bundle(folder, &segments, &means, &external);
            whole &= found.intact();
            match arguments.json {
                true => all.push(bundle_as_json(folder, &found)),
                false => print!("{}", bundle_as_text(folder, &found)),
            }
            continue;
        }
        let beginning = beginning(folder, &segments, means.keys.as_ref());
        if let Some(fault) = &beginning.fault {
            eprintln!("warning: {}: {}", folder.display(), cut(fault, ID));
        }
        let against = (external.clone(), beginning.chain, end);
        let report = verify(&segments, &means, against, cores(), &mut |read| {
            progress.show(read);
        });
        progress.clear();
        whole &= report.intact();
        match arguments.json {
            true => all.push(as_json(folder, &report, &beginning)),
            false => print!("{}", as_text(folder, &report, &beginning)),
        }
    }
    if arguments.json {
        println!("{:#}", json!({ "intact": whole, "journals": all }));
    }
    Ok(if whole { exit::YES } else { exit::INTEGRITY })
}

fn external(files: &[PathBuf]) -> Result<Vec<Signed>, u8> {
    let mut found = Vec::new();
    for path in files {
        let wrong = |why: &str| {
            eprintln!("error: `{}`: {why}", path.display());
            exit::INVALID
        };
        let bytes = fs::read(path).map_err(|error| wrong(&error.to_string()))?;
        let lines = bytes.split(|byte| *byte == b'\n');
        let before = found.len();
        found.extend(lines.filter_map(Signed::of));
        if found.len() == before {
            return Err(wrong("it holds no checkpoint"));
        }
    }
    Ok(found)
}

fn as_text(folder: &Path, report: &Report, beginning: &Beginning) -> String {
    let mut text = format!("{}", folder.display());
    if let Some(journal) = &report.journal {
        text += &format!(" (journal {})", cut(journal, ID));
    }
    let mut say = |name: &str, what: String| text += &format!("\n  {name:12} {what}");
    let times = report.times;
    let times = times.map_or_else(String::new, |(from, to)| format!(", {from} to {to}"));
    say(
        "records",
        format!("{} in {} segments{times}", report.records, report.segments),
    );
    if beginning.segments > 0 {
        let last = beginning.chain.sequence();
        let segments = beginning.segments;
        say(
            "removed",
            format!("records 1 to {last} in {segments} segments, by signed lines"),
        );
    }
    let calls = format!(
        "{} intents, {} outcomes, {} open; {} refusals",
        report.intents, report.outcomes, report.open, report.refusals
    );
    say("calls", calls);
    let checkpoints = &report.checkpoints;
    let keys: Vec<&str> = checkpoints.keys.iter().map(AsRef::as_ref).collect();
    say(
        "checkpoints",
        match (&checkpoints.last, report.checked) {
            (None, true) => "none that is signed by a trusted key".to_owned(),
            (None, false) => "none".to_owned(),
            (Some(last), true) => format!(
                "{} signed by {}; the last covers record {}, {}",
                checkpoints.good,
                keys.join(", "),
                last.size,
                cut(&last.time, ID)
            ),
            (Some(last), false) => format!(
                "{}, the last covers record {}; signatures were not checked (--no-keys)",
                checkpoints.good, last.size
            ),
        },
    );
    if let Some(size) = report.external.last {
        let mut words = format!(
            "{} found; the last covers record {size}",
            report.external.found
        );
        if report.external.pruned > 0 {
            words += &format!(
                "; {} about records that were removed",
                report.external.pruned
            );
        }
        say("external", words);
    }
    let mut runs = format!("{} starts", report.instance_count);
    runs += &match report.unclosed {
        0 => String::new(),
        count => format!(", {count} of them after a process that did not close the journal"),
    };
    runs += match (report.held, report.closed) {
        (true, _) => "; a gateway holds it",
        (false, true) => "; closed in order",
        (false, false) => "; not closed",
    };
    say("gateway", runs);
    let unclosed = report.instances.iter().filter(|one| !one.before_closed);
    for instance in unclosed.take(SHOWN) {
        let after = instance.after.unwrap_or(0) as f64 / 1000.0;
        say(
            "unclosed",
            format!(
                "before record {}, with which {} began {after:.1} s after the record before",
                instance.opened,
                cut(&instance.name, ID)
            ),
        );
    }
    if report.unsigned > 0 {
        say(
            "unsigned",
            format!("{} records behind the last checkpoint", report.unsigned),
        );
    }
    if report.set_back > 0 {
        say(
            "clock",
            format!(
                "set back {} times, by {} ms at most",
                report.set_back, report.most_set_back
            ),
        );
    }
    text += "\n";
    text += &verdict(report);
    text
}

fn verdict(report: &Report) -> String {
    if report.intact() {
        return match report.checked {
            true => "intact\n".to_owned(),
            false => "the chain is whole\n".to_owned(),
        };
    }
    let mut text = String::new();
    let first = report.first_broken();
    if let Some(problem) = first {
        text += &format!("broken: {}\n", in_words(problem));
    }
    let others = report
        .problems
        .iter()
        .filter(|problem| Some(*problem) != first);
    for problem in others.take(SHOWN) {
        text += &format!("  also: {}\n", in_words(problem));
    }
    let told = (SHOWN as u64 + 1).min(report.problems.len() as u64);
    if report.problem_count > told {
        text += &format!("  and {} more\n", report.problem_count - told);
    }
    if report.broken {
        text += &match report.trusted() {
            Some(size) => format!("trusted: records 1 to {size}, which a checkpoint signs\n"),
            None => "trusted: nothing from the beginning on\n".to_owned(),
        };
        let trusted = report.trusted().unwrap_or(0);
        for stretch in report
            .stretches
            .iter()
            .filter(|stretch| stretch.last > trusted)
        {
            text += &format!("{}\n", stretch_in_words(stretch, trusted));
        }
    }
    text + "not intact\n"
}

fn stretch_in_words(stretch: &Stretch, trusted: u64) -> String {
    let first = stretch.first.max(trusted + 1);
    let signed = match &stretch.signed {
        Some(signed) if signed.size >= first => {
            format!(", and a checkpoint signs them up to {}", signed.size)
        }
        Some(_) | None => ", and nothing signs them".to_owned(),
    };
    format!(
        "consistent: records {first} to {} follow from each other{signed}",
        stretch.last
    )
}

fn in_words(problem: &Problem) -> String {
    let records = match problem.records {
        Some((first, last)) if first == last => format!("record {first}"),
        Some((first, last)) if last == first + 1 => format!("records {first} and {last}"),
        Some((first, last)) => format!("records {first} to {last}"),
        None => "the journal".to_owned(),
    };
    let place = problem.place.as_ref();
    let place = place.map_or_else(String::new, |place| format!(" ({place})"));
    format!("{records}{place}: {}", problem.what)
}

fn bundle_as_text(folder: &Path, bundle: &Bundle) -> String {
    let records: u64 = bundle
        .reports
        .iter()
        .map(|(_, report)| report.records)
        .sum();
    let mut text = format!(
        "{}: evidence about {} calls\n  {:12} {records} in {} spans\n  {:12} {}\n",
        folder.display(),
        bundle.calls,
        "records",
        bundle.reports.len(),
        "texts",
        bundle.texts
    );
    for fault in &bundle.faults {
        text += &format!("broken: {fault}\n");
    }
    for (name, report) in &bundle.reports {
        match report.first_broken() {
            Some(problem) => text += &format!("broken: {}\n", in_words(problem)),
            None if report.unsigned > 0 => {
                text += &format!("broken: {name}: it does not end in a checkpoint\n");
            }
            None if !report.intact() => text += &format!("broken: {name}\n"),
            None => {}
        }
    }
    let checked = bundle.reports.iter().all(|(_, report)| report.checked);
    text += match (bundle.intact(), checked) {
        (true, true) => "intact\n",
        (true, false) => "the chains are whole; signatures were not checked (--no-keys)\n",
        (false, _) => "not intact\n",
    };
    text
}

fn bundle_as_json(folder: &Path, bundle: &Bundle) -> Value {
    let none = Beginning::default();
    let span = |(_, report): &(_, Report)| as_json(folder, report, &none);
    json!({
        "folder": folder.display().to_string(),
        "bundle": { "calls": bundle.calls, "texts": bundle.texts },
        "intact": bundle.intact(),
        "faults": bundle.faults,
        "spans": bundle.reports.iter().map(span).collect::<Vec<Value>>(),
    })
}

fn as_json(folder: &Path, report: &Report, beginning: &Beginning) -> Value {
    let problem = |problem: &Problem| {
        let place = problem.place.as_ref();
        json!({
            "what": problem.what.label(),
            "records": problem.records.map(|(first, last)| [first, last]),
            "segment": place.map(|place| &*place.segment),
            "line": place.map(|place| place.line),
            "offset": place.map(|place| place.offset),
            "says": problem.what.to_string(),
        })
    };
    let stretch = |stretch: &Stretch| {
        let signed = stretch.signed.as_ref().map(|signed| signed.size);
        json!({ "first": stretch.first, "last": stretch.last, "signed": signed })
    };
    let last = report.checkpoints.last.as_ref();
    let instances = report.instances.iter();
    let instances: Vec<Value> = instances
        .map(|instance| {
            json!({ "name": *instance.name, "opened": instance.opened, "before_closed": instance.before_closed, "after_ms": instance.after })
        })
        .collect();
    json!({
        "folder": folder.display().to_string(),
        "journal": report.journal.as_deref(),
        "intact": report.intact(),
        "signatures_checked": report.checked,
        "records": report.records, "segments": report.segments,
        "pruned": {
            "records": beginning.chain.sequence(), "segments": beginning.segments,
            "fault": beginning.fault,
        },
        "last": report.last, "head": report.head.as_deref(),
        "from": report.times.map(|(from, _)| from.to_string()),
        "to": report.times.map(|(_, to)| to.to_string()),
        "intents": report.intents, "outcomes": report.outcomes, "refusals": report.refusals,
        "open": report.open,
        "checkpoints": {
            "good": report.checkpoints.good, "bad": report.checkpoints.bad,
            "keys": report.checkpoints.keys.iter().map(AsRef::as_ref).collect::<Vec<&str>>(),
            "last_size": last.map(|last| last.size), "last_time": last.map(|last| &*last.time),
        },
        "external": { "found": report.external.found, "pruned": report.external.pruned },
        "unsigned": report.unsigned,
        "held": report.held, "closed": report.closed, "being_written": report.being_written,
        "starts": report.instance_count, "unclosed": report.unclosed, "instances": instances,
        "set_back": report.set_back,
        "trusted": report.trusted(),
        "consistent": report.stretches.iter().map(stretch).collect::<Vec<Value>>(),
        "first_broken": report.first_broken().map(problem),
        "problems": report.problems.iter().map(problem).collect::<Vec<Value>>(),
        "problem_count": report.problem_count,
    })
}
