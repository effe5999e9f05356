//! Policies as a command names them: a policy file, a folder of them, or a gateway file.

use crate::config::check::load;
use crate::config::snapshot::Snapshot;
use crate::policy::{self, PolicySet, World};
use crate::source::tree::MAX_BYTES;
use crate::source::{Document, Problem, Problems, codes};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a path holds.
pub(super) enum Source {
    /// Policies, which mean nothing without a configuration.
    Policies(Vec<Document>),
    /// A configuration with its own.
    Gateway(Box<Snapshot>),
}

impl Source {
    /// Reads a path.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(path: &Path) -> Result<Source, Problems> {
        if path.is_dir() {
            return Ok(Source::Policies(folder(path)?));
        }
        let document = parse(path)?;
        let policy = ["policy", "rules"];
        if policy
            .iter()
            .any(|field| document.root.get(field).is_some())
        {
            return Ok(Source::Policies(vec![document]));
        }
        let loaded = load(path)?;
        Ok(Source::Gateway(Box::new(loaded.snapshot)))
    }

    /// The configuration, where it is one.
    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        match self {
            Source::Policies(_) => None,
            Source::Gateway(snapshot) => Some(snapshot),
        }
    }

    /// The compiled rules, for these agents and issuers where it has none of its own.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn compile(&self, world: &World<'_>) -> Result<Arc<PolicySet>, Problems> {
        match self {
            Source::Gateway(snapshot) => Ok(Arc::clone(&snapshot.policy)),
            Source::Policies(documents) => compile(documents, world),
        }
    }
}

/// Compiles policies for these agents and issuers.
///
/// # Errors
/// What is wrong with them.
pub(super) fn compile(
    documents: &[Document],
    world: &World<'_>,
) -> Result<Arc<PolicySet>, Problems> {
    let (policies, problems) = policy::compile(documents, world);
    match problems.has_errors() {
        true => Err(problems),
        false => Ok(Arc::new(policies)),
    }
}

/// Reads policies, each path a file or a folder of them.
///
/// # Errors
/// What is wrong with them.
pub(super) fn policies(paths: &[PathBuf]) -> Result<Vec<Document>, Problems> {
    let mut documents = Vec::new();
    for path in paths {
        if path.is_dir() {
            documents.extend(folder(path)?);
        } else {
            documents.push(parse(path)?);
        }
    }
    Ok(documents)
}

/// Every policy of a folder: tests are none, and hidden files are nobody's.
fn folder(folder: &Path) -> Result<Vec<Document>, Problems> {
    let shown = folder.display().to_string();
    let failed = |error: std::io::Error| unreadable(&shown, &error.to_string());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let yaml = |name: &str| {
            let stem = name.strip_suffix(".yaml").or(name.strip_suffix(".yml"));
            stem.is_some_and(|stem| !stem.ends_with("_test") && !stem.starts_with('.'))
        };
        if name.is_some_and(yaml) && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let documents: Result<Vec<Document>, Problems> = paths.iter().map(|p| parse(p)).collect();
    let documents = documents?;
    if documents.is_empty() {
        let problem = Problem::of_file(&shown, codes::NO_POLICY_FILE, "the folder has no policy")
            .hint("policies are its `*.yaml` files, without hidden ones and `*_test.yaml`");
        return Err(Problems(vec![problem]));
    }
    Ok(documents)
}

fn parse(path: &Path) -> Result<Document, Problems> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| unreadable(&name, &error.to_string()))?;
    let mut bytes = Vec::new();
    // One byte more than is taken: what is longer is found too long.
    file.take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&name, &error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable(&name, "it is not UTF-8 text"))?;
    Document::parse(&name, &text)
}

fn unreadable(name: &str, why: &str) -> Problems {
    let message = format!("cannot be read: {why}");
    Problems(vec![
        Problem::of_file(name, codes::UNREADABLE, message)
            .hint("check the path and the permissions"),
    ])
}
