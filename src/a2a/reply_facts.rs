//! What was gathered from one JSON reply, and the judgment on it.

use super::operation::{Operation, Version};
use super::reader::{ArtifactNote, Event, EventKind, TaskState};
use super::reply_json::{Asked, Form};
use super::reply_names::Payload;
use super::reply_rest;

/// The id that a response must carry, as a JSON value.
#[derive(Debug, Clone)]
pub(super) enum ExpectedId {
    /// Nothing was said about the id: any will do.
    Any,
    Text(Box<str>),
    Number(Box<str>),
    /// The request's id was neither; no response can answer it.
    None,
}

impl ExpectedId {
    pub(super) fn new(raw: Option<&str>) -> ExpectedId {
        let Some(raw) = raw.map(str::trim) else {
            return ExpectedId::Any;
        };
        if raw.starts_with('"') {
            return match serde_json::from_str(raw) {
                Ok(text) => ExpectedId::Text(text),
                Err(_) => ExpectedId::None,
            };
        }
        if raw.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            ExpectedId::Number(raw.into())
        } else {
            ExpectedId::None
        }
    }

    /// How much of a response's id must be kept to compare it.
    pub(super) fn room(&self) -> usize {
        match self {
            ExpectedId::Any | ExpectedId::None => 0,
            ExpectedId::Text(text) => text.len(),
            // Another spelling of the same number is seldom longer than this.
            ExpectedId::Number(_) => 40,
        }
    }

    pub(super) fn is_number(&self, reply: &str) -> bool {
        match self {
            ExpectedId::Any => true,
            ExpectedId::Text(_) | ExpectedId::None => false,
            ExpectedId::Number(sent) => same_number(sent, reply),
        }
    }
}

/// Integers are compared as such, so that two big ids never meet in one float.
fn same_number(sent: &str, reply: &str) -> bool {
    if sent == reply {
        return true;
    }
    match (sent.parse::<i128>(), reply.parse::<i128>()) {
        (Ok(sent), Ok(reply)) => sent == reply,
        _ => match (sent.parse::<f64>(), reply.parse::<f64>()) {
            (Ok(sent), Ok(reply)) => sent == reply && sent.abs() < 9_007_199_254_740_992.0,
            _ => false,
        },
    }
}

/// The `id` of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyId {
    Absent,
    Null,
    Same,
    Different,
}

/// `kind` of an unwrapped result (0.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    Payload(Payload),
    Unknown,
}

/// The `error` member.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ErrorFacts {
    pub(super) is_object: bool,
    pub(super) code: Option<i64>,
    pub(super) has_message: bool,
}

/// Everything that one response said which matters.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) reply_id: ReplyId,
    pub(super) version_ok: bool,
    pub(super) has_result: bool,
    pub(super) error: Option<ErrorFacts>,
    /// The same without a member of its own, in REST.
    pub(super) bare_error: ErrorFacts,
    /// What the error says of itself in REST, as a JSON-RPC code: its reason, and its type in 0.3.
    pub(super) reason: Option<i64>,
    pub(super) error_type: Option<i64>,
    /// `title` of a problem document (RFC 9457).
    pub(super) problem_title: bool,
    /// The wrapped object of 1.0, with its ids.
    pub(super) wrapped: Option<Payload>,
    pub(super) task_id: Option<Box<str>>,
    pub(super) context_id: Option<Box<str>>,
    /// The same of an unwrapped result, under its two names for the task.
    pub(super) tag: Option<Tag>,
    pub(super) bare_id: Option<Box<str>>,
    pub(super) bare_task_id: Option<Box<str>>,
    pub(super) bare_context_id: Option<Box<str>>,
    pub(super) bare_status: bool,
    pub(super) bare_artifact: bool,
    pub(super) state: Option<TaskState>,
    pub(super) artifacts: Vec<ArtifactNote>,
}

impl Facts {
    pub(super) fn new() -> Facts {
        Facts {
            reply_id: ReplyId::Absent,
            version_ok: false,
            has_result: false,
            error: None,
            bare_error: ErrorFacts::default(),
            reason: None,
            error_type: None,
            problem_title: false,
            wrapped: None,
            task_id: None,
            context_id: None,
            tag: None,
            bare_id: None,
            bare_task_id: None,
            bare_context_id: None,
            bare_status: false,
            bare_artifact: false,
            state: None,
            artifacts: Vec::new(),
        }
    }

    /// Judges a complete reply; errors are codes for the record.
    pub(super) fn judge(&mut self, asked: &Asked) -> Result<Event, &'static str> {
        let kind = match &asked.form {
            Form::Envelope(id) => self.envelope(asked, id)?,
            Form::Result => reply_rest::result(self, asked.operation)?,
            Form::Fault(status) => reply_rest::fault(self, asked, *status)?,
            Form::Event => reply_rest::event(self, asked)?,
        };
        let about_a_task = match kind {
            EventKind::Task | EventKind::StatusUpdate | EventKind::ArtifactUpdate => true,
            EventKind::Message | EventKind::Error(_) | EventKind::Other => false,
        };
        // Nobody could own it, nor ask for it again.
        if about_a_task && self.task_id.is_none() {
            return Err("no_id");
        }
        Ok(self.event(kind))
    }

    /// Judges a JSON-RPC response.
    fn envelope(
        &mut self,
        asked: &Asked,
        expected: &ExpectedId,
    ) -> Result<EventKind, &'static str> {
        match (self.has_result, self.error) {
            // Python's 0.3 servers leave out what is null, and a deletion has no result.
            (false, None)
                if asked.operation == Operation::DeleteTaskPushNotificationConfig
                    && asked.version == Version::V0_3 => {}
            (false, None) => return Err("no_result"),
            (true, Some(_)) => return Err("result_and_error"),
            (true, None) | (false, Some(_)) => {}
        }
        let any = matches!(expected, ExpectedId::Any);
        match self.reply_id {
            ReplyId::Same => {}
            ReplyId::Null if self.error.is_some() || any => {}
            ReplyId::Absent if any => {}
            ReplyId::Absent | ReplyId::Null | ReplyId::Different => return Err("id_mismatch"),
        }
        if !self.version_ok {
            return Err("bad_jsonrpc");
        }
        if let Some(error) = self.error {
            return match error {
                ErrorFacts {
                    is_object: true,
                    code: Some(code),
                    has_message: true,
                } => Ok(EventKind::Error(code)),
                _ => Err("bad_error"),
            };
        }
        if asked.http_status >= 400 {
            return Err("result_with_error_status");
        }
        if !has_work(asked.operation) {
            return Ok(EventKind::Other);
        }
        if asked.operation.is_streaming() && !asked.event_stream {
            return Err("not_a_stream");
        }
        self.payload(asked)
    }

    /// What was seen so far of a response that is not well-formed: its ids, as read first.
    pub(super) fn partial(&mut self) -> Event {
        if self.task_id.is_none() {
            self.task_id = self.bare_id.take().or_else(|| self.bare_task_id.take());
        }
        if self.context_id.is_none() {
            self.context_id = self.bare_context_id.take();
        }
        let kind = match (self.wrapped, self.tag) {
            (Some(payload), _) | (None, Some(Tag::Payload(payload))) => payload.kind(),
            (None, Some(Tag::Unknown) | None) => EventKind::Other,
        };
        self.event(kind)
    }

    fn payload(&mut self, asked: &Asked) -> Result<EventKind, &'static str> {
        let whole_task = matches!(asked.operation, Operation::GetTask | Operation::CancelTask);
        if let Some(payload) = self.wrapped {
            // Other ids beside the wrapper are what another client would act on.
            let other = |bare: &Option<Box<str>>, wrapped| bare.is_some() && bare != wrapped;
            if other(&self.bare_id, &self.task_id)
                || other(&self.bare_task_id, &self.task_id)
                || other(&self.bare_context_id, &self.context_id)
            {
                return Err("ambiguous");
            }
            if whole_task {
                return Err("bad_result");
            }
            return match asked.version {
                Version::V1_0 => in_its_place(payload, asked),
                Version::V0_3 => Err("other_version"),
            };
        }
        // An unwrapped object: 0.3, or the Task itself (operations 3 and 5 of 1.0). `id` names
        // the task unless the kind says that this is something else; but a client of operations
        // 3 and 5 may take any object for a Task.
        let is_task = match self.tag {
            Some(Tag::Payload(Payload::Task)) | Some(Tag::Unknown) | None => true,
            Some(Tag::Payload(_)) => whole_task,
        };
        let has_id = is_task && self.bare_id.is_some();
        if has_id && self.bare_task_id.is_some() && self.bare_id != self.bare_task_id {
            return Err("ambiguous");
        }
        // 0.3 clients take what has no `kind` by its shape.
        let payload = match self.tag {
            Some(Tag::Payload(payload)) => payload,
            Some(Tag::Unknown) => return Err("bad_result"),
            None if has_id || whole_task => Payload::Task,
            None if self.bare_status => Payload::StatusUpdate,
            None if self.bare_artifact => Payload::ArtifactUpdate,
            None if self.bare_task_id.is_some() || self.bare_context_id.is_some() => {
                Payload::Message
            }
            None => return Err("bad_result"),
        };
        self.task_id = if has_id {
            self.bare_id.take()
        } else {
            self.bare_task_id.take()
        };
        self.context_id = self.bare_context_id.take();
        match asked.version {
            Version::V1_0 if !whole_task => Err("other_version"),
            Version::V1_0 | Version::V0_3 => in_its_place(payload, asked),
        }
    }

    fn event(&mut self, kind: EventKind) -> Event {
        Event {
            kind,
            task_id: self.task_id.take(),
            context_id: self.context_id.take(),
            state: self.state,
            artifacts: std::mem::take(&mut self.artifacts),
        }
    }
}

/// Whether this operation may be answered with that.
pub(super) fn in_its_place(payload: Payload, asked: &Asked) -> Result<EventKind, &'static str> {
    let fits = match (asked.operation, payload) {
        (Operation::GetTask | Operation::CancelTask, payload) => payload == Payload::Task,
        (Operation::SendMessage, Payload::Task | Payload::Message) => true,
        (Operation::SendMessage, Payload::StatusUpdate | Payload::ArtifactUpdate) => false,
        _ => true,
    };
    fits.then(|| payload.kind()).ok_or("bad_result")
}

/// Whether a result of `operation` is a task, a message, or an event about one.
pub(super) fn has_work(operation: Operation) -> bool {
    match operation {
        Operation::SendMessage
        | Operation::SendStreamingMessage
        | Operation::GetTask
        | Operation::CancelTask
        | Operation::SubscribeToTask => true,
        Operation::ListTasks
        | Operation::CreateTaskPushNotificationConfig
        | Operation::GetTaskPushNotificationConfig
        | Operation::ListTaskPushNotificationConfigs
        | Operation::DeleteTaskPushNotificationConfig
        | Operation::GetExtendedAgentCard => false,
    }
}
