//! [`Rework`]: replies that leave only as we wrote them.
//!
//! Such a reply is held whole, read, and sent in the form that this caller may see. One that
//! cannot be read is withheld, never passed through.

use super::cards::MESSAGES;
use super::{Live, Verified};
use crate::a2a::{Binding, Call, Operation};
use crate::policy::{Asked, AskedSkill, Effect, Question, decide};
use bytes::Bytes;
use std::sync::Arc;

/// What is made of a whole reply that is no error.
pub enum Rework {
    /// An extended card.
    Card(ExtendedCard),
}

/// The extended card as one caller may see it.
pub struct ExtendedCard {
    live: Arc<Live>,
    agent: usize,
    binding: Binding,
    verified: Arc<Verified>,
}

impl Rework {
    /// What the reply to `call` needs; `None` when it passes as the agent sent it.
    pub(super) fn of(
        call: &Call,
        live: &Arc<Live>,
        agent: usize,
        verified: &Arc<Verified>,
    ) -> Option<Rework> {
        match call.operation {
            Operation::GetExtendedAgentCard => Some(Rework::Card(ExtendedCard {
                live: Arc::clone(live),
                agent,
                binding: call.dialect.binding,
                verified: Arc::clone(verified),
            })),
            Operation::SendMessage
            | Operation::SendStreamingMessage
            | Operation::GetTask
            | Operation::ListTasks
            | Operation::CancelTask
            | Operation::SubscribeToTask
            | Operation::CreateTaskPushNotificationConfig
            | Operation::GetTaskPushNotificationConfig
            | Operation::ListTaskPushNotificationConfigs
            | Operation::DeleteTaskPushNotificationConfig => None,
        }
    }

    /// The body that leaves instead of `reply`, the whole body that came.
    ///
    /// # Errors
    /// The code for the record: the reply is withheld.
    pub fn apply(&self, reply: &[u8]) -> Result<Bytes, &'static str> {
        match self {
            Rework::Card(card) => card.apply(reply),
        }
    }
}

impl ExtendedCard {
    fn apply(&self, reply: &[u8]) -> Result<Bytes, &'static str> {
        let cards = &self.live.cards;
        let shows = |skill: Option<&str>| self.may_send(skill);
        cards
            .extended(self.agent, self.binding, reply, &shows)
            .map_err(|fault| {
                tracing::warn!(agent = self.agent, "extended card withheld: {fault}");
                fault.label()
            })
    }

    /// The very judgment that a message for this skill would get.
    fn may_send(&self, skill: Option<&str>) -> bool {
        MESSAGES.into_iter().any(|operation| {
            let question = Question {
                agent: self.agent,
                asked: Asked::Operation(operation),
                skill: skill.map_or(AskedSkill::Unknown, AskedSkill::Known),
                principal: &self.verified.principal,
            };
            decide(&self.live.snapshot.policy, &question).effect == Effect::Allow
        })
    }
}
