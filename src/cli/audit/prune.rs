//! `portcullis audit prune`: removes old or exported segments, each for a signed line.

use crate::adapters::clock::SystemClock;
use crate::adapters::journal::prune::{
    Ends, Pruner, bounded, ends, hash_of, removed, whole, written,
};
use crate::adapters::journal::scan::segments;
use crate::adapters::key_files;
use crate::audit::checkpoint::{Signed, public_keys};
use crate::audit::pruned::{Candidate, Pruned, Rules, Stays, Why, plan};
use crate::audit::record::Time;
use crate::cli::exit;
use crate::config::check::load;
use crate::config::snapshot::Snapshot;
use crate::identity::SigningKey;
use crate::identity::keys::KeySet;
use crate::pipeline::ports::Clock;
use crate::source::quantity::{parse_duration, parse_size, show_duration, show_size};
use serde::Deserialize;
use serde_json::json;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest file of a position that is read, in bytes.
const MAX_POSITION: u64 = 65_536;

/// What to remove.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The gateway file: where the journal is, its minimum age, and the key that signs
    #[arg(long, value_name = "FILE", default_value = "config/gateway.yaml")]
    config: PathBuf,
    /// The journal's folder; default: the configured one
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,
    /// Only segments whose last record is at least this old, such as `90d`
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
    /// Stop as soon as the journal is no larger than this, such as `10GiB`
    #[arg(long, value_name = "SIZE", value_parser = size)]
    down_to: Option<u64>,
    /// The file that `audit export --position` or the gateway's export keeps: segments that are
    /// exported whole may go before the minimum age; may be repeated, and then all must have them
    #[arg(long, value_name = "FILE")]
    exported: Vec<PathBuf>,
    /// Say what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What of a position matters here.
#[derive(Deserialize)]
struct Position {
    journal: Option<String>,
    seq: u64,
    sha256: String,
}

fn age(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "a number and one of ms, s, m, h, d, as in `90d`".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| "a number and one of B, KiB, MiB, GiB, TiB".to_owned())
}

fn invalid(what: impl Display) -> u8 {
    eprintln!("error: {what}");
    exit::INVALID
}

fn broken(path: &Path, what: impl Display) -> u8 {
    eprintln!("error: `{}`: {what}", path.display());
    eprintln!("   = help: nothing of it was removed; `portcullis audit verify` says what is wrong");
    exit::INTEGRITY
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    prune(arguments).unwrap_or_else(|code| code)
}

fn prune(arguments: &Arguments) -> Result<u8, u8> {
    let snapshot = load(&arguments.config)
        .map_err(|problems| {
            eprint!("{problems}");
            exit::INVALID
        })?
        .snapshot;
    let dir = arguments.journal.as_ref().unwrap_or(&snapshot.audit.dir);
    let unreadable = |error| invalid(format!("the journal in `{}`: {error}", dir.display()));
    let pruner = Pruner::open(dir).map_err(unreadable)?;
    let gone = removed(dir).map_err(unreadable)?;
    let all = segments(dir).map_err(unreadable)?;
    let mut found = Vec::new();
    for (index, segment) in all.iter().enumerate() {
        let growing = index + 1 == all.len();
        let ends = ends(&segment.path, growing);
        found.extend(ends.map_err(|error| broken(&segment.path, error))?);
    }
    let candidates = candidates(&found)?;
    let exported = exported(&arguments.exported, &found)?;
    let rules = Rules {
        now: SystemClock::new().now(),
        min_age: snapshot.audit.min_age,
        exported,
        older_than: arguments.older_than,
        down_to: arguments.down_to,
        oldest_open: found.last().and_then(|newest| newest.first.oldest_open),
    };
    let (going, stays) = plan(&candidates, &rules);
    let mut done = Vec::new();
    if !going.is_empty() {
        let key = key(&snapshot)?;
        let keys = public_keys(&key).ok_or_else(|| invalid("the key has no public part"))?;
        for (segment, why) in found.iter().zip(&going) {
            let line = line(segment, *why, &key, &keys, rules.now)?;
            let known = follows(&gone, done.last(), &line).map_err(|why| broken(dir, why))?;
            if !arguments.dry_run {
                let removed = pruner.remove(&line, known);
                removed.map_err(|error| invalid(format!("cannot remove: {error}")))?;
            }
            done.push(line);
        }
    }
    told(arguments, &done, stays, found.len() - done.len(), &rules);
    Ok(exit::YES)
}

fn candidates(found: &[Ends]) -> Result<Vec<Candidate>, u8> {
    let one = |ends: &Ends| {
        let time = Time::parse(&ends.last.time)
            .ok_or_else(|| broken(&ends.path, "its last record has no time"))?;
        Ok(Candidate {
            last_seq: ends.last.seq,
            bytes: ends.bytes,
            last_time: time.0,
        })
    };
    found.iter().map(one).collect()
}

/// The last record that every export has; `None` without an export.
fn exported(files: &[PathBuf], found: &[Ends]) -> Result<Option<u64>, u8> {
    let mut least: Option<u64> = None;
    for file in files {
        let wrong = |what: &str| invalid(format!("`{}`: {what}", file.display()));
        let text = bounded(file, MAX_POSITION).map_err(|error| wrong(&error.to_string()))?;
        let position: Position =
            serde_json::from_str(&text).map_err(|_| wrong("it is no position of an export"))?;
        let within = |ends: &&Ends| ends.first.seq <= position.seq && position.seq <= ends.last.seq;
        if let Some(ends) = found.iter().find(within) {
            let hash = hash_of(&ends.path, position.seq);
            let hash = hash.map_err(|error| broken(&ends.path, error))?;
            let journal = ends.first.journal.as_ref();
            let other = journal.zip(position.journal.as_ref());
            if written(&hash) != position.sha256 || other.is_some_and(|(one, two)| one != two) {
                return Err(wrong("it is the position in another journal"));
            }
        } else if found
            .last()
            .is_some_and(|newest| newest.last.seq < position.seq)
        {
            return Err(wrong("it is the position in another journal"));
        }
        least = Some(least.map_or(position.seq, |least| least.min(position.seq)));
    }
    Ok(least)
}

fn key(snapshot: &Snapshot) -> Result<SigningKey, u8> {
    let (file, _) = snapshot.keys.checkpoint_file(&snapshot.audit.dir);
    key_files::open(&file, false).map_err(invalid)
}

/// What a segment leaves, after it was read through and its last checkpoint was checked.
fn line(segment: &Ends, why: Why, key: &SigningKey, keys: &KeySet, now: u64) -> Result<Pruned, u8> {
    let path = &segment.path;
    let whole = whole(path).map_err(|error| broken(path, error))?;
    let signed = Signed::of(&whole.last).ok_or_else(|| {
        broken(
            path,
            "it does not end in a checkpoint, so nothing vouches for it",
        )
    })?;
    signed
        .verify(keys)
        .map_err(|fault| broken(path, format!("its last checkpoint proves nothing: {fault}")))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut line = Pruned {
        v: 1,
        segment: name.into_owned(),
        journal: signed.journal.into(),
        first_seq: whole.before.sequence() + 1,
        last_seq: whole.after.sequence(),
        bytes: whole.bytes,
        sha256: written(&whole.sha256),
        prev: written(&whole.before.head()),
        head: written(&whole.after.head()),
        from: segment.first.time.clone(),
        to: segment.last.time.clone(),
        why: why.label().to_owned(),
        time: Time(now).to_string(),
        key_id: String::new(),
        signature: String::new(),
    };
    line.sign(key);
    Ok(line)
}

/// Whether the line is there already, after a crash; an error where the chain has a hole.
fn follows(gone: &[Pruned], before: Option<&Pruned>, line: &Pruned) -> Result<bool, String> {
    if let Some(known) = gone.iter().find(|known| known.segment == line.segment) {
        return match known.sha256 == line.sha256 {
            true => Ok(true),
            false => Err(format!("{} is not the file that was removed", line.segment)),
        };
    }
    let before = before.or(gone.last());
    let joined = match before {
        Some(before) => before.leads_to(line),
        None => line.first_seq == 1,
    };
    match joined {
        true => Ok(false),
        false => Err(format!(
            "records are missing before record {} of {}",
            line.first_seq, line.segment
        )),
    }
}

fn told(arguments: &Arguments, done: &[Pruned], stays: Stays, left: usize, rules: &Rules) {
    let bytes: u64 = done.iter().map(|line| line.bytes).sum();
    let why = match stays {
        Stays::Newest => "it is the newest".to_owned(),
        Stays::OpenIntent(seq) => format!("intent {seq} has no outcome yet"),
        Stays::Young => format!(
            "it is younger than `min_age` ({}) and not exported whole",
            show_duration(rules.min_age)
        ),
        Stays::Asked => "it is younger than --older-than".to_owned(),
        Stays::Small => "the journal is small enough".to_owned(),
    };
    if arguments.json {
        let list: Vec<&str> = done.iter().map(|line| &*line.segment).collect();
        let out = json!({
            "dry_run": arguments.dry_run, "segments": list, "bytes": bytes,
            "left": left, "next_stays": why,
        });
        println!("{out:#}");
        return;
    }
    let verb = match arguments.dry_run {
        true => "would remove",
        false => "removed",
    };
    for line in done {
        println!(
            "{verb} {}: records {} to {}, until {} ({})",
            line.segment, line.first_seq, line.last_seq, line.to, line.why
        );
    }
    println!(
        "{verb} {} segments, {}; {left} are left, and the oldest of them stays: {why}",
        done.len(),
        show_size(bytes),
    );
}
