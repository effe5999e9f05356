//! Which skill a message asks for, and how much that is worth (`design.md` section 8, Skills).
//!
//! A2A names no skill in a request: the label is the caller's claim unless the agent has one skill
//! only. What cannot be established is unknown, and the unknown never widens.

use crate::a2a::{Call, OperationGroup, SkillPlace};
use crate::audit::record::{Assurance, SkillSource};
use crate::config::snapshot::Agent;
use std::sync::Arc;

/// The skill of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its id; `None` when it could not be established.
    pub id: Option<Arc<str>>,
    /// Where it was read.
    pub source: SkillSource,
    /// How much it is worth; `None` without an id.
    pub assurance: Option<Assurance>,
}

/// Why the skill of a call refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillRefused {
    /// A message names another skill than the task that it continues was started with.
    AnotherThanTask,
    /// It names its skill in several places that disagree, so that what was judged and what is run
    /// could be two skills (FC-72).
    SpellingsDiffer,
}

impl SkillRefused {
    /// The private code.
    pub fn code(self) -> &'static str {
        match self {
            SkillRefused::AnotherThanTask => "skill_differs_from_task",
            SkillRefused::SpellingsDiffer => "skill_spellings_differ",
        }
    }
}

/// What [`resolve`] must know besides the call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Circumstances<'a> {
    /// The skill for which the interface's path stands, if it stands for one.
    pub path: Option<&'a str>,
    /// The agent declares that it routes on our stamp or assertion, and gets one.
    pub bound: bool,
    /// Given when the message continues a task: the skill that the task was started with.
    pub task: Option<Option<&'a Arc<str>>>,
}

impl Skill {
    const UNKNOWN: Skill = Skill {
        id: None,
        source: SkillSource::None,
        assurance: None,
    };

    fn known(id: &str, source: SkillSource, assurance: Assurance) -> Skill {
        Skill {
            id: Some(id.into()),
            source,
            assurance: Some(assurance),
        }
    }
}

/// What a call's selectors say together.
#[derive(Clone, Copy)]
enum Selected<'a> {
    Nothing,
    One(&'a str, SkillSource),
    /// Something that is no string.
    Unclear,
}

/// Resolves the skill of a call; `None` for operations that have none.
///
/// # Errors
/// [`SkillRefused`]: it is refused whatever the rules say.
pub fn resolve(
    agent: &Agent,
    call: &Call,
    circumstances: Circumstances<'_>,
) -> Result<Option<Skill>, SkillRefused> {
    if call.operation.group() != OperationGroup::Messages {
        return Ok(None);
    }
    let selected = selected(agent, call, circumstances.path)?;
    let declared = match (circumstances.path, circumstances.bound) {
        (Some(_), _) => Assurance::Path,
        (None, true) => Assurance::Bound,
        (None, false) => Assurance::Declared,
    };
    if let Some(started_with) = circumstances.task {
        let skill = match (started_with, selected) {
            (None, _) => Skill::UNKNOWN,
            (Some(task), Selected::One(id, _)) if *id != **task => {
                return Err(SkillRefused::AnotherThanTask);
            }
            (Some(_), Selected::Unclear) => return Err(SkillRefused::AnotherThanTask),
            (Some(task), Selected::One(..) | Selected::Nothing) => Skill {
                id: Some(task.clone()),
                source: SkillSource::BoundTask,
                assurance: Some(match agent.skills.len() {
                    1 => Assurance::Sole,
                    _ => declared,
                }),
            },
        };
        return agreed(agent, call, skill, SkillRefused::AnotherThanTask).map(Some);
    }
    let listed = |id: &str| agent.skills.iter().any(|s| **s == *id);
    let skill = match (selected, agent.skills.as_slice()) {
        (Selected::Nothing, [only]) => Skill::known(only, SkillSource::Sole, Assurance::Sole),
        (Selected::One(id, _), [only]) if *id == **only => {
            Skill::known(only, SkillSource::Sole, Assurance::Sole)
        }
        (Selected::One(id, source), _) if listed(id) => Skill::known(id, source, declared),
        (Selected::Nothing, _) if others(agent, call).next().is_none() => {
            match &agent.skill_default {
                Some(default) => Skill::known(default, SkillSource::Default, Assurance::Defaulted),
                None => Skill::UNKNOWN,
            }
        }
        (Selected::One(id, _), _) if others(agent, call).any(|other| other != Some(id)) => {
            return Err(SkillRefused::SpellingsDiffer);
        }
        // An agent that reads another place than we may run what nobody judged.
        (Selected::Nothing | Selected::One(..) | Selected::Unclear, _) => Skill::UNKNOWN,
    };
    agreed(agent, call, skill, SkillRefused::SpellingsDiffer).map(Some)
}

/// A skill with which every spelling that is no selector agrees.
fn agreed(
    agent: &Agent,
    call: &Call,
    skill: Skill,
    refused: SkillRefused,
) -> Result<Skill, SkillRefused> {
    let mut others = others(agent, call);
    let agree = match skill.id.as_deref() {
        Some(id) => others.all(|other| other == Some(id)),
        None => match others.next() {
            Some(first) => others.all(|other| other == first),
            None => true,
        },
    };
    match agree {
        true => Ok(skill),
        false => Err(refused),
    }
}

/// What stands in places that are no selectors and that some agents obey. In data, whose members
/// have many meanings, only a skill of the agent counts.
fn others<'a>(agent: &'a Agent, call: &'a Call) -> impl Iterator<Item = Option<&'a str>> {
    call.skill_mentions
        .iter()
        .filter(|mention| mention.selector.is_none())
        .filter(|mention| match (mention.place, &mention.value) {
            (SkillPlace::Data, Some(value)) => agent.skills.contains(value),
            (SkillPlace::Data, None) => false,
            (
                SkillPlace::Message
                | SkillPlace::Request
                | SkillPlace::Header
                | SkillPlace::Configuration,
                _,
            ) => true,
        })
        .map(|mention| mention.value.as_deref())
}

/// What the selectors say; the path says it first.
fn selected<'a>(
    agent: &Agent,
    call: &'a Call,
    path: Option<&'a str>,
) -> Result<Selected<'a>, SkillRefused> {
    debug_assert!(path.is_none() || !agent.skill_paths.is_empty());
    let mut found = match path {
        Some(skill) => Selected::One(skill, SkillSource::Path),
        None => Selected::Nothing,
    };
    for mention in call.skill_mentions.iter().filter(|m| m.selector.is_some()) {
        found = match (&mention.value, found) {
            (None, _) => Selected::Unclear,
            (Some(value), Selected::Nothing) => Selected::One(value, source(mention.place)),
            (Some(value), Selected::One(before, _)) if **value != *before => {
                return Err(SkillRefused::SpellingsDiffer);
            }
            (Some(_), found @ (Selected::One(..) | Selected::Unclear)) => found,
        };
    }
    Ok(found)
}

fn source(place: SkillPlace) -> SkillSource {
    match place {
        SkillPlace::Message => SkillSource::Metadata,
        SkillPlace::Request | SkillPlace::Configuration => SkillSource::RequestMetadata,
        SkillPlace::Data => SkillSource::Data,
        SkillPlace::Header => SkillSource::Header,
    }
}
