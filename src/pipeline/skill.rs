//! Which skill a message asks for, and how much that is worth (`design.md` section 8, Skills).
//!
//! A2A names no skill in a request: the label is the caller's claim unless the agent has one skill
//! only. What cannot be established is unknown, and the unknown never widens.

use crate::a2a::{Call, OperationGroup};
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

/// A message names another skill than the task that it continues was started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnotherSkill;

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
enum Mentioned<'a> {
    Nothing,
    One(&'a str),
    /// Something that is no string, or several that differ.
    Unclear,
}

/// Resolves the skill of a call; `None` for operations that have none.
///
/// `task` is given when the message continues a task: the skill that the task was started with.
pub fn resolve(
    agent: &Agent,
    call: &Call,
    task: Option<Option<&Arc<str>>>,
) -> Result<Option<Skill>, AnotherSkill> {
    if call.operation.group() != OperationGroup::Messages {
        return Ok(None);
    }
    let mentioned = mentioned(call);
    if let Some(started_with) = task {
        let Some(started_with) = started_with else {
            return Ok(Some(Skill::UNKNOWN));
        };
        return match mentioned {
            Mentioned::One(id) if *id != **started_with => Err(AnotherSkill),
            Mentioned::Unclear => Err(AnotherSkill),
            Mentioned::One(_) | Mentioned::Nothing => Ok(Some(Skill {
                id: Some(started_with.clone()),
                source: SkillSource::BoundTask,
                assurance: Some(match agent.skills.len() {
                    1 => Assurance::Sole,
                    _ => Assurance::Declared,
                }),
            })),
        };
    }
    // The message is where an agent is told its skill. One that reads the request's metadata and
    // one that does not would run different skills (FC-72).
    let in_message = call.skill_mentions.iter().any(|m| m.in_message);
    let mentioned = match mentioned {
        Mentioned::One(_) if !in_message && agent.skills.len() > 1 => Mentioned::Unclear,
        mentioned => mentioned,
    };
    let listed = |id: &str| agent.skills.iter().any(|s| **s == *id);
    Ok(Some(match (mentioned, agent.skills.as_slice()) {
        (Mentioned::Nothing, [only]) => Skill::known(only, SkillSource::Sole, Assurance::Sole),
        (Mentioned::One(id), [only]) if *id == **only => {
            Skill::known(only, SkillSource::Sole, Assurance::Sole)
        }
        (Mentioned::One(id), _) if listed(id) => {
            Skill::known(id, SkillSource::Metadata, Assurance::Declared)
        }
        (Mentioned::Nothing, _) => match &agent.skill_default {
            Some(default) => Skill::known(default, SkillSource::Default, Assurance::Defaulted),
            None => Skill::UNKNOWN,
        },
        (Mentioned::One(_) | Mentioned::Unclear, _) => Skill::UNKNOWN,
    }))
}

fn mentioned(call: &Call) -> Mentioned<'_> {
    let mut found = Mentioned::Nothing;
    for mention in &call.skill_mentions {
        found = match (&mention.value, found) {
            (None, _) | (_, Mentioned::Unclear) => return Mentioned::Unclear,
            (Some(value), Mentioned::Nothing) => Mentioned::One(value),
            (Some(value), Mentioned::One(before)) if **value == *before => Mentioned::One(before),
            (Some(_), Mentioned::One(_)) => return Mentioned::Unclear,
        };
    }
    found
}
