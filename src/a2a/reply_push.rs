//! Whose the webhooks in a reply are.
//!
//! The shapes of both versions stand side by side (`a2a-protocol.md` b): a flat object with
//! `taskId` in 1.0, `taskId` beside the webhook in 0.3, and in the definition of 0.3, so in REST
//! and gRPC, a resource name. Some servers leave the task out.

use super::operation::Operation;

/// Longest resource name that is read: two ids, and what stands around them.
pub(super) const NAME_ROOM: usize = 2 * 4096 + 64;

/// Whether a reply to `operation` has webhooks in it.
pub(super) fn has_webhooks(operation: Operation) -> bool {
    match operation {
        Operation::CreateTaskPushNotificationConfig
        | Operation::GetTaskPushNotificationConfig
        | Operation::ListTaskPushNotificationConfigs => true,
        Operation::SendMessage
        | Operation::SendStreamingMessage
        | Operation::GetTask
        | Operation::ListTasks
        | Operation::CancelTask
        | Operation::SubscribeToTask
        | Operation::DeleteTaskPushNotificationConfig
        | Operation::GetExtendedAgentCard => false,
    }
}

/// The task of `tasks/{id}/pushNotificationConfigs/{id}`. Of another name none: clients read none
/// from it either.
pub(super) fn task_of(name: &str) -> Option<&str> {
    let id = name.strip_prefix("tasks/")?.split('/').next()?;
    (!id.is_empty()).then_some(id)
}

/// Keeps the task of a webhook. All webhooks of a reply are of the one task that was asked about.
pub(super) fn keep(
    kept: &mut Option<Box<str>>,
    task: Option<Box<str>>,
) -> Result<(), &'static str> {
    match (kept.as_deref(), task) {
        (_, None) => Ok(()),
        (Some(kept), Some(task)) => match *kept == *task {
            true => Ok(()),
            false => Err("other_task"),
        },
        (None, task) => {
            *kept = task;
            Ok(())
        }
    }
}
