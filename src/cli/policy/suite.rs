//! Policies and their tests, as a command line names them.

use crate::cli::exit;
use crate::config::capture::Capture;
use crate::config::check::compile;
use crate::config::snapshot::Snapshot;
use crate::identity::trial::principal;
use crate::identity::{Principal, TokenFault, fault};
use crate::pipeline::trial::{Bench, Judged};
use crate::policy::trial::{Caller, Calling, Trial, is_tests, read};
use crate::policy::{self, PolicySet};
use crate::source::tree::MAX_BYTES;
use crate::source::{Document, Kind, Problem, Problems, codes};
use aws_lc_rs::digest::{SHA256, digest};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which policies and tests.
#[derive(clap::Args)]
pub(in crate::cli) struct Named {
    /// Policy files, `*_test.yaml` files, and folders of both. Policy files among them take the
    /// place of those that the gateway file names. Default: the gateway file's policies, and the
    /// tests beside them
    #[arg(value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// The gateway file, which says what agents, skills, issuers and claims there are
    #[arg(long, value_name = "FILE", default_value = "config/gateway.yaml")]
    pub(super) config: PathBuf,
}

/// Policies with their tests, all without errors.
pub(in crate::cli) struct Suite {
    pub(super) snapshot: Snapshot,
    pub(super) policy: Arc<PolicySet>,
    pub(super) trials: Vec<Trial>,
    /// Files of tests that are about other policies than these.
    pub(super) passed_over: Vec<String>,
    /// What it was read from.
    pub(super) sources: Sources,
}

/// The files of a suite, as they were when they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sources {
    pub(super) gateway: Source,
    pub(super) policies: Vec<Source>,
    pub(super) tests: Vec<Source>,
}

/// A file, and the hex SHA-256 of its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) sha256: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Source {
        let hash = digest(&SHA256, text.as_bytes());
        Source {
            path: path.to_owned(),
            sha256: hash.as_ref().iter().map(|b| format!("{b:02x}")).collect(),
        }
    }

    fn of(documents: &[Document]) -> Vec<Source> {
        let one = |document: &Document| Source::new(&document.file, document.text());
        documents.iter().map(one).collect()
    }
}

impl Suite {
    /// Reads everything, and prints what is wrong.
    ///
    /// # Errors
    /// The exit code.
    pub(super) fn open(named: &Named) -> Result<Suite, u8> {
        let wrong = |problems: Problems| {
            eprint!("{problems}");
            exit::INVALID
        };
        let (snapshot, gateway) = opened(&named.config).map_err(wrong)?;
        let mut suite = Suite::read(snapshot, &named.paths).map_err(wrong)?;
        suite.sources.gateway = gateway;
        Ok(suite)
    }

    /// The gateway file with its policies, without tests.
    ///
    /// # Errors
    /// The exit code; what is wrong was printed.
    pub(super) fn of_gateway(config: &Path) -> Result<Suite, u8> {
        let (snapshot, gateway) = opened(config).map_err(|problems| {
            eprint!("{problems}");
            exit::INVALID
        })?;
        let files = snapshot.policies.iter();
        let policies = files.map(|file| Source::new(&file.path.display().to_string(), &file.text));
        Ok(Suite {
            sources: Sources {
                gateway,
                policies: policies.collect(),
                tests: Vec::new(),
            },
            policy: Arc::clone(&snapshot.policy),
            snapshot,
            trials: Vec::new(),
            passed_over: Vec::new(),
        })
    }

    pub(super) fn read(snapshot: Snapshot, paths: &[PathBuf]) -> Result<Suite, Problems> {
        let mut found = Found::default();
        if paths.is_empty() {
            let mut folders = BTreeSet::new();
            for file in &snapshot.policies {
                folders.extend(file.path.parent().map(Path::to_owned));
                let name = file.path.display().to_string();
                found.policies.push(Document::parse(&name, &file.text)?);
            }
            for folder in folders {
                found.folder(&folder, true)?;
            }
        }
        for path in paths {
            if path.is_dir() {
                found.folder(path, false)?;
            } else {
                found.file(path)?;
            }
        }
        let own = found.policies.is_empty();
        if own {
            for file in &snapshot.policies {
                let name = file.path.display().to_string();
                found.policies.push(Document::parse(&name, &file.text)?);
            }
        }
        let world = snapshot.world();
        let policy = if own || paths.is_empty() {
            Arc::clone(&snapshot.policy)
        } else {
            let (policy, problems) = policy::compile(&found.policies, &world);
            if problems.has_errors() {
                return Err(problems);
            }
            Arc::new(policy)
        };
        let passed_over = found.pass_over()?;
        let sources = Sources {
            gateway: Source::default(),
            policies: Source::of(&found.policies),
            tests: Source::of(&found.tests),
        };
        // Who names files of tests alone means these.
        let within = if own && !paths.is_empty() {
            Vec::new()
        } else {
            found.policies
        };
        let documents: Vec<Document> = within.into_iter().chain(found.tests).collect();
        let (trials, problems) = read(&documents, &policy, &world);
        if problems.has_errors() {
            return Err(problems);
        }
        Ok(Suite {
            snapshot,
            policy,
            trials,
            passed_over,
            sources,
        })
    }

    /// What comes of a call.
    pub(super) fn judge(&self, caller: &Caller, calling: &Calling) -> Judged {
        let principal = self.principal(caller);
        self.bench()
            .judge(principal.as_ref().map_err(|fault| *fault), calling)
    }

    /// Whose a described token is.
    pub(super) fn principal(&self, caller: &Caller) -> Result<Principal, TokenFault> {
        let config = self.snapshot.issuers.get(caller.issuer);
        let config = config.ok_or(fault::UNKNOWN_ISSUER)?;
        principal(&caller.payload, (caller.issuer, config), caller.grant)
    }

    pub(super) fn bench(&self) -> Bench<'_> {
        Bench {
            agents: &self.snapshot.agents,
            policy: &self.policy,
        }
    }
}

/// A gateway file with everything that it names.
pub(super) fn opened(config: &Path) -> Result<(Snapshot, Source), Problems> {
    let capture = Capture::take(config);
    let loaded = compile(&capture, 1, None)?;
    let name = config.display().to_string();
    let text = capture.document.as_ref().map_or("", Document::text);
    Ok((loaded.snapshot, Source::new(&name, text)))
}

/// Files, read.
#[derive(Default)]
struct Found {
    policies: Vec<Document>,
    tests: Vec<Document>,
    /// Where in `tests` those begin that nobody named.
    unnamed: BTreeSet<String>,
}

impl Found {
    /// Takes what there is in a folder: of other YAML than policies and tests nothing is said.
    fn folder(&mut self, folder: &Path, tests_only: bool) -> Result<(), Problems> {
        let shown = folder.display().to_string();
        let unreadable = |error: std::io::Error| {
            let message = format!("the folder cannot be listed: {error}");
            Problems(vec![
                Problem::of_file(&shown, codes::UNREADABLE, message)
                    .hint("check the path and the permissions"),
            ])
        };
        // The folder of a path without one.
        let listed = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        let mut paths = Vec::new();
        for entry in fs::read_dir(listed).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            let Ok(name) = name.into_string() else {
                continue;
            };
            let yaml = name.ends_with(".yaml") || name.ends_with(".yml");
            if yaml && !name.starts_with('.') && folder.join(&name).is_file() {
                paths.push(folder.join(name));
            }
        }
        paths.sort();
        for path in paths {
            let name = path.display().to_string();
            let tests = name.ends_with("_test.yaml") || name.ends_with("_test.yml");
            if tests_only && !tests {
                continue;
            }
            let document = parse(&path)?;
            if tests {
                self.unnamed.insert(name);
                self.tests.push(document);
            } else if ["policy", "rules"]
                .iter()
                .any(|f| document.root.get(f).is_some())
            {
                self.policies.push(document);
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(), Problems> {
        let document = parse(path)?;
        if is_tests(&document) {
            self.tests.push(document);
        } else {
            self.policies.push(document);
        }
        Ok(())
    }

    /// Drops tests that nobody named and that are about other policies.
    fn pass_over(&mut self) -> Result<Vec<String>, Problems> {
        let loaded: BTreeSet<String> = self.policies.iter().filter_map(about).collect();
        let mut passed_over = Vec::new();
        let mut problems = Problems::default();
        self.tests.retain(|document| {
            let Some(name) = about(document).filter(|name| !loaded.contains(name)) else {
                return true;
            };
            if self.unnamed.contains(&document.file) {
                passed_over.push(document.file.clone());
            } else {
                let place = document.root.get("policy").map(|node| node.position);
                let message = format!("the policy `{name}` is not among those that are tested");
                problems.push(
                    document
                        .problem(place.unwrap_or_default(), codes::POLICY_VANISHED, message)
                        .at("policy")
                        .hint("name its file as well, or another --config"),
                );
            }
            false
        });
        if problems.has_errors() {
            return Err(problems);
        }
        Ok(passed_over)
    }
}

/// The policy that a file is, or is about.
fn about(document: &Document) -> Option<String> {
    match &document.root.get("policy")?.kind {
        Kind::Str(name) => Some(name.clone()),
        _ => None,
    }
}

pub(super) fn parse(path: &Path) -> Result<Document, Problems> {
    let name = path.display().to_string();
    let unreadable = |why: String| {
        let message = format!("cannot be read: {why}");
        Problems(vec![
            Problem::of_file(&name, codes::UNREADABLE, message)
                .hint("check the path and the permissions"),
        ])
    };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    // One byte more than is read: what is longer is found too long.
    let most = MAX_BYTES as u64 + 1;
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".into()))?;
    Document::parse(&name, &text)
}
