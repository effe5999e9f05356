//! Tests of policies: a caller, a call, and what must come of it.
//!
//! Read here, run by [`crate::pipeline::trial`]. A test that could never hold, or never fail, is a
//! problem of its file like any other.

mod expect;
mod payload;
pub mod shape;

pub use expect::{Expect, ExpectedNear, Miss};

use super::decide::Asked;
use super::index::PolicySet;
use super::names::{Names, World, operations};
use crate::a2a::strict_json::Value as Json;
use crate::a2a::{Operation, OperationGroup};
use crate::identity::ProofKind;
use crate::identity::issuer::Grant;
use crate::identity::trial::{Beside, completed, marked};
use crate::source::tree::clip;
use crate::source::{Document, Problems, Value, Walker, codes};
use shape::{CALL, CALLER, TEST, TEST_FILE};
use std::collections::HashMap;

/// One test.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// What it shows.
    pub name: Box<str>,
    /// The file that it stands in, as it was named to us.
    pub file: Box<str>,
    /// The line in which it begins.
    pub line: usize,
    /// Who calls.
    pub caller: Caller,
    /// What is called.
    pub call: Calling,
    /// What must come of it.
    pub expect: Expect,
    /// What may be changed about it without a refusal.
    pub survive: Vec<Box<str>>,
}

/// A caller, by what its token says.
#[derive(Debug, Clone, PartialEq)]
pub struct Caller {
    /// Position of its issuer in the configuration.
    pub issuer: usize,
    /// The reach of its token, where no mark in the payload gives one.
    pub grant: Option<Grant>,
    /// The claims as they were written.
    pub claims: Json,
    /// The whole payload: the claims, and what every token of the issuer has.
    pub payload: Json,
}

/// A call to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Calling {
    /// Position of the agent in the configuration.
    pub agent: usize,
    /// The operation.
    pub asked: Asked,
    /// The skill that a message names.
    pub skill: Option<Box<str>>,
    /// The message, as A2A 1.0 writes it; `None`: any.
    pub message: Option<Json>,
    /// Whether the task that it names is the caller's.
    pub owned: bool,
}

/// Reads the tests of policy files and of files of tests. Problems of policy files are left to
/// [`super::compile()`], which finds them all.
pub fn read(
    documents: &[Document],
    policies: &PolicySet,
    world: &World<'_>,
) -> (Vec<Trial>, Problems) {
    let reader = Reader {
        names: &Names::new(world),
        policies,
        whole: true,
    };
    let mut trials = Vec::new();
    let mut problems = Problems::default();
    for document in documents {
        let walker = Walker::new(document);
        let root = walker.root();
        if is_tests(document) {
            let tests = root.fields(&TEST_FILE).and_then(|f| f.get("tests"));
            let found = tests.map(|tests| reader.tests(&document.file, &tests));
            trials.extend(found.into_iter().flatten());
            problems.extend(walker.into_problems());
        } else if document.root.get("tests").is_some() {
            let tests = root
                .fields(&super::document::POLICY)
                .and_then(|f| f.get("tests"));
            let found = tests.map(|tests| reader.tests(&document.file, &tests));
            trials.extend(found.into_iter().flatten());
        }
    }
    (trials, problems)
}

/// A payload that stands in a file of its own.
///
/// # Errors
/// It is no mapping, or has what JSON does not have.
pub fn payload(document: &Document) -> Result<Json, Problems> {
    let walker = Walker::new(document);
    let found = payload::object(&walker.root());
    let problems = walker.into_problems();
    match found {
        Some(payload) if !problems.has_errors() => Ok(payload),
        Some(_) | None => Err(problems),
    }
}

/// Whether a document has tests and no rules.
pub fn is_tests(document: &Document) -> bool {
    document.file.ends_with("_test.yaml") || document.file.ends_with("_test.yml")
}

/// Reads tests.
pub(super) struct Reader<'r> {
    pub(super) names: &'r Names<'r>,
    pub(super) policies: &'r PolicySet,
    /// Whether every rule could be read. If not, one may be missing here that is not missing.
    pub(super) whole: bool,
}

impl Reader<'_> {
    /// The tests of a file; those with problems are left out.
    pub(super) fn tests(&self, file: &str, list: &Value<'_, '_>) -> Vec<Trial> {
        let mut names: HashMap<&str, usize> = HashMap::new();
        let mut trials = Vec::new();
        for value in list.list().unwrap_or_default() {
            let Some(fields) = value.fields(&TEST) else {
                continue;
            };
            let name = fields.get("name");
            if let Some((place, text)) = name.as_ref().and_then(|v| Some((v, v.text()?))) {
                match names.get(text) {
                    Some(line) => place.error(
                        codes::DUPLICATE_TEST,
                        format!("a second test `{}`", clip(text)),
                        format!("the first one is in line {line}"),
                    ),
                    None => drop(names.insert(text, place.node.position.line)),
                }
            }
            let caller = fields.get("as").and_then(|v| self.caller(&v));
            let call = fields.get("call").and_then(|v| self.call(&v));
            let asked = call.as_ref().map(|call| call.asked);
            let expect = fields.get("expect").and_then(|v| self.expect(&v, asked));
            let survive = fields.get("survive").and_then(|v| v.texts());
            let survive = survive.unwrap_or_default().into_iter();
            let survive = survive.filter(|(place, name)| self.survives(place, name));
            let survive = survive.map(|(_, name)| name.into()).collect();
            trials.extend(name.and_then(|name| {
                Some(Trial {
                    name: name.text()?.into(),
                    file: file.into(),
                    line: value.node.position.line,
                    caller: caller?,
                    call: call?,
                    expect: expect?,
                    survive,
                })
            }));
        }
        trials
    }

    fn caller(&self, value: &Value<'_, '_>) -> Option<Caller> {
        let fields = value.fields(&CALLER)?;
        let issuers = self.names.world.issuers;
        let issuer = match fields.get("issuer") {
            Some(place) => self.names.issuer(&place, place.text()?)?,
            None if issuers.len() == 1 => 0,
            None => {
                if self.names.world.complete {
                    value.error(
                        codes::TEST_CALLER,
                        "the test does not say whose token it is",
                        "add `issuer: NAME`",
                    );
                }
                return None;
            }
        };
        let grants = [
            ("agent", Some(Grant::Agent)),
            ("full", Some(Grant::Full)),
            ("none", None),
        ];
        let place = fields.get("grant");
        let grant = place.as_ref().and_then(|v| v.word(&grants));
        let proofs = [
            ("none", ProofKind::None),
            ("mtls", ProofKind::Mtls),
            ("dpop", ProofKind::Dpop),
        ];
        let proof = fields.get("proof").and_then(|v| v.word(&proofs));
        let client = fields.get("client").and_then(|v| v.text());
        let claims = match fields.get("claims") {
            Some(claims) => payload::object(&claims)?,
            None => Json::Object(Vec::new()),
        };
        let config = issuers.get(issuer)?;
        if let (Some(place), Some(stated), Some(marked)) = (place, grant, marked(&claims, config))
            && stated != Some(marked)
        {
            place.error(
                codes::TEST_CALLER,
                "the claims carry another grant",
                "remove `grant`, or the mark in the claims",
            );
        }
        let grant = grant.flatten();
        let beside = Beside {
            grant,
            proof,
            client,
        };
        Some(Caller {
            issuer,
            grant,
            payload: completed(&claims, config, &beside),
            claims,
        })
    }

    fn call(&self, value: &Value<'_, '_>) -> Option<Calling> {
        let fields = value.fields(&CALL)?;
        let agent = fields
            .get("agent")
            .and_then(|v| self.names.agent(&v, v.text()?));
        let asked = fields.get("operation").and_then(|v| operation(&v));
        let sends = asked.is_none_or(is_message);
        let of_messages = |name| {
            let place = fields.get(name);
            if let (Some(place), false) = (&place, sends) {
                place.error(
                    codes::TEST_CALL,
                    format!("`{name}` concerns messages, and the call is none"),
                    "remove it",
                );
            }
            place
        };
        let skill = of_messages("skill");
        let message = of_messages("message");
        let skill = skill.as_ref().and_then(|v| Some((v, v.text()?)));
        if let (Some((place, name)), Some(agent)) = (skill, agent)
            && !self.names.skill(place, name, Some(&[agent]))
        {
            return None;
        }
        let owned = fields.get("owned");
        if let (Some(place), Some(asked)) = (&owned, asked)
            && !names_task(asked)
            && message.is_none()
        {
            place.error(codes::TEST_CALL, "the call names no task", "remove `owned`");
        }
        let message = match message {
            Some(message) => Some(payload::object(&message)?),
            None => None,
        };
        Some(Calling {
            agent: agent?,
            asked: asked?,
            skill: skill.map(|(_, name)| name.into()),
            message,
            owned: match owned {
                Some(owned) => owned.boolean()?,
                None => true,
            },
        })
    }

    /// Whether something of this name can be changed about a test.
    fn survives(&self, place: &Value<'_, '_>, name: &str) -> bool {
        if WHAT.contains(&name) {
            return true;
        }
        self.names.declared(place, name)
    }
}

/// What can be changed about a test, beside claims.
pub const WHAT: [&str; 6] = ["grant", "issuer", "agent", "operation", "skill", "content"];

/// Whether a call sends a message.
pub fn is_message(asked: Asked) -> bool {
    matches!(asked, Asked::Operation(o) if o.group() == OperationGroup::Messages)
}

/// Whether a call names a task, which is somebody's.
pub fn names_task(asked: Asked) -> bool {
    match asked {
        Asked::Operation(operation) => match operation.group() {
            OperationGroup::Tasks | OperationGroup::Push => true,
            OperationGroup::Messages | OperationGroup::List | OperationGroup::Card => false,
        },
        Asked::Backend => false,
    }
}

/// One operation: a call has no group of them.
fn operation(value: &Value<'_, '_>) -> Option<Asked> {
    let name = value.text()?;
    if name == "backend" {
        return Some(Asked::Backend);
    }
    if let Some(operation) = Operation::ALL.into_iter().find(|o| o.name() == name) {
        return Some(Asked::Operation(operation));
    }
    if operations(value, name).is_some() {
        value.error(
            codes::TEST_CALL,
            format!("`{name}` is a group, and a call has one operation"),
            "name one, such as `SendMessage`; a test for each",
        );
    }
    None
}
