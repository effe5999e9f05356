//! `portcullis prove --verify`: whether a result is what was signed, and about the present files.

use super::signed::verified;
use super::{Arguments, DEFAULT_CONFIG};
use crate::adapters::key_files;
use crate::cli::exit;
use crate::cli::policy::suite::{Source, Suite};
use crate::cli::token::safe;
use crate::identity::issuer::Algorithm;
use crate::identity::keys::KeySet;
use serde_json::{Map, Value, json};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Longest result and key set that are read, in bytes.
const MAX_FILE: u64 = 64 << 20;

pub(super) fn run(arguments: &Arguments, file: &Path) -> u8 {
    let done = verify(arguments, file);
    done.unwrap_or_else(|code| code)
}

fn invalid(path: &Path, what: impl Display) -> u8 {
    eprintln!("error: `{}`: {what}", path.display());
    exit::INVALID
}

fn verify(arguments: &Arguments, file: &Path) -> Result<u8, u8> {
    let suite = match (&arguments.config, &arguments.key, &arguments.jwks) {
        (Some(config), _, _) => Some(Suite::of_gateway(config)?),
        (None, None, None) => Some(Suite::of_gateway(Path::new(DEFAULT_CONFIG))?),
        (None, _, _) => None,
    };
    let keys = keys(arguments, suite.as_ref())?;
    let bytes = read(file).map_err(|error| invalid(file, error))?;
    let (result, kid) = match verified(&bytes, &keys) {
        Ok(found) => found,
        Err(unproven) => {
            let (what, code) = unproven.told();
            if arguments.json {
                println!("{:#}", json!({ "good": false, "why": [what] }));
            } else {
                println!("{}: NOT PROVEN: {what}", file.display());
            }
            return Err(code);
        }
    };
    let mut why = Vec::new();
    if let (Some(suite), Some(_)) = (&suite, &arguments.config) {
        changed(&result, suite, &mut why);
    }
    let summary = &result["summary"];
    if arguments.json {
        let found = json!({
            "good": why.is_empty(), "why": why, "kid": kid,
            "time": result["time"], "summary": summary,
        });
        println!("{found:#}");
    } else if why.is_empty() {
        let said = |value: &Value| safe(value.as_str().unwrap_or("?"));
        println!(
            "{}: good, signed by {} at {}: {} proven, {} failed, {} not tried",
            file.display(),
            safe(&kid),
            said(&result["time"]),
            summary["proven"],
            summary["failed"],
            summary["not_tried"]
        );
    } else {
        for why in &why {
            println!("{}: NOT PROVEN: {why}", file.display());
        }
    }
    match why.is_empty() {
        true => Ok(exit::YES),
        false => Err(exit::INTEGRITY),
    }
}

/// The public keys whose signatures count.
fn keys(arguments: &Arguments, suite: Option<&Suite>) -> Result<KeySet, u8> {
    if let Some(path) = &arguments.jwks {
        let bytes = read(path).map_err(|error| invalid(path, error))?;
        let set = KeySet::parse(&bytes, Algorithm::Rs256);
        return set
            .map(|(set, _)| set)
            .map_err(|fault| invalid(path, fault));
    }
    let file: Option<PathBuf> = match (&arguments.key, suite) {
        (Some(file), _) => Some(file.clone()),
        (None, Some(suite)) => suite.snapshot.keys.proof_file().map(|(file, _)| file),
        (None, None) => None,
    };
    let Some(file) = file else {
        eprintln!("error: nothing says whose signature counts");
        eprintln!(
            "   = help: give --jwks FILE or --key FILE, or have `keys: {{dir: …}}` in the gateway file"
        );
        return Err(exit::INVALID);
    };
    let key = key_files::open(&file, false).map_err(|error| {
        eprintln!("error: {error}");
        exit::INVALID
    })?;
    let set = format!(r#"{{"keys":[{}]}}"#, key.public_jwk());
    let set = KeySet::parse(set.as_bytes(), Algorithm::Rs256);
    set.map(|(set, _)| set)
        .map_err(|fault| invalid(&file, fault))
}

/// What of the present files is not what the result is about.
fn changed(result: &Map<String, Value>, suite: &Suite, why: &mut Vec<String>) {
    let of = |value: &Value| value["sha256"].as_str().map(str::to_owned);
    let present = &suite.sources;
    if of(&result["gateway"]).as_ref() != Some(&present.gateway.sha256) {
        why.push(format!(
            "`{}` is not the gateway file that was tried",
            present.gateway.path
        ));
    }
    let tried = result["policies"].as_array();
    let tried: Vec<(String, String)> = tried
        .into_iter()
        .flatten()
        .map(|file| {
            let path = file["path"].as_str().unwrap_or("?");
            (safe(path), of(file).unwrap_or_default())
        })
        .collect();
    let now = |hash: &str| {
        present
            .policies
            .iter()
            .any(|Source { sha256, .. }| sha256 == hash)
    };
    for Source { path, sha256 } in &present.policies {
        if !tried.iter().any(|(_, hash)| hash == sha256) {
            why.push(format!("`{path}` is not a policy that was tried"));
        }
    }
    for (path, _) in tried.iter().filter(|(_, hash)| !now(hash)) {
        why.push(format!(
            "the policy that was tried as `{path}` is not in force"
        ));
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_FILE + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long"));
    }
    Ok(bytes)
}
