//! `policies`: which policy files are loaded, and their rules.

use super::capture::{Capture, PatternFault};
use super::document;
use super::snapshot::{PolicyFile, Snapshot};
use crate::policy::{self, AgentFacts, PolicySet, World};
use crate::source::tree::clip;
use crate::source::{Document, Kind, Problem, Problems, Value, codes};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// The policy files of a capture.
#[derive(Debug, Default)]
pub(super) struct PolicyFiles {
    /// In load order, each once.
    pub(super) files: Vec<PolicyFile>,
    /// Policies that must be there.
    pub(super) names: Vec<Box<str>>,
    documents: Vec<Document>,
    problems: Problems,
    /// Whether files must end with [`END`].
    must_end: bool,
}

/// The line that ends a YAML document.
const END: &str = "...";

/// Reads the files that `policies` names.
pub(super) fn read(value: &Value<'_, '_>, capture: &Capture) -> PolicyFiles {
    let mut policies = PolicyFiles::default();
    let Some(fields) = value.fields(&document::POLICIES) else {
        return policies;
    };
    let end_marker = fields.get("end_marker");
    policies.must_end = end_marker.is_some_and(|v| v.word(&[("required", ())]).is_some());
    let patterns = fields
        .get("files")
        .and_then(|v| v.texts())
        .unwrap_or_default();
    for (place, pattern) in patterns {
        let found = match capture.patterns.get(pattern) {
            Some(Ok(found)) => found.as_slice(),
            Some(Err(fault)) => {
                pattern_fault(&place, fault);
                continue;
            }
            None => &[],
        };
        if found.is_empty() {
            place.error(
                codes::NO_POLICY_FILE,
                "no file matches",
                "paths are relative to the gateway file; hidden files and `*_test.yaml` never match",
            );
        }
        for path in found {
            if !policies.files.iter().any(|f| f.path == *path) {
                policies.add(path, &place, capture);
            }
        }
    }
    let there: HashSet<&str> = policies.documents.iter().filter_map(policy_name).collect();
    let names = fields.get("names").and_then(|v| v.texts());
    for (place, name) in names.unwrap_or_default() {
        if !there.contains(name) {
            place.error(
                codes::POLICY_VANISHED,
                format!("no loaded file has the policy `{}`", clip(name)),
                "a deny that vanishes would widen what is allowed: bring the file back, or take the name out",
            );
        }
        policies.names.push(name.into());
    }
    policies
}

fn policy_name(document: &Document) -> Option<&str> {
    match &document.root.get("policy")?.kind {
        Kind::Str(name) => Some(name),
        _ => None,
    }
}

impl PolicyFiles {
    /// The rules, for the agents and issuers of `snapshot`, and all problems of the files.
    /// `complete` says that the gateway file had no error.
    pub(super) fn compile(
        self,
        snapshot: Option<&Snapshot>,
        complete: bool,
    ) -> (Arc<PolicySet>, Problems) {
        let mut world = snapshot.map_or_else(World::default, Snapshot::world);
        world.complete = complete && snapshot.is_some();
        let (policy, found) = policy::compile(&self.documents, &world);
        let mut problems = self.problems;
        problems.extend(found);
        (Arc::new(policy), problems)
    }

    fn add(&mut self, path: &Path, place: &Value<'_, '_>, capture: &Capture) {
        let name = path.display().to_string();
        let bytes = match capture.files.get(path).map(|file| &file.bytes) {
            Some(Ok(bytes)) => bytes,
            Some(Err(why)) => {
                place.error(
                    codes::UNREADABLE,
                    format!("the policy file `{name}` cannot be read: {why}"),
                    "paths are relative to the gateway file; check the permissions too",
                );
                return;
            }
            None => return,
        };
        let problem = match std::str::from_utf8(bytes) {
            Ok(text) if text.trim().is_empty() => Problem::of_file(
                name,
                codes::EMPTY,
                "the file is empty",
            )
            .hint("an empty file never replaces a working policy; take it out of `policies.files`"),
            Ok(text) if self.must_end && text.trim_end().lines().last() != Some(END) => {
                Problem::of_file(name, codes::CUT_SHORT, "the file does not end with `...`").hint(
                    "the rest of it may be missing; where it is whole, write a last line `...`",
                )
            }
            Ok(text) => {
                match Document::parse(&name, text) {
                    Ok(document) => self.documents.push(document),
                    Err(problems) => self.problems.extend(problems),
                }
                self.files.push(PolicyFile {
                    path: path.to_owned(),
                    text: text.into(),
                });
                return;
            }
            Err(_) => Problem::of_file(name, codes::NOT_UTF8, "not UTF-8 text")
                .hint("save the file as UTF-8"),
        };
        self.problems.push(problem);
    }
}

impl Snapshot {
    /// What its rules may be about.
    pub fn world(&self) -> World<'_> {
        let agents = self.agents.iter().map(|agent| AgentFacts {
            name: &agent.name,
            skills: &agent.skills,
            has_backend_paths: !agent.backend_paths.is_empty(),
        });
        World {
            agents: agents.collect(),
            issuers: &self.issuers,
            complete: true,
        }
    }
}

fn pattern_fault(place: &Value<'_, '_>, fault: &PatternFault) {
    let (message, hint) = match fault {
        PatternFault::Unsupported => (
            "this pattern is not read".to_owned(),
            "write a path whose last part may have `*`: `../policies/*.yaml`",
        ),
        PatternFault::Tests => (
            "a file of policy tests is never loaded as policy".to_owned(),
            "name the policy; its tests are found by `portcullis test`",
        ),
        PatternFault::Directory(why) => (
            format!("the directory cannot be listed: {why}"),
            "paths are relative to the gateway file",
        ),
    };
    place.error(codes::BAD_PATTERN, message, hint);
}
