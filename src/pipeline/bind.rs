//! [`Binder`]: what an agent names in a reply becomes its caller's before the caller sees it.

use super::ports::{Claimed, IdKind, Owned, Owner, OwnershipStore, StoreError};
use super::relate::Related;
use crate::a2a::{Call, Event};
use crate::config::snapshot::Agent;
use std::sync::Arc;

/// Why an event must not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unbound {
    /// The agent is at fault: `foreign_id` for an id that is another caller's, `other_task` or
    /// `other_context` for an answer about something else than the task that was asked about.
    Agent(&'static str),
    /// Nobody knows whose the ids are.
    Store,
}

impl From<StoreError> for Unbound {
    fn from(StoreError: StoreError) -> Unbound {
        Unbound::Store
    }
}

/// Binds the ids of one reply.
///
/// A reply is about one task and one context ([`super::ReplyNote`] sees to that), so that each is
/// bound once however many events name it.
pub struct Binder<'a> {
    store: &'a dyn OwnershipStore,
    agent: &'a str,
    owned: Owned,
    /// The task that was asked about; the reply may name no other.
    asked: Option<&'a str>,
    /// The context of that task, if it is known.
    asked_context: Option<Arc<str>>,
    task: Option<Box<str>>,
    context_bound: bool,
    /// Whether the task was bound together with its context.
    context_with_task: bool,
}

impl<'a> Binder<'a> {
    /// A binder for the reply to `call`. `skill` is the call's, if it is established.
    pub fn new(
        store: &'a dyn OwnershipStore,
        agent: &'a Agent,
        owner: &Owner,
        call: &'a Call,
        related: &Related,
        skill: Option<Arc<str>>,
    ) -> Binder<'a> {
        Binder {
            store,
            agent: &agent.name,
            owned: Owned {
                owner: owner.clone(),
                skill: related.skill_of_task.clone().or(skill),
                context: None,
            },
            asked: call.task_id.as_deref(),
            asked_context: related.task.as_ref().and_then(|task| task.context.clone()),
            task: None,
            context_bound: false,
            context_with_task: false,
        }
    }

    /// Binds what `event` names.
    ///
    /// # Errors
    /// [`Unbound`]: the event must not leave. A context that was bound before its task proved to
    /// be another caller's stays bound: the agent did give it to this caller.
    pub async fn bind(&mut self, event: &Event) -> Result<(), Unbound> {
        let task = event.task_id.as_deref();
        let context = event.context_id.as_deref();
        if self.asked.is_some() && task.is_some() && self.asked != task {
            return Err(Unbound::Agent("other_task"));
        }
        if let (Some(asked), Some(context)) = (self.asked_context.as_deref(), context)
            && asked != context
        {
            return Err(Unbound::Agent("other_context"));
        }
        if let Some(context) = context
            && !self.context_bound
        {
            let of_context = Owned {
                skill: None,
                context: None,
                ..self.owned.clone()
            };
            self.one(IdKind::Context, context, &of_context).await?;
            self.context_bound = true;
            self.owned.context = Some(context.into());
        }
        self.bind_task(task).await
    }

    /// Binds the task once, and once more when its context shows only later.
    async fn bind_task(&mut self, named: Option<&str>) -> Result<(), Unbound> {
        let with_context = self.owned.context.is_some();
        if self.task.is_some() && self.context_with_task == with_context {
            return Ok(());
        }
        let Some(task) = self.task.as_deref().or(named) else {
            return Ok(());
        };
        self.one(IdKind::Task, task, &self.owned).await?;
        self.context_with_task = with_context;
        if self.task.is_none() {
            self.task = named.map(Box::from);
        }
        Ok(())
    }

    async fn one(&self, kind: IdKind, id: &str, owned: &Owned) -> Result<(), Unbound> {
        match self.store.bind(self.agent, kind, id, owned).await? {
            Claimed::New | Claimed::Already => Ok(()),
            Claimed::Foreign => Err(Unbound::Agent("foreign_id")),
        }
    }
}
