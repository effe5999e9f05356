//! Reads one JSON reply as its bytes come: what it names, and whether it is well-formed.
//!
//! Only the way to the ids, the state and the artifacts' descriptions is followed; everything
//! beside it is checked for syntax and forgotten. `task.history` and `status.message` carry ids
//! of their own, which bind nothing.

mod values;

use super::json_scan::{Flaw, Scanner, Shape, Token, Wish};
use super::operation::{Operation, Version};
use super::reader::{ArtifactNote, Event};
use super::reply_facts::{ErrorFacts, ExpectedId, Facts, has_work};
use super::reply_names::{KEY_ROOM, Name, Payload, Place};
use super::reply_push::{NAME_ROOM, has_webhooks};

/// Longest task or context id that is bound.
const ID_ROOM: usize = 4096;
/// Longest word of a closed set, media type or artifact id that is kept.
const WORD_ROOM: usize = 256;
/// Characters of an artifact's name that are kept (each at most four bytes).
const NAME_LENGTH: usize = 64;
/// Artifacts noted per event, and media types per artifact.
const MAX_NOTES: usize = 32;
/// Levels on the longest way that is followed: root, envelope, result, task, artifacts, artifact,
/// parts, part, file.
const MAX_FRAMES: usize = 9;

/// One open object or array on the way.
#[derive(Debug, Clone, Copy)]
struct Frame {
    place: Place,
    name: Name,
    seen: u32,
}

const ROOT: Frame = Frame {
    place: Place::Root,
    name: Name::Other,
    seen: 0,
};

/// What the record calls bytes that are no document, by where they stood.
#[derive(Debug, Clone, Copy)]
pub(super) struct Codes {
    pub(super) not_json: &'static str,
    pub(super) cut_off: &'static str,
}

/// What a reply is to be, by its binding and head.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// A JSON-RPC response with this id.
    Envelope(ExpectedId),
    /// The result of a REST call.
    Result,
    /// The body of a REST reply with this error status.
    Fault(u16),
    /// An event of a REST stream.
    Event,
}

/// What was asked, and how the answer is to look.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) operation: Operation,
    pub(super) version: Version,
    pub(super) form: Form,
    /// Whether the reply is a stream of events.
    pub(super) event_stream: bool,
    /// The reply's HTTP status.
    pub(super) http_status: u16,
}

impl Asked {
    /// Where the root object leads.
    fn root(&self) -> Place {
        match &self.form {
            Form::Envelope(_) => Place::Envelope,
            Form::Event => Place::Choice,
            Form::Fault(_) => Place::Fault,
            Form::Result => match self.operation {
                Operation::SendMessage
                | Operation::SendStreamingMessage
                | Operation::SubscribeToTask => Place::Choice,
                Operation::GetTask | Operation::CancelTask => Place::WholeTask,
                Operation::CreateTaskPushNotificationConfig
                | Operation::GetTaskPushNotificationConfig
                | Operation::ListTaskPushNotificationConfigs => Place::PushReply,
                Operation::ListTasks
                | Operation::DeleteTaskPushNotificationConfig
                | Operation::GetExtendedAgentCard => Place::Plain,
            },
        }
    }

    /// The JSON-RPC id that is due.
    fn id(&self) -> Option<&ExpectedId> {
        match &self.form {
            Form::Envelope(id) => Some(id),
            Form::Result | Form::Fault(_) | Form::Event => None,
        }
    }
}

/// Reads one response after another; see the module.
#[derive(Debug)]
pub(super) struct Probe {
    scanner: Scanner,
    path: Path,
    codes: Codes,
    flaw: Option<&'static str>,
    read: u64,
}

impl Probe {
    /// A probe for replies of one form.
    pub(super) fn new(asked: Asked, codes: Codes) -> Probe {
        Probe {
            scanner: Scanner::new(),
            path: Path {
                asked,
                frames: [ROOT; MAX_FRAMES],
                depth: 0,
                skipped: 0,
                facts: Facts::new(),
                closed_at: None,
                artifact_start: 0,
                part_type: None,
                part_default: None,
            },
            codes,
            flaw: None,
            read: 0,
        }
    }

    /// Goes on to another response.
    pub(super) fn reset(&mut self) {
        self.scanner.reset();
        self.path.reset();
        self.flaw = None;
        self.read = 0;
    }

    /// Why this response is not well-formed, as far as is known.
    pub(super) fn flaw(&self) -> Option<&'static str> {
        self.flaw
    }

    /// Where the response was complete; only white space may follow.
    pub(super) fn closed_at(&self) -> Option<u64> {
        self.path.closed_at
    }

    /// Bytes read, up to the flaw if there is one.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// Reads on. After a flaw nothing more is read.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.flaw.is_some() {
            return;
        }
        let mut at = 0;
        loop {
            let taken = match self.scanner.next(bytes, &mut at, self.path.wish()) {
                Ok(None) => break,
                Ok(Some(token)) => self.path.take(token, self.read + at as u64),
                Err(Flaw::Syntax) => Err(self.codes.not_json),
                Err(Flaw::TooDeep) => Err("too_deep"),
            };
            if let Err(code) = taken {
                self.flaw = Some(code);
                break;
            }
        }
        self.read += at as u64;
    }

    /// Whether what the response names must be known before any of it may leave.
    pub(super) fn is_only_whole(&self) -> bool {
        has_webhooks(self.path.asked.operation)
    }

    /// Judges the response, which has ended.
    pub(super) fn conclude(&mut self) -> Result<Event, &'static str> {
        match self.flaw {
            Some(code) => Err(code),
            None if !self.scanner.closed() => Err(self.codes.cut_off),
            None => self.path.facts.judge(&self.path.asked),
        }
    }

    /// What a response that is not well-formed named nevertheless; `None` if nothing.
    pub(super) fn partial(&mut self) -> Option<Event> {
        let event = self.path.facts.partial();
        (event.task_id.is_some() || event.context_id.is_some()).then_some(event)
    }
}

/// Where in the response the scanner is, and what was found on the way.
#[derive(Debug)]
struct Path {
    asked: Asked,
    frames: [Frame; MAX_FRAMES],
    depth: usize,
    /// Open levels below something that is not followed.
    skipped: usize,
    facts: Facts,
    closed_at: Option<u64>,
    artifact_start: u64,
    part_type: Option<Box<str>>,
    part_default: Option<&'static str>,
}

impl Path {
    fn reset(&mut self) {
        self.frames[0] = ROOT;
        (self.depth, self.skipped) = (0, 0);
        self.facts = Facts::new();
        self.closed_at = None;
        (self.part_type, self.part_default) = (None, None);
    }

    fn here(&self) -> (Place, Name) {
        let frame = &self.frames[self.depth];
        (frame.place, frame.name)
    }

    /// What is worth keeping of the next key and value.
    fn wish(&self) -> Wish {
        if self.skipped > 0 {
            return Wish::default();
        }
        let (place, name) = self.here();
        let value = match (place, name) {
            (Place::Envelope, Name::Id) => self.asked.id().map_or(0, ExpectedId::room),
            (
                Place::Result
                | Place::WholeTask
                | Place::Payload(_)
                | Place::PushReply
                | Place::PushConfig,
                Name::Id | Name::TaskId | Name::ContextId,
            ) => ID_ROOM,
            (Place::PushReply | Place::PushConfig, Name::Resource) => NAME_ROOM,
            (Place::Artifact, Name::Title) => NAME_LENGTH * 4,
            (_, Name::Other | Name::Message | Name::ProblemTitle)
            | (Place::Part, Name::Text | Name::Data) => 0,
            _ => WORD_ROOM,
        };
        Wish {
            key: if place.has_names() { KEY_ROOM } else { 0 },
            value,
        }
    }

    /// `end` is the offset behind the token.
    fn take(&mut self, token: Token<'_>, end: u64) -> Result<(), &'static str> {
        if self.skipped > 0 {
            match token {
                Token::Open(_) => self.skipped += 1,
                Token::Close => self.skipped -= 1,
                _ => {}
            }
            return Ok(());
        }
        match token {
            Token::Open(shape) => match self.enter(shape)? {
                Some(place) if self.depth + 1 < MAX_FRAMES => {
                    if place == Place::Artifact {
                        self.artifact_start = end - 1;
                        self.facts.artifacts.push(ArtifactNote {
                            id: None,
                            name: None,
                            media_types: Vec::new(),
                            bytes: 0,
                        });
                    }
                    self.depth += 1;
                    self.frames[self.depth] = Frame { place, ..ROOT };
                    Ok(())
                }
                Some(_) | None => {
                    self.skipped = 1;
                    Ok(())
                }
            },
            Token::Close => {
                self.leave(end);
                Ok(())
            }
            Token::Key(key) => {
                let frame = &mut self.frames[self.depth];
                if frame.place.has_names() {
                    frame.name = frame.place.name(key, &mut frame.seen)?;
                }
                Ok(())
            }
            Token::Text(text) => self.text(text),
            Token::Number(number) => self.number(number),
            Token::Bool => self.other_scalar(),
            Token::Null => self.null(),
        }
    }

    /// Where an object or array that opens here leads; `None` when nobody looks inside.
    fn enter(&mut self, shape: Shape) -> Result<Option<Place>, &'static str> {
        let (place, name) = self.here();
        let object = shape == Shape::Object;
        Ok(match (place, name) {
            (Place::Root, _) if object => Some(self.asked.root()),
            (Place::Root, _) => return Err("not_object"),
            (Place::Envelope, Name::Result) => {
                self.facts.has_result = true;
                match (has_work(self.asked.operation), object) {
                    (false, _) if !has_webhooks(self.asked.operation) => None,
                    (false, true) => Some(Place::PushConfig),
                    (false, false) => Some(Place::PushConfigs),
                    (true, true) => Some(Place::Result),
                    (true, false) => return Err("bad_result"),
                }
            }
            (place, Name::Error) if object => {
                self.facts.error = Some(ErrorFacts {
                    is_object: true,
                    ..ErrorFacts::default()
                });
                match place {
                    Place::Envelope => Some(Place::Error),
                    _ => Some(Place::RpcStatus),
                }
            }
            (Place::RpcStatus, Name::Details) if !object => Some(Place::Details),
            (Place::Details, _) if object => Some(Place::Detail),
            (Place::Result | Place::Choice, name) if wrapper(name).is_some() => {
                let payload = wrapper(name).filter(|_| object).ok_or("bad_result")?;
                if self.facts.wrapped.replace(payload).is_some() {
                    return Err("ambiguous");
                }
                Some(Place::Payload(payload))
            }
            (Place::Result | Place::WholeTask | Place::Payload(_), Name::Status) if object => {
                self.facts.bare_status |= place == Place::Result;
                Some(Place::Status)
            }
            (Place::Result | Place::WholeTask | Place::Payload(_), Name::Artifacts) if !object => {
                Some(Place::Artifacts)
            }
            (Place::Result | Place::Payload(_), Name::Artifact) if object => {
                self.facts.bare_artifact |= place == Place::Result;
                self.note()
            }
            (Place::Artifacts, _) if object => self.note(),
            (Place::Artifact, Name::Parts) if !object => Some(Place::Parts),
            (Place::Parts, _) if object => Some(Place::Part),
            (Place::Part, Name::File) if object => Some(Place::File),
            (Place::PushReply | Place::PushConfig, Name::Configs) if !object => {
                Some(Place::PushConfigs)
            }
            (Place::PushConfigs, _) if object => Some(Place::PushConfig),
            (Place::Part, Name::Data) => {
                self.part_default = Some("application/json");
                None
            }
            _ => {
                self.other_scalar()?;
                None
            }
        })
    }

    fn note(&self) -> Option<Place> {
        (self.facts.artifacts.len() < MAX_NOTES).then_some(Place::Artifact)
    }

    fn leave(&mut self, end: u64) {
        let (place, _) = self.here();
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 {
            self.closed_at = Some(end);
        }
        let Some(note) = self.facts.artifacts.last_mut() else {
            return;
        };
        match place {
            Place::Artifact => note.bytes = end - self.artifact_start,
            Place::Part => {
                let default = self.part_default.take();
                let Some(media_type) = self.part_type.take().or(default.map(Box::from)) else {
                    return;
                };
                let known = note.media_types.contains(&media_type);
                if !known && note.media_types.len() < MAX_NOTES {
                    note.media_types.push(media_type);
                }
            }
            _ => {}
        }
    }
}

/// The wrapped object that a member of a result holds.
fn wrapper(name: Name) -> Option<Payload> {
    match name {
        Name::Task => Some(Payload::Task),
        Name::Message => Some(Payload::Message),
        Name::StatusUpdate => Some(Payload::StatusUpdate),
        Name::ArtifactUpdate => Some(Payload::ArtifactUpdate),
        _ => None,
    }
}
