//! Policy's part of [`admit`](super::admit()): which skill, which decision, which webhooks.

use super::admit::Asking;
use super::relate::Related;
use super::skill::{Circumstances, resolve};
use super::webhook::{screen, sets_webhook};
use super::{Recorder, Rejection};
use crate::a2a::content::Content;
use crate::a2a::{Fault, Operation};
use crate::config::snapshot::Agent;
use crate::policy::{Asked, AskedSkill, Decision, Effect, PolicySet, Question, decide};

/// Decides, and keeps the decision in the recorder.
pub(super) fn judge(
    recorder: &mut Recorder,
    asking: &Asking<'_>,
    related: &Related,
) -> Result<(), Rejection> {
    let agent = asking.agent;
    let call = recorder.call.as_ref();
    let circumstances = Circumstances {
        path: agent.skill_of(asking.interface),
        bound: recorder.live.cards.routes_on_what_we_say(agent),
        task: related.continued(),
    };
    let skill = match call.map(|call| resolve(agent, call, circumstances)) {
        Some(Ok(skill)) => skill,
        Some(Err(refused)) => {
            recorder.decision = Some(Decision::deny(refused.code()));
            return Err(not_allowed(agent, refused.code()));
        }
        None => None,
    };
    let operation = call.map(|call| call.operation);
    let asked_skill = match &skill {
        None => AskedSkill::NotAMessage,
        Some(skill) => match &skill.id {
            Some(id) => AskedSkill::Known(id),
            None => AskedSkill::Unknown,
        },
    };
    let asked = operation.map_or(Asked::Backend, Asked::Operation);
    // Of the bytes that were judged: what is put in later is ours.
    let content = call.map(|call| Content::of(call, asking.body));
    let question = Question {
        content: content.as_ref(),
        ..asking.verified.asks(agent.index, asked, asked_skill)
    };
    let policies = &recorder.live.snapshot.policy;
    let decision = decide(policies, &question);
    let decision = match call.is_some_and(|call| call.inline_push) {
        true => {
            let create = Asked::Operation(Operation::CreateTaskPushNotificationConfig);
            let create = asking
                .verified
                .asks(agent.index, create, AskedSkill::NotAMessage);
            with_push(policies, &create, decision)
        }
        false => decision,
    };
    recorder.skill = skill;
    conclude_decision(recorder, agent, decision)
}

/// A webhook beside a message is the same webhook as by its own operation (FC-58), which is asked
/// for by `create`.
pub(super) fn with_push(
    policies: &PolicySet,
    create: &Question<'_>,
    decision: Decision,
) -> Decision {
    let would = |decision: &Decision| decision.shadow.iter().any(|s| s.would.is_some());
    if decision.effect == Effect::Deny && !would(&decision) {
        return decision;
    }
    let of_push = decide(policies, create);
    match (decision.effect, of_push.effect) {
        (Effect::Allow, Effect::Allow) => decision.beside(of_push),
        (Effect::Allow, Effect::Deny) => Decision {
            reason: "push_not_allowed",
            ..of_push.overruling(decision)
        },
        (Effect::Deny, Effect::Allow) => decision,
        // Allowing the message would not have been enough.
        (Effect::Deny, Effect::Deny) => decision.changing_nothing(),
    }
}

/// Looks at the webhooks that an allowed call sets.
pub(super) async fn screened(recorder: &mut Recorder, agent: &Agent) -> Result<(), Rejection> {
    let Some(call) = recorder.call.as_ref().filter(|call| sets_webhook(call)) else {
        return Ok(());
    };
    let resolver = recorder.gate().resolver.clone();
    let webhooks = recorder.live.snapshot.policy.webhooks();
    match screen(&*resolver, webhooks, agent.index, call).await {
        Ok(()) => Ok(()),
        Err(code) => {
            recorder.decision = Some(Decision::deny(code));
            Err(Rejection::plain(Fault::WebhookRefused, code))
        }
    }
}

pub(super) fn conclude_decision(
    recorder: &mut Recorder,
    agent: &Agent,
    decision: Decision,
) -> Result<(), Rejection> {
    let (effect, reason) = (decision.effect, decision.reason);
    let live = &recorder.live;
    live.rules.count(&live.snapshot.policy, &decision);
    recorder.decision = Some(decision);
    match effect {
        Effect::Allow => Ok(()),
        Effect::Deny => Err(not_allowed(agent, reason)),
    }
}

pub(super) fn not_allowed(agent: &Agent, code: &'static str) -> Rejection {
    Rejection {
        status: Some(agent.deny_status),
        ..Rejection::plain(Fault::NotAllowed, code)
    }
}
