//! `portcullis audit policy`: which configuration was in force.

use super::ask::{instant, now, search_records};
use super::from::{Folder, From};
use crate::audit::query::Query;
use crate::audit::query::field::Fields;
use crate::audit::record::Time;
use crate::audit::redact::{ID, cut, hex};
use crate::cli::exit;
use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Largest text of a configuration that is read back, in bytes.
const MAX_TEXT: u64 = 16 << 20;

/// Of which time.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    from: From,
    /// The one in force at this time (UTC; as for `audit query --since`). Default: the last one
    #[arg(long, value_name = "TIME", conflicts_with = "digest")]
    at: Option<String>,
    /// The one with this digest, or its first digits
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// Print its files too, after checking that they are those of then
    #[arg(long)]
    text: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A configuration that was in force.
pub(super) struct Loaded {
    /// Its record.
    pub(super) record: Value,
    /// When another one took its place.
    pub(super) until: Option<String>,
    /// How many were refused meanwhile.
    pub(super) refused: u64,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    match answer(arguments) {
        Ok(code) | Err(code) => code,
    }
}

fn answer(arguments: &Arguments) -> Result<u8, u8> {
    let at = arguments.at.as_deref().map(|at| instant("--at", at));
    let at = at.transpose()?.unwrap_or_else(now);
    let mut found = Vec::new();
    let mut faults = 0;
    for folder in arguments.from.folders()? {
        let (configurations, these) = configurations(&folder)?;
        faults += these;
        let one = match &arguments.digest {
            Some(digest) => configurations
                .into_iter()
                .rev()
                .find(|loaded| text(&loaded.record, "policy_digest").starts_with(&**digest)),
            None => configurations.into_iter().rev().find(|loaded| {
                Time::parse(text(&loaded.record, "time")).is_some_and(|time| time <= at)
            }),
        };
        if let Some(loaded) = one {
            found.push((folder, loaded));
        }
    }
    let mut good = true;
    let mut all = Vec::new();
    for (folder, loaded) in &found {
        let (files, intact) = files(folder, loaded, arguments.text);
        good &= intact;
        match arguments.json {
            true => all.push(as_json(loaded, files)),
            false => print!("{}", as_text(loaded, &files)),
        }
    }
    if arguments.json {
        println!("{:#}", Value::Array(all));
    } else if found.is_empty() {
        eprintln!("no such configuration is in the journal");
    }
    Ok(match (found.is_empty(), good && faults == 0) {
        (false, true) => exit::YES,
        (true, true) => exit::NO,
        (_, false) => exit::INTEGRITY,
    })
}

fn text<'v>(record: &'v Value, name: &str) -> &'v str {
    record[name].as_str().unwrap_or_default()
}

/// The configurations of a journal that were in force, in order, and how many faults the journal
/// has.
///
/// # Errors
/// The exit code; what is wrong was printed.
pub(super) fn configurations(folder: &Folder) -> Result<(Vec<Loaded>, u64), u8> {
    let query = Query::parse(&["kind=config".to_owned()], &Fields::new()).map_err(|error| {
        eprintln!("error: {error}");
        exit::USAGE
    })?;
    let mut all: Vec<Loaded> = Vec::new();
    let searched = search_records(folder, &query, &mut |record| {
        if record["result"] != "loaded" {
            if let Some(last) = all.last_mut() {
                last.refused += 1;
            }
            return ControlFlow::Continue(());
        }
        let time = text(&record, "time").to_owned();
        if let Some(last) = all.last_mut() {
            last.until = Some(time);
        }
        all.push(Loaded {
            record,
            until: None,
            refused: 0,
        });
        ControlFlow::Continue(())
    })?;
    Ok((all, searched.faults))
}

/// A file of a configuration.
pub(super) struct Kept {
    name: String,
    role: String,
    sha256: String,
    /// Its text, or why that is not there.
    text: Option<Result<String, &'static str>>,
}

/// The files of a configuration, and whether all that were asked for are those of then.
fn files(folder: &Folder, loaded: &Loaded, texts: bool) -> (Vec<Kept>, bool) {
    let mut good = true;
    let files = loaded.record["files"].as_array().into_iter().flatten();
    let files = files.map(|file| {
        let sha256 = text(file, "sha256").to_owned();
        let kept = texts.then(|| kept(folder, &sha256));
        good &= !matches!(kept, Some(Err(_)));
        Kept {
            name: text(file, "name").to_owned(),
            role: text(file, "role").to_owned(),
            sha256,
            text: kept,
        }
    });
    let files: Vec<Kept> = files.collect();
    (files, good)
}

/// A text by its digest, which it must have.
///
/// # Errors
/// Why it cannot be shown.
pub(super) fn kept(folder: &Folder, sha256: &str) -> Result<String, &'static str> {
    if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("its digest is none");
    }
    let path: PathBuf = folder.join("texts").join(sha256);
    let size = std::fs::metadata(&path).map_err(|_| "its text is not beside the journal")?;
    if size.len() > MAX_TEXT {
        return Err("its text is too long");
    }
    let bytes = std::fs::read(&path).map_err(|_| "its text cannot be read")?;
    if hex(digest(&SHA256, &bytes).as_ref(), &mut [0; 64]) != sha256 {
        return Err("its text is not the one of then: the digest differs");
    }
    String::from_utf8(bytes).map_err(|_| "its text is no text")
}

/// What a rule says, as it stands in the texts of a configuration, with the name of its file.
pub(super) fn rule(folder: &Folder, loaded: &Loaded, id: &str) -> Option<(String, String)> {
    let (files, _) = files(folder, loaded, true);
    let policies = files.into_iter().filter(|file| file.role == "policy");
    let mut found = policies.filter_map(|file| {
        let text = file.text?.ok()?;
        Some((file.name, lines_of(&text, id)?))
    });
    found.next()
}

/// The lines of the list item whose `id` this is: up to the next line that is not indented deeper.
fn lines_of(yaml: &str, id: &str) -> Option<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is = |line: &str| {
        let value = line
            .trim_start()
            .strip_prefix("- ")?
            .trim_start()
            .strip_prefix("id:")?;
        let value = value.split(" #").next()?.trim();
        let value = value.trim_matches(['"', '\'']);
        (value == id).then_some(())
    };
    let lines: Vec<&str> = yaml.lines().collect();
    let at = lines.iter().position(|line| is(line).is_some())?;
    let (first, rest) = lines.get(at..)?.split_first()?;
    let depth = indent(first);
    let mut text = (*first).to_owned();
    let deeper = |line: &&&str| line.trim().is_empty() || indent(line) > depth;
    for line in rest.iter().take_while(deeper) {
        text.push('\n');
        text.push_str(line);
    }
    Some(text.trim_end().to_owned())
}

fn as_text(loaded: &Loaded, files: &[Kept]) -> String {
    let record = &loaded.record;
    let mut out = format!(
        "digest      {}\ngeneration  {}\ninstance    {}\nsince       {}\nuntil       {}\n",
        cut(text(record, "policy_digest"), ID),
        record["generation"],
        cut(text(record, "instance"), ID),
        cut(text(record, "time"), ID),
        loaded
            .until
            .as_deref()
            .map_or("the end of the journal".into(), |time| cut(time, ID)),
    );
    if loaded.refused > 0 {
        out += &format!("refused     {} others meanwhile\n", loaded.refused);
    }
    for file in files {
        let name = cut(&file.name, ID);
        out += &format!(
            "{:11} {name} sha256 {}\n",
            cut(&file.role, ID),
            cut(&file.sha256, ID)
        );
    }
    for file in files {
        match &file.text {
            Some(Ok(text)) => {
                out += &format!("\n--- {}\n", cut(&file.name, ID));
                for line in text.lines() {
                    out += &cut(line, 4096);
                    out.push('\n');
                }
            }
            Some(Err(why)) => out += &format!("\n--- {}: {why}\n", cut(&file.name, ID)),
            None => {}
        }
    }
    out
}

fn as_json(loaded: &Loaded, files: Vec<Kept>) -> Value {
    let files = files.into_iter().map(|file| {
        let (text, error) = match file.text {
            Some(Ok(text)) => (Some(text), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        json!({ "name": file.name, "role": file.role, "sha256": file.sha256, "text": text, "error": error })
    });
    json!({
        "digest": loaded.record["policy_digest"], "generation": loaded.record["generation"],
        "instance": loaded.record["instance"], "since": loaded.record["time"],
        "until": loaded.until, "refused": loaded.refused,
        "files": files.collect::<Vec<Value>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::lines_of;

    #[test]
    fn a_rule_ends_where_the_next_begins() {
        let yaml = "version: 1\nrules:\n  - id: a\n    allow: {agents: [x]}\n\n    require:\n      role: {equals: b}\n  - id: \"b\" # second\n    deny: {}\nwebhooks: {}\n";
        let a = "  - id: a\n    allow: {agents: [x]}\n\n    require:\n      role: {equals: b}";
        assert_eq!(lines_of(yaml, "a").as_deref(), Some(a));
        assert_eq!(
            lines_of(yaml, "b").as_deref(),
            Some("  - id: \"b\" # second\n    deny: {}")
        );
        assert_eq!(lines_of(yaml, "c"), None);
    }
}
