//! A call judged as the gateway would, without a gateway: for tests of policies and explanations.
//!
//! The request is built, read by the reader of live requests, and judged by the same steps in the
//! same order as [`super::admit`]. Only what needs others is left out: keys, the ownership store,
//! the agent's card and the addresses of webhooks.

mod request;

pub use request::{Written, ambiguous, names_any_skill, read, written};

use super::Rejection;
use super::authenticate::of_token;
use super::judge::{not_allowed, with_push};
use super::reach::{exists, reaches};
use super::relate::{Offered, Unrelated, unavailable};
use super::skill::{Circumstances, Skill, resolve};
use super::tenant::{TenantRefused, settle};
use crate::a2a::content::Content;
use crate::a2a::skill_rules::Selector;
use crate::a2a::{Binding, Call, Dialect, Fault, Operation, Version};
use crate::audit::record::{Assurance, SkillSource};
use crate::config::snapshot::Agent;
use crate::identity::issuer::Grant;
use crate::identity::{Principal, TokenFault};
use crate::policy::trial::{Calling, is_message};
use crate::policy::{Asked, AskedSkill, Decision, Effect, PolicySet, Question, decide};
use request::place;
use std::sync::Arc;

/// The answer of an agent that got the call.
const ANSWERED: u16 = 200;
/// How the calls are said.
const DIALECT: Dialect = Dialect {
    binding: Binding::JsonRpc,
    version: Version::V1_0,
};

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What was decided; where something before policy refused, with the code of that.
    pub decision: Decision,
    /// The skill of a message that got as far as policy.
    pub skill: Option<Skill>,
    /// The HTTP status of the reply: of the agent's, 200.
    pub http: u16,
}

/// Where calls are judged.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// The agents, in the order of the configuration.
    pub agents: &'a [Arc<Agent>],
    /// The rules.
    pub policy: &'a PolicySet,
}

/// A refusal: what was decided, and what the caller gets.
type Refused = Box<(Decision, Rejection)>;

impl Bench<'_> {
    /// Judges a call. `caller` is whose its token is, or the rule that refuses that.
    pub fn judge(&self, caller: Result<&Principal, TokenFault>, calling: &Calling) -> Judged {
        let mut skill = None;
        let judged = self.steps(caller, calling, &mut skill);
        match judged {
            Ok(decision) => Judged {
                decision,
                skill,
                http: ANSWERED,
            },
            Err(refused) => Judged {
                http: refused.1.answer(None).status,
                decision: refused.0,
                skill,
            },
        }
    }

    /// Shows what policy is asked for a call whose skill was found to be `skill`.
    pub fn asked<R>(
        &self,
        principal: &Principal,
        calling: &Calling,
        skill: Option<&str>,
        look: impl FnOnce(&Question<'_>) -> R,
    ) -> R {
        let question = Question {
            agent: calling.agent,
            asked: calling.asked,
            skill: match (is_message(calling.asked), skill) {
                (false, _) => AskedSkill::NotAMessage,
                (true, Some(skill)) => AskedSkill::Known(skill),
                (true, None) => AskedSkill::Unknown,
            },
            principal,
            memo: None,
            content: None,
        };
        let agent = self.agents.get(calling.agent);
        let (Some(agent), Asked::Operation(operation)) = (agent, calling.asked) else {
            return look(&question);
        };
        let written = written(agent, operation, calling);
        let Ok(reading) = read(agent, &written) else {
            return look(&question);
        };
        let content = Content::of(&reading.call, &written.body);
        look(&Question {
            content: Some(&content),
            ..question
        })
    }

    fn steps(
        &self,
        caller: Result<&Principal, TokenFault>,
        calling: &Calling,
        skill: &mut Option<Skill>,
    ) -> Result<Decision, Refused> {
        let coded = |rejection: Rejection| Box::new((Decision::deny(rejection.code), rejection));
        let principal = caller.map_err(|fault| coded(of_token(fault)))?;
        let Some(agent) = self.agents.get(calling.agent) else {
            let nowhere = Rejection::plain(Fault::NoSuchPath, "no_such_path");
            return Err(coded(nowhere));
        };
        exists(self.policy, principal, None, agent).map_err(coded)?;
        let Asked::Operation(operation) = calling.asked else {
            reaches(principal, Grant::Full).map_err(coded)?;
            let asks = asks(agent, principal, Asked::Backend, AskedSkill::NotAMessage);
            let decision = decide(self.policy, &asks);
            return concluded(agent, decision).map_err(|mut refused| {
                refused.1.status = None;
                refused
            });
        };
        reaches(principal, Grant::Agent).map_err(coded)?;
        let said = |rejection: Rejection| coded(rejection.in_dialect(DIALECT, None));
        let written = written(agent, operation, calling);
        let reading = read(agent, &written)
            .map_err(|malformed| said(Rejection::plain(malformed.fault, malformed.code)))?;
        self.call(
            agent,
            principal,
            calling,
            (&reading.call, &written.body),
            skill,
        )
        .map_err(|refused| {
            let (decision, rejection) = *refused;
            Box::new((decision, rejection.in_dialect(DIALECT, None)))
        })
    }

    /// What follows once the request is read.
    fn call(
        &self,
        agent: &Agent,
        principal: &Principal,
        calling: &Calling,
        (call, body): (&Call, &[u8]),
        skill: &mut Option<Skill>,
    ) -> Result<Decision, Refused> {
        let coded = |rejection: Rejection| Box::new((Decision::deny(rejection.code), rejection));
        let offered = Offered {
            // Its card is not asked for.
            extended_card: true,
            webhooks: self.policy.webhooks().any_for(agent.index),
        };
        if let Some((fault, code)) = unavailable(call, offered) {
            return Err(coded(Rejection::plain(fault, code)));
        }
        settle(agent, principal, call).map_err(|refused| match refused {
            TenantRefused::NotFound(fault, code) => coded(Rejection::plain(fault, code)),
            TenantRefused::NotAllowed(code) => coded(not_allowed(agent, code)),
        })?;
        if call.task_id.is_some() && !calling.owned {
            return Err(coded(Unrelated::TaskNotFound("not_owner").rejection()));
        }
        let of_task: Option<Arc<str>> = calling.skill.as_deref().map(Arc::from);
        let circumstances = Circumstances {
            path: stated_path(agent, calling),
            bound: false,
            task: call.task_id.is_some().then_some(of_task.as_ref()),
        };
        *skill = match resolve(agent, call, circumstances) {
            Ok(skill) => stated(agent, calling, skill),
            Err(refused) => return Err(coded(not_allowed(agent, refused.code()))),
        };
        let asked_skill = match &*skill {
            None => AskedSkill::NotAMessage,
            Some(skill) => match &skill.id {
                Some(id) => AskedSkill::Known(id),
                None => AskedSkill::Unknown,
            },
        };
        let content = Content::of(call, body);
        let question = Question {
            content: Some(&content),
            ..asks(agent, principal, calling.asked, asked_skill)
        };
        let decision = decide(self.policy, &question);
        if !call.inline_push {
            return concluded(agent, decision);
        }
        let create = Asked::Operation(Operation::CreateTaskPushNotificationConfig);
        let create = asks(agent, principal, create, AskedSkill::NotAMessage);
        concluded(agent, with_push(self.policy, &create, decision))
    }
}

fn asks<'a>(
    agent: &Agent,
    principal: &'a Principal,
    asked: Asked,
    skill: AskedSkill<'a>,
) -> Question<'a> {
    Question {
        agent: agent.index,
        asked,
        skill,
        principal,
        memo: None,
        content: None,
    }
}

fn concluded(agent: &Agent, decision: Decision) -> Result<Decision, Refused> {
    match decision.effect {
        Effect::Allow => Ok(decision),
        Effect::Deny => {
            let rejection = not_allowed(agent, decision.reason);
            Err(Box::new((decision, rejection)))
        }
    }
}

/// The skill of the path at which a message is sent, where paths stand for skills.
fn stated_path<'a>(agent: &'a Agent, calling: &'a Calling) -> Option<&'a str> {
    let mut paths = agent.skill_paths.iter();
    let skill = calling.skill.as_deref()?;
    matches!(place(agent), Some(Selector::Path))
        .then(|| paths.find(|path| *path.skill == *skill))
        .flatten()
        .map(|path| &*path.skill)
}

/// A skill that stands in data, which is the agent's own and cannot be made up here, is taken as
/// it was stated.
fn stated(agent: &Agent, calling: &Calling, found: Option<Skill>) -> Option<Skill> {
    let skill = calling.skill.as_deref();
    match (place(agent), skill, found) {
        (Some(Selector::Data(_)), Some(stated), Some(Skill { id: None, .. })) => Some(Skill {
            id: Some(stated.into()),
            source: SkillSource::Data,
            assurance: Some(Assurance::Declared),
        }),
        (_, _, found) => found,
    }
}
