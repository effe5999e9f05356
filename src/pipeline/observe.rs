//! What a reply reveals, noted and bound before any of it leaves.

use super::bind::{Binder, Unbound};
use crate::a2a::reader::ArtifactNote;
use crate::a2a::{Event, EventKind, Fault, TaskState};
use crate::audit::record::{Ended, Judged};
use std::time::Duration;

/// Most states and artifacts that one record keeps.
const KEPT: usize = 32;

/// What came back from the agent, gathered for the outcome record.
#[derive(Debug, Default)]
pub struct ReplyNote {
    /// The agent's HTTP status; 0 while no header came.
    pub http_status: u16,
    /// When the header came, monotonic.
    pub header_at: Option<Duration>,
    /// The agent's `grpc-status`.
    pub grpc_status: Option<u32>,
    /// The code of the last protocol error, as JSON-RPC has it.
    pub rpc_code: Option<i64>,
    /// The kind of the last event.
    pub kind: Option<EventKind>,
    /// States in the order they were seen, repetitions left out.
    pub states: Vec<TaskState>,
    /// Body bytes from the agent.
    pub bytes: u64,
    /// Events of a stream.
    pub events: u64,
    /// What was malformed.
    pub malformed: Option<&'static str>,
    /// The reply said no length.
    pub ended_by_close: bool,
    /// Something was too large to be judged whole.
    pub unjudged: bool,
    /// The task that the reply is about.
    pub task_id: Option<Box<str>>,
    /// The context that the reply is about.
    pub context_id: Option<Box<str>>,
    /// Extensions that its header names as active.
    pub extensions: Vec<Box<str>>,
    /// Artifacts that were carried.
    pub artifacts: Vec<ArtifactNote>,
}

impl ReplyNote {
    /// How the reply is judged in one word.
    pub fn judged(&self) -> Judged {
        if self.malformed.is_some() {
            Judged::Malformed
        } else if self.unjudged {
            Judged::Unjudged
        } else {
            match self.kind {
                None => Judged::None,
                Some(EventKind::Error(_)) => Judged::Error,
                Some(_) => Judged::Ok,
            }
        }
    }

    /// Notes one event.
    ///
    /// An event about another task than the reply's is the agent's fault: the stream is cut before
    /// it leaves (`a2a-protocol.md` f).
    pub fn event(&mut self, event: &Event) -> Result<(), &'static str> {
        self.events += 1;
        self.kind = Some(event.kind);
        if let EventKind::Error(code) = event.kind {
            self.rpc_code = Some(code);
        }
        keep_same(&mut self.task_id, &event.task_id).map_err(|()| "other_task")?;
        keep_same(&mut self.context_id, &event.context_id).map_err(|()| "other_context")?;
        if let Some(state) = event.state
            && self.states.last() != Some(&state)
            && self.states.len() < KEPT
        {
            self.states.push(state);
        }
        let room = KEPT.saturating_sub(self.artifacts.len());
        self.artifacts
            .extend(event.artifacts.iter().take(room).cloned());
        Ok(())
    }
}

/// Watches one reply on its way back.
pub struct Observer<'a> {
    /// What has been seen; it belongs to the request's recorder.
    pub note: &'a mut ReplyNote,
    binder: Option<Binder<'a>>,
}

impl<'a> Observer<'a> {
    /// An observer that binds what events name. Only replies of the backend surface, which have
    /// no events, go without a binder.
    pub fn new(note: &'a mut ReplyNote, binder: Option<Binder<'a>>) -> Observer<'a> {
        Observer { note, binder }
    }

    /// The reply's header came.
    pub fn header(&mut self, status: u16, now: Duration) {
        self.note.http_status = status;
        self.note.header_at = Some(now);
    }

    /// Notes an event and binds its ids, before its bytes leave; an error cuts the reply.
    pub async fn observe(&mut self, event: &Event) -> Result<(), (Ended, Fault)> {
        let noted = self.note.event(event).map_err(Unbound::Agent);
        let bound = match (noted, &mut self.binder) {
            (Ok(()), Some(binder)) => binder.bind(event).await,
            (noted, _) => noted,
        };
        match bound {
            Ok(()) => Ok(()),
            Err(Unbound::Agent(code)) => {
                self.note.malformed = Some(code);
                Err((Ended::Malformed, Fault::InvalidAgentResponse))
            }
            Err(Unbound::Store) => Err((Ended::StoreFailed, Fault::Unavailable)),
        }
    }
}

fn keep_same(kept: &mut Option<Box<str>>, seen: &Option<Box<str>>) -> Result<(), ()> {
    match (&kept, seen) {
        (_, None) => Ok(()),
        (None, Some(id)) => {
            *kept = Some(id.clone());
            Ok(())
        }
        (Some(have), Some(id)) if have == id => Ok(()),
        (Some(_), Some(_)) => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(task: &str, state: TaskState) -> Event {
        Event {
            kind: EventKind::StatusUpdate,
            task_id: Some(task.into()),
            context_id: None,
            state: Some(state),
            artifacts: Vec::new(),
        }
    }

    #[test]
    fn states_are_kept_in_order_and_another_task_is_a_fault() {
        let mut note = ReplyNote::default();
        assert_eq!(note.judged(), Judged::None);
        for state in [TaskState::Working, TaskState::Working, TaskState::Completed] {
            assert_eq!(note.event(&event("t1", state)), Ok(()));
        }
        assert_eq!(note.states, [TaskState::Working, TaskState::Completed]);
        assert_eq!(note.judged(), Judged::Ok);
        assert_eq!(
            note.event(&event("t2", TaskState::Working)),
            Err("other_task")
        );
    }
}
