//! The judgment on replies of the HTTP+JSON binding.
//!
//! A result stands alone (`a2a-protocol.md` a.3, a.4). Errors have as many forms as there are
//! servers (e.2): `google.rpc.Status` under `error`, a bare `message` with or without `code`, a
//! problem document. All of them have a text for people, which is what a client falls back on.

use super::operation::Operation;
use super::reader::EventKind;
use super::reply_errors::code_of_status;
use super::reply_facts::{ErrorFacts, Facts, in_its_place};
use super::reply_json::Asked;
use super::reply_names::Payload;

/// Judges a reply with a status of success.
pub(super) fn result(facts: &mut Facts, operation: Operation) -> Result<EventKind, &'static str> {
    if facts.error.is_some() {
        return Err("error_with_success_status");
    }
    match operation {
        Operation::GetTask | Operation::CancelTask => Ok(EventKind::Task),
        Operation::SendMessage | Operation::SendStreamingMessage | Operation::SubscribeToTask => {
            match facts.wrapped {
                Some(Payload::Task) => Ok(EventKind::Task),
                Some(Payload::Message) => Ok(EventKind::Message),
                Some(Payload::StatusUpdate | Payload::ArtifactUpdate) => Err("bad_result"),
                None if facts.bare_error.has_message => Err("error_with_success_status"),
                None => Err("no_result"),
            }
        }
        Operation::ListTasks
        | Operation::CreateTaskPushNotificationConfig
        | Operation::GetTaskPushNotificationConfig
        | Operation::ListTaskPushNotificationConfigs
        | Operation::DeleteTaskPushNotificationConfig
        | Operation::GetExtendedAgentCard => Ok(EventKind::Other),
    }
}

/// Judges a reply with an error status.
pub(super) fn fault(facts: &Facts, asked: &Asked, status: u16) -> Result<EventKind, &'static str> {
    let said = match facts.error {
        Some(ErrorFacts {
            is_object: true,
            has_message: true,
            code,
        }) => code,
        Some(_) => return Err("bad_error"),
        None if facts.bare_error.has_message || facts.problem_title => facts.bare_error.code,
        None => return Err("bad_error"),
    };
    Ok(EventKind::Error(code(facts, asked, said, status)))
}

/// Judges an event of a stream.
pub(super) fn event(facts: &mut Facts, asked: &Asked) -> Result<EventKind, &'static str> {
    let bare = facts.bare_error;
    let is_error = facts.error.is_some() || bare.code.is_some() || bare.has_message;
    let Some(payload) = facts.wrapped else {
        let said = match facts.error {
            Some(ErrorFacts {
                is_object: true,
                has_message: true,
                code,
            }) => code,
            None if bare.has_message && bare.code.is_some() => bare.code,
            Some(_) | None if is_error => return Err("bad_error"),
            Some(_) | None => return Err("no_result"),
        };
        // The code of a `google.rpc.Status` is the status that the reply would have had.
        let status = said
            .and_then(|code| u16::try_from(code).ok())
            .unwrap_or(500);
        return Ok(EventKind::Error(code(facts, asked, said, status)));
    };
    if is_error {
        return Err("result_and_error");
    }
    in_its_place(payload, asked)
}

/// The JSON-RPC code of an error, from the most exact thing that it says.
fn code(facts: &Facts, asked: &Asked, said: Option<i64>, status: u16) -> i64 {
    facts
        .reason
        .or(facts.error_type)
        .or(said.filter(|code| *code < 0))
        .unwrap_or_else(|| code_of_status(status, asked.operation, asked.version))
}
