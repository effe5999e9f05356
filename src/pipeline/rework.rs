//! [`Rework`]: replies that leave only as we wrote them.
//!
//! Such a reply is held whole, read, and sent in the form that this caller may see. One that
//! cannot be read is withheld, never passed through.

use super::cards::MESSAGES;
use super::listing::{ForeignToken, Listing, NoPage};
use super::{Gate, Live, Verified};
use crate::a2a::{Call, Dialect, Operation};
use crate::config::snapshot::Agent;
use crate::policy::{Asked, AskedSkill, Effect, decide};
use bytes::Bytes;
use std::sync::Arc;

/// What is made of a whole reply that is no error.
pub enum Rework {
    /// An extended card.
    Card(ExtendedCard),
    /// A list of tasks.
    List(Box<Listing>),
}

/// The extended card as one caller may see it.
pub struct ExtendedCard {
    live: Arc<Live>,
    agent: usize,
    dialect: Dialect,
    verified: Arc<Verified>,
}

impl Rework {
    /// What the reply to `call` needs; `None` when it passes as the agent sent it.
    ///
    /// # Errors
    /// [`ForeignToken`].
    pub(super) fn of(
        call: &Call,
        gate: &Arc<Gate>,
        live: &Arc<Live>,
        agent: &Arc<Agent>,
        verified: &Arc<Verified>,
    ) -> Result<Option<Rework>, ForeignToken> {
        Ok(match call.operation {
            Operation::GetExtendedAgentCard => Some(Rework::Card(ExtendedCard {
                live: Arc::clone(live),
                agent: agent.index,
                dialect: call.dialect,
                verified: Arc::clone(verified),
            })),
            Operation::ListTasks => {
                let listing = Listing::new(gate, agent, verified.owner.clone(), call)?;
                Some(Rework::List(Box::new(listing)))
            }
            Operation::SendMessage
            | Operation::SendStreamingMessage
            | Operation::GetTask
            | Operation::CancelTask
            | Operation::SubscribeToTask
            | Operation::CreateTaskPushNotificationConfig
            | Operation::GetTaskPushNotificationConfig
            | Operation::ListTaskPushNotificationConfigs
            | Operation::DeleteTaskPushNotificationConfig => None,
        })
    }

    /// The body that leaves instead of `reply`, the whole body that came; `None` when the agent
    /// has to be asked once more first.
    ///
    /// # Errors
    /// [`NoPage`]: the reply is withheld.
    pub async fn apply(&mut self, reply: &Bytes) -> Result<Option<Bytes>, NoPage> {
        match self {
            Rework::Card(card) => card.apply(reply).map(Some).map_err(NoPage::Unclear),
            Rework::List(listing) => listing.take(reply).await,
        }
    }

    /// Whether the agent has to be asked once more.
    pub fn is_open(&self) -> bool {
        match self {
            Rework::Card(_) => false,
            Rework::List(listing) => listing.is_open(),
        }
    }

    /// What to ask the agent for in the place of the caller's own call. `None` if it is not what
    /// it was taken for.
    pub fn asking(&mut self, path: &str, body: &Bytes) -> Option<(Box<str>, Bytes)> {
        match self {
            Rework::Card(_) => Some((path.into(), body.clone())),
            Rework::List(listing) => listing.asking(path, body),
        }
    }
}

impl ExtendedCard {
    fn apply(&self, reply: &[u8]) -> Result<Bytes, &'static str> {
        let cards = &self.live.cards;
        let shows = |skill: Option<&str>| self.may_send(skill);
        cards
            .extended(self.agent, self.dialect, reply, &shows)
            .map_err(|fault| {
                tracing::warn!(agent = self.agent, "extended card withheld: {fault}");
                fault.label()
            })
    }

    /// The very judgment that a message for this skill would get.
    fn may_send(&self, skill: Option<&str>) -> bool {
        MESSAGES.into_iter().any(|operation| {
            let skill = skill.map_or(AskedSkill::Unknown, AskedSkill::Known);
            let asked = Asked::Operation(operation);
            let question = self.verified.asks(self.agent, asked, skill);
            decide(&self.live.snapshot.policy, &question).effect == Effect::Allow
        })
    }
}
