//! What the ids that a call names are to its caller (invariant I-5).
//!
//! To a caller, a task of somebody else's does not exist: the same answer after the same work.

use super::ports::{Claimed, IdKind, Owned, Owner, OwnershipStore, StoreError};
use super::rejection::Rejection;
use crate::a2a::{Call, Fault, OperationGroup};
use crate::config::snapshot::{Agent, Contexts};
use std::sync::Arc;

/// Seconds after which a caller may try again when the store does not answer.
const RETRY_AFTER: u32 = 1;

/// Every id that the call names is the caller's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Related {
    /// The task that the call names, if it names one.
    pub task: Option<Owned>,
    /// A context that was claimed for this call: to be given to [`release`] if nothing of the
    /// call reached the agent.
    pub claimed_context: Option<Box<str>>,
    /// The skill with which the named task was started: a call that continues it has no other.
    pub skill_of_task: Option<Arc<str>>,
}

impl Related {
    /// For a call that continues a task: the skill that the task was started with, if one was
    /// established.
    pub fn continued(&self) -> Option<Option<&Arc<str>>> {
        self.task.as_ref().map(|_| self.skill_of_task.as_ref())
    }
}

/// Why a call's ids refuse it. The codes are private: `not_owner` beside `unknown_task` would
/// tell a stranger that the task exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrelated {
    /// A task that is not the caller's: `not_owner` or `unknown_task`.
    TaskNotFound(&'static str),
    /// A context that the caller may not use: `foreign_context`, `unknown_context` or
    /// `context_mismatch`.
    ContextRefused(&'static str),
    /// It could not be found out whose the ids are.
    StoreUnavailable,
}

impl Unrelated {
    /// What the caller is told, without dialect.
    pub fn rejection(self) -> Rejection {
        match self {
            Unrelated::TaskNotFound(code) => Rejection::plain(Fault::TaskNotFound, code),
            Unrelated::ContextRefused(code) => Rejection::plain(Fault::ContextRefused, code),
            Unrelated::StoreUnavailable => Rejection::unavailable("store_unavailable", RETRY_AFTER),
        }
    }
}

impl From<StoreError> for Unrelated {
    fn from(StoreError: StoreError) -> Unrelated {
        Unrelated::StoreUnavailable
    }
}

/// What is not offered to anybody, whatever ids and rules say; with the private code.
pub fn unavailable(call: &Call, offered: Offered) -> Option<(Fault, &'static str)> {
    match call.operation.group() {
        OperationGroup::Push if !offered.webhooks => {
            Some((Fault::PushNotificationNotSupported, "push_unavailable"))
        }
        OperationGroup::Card if offered.extended_card => None,
        OperationGroup::Card => Some((
            Fault::ExtendedCardNotConfigured,
            "extended_card_unavailable",
        )),
        OperationGroup::Messages if call.inline_push && !offered.webhooks => {
            Some((Fault::PushNotificationNotSupported, "push_unavailable"))
        }
        OperationGroup::Messages
        | OperationGroup::Tasks
        | OperationGroup::List
        | OperationGroup::Push => None,
    }
}

/// What depends on the agent and on policy as a whole, and on no caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered {
    /// The agent announces an extended card.
    pub extended_card: bool,
    /// Policy lets the agent be told some webhook.
    pub webhooks: bool,
}

/// Looks up every id that `call` names, and claims a context that nobody owns.
///
/// Tasks come first, all of them whatever the first one says: neither the answer nor the work
/// tells an unknown task from another caller's. A context is claimed only after every other
/// check, so a refused call leaves nothing behind.
///
/// # Errors
/// [`Unrelated`]: nothing may be forwarded, and nothing was claimed.
pub async fn relate(
    store: &dyn OwnershipStore,
    agent: &Agent,
    owner: &Owner,
    call: &Call,
) -> Result<Related, Unrelated> {
    let mut refused = None;
    let mut task = None;
    if let Some(id) = call.task_id.as_deref() {
        match own_task(store, agent, owner, id).await? {
            Ok(owned) => task = Some(owned),
            Err(code) => refused = Some(code),
        }
    }
    for id in &call.reference_task_ids {
        if let Err(code) = own_task(store, agent, owner, id).await? {
            refused = refused.or(Some(code));
        }
    }
    if let Some(code) = refused {
        return Err(Unrelated::TaskNotFound(code));
    }
    let starts = call.operation.group() == OperationGroup::Messages && task.is_none();
    if starts && store.trouble().is_some() {
        return Err(Unrelated::StoreUnavailable);
    }
    let claimed_context = match call.context_id.as_deref() {
        None => None,
        Some(id) => {
            let of_task = task.as_ref().and_then(|t: &Owned| t.context.as_deref());
            own_context(store, agent, owner, call, id, of_task)
                .await?
                .then(|| id.into())
        }
    };
    Ok(Related {
        skill_of_task: task.as_ref().and_then(|t| t.skill.clone()),
        task,
        claimed_context,
    })
}

/// Gives up the context that [`relate`] claimed. To be called once for every related call of
/// which nothing reached the agent: refused by a later step, not recorded, or with delivery
/// `not_attempted` or `connect_failed`. A call that may have reached the agent keeps its claim.
///
/// A store that fails here keeps the claim until it expires: the id stays the caller's.
pub async fn release(store: &dyn OwnershipStore, agent: &Agent, owner: &Owner, related: &Related) {
    if let Some(id) = related.claimed_context.as_deref() {
        let released = store.release(&agent.name, IdKind::Context, id, owner).await;
        if released.is_err() {
            tracing::warn!(agent = %agent.name, "a claimed context could not be released");
        }
    }
}

async fn own_task(
    store: &dyn OwnershipStore,
    agent: &Agent,
    owner: &Owner,
    id: &str,
) -> Result<Result<Owned, &'static str>, StoreError> {
    let owned = store.owned(&agent.name, IdKind::Task, id).await?;
    Ok(match owned {
        Some(owned) if owned.owner == *owner => Ok(owned),
        Some(_) => Err("not_owner"),
        None => Err("unknown_task"),
    })
}

/// Whether the context was claimed just now; an error if it may not be used.
async fn own_context(
    store: &dyn OwnershipStore,
    agent: &Agent,
    owner: &Owner,
    call: &Call,
    id: &str,
    of_task: Option<&str>,
) -> Result<bool, Unrelated> {
    if of_task.is_some_and(|of_task| of_task != id) {
        // A2A 1.0 section 3.4.3.
        return Err(Unrelated::ContextRefused("context_mismatch"));
    }
    let sends = call.operation.group() == OperationGroup::Messages;
    if sends && agent.contexts == Contexts::Claimable {
        let claimed = store.claim(&agent.name, IdKind::Context, id, owner).await?;
        return match claimed {
            Claimed::New => Ok(true),
            Claimed::Already => Ok(false),
            Claimed::Foreign => Err(Unrelated::ContextRefused("foreign_context")),
        };
    }
    match store.owned(&agent.name, IdKind::Context, id).await? {
        Some(owned) if owned.owner == *owner => Ok(false),
        Some(_) => Err(Unrelated::ContextRefused("foreign_context")),
        // The agent did give out the context of a task, even if it has expired since.
        None if of_task.is_some() => Ok(false),
        None => Err(Unrelated::ContextRefused("unknown_context")),
    }
}
